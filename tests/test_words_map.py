"""Words on a plane: principal components against a slow reference, the drawing, and `maskery words map`."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from rich.cells import cell_len

import maskery
from maskery.cli import main
from maskery.cli.word_map import grid
from maskery.errors import InputError
from maskery.explain.word_map import word_map
from maskery.words.plane import plane
from maskery.words.vectors import WordVectors

WORDS = ["北京", "上海", "东京", "苹果", "香蕉", "梨", "run", "walk", "<b>"]


@pytest.fixture(scope="module")
def vectors():
    drawn = np.random.default_rng(3).normal(size=(len(WORDS), 6)).astype(np.float32)
    drawn[:3, 0] += 4  # three places, three fruits, three others
    drawn[3:6, 1] += 4
    drawn[6:, 2] += 4
    return WordVectors(WORDS, np.zeros(len(WORDS), dtype=np.int64), drawn)


@pytest.fixture
def folder(vectors, tmp_path):
    vectors.save(tmp_path / "v")
    return tmp_path


def test_the_plane_is_that_of_the_two_largest_eigenvalues(vectors):
    found = plane(vectors, ["北京", "苹果", "run"], near=2)
    assert sorted(found.words) == sorted(WORDS)
    assert found.words[:3] == found.asked == ["北京", "苹果", "run"]
    points = np.stack([vectors.vector(word) / np.linalg.norm(vectors.vector(word)) for word in found.words])
    values, directions = np.linalg.eigh(np.cov(points.T.astype(np.float64)))
    assert found.share == pytest.approx(values[-2:].sum() / values.sum(), rel=1e-5)
    expected = (points - points.mean(axis=0)) @ directions[:, [-1, -2]]
    np.testing.assert_allclose(np.abs(found.place), np.abs(expected), atol=1e-5)
    assert (found.place[0] > 0).all(), "the first word stands to the right, and above"


def test_a_neighbour_belongs_to_the_nearest(vectors):
    found = plane(vectors, ["北京", "苹果"], near=8)
    assert len(found.words) == len(WORDS), "nobody twice"
    for word, group in zip(found.words, found.group.tolist(), strict=True):
        near = [vectors.unit[vectors.index[word]] @ vectors.unit[vectors.index[asked]] for asked in found.asked]
        assert group == int(np.argmax(near))


def test_too_few_words_are_refused(vectors):
    with pytest.raises(InputError, match="2 words make no map") as caught:
        plane(vectors, ["北京", "北京"], near=1)
    assert "--top" in caught.value.repair
    with pytest.raises(InputError, match="there is no vector of '月亮'"):
        plane(vectors, ["月亮"])


def test_equal_vectors_have_a_plane_without_differences():
    same = WordVectors(["a", "b", "c"], np.zeros(3, dtype=np.int64), np.ones((3, 2), dtype=np.float32))
    found = plane(same, ["a", "b", "c"], near=0)
    assert found.share == 0
    np.testing.assert_allclose(found.place, 0, atol=1e-12)
    assert word_map(same, ["a", "b", "c"], near=0).svg


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_drawing_has_every_word_once_and_inside(vectors, lang):
    picture = word_map(vectors, ["北京", "苹果", "<b>"], near=2, lang=lang)
    for text in (picture.svg, picture.body):
        shown = re.findall(r"<text x=\"([\d.-]+)\" y=\"([\d.-]+)\"[^>]*>([^<]*)</text>", text)
        places = {word: (float(x), float(y)) for x, y, word in shown}
        for word in WORDS:
            x, y = places[word.replace("<", "&lt;").replace(">", "&gt;")]
            assert 0 <= x <= 860
            assert 0 <= y <= 560
    share = plane(vectors, ["北京", "苹果", "<b>"], near=2).share
    assert f"{100 * share:.0f} %" in picture.note
    assert ("附近的词" in picture.title) == (lang == "zh")


@pytest.mark.parametrize("width", [12, 40, 100])
def test_words_of_the_grid_never_touch(vectors, width):
    found = plane(vectors, WORDS, near=0)
    lines, hidden = grid(found, width, 6)
    shown = " ".join(lines)
    assert sum(f"[{word}]" in shown for word in WORDS) == len(WORDS) - hidden
    assert all(cell_len(line) <= width for line in lines)
    assert "][" not in shown
    if width == 100:
        assert hidden == 0


def test_on_the_command_line(folder, capsys):
    command = ["words", "map", str(folder / "v"), "北京", "苹果", "--top", "2"]
    assert main(command) == 0
    told = capsys.readouterr().out
    assert "[北京]" in told
    assert "% of the differences of these 6 vectors" in told
    assert main([*command, "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert [each["word"] for each in facts["words"][:2]] == ["北京", "苹果"]
    assert 0 < facts["share"] <= 1
    for name in ("map.html", "map.svg"):
        assert main([*command, "--html", str(folder / name)]) == 0
        assert "北京" in (folder / name).read_text(encoding="utf-8")
    assert main([*command, "--html", str(folder / "no" / "map.html")]) == 2
    assert f"mkdir -p {folder / 'no'}" in capsys.readouterr().err
    assert main([*command, "--html", str(folder / "map.png")]) == 2


def test_the_public_names(folder, vectors):
    assert maskery.WordVectors.load(folder / "v").words == WORDS
    assert maskery.StaticEncoder(vectors).encode(["北京"]).shape == (1, 6)
    assert "word_map" in maskery.explain.__all__
