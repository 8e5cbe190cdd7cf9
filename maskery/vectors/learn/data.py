"""Texts to learn from: units of one text or several, with a score or a class where the loss needs it.

    lines       a text                                       simcse
    pairs       two texts that belong together               multiple_negatives, simcse_supervised, simbert
    triplets    anchor, positive, negative; or more of these triplet, multiple_negatives, simcse_supervised
    scored      two texts and a number                       cosine, cosent
    labelled    two texts and a class                        softmax

Equal texts have one number, so that they are tokenised once and are never each other's negatives. What is left out or
made of something else is told in the notes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256

import numpy as np
from numpy.typing import NDArray

from maskery.errors import InputError

KINDS = ("lines", "pairs", "triplets", "scored", "labelled")
WANTED: dict[str, tuple[str, ...]] = {
    "softmax": ("labelled",),
    "cosine": ("scored",),
    "triplet": ("triplets",),
    "multiple_negatives": ("pairs", "triplets"),
    "cosent": ("scored",),
    "simcse": ("lines",),
    "simcse_supervised": ("pairs", "triplets"),
    "simbert": ("pairs",),
}
"""The kinds of data that a loss learns from."""
ENTAILED, CONTRADICTED = "entailment", "contradiction"


@dataclass(frozen=True, kw_only=True)
class TextSet:
    kind: str
    texts: tuple[str, ...]
    """Every distinct one once."""
    units: NDArray[np.int64]
    """(U,k) numbers of texts."""
    label: NDArray[np.float64]
    """(U,) scores, or numbers of classes; zeros where there are none."""
    labels: tuple[str, ...] = ()
    """The classes by their numbers."""
    notes: tuple[str, ...] = ()
    place: str = "examples"

    def __len__(self) -> int:
        return len(self.units)

    def column(self, at: int) -> list[str]:
        return [self.texts[number] for number in self.units[:, at]]

    @property
    def fingerprint(self) -> str:
        """Of all that is learned from, not of the place."""
        found = sha256(repr((self.kind, self.labels, self.units.shape)).encode())
        found.update(np.ascontiguousarray(self.units).tobytes())
        found.update(np.ascontiguousarray(self.label).tobytes())
        for text in self.texts:
            found.update(text.encode("utf-8", "surrogatepass") + b"\0")
        return found.hexdigest()

    def taken(self, keep: NDArray[np.bool_], note: str = "") -> TextSet:
        """Some of the units; a note tells what became of the others."""
        if not keep.any():
            raise InputError(f"nothing is left to learn from ({note})", where=self.place, repair="give other examples")
        told = (*self.notes, f"{int((~keep).sum()):,} of {len(keep):,} units {note}") if not keep.all() else self.notes
        return replace(self, units=self.units[keep], label=self.label[keep], notes=told)


def text_set(
    kind: str,
    units: Iterable[Sequence[str]],
    label: Sequence[float] | Sequence[str] | NDArray[np.float64] | None = None,
    *,
    labels: Sequence[str] = (),
    notes: Sequence[str] = (),
    place: str = "examples",
) -> TextSet:
    """Of tuples of texts. Scores are numbers, classes are names: their order is that of `labels`, or sorted."""
    numbers: dict[str, int] = {}
    rows = [[numbers.setdefault(_text(text, place), len(numbers)) for text in unit] for unit in units]
    widths = {len(row) for row in rows}
    fewest = {"lines": 1, "triplets": 3}.get(kind, 2)
    if kind not in KINDS or len(widths) != 1 or min(widths) < fewest or (kind != "triplets" and max(widths) != fewest):
        shown = f"units of {', '.join(map(str, sorted(widths)))} texts" if rows else "no units"
        raise InputError(f"{shown} are no {kind}", where=place, repair=f"{fewest} texts in every one")
    names = tuple(labels)
    if kind == "labelled":
        given = [str(each) for each in label] if label is not None else []
        names = names or tuple(sorted(set(given)))
        label = [float(_number(each, names, place)) for each in given]
    values = np.zeros(len(rows)) if label is None else np.asarray(label, dtype=np.float64)
    if len(values) != len(rows) or not np.isfinite(values).all():
        raise InputError(f"{len(rows):,} units and {len(values):,} scores", where=place, repair="one number for each")
    found = TextSet(
        kind=kind,
        texts=tuple(numbers),
        units=np.array(rows, dtype=np.int64),
        label=values,
        labels=names,
        notes=tuple(notes),
        place=place,
    )
    return _cleaned(found)


def _text(text: str, place: str) -> str:
    if not isinstance(text, str):
        raise InputError(f"{str(text)[:40]!r} is no text", where=place, repair="give strings alone")
    return text


def _number(name: str, names: Sequence[str], place: str) -> int:
    if name not in names:
        raise InputError(f"the class {name!r} is none of {', '.join(names)}", where=place, repair="leave it out")
    return names.index(name)


def _cleaned(found: TextSet) -> TextSet:
    empty = np.array([not text.strip() for text in found.texts])
    found = found.taken(np.asarray(~empty[found.units].any(1)), "are left out: a text is empty")
    if found.kind == "triplets":
        known = found.units[:, :2]
        wrong = (found.units[:, 2:, None] == known[:, None, :]).any((1, 2))
        found = found.taken(np.asarray(~wrong), "are left out: a negative equals the anchor or the positive")
    many, distinct = found.units.size, len(np.unique(found.units))
    if distinct < many and found.kind != "lines":
        found = replace(found, notes=(*found.notes, f"{distinct:,} distinct texts stand in {many:,} places"))
    if found.kind == "lines" and distinct < many:
        first = np.zeros(len(found), dtype=bool)
        first[np.unique(found.units[:, 0], return_index=True)[1]] = True
        found = found.taken(first, "are left out: the line was there before")
    return found


def fitted(found: TextSet, loss: str, *, positive: float | None = None, labels: Sequence[str] = ()) -> TextSet:
    """The data as the loss needs it: as it is, or what can be made of it, and told."""
    wanted = WANTED[loss]
    if found.kind in wanted:
        return found
    if "lines" in wanted:
        used = [found.texts[number] for number in np.unique(found.units)]
        notes = (*found.notes, f"all {len(used):,} texts are taken as lines")
        return text_set("lines", ((text,) for text in used), notes=notes, place=found.place)
    if found.kind == "labelled" and {"pairs", "triplets"} & set(wanted):
        return _of_classes(found, wanted)
    if found.kind == "scored" and "pairs" in wanted:
        return _of_scores(found, positive)
    if found.kind == "scored" and "labelled" in wanted:
        return _classes_of_numbers(found, labels)
    if found.kind == "triplets" and "pairs" in wanted:
        notes = (*found.notes, "the negatives are not read: the loss has none")
        return replace(found, kind="pairs", units=found.units[:, :2], notes=notes)
    others = ", ".join(name for name, kinds in WANTED.items() if found.kind in kinds)
    raise InputError(
        f"the loss {loss} learns from {' or '.join(wanted)}, and these are {found.kind}",
        where=found.place,
        repair=f"other data, or one of the losses {others}",
    )


def _of_scores(found: TextSet, positive: float | None) -> TextSet:
    if positive is None and set(np.unique(found.label)) <= {0.0, 1.0}:
        positive = 1.0
    if positive is None:
        low, high = found.label.min(), found.label.max()
        raise InputError(
            f"pairs with scores from {low:g} to {high:g}: which of them belong together?",
            where=found.place,
            repair=f"positive = {high:g}, the lowest score that does; or the loss cosent, which learns from scores",
        )
    pairs = found.taken(found.label >= positive, f"are left out: their score is below {positive:g}")
    return replace(pairs, kind="pairs", label=np.zeros(len(pairs)))


def _classes_of_numbers(found: TextSet, labels: Sequence[str]) -> TextSet:
    names = [f"{value:g}" for value in found.label]
    order = tuple(labels) or tuple(f"{value:g}" for value in np.unique(found.label))
    pairs = zip(found.column(0), found.column(1), strict=True)
    return text_set("labelled", pairs, names, labels=order, notes=found.notes, place=found.place)


def _of_classes(found: TextSet, wanted: Sequence[str]) -> TextSet:
    """Entailed and contradicted texts of a premise, each with each in their order; the shorter list is repeated."""
    if ENTAILED not in found.labels:
        raise InputError(
            f"pairs of the classes {', '.join(found.labels)}: which of them belong together?",
            where=found.place,
            repair=f"call that class {ENTAILED} (and the hard negatives {CONTRADICTED}), or give pairs alone",
        )
    entailed = found.labels.index(ENTAILED)
    contradicted = found.labels.index(CONTRADICTED) if CONTRADICTED in found.labels else -1
    if "triplets" not in wanted or contradicted < 0:
        pairs = found.taken(found.label == entailed, f"are left out: their class is not {ENTAILED}")
        return replace(pairs, kind="pairs", label=np.zeros(len(pairs)), labels=())
    right: dict[int, list[int]] = defaultdict(list)
    wrong: dict[int, list[int]] = defaultdict(list)
    for (premise, other), label in zip(found.units.tolist(), found.label.tolist(), strict=True):
        if label in (entailed, contradicted):
            (right if label == entailed else wrong)[premise].append(other)
    units = [
        (premise, one, wrong[premise][at % len(wrong[premise])])
        for premise, ones in right.items()
        if premise in wrong
        for at, one in enumerate(ones)
    ]
    if not units:
        raise InputError("no text has both an entailed and a contradicted one", where=found.place, repair="give pairs")
    notes = (*found.notes, f"{len(units):,} triplets of {len(found):,} pairs: a text, an entailed, a contradicted one")
    texts = ([found.texts[number] for number in unit] for unit in units)
    return text_set("triplets", texts, notes=notes, place=found.place)
