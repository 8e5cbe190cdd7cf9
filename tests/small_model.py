"""Tiny networks, rows and batches for tests of the model, the objectives and the loop."""

from __future__ import annotations

import numpy as np
import torch

from maskery.batches import Batch
from maskery.edit import Edit
from maskery.feed import padded
from maskery.model.config import ModelConfig, Shape
from maskery.model.initial import initialise
from maskery.model.transformer import Inputs, Network
from maskery.objectives.config import OBJECTIVES
from maskery.recipes.recipe import recipe
from maskery.rows.ragged import Rows

VOCABULARY = 50
TINY = {
    "model.layers": 2,
    "model.width": 16,
    "model.heads": 2,
    "model.max_length": 64,
    "model.dropout": 0.0,
    "model.attention_dropout": 0.0,
    "training.length": 32,
    "training.phases": [],
}


def small_recipe(name="bert", **changes):
    """A published recipe with a tiny network; `changes` write the dots of a key as two underscores."""
    return recipe(name, TINY | {key.replace("__", "."): value for key, value in changes.items()})


def small_shape(visibility="full", **changes) -> Shape:
    plain = {"layers": 2, "width": 16, "heads": 2, "max_length": 64, "dropout": 0.0, "attention_dropout": 0.0}
    return ModelConfig(**(plain | changes)).shape(VOCABULARY, visibility)


def small_network(visibility="full", *, std=0.3, seed=0, pooler=False, **changes) -> Network:
    """Out of training, with weights large enough that everything visible has a visible effect."""
    network = Network(small_shape(visibility, **changes), pooler=pooler)
    initialise(network, std, seed)
    return network.eval()


def rows_of(lengths, seed=0, chosen=0.3) -> Rows:
    """Random rows in two documents each; a share `chosen` of the slots is marked as edited, every second row has a
    label."""
    draw = np.random.default_rng(seed)
    lengths = np.asarray(lengths, dtype=np.int64)
    count = int(lengths.sum())
    start = np.concatenate(([0], np.cumsum(lengths)))
    slot = np.arange(count) - np.repeat(start[:-1], lengths)
    second = (slot >= np.repeat(lengths // 2, lengths)).astype(np.int32)
    original = draw.integers(5, VOCABULARY, count).astype(np.int32)
    edit = np.where(draw.random(count) < chosen, Edit.MASK, Edit.NONE).astype(np.uint8)
    return Rows(
        number=np.arange(len(lengths)),
        start=start,
        ids=np.where(edit, 4, original).astype(np.int32),
        original=original,
        flags=np.ones(count, dtype=np.uint8),
        special=np.zeros(count, dtype=bool),
        segment=second.astype(np.uint8),
        document=second,
        edit=edit,
        label=np.where(np.arange(len(lengths)) % 2, -1, draw.integers(0, 2, len(lengths))),
        order=np.random.default_rng(seed).integers(0, 5, count),
    )


def part_of(rows: Rows, first: int, stop: int) -> Rows:
    """Rows first .. stop-1 alone."""
    cut = slice(int(rows.start[first]), int(rows.start[stop]))
    by_row = {"number": rows.number[first:stop], "label": rows.label[first:stop]}
    by_slot = ("ids", "original", "flags", "special", "segment", "document", "edit", "order", "asked")
    return Rows(
        start=rows.start[first : stop + 1] - rows.start[first],
        **by_row,
        **{name: getattr(rows, name)[cut] for name in by_slot if getattr(rows, name) is not None},
    )


def batch_of(rows: Rows, objectives=()) -> Batch:
    return padded(rows, 0, {name: OBJECTIVES.get(name)() for name in objectives}, 0, 0)


def small_batch(lengths, objectives=(), seed=0, chosen=0.3) -> Batch:
    return batch_of(rows_of(lengths, seed, chosen), objectives)


def inputs(ids, layout, *, segments=None, positions=None, slots=None) -> Inputs:
    rows, width = ids.shape
    return Inputs(
        ids=ids,
        layout=layout,
        segments=torch.zeros_like(ids) if segments is None else segments,
        positions=torch.arange(width).expand(rows, width) if positions is None else positions,
        slots={"document": torch.zeros_like(ids)} if slots is None else slots,
    )
