"""The numbers of a vocabulary's pieces: each piece has one, and no two the same."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tokenizers import Tokenizer as RustTokenizer

from maskery.errors import InputError

_HOLES = 100_000
"""Numbers without a piece that a tokenizer may have beyond twice its pieces."""


def size(rust: RustTokenizer, where: str | Path) -> int:
    """One more than the largest number of a piece. The library walks over every number below it, so one that lies far
    beyond the pieces, by a changed digit, would take all memory."""
    numbers = rust.get_vocab(with_added_tokens=True)
    piece, largest = max(numbers.items(), key=lambda item: item[1])
    if largest > 2 * len(numbers) + _HOLES:
        raise InputError(
            f"piece {piece!r} has the number {largest}, far beyond the {len(numbers)} pieces there are",
            where=where or None,
            repair="fetch the file anew",
        )
    if len(set(numbers.values())) < len(numbers):
        first, second = _of_one_number(numbers)
        raise InputError(
            f"pieces {first!r} and {second!r} have the same number {numbers[first]}",
            where=where or None,
            repair="fetch the file anew, or give one of the two a number of its own",
        )
    return largest + 1


def _of_one_number(numbers: Mapping[str, int]) -> tuple[str, str]:
    seen: dict[int, str] = {}
    return next((seen[each], piece) for piece, each in sorted(numbers.items()) if seen.setdefault(each, piece) != piece)


def require_unknown(rust: RustTokenizer, where: str | Path) -> None:
    """What stands for unknown words has to be a piece; otherwise the first unknown word would end in an error."""
    name = getattr(rust.model, "unk_token", None)
    if isinstance(name, str) and rust.model.token_to_id(name) is None:
        raise InputError(
            f"the unknown token {name!r} is not in the vocabulary",
            where=where or None,
            repair="fetch the file anew, or name a piece of the vocabulary as model.unk_token",
        )
