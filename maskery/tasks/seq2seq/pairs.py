"""Sources and their targets as batches: what is read, and at which slots which tokens are asked for.

    decoder    encoder: [CLS] s s [SEP]     decoder: [CLS] t t        asked: t t [SEP]
    from the left, all see the source       [CLS] s s [SEP] t t       asked of [SEP] t t: t t [SEP]
    in the place of a [MASK]                [CLS] s s [SEP] t t M M M       asked of M M M: t t [SEP]

The last are as a model writes that fills masks: M number i stands where target token i stands, sees the source and the
tokens before that, and itself; nobody else sees it. So one pass asks for all tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray

from maskery.batches import Batch, Targets
from maskery.edit import Edit
from maskery.feed import padded
from maskery.model.config import VISIBILITIES
from maskery.model.visibility import Predicate, Recent, View, Visibility
from maskery.objectives.next_token import NextToken
from maskery.rows.ragged import Rows as PlainRows
from maskery.tasks.examples import Examples
from maskery.tasks.framing.rows import Rows
from maskery.text.tokenizer import Tokenizer
from maskery.text.unknown import unknown_in
from maskery.writing.forms import Form

Numbers = NDArray[np.int64]


class Probed:
    """Tokens are seen in their order, a probe by itself alone. `order`: 0 of the source, i of target token i, -i of the
    probe that stands in its place."""

    needs: ClassVar[tuple[str, ...]] = ("order",)

    def bind(self, view: View) -> Predicate:
        mine, theirs = view.q_slots["order"], view.k_slots["order"]
        reach = torch.where(mine < 0, -mine - 1, mine)
        seen = Predicate(lambda b, h, q, k: (theirs[b, k] >= 0) & (theirs[b, k] <= reach[b, q]))
        return seen | Predicate(lambda b, h, q, k: view.k_pos[b, k] == view.q_pos[b, q])


def visibility_of(form: Form) -> Visibility | None:
    """Who sees whom in a batch of pairs; None: as the network reads."""
    if form.start:
        return None
    if form.probe is not None:
        return Probed()
    return Recent(form.reach + 1) if form.reach else VISIBILITIES.get(form.visibility)()


@dataclass(frozen=True, kw_only=True)
class TargetTokens:
    """The targets of E examples end to end; an example without one has no tokens."""

    ids: Numbers
    first: Numbers
    """(E+1,)"""
    lost: Numbers
    """(E,) tokens that were cut off."""
    unknown: int = 0
    strange: str = ""
    """What is unknown, with the remedy."""

    @property
    def lengths(self) -> Numbers:
        return np.diff(self.first)

    def __getitem__(self, number: int) -> Numbers:
        return self.ids[self.first[number] : self.first[number + 1]]

    def cut(self, longest: int) -> TargetTokens:
        """The first tokens of each, `longest` at most."""
        kept = np.minimum(self.lengths, longest)
        within = np.arange(len(self.ids)) - np.repeat(self.first[:-1], self.lengths)
        stays = within < np.repeat(kept, self.lengths)
        return replace(
            self, ids=self.ids[stays], first=np.concatenate(([0], np.cumsum(kept))), lost=self.lengths - kept
        )

    @property
    def notes(self) -> tuple[str, ...]:
        lost, every = int(self.lost.sum()), len(self.ids) + int(self.lost.sum())
        told = []
        if self.unknown:
            told.append(f"{self.unknown:,} of {every:,} tokens of the targets are unknown to the vocabulary")
            told.append(self.strange)
        if lost:
            rows, longest = int((self.lost > 0).sum()), int(self.lengths.max())
            told.append(
                f"{rows:,} of {len(self.lost):,} targets ({rows / len(self.lost):.1%}) are cut to {longest} tokens: "
                f"{lost:,} of {every:,} tokens ({lost / every:.1%}) are lost"
            )
        return tuple(told)


def target_tokens(examples: Examples, tokenizer: Tokenizer) -> TargetTokens:
    texts = ["" if each.label is None else str(each.label) for each in examples]
    ids, lengths = tokenizer.encode_ids(texts)
    unknown = int((ids == tokenizer.specials.unk).sum())
    return TargetTokens(
        ids=ids.astype(np.int64),
        first=np.concatenate(([0], np.cumsum(lengths))),
        lost=np.zeros(len(lengths), dtype=np.int64),
        unknown=unknown,
        strange=unknown_in(tokenizer, texts) if unknown else "",
    )


@dataclass(frozen=True, kw_only=True)
class Pairs:
    form: Form
    source: Rows
    """Framed, one for each example in their order."""
    target: TargetTokens
    end: int
    """The token that ends a target."""
    pad: int
    offset: int
    """The position of a row's first slot."""

    @property
    def longest(self) -> int:
        """Slots of the longest row."""
        if self.form.start:
            return int(
                max(self.source.length.max(initial=1), self.target.lengths.max(initial=0) + len(self.form.start))
            )
        written = self.target.lengths * (2 if self.form.probe is not None else 1) + (self.form.probe is not None)
        return int((self.source.length + written).max(initial=1))

    def prompt(self, number: int) -> list[int]:
        """The source of an example without its frame."""
        framed = self._source(number)
        bare: list[int] = framed[len(self.form.front) : len(framed) - len(self.form.back)].tolist()
        return bare

    def _source(self, number: int) -> Numbers:
        start = self.source.start
        return self.source.ids[start[number] : start[number + 1]].astype(np.int64)

    def batch(self, numbers: Numbers, step: int = 0) -> Batch:
        sources, targets = [self._source(each) for each in numbers], [self.target[each] for each in numbers]
        if self.form.start:
            read = self._padded(numbers, step, [_plain(each) for each in sources])
            return replace(read, decoder=self._written(numbers, step, targets))
        make = self._shifted if self.form.probe is None else self._probed
        made = [make(source, target) for source, target in zip(sources, targets, strict=True)]
        first = [len(each.ids) - len(target) - 1 for each, target in zip(made, targets, strict=True)]
        return self._asked(self._padded(numbers, step, made), first, [self._ended(each) for each in targets])

    def _written(self, numbers: Numbers, step: int, targets: Sequence[Numbers]) -> Batch:
        """The decoder is asked at every slot, also for what it has to write before the text (BART)."""
        start = np.array(self.form.start, dtype=np.int64)
        rows = [_plain(np.concatenate((start, each))) for each in targets]
        wanted = [np.concatenate((start[1:], self._ended(each))) for each in targets]
        return self._asked(self._padded(numbers, step, rows), [0] * len(rows), wanted)

    def _ended(self, target: Numbers) -> Numbers:
        return np.append(target, self.end)

    def _shifted(self, source: Numbers, target: Numbers) -> _Row:
        ids = np.concatenate((source, target))
        place = np.arange(len(ids))
        return _Row(ids, place, place >= len(source), np.zeros_like(ids))

    def _probed(self, source: Numbers, target: Numbers) -> _Row:
        assert self.form.probe is not None
        number = np.arange(1, len(target) + 2)
        before = len(source)
        return _Row(
            ids=np.concatenate((source, target, np.full_like(number, self.form.probe))),
            place=np.concatenate((np.arange(before + len(target)), before - 1 + number)),
            text=np.arange(before + len(target) + len(number)) >= before,
            order=np.concatenate((np.zeros_like(source), number[:-1], -number)),
        )

    def _padded(self, numbers: Numbers, step: int, rows: Sequence[_Row]) -> Batch:
        ids = np.concatenate([each.ids for each in rows]).astype(np.int32)
        text = np.concatenate([each.text for each in rows])
        before, behind = self.form.segments
        made = PlainRows(
            number=numbers,
            start=np.concatenate(([0], np.cumsum([len(each.ids) for each in rows]))),
            ids=ids,
            original=ids,
            flags=np.zeros(len(ids), dtype=np.uint8),
            special=np.zeros(len(ids), dtype=bool),
            segment=np.where(text, behind, before).astype(np.uint8),
            document=text.astype(np.int32),
            edit=np.full(len(ids), Edit.NONE, dtype=np.uint8),
            label=np.full(len(rows), -1, dtype=np.int64),
            order=np.concatenate([each.order for each in rows]),
            position=np.concatenate([each.place for each in rows]),
        )
        return padded(made, step, {}, self.pad, self.offset)

    def _asked(self, batch: Batch, first: Sequence[int], wanted: Sequence[Numbers]) -> Batch:
        """Of each row the slots from `first` on are asked for the tokens `wanted`."""
        width = batch.ids.shape[1]
        slots = [
            row * width + at + np.arange(len(each)) for row, (at, each) in enumerate(zip(first, wanted, strict=True))
        ]
        targets = Targets(index=torch.from_numpy(np.concatenate(slots)), label=torch.from_numpy(np.concatenate(wanted)))
        return replace(batch, targets={NextToken.name: targets})


@dataclass(frozen=True)
class _Row:
    ids: Numbers
    place: Numbers
    """Where each slot stands: that of a probe is the place of its token."""
    text: NDArray[np.bool_]
    """Whether a slot is of the target."""
    order: Numbers
    """As `Probed` reads it."""


def _plain(ids: Numbers) -> _Row:
    return _Row(ids, np.arange(len(ids)), np.zeros(len(ids), dtype=bool), np.zeros_like(ids))
