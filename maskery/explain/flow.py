"""Who sees whom in one short row, what each layer knows, and whether a question leaks: as facts and as a picture.

Rows are those of a corpus, cut short, or made up where none is given: what can be read depends on their layout, not on
their words.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from maskery import randomness
from maskery.batches import Batch
from maskery.corpus.mixture import Corpora
from maskery.corpus.store import CorpusFacts, Flag
from maskery.corruption.config import CorruptionConfig
from maskery.corruption.corrupt import corrupt
from maskery.feed import Feed, padded
from maskery.model.config import Mode
from maskery.model.flow import Reading, reach, visible_row
from maskery.model.transformer import visibility_of
from maskery.objectives.config import OBJECTIVES
from maskery.picture import Picture
from maskery.picture.markup import Markup, joined, language, tag
from maskery.picture.svg import Drawing, shortened, text_width
from maskery.picture.theme import LIGHT
from maskery.recipes.recipe import Recipe, Refusal, check
from maskery.rows.config import PAIRS
from maskery.rows.modes import modes, with_every_mode
from maskery.rows.ragged import Rows
from maskery.system import System
from maskery.text.tokenizer import Tokenizer

LENGTH = 16
"""Slots of the row that is drawn: a matrix of it fits half a terminal."""
ROWS = 64
"""Rows whose targets are asked; one of them is drawn."""
MADE_UP = (["one", "day", "the", "old", "cat", "sat"], ["it", "was", "warm"])
"""With [CLS] and two [SEP] a row of twelve slots."""
CELL, LABEL, TOP = 22, 110, 42
"""Of a matrix: side of a cell, widest label, height above the first line."""


@dataclass(frozen=True)
class Drawn:
    """One row."""

    mode: str
    """How it is read; "" where all rows are read alike."""
    tokens: list[str]
    visible: Tensor
    """(t,t)"""
    layers: list[Tensor]
    """L+1 of (t,t): before the first layer and after each."""

    def plain(self) -> dict[str, Any]:
        return {
            "tokens": self.tokens,
            "visible": self.visible.int().tolist(),
            "layers": [known.int().tolist() for known in self.layers],
        }


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

    def plain(self) -> dict[str, Any]:
        modes = {"modes": {each.mode: each.plain() for each in self.drawn}} if self.drawn[0].mode else {}
        return {
            **self.drawn[0].plain(),
            **modes,
            "rows": self.rows,
            "leaks": {name: each and each.leak and each.leak.text() for name, each in self.readings.items()},
            "targets": {name: each.targets for name, each in self.readings.items() if each is not None},
            "kept": {name: each.kept for name, each in self.readings.items() if each is not None},
            "refused": [{"piece": r.piece, "reason": r.reason, "repair": r.repair} for r in self.refusals],
        }


def flow_of(recipe: Recipe, corpus: Corpora | None, seed: int) -> Flow:
    """The flow in a row of the recipe: the one that leaks, or the first."""
    if corpus is None:
        tokenizer = _made_up_tokenizer()
        batch = _made_up(recipe, tokenizer, seed)
    else:
        tokenizer = corpus.tokenizer
        feed = Feed(recipe.changed({"training.length": LENGTH, "training.phases": []}), corpus, seed)
        phase = feed.phases[0]
        epochs, numbers = feed.order(phase).visit(np.arange(ROWS, dtype=np.int64))
        mode = with_every_mode(recipe.visibility, feed.modes(phase, epochs, numbers))
        batch = feed.make(0, phase, epochs, numbers, mode)
    with torch.device("meta"):  # shapes and names alone: the weights play no part
        system = System(recipe, tokenizer.vocabulary)
    readings = system.readings(batch)
    leaking = next((each.leak.row for each in readings.values() if each is not None and each.leak is not None), None)
    return Flow(
        recipe=recipe.name,
        drawn=tuple(_drawn(system, batch, row, tokenizer) for row in _rows_to_draw(batch, leaking)),
        rows=batch.size,
        readings=readings,
        refusals=check(recipe),
    )


def _rows_to_draw(batch: Batch, leaking: int | None) -> list[int]:
    """The row that leaks, or the first; and the first of every other mode, where rows have one."""
    if "mode" not in batch.slots:
        return [leaking or 0]
    modes = batch.slots["mode"][:, 0].tolist()
    first = {mode: modes.index(mode) for mode in sorted(set(modes))}
    if leaking is not None:
        first = {modes[leaking]: leaking} | {mode: row for mode, row in first.items() if mode != modes[leaking]}
    return list(first.values())


def _drawn(system: System, batch: Batch, row: int, tokenizer: Tokenizer) -> Drawn:
    mode = batch.slots.get("mode")
    visible = visible_row(visibility_of(batch) or system.network.visibility, batch, row)
    return Drawn(
        mode="" if mode is None else Mode(int(mode[row, 0])).kind,
        tokens=tokenizer.shown(batch.ids[row, : int(batch.length[row])].numpy()),
        visible=visible,
        layers=reach(visible, system.network.shape.layers),
    )


def _made_up_tokenizer() -> Tokenizer:
    words = [word for piece in MADE_UP for word in piece]
    return Tokenizer.from_pieces(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words])


def _made_up(recipe: Recipe, tokenizer: Tokenizer, seed: int) -> Batch:
    """The same few words in `ROWS` rows, each with a corruption of its own; two pieces where the recipe has pairs."""
    labels = PAIRS.get(recipe.rows.pair).labels
    pieces = MADE_UP if labels or recipe.rows.two_segments else (MADE_UP[0] + MADE_UP[1],)
    tokens = ["[CLS]"]
    segment = [0]
    for number, piece in enumerate(pieces):
        tokens += [*piece, "[SEP]"]
        segment += [number] * (len(piece) + 1)
    ids = np.array([tokenizer.id(token) for token in tokens] * ROWS, dtype=np.int32)
    special = np.array([token in ("[CLS]", "[SEP]") for token in tokens] * ROWS)
    numbers = np.arange(ROWS)
    rows = Rows(
        number=numbers,
        start=np.arange(ROWS + 1) * len(tokens),
        ids=ids,
        original=ids.copy(),
        flags=np.where(special, 0, int(Flag.WORD)).astype(np.uint8),
        special=special,
        segment=np.array(segment * ROWS, dtype=np.uint8),
        document=np.array(segment * ROWS, dtype=np.int32),
        edit=np.zeros(len(ids), dtype=np.uint8),
        label=numbers % len(labels) if labels else np.full(ROWS, -1),
        mode=with_every_mode(recipe.visibility, modes(recipe.visibility, randomness.keys(seed, "flow mode", numbers))),
    )
    facts = CorpusFacts(tokenizer.vocabulary, tokenizer.specials, lambda: np.bincount(ids), lambda: tokenizer.ordinary)
    corrupted = corrupt(rows, _without_similar(recipe.corruption), randomness.keys(seed, "flow", numbers), facts)
    objectives = {name: OBJECTIVES.get(name)() for name in recipe.objectives}
    return padded(corrupted, 0, objectives, tokenizer.specials.pad, recipe.model.position_offset)


def _without_similar(corruption: CorruptionConfig) -> CorruptionConfig:
    """Random words in the place of similar ones, of which made-up words have none; either hides as much."""
    shares = corruption.replace
    changed = shares.model_copy(update={"random": shares.random + shares.similar, "similar": 0.0})
    return corruption.model_copy(update={"replace": changed})


def verdict(reading: Reading | None) -> str:
    """Whether a question can be answered by reading the answer."""
    if reading is None:
        return "the answer stands in no position, so none can be reached"
    if reading.leak is not None:
        return f"LEAKS: {reading.leak.text()}"
    if not reading.targets:
        return "nothing is asked"
    if reading.kept == reading.targets:
        return f"every target ({reading.kept}) is left in the input on purpose (keep), where it can read its answer"
    apart = f", apart from the {reading.kept} of {reading.targets} left in the input on purpose (keep)"
    return "no target can reach its answer" + apart * bool(reading.kept)


def equal_layers(layers: list[Tensor]) -> list[tuple[int, int]]:
    """Stretches of layers, counted from 1, that know the same."""
    stretches: list[tuple[int, int]] = []
    for number in range(1, len(layers)):
        if stretches and torch.equal(layers[number], layers[number - 1]):
            stretches[-1] = (stretches[-1][0], number)
        else:
            stretches.append((number, number))
    return stretches


def visibility(recipe: Recipe, corpus: Corpora | None = None) -> Picture:
    """Who sees whom in a short row of the recipe, what each layer knows, and whether a question leaks."""
    return flow_picture(flow_of(recipe, corpus, recipe.training.seed))


def flow_picture(flow: Flow) -> Picture:
    """Matrices: a line for each position that reads, a column for each that is read."""
    drawings = [drawing for each in flow.drawn for drawing in _matrices(each)]
    title = f"Information flow in {flow.recipe}"
    whole = Drawing(title, max(each.width for each in drawings), sum(each.height for each in drawings))
    top = 0.0
    for each in drawings:
        whole.put(each, 0, top)
        top += each.height
    lang = language("".join(token for each in flow.drawn for token in each.tokens))
    matrices = tag("div", joined(Markup(each.svg()) for each in drawings), {"class": "mk-matrices", "lang": lang})
    style = tag("style", Markup(".maskery-picture .mk-matrices{display:flex;flex-wrap:wrap;gap:8px 24px}"))
    told = [tag("p", joined([tag("b", name), f": {verdict(reading)}"])) for name, reading in flow.readings.items()]
    told += [tag("p", f"refused: {each.piece}: {each.reason}; repair: {each.repair}") for each in flow.refusals]
    note = f"A line for each position that reads, a column for each that is read. Questions asked in {flow.rows} rows."
    return Picture(title, joined([style, matrices, *told]), svg=whole.file(), note=note)


def _matrices(drawn: Drawn) -> list[Drawing]:
    read = f", read {drawn.mode}" if drawn.mode else ""
    drawings = [_matrix(f"Who sees whom{read}", "sees", "does not see", drawn.visible, drawn.tokens)]
    for first, last in equal_layers(drawn.layers):
        name = f"layer {first}" if first == last else f"layers {first} to {last}"
        title = f"Known after {name}{read}"
        drawings.append(_matrix(title, "knows", "does not know", drawn.layers[last], drawn.tokens))
    return drawings


def _matrix(title: str, yes: str, no: str, matrix: Tensor, tokens: list[str]) -> Drawing:
    size = len(tokens)
    left = 34 + min(LABEL, max(text_width(token) for token in tokens))
    drawing = Drawing(title, left + size * CELL + 8, TOP + size * CELL + 12)
    drawing.text(4, 16, title, kind="strong")
    for place, token in enumerate(tokens):
        middle = TOP + (place + 0.7) * CELL
        drawing.text(left - 28, middle, shortened(token, LABEL), anchor="end")
        drawing.text(left - 6, middle, place, anchor="end", kind="soft")
        drawing.text(left + (place + 0.5) * CELL, TOP - 6, place, anchor="middle", kind="soft")
    for query, line in enumerate(matrix.tolist()):
        for key, seen in enumerate(line):
            told = f"{tokens[query]} ({query}) {yes if seen else no} {tokens[key]} ({key})"
            attributes = {
                "x": left + key * CELL + 1,
                "y": TOP + query * CELL + 1,
                "width": CELL - 2,
                "height": CELL - 2,
                "class": "mk-cell mk-seen" if seen else "mk-cell mk-unseen",
                "fill": LIGHT["accent" if seen else "panel"],
            }
            drawing.add("rect", attributes, tag("title", told))
    return drawing
