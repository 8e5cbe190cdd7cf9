"""Texts as rows of ids: tokenised in one go, cut where they are too long, and put into batches of like lengths.

Shapes: n texts, B rows of a batch, T slots.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from maskery import arguments
from maskery.errors import ArgumentError, InputError
from maskery.model.layout import layout_of
from maskery.model.products import Products
from maskery.model.stack import Inputs
from maskery.records import is_table, rows_of
from maskery.rows.ragged import EndToEnd
from maskery.tasks.framing.frame import Frame
from maskery.text.tokenizer import Tokenizer

SLOTS, MANY = 64, 512
"""Batches of so many slots or more have a multiple of the first number. The library behind the quick products compiles
code for each number that it meets, and keeps it: that is time, and memory that grows with the number of texts."""
_LONG = 16
"""Characters a slot beyond which a text is tokenised only as far as it is read."""
TEXT = "text"
"""The column that is read of a table with several."""
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, kw_only=True)
class TextRows(EndToEnd):
    ids: NDArray[np.int64]
    """All rows end to end, marks included."""
    start: NDArray[np.int64]
    """(n+1,)"""
    segments: NDArray[np.int64] | None
    """Where a frame's marks are of another segment than the first."""
    cut: int
    """Texts that were too long."""
    empty: int
    """Texts without a token."""
    skip: int
    """Slots of the front that are a prompt's, and the marks before it."""

    def __len__(self) -> int:
        return len(self.start) - 1


def require_texts(texts: Any) -> list[str]:
    """Refuse what is no list of texts, with the number of the one to blame. Of a table or of rows, their column of
    texts."""
    texts = _column(texts)
    flat = len(getattr(texts, "shape", (0,))) == 1  # a table's members are columns, their names, or rows
    if isinstance(texts, bytes | bytearray | Mapping | Set) or not isinstance(texts, Iterable) or not flat:
        repair = 'texts.decode("utf-8")' if isinstance(texts, bytes | bytearray) else "encode([text, ...])"
        raise arguments.wrong("texts", texts, "a text or a list of texts", repair)
    found = list(texts)
    for number, text in enumerate(found):
        if not isinstance(text, str):
            raise ArgumentError(
                f"text {number} is {type(text).__name__} ({str(text)[:40]}), not a string",
                repair="give strings alone; an empty one is a text, too",
            )
    return found


def _column(texts: Any) -> Any:
    """The column `text` of a table, or its only one; of rows likewise. What is neither stays as it is."""
    if not is_table(texts):
        flat = len(getattr(texts, "shape", (0,))) == 1
        if isinstance(texts, bytes | bytearray | Mapping | Set) or not isinstance(texts, Iterable) or not flat:
            return texts
        texts = list(texts)
        if not texts or not all(isinstance(each, Mapping) for each in texts):
            return texts
    found = list(rows_of("texts", texts))
    names = list(dict.fromkeys(name for row in found for name in row))
    name = TEXT if TEXT in names else names[0] if len(names) == 1 else None
    if found and name is None:
        raise ArgumentError(
            f"texts has the columns {', '.join(names)}, and none is called {TEXT}",
            repair=f'give one column of them: texts["{names[0]}"] of a table, [row["{names[0]}"] for row in rows]',
        )
    return [row.get(str(name)) for row in found]


def rows_of_texts(tokenizer: Tokenizer, frame: Frame, texts: Sequence[str], length: int, prompt: str = "") -> TextRows:
    """`length`: slots of a row at most; a text is cut at its end, as it is in training."""
    front, back = frame.front, frame.back_alone
    room = length - len(front) - len(back)
    said = len(tokenizer.encode_ids([prompt])[0]) if prompt else 0
    if room <= said:
        prompted = f" and the prompt's {said}" if said else ""
        raise ArgumentError(
            f"a length of {length} leaves no slot for text beside {len(front) + len(back)} marks{prompted}",
            repair=f"a length of at least {length - room + said + 1}",
        )
    flat, lengths = _tokens(tokenizer, [prompt + text for text in texts] if prompt else texts, room)
    kept = np.minimum(lengths, room)
    start = np.concatenate(([0], np.cumsum(kept + len(front) + len(back))))
    ids, segments, inside = (np.zeros(start[-1], dtype=kind) for kind in (np.int64, np.int64, bool))
    inside[:] = True
    for mark, at in [
        *((mark, start[:-1] + place) for place, mark in enumerate(front)),
        *((mark, start[1:] - len(back) + place) for place, mark in enumerate(back)),
    ]:
        ids[at], segments[at], inside[at] = mark.id, mark.segment, False
    ids[inside] = flat[_first_of_each(lengths, kept)]
    return TextRows(
        ids=ids,
        start=start,
        segments=segments if segments.any() else None,
        cut=int((lengths > room).sum()),
        empty=int((lengths <= said).sum()),
        skip=len(front) + said if prompt else 0,
    )


def _tokens(tokenizer: Tokenizer, texts: Sequence[str], room: int) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    """Ids and how many each text has; of one that is far too long only a beginning that has more than are read."""
    limit = room * _LONG
    try:
        return tokenizer.encode_ids(
            [text if len(text) <= limit else tokenizer.beginning(text, room, limit) for text in texts]
        )
    except (TypeError, InputError):  # a text that is no Unicode, or no text
        for number, text in enumerate(texts):
            if _SURROGATE.search(text):
                raise ArgumentError(
                    f"text {number} holds half a character (a surrogate from \\ud800 to \\udfff)",
                    repair='text.encode("utf-8", "replace").decode() puts a question mark in its place',
                ) from None
        raise


def _first_of_each(lengths: NDArray[np.int64], kept: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where the first `kept` of each run stand."""
    begin = np.cumsum(lengths) - lengths
    number = np.arange(int(kept.sum())) - np.repeat(np.cumsum(kept) - kept, kept)
    return np.repeat(begin, kept) + number


def batches(rows: TextRows, tokens: int) -> Iterator[NDArray[np.int64]]:
    """The numbers of the rows of each batch: the longest first, so that too little memory shows at once."""
    lengths = rows.length
    order = np.argsort(-lengths, kind="stable")
    filled = np.cumsum(lengths[order])
    first = 0
    while first < len(order):
        before = filled[first - 1] if first else 0
        last = int(np.searchsorted(filled, before + tokens, side="right"))
        last = max(last, first + 1)
        yield order[first:last]
        first = last


class Grid(NamedTuple):
    """Some rows side by side, padded to the longest of them; all (B,T)."""

    ids: NDArray[np.int64]
    segments: NDArray[np.int64]
    real: NDArray[np.bool_]


def grid_of_rows(rows: TextRows, numbers: NDArray[np.int64], pad: int) -> Grid:
    lengths = rows.length[numbers]
    width = int(lengths.max())
    real = np.arange(width) < lengths[:, None]
    ids = np.full(real.shape, pad, dtype=np.int64)
    places = (rows.start[numbers][:, None] + np.arange(width))[real]
    ids[real] = rows.ids[places]
    segments = np.zeros(real.shape, dtype=np.int64)
    if rows.segments is not None:
        segments[real] = rows.segments[places]
    return Grid(ids, segments, real)


def filled(grid: Grid, pad: int) -> Grid:
    """The grid with rows of padding below that are read like others, up to a number of slots that recurs."""
    slots, width = int(grid.real.sum()), grid.real.shape[1]
    missing = -slots % SLOTS
    if slots < MANY or not missing:
        return grid
    below = (np.arange(-(-missing // width) * width) < missing).reshape(-1, width)
    ids, segments = np.full(below.shape, pad, dtype=np.int64), np.zeros(below.shape, dtype=np.int64)
    return Grid(*(np.concatenate(pair) for pair in zip(grid, (ids, segments, below), strict=True)))


def inputs_of_rows(
    rows: TextRows,
    numbers: NDArray[np.int64],
    pad: int,
    offset: int,
    device: torch.device,
    products: Products | None = None,
) -> Inputs:
    """What the network reads; `offset`: the number of the first position; `products`: what it multiplies with. With
    these, rows that nobody asked for may follow the others."""
    grid = grid_of_rows(rows, numbers, pad)
    ids, segments, real = grid if products is None else filled(grid, pad)
    positions = torch.arange(offset, offset + ids.shape[1], device=device).expand(ids.shape)
    return Inputs(
        ids=torch.from_numpy(ids).to(device),
        layout=layout_of(torch.from_numpy(real).to(device)),
        segments=torch.from_numpy(segments).to(device),
        positions=positions,
        products=products,
    )
