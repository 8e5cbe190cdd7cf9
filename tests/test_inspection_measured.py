"""What is counted in rows, against slow walks over them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tiny import build

from maskery.corpus.encode import Flag
from maskery.edit import Edit
from maskery.feed import Feed
from maskery.inspection import Measured, measure, word_numbers
from maskery.inspection.measured import CHOSEN
from maskery.inspection.words import windows
from maskery.recipes.recipe import recipe
from maskery.rows.ragged import Rows, gather

SHORT = {"training.length": 32, "training.phases": [], "training.batch": 16}
SLOTS = st.lists(st.tuples(st.booleans(), st.sampled_from([int(code) for code in Edit])), min_size=1, max_size=30)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return build(tmp_path_factory.mktemp("measured"))


def rows_of(word_starts, edits, special):
    """One row from per-slot facts."""
    size = len(special)
    return Rows(
        number=np.zeros(1, np.int64),
        start=np.array([0, size]),
        ids=np.zeros(size, np.int32),
        original=np.zeros(size, np.int32),
        flags=np.array(word_starts, np.uint8) * np.uint8(Flag.WORD),
        special=np.array(special, bool),
        segment=np.zeros(size, np.uint8),
        document=np.zeros(size, np.int32),
        edit=np.array(edits, np.uint8),
        label=np.array([-1]),
    )


def framed(slots):
    return rows_of([0, *(w for w, _ in slots), 0], [0, *(e for _, e in slots), 0], [1, *(0 for _ in slots), 1])


def counted(rows):
    measured = Measured()
    measured.add(rows)
    return measured


def test_words_spans_and_splits_by_hand():
    #            CLS a  b  ##b c  SEP ##d e  SEP
    rows = rows_of([0, 1, 1, 0, 1, 0, 0, 1, 0], [0, 0, 1, 1, 3, 0, 2, 0, 0], [1, 0, 0, 0, 0, 1, 0, 0, 1])
    assert word_numbers(rows).tolist() == [-1, 0, 1, 1, 2, -1, 3, 4, -1]
    found = counted(rows)
    assert (found.tokens, found.chosen.hits, found.chosen.cases) == (9, 4, 6)
    assert found.runs == {1: 1, 2: 1}
    assert {name: ratio.value for name, ratio in found.edits.items() if ratio.hits} == {
        "mask": 0.5,
        "random": 0.25,
        "keep": 0.25,
    }
    assert (found.words.hits, found.words.cases, found.split.hits) == (3, 5, 0)
    assert counted(rows_of([0, 1, 0, 1, 0], [0, 1, 0, 1, 0], [1, 0, 0, 0, 1])).split.value == 0.5


@given(SLOTS)
def test_measured_agrees_with_a_walk(slots):
    words, runs, before = [], [], False
    for place, (starts, edit) in enumerate(slots):
        if starts or place == 0:
            words.append([])
        chosen = edit in CHOSEN
        words[-1].append(chosen)
        if chosen:
            runs = runs if before else [*runs, set()]
            runs[-1].add(len(words))
        before = chosen
    found = counted(framed(slots))
    assert found.words.hits == found.split.cases == sum(any(word) for word in words)
    assert found.split.hits == sum(any(word) and not all(word) for word in words)
    assert found.runs == {n: sum(len(run) == n for run in runs) for n in {len(run) for run in runs}}
    asked = [edit for _, edit in slots if edit in CHOSEN and edit != Edit.INFILLED]
    assert found.chosen.hits == len(asked)
    assert {name: ratio.hits for name, ratio in found.edits.items() if ratio.hits} == {
        Edit(code).name.lower(): asked.count(code) for code in set(asked)
    }
    assert found.shuffled.hits == sum(edit == Edit.SHUFFLED for _, edit in slots)
    assert found.ngram.hits == sum(edit == Edit.NGRAM for _, edit in slots)


@given(SLOTS, st.integers(1, 5))
def test_windows_are_those_that_a_walk_finds(slots, size):
    rows = framed(slots)
    inside = (rows.edit == Edit.NONE) & ~rows.special
    wanted = sum(inside[place : place + size].all() for place in range(len(inside) - size + 1))
    assert windows(rows, inside, size).tolist() == [wanted]


def test_runs_that_were_shuffled_are_counted_among_all(corpus):
    for rate in (0.05, 0.2):
        changes = SHORT | {"corruption.shuffle": {"rate": rate, "size": 3}}
        found = measure(Feed(recipe("bert", changes), corpus, 0), 300)
        assert found.shuffled_runs.value == pytest.approx(rate, rel=0.15)
        assert found.shuffled.hits == 3 * found.shuffled_runs.hits
        assert found.chosen.value == pytest.approx(0.15, abs=0.01), "what is moved is not chosen"


@pytest.mark.parametrize(
    ("name", "share"),
    [("infill", {"infill": 1.0}), ("delete", {"delete": 1.0}), ("delete", {"delete": 0.5, "mask": 0.5})],
)
def test_what_was_taken_out_is_counted(corpus, name, share):
    shares = {"mask": 0.0, "random": 0.0, "keep": 0.0} | share
    law = {"law": "poisson", "mean": 3.0} if name == "infill" else {"law": "single"}
    changes = SHORT | {
        "corruption": {"rate": 0.3, "unit": "word", "decide": "span", "replace": shares, "span": law},
        "objectives": {"next_sentence": {"weight": 1.0}},
    }
    feed = Feed(recipe("bert", changes), corpus, 0)
    found = measure(feed, 160)
    assert found.chosen.value == pytest.approx(0.3, abs=0.03)
    assert found.edits[name].value == pytest.approx(share[name], abs=0.05)
    assert found.words.hits == sum(length * number for length, number in found.kept.items()), "words that are gone too"
    assert found.words.cases == found.drawn.total(), "every word is offered once as the first of a span"
    before = after = 0
    for step in range(10):
        phase, epochs, numbers = feed.numbers(step)
        before += len(gather(feed.plan(phase), numbers, corpus).ids)
        after += len(feed.corrupted(step, phase, epochs, numbers).ids)
    if name == "delete":
        assert found.edits["delete"].hits == before - after


def test_rows_and_masks_that_come_again_are_known(corpus):
    rows = {"rows.copies": 1, "rows.kind": "full_sentences", "rows.pair": "none", "objectives.next_sentence": False}
    static, dynamic = (
        measure(Feed(recipe("bert", SHORT | rows | {"corruption.when": when}), corpus, 0), 600)
        for when in ("static", "dynamic")
    )
    plan = len(static.plan_rows)
    assert plan < 300
    assert static.fresh_rows == static.fresh_masks == dynamic.fresh_rows == plan / 600
    assert dynamic.fresh_masks == 1


def test_kept_spans_are_no_longer_than_drawn(corpus):
    found = measure(Feed(recipe("spanbert", SHORT), corpus, 0), 200)
    assert set(found.kept) <= set(range(1, 11))
    assert sum(length * number for length, number in found.kept.items()) == found.words.hits
    assert found.drawn.total() == found.words.cases, "every word is offered once as the first of a span"


def test_an_ngram_is_apart_from_what_is_chosen(corpus):
    found = measure(Feed(recipe("infoword", SHORT), corpus, 0), 300)
    assert 0 < found.ngram_words.total() <= 300
    assert min(found.ngram_words) >= 2
    assert found.ngram.hits > 0
    assert found.open.cases == found.chosen.cases - found.ngram.hits
    assert found.open.value == pytest.approx(0.15, abs=0.01)
    assert found.chosen.value < 0.145
    assert sum(length * number for length, number in found.ngram_words.items()) <= found.ngram.hits
