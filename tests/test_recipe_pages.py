"""Every recipe has a page in both languages, and both indexes show the table that the files give."""

import re
from pathlib import Path

import pytest

from maskery.recipes.recipe import names, table

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


@every_language
@pytest.mark.parametrize("name", names())
def test_every_recipe_has_its_page(name, language):
    text = (DOCS / language / "recipes" / f"{name}.md").read_text(encoding="utf-8")
    assert text.startswith(f"# {name}\n")
    assert re.findall(r"^## (.*)", text, re.MULTILINE) == SECTIONS[language]


@every_language
@pytest.mark.parametrize("name", names())
def test_the_index_shows_what_the_file_says(name, language):
    row = next(row for row in table() if row["name"] == name)
    cells = [f"[{name}](recipes/{name}.md)", *list(row.values())[1:]]
    lines = (DOCS / language / "recipes.md").read_text(encoding="utf-8").splitlines()
    assert f"| {' | '.join(cells)} |" in lines
