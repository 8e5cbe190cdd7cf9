"""The picture type: escaping, pages, notebook cells, files, reports."""

import json
import re
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pages import check_fragment, check_page, check_svg, texts

import maskery
from maskery.errors import InputError
from maskery.picture import Markup, Picture, report, table
from maskery.picture.markup import escape, language, script_data, tag
from maskery.picture.svg import DASHES, Drawing, shortened, text_width
from maskery.picture.theme import DARK, LIGHT, SERIES_DARK, SERIES_LIGHT

HARD = ["<script>alert(1)</script>", "&amp;", "\"'", "]]>", "<!--", "\u202eabc", "שלום", "🙂", "\x00\x07", "中文"]
ANY = st.text(st.characters(), max_size=30) | st.sampled_from(HARD)
PLAIN = ANY | st.integers() | st.booleans() | st.none()


def drawing(title="A drawing"):
    made = Drawing(title, 100, 50)
    made.text(5, 20, "<label> & more")
    made.path("M0 0L5 5", 9, dash=DASHES[1])
    return Picture(title, made.svg(), svg=made.file(), note="why <so>")


def visible(sign):
    """The sign itself, or what stands for one that cannot be written."""
    code = ord(sign)
    if code < 32 and sign not in "\t\n":
        return chr(0x2400 + code)
    impossible = (0x7F <= code < 0xA0 and code != 0x85) or 0xD800 <= code < 0xE000 or code in (0xFFFE, 0xFFFF)
    return "\ufffd" if impossible else sign


@given(ANY)
def test_escaped_text_comes_back_from_html_and_xml(text):
    wanted = "".join(map(visible, text))
    written = tag("p", text, {"title": text})
    page = check_fragment(str(written))
    assert page.text == wanted
    assert page.attributes == [("p", "title", wanted)]
    element = ElementTree.fromstring(written)
    assert (element.text or "") == wanted
    assert element.get("title") == wanted.replace("\t", " ").replace("\n", " ")


@given(st.recursive(PLAIN, lambda inner: st.lists(inner) | st.dictionaries(ANY, inner)))
def test_data_in_a_script_is_the_same_data_and_cannot_end_it(value):
    written = script_data(value)
    assert json.loads(written) == value
    assert not re.search("[<>&\u2028\u2029]", written)


def test_what_cannot_be_written_is_shown():
    assert escape("a\x00b\x1b") == "a␀b␛"
    assert escape("\ud800\uffff") == "\ufffd\ufffd"
    assert escape(Markup("<b>")) == "<b>"
    assert escape("<b>") == "&lt;b&gt;"


def test_the_language_of_han_characters():
    assert language("cat") is None
    assert language("a猫") == "zh-Hans"
    assert language("猫です") == "ja"


@given(ANY, ANY, ANY)
def test_titles_notes_and_paragraphs_are_text(title, note, paragraph):
    picture = Picture(title, tag("p", "body"), note=note)
    for page in (check_page(picture.html()), check_page(report(title, [(title, [paragraph], picture)]).html())):
        assert page.scripts == [page.scripts[0]], "only the switch of the theme runs"
        assert not {"b", "i"} & {name for name, _, _ in page.attributes}


def test_a_page_and_a_cell():
    picture = drawing()
    page = check_page(picture.html())
    assert "why <so>" in page.text
    assert "Light or dark" in page.text
    cell = picture._repr_html_()
    check_fragment(cell)
    assert cell.startswith('<div class="maskery-picture">')
    both = check_fragment(cell + cell)
    assert both.ids == []
    for rule in re.findall(r"([^{}]+)\{", re.sub(r"@[^{]+\{", "", re.search("<style>(.*?)</style>", cell, re.S)[1])):
        for selector in rule.split(","):
            assert re.search(r"\.(maskery-picture|mk-)", selector), f"{selector} reaches beyond the picture"


def test_notebooks_say_their_theme():
    cell = drawing()._repr_html_()
    for page in ("body[data-jp-theme-light=true]", "body[data-jp-theme-light=false]", "body.vscode-dark"):
        assert f"{page} .maskery-picture" in cell


def contrast(one, other):
    def light(colour):
        parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted((light(one), light(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize(("colours", "series"), [(LIGHT, SERIES_LIGHT), (DARK, SERIES_DARK)], ids=["light", "dark"])
def test_both_themes_can_be_read(colours, series):
    assert colours.keys() == LIGHT.keys()
    for name in ("ink", "soft", "accent"):
        assert contrast(colours[name], colours["paper"]) >= 4.5
        assert contrast(colours[name], colours["panel"]) >= 4.5
    for kind in ("mask", "random", "keep", "similar", "other", "unmatched", "infilled", "ngram"):
        assert contrast(colours[kind], colours[f"{kind}-back"]) >= 4.5
    for colour in series:
        assert contrast(colour, colours["paper"]) >= 3.5


def test_files(tmp_path):
    picture = drawing()
    assert picture.save(tmp_path / "a.html").read_text(encoding="utf-8") == picture.html()
    root = check_svg(picture.save(str(tmp_path / "a.svg")).read_text(encoding="utf-8"))
    assert texts(root) == ["<label> & more"]
    assert picture.save(tmp_path / "a.html").is_file(), "a picture may be drawn again"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.html", "a.svg"]


@pytest.mark.parametrize(
    ("name", "told"),
    [("a.png", "cannot be saved as .png"), ("a", "without a suffix"), ("no/a.html", "mkdir -p"), ("a.svg", "a.html")],
)
def test_refused_files(tmp_path, name, told):
    plain = Picture("t", "<p>flows</p>")
    with pytest.raises(InputError, match=re.escape(told)):
        plain.save(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_is_no_file(tmp_path):
    (tmp_path / "a.html").mkdir()
    with pytest.raises(InputError, match="is a folder"):
        drawing().save(tmp_path / "a.html")


def test_a_report_holds_its_pictures_in_order():
    numbers = table(("", "x"), [("<a>", 1), ("b", 2)])
    sections = [
        ("One", "a < b", drawing("first")),
        ("Two", [numbers, "end"], [drawing("second"), drawing("third")]),
        ("", [], None),
    ]
    made = report("报告", sections, lang="zh")
    page = check_page(made.html())
    assert '<html lang="zh">' in made.html()
    assert "浅色或深色" in page.text
    places = [page.text.index(part) for part in ("One", "a < b", "first", "Two", "<a>", "end", "second", "third")]
    assert places == sorted(places)
    with pytest.raises(InputError, match=r"\.html"):
        made.save("x.svg")


@given(st.text(max_size=40), st.floats(0, 300))
def test_shortened_labels_fit(text, width):
    short = shortened(text, width)
    assert short == text or short.endswith("…")
    assert short == "…" or text_width(short) <= width
    assert text.startswith(short.removesuffix("…")) or short == text


def test_public_names():
    assert maskery.Picture is Picture
    assert set(maskery.explain.__all__) >= {"curves", "head_view", "maskings"}
