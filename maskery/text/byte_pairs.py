"""Byte-pair tokenizers as their authors published them, vocab.json and merges.txt: GPT-2's and RoBERTa's over bytes,
and that of the first GPT, whose pieces tell where a word ends.
"""

from __future__ import annotations

import json
from pathlib import Path

from tokenizers import AddedToken
from tokenizers import Tokenizer as RustTokenizer
from tokenizers.decoders import BPEDecoder
from tokenizers.decoders import ByteLevel as ByteLevelDecoder
from tokenizers.models import BPE
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer, ByteLevel
from tokenizers.processors import ByteLevel as ByteLevelFrame
from tokenizers.processors import RobertaProcessing

from maskery.errors import InputError
from maskery.text.roles import END, ROLES

VOCABULARY, MERGES = "vocab.json", "merges.txt"
WORD_END = "</w>"
_AGAIN = "fetch the file anew"


def is_here(folder: Path) -> bool:
    return (folder / VOCABULARY).is_file() and (folder / MERGES).is_file()


def read(folder: Path) -> RustTokenizer:
    """The tokenizer of the two files, of the kind that its pieces tell."""
    numbers, merges = _numbers(folder / VOCABULARY), _merges(folder / MERGES)
    unknown = [piece for pair in merges for piece in (*pair, "".join(pair)) if piece not in numbers]
    if unknown:
        raise InputError(
            f"joins pieces that {VOCABULARY} has not: {unknown[0]!r}",
            where=folder / MERGES,
            repair="put both files of one model into the folder",
        )
    by_words = any(piece.endswith(WORD_END) for piece in numbers)
    return _of_words(numbers, merges) if by_words else _of_bytes(numbers, merges)


def _of_bytes(numbers: dict[str, int], merges: list[tuple[str, str]]) -> RustTokenizer:
    rust = RustTokenizer(BPE(numbers, merges))
    rust.pre_tokenizer = ByteLevel(add_prefix_space=False)
    rust.decoder = ByteLevelDecoder()
    _add_marks(rust, numbers)
    if "<s>" in numbers and "</s>" in numbers:
        rust.post_processor = RobertaProcessing(
            ("</s>", numbers["</s>"]), ("<s>", numbers["<s>"]), trim_offsets=True, add_prefix_space=False
        )
    else:
        rust.post_processor = ByteLevelFrame(trim_offsets=False)
    return rust


def _of_words(numbers: dict[str, int], merges: list[tuple[str, str]]) -> RustTokenizer:
    unk = next((name for name in ROLES["unk"] if name in numbers), None)
    rust = RustTokenizer(BPE(numbers, merges, unk_token=unk, end_of_word_suffix=WORD_END, fuse_unk=False))
    rust.normalizer = BertNormalizer(lowercase=True)
    rust.pre_tokenizer = BertPreTokenizer()
    rust.decoder = BPEDecoder(suffix=WORD_END)
    _add_marks(rust, numbers)
    rust.post_processor = ByteLevelFrame(trim_offsets=False, use_regex=False)  # none: texts are not framed
    return rust


def _add_marks(rust: RustTokenizer, numbers: dict[str, int]) -> None:
    marks = [END, *(name for names in ROLES.values() for name in names)]
    rust.add_special_tokens(
        [
            AddedToken(name, special=True, normalized=False, lstrip=name == "<mask>")
            for name in sorted((each for each in marks if each in numbers), key=lambda each: numbers[each])
        ]
    )


def _numbers(path: Path) -> dict[str, int]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise InputError(f"cannot be read: {error}", where=path, repair=_AGAIN) from None
    if not isinstance(found, dict) or not found or not all(type(n) is int and n >= 0 for n in found.values()):
        raise InputError("is not a list of pieces and their numbers", where=path, repair=_AGAIN)
    if len(set(found.values())) < len(found):
        raise InputError("two pieces have the same number", where=path, repair=_AGAIN)
    return found


def _merges(path: Path) -> list[tuple[str, str]]:
    """One pair a line, the commonest first; the first line may tell the version."""
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except UnicodeDecodeError as error:
        raise InputError(f"not UTF-8 at byte {error.start}", where=path, repair=_AGAIN) from None
    merges: list[tuple[str, str]] = []
    for number, line in enumerate(lines, 1):
        line = line.removesuffix("\r")
        if not line or (number == 1 and line.startswith("#version")):
            continue
        left, _, right = line.partition(" ")
        if not left or not right or " " in right:
            raise InputError(f"is no pair of pieces: {line!r}", where=f"{path}:{number}", repair=_AGAIN)
        merges.append((left, right))
    return merges
