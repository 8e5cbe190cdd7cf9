"""The row plan: which stretches of the store make row r. Made from sentence and document offsets; no token is read.

A plan is a pure function of (rows config, length, store, seed, split). Its passes lie end to end (`copies`), each
walked with its own draws, so the number of rows is fixed and every epoch is a permutation of the same rows.

A row is read as [CLS] piece [SEP] piece [SEP] ...: a piece is a segment of a pair, or the stretch of one document in
a row that runs over several. A stream has no [CLS], and a [SEP] only where a document ends. Rows of XLNet end with
[CLS] and go on behind their first half. R rows, P pieces.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from maskery.corpus.mixture import Mixture
from maskery.errors import CorpusError, InputError, RecipeError
from maskery.randomness import key, scalars
from maskery.rows.config import CLOSED, KINDS, UNFRAMED, RowsConfig

if TYPE_CHECKING:
    from random import Random

SHORTEST = 5
"""Two tokens in two segments and three specials."""


class Specials(Protocol):
    @property
    def pad(self) -> int: ...
    @property
    def unk(self) -> int: ...
    @property
    def cls(self) -> int: ...
    @property
    def sep(self) -> int: ...
    @property
    def mask(self) -> int | None:
        """A tokenizer may have none."""


class Readable(Protocol):
    """An array, or several that are read as one."""

    def __getitem__(self, places: NDArray[np.int64], /) -> NDArray[Any]: ...


class TokenStore(Protocol):
    """What reading rows needs of a corpus or of several."""

    @property
    def tokens(self) -> Readable: ...
    @property
    def flags(self) -> Readable: ...
    @property
    def specials(self) -> Specials: ...


class SentenceStore(TokenStore, Protocol):
    """What planning rows needs of a corpus: N tokens in S sentences in D documents."""

    @property
    def sentence_start(self) -> NDArray[np.int64]:
        """(S+1,) token offsets."""

    @property
    def document_start(self) -> NDArray[np.int64]:
        """(D+1,) sentence numbers."""

    def documents(self, split: str) -> NDArray[np.int64]: ...
    @property
    def fingerprint(self) -> str: ...
    @property
    def vocabulary(self) -> int: ...


@dataclass(frozen=True, kw_only=True)
class RowPlan:
    part_start: NDArray[np.int64]
    """(C+1,) the rows of corpus c are part_start[c] .. part_start[c+1]."""
    row_start: NDArray[np.int64]
    """(R+1,) the pieces of row r are row_start[r] .. row_start[r+1]."""
    piece_start: NDArray[np.int64]
    """(P,) token offsets in the store."""
    piece_end: NDArray[np.int64]
    piece_segment: NDArray[np.uint8]
    label: NDArray[np.int8]
    """(R,) what the pair builder says of the row; -1 if the row is no pair."""
    counts: dict[str, int]
    """What was used, cut, split or skipped, over all passes."""
    piece_open: NDArray[np.bool_]
    """(P,) whether no [SEP] stands behind the piece: its document goes on in the next row."""
    begins: NDArray[np.int64]
    """Rows that go on from no other: the first of each pass over a corpus."""
    framed: bool = True
    """Whether rows begin with [CLS]."""
    reuse: int = 0
    """Slots behind which the next row goes on, where that is not the end; such rows end with [CLS]. 0 = all."""
    backward: NDArray[np.bool_]
    """(R,) rows whose pieces are read from their ends."""

    def __len__(self) -> int:
        return len(self.label)


@dataclass(frozen=True)
class Outline:
    """The documents of one split as sentence numbers, without sentences and documents that hold no token."""

    split: str
    sentence: memoryview[int]
    """Token offset of each sentence of the store, and of the end; a view, so that nothing is copied."""
    first: list[int]
    end: list[int]
    """Document d of the split is the sentences first[d] .. end[d]."""
    skipped: dict[str, int]

    def __len__(self) -> int:
        return len(self.first)


class Draft:
    """A plan that is being written. Lists take small numbers fastest; full ones are put aside as arrays."""

    def __init__(self, *, framed: bool = True, reuse: int = 0) -> None:
        self.counts = {"cut_tokens": 0, "cut_rows": 0}
        self._framed, self._reuse = framed, reuse
        self._bounds: list[int] = []
        self._segment: list[int] = []
        self._row: list[int] = []
        self._open: list[int] = []
        """Pieces without a [SEP], numbered from the first of all."""
        self._pieces = 0
        """Pieces that were put aside."""
        self._begins: list[int] = []
        self._backward: list[slice] = []
        self._done: list[tuple[NDArray[np.int64], NDArray[np.uint8], NDArray[np.int64]]] = []

    def begin(self) -> None:
        """The next row goes on from no other."""
        self._begins.append(self._rows)

    @property
    def _rows(self) -> int:
        """Rows so far."""
        return len(self._row) // 2 + sum(len(part[2]) for part in self._done)

    def pair(self, a_start: int, a_end: int, b_start: int, b_end: int, label: int) -> None:
        self._bounds.extend((a_start, a_end, b_start, b_end))
        self._segment.extend((0, 1))
        self.close(label)

    def stretch(self, start: int, end: int, *, ends: bool = True) -> None:
        """One more piece of a row without pairs; `ends`: a [SEP] stands behind it."""
        if not ends:
            self._open.append(self._pieces + len(self._segment))
        self._bounds.extend((start, end))
        self._segment.append(0)

    def close(self, label: int = -1) -> None:
        """What was written since the last call is one row."""
        self._row.extend((len(self._segment), label))
        if len(self._row) > 1 << 16:
            self._put_aside()

    def block(
        self,
        bounds: NDArray[np.int64],
        segment: NDArray[np.uint8],
        unfinished: NDArray[np.bool_],
        pieces: NDArray[np.int64],
        *,
        backward: bool,
    ) -> None:
        """Many rows at once: (P,2), (P,), (P,) of their pieces, and (R,) how many pieces each has."""
        self._put_aside()
        first = self._rows
        self._open.extend((self._pieces + np.flatnonzero(unfinished)).tolist())
        self._done.append((bounds, segment, np.stack((np.cumsum(pieces), np.full(len(pieces), -1)), axis=1)))
        self._pieces += len(bounds)
        if backward:
            self._backward.append(slice(first, self._rows))

    def count(self, name: str, number: int = 1) -> None:
        self.counts[name] = self.counts.get(name, 0) + number

    def _put_aside(self) -> None:
        rows = np.array(self._row, dtype=np.int64).reshape(-1, 2)
        bounds = np.array(self._bounds, dtype=np.int64).reshape(-1, 2)
        self._done.append((bounds, np.array(self._segment, dtype=np.uint8), rows))
        self._pieces += len(bounds)
        self._row, self._bounds, self._segment = [], [], []

    def finish(self) -> RowPlan:
        self._put_aside()
        bounds = np.concatenate([part[0] for part in self._done])
        segment = np.concatenate([part[1] for part in self._done])
        rows = np.concatenate([part[2] for part in self._done])
        pieces = np.concatenate([np.diff(part[2][:, 0], prepend=0) for part in self._done])
        tokens = int((bounds[:, 1] - bounds[:, 0]).sum())
        unfinished = np.zeros(len(bounds), dtype=bool)
        unfinished[self._open] = True
        backward = np.zeros(len(rows), dtype=bool)
        for part in self._backward:
            backward[part] = True
        return RowPlan(
            part_start=_frozen(np.array([0, len(rows)]), np.int64),
            row_start=_frozen(np.concatenate(([0], np.cumsum(pieces))), np.int64),
            piece_start=_frozen(bounds[:, 0], np.int64),
            piece_end=_frozen(bounds[:, 1], np.int64),
            piece_segment=_frozen(segment, np.uint8),
            label=_frozen(rows[:, 1], np.int8),
            counts={"rows": len(rows), "tokens": tokens} | self.counts,
            piece_open=_frozen(unfinished, bool),
            begins=_frozen(np.array(self._begins), np.int64),
            framed=self._framed,
            reuse=self._reuse,
            backward=_frozen(backward, bool),
        )


class Planner(Protocol):
    """Writes one pass over the documents; `turn` counts the passes from 0."""

    def __call__(
        self, config: RowsConfig, outline: Outline, length: int, turn: int, draw: Random, draft: Draft
    ) -> None: ...


def _frozen(values: NDArray[Any], kind: Any) -> NDArray[Any]:
    frozen = np.array(values, dtype=kind)
    frozen.flags.writeable = False
    return frozen


def outline_of(store: SentenceStore, split: str) -> Outline:
    starts = np.ascontiguousarray(store.sentence_start, dtype=np.int64)
    documents = np.asarray(store.document_start, dtype=np.int64)
    chosen = np.asarray(store.documents(split), dtype=np.int64)
    filled = np.diff(starts) > 0
    skipped = {}
    if not filled.all():
        # An empty sentence covers no token, so leaving out its offset moves no other sentence.
        rank = np.concatenate(([0], np.cumsum(filled)))
        skipped["empty_sentences"] = int((~filled).sum())
        starts, documents = np.append(starts[:-1][filled], starts[-1]), rank[documents]
    first, end = documents[chosen], documents[chosen + 1]
    some = end > first
    if not some.all():
        skipped["empty_documents"] = int((~some).sum())
    return Outline(split, starts.data, first[some].tolist(), end[some].tolist(), skipped)


def _long_sentences(outline: Outline, length: int) -> int:
    """How many sentences of the split no row can hold whole."""
    too_long = np.concatenate(([0], np.cumsum(np.diff(np.asarray(outline.sentence)) > length - 2)))
    return int((too_long[outline.end] - too_long[outline.first]).sum())


_PLANS: OrderedDict[tuple[object, ...], RowPlan] = OrderedDict()
_KEPT = 4


def plan_rows(
    config: RowsConfig, store: SentenceStore | Mixture, length: int, seed: int, split: str = "train"
) -> RowPlan:
    """The plan of `split` for rows of `length` slots; the last few are kept in memory."""
    name = (store.fingerprint, config, length, seed, split)
    if name not in _PLANS:
        if isinstance(store, Mixture):
            _PLANS[name] = _plan_parts(config, store, length, seed, split)
        else:
            _PLANS[name] = _plan(config, store, length, seed, split)
    _PLANS.move_to_end(name)
    while len(_PLANS) > _KEPT:
        _PLANS.popitem(last=False)
    return _PLANS[name]


def _plan_parts(config: RowsConfig, store: Mixture, length: int, seed: int, split: str) -> RowPlan:
    """The plans of the parts end to end: no row mixes two corpora, and each part has the rows it would have alone."""
    plans = []
    for part in store.parts:
        try:
            plans.append(_plan(config, part, length, seed, split))
        except InputError as error:
            raise type(error)(f"{part.path}: {error.cause}", where=error.where, repair=error.repair) from None
    return _end_to_end(plans, store.tokens.start)


def _end_to_end(plans: list[RowPlan], tokens: NDArray[np.int64]) -> RowPlan:
    """One plan of many; `tokens` are the places at which their stores begin."""
    rows = np.cumsum([0, *(len(plan) for plan in plans)])
    pieces = np.cumsum([0, *(len(plan.piece_start) for plan in plans)])
    number = range(len(plans))
    counts: dict[str, int] = {}
    for plan in plans:
        for name, many in plan.counts.items():
            counts[name] = counts.get(name, 0) + many
    return RowPlan(
        part_start=_frozen(rows, np.int64),
        row_start=_frozen(np.concatenate([[0], *(plans[n].row_start[1:] + pieces[n] for n in number)]), np.int64),
        piece_start=_frozen(np.concatenate([plans[n].piece_start + tokens[n] for n in number]), np.int64),
        piece_end=_frozen(np.concatenate([plans[n].piece_end + tokens[n] for n in number]), np.int64),
        piece_segment=_frozen(np.concatenate([plan.piece_segment for plan in plans]), np.uint8),
        label=_frozen(np.concatenate([plan.label for plan in plans]), np.int8),
        counts=counts,
        piece_open=_frozen(np.concatenate([plan.piece_open for plan in plans]), bool),
        begins=_frozen(np.concatenate([plans[n].begins + rows[n] for n in number]), np.int64),
        framed=plans[0].framed,
        reuse=plans[0].reuse,
        backward=_frozen(np.concatenate([plan.backward for plan in plans]), bool),
    )


def _plan(config: RowsConfig, store: SentenceStore, length: int, seed: int, split: str) -> RowPlan:
    if length < SHORTEST:
        raise RecipeError(
            f"a row of {length} slots has no room for two tokens beside [CLS] and [SEP]",
            where="training.length",
            repair=f"--length {SHORTEST} or more",
        )
    outline = outline_of(store, split)
    if not len(outline):
        raise CorpusError(
            f"the {split} part of the corpus holds no text",
            repair="build the corpus from more documents, or set another share aside (corpus build --heldout)",
        )
    reuse = length // 2 if config.kind in CLOSED else 0
    draft, planner = Draft(framed=config.kind not in UNFRAMED, reuse=reuse), KINDS.get(config.kind)
    for turn in range(config.copies):
        draft.begin()
        planner(config, outline, length, turn, scalars(key(seed, "plan", turn)), draft)
    draft.counts.update(outline.skipped, long_sentences=_long_sentences(outline, length))
    return draft.finish()
