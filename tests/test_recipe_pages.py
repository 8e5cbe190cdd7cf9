"""Every recipe has a page in both languages with what a page needs; its example runs; both indexes show the tables that
the files give; the pictures are those that the script draws."""

import re
import runpy
from pathlib import Path
from random import Random

import pytest
from pages import check_svg

from maskery.cli import main
from maskery.corpus.store import Corpus
from maskery.recipes.recipe import names, table
from maskery.text.tokenizer import Tokenizer
from maskery.text.training import LAYOUT

DOCS = Path(__file__).parent.parent / "docs"
SECTIONS = {
    "": [
        "The problem",
        "The idea",
        "The formula",
        "Try it",
        "Measured",
        "Where we depart from the paper or from its code",
    ],
    "zh": ["要解决的问题", "想法", "公式", "试一试", "实测", "与论文或其代码不同的地方"],
}
every_language = pytest.mark.parametrize("language", SECTIONS, ids=["english", "chinese"])


def page(name, language=""):
    return (DOCS / language / "recipes" / f"{name}.md").read_text(encoding="utf-8")


@every_language
@pytest.mark.parametrize("name", names())
def test_every_recipe_has_its_page(name, language):
    text = page(name, language)
    assert text.startswith(f"# {name}\n")
    assert re.findall(r"^## (.*)", text, re.MULTILINE) == SECTIONS[language]
    assert "\n$$" in text, "a formula"
    assert re.search(r"^!\[.+\]\(.+\.svg\)$", text, re.MULTILINE), "a picture"
    assert re.search(r"^maskery \w+", text, re.MULTILINE), "a command"


@every_language
@pytest.mark.parametrize("name", names())
def test_the_index_shows_what_the_file_says(name, language):
    row = next(row for row in table() if row["name"] == name)
    cells = [f"[{name}](recipes/{name}.md)", *list(row.values())[1:]]
    lines = (DOCS / language / "recipes.md").read_text(encoding="utf-8").splitlines()
    assert f"| {' | '.join(cells)} |" in lines


@every_language
def test_the_index_shows_the_matrix_as_it_is_printed(language, capsys):
    assert main(["recipes", "--table"]) == 0
    assert f"\n{capsys.readouterr().out}\n" in (DOCS / language / "recipes.md").read_text(encoding="utf-8")


WORDS = ["function", "method", "value", "object", "list", "tuple", "set", "class", "type", "called", "used", "first"]
WORDS += ["last", "word", "that", "of", "a", "the"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a corpus of the name that the examples open, and words that they know."""
    folder, draw = tmp_path_factory.mktemp("examples"), Random(0)
    lines = [" ".join(draw.choices(WORDS, k=draw.randint(4, 12))) + "." for _ in range(400)]
    text = "\n\n".join("\n".join(lines[n : n + 8]) for n in range(0, 400, 8))
    (folder / "my.txt").write_text(text, encoding="utf-8")
    tokenizer = Tokenizer.from_pieces([*LAYOUT, ".", *WORDS])
    Corpus.build([folder / "my.txt"], folder / "my-corpus", tokenizer=tokenizer, workers=0)
    return folder


@pytest.mark.parametrize("name", names())
def test_the_example_runs(name, folder, monkeypatch, capsys):
    """The Chinese page has the same one, byte for byte."""
    section = page(name).partition("\n## Try it\n")[2].partition("\n## ")[0]
    examples = re.findall(r"^```python\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
    assert examples
    assert all(len(code.splitlines()) <= 16 for code in examples), "about ten lines"
    monkeypatch.chdir(folder)
    for code in examples:
        exec(compile(code, f"{name}.md", "exec"), {})
    assert capsys.readouterr().out or list(folder.glob("*.html")), "something is seen"


def test_pictures_are_those_that_are_drawn():
    drawn = runpy.run_path(str(DOCS / "draw.py"))["drawn"]()
    for name, text in drawn.items():
        check_svg(text)
        assert (DOCS / "pictures" / name).read_text(encoding="utf-8") == text, "python docs/draw.py"
