"""`maskery vectors heat` and `map`: what is drawn is what the encoder says of the texts of the file; refusals."""

from __future__ import annotations

import re

import pytest
from pages import check_page, check_svg
from small_encoder import lines, quiet, small_encoder

from maskery.cli import main
from maskery.vectors.encoder import Encoder

TEXTS = list(lines(12).texts)


@pytest.fixture(scope="module")
def place(tmp_path_factory, no_waiting_for_the_disk):
    folder = tmp_path_factory.mktemp("draw")
    Encoder(small_encoder(), say=quiet).save(folder / "model")
    (folder / "few.txt").write_text("\n".join([*TEXTS, "", TEXTS[0]]) + "\n", encoding="utf-8")
    rows = [f"{text}\t{'animal' if n % 2 else 'place'}\t{n}\n" for n, text in enumerate(TEXTS)]
    (folder / "kinds.tsv").write_text("text\tlabel\tnumber\n" + "".join(rows), encoding="utf-8")
    (folder / "many.txt").write_text("".join(f"{TEXTS[0]} {n}\n" for n in range(61)), encoding="utf-8")
    return folder


@pytest.fixture
def draw(place, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(place)

    def call(verb, file, *arguments, out="p.svg"):
        code = main(["vectors", verb, "model", file, "--html", str(tmp_path / out), *arguments])
        made = tmp_path / out
        return code, made.read_text(encoding="utf-8") if made.is_file() else "", capsys.readouterr().err

    return call


def test_a_square_has_the_cosines_of_the_texts_of_the_file(draw, place):
    code, svg, err = draw("heat", "few.txt")
    assert code == 0, err
    check_svg(svg)
    vectors = Encoder(place / "model", say=quiet).encode(TEXTS, normalize=True)
    assert svg.count("<rect") == 1 + len(TEXTS) ** 2, "a text that stands there twice is drawn once"
    assert f"<title>{vectors[0] @ vectors[5]:.4f}\n{TEXTS[0]}\n{TEXTS[5]}</title>" in svg
    assert "few.txt: 14 texts, 12 of them distinct and not empty" in err
    assert "task = " not in err


@pytest.mark.parametrize("method", ["pca", "tsne"])
def test_a_map_finds_the_labels_of_a_table(method, draw):
    code, page, err = draw("map", "kinds.tsv", "--method", method, out="p.html")
    assert code == 0, err
    check_page(page)
    assert all(f"<title>{'animal' if n % 2 else 'place'}\n{text}</title>" in page for n, text in enumerate(TEXTS))


def test_a_map_of_lines_and_of_a_named_column(draw):
    code, svg, err = draw("map", "few.txt")
    assert code == 0, err
    assert svg.count("<path") == len(TEXTS)
    code, svg, err = draw("map", "kinds.tsv", "--text", "text", "--label", "number", out="n.svg")
    assert code == 0, err
    assert f"<title>3\n{TEXTS[3]}</title>" in svg


@pytest.mark.parametrize(
    ("verb", "file", "arguments", "told"),
    [
        ("heat", "many.txt", (), "61 texts: a square of 2 to 60 can be read"),
        ("heat", "none.txt", (), "no such file"),
        ("map", "few.txt", ("--method", "umap"), "choices: pca, tsne"),
        ("map", "kinds.tsv", ("--label", "colour"), "colour"),
        ("map", "kinds.tsv", ("--header", "perhaps"), "--header"),
    ],
)
def test_what_cannot_be_drawn_is_told(verb, file, arguments, told, draw):
    code, made, err = draw(verb, file, *arguments)
    assert (code, made) == (2, "")
    assert told in err
    assert re.search(r"repair: \S", err)


def test_where_no_picture_can_be_is_told_first(draw):
    code, _, err = draw("heat", "none.txt", out="p.png")
    assert code == 2
    assert "a picture cannot be saved as .png" in err
