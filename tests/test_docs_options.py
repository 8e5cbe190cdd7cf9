"""Each verb has a guide in both languages, and the guide has every option that the verb has, and no other."""

import json
import re
from pathlib import Path

import pytest

from maskery.cli.app import VERBS

ROOT = Path(__file__).parent.parent
OPTIONS = json.loads((ROOT / "tests" / "snapshots" / "verbs.json").read_text(encoding="utf-8"))
every_verb = pytest.mark.parametrize("verb", VERBS)
every_language = pytest.mark.parametrize("folder", ["docs/guide", "docs/zh/guide"])


def options_of(verb):
    """The options of a verb and of the commands below it."""
    names = [name for command, given in OPTIONS.items() if command.split()[0] == verb for name in given]
    return {name.split()[0] for name in names if name.startswith("--")}


def flags_section(text):
    """The part of a page that lists flags; a verb without any has no such part."""
    found = re.search(r"^## (?:Flags|选项)$(.*?)^## ", text, re.MULTILINE | re.DOTALL)
    return found[1] if found else ""


@every_language
@every_verb
def test_a_guide_lists_the_options_of_its_verb(verb, folder):
    text = (ROOT / folder / f"{verb}.md").read_text(encoding="utf-8")
    rows = [line for line in flags_section(text).splitlines() if line.startswith("|")]
    first = "\n".join(row if verb == "recipes" else row.replace(r"\|", " ").split("|")[1] for row in rows)
    assert set(re.findall(r"--[a-z][a-z-]*", first)) == options_of(verb)


@every_language
@every_verb
def test_the_index_and_the_readme_lead_to_it(verb, folder):
    readme = ROOT / ("README.zh.md" if "zh" in folder else "README.md")
    assert f"({folder}/{verb}.md)" in readme.read_text(encoding="utf-8")
