"""XLNet's rows: half a row of running text, A [SEP] B [SEP] [CLS], and the same text from its end."""

from __future__ import annotations

import numpy as np
import pytest
from chance import share_is
from fake_store import FakeStore, random_store
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from maskery.corpus.encode import Flag
from maskery.corruption.units import word, word_starts
from maskery.errors import RecipeError
from maskery.rows.config import RowsConfig
from maskery.rows.plan import _end_to_end, plan_rows
from maskery.rows.ragged import gather

BOTH = RowsConfig(kind="stream_pair", both_ways=True)
FORWARD = RowsConfig(kind="stream_pair")
SEP, CLS = 3, 2


def text_of(store, backward, split="train"):
    """The whole text, token by token, and where its sentences begin; written down slowly."""
    text, begins = [], []
    documents = store.documents(split).tolist()
    for document in reversed(documents) if backward else documents:
        sentences = [
            store.tokens[store.sentence_start[s] : store.sentence_start[s + 1]].tolist()
            for s in range(store.document_start[document], store.document_start[document + 1])
        ]
        sentences = [each[::-1] for each in sentences[::-1]] if backward else sentences
        sentences = [each for each in sentences if each]
        for each in sentences:
            begins.append(len(text))
            text += each
        text += [SEP] if sentences else []
    return text, begins


def rows_in(plan, store):
    rows = gather(plan, np.arange(len(plan)), store)
    return rows, [slice(a, b) for a, b in zip(rows.start[:-1], rows.start[1:], strict=True)]


documents = st.lists(st.lists(st.integers(0, 12), max_size=8), min_size=1, max_size=6)


@settings(max_examples=60, deadline=None)
@given(documents=documents, length=st.integers(9, 31), seed=st.integers(0, 3))
def test_rows_are_the_text_as_it_runs(documents, length, seed):
    store = FakeStore(documents)
    texts = [text_of(store, backward) for backward in (False, True)]
    if not texts[0][0]:
        return
    plan = plan_rows(BOTH, store, length, seed)
    rows, places = rows_in(plan, store)
    reuse, room = length // 2, length - length // 2 - 3
    many = max(0, (len(texts[0][0]) - reuse - room) // reuse + 1)
    assert len(plan) == 2 * many
    assert (plan.reuse, plan.begins.tolist()) == (reuse, [0, many])
    assert plan.backward.tolist() == [False] * many + [True] * many
    for number, place in enumerate(places):
        text, begins = texts[int(plan.backward[number])]
        here = number % many * reuse
        ids, segment = rows.ids[place].tolist(), rows.segment[place].tolist()
        assert len(ids) == length
        assert ids[:reuse] == text[here : here + reuse]
        a = segment.index(1) - reuse - 1
        assert ids[reuse : reuse + a] == text[here + reuse : here + reuse + a]
        b = room - a
        assert min(a, b) >= 1
        assert segment == [0] * (reuse + a + 1) + [1] * (b + 1) + [2]
        assert (ids[reuse + a], ids[-2:]) == (SEP, [SEP, CLS])
        assert rows.special[place][[reuse + a, -2, -1]].all()
        second = ids[reuse + a + 1 : -2]
        assert second == text[here + reuse + a :][:b] or any(second == text[begin:][:b] for begin in begins)
        down = list(range(length - 1, -1, -1))
        assert rows.position is None or rows.position[place].tolist() == (down if plan.backward[number] else down[::-1])
        assert rows.part[place].tolist() == [0] * reuse + [1] * (length - reuse)


def test_half_of_the_second_segments_are_from_elsewhere_and_a_ends_with_a_sentence():
    store = random_store(0, documents=300, tokens=(3, 12))
    plan = plan_rows(BOTH, store, 64, 0)
    rows, places = rows_in(plan, store)
    texts = [text_of(store, backward) for backward in (False, True)]
    follows, many = 0, len(plan) // 2
    for number, place in enumerate(places):
        text, begins = texts[int(plan.backward[number])]
        a = rows.segment[place].tolist().index(1) - 33
        behind = number % many * 32 + 32 + a
        assert behind in set(begins[max(0, np.searchsorted(begins, behind) - 1) :][:3]), "A ends with a sentence"
        follows += rows.ids[place][33 + a : -2].tolist() == text[behind : behind + 29 - a]
    assert share_is(follows, len(plan), 0.5)
    assert plan.counts["segments_from_elsewhere"] >= len(plan) - follows


def test_words_of_a_text_that_is_read_from_its_end():
    """A word begins with its last token, wherever half a row or a segment cuts it."""
    store = FakeStore([[40], [37]])
    starts = np.zeros(77, dtype=np.uint8)
    starts[[0, 1, 4, 6, 7, 11, 20, 23, 24, 30, 36, 40, 41, 45, 50, 52, 60, 61, 70]] = Flag.WORD
    starts[[1, 41]] |= np.uint8(Flag.CAPITAL)
    store.flags = starts
    owner = np.cumsum(starts & Flag.WORD)
    plan = plan_rows(BOTH, store, 20, 0)
    rows, places = rows_in(plan, store)
    begins = word_starts(rows)
    for number, place in enumerate(places):
        ids = rows.ids[place] - 5
        for slot in range(20):
            if rows.special[place][slot]:
                continue
            apart = slot in (0, 10) or rows.special[place][slot - 1]
            expected = apart or owner[ids[slot]] != owner[ids[slot - 1]]
            assert begins[place][slot] == expected, (number, slot)
        capital = (rows.flags[place] & Flag.CAPITAL) != 0
        assert np.array_equal(capital, np.isin(ids, [1, 41]) & ~rows.special[place])
    units = word(rows)
    assert np.array_equal(rows.row[units.start], rows.row[units.start + units.length - 1]), "no unit in two rows"


def test_later_copies_begin_elsewhere_and_two_texts_do_not_mix():
    one, other = random_store(1, 40), random_store(2, 30)
    plan = plan_rows(RowsConfig(kind="stream_pair", copies=2), one, 32, 0)
    half = len(plan) // 2
    assert plan.begins.tolist() == [0, half]
    assert plan.piece_start[0] != plan.piece_start[plan.row_start[half]]
    first = plan_rows(BOTH, one, 32, 0)
    assert len(first) == 2 * half
    second = plan_rows(BOTH, other, 32, 0)
    both = _end_to_end([first, second], np.array([0, len(one.tokens)]))
    assert np.array_equal(both.backward, np.concatenate((first.backward, second.backward)))
    assert both.begins.tolist() == [*first.begins.tolist(), *(second.begins + len(first)).tolist()]
    assert both.reuse == 16


def test_refused():
    with pytest.raises(RecipeError, match="no room for half a row"):
        plan_rows(FORWARD, random_store(0, 9), 8, 0)
    with pytest.raises(ValidationError, match="both_ways is of kind 'stream_pair'"):
        RowsConfig(kind="segment_pair", both_ways=True)
    with pytest.raises(ValidationError, match="goes with pair 'none' only"):
        RowsConfig(kind="stream_pair", pair="next")
