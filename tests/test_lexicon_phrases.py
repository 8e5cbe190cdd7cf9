"""Frequent runs of words and their scores: against counting them one after another with a Counter."""

from __future__ import annotations

from collections import Counter
from math import log2

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maskery.words import phrases, runs
from maskery.words.phrases import Limits, find_phrases
from maskery.words.runs import Tally, levels
from maskery.words.vocabulary import Words

SPELT = ["猫", "狗", "熊猫", "dog", "的", "The", "，", "·", "12"]
NO_END = {"的", "The", "，", "·", "12"}
PARTING = {"，"}
TEXTS = st.lists(st.lists(st.integers(-1, len(SPELT) - 1), min_size=1, max_size=12), min_size=1, max_size=12)


def words_of(sentences, spelt=SPELT):
    number = np.array([word for sentence in sentences for word in sentence], dtype=np.int32)
    return Words(
        words=list(spelt),
        counts=np.bincount(number[number >= 0], minlength=len(spelt)),
        number=number,
        sentence_start=np.concatenate(([0], np.cumsum([len(sentence) for sentence in sentences]))),
        total=len(number),
    )


@pytest.fixture(params=[3, 1 << 21], ids=["small blocks", "one block"])
def block(request, monkeypatch):
    """Blocks so small that runs reach over several, and one that holds all."""
    monkeypatch.setattr(runs, "BLOCK", request.param)
    monkeypatch.setattr(phrases, "BLOCK", request.param)


def all_runs(sentences, length):
    """(run, word before, word behind, place) of every run of this length; None for an edge."""
    begin = 0
    for sentence in sentences:
        for at in range(len(sentence) - length + 1):
            end = at + length
            before = sentence[at - 1] if at else None
            behind = sentence[end] if end < len(sentence) else None
            yield tuple(sentence[at:end]), before, behind, begin + at
        begin += len(sentence)


def entropy(neighbours):
    total = len(neighbours)
    return sum(-count / total * log2(count / total) for count in Counter(neighbours).values())


def slow(sentences, limits):
    """{(place, length): (count, pmi, entropy)} by the definitions."""
    total = sum(map(len, sentences))
    count = Counter(run for n in range(1, limits.words + 1) for run, *_ in all_runs(sentences, n))
    found = {}
    for length in range(2, limits.words + 1):
        everywhere = list(all_runs(sentences, length))
        for run in {run for run, *_ in everywhere}:
            names = [SPELT[word] if word >= 0 else None for word in run]
            if count[run] < limits.count or None in names or PARTING & set(names) or NO_END & {names[0], names[-1]}:
                continue
            cuts = [(run[:cut], run[cut:]) for cut in range(1, length)]
            pmi = min(log2(count[run] * total / (count[one] * count[other])) for one, other in cuts)
            mine = [(before, behind, place) for each, before, behind, place in everywhere if each == run]
            free = min(entropy([before for before, _, _ in mine]), entropy([behind for _, behind, _ in mine]))
            found[min(place for _, _, place in mine), length] = (count[run], pmi, free)
    return found


@settings(max_examples=60, deadline=None)
@given(sentences=TEXTS, least=st.integers(1, 3), longest=st.integers(2, 4))
@pytest.mark.parametrize("size", [3, 1 << 21], ids=["small blocks", "one block"])
def test_phrases_are_those_of_the_definitions(sentences, least, longest, size):
    limits = Limits(count=least, words=longest, pmi=-99, entropy=-99)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runs, "BLOCK", size)
        patch.setattr(phrases, "BLOCK", size)
        found = find_phrases(words_of(sentences), limits)
    wanted = slow(sentences, limits)
    places = list(zip(found.place.tolist(), found.length.tolist(), strict=True))
    assert sorted(places) == sorted(wanted)
    for at, place in enumerate(places):
        count, pmi, free = wanted[place]
        assert found.count[at] == count
        assert found.pmi[at] == pytest.approx(pmi)
        assert found.entropy[at] == pytest.approx(free, abs=1e-9)
    assert (np.diff(found.score) <= 1e-9).all(), "the best first"


@settings(max_examples=60, deadline=None)
@given(sentences=TEXTS, least=st.integers(1, 3))
def test_limits_part_phrases_from_what_is_left_out(sentences, least):
    """Every frequent run is a phrase or counted under one reason, the first that holds."""
    limits = Limits(count=least, words=3, pmi=1.0, entropy=0.5)
    wanted = slow(sentences, limits)
    found = find_phrases(words_of(sentences), limits)
    close = {place for place, (_, pmi, _) in wanted.items() if pmi >= 1.0}
    free = {place for place in close if wanted[place][2] >= 0.5}
    assert set(zip(found.place.tolist(), found.length.tolist(), strict=True)) == free
    assert found.left_out["pmi"] == len(wanted) - len(close)
    assert found.left_out["entropy"] == len(close) - len(free)
    if wanted:
        assert found.best_pmi == pytest.approx(max(pmi for _, pmi, _ in wanted.values()))


@pytest.mark.usefixtures("block")
def test_runs_stop_at_sentences_and_parting_words():
    words = words_of([[0, 1, 0, 1], [0, 1], [6, 0, 6, 1]])
    parting = np.array([word in PARTING for word in SPELT])
    found = list(levels(words.number, words.sentence_start, parting, least=2, longest=5))
    assert [level.length for level in found] == [1, 2, 3]
    pairs = found[1]
    assert [(pairs.first[run], pairs.second[run], pairs.count[run]) for run in range(len(pairs.count))] == [(0, 1, 3)]
    assert pairs.at.tolist() == [0, -1, 0, -1, 0, -1, -1, -1, -1, -1]
    assert not len(found[2].count), "the empty level is the last"


def test_a_part_that_never_stands_alone_is_no_phrase():
    """猫狗熊猫 always goes on with dog; the whole is free on both sides."""
    around = [(4, 5), (5, 8), (8, 4), (4, 8)]
    words = words_of([[before, 0, 1, 2, 3, behind] for before, behind in around])
    found = find_phrases(words, Limits(count=4, words=4, pmi=0, entropy=1.0))
    assert list(zip(found.place.tolist(), found.length.tolist(), strict=True)) == [(1, 4)]
    assert found.left_out == {"ends": 0, "pmi": 0, "entropy": 5}


@given(st.lists(st.lists(st.integers(0, 9), max_size=8), max_size=8))
def test_a_tally_counts_what_was_added(blocks):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runs, "BLOCK", 4)
        tally = Tally()
        for each in blocks:
            tally.add(np.array(each, dtype=np.int64))
        keys, counts = tally.result()
    assert dict(zip(keys.tolist(), counts.tolist(), strict=True)) == Counter(key for each in blocks for key in each)
    assert keys.tolist() == sorted(keys.tolist())


def test_progress_only_grows_and_ends_with_the_whole():
    told = []
    find_phrases(words_of([[0, 1, 2, 3] * 3] * 4), Limits(count=2), lambda done, total: told.append((done, total)))
    assert {total for _, total in told} == {4}
    assert [done for done, _ in told] == sorted(done for done, _ in told)
    assert told[-1] == (4, 4)
