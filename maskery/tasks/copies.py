"""Rows of the development or test set that stand in the training set as well: a score on them measures memory.

An exact copy has the same texts but for case and white space; a near copy shares four fifths of its three-character
pieces in every text (maskery/text/near.py).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from maskery.tasks.examples import Example, Examples
from maskery.tasks.judge.words import share_text
from maskery.tasks.resolve import Splits
from maskery.text.near import Near, Row, near_copies, normal

FILE = "copies.tsv"
NOTABLE = 0.01
"""The share of copies within the training set from which on they are reported."""


@dataclass(frozen=True, kw_only=True)
class Labelled:
    """Rows of texts with what is said of each; None: nobody said."""

    rows: Sequence[Row]
    """Normal (`normal`), equally many texts in each."""
    labels: Sequence[Hashable | None]

    @classmethod
    def of(cls, examples: Examples) -> Labelled:
        rows = [tuple(map(normal, (*each.texts, " | ".join(each.choices)))) for each in examples]
        if not any(each.choices for each in examples):
            rows = [row[:-1] for row in rows]
        return cls(rows=rows, labels=[_said(each) for each in examples])


def _said(example: Example) -> Hashable | None:
    if example.answers is not None:
        return frozenset(each.text for each in example.answers)
    return example.label if example.label is not None else example.spans


@dataclass(frozen=True, kw_only=True)
class Copies:
    """What a set has in common with the training set."""

    rows: int
    exact: Mapping[int, int]
    """Number of a row -> number of the first row of train that is equal."""
    relabelled: frozenset[int]
    """Exact copies whose label no equal row of train has."""
    near: Near

    def plain(self) -> dict[str, Any]:
        searched = {} if self.near.searched == self.rows - len(self.exact) else {"near_searched": self.near.searched}
        counts = {"rows": self.rows, "exact": len(self.exact), "other_label": len(self.relabelled)}
        return {**counts, "near": len(self.near.found), **searched}


def copies_of(rows: Labelled, train: Labelled) -> Copies:
    where: dict[Row, list[int]] = {}
    for number, row in enumerate(train.rows):
        where.setdefault(row, []).append(number)
    exact = {number: where[row][0] for number, row in enumerate(rows.rows) if row in where}
    relabelled = frozenset(
        number
        for number in exact
        if _differs(rows.labels[number], [train.labels[at] for at in where[rows.rows[number]]])
    )
    others, known = [number for number in range(len(rows.rows)) if number not in exact], list(where)
    found = near_copies([rows.rows[number] for number in others], known)
    pairs = {others[number]: where[known[at]][0] for number, at in found.found.items()}
    near = Near(found=pairs, searched=found.searched, characters=found.characters)
    return Copies(rows=len(rows.rows), exact=exact, relabelled=relabelled, near=near)


def _differs(label: Hashable | None, others: Sequence[Hashable | None]) -> bool:
    return label is not None and None not in others and label not in others


def sentence(name: str, found: Copies, repair: str) -> str:
    """One sentence about a set called `name`; empty: there is no copy, and all rows were searched for near ones."""
    exact, near = len(found.exact), len(found.near.found)
    told = (
        [f"{exact:,} ({share_text(exact / found.rows)}) are exact copies of train rows{_labels(found)}"]
        if exact
        else []
    )
    if near:
        what = "near copies" if exact else "are near copies of train rows"
        told.append(f"{near:,} ({share_text(near / found.rows)}) {what}{_compared(found.near)}")
    limits = _limits(name, found)
    if not told:
        return limits
    return f"{name}: of {found.rows:,} rows {' and '.join(told)}: scores on them measure memory; {repair}" + (
        f" ({limits})" if limits else ""
    )


def _labels(found: Copies) -> str:
    many = len(found.relabelled)
    return f", {many:,} of them with another label than there" if many else ""


def _compared(near: Near) -> str:
    return f" (by the first {near.characters:,} characters of each text)" if near.characters else ""


def _limits(name: str, found: Copies) -> str:
    """What was not searched for near copies."""
    others = found.rows - len(found.exact)
    if found.near.searched == others:
        return ""
    if not found.near.searched:
        return f"{name}: near copies of train rows are not searched for: the texts are too many"
    return (
        f"{name}: near copies are searched for {found.near.searched:,} of {others:,} rows: too many resemble each other"
    )


def within(train: Labelled) -> dict[str, int]:
    """Rows of the training set that repeat an earlier one, and how many of these have another label than all before."""
    before: dict[Row, list[Hashable | None]] = {}
    repeated = other = 0
    for row, label in zip(train.rows, train.labels, strict=True):
        seen = before.setdefault(row, [])
        repeated += bool(seen)
        other += bool(seen) and _differs(label, seen)
        seen.append(label)
    return {"rows": len(train.rows), "exact": repeated, "other_label": other}


def within_sentence(found: Mapping[str, int]) -> str:
    """Empty: they are few."""
    rows, exact, other = (found[key] for key in ("rows", "exact", "other_label"))
    if exact <= NOTABLE * rows:
        return ""
    labels = f", {other:,} of them with another label" if other else ""
    return f"train: {exact:,} of {rows:,} rows ({share_text(exact / rows)}) are copies of an earlier row{labels}"


@dataclass(frozen=True, kw_only=True)
class Overlap:
    """What the sets of a run have in common."""

    plain: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Set -> counts, as in evaluation.json."""
    notes: tuple[str, ...] = ()
    table: str = ""
    """The copies, one a line; empty: there are none."""


def overlap_of(splits: Splits) -> Overlap:
    """Of development and test set with the training set, and of the training set with itself."""
    train = Labelled.of(splits.train)
    inside = within(train)
    plain: dict[str, Mapping[str, int]] = {"train": inside}
    notes, lines = [within_sentence(inside)], []
    for name, examples in (("dev", splits.dev), ("test", splits.test)):
        if examples is None or not len(examples):
            continue
        rows = Labelled.of(examples)
        if len(rows.rows[0]) != len(train.rows[0]):
            continue
        found = copies_of(rows, train)
        plain[name] = found.plain()
        place = f", {FILE} in the run's folder lists them" if any(each.file for each in examples) else ""
        notes.append(sentence(name, found, f"remove them from {name}{place}"))
        lines += [
            _line(name, examples, splits.train, found, number) for number in sorted({*found.exact, *found.near.found})
        ]
    head = "set\tguid\tline\tcopy\ttrain_guid\ttrain_line\tother_label"
    table = "".join(f"{line}\n" for line in (head, *lines)) if lines else ""
    return Overlap(plain=plain, notes=tuple(filter(None, notes)), table=table)


def _line(name: str, examples: Examples, train: Examples, found: Copies, number: int) -> str:
    exact = number in found.exact
    one, other = examples[number], train[found.exact[number] if exact else found.near.found[number]]
    labels = _said(one), _said(other)
    differs = number in found.relabelled if exact else None not in labels and labels[0] != labels[1]
    places = [str(each.line or "") for each in (one, other)]
    kind = "exact" if exact else "near"
    return "\t".join([name, one.guid, places[0], kind, other.guid, places[1], "yes" if differs else "no"])
