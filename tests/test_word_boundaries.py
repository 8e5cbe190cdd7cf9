"""Where words begin among tokens, written by hand: tokens as they are shown, a bar between words."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from small_tokenizers import KINDS

from maskery.corpus.encode import Flag, encode
from maskery.text.words import auto

WORDPIECE = [
    ("the dogs", "the | dog ##s"),
    ("unused Dog", "un ##used | dog"),
    ("don't", "don ' t"),
    ("dog's", "dog ' s"),
    ("'dog'", "' | dog | '"),
    ("new-dog", "new | - | dog"),
    ("dog,the!", "dog | , | the | !"),
    ("我们", "我 们"),
    ("去看周杰伦演唱会", "去 | 看 | 周 杰 伦 | 演 唱 会"),
    ("人民 中国", "人 民 | 中 国"),
    ("the我们the", "the | 我 们 | the"),
    ("我们，去！", "我 们 | ， | 去 | ！"),
    ("дом the", "[UNK] | the"),
    ("龘the", "[UNK] | the"),
    ("café", "cafe"),
    ("cafe\u0301s", "cafe ##s"),
    ("İt", "i ##t"),
    ("3.14", "3 | . | 1 ##4"),
    ("covid19", "c ##o ##v ##i ##d ##1 ##9"),
    ("ＡＢ the", "[UNK] | the"),
    ("[MASK] the", "[ | m ##a ##s ##k | ] | the"),
    ("[UNK]", "[ | un ##k | ]"),
    ("http://a.b", "h ##t ##t ##p | : | / | / | a | . | b"),
    ("👍🏽 the", "[UNK] | the"),
    ("the\u200bdog", "the ##d ##o ##g"),
]
BPE = [
    ("the dog", "the | ▁dog"),
    ("the  dog", "the | ▁ ▁dog"),
    (" the", "▁the"),
    ("the ", "the ▁"),
    ("doging", "dog ing"),
    ("the, dog", "the | , | ▁dog"),
    ("the. The dog", "the | . | ▁ T h e | ▁dog"),
    ("don't", "do n ' t"),
    ("don’t", "do n <E2> <80> <99> t"),
    ("3.14", "3 | . | 1 4"),
    ("我们", "我们"),
    ("the 我们", "the | ▁ 我们"),
    ("the我们the", "the | 我们 | the"),
    ("北京大学", "北京 大 学"),
    ("去北京", "去 | 北京"),
    ("龙", "<E9> <BE> <99>"),
    ("我们龙", "我们 | <E9> <BE> <99>"),
    ("今天去", "今 天去"),
    ("é", "<C3> <A9>"),
    ("e\u0301 the", "e <CC> <81> | ▁the"),
    ("नि", "<E0> <A4> <A8> <E0> <A4> <BF>"),
    ("กิ", "<E0> <B8> <81> <E0> <B8> <B4>"),
    ("ＡＢ", "<EF> <BC> <A1> <EF> <BC> <A2>"),
    ("👍🏽", "<F0> <9F> <91> <8D> <F0> <9F> <8F> <BD>"),
    ("🇨🇳🇺🇸", "<F0> <9F> <87> <A8> <F0> <9F> <87> <B3> | <F0> <9F> <87> <BA> <F0> <9F> <87> <B8>"),
    ("the\u3000dog", "the | <E3> <80> <80> dog"),
    ("<mask> the", "< | m a s k | > | ▁the"),
    ("the/dog", "the | / | dog"),
]
UNIGRAM = [
    ("the dogs", "▁the | ▁dog s"),
    ("the  dog", "▁the | ▁dog"),
    ("dog,the", "▁dog | , | the"),
    ("dog .", "▁dog | ▁ ."),
    ("don't", "▁ d o n ' t"),
    ("3.14", "▁ 3 | . | 1 4"),
    ("我们", "▁我们"),
    ("北京大学", "▁ 北京 大学"),
    ("the 北京", "▁the | ▁ 北京"),
    ("the北京", "▁the | 北京"),
    ("今天去", "▁ 今 天去"),
    ("the dog。我们", "▁the | ▁dog | 。 | 我们"),
    ("дом the", "▁ <unk> | ▁the"),
    ("cafe\u0301", "▁ c a f é"),
    ("नि the", "▁ <unk> | ▁the"),
    ("👨\u200d👩\u200d👧", "▁ <unk> <unk> <unk> <unk> <unk>"),
    ("the ", "▁the ▁"),
    ("[MASK] dog", "▁ [ | M A S K | ] | ▁dog"),
    ("<unk>", "▁ < | u n k | >"),
    ("a@b.c", "▁ a | @ | b | . | c"),
]
CHAR = [
    ("the dog", "t h e | ▁ d o g"),
    ("a  b", "a | ▁ b"),
    (" a", "▁ a"),
    ("a ", "a ▁"),
    ("我们去", "我 们 | 去"),
    ("中文English", "中 文 | E n g l i s h"),
    ("cafe\u0301", "c a f é"),
    ("नि", "न ि"),
    ("🇨🇳", "🇨 🇳"),
    ("👍🏽", "👍 🏽"),
    ("👩\u200d👧a", "👩 \u200d 👧 | a"),
    ("don't", "d o n ' t"),
    ("１２", "１ ２"),
    ("龘，我", "[UNK] | ， | 我"),
    ("well-known", "w e l l | - | k n o w n"),
    ("[SEP]", "[ | S E P | ]"),
]
CASES = [
    pytest.param(kind, text, expected, id=f"{kind}-{number}")
    for kind, table in (("wordpiece", WORDPIECE), ("bpe", BPE), ("unigram", UNIGRAM), ("char", CHAR))
    for number, (text, expected) in enumerate(table)
]


@pytest.mark.parametrize(("kind", "text", "expected"), CASES)
def test_words_of_tokens(kind, text, expected):
    tokenizer = KINDS[kind]
    piece = encode(text, tokenizer, auto)
    at = [*np.flatnonzero(piece.flags & Flag.WORD), piece.tokens.size]
    assert at[0] == 0
    found = " | ".join(" ".join(tokenizer.shown(piece.tokens[a:b])) for a, b in pairwise(at))
    assert found == expected


def test_the_table_is_large_enough():
    assert len(CASES) >= 60


@pytest.mark.parametrize(("kind", "text"), [("bpe", "今天去"), ("unigram", "今天去")])
def test_a_token_over_two_words_is_counted(kind, text):
    assert encode(text, KINDS[kind], auto).straddling == 1
    assert encode(f"{text} the dog", KINDS[kind], auto).straddling == 1, "a space makes no token straddle"


TEXT = st.text(
    alphabet=st.one_of(
        st.characters(codec="utf-8", exclude_characters="\n"),
        st.sampled_from("我们今天去北京大学the dogABC019'’ \t.,。é\u0301\u200d\ufe0fİไทยनि🇨🇳👍🏽ＡＢ<mask>[MASK]▁"),
    ),
    max_size=30,
)


@pytest.mark.parametrize("kind", KINDS)
@settings(deadline=None, max_examples=120)
@given(text=TEXT)
@example(text="0 ")
@example(text="the\u200bdog")
def test_any_line(kind, text):
    tokenizer = KINDS[kind]
    ((ids, offsets),) = tokenizer.encode_raw([text])
    piece = encode(text, tokenizer, auto)
    starts = (piece.flags & Flag.WORD) != 0
    assert piece.tokens.tolist() == ids.tolist()
    assert starts.size == ids.size
    assert (starts | ((piece.flags & Flag.SENTENCE) == 0)).all(), "the first token of a sentence starts a word"
    assert starts[:1].all()
    assert (np.diff(offsets, axis=0) >= 0).all(), "tokens stand in the order of the text"
    assert ((offsets[:, 0] >= 0) & (offsets[:, 1] <= len(text))).all()
    assert not set(ids.tolist()) & (set(tokenizer.specials.ids) - {tokenizer.specials.unk})
    _no_start_inside_a_word(text, offsets, starts, (piece.flags & Flag.SENTENCE) != 0)


def _no_start_inside_a_word(text, offsets, starts, sentence):
    word = auto(text)
    for n in range(1, len(offsets)):
        before = text[slice(*offsets[n - 1])].rstrip()
        mine = text[slice(*offsets[n])]
        if not before or not mine.strip() or sentence[n]:
            continue
        last = offsets[n - 1][0] + len(before) - 1
        first = offsets[n][0] + len(mine) - len(mine.lstrip())
        if word[first] == word[last]:
            assert not starts[n]


@pytest.mark.parametrize("kind", KINDS)
@settings(deadline=None, max_examples=60)
@given(lines=st.lists(TEXT, min_size=1, max_size=5), cut=st.integers(0, 5))
def test_chunks_give_what_the_whole_gives(kind, lines, cut):
    tokenizer = KINDS[kind]
    whole = encode("\n".join(lines), tokenizer, auto)
    parts = [encode("\n".join(part), tokenizer, auto) for part in (lines[:cut], lines[cut:]) if part]
    assert whole.tokens.tolist() == [number for part in parts for number in part.tokens.tolist()]
    same = np.uint8(255 - Flag.DOCUMENT)
    assert (whole.flags & same).tolist() == [flag for part in parts for flag in (part.flags & same).tolist()]
    assert whole.straddling == sum(part.straddling for part in parts)
