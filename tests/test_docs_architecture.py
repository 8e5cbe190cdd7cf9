"""The architecture page names what there is: every part in its order, every dependency, every test it leans on."""

import re
import tomllib
from pathlib import Path

import pytest
from test_structure import ORDER

ROOT = Path(__file__).parent.parent
PAGES = ["docs/architecture.md", "docs/zh/architecture.md"]
GROUND = ORDER[: ORDER.index("configs")]
ABOVE = [part for part in ORDER[ORDER.index("configs") + 1 :] if part != "__main__"]
every_page = pytest.mark.parametrize("page", PAGES)


def text_of(page):
    return (ROOT / page).read_text(encoding="utf-8")


def cells(page, header):
    """The first cells of the rows of the table that has this header."""
    rows = text_of(page).partition(header)[2].splitlines()[2:]
    return [row.split("|")[1].strip() for row in rows[: rows.index("")]]


@every_page
def test_the_order_is_the_one_that_is_enforced(page):
    drawn = re.search(r"^```\n(text ->.*?)^```$", text_of(page), re.MULTILINE | re.DOTALL)[1]
    assert re.findall(r"\w+", drawn) == ABOVE
    sentence = re.search(r"(?:the ground: |是地基：)(.*?)(?:which|它们)", text_of(page), re.DOTALL)[1]
    assert re.findall(r"`(\w+)`", sentence) == GROUND


@every_page
@pytest.mark.parametrize("part", [*GROUND, *ABOVE])
def test_the_table_has_every_part(page, part):
    header = "| 文件夹或文件 |" if "zh" in page else "| folder or file |"
    name = f"{part}/" if (ROOT / "maskery" / part).is_dir() else f"{part}.py"
    assert f"`{name}`" in " ".join(cells(page, header))


@every_page
def test_every_dependency_has_its_reason(page):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    needed = {re.match(r"[\w-]+", each)[0] for each in project["dependencies"]}
    header = "| 包 | 为什么 |" if "zh" in page else "| package | why |"
    assert {name for cell in cells(page, header) for name in re.split("[、,] ?", cell)} == needed
    extras = {f"`{name}`" for name in project["optional-dependencies"]} - {"`all`", "`test`"}
    assert set(cells(page, "| 附加包 |" if "zh" in page else "| extra |")) == extras


@every_page
def test_the_tests_that_it_leans_on_exist(page):
    for name in re.findall(r"`(test_[\w*]+)`", text_of(page)):
        assert list((ROOT / "tests").glob(f"{name}.py")), name
