"""Similar words: each word its own, of as many tokens; a random word of that length otherwise."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_tokenizers import KINDS

from maskery.knowledge.similar import SimilarWords
from maskery.randomness import keys
from maskery.text.tokenizer import Tokenizer
from maskery.text.training import LAYOUT

LETTERS = "abcdefgh"
SMALL = Tokenizer.from_pieces([*LAYOUT, *LETTERS, *(f"##{letter}" for letter in LETTERS)])
"""A word of n letters has n tokens."""


def replaced(similar, words, tokenizer=SMALL, seed=0, times=1, before=""):
    """(what stands in each word's place, whether it was found), as text."""
    many = words * times
    parts = [ids.astype(np.int32) for ids, _ in tokenizer.encode_raw([before + word for word in many])]
    length = np.array([len(part) for part in parts], dtype=np.int64)
    start = np.cumsum(length) - length
    own = keys(seed, "test", np.arange(len(many)))
    ids = np.concatenate(parts) if parts else np.empty(0, dtype=np.int32)
    new, found = similar.replacements(ids, start, length, own, start % 7)
    assert new.dtype == np.int32
    assert len(new) == len(ids)
    shown = tokenizer.tokens(new)
    texts = ["".join(shown[a : a + n]).replace("##", "") for a, n in zip(start, length, strict=True)]
    return list(zip(texts, found.tolist(), strict=True))


def pairs_of(groups):
    """word -> the words that may stand for it: the rule as it is said."""
    others = {}
    for words, mutual in groups:
        for word in words if mutual else words[:1]:
            same = {other.lower() for other in words if len(other) == len(word)} - {word.lower()}
            others.setdefault(word.lower(), set()).update(same)
    return others


WORD = st.text(alphabet="abAB", min_size=1, max_size=3)
GROUPS = st.lists(st.tuples(st.lists(WORD, min_size=2, max_size=5), st.booleans()), min_size=1, max_size=5)


@given(groups=GROUPS, seed=st.integers(0, 5))
def test_every_word_gets_one_of_its_own_or_a_random_one_of_its_length(groups, seed):
    similar = SimilarWords(groups, SMALL)
    others = pairs_of(groups)
    known = {word.lower() for words, _ in groups for word in words}
    asked = sorted(known | {"aaaa", "h", "gg"})
    for word, (new, found) in zip(asked * 3, replaced(similar, asked, seed=seed, times=3), strict=True):
        assert found == bool(others.get(word))
        assert len(new) == len(word)
        if found:
            assert new in others[word]
        elif any(len(each) == len(word) for each in known):
            assert new in known
    assert similar.words == len(known)
    assert similar.with_similar == sum(bool(each) for each in others.values())
    assert similar.unknown == 0


def test_all_others_are_drawn_alike():
    similar = SimilarWords([(["ab", "cd", "ef"], True), (["ab", "gh"], True)], SMALL)
    drawn = Counter(new for new, _ in replaced(similar, ["ab"], times=6000))
    assert drawn.keys() == {"cd", "ef", "gh"}
    assert all(abs(count - 2000) < 5 * np.sqrt(2000 * 2 / 3) for count in drawn.values())


def test_a_word_without_a_like_becomes_any_word_of_its_length():
    similar = SimilarWords([(["ab", "cd", "e"], True), (["gh", "a"], True)], SMALL)
    drawn = Counter(replaced(similar, ["ba"], times=3000))
    assert drawn.keys() == {("ab", False), ("cd", False), ("gh", False)}
    assert all(abs(count - 1000) < 5 * np.sqrt(1000 * 2 / 3) for count in drawn.values())


def test_a_length_that_no_word_has_takes_ordinary_tokens():
    similar = SimilarWords([(["ab", "cd"], True)], SMALL)
    length, start = np.array([3, 3]), np.array([0, 3])
    ids = np.array([SMALL.id(piece) for piece in ("a", "##b", "##c", "d", "##e", "##f")], dtype=np.int32)
    drawn = [similar.replacements(ids, start, length, keys(seed, "x", [0, 1]), np.array([0, 3])) for seed in range(300)]
    new = np.concatenate([each for each, _ in drawn])
    assert set(new.tolist()) == set(SMALL.ordinary.tolist())
    assert not any(found.any() for _, found in drawn)
    assert len({tuple(each) for each, _ in drawn}) > 250


def test_what_a_word_becomes_does_not_depend_on_the_words_beside_it():
    similar = SimilarWords([(["ab", "cd", "ef"], True), (["a", "b", "c"], True)], SMALL)
    length = np.array([2, 1, 4, 2, 1])
    ids = SMALL.encode_raw(["ab a abcd cd h"])[0][0].astype(np.int32)
    start, own, at = np.cumsum(length) - length, keys(3, "x", np.arange(5)), np.arange(5) * 11
    new, found = similar.replacements(ids, start, length, own, at)
    for one in range(5):
        mine = slice(start[one], start[one] + length[one])
        place = slice(one, one + 1)
        alone, was = similar.replacements(ids[mine], np.array([0]), length[place], own[place], at[place])
        assert alone.tolist() == new[mine].tolist()
        assert was.tolist() == found[place].tolist()
    assert found.tolist() == [True, True, False, True, False]
    nothing = np.empty(0, dtype=np.int64)
    assert [len(each) for each in similar.replacements(ids[:0], nothing, nothing, own[:0], nothing)] == [0, 0]


def test_words_that_are_spelt_alike_are_one():
    similar = SimilarWords([(["AB", "ab", "cd"], True), (["Ab", "ef"], True)], SMALL)
    assert (similar.words, similar.with_similar) == (3, 3)
    assert {new for new, _ in replaced(similar, ["ab"], times=50)} == {"cd", "ef"}
    assert {new for new, _ in replaced(similar, ["cd"], times=50)} == {"ab"}


def test_pieces_that_read_alike_are_told_apart():
    """`ab` as one piece and as two: ids are compared, not texts, and not any number made of them."""
    tokenizer = Tokenizer.from_pieces([*LAYOUT, "a", "b", "ab", "##b", "cd", "ef"])
    similar = SimilarWords([(["ab", "cd"], True)], tokenizer)
    one, two = tokenizer.id("ab"), [tokenizer.id("a"), tokenizer.id("##b")]
    ids, own = np.array([one, *two], dtype=np.int32), keys(0, "x", [0, 1])
    new, found = similar.replacements(ids, np.array([0, 1]), np.array([1, 2]), own, np.array([0, 1]))
    assert found.tolist() == [True, False]
    assert new[0] == tokenizer.id("cd")


def test_a_large_table_gives_every_word_only_its_own_like():
    """A wrong answer for any of 10,000 words would show."""
    count = 5_000
    pieces = [f"w{number}" for number in range(2 * count)]
    tokenizer = Tokenizer.from_pieces([*LAYOUT, *pieces])
    similar = SimilarWords([([pieces[n], pieces[n + count]], True) for n in range(count)], tokenizer)
    first = tokenizer.id("w0")
    ids = np.arange(first, first + 2 * count, dtype=np.int32)
    start = np.arange(2 * count)
    new, found = similar.replacements(ids, start, np.ones_like(start), keys(0, "x", start), start)
    assert found.all()
    assert new.tolist() == np.roll(ids, count).tolist()


def test_unknown_words_are_left_out_and_counted():
    similar = SimilarWords([(["ab", "x", "cd"], True), (["xx", "ab"], True), (["x", "y"], True)], SMALL)
    assert (similar.words, similar.unknown, similar.with_similar) == (2, 3, 2)
    assert {new for new, _ in replaced(similar, ["ab"], times=20)} == {"cd"}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("before", ["", " "])
def test_chinese_and_english_words_of_every_kind_of_tokenizer(kind, before):
    tokenizer = KINDS[kind]
    similar = SimilarWords([(["我们", "北京"], True), (["don", "new"], True), (["周杰伦", "演唱会"], True)], tokenizer)
    compared = 0
    for word, other in (("我们", "北京"), ("don", "new"), ("周杰伦", "演唱会")):
        ids = tokenizer.encode_raw([before + word])[0][0].astype(np.int32)
        wanted = tokenizer.encode_raw([before + other])[0][0]
        if len(ids) != len(wanted):
            continue
        compared += 1
        many = np.array([len(ids)])
        new, found = similar.replacements(ids, np.array([0]), many, keys(0, "x", [0]), np.array([0]))
        assert found.all(), word
        assert new.tolist() == wanted.tolist(), "behind a space the other stands behind one, too"
    assert compared >= 2


def test_no_group_at_all():
    similar = SimilarWords([], SMALL)
    assert (similar.words, similar.with_similar, similar.unknown) == (0, 0, 0)
    assert [found for _, found in replaced(similar, ["ab", "c"])] == [False, False]


def test_punctuation_becomes_punctuation_and_words_stay_words():
    """No table has it; a random word in its place would break the sentence."""
    tokenizer = Tokenizer.from_pieces([*LAYOUT, ",", ".", "!", "。", *"abcdefgh"])
    similar = SimilarWords([(["a", "b"], True), (["c", "d"], True)], tokenizer)
    ids = np.array(tokenizer.encode(". a , h !")[0][1:-1], dtype=np.int32)
    start, length = np.arange(5), np.ones(5, dtype=np.int64)
    drawn = [similar.replacements(ids, start, length, keys(seed, "x", np.arange(5)), start)[0] for seed in range(100)]
    texts = np.array([tokenizer.tokens(each) for each in drawn])
    assert set(texts[:, [0, 2, 4]].ravel()) == {",", ".", "!", "。"}
    assert set(texts[:, 1]) == {"b"}
    assert not set(texts[:, 3]) & {",", ".", "!", "。"}
