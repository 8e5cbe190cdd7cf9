"""One small tokenizer of each kind, from fixed pieces: which tokens a text has can be seen by reading."""

from __future__ import annotations

from itertools import accumulate, pairwise
from string import ascii_letters, ascii_lowercase, digits, punctuation

from tokenizers.pre_tokenizers import ByteLevel

from maskery.text import kinds
from maskery.text.tokenizer import Tokenizer
from maskery.text.training import LAYOUT

HAN = "我们今天去北京大学看周杰伦演唱会中国人民"


def wordpiece() -> Tokenizer:
    small = [*ascii_lowercase, *digits]
    words = ["the", "dog", "un", "##used", "hello", "don", "cafe", "new", "york"]
    marks = [*punctuation, *"。，！"]
    return Tokenizer.from_pieces([*LAYOUT, *small, *(f"##{letter}" for letter in small), *marks, *HAN, *words])


def _letters(text: str) -> str:
    """The letters that stand for the text's bytes."""
    return "".join(piece for piece, _ in ByteLevel(add_prefix_space=False, use_regex=False).pre_tokenize_str(text))


def bpe() -> Tokenizer:
    """Knows the, dog, ing, the space before the first two, every character of HAN, and 我们, 北京, 天去."""
    merges = [merge for text in ("the", "dog", "ing", *HAN) for merge in pairs(_letters(text))]
    merges += [(_letters(a), _letters(b)) for a, b in ((" ", "the"), (" ", "dog"), "我们", "北京", "天去")]
    made = [left + right for left, right in merges]
    pieces = dict.fromkeys([*kinds.BPE_LAYOUT, *sorted(ByteLevel.alphabet()), *made])
    return Tokenizer(kinds.bpe({piece: n for n, piece in enumerate(pieces)}, list(dict.fromkeys(merges))))


def pairs(letters: str) -> list[tuple[str, str]]:
    """Merges that join letters from left to right."""
    return [(left, right[-1]) for left, right in pairwise(accumulate(letters))]


def unigram() -> Tokenizer:
    """Longer pieces are the more probable: the fewest pieces win."""
    long = ["the", "▁the", "dog", "▁dog", "我们", "▁我们", "北京", "大学", "天去"]
    letters = ["▁", *ascii_letters, *digits, *punctuation, *HAN, *"é。，"]
    pieces = [(piece, -2.0) for piece in long] + [(letter, -6.0) for letter in letters]
    return Tokenizer(kinds.unigram([*((name, 0.0) for name in kinds.UNIGRAM_LAYOUT), *pieces]))


def char() -> Tokenizer:
    letters = [*ascii_letters, *digits, *punctuation, *HAN, *"文é。，１２", *"नि👍🏽🇨🇳👩👧\u200d"]
    return Tokenizer(kinds.char([*LAYOUT, "▁", *letters]))


KINDS = {"wordpiece": wordpiece(), "bpe": bpe(), "unigram": unigram(), "char": char()}
