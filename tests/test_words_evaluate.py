"""Examining vectors: the numbers of gensim's own functions, and of scipy's correlations."""

from __future__ import annotations

import numpy as np
import pytest
from gensim.models import KeyedVectors
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import pearsonr, spearmanr

from maskery.errors import InputError, TextError
from maskery.words.evaluate import Analogies, Similarity, correlation, evaluate, ranks
from maskery.words.vectors import WordVectors

WORDS = [f"w{n}" for n in range(60)] + ["北京", "中国", "东京", "日本", "Dog", "dog", "DOG", "cat"]


@pytest.fixture(scope="module")
def both():
    """Ours and gensim's, with the same vectors; few dimensions, so that analogies come out right now and then."""
    matrix = np.random.default_rng(4).standard_normal((len(WORDS), 3)).astype(np.float32)
    unit = matrix / np.linalg.norm(matrix, axis=1, keepdims=True)
    matrix[63] = unit[62] + unit[61] - unit[60] + 0.001
    theirs = KeyedVectors(3)
    theirs.add_vectors(WORDS, matrix)
    return WordVectors(WORDS, np.zeros(len(WORDS)), matrix), theirs


def test_similarity_agrees_with_gensim(both, tmp_path):
    ours, theirs = both
    draw = np.random.default_rng(0)
    names = [*WORDS, "none", "W7", "CAT"]
    lines = [
        f"{names[a]}\t{names[b]}\t{score}"
        for a, b, score in zip(*draw.integers(0, len(names), (2, 90)), draw.integers(0, 9, 90), strict=True)
    ]
    file = tmp_path / "pairs.tsv"
    file.write_text("# a comment\n" + "\n".join(lines) + "\n", encoding="utf-8")
    found = evaluate(ours, file)
    assert isinstance(found, Similarity)
    pearson, spearman, missing = theirs.evaluate_word_pairs(str(file))
    assert found.spearman == pytest.approx(spearman.statistic, abs=1e-6)
    assert found.pearson == pytest.approx(pearson.statistic, abs=1e-6)
    assert found.pairs == 90
    assert 100 * (1 - found.coverage) == pytest.approx(missing)
    assert 0 < missing < 100
    spaced = tmp_path / "pairs.txt"
    spaced.write_text("word1 word2 human\n" + "\n".join(lines).replace("\t", " "), encoding="utf-8")
    again = evaluate(ours, spaced)
    assert (again.spearman, again.pairs, again.known) == (found.spearman, 90, found.known)


def test_analogies_agree_with_gensim(both, tmp_path):
    ours, theirs = both
    draw = np.random.default_rng(1)
    lines = [": capitals", "北京 中国 东京 日本", "东京 日本 北京 中国", "北京 中国 东京 none", ": any"]
    rows = [draw.choice(60, 3, replace=False) for _ in range(150)]
    for a, b, c in rows:
        near = theirs.most_similar(positive=[WORDS[b], WORDS[c]], negative=[WORDS[a]], topn=3)
        lines.append(f"{WORDS[a]} {WORDS[b]} {WORDS[c]} {near[draw.integers(0, 2)][0]}")
    lines += [": case", "dog cat Dog w3", "cat w3 dOG w9", ": empty", ": nothing", "x y z w"]
    file = tmp_path / "questions.txt"
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    found = evaluate(ours, file)
    assert isinstance(found, Analogies)
    score, sections = theirs.evaluate_word_analogies(str(file))
    for section, wanted in zip([*found.sections, found.total], sections, strict=True):
        assert (section.right, section.known) == (len(wanted["correct"]), len(wanted["correct"] + wanted["incorrect"]))
    assert found.total.accuracy == pytest.approx(score)
    assert 0.2 < score < 0.8
    assert [each.name for each in found.sections] == ["capitals", "any", "case", "empty", "nothing"]
    assert found.sections[0].coverage == pytest.approx(2 / 3)
    assert found.sections[-1].accuracy is None
    bare = tmp_path / "bare.txt"
    bare.write_text("北京 中国 东京 日本\n", encoding="utf-8")
    assert [(each.name, each.right) for each in evaluate(ours, bare).sections] == [("bare", 1)]


@given(st.lists(st.tuples(st.integers(-3, 3), st.integers(-3, 3)), min_size=3, max_size=40))
def test_correlations_are_those_of_scipy(pairs):
    one, other = np.array(pairs, dtype=np.float64).T
    if len(set(one)) == 1 or len(set(other)) == 1:
        assert correlation(one, other) is None
        assert correlation(ranks(one), ranks(other)) is None
    else:
        assert correlation(one, other) == pytest.approx(pearsonr(one, other).statistic, abs=1e-9)
        assert correlation(ranks(one), ranks(other)) == pytest.approx(spearmanr(one, other).statistic, abs=1e-9)


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("", "holds no line"),
        ("w1 w2 3\nw1 w2\n", ":2: two words and a score were expected, not 'w1 w2'"),
        ("w1 w2 3\nw1 w2 x\n", ":2: two words and a score were expected"),
        ("w1 w2 nan\n", ":1: two words and a score were expected"),
        (": a\nw1 w2 w3 w4\nw1 w2 w3\n", ":3: four words were expected"),
    ],
    ids=["empty", "two", "no-score", "nan", "three"],
)
def test_bad_files_are_refused_with_their_line(both, tmp_path, text, cause):
    (tmp_path / "f").write_text(text, encoding="utf-8")
    with pytest.raises(TextError, match=cause) as caught:
        evaluate(both[0], tmp_path / "f")
    assert caught.value.repair


@pytest.mark.parametrize(
    "text", ["king queen 3\nman woman 4\n", ": a\nking queen man woman\n"], ids=["pairs", "questions"]
)
def test_vectors_of_another_vocabulary_are_told(both, tmp_path, text):
    (tmp_path / "f").write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=r"none of the \d .*: they are of another vocabulary \(w0, w1") as caught:
        evaluate(both[0], tmp_path / "f")
    assert "language" in caught.value.repair
    one = WordVectors(["king", "queen"], np.zeros(2), np.eye(2))
    if "3" in text:
        assert evaluate(one, tmp_path / "f").spearman is None, "one pair has no order"
