"""A text of the user's, or a pair of them, as one row: encoded, cut into words and marked as a corpus was, and framed
as the rows of a recipe are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maskery.corpus.encode import Piece, encode
from maskery.corpus.marked import marked_like
from maskery.corpus.mixture import Corpora, Mixture
from maskery.edit import Edit
from maskery.errors import InputError
from maskery.recipes.recipe import Recipe
from maskery.rows.config import CLOSED, UNFRAMED
from maskery.rows.ragged import Rows
from maskery.text.tokenizer import Tokenizer
from maskery.text.wordpiece import NAMES, assemble
from maskery.text.words import segmenter

LONGEST = 128
"""Tokens of both texts together."""
FRAMED, OPEN, CLOSED_BY_CLS = "framed", "open", "closed"


@dataclass(frozen=True)
class Texts:
    """One or two texts, encoded."""

    pieces: tuple[Piece, ...]
    flags: tuple[NDArray[np.uint8], ...]
    """Of each text, with the marks of the corpus."""
    marks: frozenset[str]
    """phrases, entities: what the corpus marks."""

    @property
    def size(self) -> int:
        return sum(len(piece.tokens) for piece in self.pieces)


def frame_of(recipes: Sequence[Recipe]) -> str:
    """How a row is framed: as the recipes' own rows are, or [CLS] A [SEP] B [SEP] where they differ."""
    kinds = {each.rows.kind for each in recipes}
    if kinds <= set(CLOSED):
        return CLOSED_BY_CLS
    return OPEN if kinds <= set(UNFRAMED) - set(CLOSED) else FRAMED


def read_texts(text: str, second: str | None, source: Corpora | Tokenizer) -> Texts:
    tokenizer = source if isinstance(source, Tokenizer) else source.tokenizer
    if second is not None and not isinstance(source, Tokenizer) and source.target_vocabulary:
        raise InputError(
            "the second texts of this corpus have a vocabulary of their own", repair="leave out the second text"
        )
    given = [text] if second is None else [text, second]
    pieces = tuple(encode(" ".join(each.split()), tokenizer, _segmenter(source)) for each in given)
    found = Texts(pieces, tuple(piece.flags for piece in pieces), frozenset())
    empty = next((place for place, piece in enumerate(pieces) if not len(piece.tokens)), None)
    if empty is not None or found.size > LONGEST:
        which = ("text", "second text")[empty] if empty is not None else "text"
        size = 0 if empty is not None else found.size
        raise InputError(f"the {which} has {size} tokens", repair=f"give a sentence of 1 to {LONGEST} tokens")
    if isinstance(source, Tokenizer):
        return found
    marked = [marked_like(source, piece) for piece in pieces]
    return Texts(pieces, tuple(each.flags for each in marked), marked[0].kinds)


def own_row(texts: Texts, tokenizer: Tokenizer, frame: str) -> Rows:
    """The texts in their frame: one row, not corrupted. Where nothing frames a row, [SEP] parts the texts."""
    cls, sep = tokenizer.specials.cls, tokenizer.specials.sep
    columns: list[tuple[int, int, bool, int]] = []
    """Id, flags, whether it is a special token, segment."""
    if frame == FRAMED:
        columns.append((cls, 0, True, 0))
    last = len(texts.pieces) - 1
    for number, (piece, flags) in enumerate(zip(texts.pieces, texts.flags, strict=True)):
        columns += [(*each, False, number) for each in zip(piece.tokens.tolist(), flags.tolist(), strict=True)]
        if frame != OPEN or number < last:
            columns.append((sep, 0, True, number))
    if frame == CLOSED_BY_CLS:
        columns.append((cls, 0, True, last + 1))
    ids, flags, special, segment = (np.array(column) for column in zip(*columns, strict=True))
    return Rows(
        number=np.zeros(1, dtype=np.int64),
        start=np.array([0, len(ids)]),
        ids=ids.astype(np.int32),
        original=ids.astype(np.int32),
        flags=flags.astype(np.uint8),
        special=special.astype(bool),
        segment=segment.astype(np.uint8) * (frame != OPEN),
        document=segment.astype(np.int32),
        edit=np.full(len(ids), Edit.NONE, dtype=np.uint8),
        label=np.full(1, -1),
    )


def copies(row: Rows, many: int) -> Rows:
    slots = ("ids", "original", "flags", "special", "segment", "document", "edit")
    return replace(
        row,
        number=np.arange(many),
        start=np.arange(many + 1) * len(row.ids),
        label=np.full(many, -1),
        **{name: np.tile(getattr(row, name), many) for name in slots},
    )


def own_vocabulary(*texts: str) -> Tokenizer:
    """A tokenizer that knows the words of these texts, and each Chinese character; for looking without a corpus."""
    parts = assemble(NAMES, lowercase=False)
    found = [word for text in texts for word, _ in _words(parts, text)]
    return Tokenizer.from_pieces(
        [*NAMES, *(word for word in dict.fromkeys(found) if word not in NAMES)], lowercase=False
    )


def _words(parts: Any, text: str) -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = parts.pre_tokenizer.pre_tokenize_str(parts.normalizer.normalize_str(text))
    return found


def _segmenter(source: Corpora | Tokenizer) -> Any:
    if isinstance(source, Tokenizer):
        return segmenter("auto")
    return (source.parts[0] if isinstance(source, Mixture) else source).segmenter
