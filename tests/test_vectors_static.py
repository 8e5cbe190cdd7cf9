"""Texts as means of word vectors, against the slow obvious way; SIF against its formula and a singular vector."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maskery.errors import InputError, UnknownName
from maskery.text.words import segmenter
from maskery.vectors.static import StaticEncoder
from maskery.words.subwords import Subwords, ngrams
from maskery.words.vectors import WordVectors

WORDS = ["the", "dog", "cat", "北京", "喜欢", "cafe", "，", "sees"]
COUNTS = np.array([50, 20, 10, 8, 5, 4, 2, 1])
VECTORS = WordVectors(WORDS, COUNTS, np.random.default_rng(0).normal(size=(len(WORDS), 4)).astype(np.float32))
A = 1e-3
TEXTS = ["The dog sees the cat.", "喜欢北京，the café", "", "unheard of", "dog\ndog  cat", "北京", "x dog"]
KNOWN = [
    ["the", "dog", "sees", "the", "cat"],
    ["喜欢", "北京", "，", "the", "cafe"],
    [],
    [],
    ["dog", "dog", "cat"],
    ["北京"],
    ["dog"],
]


def slow(known, weighting):
    rows = []
    for words in known:
        total = np.zeros(4)
        for word in words:
            at = WORDS.index(word)
            weight = A / (A + COUNTS[at] / COUNTS.sum()) if weighting == "sif" else 1.0
            total += weight * VECTORS.matrix[at].astype(float)
        rows.append(total / max(1, len(words)))
    return np.array(rows).reshape(-1, 4)


@pytest.mark.parametrize("batch", [1, 2, 100])
def test_the_mean_is_the_mean(batch):
    encoder = StaticEncoder(VECTORS)
    found = encoder.encode(TEXTS, batch=batch)
    assert found.dtype == np.float32
    assert found == pytest.approx(slow(KNOWN, "mean"), abs=1e-6)
    assert encoder.empty_ == 2
    assert not found[2:4].any()
    assert encoder.fit(TEXTS) is encoder, "a mean has nothing to learn"
    assert encoder.encode(TEXTS).tobytes() == found.tobytes()


@pytest.mark.parametrize("batch", [1, 3, 100])
def test_sif_is_its_formula(batch):
    encoder = StaticEncoder(VECTORS, segmenter("auto"), weighting="sif", a=A).fit(TEXTS, batch=batch)
    before = slow(KNOWN, "sif")
    common = np.linalg.svd(before, full_matrices=False)[2][0]
    assert abs(encoder.common_ @ common) == pytest.approx(1, abs=1e-5)
    found = encoder.encode(TEXTS, batch=batch)
    assert found == pytest.approx(before - np.outer(before @ common, common), abs=1e-5)
    assert encoder.empty_ == 2
    assert not found[2:4].any()
    alone = encoder.encode(TEXTS[4:5])
    assert alone[0] == pytest.approx(found[4], abs=1e-6), "a text does not depend on those beside it"


TEXT = st.lists(st.sampled_from([*WORDS, "unheard", "、"]), max_size=6)


@settings(max_examples=40)
@given(given_words=st.lists(TEXT, max_size=6), batch=st.integers(1, 4))
def test_any_texts(given_words, batch):
    known = [[word for word in words if word in WORDS] for words in given_words]
    encoder = StaticEncoder(VECTORS)
    found = encoder.encode([" ".join(words) for words in given_words], batch=batch)
    assert found.shape == (len(given_words), 4)
    assert found == pytest.approx(slow(known, "mean"), abs=1e-5)
    assert encoder.empty_ == sum(not words for words in known)


def test_unseen_words_are_made_of_their_ngrams():
    bucket = np.unique(ngrams(["<dogs>", "dogs"], 3, 4, 1000)[0])
    matrix = np.random.default_rng(1).normal(size=(len(bucket), 4)).astype(np.float32)
    parts = Subwords(bucket=bucket, matrix=matrix, shortest=3, longest=4, buckets=1000, seed=0)
    vectors = WordVectors(WORDS, COUNTS, VECTORS.matrix, subwords=parts)
    encoder = StaticEncoder(vectors, weighting="sif").fit(TEXTS)
    encoder.common_ = np.zeros(4, dtype=np.float32)
    dog = VECTORS.matrix[1] * A / (A + 0.2)
    found = encoder.encode(["Dogs dog", "  "])
    assert found[0] == pytest.approx((parts.vector("dogs") + dog) / 2, abs=1e-6)
    assert encoder.empty_ == 1, "white space is no word"


def test_what_cannot_be_done_is_refused():
    with pytest.raises(UnknownName, match="unknown weighting 'max'"):
        StaticEncoder(VECTORS, weighting="max")
    for a in (0, -1, float("nan"), float("inf")):
        with pytest.raises(InputError, match=f"a is {a}"):
            StaticEncoder(VECTORS, weighting="sif", a=a)
    with pytest.raises(InputError, match="have no counts"):
        StaticEncoder(WordVectors(WORDS, COUNTS * 0, VECTORS.matrix), weighting="sif")
    with pytest.raises(InputError, match="has seen none"):
        StaticEncoder(VECTORS, weighting="sif").encode(TEXTS)
    for texts in ([], ["unheard"]):
        with pytest.raises(InputError, match="none of the"):
            StaticEncoder(VECTORS, weighting="sif").fit(texts)
    with pytest.raises(InputError, match=r"texts is 'dog'"):
        StaticEncoder(VECTORS).encode("dog")
    with pytest.raises(InputError, match="batch is 0"):
        StaticEncoder(VECTORS).encode(TEXTS, batch=0)
    with pytest.raises(InputError, match="finds no words"):
        StaticEncoder(VECTORS, segmenter("none")).encode(TEXTS)
