"""How long rows would be: told before training, and the length that is chosen where none is given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from maskery.errors import InputError
from maskery.tasks.framing.cut import Counts
from maskery.tasks.framing.frame import Frame
from maskery.tasks.framing.make import row_lengths
from maskery.tasks.framing.rows import Rows
from maskery.tasks.framing.tokens import Encoded

PERCENTILES = (50, 90, 95, 99, 100)
_COVERED = 99
_MULTIPLE = 8


@dataclass(frozen=True)
class LengthReport:
    facts: dict[str, dict[str, Any]]
    """By arrangement: rows, mean, percentiles, and the share above each limit. Plain, as JSON holds it."""
    lines: tuple[str, ...]
    """The same as a table."""


class Chosen(NamedTuple):
    length: int
    note: str


def arrangements(encoded: Encoded, frame: Frame) -> dict[str, Counts]:
    """Slots of rows, marks counted, by what stands in them: each field alone, and every two or more together in the
    order of the fields. Rows of choices are told as they are."""
    if encoded.task == "choice":
        return {" + ".join((*encoded.fields, "choice")): row_lengths(encoded, frame)}
    numbers = range(len(encoded.fields))
    orders = [order for size in range(1, len(numbers) + 1) for order in combinations(numbers, size)]
    return {" + ".join(encoded.fields[n] for n in order): row_lengths(encoded, frame, order) for order in orders}


def length_report(
    lengths: Rows | ArrayLike | Mapping[str, ArrayLike], limits: Sequence[int] = (128, 256, 512)
) -> LengthReport:
    """Percentiles of lengths and the share above each limit, for one arrangement or for several by name."""
    if isinstance(lengths, Rows):
        lengths = {"rows": lengths.length}
    elif not isinstance(lengths, Mapping):
        lengths = {"rows": lengths}
    facts = {name: _facts(np.asarray(each, dtype=np.int64), limits) for name, each in lengths.items()}
    return LengthReport(facts, _table(facts, limits))


def choose_length(lengths: ArrayLike, most: int) -> Chosen:
    """Slots enough for 99 rows of 100, a multiple of 8, at most what the model reads."""
    known = np.asarray(lengths, dtype=np.int64)
    if not known.size:
        raise InputError("no rows to choose a length for", repair="give training data, or set rows.length")
    enough = int(np.percentile(known, _COVERED, method="inverted_cdf"))
    length = min(-(-enough // _MULTIPLE) * _MULTIPLE, most)
    above = int((known > length).sum())
    why = f"{_COVERED} % of the rows have at most {enough} slots" if enough <= length else "the model reads no more"
    longest = f"the longest {'has' if above == 1 else 'would have'} {int(known.max())}"
    are = "is" if above == 1 else "are"
    rest = f"{above:,} of {known.size:,} rows {are} longer, {longest}" if above else "none is longer"
    return Chosen(length, f"rows of {length} slots: {why}; {rest}")


def row_length(asked: int, lengths: ArrayLike, longest: int | None, usual: int) -> Chosen:
    """The length as it was asked for, or the chosen one where that is 0. `longest`: what the model can read, None: any
    number; `usual`: what it was made for."""
    if not asked:
        return choose_length(lengths, usual if longest is None else longest)
    if longest is not None and asked > longest:
        raise InputError(
            f"rows of {asked} slots, and the model reads {longest} at most",
            where="rows.length",
            repair=f"set it to {longest} or less; rows.windows reads longer texts in parts",
        )
    return Chosen(asked, f"rows of {asked} slots, as asked for")


def _facts(lengths: Counts, limits: Sequence[int]) -> dict[str, Any]:
    if not lengths.size:
        return {"rows": 0}
    found = np.percentile(lengths, PERCENTILES, method="inverted_cdf")
    return {
        "rows": int(lengths.size),
        "mean": float(lengths.mean()),
        "percentiles": {str(each): int(value) for each, value in zip(PERCENTILES, found, strict=True)},
        "over": {str(limit): float((lengths > limit).mean()) for limit in limits},
    }


def _table(facts: Mapping[str, Mapping[str, Any]], limits: Sequence[int]) -> tuple[str, ...]:
    head = ["slots", "rows", "mean", *(f"{p} %" for p in PERCENTILES[:-1]), "longest", *(f"over {n}" for n in limits)]
    body = [[name, *_cells(each, len(head) - 1)] for name, each in facts.items()]
    widths = [max(len(line[at]) for line in [head, *body]) for at in range(len(head))]
    return tuple(
        "  ".join(
            cell.ljust(width) if at == 0 else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        for line in [head, *body]
    )


def _cells(facts: Mapping[str, Any], number: int) -> list[str]:
    if not facts["rows"]:
        return ["0", *["-"] * (number - 1)]
    return [
        f"{facts['rows']:,}",
        f"{facts['mean']:.1f}",
        *(str(value) for value in facts["percentiles"].values()),
        *(f"{share:.1%}" for share in facts["over"].values()),
    ]
