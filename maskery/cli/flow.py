"""`maskery inspect --flow`: who sees whom in one short row, what each layer knows, and whether a question leaks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from maskery.batches import Batch
from maskery.corpus.store import Corpus
from maskery.feed import Feed
from maskery.model.flow import find_leak, reach, visible_row
from maskery.recipes.recipe import Recipe, Refusal, check
from maskery.system import System

if TYPE_CHECKING:
    from rich.console import Console

LENGTH = 16
"""Slots of the row that is drawn: a matrix of it fits half a terminal."""
_SEEN, _UNSEEN = "██", "· "


@dataclass(frozen=True)
class Flow:
    """What is drawn; found even for recipes that are refused, because that is when it is wanted."""

    batch: Batch
    tokens: list[str]
    visible: Tensor
    """(t,t)"""
    layers: list[Tensor]
    """L+1 of (t,t): before the first layer and after each."""
    verdicts: dict[str, str | None]
    """Each objective's leak, or None."""
    unasked: tuple[str, ...]
    """Objectives whose answer stands in no slot."""
    refusals: list[Refusal]

    @property
    def leaks(self) -> bool:
        return any(self.verdicts.values())

    def plain(self) -> dict[str, Any]:
        return {
            "tokens": self.tokens,
            "visible": self.visible.int().tolist(),
            "layers": [known.int().tolist() for known in self.layers],
            "leaks": self.verdicts,
            "refused": [{"piece": r.piece, "reason": r.reason, "repair": r.repair} for r in self.refusals],
        }


def flow_of(recipe: Recipe, corpus: Corpus, seed: int) -> Flow:
    """The flow in the first row that the recipe makes when rows are `LENGTH` slots long."""
    feed = Feed(recipe.changed({"training.length": LENGTH, "training.phases": []}), corpus, seed)
    phase, epochs, numbers = feed.numbers(0)
    batch = feed.make(0, phase, epochs[:1], numbers[:1])
    with torch.device("meta"):  # shapes and names alone: the weights play no part
        system = System(recipe, corpus.vocabulary)
    visible = visible_row(system.network.visibility, batch, 0)
    verdicts: dict[str, str | None] = {}
    for name, objective in system.objectives.items():
        answers = objective.answers(batch)
        leak = None if answers is None else find_leak(system.network, batch, answers.asked, answers.answer)
        verdicts[name] = None if leak is None else leak.text()
    return Flow(
        batch=batch,
        tokens=corpus.tokenizer.tokens(batch.ids[0, : int(batch.length[0])].numpy()),
        visible=visible,
        layers=reach(visible, recipe.model.layers),
        verdicts=verdicts,
        unasked=tuple(name for name, objective in system.objectives.items() if objective.answers(batch) is None),
        refusals=check(recipe),
    )


def print_flow(flow: Flow, console: Console) -> None:
    console.print("who sees whom: a line for each position that reads, a column for each that is read")
    _print_matrix(flow.visible, flow.tokens, console)
    for first, last in _equal_layers(flow.layers):
        name = f"layer {first}" if first == last else f"layers {first} to {last}"
        console.print(f"\nwhat each position knows after {name}")
        _print_matrix(flow.layers[last], flow.tokens, console)
    console.print()
    for name, leak in flow.verdicts.items():
        if name in flow.unasked:
            console.print(f"{name}: the answer stands in no position, so none can be reached")
        else:
            console.print(f"{name}: no target can reach its answer" if leak is None else f"{name}: LEAKS: {leak}")
    for refusal in flow.refusals:
        console.print(f"refused: {refusal.piece}: {refusal.reason}\n  repair: {refusal.repair}")


def _print_matrix(matrix: Tensor, tokens: list[str], console: Console) -> None:
    width = min(16, max(map(len, tokens)))
    console.print(f"{'':{width}}    " + " ".join(str(column % 10) for column in range(len(tokens))))
    for number, (token, line) in enumerate(zip(tokens, matrix.tolist(), strict=True)):
        cells = "".join(_SEEN if seen else _UNSEEN for seen in line)
        console.print(f"{token[:width]:>{width}} {number:>2} {cells}", no_wrap=True, overflow="crop")


def _equal_layers(layers: list[Tensor]) -> list[tuple[int, int]]:
    """Stretches of layers, counted from 1, that know the same."""
    stretches: list[tuple[int, int]] = []
    for number in range(1, len(layers)):
        if stretches and torch.equal(layers[number], layers[number - 1]):
            stretches[-1] = (stretches[-1][0], number)
        else:
            stretches.append((number, number))
    return stretches
