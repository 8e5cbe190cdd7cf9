"""What moves, goes or comes: shuffled runs, permuted sentences, rotation, deletion, infilling, fragments."""

from __future__ import annotations

from collections import Counter
from itertools import permutations

import numpy as np
import pytest
from chance import share_is, surprise
from hypothesis import given, settings
from hypothesis import strategies as st
from made_rows import FACTS, even_rows, made_rows
from slow_corruption import slots_of, units_of

from maskery.corruption.config import CorruptionConfig
from maskery.corruption.corrupt import corrupt
from maskery.corruption.units import word_starts
from maskery.edit import Edit
from maskery.randomness import keys

INFILL = {"mask": 0, "random": 0, "keep": 0, "infill": 1}
DELETE = {"mask": 0, "random": 0, "keep": 0, "delete": 1}


def corrupted(rows, **config):
    return corrupt(rows, CorruptionConfig(**config), keys(0, "mask", rows.number), FACTS)


def with_own_ids(rows):
    """The rows with an id of its own for every slot of text, so that one can follow it."""
    rows.original[:] = np.where(rows.special, rows.ids, 10 + np.arange(len(rows.ids)))
    rows.ids[:] = rows.original
    return rows


def row_of(rows, values, b):
    return values[rows.start[b] : rows.start[b + 1]].tolist()


@pytest.mark.parametrize(("rate", "size"), [(0.05, 3), (0.2, 3), (0.1, 2), (0.05, 5)])
def test_the_rate_of_shuffling_counts_runs_of_unchosen_neighbours(rate, size):
    rows = with_own_ids(made_rows(0, 100, tokens=(40, 60)))
    out = corrupted(rows, shuffle={"rate": rate, "size": size})
    windows = [0] * len(rows)
    for b in range(len(rows)):
        open_slots = (Edit.NONE, Edit.SHUFFLED)
        free = {slot.place for slot in slots_of(out, b) if not slot.special and slot.edit in open_slots}
        windows[b] = sum(all(place + step in free for step in range(size)) for place in free)
    runs = np.bincount(out.row[out.edit == Edit.SHUFFLED], minlength=len(rows)) / size
    assert (np.abs(runs - rate * np.array(windows)) < 1).all()
    assert runs.sum() == pytest.approx(rate * sum(windows), abs=4 * len(rows) ** 0.5 / 2)
    moved = np.abs((np.arange(len(rows.ids)) - (out.ids - 10))[out.edit == Edit.SHUFFLED])
    assert moved.max() == size - 1, "ids stay within their run"
    assert np.array_equal(out.original, rows.original)


def test_every_order_of_a_run_is_as_likely_as_another():
    rows = with_own_ids(even_rows(0, 6000, 3))
    out = corrupted(rows, rate=0, shuffle={"rate": 1.0})
    seen = Counter(tuple((out.ids[row : row + 3] - out.original[row]).tolist()) for row in rows.start[:-1] + 1)
    assert set(seen) == set(permutations(range(3)))
    assert surprise(list(seen.values()), 1000) < 4


@pytest.mark.parametrize("rate", [0.3, 1.0])
def test_runs_do_not_overlap_however_many_are_asked_for(rate):
    out = corrupted(with_own_ids(made_rows(1, 50)), rate=0.1, shuffle={"rate": rate, "size": 3})
    assert not out.edit[out.special].any()
    lengths = np.bincount(out.row[out.edit == Edit.SHUFFLED])
    assert (lengths % 3 == 0).all()
    assert lengths.sum() > 0


@given(st.integers(0, 10**6))
@settings(max_examples=30, deadline=None)
def test_sentences_move_whole_and_within_their_segment(seed):
    rows = with_own_ids(made_rows(seed, 4))
    out = corrupted(rows, rate=0, order={"sentences": True})
    assert np.array_equal(out.special, rows.special)
    for b in range(len(rows)):
        pieces = []
        for values, flags in ((rows.ids, rows.flags), (out.ids, out.flags)):
            text = []
            for place, slot in enumerate(slots_of(rows, b)):
                at = rows.start[b] + place
                if slot.special:
                    text.append(["special", int(values[at])])
                elif text[-1][0] == "special" or flags[at] & 2 or values[at] != values[at - 1] + 1:
                    text.append([int(values[at])])
                else:
                    text[-1].append(int(values[at]))
            pieces.append(text)
        before, after = pieces
        assert sorted(map(str, before)) == sorted(map(str, after)), "the same sentences"
        assert [p for p in before if p[0] == "special"] == [p for p in after if p[0] == "special"]
    assert np.array_equal(np.sort(out.original), np.sort(rows.original))
    assert np.array_equal(out.ids, out.original), "answers move along"


def test_sentence_orders_and_rotations_are_uniform():
    rows = with_own_ids(even_rows(0, 6000, 6, words=(1.0,)))
    rows.flags[:] = np.where(np.isin(rows.slot, (3, 5)), 3, rows.flags)
    out = corrupted(rows, rate=0, order={"sentences": True})
    seen = Counter(tuple((out.ids[row : row + 6] - row - 10).tolist()) for row in rows.start[:-1] + 1)
    parts = ((0, 1), (2, 3), (4, 5))
    assert set(seen) == {sum(order, ()) for order in permutations(parts)}
    assert surprise(list(seen.values()), 1000) < 4
    out = corrupted(rows, rate=0, order={"rotate": 0.5})
    shift = np.array([out.ids[row] - row - 10 for row in rows.start[:-1] + 1])
    assert surprise(np.bincount(shift, minlength=6), 6000 * np.array([0.5 + 0.5 / 6] + [0.5 / 6] * 5)) < 4
    for b in range(20):
        first = rows.start[b] + 1
        expected = [first + 10 + (place + shift[b]) % 6 for place in range(6)]
        assert row_of(out, out.ids, b)[1:-1] == expected


def test_what_a_cut_left_of_a_word_joins_no_other_word_when_it_moves():
    rows = even_rows(0, 400, 6, words=(1.0,))
    rows.flags[:] = np.where(np.isin(rows.slot, (2, 4)), 3, 0)
    out = corrupted(rows, unit="word", rate=0.4, order={"sentences": True})
    for b in range(len(rows)):
        words = [len(unit) for unit in units_of(slots_of(out, b), "word")]
        assert sorted(words) == [1, 2, 3], "as many words as before, of the same lengths"


@pytest.mark.parametrize("unit", ["token", "word"])
def test_deleted_slots_are_gone_and_the_rest_is_as_it_was(unit):
    rows = with_own_ids(made_rows(2, 200))
    out = corrupted(rows, unit=unit, rate=0.3, replace=DELETE)
    words = np.cumsum(word_starts(rows))
    for b in range(len(rows)):
        kept, before = row_of(out, out.ids, b), row_of(rows, rows.ids, b)
        assert [id for id in before if id in set(kept)] == kept
        text = sum(not special for special in row_of(rows, rows.special, b))
        assert abs(len(before) - len(kept) - 0.3 * text) < (2 if unit == "token" else 4)
        begins = [words[id - 10] for id in kept if id >= 10 and word_starts(out)[out.ids == id][0]]
        assert begins == sorted({words[id - 10] for id in kept if id >= 10}), "what is left of a word begins one"
    assert set(out.edit.tolist()) == {Edit.NONE}


def test_infilling_takes_the_rate_out_in_spans_of_the_law_with_insertions():
    """BART: 30 % of the tokens, spans of Poisson(3) units, one mask each, and 1 in 20 of no token at all."""
    rows = with_own_ids(even_rows(0, 2000, 100))
    out = corrupted(rows, rate=0.3, decide="span", span={"law": "poisson", "mean": 3.0}, replace=INFILL)
    masks = out.edit == Edit.INFILLED
    kept = ~masks & ~out.special
    assert kept.sum() == 0.7 * 100 * 2000, "30 % of the tokens are gone"
    assert (out.ids[masks] == FACTS.specials.mask).all()
    assert np.array_equal(out.ids[kept], out.original[kept])
    inserted = masks & (out.original == FACTS.specials.mask)
    assert share_is(int(inserted.sum()), int(masks.sum()), 0.0498)
    filled = masks & ~inserted
    lengths = np.bincount(missing(rows, out, filled), minlength=12)[1:12]
    assert lengths.sum() == filled.sum() - (missing(rows, out, filled) > 11).sum()
    mean = missing(rows, out, filled).mean()
    assert 2.6 < mean < 3.0 / (1 - 0.0498), "kept spans are a little shorter than drawn: ends, neighbours, the budget"


def missing(rows, out, filled):
    """How many slots each infilled mask stands for: up to the next slot or mask that is left."""
    left = np.flatnonzero((out.original != FACTS.specials.mask) & ~out.special)
    place = out.original[left] - 10
    behind = np.where(rows.row[place] == np.append(rows.row[place[1:]], -1), np.append(place[1:], 0), 0)
    ends = np.where(behind > 0, behind, rows.start[rows.row[place] + 1] - 1)
    return (ends - place)[filled[left]]


@given(st.integers(0, 10**6), st.sampled_from((0.01, 0.1, 0.5)), st.sampled_from((0.05, 0.5, 3.0)))
@settings(max_examples=40, deadline=None)
def test_insertions_never_make_a_row_longer(seed, rate, mean):
    rows = made_rows(seed, 5)
    out = corrupted(rows, rate=rate, decide="span", span={"law": "poisson", "mean": mean}, replace=INFILL)
    assert (out.length <= rows.length).all()


@pytest.mark.parametrize("unit", ["token", "word"])
def test_a_fragment_is_one_run_of_half_the_units_beginning_anywhere(unit):
    """MASS: half of a sentence, in one piece."""
    rows = even_rows(0, 6000, 10, words=(1.0,))
    out = corrupted(rows, unit=unit, rate=0.5, span={"law": "fragment"})
    chosen = (out.edit != Edit.NONE).reshape(6000, 12)
    assert (chosen.sum(axis=1) == 5).all()
    assert (np.diff(chosen.astype(int), axis=1) == 1).sum() == 6000
    assert surprise(np.bincount(chosen.argmax(axis=1) - 1, minlength=6), 1000) < 4


def test_each_stretch_of_text_has_its_own_fragment():
    rows = made_rows(4, 100, tokens=(1, 20), stretches=(2, 2))
    out = corrupted(rows, rate=0.3, span={"law": "fragment"})
    begins = np.diff((out.edit != Edit.NONE).astype(int), prepend=0) == 1
    assert np.array_equal(np.bincount(out.row[begins]), np.full(100, 2))
