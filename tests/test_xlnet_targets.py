"""What XLNet asks and in which order: whole words in spans of 1 to 5, an order for each half, all drawn by the row."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from math import factorial

import numpy as np
import pytest
from chance import surprise
from fake_store import FakeFacts
from made_rows import even_rows, made_rows
from pydantic import ValidationError

from maskery.corruption.apart import _walked
from maskery.corruption.config import LAWS, CorruptionConfig, SpanConfig
from maskery.corruption.corrupt import candidates, corrupt
from maskery.corruption.permutation import in_order
from maskery.corruption.units import word, word_starts
from maskery.edit import Edit
from maskery.randomness import keys
from maskery.recipes.recipe import recipe
from maskery.rows.ragged import taken

CONFIG = recipe("xlnet").corruption
ONE_TOKEN = (1.0,)


def key_of(rows, seed=0):
    return keys(seed, "mask", rows.number)


def chosen(rows, seed=0, config=CONFIG):
    return corrupt(rows, config, key_of(rows, seed), FakeFacts(60))


def in_halves(rows):
    return replace(rows, part=(rows.slot >= rows.length[rows.row] // 2).astype(np.uint8))


@pytest.fixture(scope="module")
def many():
    return in_halves(even_rows(1, 3000, 120))


@pytest.fixture(scope="module")
def asked(many):
    return chosen(many)


def test_spans_are_drawn_with_one_over_n(many):
    """.438 .219 .146 .1095 .0876, of the walk and of what fills up."""
    table = LAWS.get("weights")(CONFIG.span)
    assert table[1:].round(4).tolist() == [0.438, 0.219, 0.146, 0.1095, 0.0876]
    _, _, drawn = _walked(many, word(many), table, CONFIG.rate, key_of(many))
    assert len(drawn) > 10_000
    # The last context of a walk is cut by its end, where long spans find no room to begin: they are left out here.
    early = Counter(drawn[: 2 * len(many)].tolist())
    total = sum(early.values())
    assert surprise([early[n] for n in range(1, 6)], table[1:] * total) < 4
    _, spans = candidates(many, CONFIG, key_of(many))
    counts = np.bincount(spans.drawn, minlength=6)
    assert np.abs(counts / counts.sum() - table).max() < 0.01


def test_a_sixth_of_every_row_is_asked_in_whole_words(asked):
    hit = asked.edit == Edit.KEEP
    assert set(np.unique(asked.edit)) == {Edit.NONE, Edit.KEEP}
    assert np.array_equal(asked.ids, asked.original), "nothing is hidden"
    per_row = np.bincount(asked.row[hit], minlength=len(asked)) / np.bincount(asked.row[~asked.special])
    assert abs(per_row.mean() - 1 / 6) < 0.002
    assert np.ptp(per_row) < 0.05
    begins = word_starts(asked)
    owner = np.cumsum(begins)
    of_word = np.bincount(owner[~asked.special])
    taken_of = np.bincount(owner[hit], minlength=len(of_word))
    assert set(np.unique(taken_of[of_word > 0] / of_word[of_word > 0])) == {0.0, 1.0}, "a word whole or not at all"


def test_no_place_of_a_row_is_asked_more_often_than_another(asked):
    """The authors' walk stops when the goal is met, so that the end of a half is asked less."""
    share = np.array([(asked.edit[asked.slot == slot] == Edit.KEEP).mean() for slot in range(1, 121)])
    sixths = share.reshape(6, 20).mean(1)
    assert np.abs(sixths - 1 / 6).max() < 0.02, sixths


def test_spans_keep_apart(many):
    """Two neighbouring spans rarely touch; chosen anywhere, they often do."""

    def touching(place):
        span = SpanConfig(law="weights", weights=CONFIG.span.weights, place=place)
        rows = chosen(many, config=CONFIG.model_copy(update={"span": span}))
        begins = word_starts(rows) & (rows.edit == Edit.KEEP)
        runs = np.flatnonzero(np.diff((rows.edit == Edit.KEEP).astype(int)) == 1)
        return begins.sum() / len(runs)

    assert touching("apart") < touching("anywhere")


def test_a_row_is_what_it_is_wherever_it_stands():
    rows = in_halves(made_rows(3, 40, tokens=(1, 40)))
    whole = in_order(chosen(rows), key_of(rows))
    assert whole.asked is not None
    for number in (0, 7, 39):
        one = taken(rows, np.flatnonzero(rows.row == number))
        mine = slice(rows.start[number], rows.start[number + 1])
        alone = replace(
            one, number=rows.number[[number]], start=np.array([0, len(one.ids)]), label=rows.label[[number]]
        )
        alone = in_order(chosen(alone), key_of(alone))
        for fact in ("edit", "order", "asked"):
            assert np.array_equal(getattr(alone, fact), getattr(whole, fact)[mine]), fact


def test_the_order_of_a_row(asked):
    """Slow: what is known at first, who moves, and that the second half comes behind the first."""
    rows = in_order(asked, key_of(asked))
    assert np.array_equal(rows.asked, rows.edit == Edit.KEEP)
    for number in range(40):
        place = slice(rows.start[number], rows.start[number + 1])
        special, mine, order = rows.special[place], rows.asked[place], rows.order[place].tolist()
        length = len(order)
        last = 0
        for half in (range(length // 2), range(length // 2, length)):
            moving = [slot for slot in half if mine[slot] or special[slot]]
            first = order[next(slot for slot in half if slot not in moving)]
            assert first == last + (half.start > 0)
            assert all(order[slot] == first for slot in half if slot not in moving)
            assert sorted(order[slot] for slot in moving) == list(range(first + 1, first + 1 + len(moving)))
            last = first + len(moving)


def test_documents_within_a_row_are_text_and_the_frame_takes_part():
    rows = made_rows(5, 30, stretches=(3, 3), tokens=(4, 9))
    plain = replace(rows, segment=np.zeros_like(rows.segment))
    moved = in_order(plain, key_of(plain)).order > 0
    for number in range(30):
        place = slice(rows.start[number], rows.start[number + 1])
        assert np.flatnonzero(moved[place]).tolist() == [0, rows.length[number] - 1]
    segments = in_order(rows, key_of(rows)).order > 0
    ends = np.flatnonzero(rows.special & (np.append(rows.segment[1:], 9) != rows.segment))
    assert segments[ends].all()


def test_all_orders_are_as_likely():
    rows = in_halves(even_rows(2, 6000, 22, words=ONE_TOKEN))
    hidden = np.isin(rows.slot, [3, 5, 8, 14, 17])
    rows = replace(rows, edit=np.where(hidden, Edit.KEEP, Edit.NONE).astype(np.uint8))
    order = in_order(rows, key_of(rows)).order.reshape(6000, -1)
    first = Counter(tuple(np.argsort(each)) for each in order[:, [0, 3, 5, 8]])
    assert len(first) == factorial(4)
    assert surprise(list(first.values()), 6000 / factorial(4)) < 4
    second = Counter(tuple(np.argsort(each)) for each in order[:, [14, 17, 23]])
    assert surprise(list(second.values()), 6000 / factorial(3)) < 4
    assert np.array_equal(in_order(rows, key_of(rows)).order, in_order(rows, key_of(rows)).order)
    assert not np.array_equal(in_order(rows, key_of(rows, 1)).order, in_order(rows, key_of(rows)).order)


def test_apart_is_refused_where_there_is_nothing_to_lay_out():
    with pytest.raises(ValidationError, match="law 'fragment' has a single span"):
        SpanConfig(law="fragment", place="apart")
    with pytest.raises(ValidationError, match="law 'poisson' has spans of none"):
        SpanConfig(law="poisson", place="apart")
    none = CorruptionConfig(rate=0.0, span=SpanConfig(law="single", place="apart"))
    rows = made_rows(1, 5)
    assert (chosen(rows, config=none).edit == Edit.NONE).all()
