"""Every block of the README is run, in order, in one empty folder.

`sh` blocks line by line, `console` blocks where a line begins with `$ `, `python` blocks whole; a `toml` block is
written to the file that its first line names, and has to be a recipe. `make` is not run: its target has to exist.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from maskery.cli.app import VERBS
from maskery.recipes.recipe import recipe

ROOT = Path(__file__).parent.parent
PAGES = sorted(ROOT.glob("README*.md"))
BLOCK = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page):
    return [(found[1], found[2]) for found in BLOCK.finditer(page.read_text(encoding="utf-8"))]


def commands(kind, text):
    """The command lines of a block; a backslash at the end of a line goes on with the next."""
    lines = text.replace("\\\n", " ").splitlines()
    if kind == "console":
        return [line[2:] for line in lines if line.startswith("$ ")]
    return [line for line in lines if line.strip() and not line.lstrip().startswith("#")]


def targets():
    found = re.findall(r"^([\w-]+):(?!=)", (ROOT / "Makefile").read_text(), re.MULTILINE)
    return set(found)


def run(arguments, folder):
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    environment |= {"HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        arguments, cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, f"{arguments[-1]}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def run_block(kind, text, folder):
    if kind == "python":
        run([sys.executable, "-W", "error", "-c", text], folder)
    elif kind == "toml":
        name = re.match(r"# (\S+\.toml)\n", text)
        assert name, "the first line of a recipe names its file"
        (folder / name[1]).write_text(text, encoding="utf-8")
        recipe(folder / name[1]).require()
    elif kind in ("sh", "console"):
        for line in commands(kind, text):
            if not line.startswith("make"):
                run(["bash", "-euo", "pipefail", "-c", line], folder)


def to_run(page):
    return [(kind, text) for kind, text in blocks(page) if kind in ("sh", "console", "python", "toml")]


def with_own_blocks():
    """Pages of which none has all its blocks on another before it: a translation shares them, and they are run once."""
    found = []
    for page in PAGES:
        if not any(set(to_run(page)) <= set(to_run(other)) for other in found):
            found.append(page)
    return found


@pytest.mark.parametrize("page", with_own_blocks(), ids=lambda page: page.name)
def test_every_block_runs(page, tmp_path):
    for kind, text in to_run(page):
        run_block(kind, text, tmp_path)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_has_something_to_run(page):
    assert to_run(page), "a page with nothing to run shows nothing"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_targets_verbs_and_pages_exist(page):
    text = page.read_text(encoding="utf-8")
    for target in re.findall(r"(?:^|`)make ([\w-]+)", text, re.MULTILINE):
        assert target in targets(), f"make {target}"
    for verb in re.findall(r"(?:^|`)maskery ([a-z]\w*)", text, re.MULTILINE):
        assert verb in VERBS, f"maskery {verb}"
    for link in re.findall(r"\]\(([^)#:]+)\)", text):
        assert (page.parent / link).is_file(), f"{page.name} points to {link}"


def test_there_is_a_page_and_the_two_commands_are_on_it():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert {"make demo", "make test"} <= set(re.findall(r"^make \w+", text, re.MULTILINE))


def test_commands_are_read_as_a_shell_reads_them():
    assert commands("sh", "# why\nmaskery a \\\n  --b\n\nls\n") == ["maskery a    --b", "ls"]
    assert commands("console", "$ maskery a\nits output\n") == ["maskery a"]
