"""Sequences of ids as a tree: what was put in is found, and nothing else."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_tokenizers import KINDS

from maskery.knowledge import spelling
from maskery.knowledge.spelling import LONGEST, spellings
from maskery.knowledge.trie import Trie

SEQUENCES = st.lists(st.lists(st.integers(0, 6), max_size=5).map(tuple), max_size=12)


def flat(sequences):
    ids = np.array([number for each in sequences for number in each], dtype=np.int64)
    length = np.array([len(each) for each in sequences], dtype=np.int64)
    return ids, length


@given(put=SEQUENCES, asked=SEQUENCES)
def test_it_finds_what_was_put_in_and_nothing_else(put, asked):
    trie = Trie(*flat(put), vocabulary=7)
    distinct = {each for each in put if each}
    assert len(trie) == len(distinct)
    assert [number >= 0 for number in trie.number] == [bool(each) for each in put]
    ids, length = flat(asked)
    found = trie.find(ids, np.cumsum(length) - length, length)
    named = dict(zip(put, trie.number.tolist(), strict=True))
    assert found.tolist() == [named[each] if each in distinct else -1 for each in asked]


@given(put=SEQUENCES)
def test_entries_are_numbered_by_length_and_keep_their_ids(put):
    trie = Trie(*flat(put), vocabulary=7)
    entries = [tuple(trie.ids[start : start + length]) for start, length in zip(trie.start, trie.length, strict=True)]
    assert set(entries) == {each for each in put if each}
    assert [len(each) for each in entries] == sorted(len(each) for each in entries)
    for size in range(1, trie.depth + 1):
        assert all(len(each) == size for each in entries[trie.first[size] : trie.first[size + 1]])
    for each, number in zip(put, trie.number, strict=True):
        assert number < 0 or entries[number] == each


@pytest.mark.parametrize(("kind", "count"), [("wordpiece", 1), ("bpe", 2), ("unigram", 2), ("char", 2)])
def test_a_word_has_the_spelling_that_it_has_inside_a_text(kind, count):
    """Cut out of texts by the offsets of their tokens, and compared with the spellings of the word alone."""
    tokenizer = KINDS[kind]
    for word in ("dog", "北京"):
        ways = [tuple(way.ids) for way in spellings(tokenizer, [word])]
        assert len(ways) == len(set(ways)) == count
        for text in (word, f"the {word}", f"我{word}", f"the。{word}"):
            (ids, places), at = tokenizer.encode_raw([text])[0], text.index(word)
            first = at - 1 if at and text[at - 1] == " " else at
            inside = (places[:, 0] >= first) & (places[:, 1] > first)
            assert tuple(ids[inside].tolist()) in ways, text


def test_what_cannot_be_spelt_has_no_ids():
    tokenizer = KINDS["wordpiece"]
    (way,) = spellings(tokenizer, ["the", "龘", "the 龘", "a" * 101, "", "a " * (LONGEST + 1)])
    assert way.length.tolist() == [1, 0, 0, 0, 0, 0]
    assert way.too_long.tolist() == [False, False, False, False, False, True]
    assert tokenizer.tokens(way.ids) == ["the"]


def test_a_long_list_is_put_in_within_little_memory():
    """Ten million entries of four ids: a gigabyte on top of them."""
    many = 50_000
    ids = np.random.default_rng(0).integers(0, 7000, 4 * many).astype(np.int32)
    length = np.full(many, 4, dtype=np.int32)
    tracemalloc.start()
    try:
        trie = Trie(ids, length, 21_128)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(trie) == len(set(map(tuple, ids.reshape(-1, 4).tolist())))
    assert most < 130 * many


@pytest.mark.parametrize("kind", KINDS)
def test_texts_are_given_to_the_tokenizer_in_parts_that_leave_no_trace(kind, monkeypatch):
    texts = ["the", "北京", "龘", "dog 北京", "", "a " * (LONGEST + 1), "the dog"] * 3
    whole = spellings(KINDS[kind], texts)
    monkeypatch.setattr(spelling, "_AT_ONCE", 4)
    parts = spellings(KINDS[kind], texts)
    assert len(parts) == len(whole)
    for one, other in zip(parts, whole, strict=True):
        assert [column.tolist() for column in one] == [column.tolist() for column in other]
        assert one.ids.dtype == one.length.dtype == np.int32
    assert all(len(way.length) == 0 for way in spellings(KINDS[kind], []))
