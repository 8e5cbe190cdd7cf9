"""One run of words of each row, hidden whole: against a slow reference, its law, and what is chosen beside it."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain

import numpy as np
import pytest
from chance import surprise
from hypothesis import given, settings
from hypothesis import strategies as st
from made_rows import FACTS, even_rows, made_rows, some_of

from maskery.corruption.config import CorruptionConfig, NgramConfig
from maskery.corruption.corrupt import corrupt
from maskery.corruption.ngram import hide_ngrams, ngram_slots
from maskery.corruption.units import word_starts
from maskery.edit import Edit
from maskery.errors import RecipeError
from maskery.randomness import below, keys

NGRAM = NgramConfig(shortest=2, longest=10)


def keys_of(rows, seed=0):
    return keys(seed, "mask", rows.number)


def words_of_row(rows, row):
    """Each stretch of text of a row as lists of slots, a list a word."""
    starts, stretches = word_starts(rows), [[]]
    for slot in range(rows.start[row], rows.start[row + 1]):
        if rows.special[slot]:
            stretches.append([])
        elif starts[slot]:
            stretches[-1].append([slot])
        else:
            stretches[-1][-1].append(slot)
    return stretches


def slow_slots(rows, config, row_keys):
    found = []
    for row in range(len(rows)):
        stretches = words_of_row(rows, row)
        half = sum(map(len, stretches)) // 2
        longest = min(config.longest, half, max(map(len, stretches)))
        if longest < config.shortest:
            continue
        count = config.shortest + int(below(row_keys[row], "ngram length", longest - config.shortest + 1)[0])
        runs = [each[at : at + count] for each in stretches for at in range(len(each) - count + 1)]
        found += chain.from_iterable(runs[int(below(row_keys[row], "ngram place", len(runs))[0])])
    return found


@given(seed=st.integers(0, 10_000), shortest=st.integers(2, 4), more=st.integers(0, 9))
@settings(max_examples=60, deadline=None)
def test_the_slots_are_those_of_the_slow_way(seed, shortest, more):
    rows, config = made_rows(seed, 8), NgramConfig(shortest=shortest, longest=shortest + more)
    assert ngram_slots(rows, config, keys_of(rows)).tolist() == slow_slots(rows, config, keys_of(rows))


@given(seed=st.integers(0, 10_000))
@settings(max_examples=40, deadline=None)
def test_a_run_is_whole_words_of_one_stretch_and_masked(seed):
    rows = made_rows(seed, 12)
    out = hide_ngrams(rows, NGRAM, keys_of(rows), FACTS)
    hidden = out.edit == Edit.NGRAM
    assert not hidden[rows.special].any()
    assert (out.ids[hidden] == FACTS.specials.mask).all()
    assert np.array_equal(out.ids[~hidden], rows.ids[~hidden])
    assert np.array_equal(out.original, rows.original)
    for row in range(len(rows)):
        words = [all(hidden[word]) for each in words_of_row(rows, row) for word in each]
        split = [any(hidden[word]) for each in words_of_row(rows, row) for word in each]
        slots = np.flatnonzero(hidden[rows.start[row] : rows.start[row + 1]])
        assert words == split, "no word is split"
        assert len(slots) == 0 or slots[-1] - slots[0] + 1 == len(slots), "one run"
        assert sum(words) == 0 or 2 <= sum(words) <= min(10, len(words) // 2)


@given(seed=st.integers(0, 10_000), rate=st.floats(0, 0.9), unit=st.sampled_from(["token", "word", "phrase"]))
@settings(max_examples=60, deadline=None)
def test_what_is_chosen_lies_outside_and_the_rate_counts_what_is_left(seed, rate, unit):
    rows = made_rows(seed, 12)
    config = CorruptionConfig(rate=rate, unit=unit, ngram=NGRAM)
    out = corrupt(rows, config, keys_of(rows), FACTS)
    alone = hide_ngrams(rows, NGRAM, keys_of(rows), FACTS)
    assert np.array_equal(out.edit == Edit.NGRAM, alone.edit == Edit.NGRAM), "the rest is drawn around it"
    assert (out.ids[out.edit == Edit.NGRAM] == FACTS.specials.mask).all()
    left = np.bincount(rows.row[~rows.special & (alone.edit == Edit.NONE)], minlength=len(rows))
    chosen = np.bincount(rows.row[~np.isin(out.edit, (Edit.NONE, Edit.NGRAM))], minlength=len(rows))
    assert (chosen <= np.maximum(np.ceil(rate * left), np.minimum(left, 1))).all()
    if unit == "token" and rate > 0:
        assert (chosen >= np.maximum(np.floor(rate * left), np.minimum(left, 1))).all()


@given(seed=st.integers(0, 10_000), order=st.permutations(range(9)), many=st.integers(1, 9))
@settings(max_examples=30, deadline=None)
def test_a_row_depends_on_itself_and_its_key_alone(seed, order, many):
    rows = made_rows(seed, 9)
    config = CorruptionConfig(ngram=NGRAM)
    whole = corrupt(rows, config, keys_of(rows), FACTS)
    some = some_of(rows, order[:many])
    alone, expected = corrupt(some, config, keys_of(some), FACTS), some_of(whole, order[:many])
    assert np.array_equal(alone.ids, expected.ids)
    assert np.array_equal(alone.edit, expected.edit)


def words_row(words, rows):
    """Rows of one stretch with as many words of one token."""
    rows = even_rows(0, rows, words, words=(1.0,))
    return replace(rows, flags=np.where(rows.special, 0, 1).astype(np.uint8))


def test_lengths_and_places_are_uniform():
    many, words = 9000, 24
    rows = words_row(words, many)
    slot = ngram_slots(rows, NGRAM, keys_of(rows))
    row = rows.row[slot]
    length = np.bincount(row, minlength=many)
    assert length.min() == 2
    counts = np.bincount(length, minlength=11)[2:]
    assert surprise(counts, many / 9) < 4
    first = rows.slot[slot[np.searchsorted(row, np.arange(many))]] - 1
    for n in (2, 6, 10):
        places = np.bincount(first[length == n], minlength=words - n + 1)
        assert len(places) == words - n + 1
        assert surprise(places, places.sum() / len(places)) < 4


@pytest.mark.parametrize(("words", "expected"), [(0, 0), (3, 0), (4, 2), (5, 2), (6, 3), (19, 9), (40, 10)])
def test_a_short_row_has_none_and_half_a_row_stays(words, expected):
    rows = words_row(words, 400)
    lengths = np.bincount(rows.row[ngram_slots(rows, NGRAM, keys_of(rows))], minlength=len(rows))
    assert lengths.max() == expected
    assert lengths.min() == (2 if expected else 0)


def test_no_run_where_none_is_asked_for_and_the_rest_as_before():
    rows = made_rows(1, 20)
    plain = corrupt(rows, CorruptionConfig(), keys_of(rows), FACTS)
    assert not (plain.edit == Edit.NGRAM).any()
    short = words_row(3, 20)
    config = CorruptionConfig(ngram=NGRAM)
    with_run, without = (corrupt(short, each, keys_of(short), FACTS) for each in (config, CorruptionConfig()))
    assert np.array_equal(with_run.ids, without.ids), "rows without room are corrupted as ever"


def test_a_tokenizer_without_mask_is_told():
    rows = words_row(20, 2)
    with pytest.raises(RecipeError, match=r"^corruption\.ngram: .* no mask token"):
        hide_ngrams(rows, NGRAM, keys_of(rows), replace(FACTS, specials=replace(FACTS.specials, mask=None)))
