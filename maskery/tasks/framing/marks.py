"""Marks of the user's own, such as [CAT=CULTURE], in rows of the vocabulary that nothing uses.

BERT's vocabularies have such rows, [unused1] and so on, with vectors that no text has trained. A mark takes the first
that is free, in the order of their numbers, so the network keeps its shape. In text a mark is found only if it was
declared; anything else in brackets stays brackets and letters.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from maskery.errors import InputError
from maskery.text.marks import CONTROL_MARK
from maskery.text.tokenizer import Tokenizer

_UNUSED = re.compile(r"[\[<]unused_?\d+[\]>]")


@dataclass(frozen=True)
class Marks:
    tokenizer: Tokenizer
    """Knows the marks by their names: to be saved with the model."""
    ids: dict[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def take_marks(tokenizer: Tokenizer, names: Sequence[str]) -> Marks:
    """Give every mark a row of the vocabulary; one that has a row already, as in a saved tokenizer, keeps it."""
    _check(tokenizer, names)
    known = {name: number for name in names if (number := tokenizer.id(name)) is not None}
    wanted = [name for name in names if name not in known]
    free = [piece for piece in tokenizer.pieces if _UNUSED.fullmatch(piece) and piece not in known]
    if len(wanted) > len(free):
        raise _no_room(tokenizer, wanted, free)
    taken = dict(zip(free, wanted, strict=False))
    notes = tuple(f"{new} takes row {tokenizer.id(old)} of the vocabulary, {old}" for old, new in taken.items())
    made = tokenizer.with_names(taken) if taken else tokenizer
    numbers = {name: number for name in names if (number := made.id(name)) is not None}
    return Marks(made, numbers, notes)


def _check(tokenizer: Tokenizer, names: Sequence[str]) -> None:
    twice = sorted({name for name in names if list(names).count(name) > 1})
    if twice:
        raise InputError(f"mark {twice[0]} is declared twice", where="rows.marks", repair="name each mark once")
    for name in names:
        if not CONTROL_MARK.fullmatch(name):
            raise InputError(
                f"{name!r} does not look like a mark",
                where="rows.marks",
                repair="write [NAME] or <NAME>, without space",
            )
        if name in (tokenizer.names["pad"], tokenizer.names["unk"]):
            raise InputError(
                f"{name} has a meaning of its own for the tokenizer", where="rows.marks", repair="choose another name"
            )


def _no_room(tokenizer: Tokenizer, wanted: Sequence[str], free: Sequence[str]) -> InputError:
    if free:
        return InputError(
            f"{len(wanted)} marks need a free row of the vocabulary each, and {len(free)} rows are free",
            where="rows.marks",
            repair=f"declare at most {len(free)}, or write what the others say as words of the text",
        )
    return InputError(
        f"{len(wanted)} mark{'s need' if len(wanted) > 1 else ' needs'} a free row of the vocabulary "
        f"({wanted[0]}{', ...' if len(wanted) > 1 else ''}), and this one ({tokenizer.kind}) has none: no [unusedN]",
        where="rows.marks",
        repair="write what the marks say as words of the text, give it as a column of its own (columns.meta), or use a "
        "model with a vocabulary of BERT's kind",
    )
