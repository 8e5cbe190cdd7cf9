"""Who sees whom in one short row, what each layer knows, and whether a question leaks.

Rows are those of a corpus, cut short, or made up where none is given.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from maskery.batches import Batch
from maskery.corpus.mixture import Corpora
from maskery.errors import RefusedError
from maskery.explain import made_up
from maskery.explain.made_up import ROWS
from maskery.explain.sights import Drawn, Loss, drawn_row, loss_of
from maskery.feed import Feed
from maskery.model.flow import Reading
from maskery.recipes.recipe import Recipe, Refusal, check
from maskery.rows.modes import with_every_mode
from maskery.system import System, leakage
from maskery.text.tokenizer import Tokenizer

LENGTH = 16
"""Slots of the row that is drawn: a matrix of it fits half a terminal."""


@dataclass(frozen=True)
class Flow:
    """What is drawn; found even for recipes that are refused, because that is when it is wanted."""

    recipe: str
    drawn: tuple[Drawn, ...]
    """The row that leaks, or the first; where rows differ in how they are read, one of each mode."""
    rows: int
    """Rows whose targets were asked."""
    readings: dict[str, Reading | None]
    """For each objective; None where its answer stands in no slot."""
    refusals: list[Refusal]

    @property
    def loss(self) -> Loss | None:
        """What one stream would forget, where the recipe has two."""
        return loss_of(self.drawn[0].sides[0])

    visibility: str
    """That of the row which is drawn first."""

    @property
    def leaks(self) -> dict[str, str]:
        """Questions whose targets can read their answers, and the way of the first of them."""
        return {name: each.leak.text() for name, each in self.readings.items() if each is not None and each.leak}

    def require_no_leak(self) -> None:
        """Refuse the recipe as `pretrain` does."""
        for name, leak in self.leaks.items():
            error = leakage(name, self.drawn[0].mode or self.visibility, leak)
            raise RefusedError(error.cause, where=f"recipe {self.recipe}", repair=error.repair)

    def plain(self) -> dict[str, Any]:
        loss = self.loss
        modes = {"modes": {each.mode: each.plain() for each in self.drawn}} if self.drawn[0].mode else {}
        return {
            **self.drawn[0].plain(),
            **modes,
            **({} if loss is None else {"wanted": loss.wanted, "kept_by_one_stream": list(loss.kept)}),
            "rows": self.rows,
            "leaks": {name: each and each.leak and each.leak.text() for name, each in self.readings.items()},
            "targets": {name: each.targets for name, each in self.readings.items() if each is not None},
            "kept": {name: each.kept for name, each in self.readings.items() if each is not None},
            "refused": [{"piece": r.piece, "reason": r.reason, "repair": r.repair} for r in self.refusals],
        }


def reads_in_order(recipe: Recipe) -> bool:
    """Whether there is more to see than that everybody sees everybody."""
    return bool(recipe.model.decoder or recipe.model.memory) or set(recipe.visibility.shares) != {"full"}


def flow_of(recipe: Recipe, corpus: Corpora | None, seed: int) -> Flow:
    """The flow in a row of the recipe: the one that leaks, or the first; of two streams the one in which one stream
    would lose most."""
    if corpus is None:
        tokenizer = made_up.tokenizer()
        return flow_in(recipe, made_up.batch(recipe, tokenizer, seed), tokenizer)
    feed = short_feed(recipe, corpus, seed)
    phase = feed.phases[0]
    epochs, numbers = feed.order(phase).visit(np.arange(ROWS, dtype=np.int64))
    mode = with_every_mode(recipe.visibility, feed.modes(phase, epochs, numbers))
    batch = feed.make(0, phase, epochs, numbers, mode)
    return flow_in(recipe, batch, corpus.tokenizer, corpus.target_tokenizer, corpus.target_vocabulary)


def flow_in(
    recipe: Recipe,
    batch: Batch,
    tokenizer: Tokenizer,
    theirs: Tokenizer | None = None,
    target_vocabulary: int = 0,
    *,
    first: bool = False,
) -> Flow:
    """The flow in these rows; `theirs` is the tokenizer of what a decoder writes. `first`: where nothing leaks the
    first row is drawn, whatever the others show."""
    with torch.device("meta"):  # shapes and names alone: the weights play no part
        system = System(recipe, tokenizer.vocabulary, target_vocabulary)
    readings = system.readings(batch)

    def drawn(row: int) -> Drawn:
        return drawn_row(system, batch, row, tokenizer, theirs or tokenizer)

    leaking = next((each.leak.row for each in readings.values() if each is not None and each.leak is not None), None)
    return Flow(
        recipe=recipe.name,
        drawn=tuple(map(drawn, _rows_to_draw(batch, leaking, None if first else drawn))),
        rows=batch.size,
        readings=readings,
        refusals=check(recipe),
        visibility=recipe.visibility.kind,
    )


def short_feed(recipe: Recipe, corpus: Corpora, seed: int) -> Feed:
    """Rows of a corpus that are short enough to be drawn."""
    return Feed(recipe.changed({"training.length": LENGTH, "training.phases": []}), corpus, seed)


def _rows_to_draw(batch: Batch, leaking: int | None, drawn: Callable[[int], Drawn] | None) -> list[int]:
    """The row that leaks, or the first; and the first of every other mode, where rows have one. With `drawn` that of
    two streams in which one stream would lose most."""
    wanted = drawn is not None and batch.asked is not None
    losses = [loss_of(drawn(row).sides[0]) for row in range(batch.size)] if wanted and drawn else []
    lost = [loss.wanted - loss.kept[-1] for loss in losses if loss is not None]
    if leaking is None and lost:
        return [lost.index(max(lost))]
    if "mode" not in batch.slots:
        return [leaking or 0]
    modes = batch.slots["mode"][:, 0].tolist()
    first = {mode: modes.index(mode) for mode in sorted(set(modes))}
    if leaking is not None:
        first = {modes[leaking]: leaking} | {mode: row for mode, row in first.items() if mode != modes[leaking]}
    return list(first.values())


def equal_layers(layers: Sequence[Tensor]) -> list[tuple[int, int]]:
    """Stretches of layers, counted from 1, that know the same."""
    stretches: list[tuple[int, int]] = []
    for number in range(1, len(layers)):
        if stretches and torch.equal(layers[number], layers[number - 1]):
            stretches[-1] = (stretches[-1][0], number)
        else:
            stretches.append((number, number))
    return stretches
