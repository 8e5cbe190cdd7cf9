"""The vectorised encoding against an obvious one that walks token by token."""

from __future__ import annotations

from itertools import pairwise
from unicodedata import category

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from test_text_tokenizer import byte_level
from vocabularies import TEXT, mixed_tokenizer

from maskery.corpus.encode import Flag, Piece, encode
from maskery.text.sentences import boundaries
from maskery.text.tokenizer import Tokenizer
from maskery.text.words import auto, none

MIXED = mixed_tokenizer()
BYTES = Tokenizer(byte_level())
LINE = st.text(
    alphabet=st.one_of(
        st.characters(codec="utf-8", exclude_characters="\n"),
        st.sampled_from("我们中国北京大学abcABC 1'。！.?é\u0301 "),
    ),
    max_size=30,
)


def walk(text, tokenizer):
    """Flags, sentence lengths and part sizes, one token at a time."""
    flags, sentences, parts, straddling = [], [], [0], 0
    fresh_part = True
    for line in text.split("\n"):
        if not line:
            parts.append(0)
            fresh_part = True
            continue
        ((_, offsets),) = tokenizer.encode_raw([line])
        starts = boundaries(line)
        line += "\n"  # a token without text may stand behind the last sign
        word = auto(line)
        current, before = -1, None
        for start, end in offsets.tolist():
            first, last = places(line, start, end)
            sentence = max(current, sum(begin <= first for begin in starts) - 1)
            flag = 0
            if sentence != current:
                flag |= Flag.SENTENCE
                sentences.append(0)
                parts[-1] += 1
            if sentence != current or word[first] != before:
                flag |= Flag.WORD
            if fresh_part:
                flag |= Flag.DOCUMENT
            if start <= first < max(end, start + 1) and category(line[first]) in ("Lu", "Lt"):
                flag |= Flag.CAPITAL
            straddling += int(word[first] != word[last])
            sentences[-1] += 1
            flags.append(int(flag))
            current, before, fresh_part = sentence, word[last], False
    return flags, sentences, parts, straddling


def places(line, start, end):
    """The first and the last visible character of a token; of one that has none, where it belongs."""
    visible = [place for place in range(len(line)) if not line[place].isspace()]
    own = [place for place in visible if start <= place < max(end, start + 1)]
    behind = [place for place in visible if place >= start]
    at = own or behind[:1] or visible[-1:] or [start]
    return at[0], at[-1]


def same(text, tokenizer):
    piece = encode(text, tokenizer, auto)
    flags, sentences, parts, straddling = walk(text, tokenizer)
    assert piece.tokens.tolist() == [
        n for line in text.split("\n") for n in tokenizer.encode_raw([line])[0][0].tolist()
    ]
    assert piece.sentences.tolist() == sentences
    assert piece.parts.tolist() == parts
    assert piece.straddling == straddling
    assert piece.flags.tolist() == flags
    return piece


@pytest.mark.parametrize("tokenizer", [MIXED, BYTES], ids=["wordpiece", "bytes"])
def test_a_known_text(tokenizer):
    piece = same(TEXT, tokenizer)
    assert piece.parts.size == 3
    assert piece.sentences.sum() == piece.tokens.size


@pytest.mark.parametrize("tokenizer", [MIXED, BYTES], ids=["wordpiece", "bytes"])
@settings(deadline=None, max_examples=150)
@given(lines=st.lists(LINE, max_size=5))
@example(lines=["0 "])
def test_any_text(tokenizer, lines):
    same("\n".join(lines), tokenizer)


def shown(text, words=auto):
    """Words as lists of tokens."""
    piece = encode(text, MIXED, words)
    at = [*np.flatnonzero(piece.flags & Flag.WORD), piece.tokens.size]
    return [MIXED.tokens(piece.tokens[a:b]) for a, b in pairwise(at)]


def test_words_are_known_from_the_text():
    assert shown("去看周杰伦演唱会") == [["去"], ["看"], ["周", "杰", "伦"], ["演", "唱", "会"]]
    assert shown("unused Dogs don't") == [["un", "##used"], ["dog", "##s"], ["d", "##o", "##n", "'", "t"]]
    assert shown("我们hello") == [["我", "们"], ["hello"]]


def test_unknown_tokens_take_part_and_are_counted():
    piece = encode("龘靐 the 我 дом", MIXED, auto)
    assert piece.unknown == 3
    assert Flag.WORD in Flag(int(piece.flags[-1]))


def test_a_token_over_two_words_joins_them_and_is_counted():
    rust = byte_level()
    tokenizer = Tokenizer(rust)
    piece = encode("he'we", tokenizer, auto)
    assert piece.straddling == 0
    pieces = [*MIXED.pieces, "ab-c"]
    joined = Tokenizer.from_pieces(pieces)
    joined._marked.add_tokens(["ab-c"])
    piece = encode("ab-c d", joined, auto)
    assert joined.tokens(piece.tokens) == ["ab-c", "d"]
    assert piece.straddling == 1


def test_no_word_facts():
    assert shown("unused 周杰伦", none) == [["un"], ["##used"], ["周"], ["杰"], ["伦"]]
    assert encode("unused", MIXED, none).straddling == 0


def test_capitals():
    piece = encode("The dog, Hello É", MIXED, auto)
    assert [bool(flag & Flag.CAPITAL) for flag in piece.flags] == [True, False, False, True, True]


@pytest.mark.parametrize("text", ["", "\n\n", "\u200b", TEXT])
def test_bytes_there_and_back(text):
    piece = encode(text, MIXED, auto)
    again = Piece.from_bytes(piece.to_bytes())
    for name in ("tokens", "flags", "sentences", "parts"):
        assert np.array_equal(getattr(piece, name), getattr(again, name))
        assert getattr(piece, name).dtype == getattr(again, name).dtype
    assert (piece.unknown, piece.straddling) == (again.unknown, again.straddling)
