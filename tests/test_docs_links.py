"""The pages hang together: links and anchors resolve, each has its twin in the other language, none is an orphan."""

import json
import os
import re
from pathlib import Path
from urllib.parse import unquote

import pytest

ROOT = Path(__file__).parent.parent
DOCS, CHINESE = ROOT / "docs", ROOT / "docs" / "zh"
BLOCK = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)\s]+)\)")
ONE_LANGUAGE = {ROOT / "CHANGELOG.md"}
"""A list that grows with every change; both languages point to it."""
TWINS = {ROOT / "README.md": ROOT / "README.zh.md", ROOT / "CONTRIBUTING.md": CHINESE / "contributing.md"}
TWINS |= {
    page: CHINESE / page.relative_to(DOCS)
    for page in sorted([*DOCS.rglob("*.md"), *DOCS.rglob("*.ipynb")])
    if not page.is_relative_to(CHINESE)
}
PAGES = sorted({*TWINS, *TWINS.values(), *ONE_LANGUAGE} | set(CHINESE.rglob("*.md")) | set(CHINESE.rglob("*.ipynb")))


def name_of(path):
    return path.relative_to(ROOT).as_posix()


every_page = pytest.mark.parametrize("page", PAGES, ids=name_of)
every_twin = pytest.mark.parametrize("page", TWINS, ids=name_of)


def prose(page):
    """The text of a page without its code."""
    text = page.read_text(encoding="utf-8")
    if page.suffix == ".ipynb":
        cells = json.loads(text)["cells"]
        text = "\n\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    return BLOCK.sub("", text)


def anchors(page):
    """The names that headings get: small letters, no signs, hyphens for spaces, a number where one comes again."""
    found = []
    for heading in re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE):
        name = re.sub(r"[^\w\- ]", "", LINK.sub("]", heading).lower()).replace(" ", "-")
        again = sum(each == name for each in found)
        found.append(f"{name}-{again}" if again else name)
    return found


def links(page):
    """(file, anchor) of every link that stays in the repository."""
    for link in LINK.findall(re.sub(r"`[^`\n]*`", "", prose(page))):
        if not re.match(r"[a-z]+:", link):
            path, _, anchor = unquote(link).partition("#")
            yield Path(os.path.normpath(page.parent / path)) if path else page, anchor


def reached(start):
    """All pages that links lead to from this one."""
    found, todo = set(), [start]
    while todo:
        page = todo.pop()
        if page not in found and page.suffix in (".md", ".ipynb") and page.is_file():
            found.add(page)
            todo += [target for target, _ in links(page)]
    return found


def is_chinese(page):
    return page.is_relative_to(CHINESE) or page.name == "README.zh.md"


@every_page
def test_links_and_anchors_resolve(page):
    for target, anchor in links(page):
        assert target.is_relative_to(ROOT), f"{target} is outside"
        assert target.is_file(), f"there is no {name_of(target)}"
        if anchor:
            assert anchor in anchors(target), f"{name_of(target)} has no heading #{anchor}; it has {anchors(target)}"


@every_page
def test_links_stay_in_the_language(page):
    """But for one link from the top of a page to its twin, and what is there in one language only."""
    twin = {**TWINS, **{chinese: english for english, chinese in TWINS.items()}}.get(page)
    for target, _ in links(page):
        if target.suffix in (".md", ".ipynb") and target != twin and {page, target}.isdisjoint(ONE_LANGUAGE):
            assert is_chinese(target) == is_chinese(page), f"leads to {name_of(target)}"


@every_twin
def test_a_page_has_its_twin(page):
    assert TWINS[page].is_file(), f"write {name_of(TWINS[page])}"


def test_every_chinese_page_is_a_twin():
    assert {page for page in PAGES if is_chinese(page)} == set(TWINS.values())


@pytest.mark.parametrize("page", [page for page in TWINS if page.suffix == ".md"], ids=name_of)
def test_twins_have_the_same_shape_and_the_same_code(page):
    """As many headings of each level and as many lines in tables; blocks of a named language are the same bytes, but on
    the first page, where each language trains on its own text."""
    texts = [each.read_text(encoding="utf-8") for each in (page, TWINS[page])]
    blocks, twin_blocks = (BLOCK.findall(text) for text in texts)
    assert [kind for kind, _ in blocks] == [kind for kind, _ in twin_blocks]
    if page.name != "README.md" or page.parent != ROOT:
        assert [block for block in blocks if block[0]] == [block for block in twin_blocks if block[0]]
    for pattern in (r"^(#+) ", r"^(\|).*\|$", r"^(!)\["):
        here, there = (re.findall(pattern, BLOCK.sub("", text), re.MULTILINE) for text in texts)
        assert here == there, f"{pattern}: {len(here)} and {len(there)}"


@pytest.mark.parametrize("start", ["README.md", "README.zh.md"])
def test_every_page_is_reached_from_the_first_one(start):
    seen = reached(ROOT / start)
    wanted = {page for page in PAGES if page in ONE_LANGUAGE or is_chinese(page) == is_chinese(ROOT / start)}
    assert not {name_of(page) for page in wanted - seen}


def test_every_picture_is_shown():
    shown = {target for page in PAGES for target, _ in links(page)}
    assert not {name_of(picture) for picture in set((DOCS / "pictures").iterdir()) - shown}


@pytest.mark.parametrize("folder", [DOCS, CHINESE], ids=name_of)
def test_the_index_names_every_guide(folder):
    index = folder / "guide" / "README.md"
    assert {target for target, _ in links(index)} >= set((folder / "guide").glob("*.md")) - {index}


def test_links_are_read_as_a_browser_reads_them(tmp_path):
    page = tmp_path / "page.md"
    lines = ["# A `b`: c", "[x](a/../b.md#d) `[no](no.md)` [y](#a-b-c)", "[z](https://example.org) ![p](p.svg)"]
    page.write_text("\n".join([*lines, "```sh", "[no](no)", "```", ""]), encoding="utf-8")
    assert anchors(page) == ["a-b-c"]
    assert list(links(page)) == [(tmp_path / "b.md", "d"), (page, "a-b-c"), (tmp_path / "p.svg", "")]
