"""Rows of made-up words, for pictures without a corpus: what can be read depends on the layout of rows alone."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from maskery import randomness
from maskery.batches import Batch
from maskery.corpus.store import CorpusFacts, Flag
from maskery.corruption.config import CorruptionConfig
from maskery.feed import padded, read_and_written
from maskery.objectives.build import objectives_of
from maskery.objectives.config import ASKED_OF_DECODER
from maskery.recipes.recipe import Recipe
from maskery.rows.config import CLOSED, PAIRS, UNFRAMED
from maskery.rows.modes import modes, with_every_mode
from maskery.rows.ragged import Rows
from maskery.text.tokenizer import Tokenizer

ROWS = 64
"""Rows whose targets are asked; one of them is drawn."""
FIRST, SECOND = ["one", "day", "the", "old", "cat", "sat"], ["it", "was", "warm"]


@dataclass(frozen=True)
class Layout:
    """One row, slot by slot."""

    tokens: list[str]
    segment: list[int]
    document: list[int]
    part: list[int] | None = None


def tokenizer() -> Tokenizer:
    return Tokenizer.from_pieces(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *FIRST, *SECOND])


def layout_of(recipe: Recipe) -> Layout:
    """A row as the recipe's kind lays it out: twelve slots at most."""
    if recipe.rows.kind in CLOSED:
        tokens = [*FIRST, *SECOND[:2], "[SEP]", SECOND[2], "[SEP]", "[CLS]"]
        return Layout(tokens, [0] * 9 + [1, 1, 2], [0] * 9 + [1, 1, 2], [0] * 6 + [1] * 6)
    if recipe.rows.kind in UNFRAMED:
        return Layout([*FIRST, "[SEP]", *SECOND], [0] * 10, [0] * 7 + [1] * 3)
    if PAIRS.get(recipe.rows.pair).labels or recipe.rows.two_segments:
        both = [0] * 8 + [1] * 4
        return Layout(["[CLS]", *FIRST, "[SEP]", *SECOND, "[SEP]"], both, both)
    return Layout(["[CLS]", *FIRST, *SECOND, "[SEP]"], [0] * 11, [0] * 11)


def batch(recipe: Recipe, words: Tokenizer, seed: int) -> Batch:
    """The same few words in `ROWS` rows, each with a corruption and an order of its own."""
    layout, numbers = layout_of(recipe), np.arange(ROWS)
    clean = _clean(recipe, layout, words, seed)
    facts = CorpusFacts(words.vocabulary, words.specials, lambda: np.bincount(clean.ids), lambda: words.ordinary)
    keys = randomness.keys(seed, "flow", numbers)
    corruption = _without_similar(recipe.corruption)
    return asked_about(recipe, *read_and_written(clean, recipe, corruption, keys, facts, words.specials), words)


def asked_about(recipe: Recipe, rows: Rows, to_write: Rows | None, words: Tokenizer) -> Batch:
    """Corrupted rows, and what a decoder reads, as a batch with the targets of the recipe."""
    asked = objectives_of(recipe.objectives)
    of_decoder = {name: each for name, each in asked.items() if to_write is not None and name in ASKED_OF_DECODER}
    others = {name: each for name, each in asked.items() if name not in of_decoder}
    pad, offset = words.specials.pad, recipe.model.position_offset
    made = padded(rows, 0, others, pad, offset)
    if to_write is None:
        return made
    return replace(made, decoder=padded(to_write, 0, of_decoder, pad, offset))


def _clean(recipe: Recipe, layout: Layout, words: Tokenizer, seed: int) -> Rows:
    labels, numbers = PAIRS.get(recipe.rows.pair).labels, np.arange(ROWS)
    ids = np.array([words.id(token) for token in layout.tokens] * ROWS, dtype=np.int32)
    special = np.array([token in ("[CLS]", "[SEP]") for token in layout.tokens] * ROWS)
    begins = np.array([token in (FIRST[0], SECOND[0]) for token in layout.tokens] * ROWS)
    flags = np.where(special, 0, int(Flag.WORD)) | np.where(begins, int(Flag.SENTENCE), 0)
    return Rows(
        number=numbers,
        start=np.arange(ROWS + 1) * len(layout.tokens),
        ids=ids,
        original=ids.copy(),
        flags=flags.astype(np.uint8),
        special=special,
        segment=np.array(layout.segment * ROWS, dtype=np.uint8),
        document=np.array(layout.document * ROWS, dtype=np.int32),
        edit=np.zeros(len(ids), dtype=np.uint8),
        label=numbers % len(labels) if labels else np.full(ROWS, -1),
        mode=with_every_mode(recipe.visibility, modes(recipe.visibility, randomness.keys(seed, "flow mode", numbers))),
        part=None if layout.part is None else np.array(layout.part * ROWS, dtype=np.uint8),
    )


def _without_similar(corruption: CorruptionConfig) -> CorruptionConfig:
    """Random words in the place of similar ones, of which made-up words have none; either hides as much."""
    shares = corruption.replace
    changed = shares.model_copy(update={"random": shares.random + shares.similar, "similar": 0.0})
    return corruption.model_copy(update={"replace": changed})
