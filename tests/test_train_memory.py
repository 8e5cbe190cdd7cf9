"""The estimate of memory against what autograd really keeps, and the choice that follows from it."""

from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pytest
import torch
from small_model import VOCABULARY, batch_of, rows_of, small_recipe

from maskery.batches import Targets
from maskery.edit import Edit
from maskery.feed import with_draws
from maskery.model import linear
from maskery.model.config import ModelConfig
from maskery.objectives.cross_entropy import CHUNK_BYTES
from maskery.system import System
from maskery.train.memory import (
    choose_micro,
    fixed_bytes,
    kept_bytes,
    passing_bytes,
    peak_bytes,
    row_bytes,
    table_bytes,
)

RATE = 0.15
DROPOUT = {"model__dropout": 0.1, "model__attention_dropout": 0.1}


def asked_batch(rows, length, objectives):
    """Full rows in which exactly the given share of slots is asked."""
    made = rows_of([length] * rows, chosen=0)
    edit = made.edit.reshape(rows, length).copy()
    edit[:, np.linspace(1, length - 1, round(RATE * length)).astype(int)] = Edit.MASK
    return batch_of(type(made)(**{**_fields(made), "edit": edit.flatten()}), objectives)


def _fields(rows):
    return {name: getattr(rows, name) for name in rows.__dataclass_fields__}


def measured(recipe, rows, length, batch=None, room=False):
    """Bytes that the forward pass of a training step leaves for the backward pass, weights apart; with or without the
    room that oneDNN has behind the rows, on every processor."""
    system = System(recipe, VOCABULARY)
    system.initialise(0)
    system.train()
    mine = {parameter.untyped_storage().data_ptr() for parameter in system.parameters()}
    kept = {}

    def note(tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in mine:
            kept[storage.data_ptr()] = (storage.nbytes(), tensor)
        return tensor

    batch = asked_batch(rows, length, list(recipe.objectives)) if batch is None else batch
    if system.generator is not None:
        batch = with_draws(batch, np.arange(rows, dtype=np.uint64))
    noting = torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor)
    with noting, patch.object(linear, "by_onednn", lambda: room):
        sums = system(batch)
    assert sums
    return sum(size for size, _ in kept.values()), system.network.shape


@pytest.mark.parametrize("dropout", [DROPOUT, {}], ids=["dropout", "no dropout"])
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"model__norm": "pre"},
        {"model__embedding": 16},
        {"model__feedforward": 32},
        {"model__layers": 1},
        {"model__heads": 8},
        {"model__share": "all", "model__embedding": 16},
        {"model__gated": True},
        {"model__positions": "rotary"},
        {"model__local": 16},
    ],
    ids=str,
)
@pytest.mark.parametrize(("rows", "length", "width"), [(4, 32, 64), (2, 128, 64), (2, 64, 128), (1, 300, 32)])
def test_kept_bytes_are_what_is_kept(rows, length, width, changes, dropout):
    sizes = {"model__width": width, "model__heads": 4, "model__max_length": 512, "model__layers": 3}
    got, shape = measured(small_recipe("bert", **(sizes | dropout | changes)), rows, length)
    fixed = 4 * VOCABULARY * (shape.embedding + 1)  # the tied matrix's gradient, counted among the fixed bytes
    assert rows * kept_bytes(shape, length, RATE) == pytest.approx(got - fixed, rel=0.1)


@pytest.mark.parametrize("dropout", [DROPOUT, {}], ids=["dropout", "no dropout"])
@pytest.mark.parametrize("layers", [1, 3])
@pytest.mark.parametrize("positions", ["nezha", "shaw", "t5"])
@pytest.mark.parametrize(("rows", "length", "width"), [(4, 32, 64), (2, 128, 64), (1, 300, 32)])
def test_distances_keep_more_where_some_slots_ask(rows, length, width, positions, layers, dropout):
    sizes = {"model__width": width, "model__heads": 4, "model__max_length": 512, "model__layers": layers}
    got, shape = measured(small_recipe("bert", **(sizes | dropout), model__positions=positions), rows, length)
    fixed = 4 * VOCABULARY * (shape.embedding + 1)
    assert rows * kept_bytes(shape, length, RATE) == pytest.approx(got - fixed, rel=0.03)


@pytest.mark.parametrize("dropout", [DROPOUT, {}], ids=["dropout", "no dropout"])
@pytest.mark.parametrize("buckets", [32, 256])
@pytest.mark.parametrize(("rows", "length", "width"), [(4, 32, 64), (2, 128, 64), (1, 300, 32)])
def test_crossed_distances_keep_tables_besides(rows, length, width, buckets, dropout):
    sizes = {"model__width": width, "model__heads": 4, "model__max_length": 512, "model__layers": 3}
    crossed = {"model__positions": "disentangled", "model__buckets": buckets, "model__clip": 512}
    got, shape = measured(small_recipe("bert", **(sizes | dropout | crossed)), rows, length)
    fixed = 4 * VOCABULARY * (shape.embedding + 1)
    estimate = rows * kept_bytes(shape, length, RATE) + table_bytes(shape, length)
    assert estimate == pytest.approx(got - fixed, rel=0.12)


@pytest.mark.parametrize("generator", [0.25, 1.0])
@pytest.mark.parametrize(("rows", "length", "width"), [(4, 32, 64), (2, 64, 128), (1, 300, 32)])
def test_a_generator_keeps_its_part_too(rows, length, width, generator):
    sizes = {"model__width": width, "model__heads": 4, "model__max_length": 512, "model__layers": 3}
    made = small_recipe("electra", **(sizes | DROPOUT | {"model__generator__width": generator}))
    got, shape = measured(made, rows, length)
    second = made.model.generator_shape(VOCABULARY), RATE
    fixed = 4 * VOCABULARY * (shape.embedding + 1)
    both = row_bytes(shape, length, 1.0, second) - passing_bytes(shape, length)
    assert rows * both == pytest.approx(got - fixed, rel=0.1)
    assert both > kept_bytes(shape, length, 1.0)


def mini(**changes):
    return ModelConfig(**({"layers": 4, "width": 256, "heads": 4} | changes)).shape(21_128)


def test_the_estimate_grows_with_everything():
    base = row_bytes(mini(), 128, RATE)
    for bigger in (mini(layers=5), mini(width=512), mini(heads=8), mini(feedforward=2048)):
        assert row_bytes(bigger, 128, RATE) > base
    assert row_bytes(mini(), 129, RATE) > base
    assert row_bytes(mini(), 128, 0.3) > base
    assert row_bytes(mini(dropout=0.0), 128, RATE) < base
    assert row_bytes(mini(attention_dropout=0.0), 128, RATE) < base
    long, short = (row_bytes(mini(attention_dropout=p), 512, RATE) for p in (0.1, 0.0))
    assert long > 1.5 * short, "torch's fused kernel keeps no weights"


def test_the_parts_add_up():
    shape, many = mini(), 11_000_000
    assert row_bytes(shape, 128, RATE) == kept_bytes(shape, 128, RATE) + passing_bytes(shape, 128)
    assert fixed_bytes(shape, many) == 16 * many + 8 * 21_128 * 256
    few = peak_bytes(shape, many, 128, 1, RATE)
    assert few < fixed_bytes(shape, many) + row_bytes(shape, 128, RATE) + CHUNK_BYTES
    for rows in (1, 7, 64):
        bound = fixed_bytes(shape, many) + rows * row_bytes(shape, 128, RATE) + CHUNK_BYTES
        assert peak_bytes(shape, many, 128, rows, RATE) <= bound


def test_shared_weights_are_held_once_and_their_gradients_add_up():
    """What is kept for the backward pass is every layer's own. In numbers of one layer's matrices, 12 x 256 x 256."""
    many, layer = 3_000_000, 12 * 256**2
    for share, more in (("all", 1.28), ("attention", 0.41), ("feedforward", 0.95)):
        shared = mini(share=share)
        assert kept_bytes(shared, 128, RATE) == kept_bytes(mini(), 128, RATE)
        adding = (fixed_bytes(shared, many) - fixed_bytes(mini(), many)) / 4
        assert adding == pytest.approx(more * layer, rel=0.1), "as recorded with torch's profiler"
    assert fixed_bytes(mini(share="all", groups=2), many) == fixed_bytes(mini(share="all"), many), "one group at a time"
    assert fixed_bytes(mini(share="all", groups=4), many) == fixed_bytes(mini(), many), "each layer has its own"


def test_one_step_of_mini_as_measured():
    """Recorded with torch's profiler: 32 rows of 128 (8 of 512) with vocabulary 21,128, gradients already there."""
    for rows, length, dropout, mebibytes in ((32, 128, 0.1, 486), (8, 512, 0.1, 597), (8, 512, 0.0, 462)):
        shape = mini(attention_dropout=dropout)
        estimate = peak_bytes(shape, 8_853_642, length, rows, RATE) / 2**20
        assert estimate == pytest.approx(mebibytes, rel=0.35)


def choice(**changes):
    plan = {"shape": mini(), "parameters": 9_000_000, "length": 128, "rows": 256, "rate": RATE, "available": 16 << 30}
    return choose_micro(**(plan | changes))


def test_the_choice_and_its_reason():
    assert (choice(rows=32).rows, choice(rows=32).reason) == (32, "the whole batch fits")
    assert (choice().rows, choice().reason) == (64, "8192 tokens fill the cores")
    assert (choice(asked=10).rows, choice(asked=10).reason) == (10, "as asked")
    assert choice(asked=1000).rows == 256
    tight = choice(available=700 << 20)
    assert 1 < tight.rows < 64
    assert tight.reason == "60% of 0.7 GiB available memory"
    assert tight.bytes < 0.6 * (700 << 20)
    roomier = peak_bytes(mini(), 9_000_000, 128, 2 * tight.rows, RATE)
    assert roomier > 0.6 * (700 << 20) - CHUNK_BYTES


@pytest.mark.parametrize("rows", [1, 8])
def test_too_little_memory_is_said(rows):
    found = choice(rows=rows, available=100 << 20)
    assert found.rows == 1
    assert found.reason == "60% of 0.1 GiB available memory may not hold even one"
    assert found.bytes > 60 << 20


@pytest.mark.parametrize("rows", [1, 63, 64, 65, 100, 256, 257])
def test_micro_batches_are_of_equal_size(rows):
    found = choice(rows=rows).rows
    pieces = -(-rows // found)
    assert found <= 64
    assert pieces == -(-rows // 64), "no more pieces than needed"
    assert pieces * found - rows < pieces


def test_bytes_are_the_peak_of_the_choice():
    found = choice()
    assert found.bytes == peak_bytes(mini(), 9_000_000, 128, found.rows, RATE)


def ordered_batch(rows, length):
    """Rows of which exactly the given share is asked of a second stream."""
    batch = asked_batch(rows, length, ["masked_token"])
    asked = batch.targets["masked_token"]
    return replace(batch, ids=batch.original, asked=asked.index, targets={"permuted_token": asked})


def written_batch(rows, length):
    """Rows beside rows of which every slot is asked."""
    batch = replace(asked_batch(rows, length, []), targets={})
    every = Targets(index=torch.arange(rows * length), label=batch.original.flatten())
    return replace(batch, decoder=replace(batch, targets={"next_token": every}))


@pytest.mark.parametrize("dropout", [DROPOUT, {}], ids=["dropout", "no dropout"])
@pytest.mark.parametrize(("rows", "length", "width"), [(4, 32, 64), (2, 128, 64)])
@pytest.mark.parametrize(("name", "made"), [("xlnet", ordered_batch), ("bart", written_batch)])
def test_two_streams_and_a_decoder_keep_their_part(name, made, rows, length, width, dropout):
    sizes = {"width": width, "heads": 4, "max_length": 512, "layers": 3, "memory": 0}
    sizes |= {"decoder": 2} if name == "bart" else {}
    recipe = small_recipe(name, **{f"model__{key}": value for key, value in sizes.items()}, **dropout)
    got, shape = measured(recipe, rows, length, made(rows, length))
    fixed = 4 * VOCABULARY * (shape.embedding + 1)
    assert rows * kept_bytes(shape, length, RATE) == pytest.approx(got - fixed, rel=0.15)


@pytest.mark.skipif(not torch.backends.mkldnn.is_available(), reason="this build of torch has no oneDNN")
@pytest.mark.parametrize(("rows", "length"), [(1, 300), (5, 70), (4, 64)])
def test_room_behind_the_rows_keeps_what_its_slots_would(rows, length):
    recipe = small_recipe("bert", **DROPOUT, model__width=32, model__heads=4, model__max_length=512)
    plain, wide = (measured(recipe, rows, length, room=room)[0] for room in (False, True))
    slots = rows * length
    assert plain <= wide <= plain * (slots + -slots % linear.SLOTS) / slots
    assert (wide > plain) == bool(slots % linear.SLOTS)
