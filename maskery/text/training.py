"""Make a vocabulary from text: WordPiece with the number layout of Google's Chinese BERT.

[PAD] 0, [unused1] to [unused99] at their numbers, [UNK] 100, [CLS] 101, [SEP] 102, [MASK] 103; then the alphabet by
code point, then the pieces in the order in which they were learnt. `tokenizers` numbers the alphabet by the order of a
hash table, which differs from process to process and decides ties between merges; here the alphabet is counted first
and given to it in a fixed order, so the same text always makes the same vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from itertools import islice
from math import isqrt

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer as RustTokenizer
from tokenizers.pre_tokenizers import BertPreTokenizer
from tokenizers.trainers import WordPieceTrainer

from maskery.errors import InputError
from maskery.registry import Registry
from maskery.text import wordpiece
from maskery.text.characters import Kind, codes, kinds
from maskery.text.tokenizer import Tokenizer

LAYOUT = ("[PAD]", *(f"[unused{n}]" for n in range(1, 100)), "[UNK]", "[CLS]", "[SEP]", "[MASK]")
SMALLEST = 200
LARGEST_DEFAULT = 21_128
_LEARNT_SHARE = 4
"""At least one part in so many of the free places is left for pieces of more than one character."""

Trainer = Callable[[Iterable[str], int, bool], Tokenizer]
KINDS: Registry[Trainer] = Registry("tokenizer kind", {"wordpiece": "maskery.text.training:train_wordpiece"})


def default_size(characters: int) -> int:
    """Pieces for a text of that many characters: distinct words grow with about the root of the length."""
    return max(1000, min(LARGEST_DEFAULT, 8 * isqrt(characters)))


def train_wordpiece(lines: Iterable[str], vocab: int, lowercase: bool = True) -> Tokenizer:
    """A tokenizer of at most `vocab` pieces. `lines` is read twice; what can be read only once is kept in memory."""
    if vocab < SMALLEST:
        raise InputError(f"a vocabulary of {vocab} pieces has no room for text", repair=f"--vocab {SMALLEST} or more")
    if iter(lines) is lines:
        lines = list(lines)
    rust = wordpiece.assemble(LAYOUT, lowercase)
    kept, alphabet, left_out = _choose(*_count(lines, rust), vocab - len(LAYOUT))
    trainer = WordPieceTrainer(
        vocab_size=vocab,
        min_frequency=2,
        show_progress=False,
        special_tokens=[*LAYOUT, *alphabet],
        limit_alphabet=len(kept),
        initial_alphabet=kept,
    )
    rust.train_from_iterator(lines, trainer)
    numbers = rust.get_vocab(with_added_tokens=True)
    pieces = sorted(numbers, key=numbers.__getitem__)
    note = f"{'uncased' if lowercase else 'cased'}, trained: {len(pieces)} pieces, {len(kept)} characters"
    if left_out:
        note += f"; {left_out} rarer characters had no room and read as [UNK]"
    return Tokenizer.from_pieces(pieces, lowercase=lowercase, note=note)


@cache
def _punctuation() -> NDArray[np.bool_]:
    """What the pre-tokenizer sets apart, asked of itself: its Unicode tables may be older or newer than Python's."""
    table = np.zeros(0x11_0000, dtype=bool)
    asked = "a".join(chr(code) for code in range(0x2_0000) if not 0xD800 <= code < 0xE000)
    for piece, _ in BertPreTokenizer().pre_tokenize_str(asked):
        if len(piece) == 1 and piece != "a":
            table[ord(piece)] = True
    return table


def _count(lines: Iterable[str], rust: RustTokenizer) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """How often each code point begins a word, and how often it continues one, after normalisation."""
    first, later = np.zeros(0x11_0000, dtype=np.int64), np.zeros(0x11_0000, dtype=np.int64)
    for text in _blocks(lines):
        points = codes(rust.normalizer.normalize_str(text))
        if not points.size:
            continue
        alone, visible = _punctuation()[points], kinds(points) != Kind.SPACE
        begins = np.ones(points.size, dtype=bool)
        begins[1:] = alone[1:] | alone[:-1] | ~visible[:-1]
        first += np.bincount(points[begins & visible], minlength=first.size)
        later += np.bincount(points[~begins & visible], minlength=later.size)
    return first, later


def _choose(first: NDArray[np.int64], later: NDArray[np.int64], room: int) -> tuple[list[str], list[str], int]:
    """The characters that get a piece, commonest first until the room is full; their pieces; how many had no room."""
    total = first + later
    ranked = np.argsort(-total, kind="stable")[: int(np.count_nonzero(total))]
    costs = np.cumsum(1 + (later[ranked] > 0))
    fits = int(np.searchsorted(costs, room - room // _LEARNT_SHARE, side="right"))
    kept = [int(point) for point in np.sort(ranked[:fits])]
    pieces = [chr(point) for point in kept] + [f"##{chr(point)}" for point in kept if later[point]]
    return [chr(point) for point in kept], pieces, len(ranked) - fits


def _blocks(lines: Iterable[str]) -> Iterator[str]:
    """Lines joined by the thousand: few calls, bounded memory."""
    walk = iter(lines)
    while block := list(islice(walk, 1000)):
        yield "\n".join(block)
