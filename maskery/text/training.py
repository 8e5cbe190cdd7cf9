"""Make a tokenizer from text. The same text always makes the same one, whatever the process and its threads.

`wordpiece` and `char` have the numbers of Google's Chinese BERT: [PAD] 0, [unused1] to [unused99] at their numbers,
[UNK] 100, [CLS] 101, [SEP] 102, [MASK] 103; then characters by code point, then what was learnt, in its order. `bpe`
begins as RoBERTa's does, `unigram` as ALBERT's.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable
from math import isqrt

import numpy as np
from tokenizers import Tokenizer as RustTokenizer
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel
from tokenizers.trainers import BpeTrainer, WordPieceTrainer

from maskery.errors import InputError
from maskery.registry import Registry
from maskery.text import alphabet, kinds, wordpiece
from maskery.text.tokenizer import Tokenizer
from maskery.text.unigram import learn

LAYOUT = ("[PAD]", *(f"[unused{n}]" for n in range(1, 100)), "[UNK]", "[CLS]", "[SEP]", "[MASK]")
SMALLEST = {"wordpiece": 200, "bpe": 300, "unigram": 200, "char": 200}
"""The fewest pieces of each kind: its marks, the bytes of bpe, and some room for text."""
LARGEST_DEFAULT = 21_128
LARGEST = 1_000_000
"""Trainers lay out memory for as many pieces as are asked for, and end the process where there is not enough."""
_LEARNT_SHARE = 4
"""At least one part in so many of the free places is left for pieces of more than one character."""

Trainer = Callable[[Iterable[str], int, bool | None], Tokenizer]
KINDS: Registry[Trainer] = Registry(
    "tokenizer kind", {kind: f"maskery.text.training:train_{kind}" for kind in ("wordpiece", "bpe", "unigram", "char")}
)


def default_size(kind: str, characters: int) -> int:
    """Pieces for a text of that many characters: distinct words grow with about the root of the length. For `char` it
    is only a limit: there are as many pieces as distinct characters."""
    return LARGEST_DEFAULT if kind == "char" else max(1000, min(LARGEST_DEFAULT, 8 * isqrt(characters)))


def train_wordpiece(lines: Iterable[str], vocab: int, lowercase: bool | None = None) -> Tokenizer:
    """A tokenizer of at most `vocab` pieces, lower-case unless it is told otherwise.

    `tokenizers` numbers the alphabet by the order of a hash table, which differs from process to process and decides
    ties between merges; so the alphabet is counted first and given to it in a fixed order.
    """
    lines = _checked("wordpiece", lines, vocab)
    lowercase = lowercase is not False
    rust = wordpiece.assemble(LAYOUT, lowercase)
    first, later = alphabet.count_in_words(alphabet.blocks(lines, rust))
    kept, left_out = alphabet.choose(first + later, 1 + (later > 0), _for_characters(vocab - len(LAYOUT)))
    trainer = WordPieceTrainer(
        vocab_size=vocab,
        min_frequency=2,
        show_progress=False,
        special_tokens=[*LAYOUT, *kept, *(f"##{letter}" for letter in kept if later[ord(letter)])],
        limit_alphabet=len(kept),
        initial_alphabet=kept,
    )
    rust.train_from_iterator(lines, trainer)
    numbers = rust.get_vocab(with_added_tokens=True)
    pieces = sorted(numbers, key=numbers.__getitem__)
    note = _note(lowercase, len(pieces), len(kept), left_out, "[UNK]")
    return Tokenizer.from_pieces(pieces, lowercase=lowercase, note=note)


def train_bpe(lines: Iterable[str], vocab: int, lowercase: bool | None = None) -> Tokenizer:
    """Byte-level BPE as in RoBERTa; cased unless it is told otherwise. No text is unknown to it."""
    lines = _checked("bpe", lines, vocab)
    rust = RustTokenizer(BPE(unk_token="<unk>"))
    rust.normalizer = kinds.bpe(dict.fromkeys(kinds.BPE_LAYOUT, 0), [], bool(lowercase)).normalizer
    rust.pre_tokenizer = ByteLevel(add_prefix_space=False)
    trainer = BpeTrainer(
        vocab_size=vocab,
        min_frequency=2,
        show_progress=False,
        special_tokens=list(kinds.BPE_LAYOUT),
        initial_alphabet=sorted(ByteLevel.alphabet()),
    )
    rust.train_from_iterator(lines, trainer)
    model = json.loads(rust.to_str())["model"]
    made = kinds.bpe(model["vocab"], [(left, right) for left, right in model["merges"]], bool(lowercase))
    return Tokenizer(made, note=f"{_case(lowercase)}, trained: {len(model['vocab'])} pieces over bytes")


def train_unigram(lines: Iterable[str], vocab: int, lowercase: bool | None = None) -> Tokenizer:
    """Pieces with probabilities, white space as ▁; cased unless it is told otherwise."""
    lines = _checked("unigram", lines, vocab)
    room = vocab - len(kinds.UNIGRAM_LAYOUT)
    rust = kinds.unigram([(name, 0.0) for name in kinds.UNIGRAM_LAYOUT], bool(lowercase))
    counts: Counter[str] = Counter()
    total = alphabet.count([])
    for text in alphabet.blocks(lines, rust):
        counts.update(text.split(" "))
        total += alphabet.count([text])
    counts = _runs(counts, rust)
    total[ord(kinds.SPACE)] = 0
    kept, left_out = alphabet.choose(total, np.ones_like(total), _for_characters(room) - 1)
    pieces, words_out = learn(_within(counts, {kinds.SPACE, *kept}), [kinds.SPACE, *kept], room)
    note = _note(bool(lowercase), len(pieces) + len(kinds.UNIGRAM_LAYOUT), len(kept), left_out, "<unk>")
    if words_out:
        note += f"; learnt from the commonest words, {words_out} distinct rarer ones left out"
    marks = [(name, 0.0) for name in kinds.UNIGRAM_LAYOUT]
    return Tokenizer(kinds.unigram([*marks, *pieces], bool(lowercase)), note=note)


def train_char(lines: Iterable[str], vocab: int, lowercase: bool | None = None) -> Tokenizer:
    """A piece for each character (code point) of the text; cased unless it is told otherwise."""
    lines = _checked("char", lines, vocab)
    rust = kinds.char(LAYOUT, bool(lowercase))
    total = alphabet.count(alphabet.blocks(lines, rust))
    total[ord(kinds.SPACE)] = 0
    kept, left_out = alphabet.choose(total, np.ones_like(total), vocab - len(LAYOUT) - 1)
    pieces = [*LAYOUT, kinds.SPACE, *kept]
    note = _note(bool(lowercase), len(pieces), len(kept), left_out, "[UNK]")
    return Tokenizer(kinds.char(pieces, bool(lowercase)), note=note)


def check_size(kind: str, vocab: int) -> None:
    """Refuse a vocabulary that has no room for text, or more than a trainer can lay out."""
    if vocab < SMALLEST[kind]:
        cause = f"a vocabulary of {vocab} pieces has no room for text"
        raise InputError(cause, repair=f"--vocab {SMALLEST[kind]} or more")
    if vocab > LARGEST:
        raise InputError(f"a vocabulary of {vocab:,} pieces is too large", repair=f"--vocab {LARGEST} or less")


def _checked(kind: str, lines: Iterable[str], vocab: int) -> Iterable[str]:
    """The lines, to be walked twice: what can be read only once is kept in memory."""
    check_size(kind, vocab)
    return list(lines) if iter(lines) is lines else lines


def _for_characters(room: int) -> int:
    return room - room // _LEARNT_SHARE


def _runs(counts: Counter[str], rust: RustTokenizer) -> Counter[str]:
    """What stands between white space, cut into the runs that no piece reaches over."""
    runs: Counter[str] = Counter()
    for word, number in sorted(counts.items()):
        for run, _ in rust.pre_tokenizer.pre_tokenize_str(word):
            runs[run] += number
    return runs


def _within(counts: Counter[str], letters: set[str]) -> dict[str, int]:
    """The parts of words between characters that have no piece."""
    without = re.compile("[^" + re.escape("".join(sorted(letters))) + "]+")
    found: Counter[str] = Counter()
    for word, number in counts.items():
        for part in without.split(word):
            if part:
                found[part] += number
    return found


def _case(lowercase: bool | None) -> str:
    return "uncased" if lowercase else "cased"


def _note(lowercase: bool, pieces: int, characters: int, left_out: int, unknown: str) -> str:
    note = f"{_case(lowercase)}, trained: {pieces} pieces, {characters} characters"
    return note + (
        f"; {left_out} rarer characters had no room and read as {unknown} (a larger --vocab has more)"
        if left_out
        else ""
    )
