"""What a model needs, as it is told, against what torch's profiler sees and against arithmetic by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from networks import model_of
from small_model import VOCABULARY, batch_of, inputs, rows_of, small_network, small_recipe
from torch.profiler import ProfilerActivity, profile

from maskery.checkpoint.whole import whole_of
from maskery.edit import Edit
from maskery.model.config import ModelConfig
from maskery.model.cost import forward_flops
from maskery.model.layout import layout_of
from maskery.objectives.masked_token import DRAWS
from maskery.recipes.recipe import recipe
from maskery.system import System
from maskery.train.estimate import Needs, load_of, needs_of
from maskery.train.memory import most_rows, peak_bytes, reading_bytes

RATE = 0.15


def peak_of(work):
    """Bytes that tensors hold at most while `work` runs, beyond those held before."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as seen:
        work()
    changes = [event.nbytes() for event in seen.profiler.kineto_results.events() if event.name() == "[memory]"]
    return max(np.cumsum([0, *changes]))


READ = [
    ({}, 4, 128),
    ({}, 2, 300),
    ({"feedforward": 64}, 2, 300),
    ({"norm": "pre", "width": 128}, 4, 64),
    ({"positions": "nezha"}, 4, 128),
    ({"positions": "nezha"}, 2, 300),
    ({"positions": "t5", "clip": 128}, 4, 128),
    ({"share": "all", "embedding": 16}, 4, 128),
    ({"visibility": "causal"}, 4, 128),
    ({"visibility": "causal"}, 2, 300),
]


@pytest.mark.parametrize(("changes", "rows", "length"), READ, ids=str)
def test_reading_takes_what_is_told(changes, rows, length):
    sizes = {"width": 64, "heads": 4, "layers": 3, "max_length": 512} | changes
    network = small_network(sizes.pop("visibility", "full"), **sizes)
    ids = torch.randint(5, VOCABULARY, (rows, length))
    given = inputs(ids, layout_of(torch.ones(rows, length, dtype=torch.bool)))
    with torch.no_grad():
        network(given)
        found = peak_of(lambda: network(given))
    assert reading_bytes(network.shape, 0, length, rows) == pytest.approx(found, rel=0.12)


TRAINED = {
    "albert": ("albert", {"model__embedding": 16}),
    "nezha": ("nezha", {}),
    "nezha, long": ("nezha", {"model__attention_dropout": 0.0}),
    "electra": ("electra", {}),
    "pre-norm": ("bert", {"model__norm": "pre"}),
}


@pytest.mark.parametrize("name", TRAINED)
def test_a_step_takes_what_is_told(name):
    """Beside weights, gradients and averages, which are there before."""
    base, changes = TRAINED[name]
    rows, length = (2, 300) if "long" in name else (6, 96)
    sizes = {"model__width": 64, "model__heads": 4, "model__layers": 4, "model__max_length": 512}
    made = small_recipe(base, **({"model__dropout": 0.1, "model__attention_dropout": 0.1} | sizes | changes))
    system = System(made, VOCABULARY)
    system.initialise(0)
    system.train()
    rough = rows_of([length] * rows, chosen=0)
    edit = rough.edit.reshape(rows, length).copy()
    edit[:, np.linspace(1, length - 1, round(RATE * length)).astype(int)] = Edit.MASK
    fields = {name: getattr(rough, name) for name in rough.__dataclass_fields__}
    batch = batch_of(type(rough)(**(fields | {"edit": edit.flatten()})), list(made.objectives))
    masked = batch.targets["masked_token"]
    drawn = replace(masked, extra={DRAWS: torch.rand(len(masked.label))})
    batch = replace(batch, targets={**batch.targets, "masked_token": drawn})

    def step():
        sum(system(batch).values()).backward()

    step()
    found = peak_of(step)
    needs = needs_of(whole_of(made, VOCABULARY), made)
    told = needs.training(rows, length) - 16 * needs.parameters
    assert told == pytest.approx(found, rel=0.35)


def test_a_recipe_is_told_as_it_trains():
    """The generator keeps its own; the model is asked everywhere."""
    made = recipe("electra", size="mini")
    needs = needs_of(whole_of(made, 21128), made)
    shape = made.model.shape(21128)
    small = made.model.generator_shape(21128)
    assert (needs.model.reads, needs.model.tokens) == (1.0, 0.0)
    assert (needs.generator.reads, needs.generator.tokens) == (RATE, RATE)
    assert needs.training(16, 128) == peak_bytes(shape, needs.parameters, 128, 16, 1.0, (small, RATE))
    assert needs.reading(16, 128) == reading_bytes(shape, needs.read, 128, 16)
    work = needs.operations(128)
    assert work["forward_per_token"] == round(forward_flops(shape, 128))
    both = forward_flops(shape, 128, 1.0, 0.0) + forward_flops(small, 128, RATE)
    assert work["training_per_token"] == round(3 * both)


def test_rows_that_a_question_makes_of_each_row_are_counted():
    """InfoWord's run of 2 to 10 words, read twice between [CLS] and [SEP]: 2 x (2 + 6 x 1.5) slots."""
    made, plain = recipe("infoword", size="mini"), recipe("bert", size="mini", overrides={"rows.pair": "none"})
    needs, without = needs_of(whole_of(made, 21128), made), needs_of(whole_of(plain, 21128), plain)
    assert (needs.besides, without.besides) == (22, 0)
    assert needs.training(16, 128) == peak_bytes(made.model.shape(21128), needs.parameters, 150, 16, RATE)
    more = needs.operations(128)["training_per_token"] - without.operations(128)["training_per_token"]
    assert more == pytest.approx(3 * 22 / 128 * forward_flops(made.model.shape(21128), 22))
    assert needs.reading(16, 128) == reading_bytes(made.model.shape(21128), needs.read, 128, 16)


def test_a_folder_is_told_as_if_it_went_on_training():
    needs = needs_of(whole_of(model_of("masked_token", "next_sentence", pooler=True), 0))
    assert (needs.model.reads, needs.model.tokens) == (RATE, RATE)
    assert needs_of(whole_of(model_of("token_class"), 0)).model.reads == 1.0
    assert needs_of(whole_of(model_of("sequence_class", pooler=True), 0)).model.reads == 0.0


def test_operations_by_hand():
    shape = ModelConfig(layers=2, width=8, heads=2).shape(10)
    load = load_of(shape, ["masked_token"])
    found = Needs(model=load, parameters=1, read=1).operations(16)
    matrices, pairs = 2 * 12 * 64, 4 * 16 * 8
    assert found["forward_per_token"] == 2 * (matrices + pairs)
    last = 2 * 4 * 8 * 8 / 2 + RATE * (matrices - 2 * 2 * 64 + pairs)
    assert found["training_per_token"] == round(3 * (matrices + pairs + last + RATE * 2 * 8 * (10 + 8)))
    assert forward_flops(ModelConfig(**{"layers": 12}).shape(30000), 0) == 2 * 84_934_656


def test_operations_of_two_streams_and_of_a_decoder():
    """By hand: 3 layers of width 8 with 32 in between, rows of 10 slots."""
    plain = {"layers": 3, "width": 8, "heads": 2}
    reads, asks = 2 * 2 * 64, 2 * (2 * 64 + 2 * 8 * 32 + 2 * 10 * 8)
    head = 2 * 8 * (50 + 8)

    def of(share, **changes):
        return forward_flops(ModelConfig(**plain, **changes).shape(50), 10, share)

    assert of(0.0) == 3 * (reads + asks)
    assert of(0.2, streams=2) == pytest.approx(3 * reads + (2 * 1.2 + 0.2) * asks + 0.2 * head)
    looks = 2 * (4 * 64 + 2 * 10 * 8)
    assert of(1.0, decoder=2) == pytest.approx(5 * (reads + asks) + 2 * looks + head)


def test_of_bands_the_first_choice_is_counted():
    def cost(**changes):
        return forward_flops(ModelConfig(layers=2, width=8, heads=2, **changes).shape(100), 16, 1.0)

    assert cost() - cost(cutoffs=(20, 60)) == 2 * 8 * (100 - 22)


def test_vectors_of_distance_double_what_pairs_cost():
    def cost(**changes):
        return forward_flops(ModelConfig(layers=2, width=8, heads=2, **changes).shape(10), 16)

    assert cost(positions="nezha") - cost() == 2 * 4 * 16 * 8
    assert cost(positions="shaw") == cost(positions="nezha")
    assert cost(positions="t5") == cost(share="all") == cost()


@given(st.integers(0, 400), st.integers(1, 40), st.integers(0, 20))
def test_the_most_rows_that_fit(memory, each, fixed):
    def needed(rows):
        return fixed + each * rows

    assert most_rows(needed, memory) == max([0, *(rows for rows in range(1, 401) if needed(rows) <= memory)])


def test_rows_that_fit_are_told():
    needs = needs_of(whole_of(recipe("bert"), 30522), recipe("bert"))
    told = needs.memory(32, 512, 16 << 30)
    for use, needed in (("training", needs.training), ("inference", needs.reading)):
        most = told[f"largest_{use}_rows"]
        assert most > 1
        assert needed(most, 512) <= 16 << 30 < needed(most + 1, 512)
    assert needs.memory(1, 512, 1 << 20)["largest_training_rows"] == 0
    assert "available_bytes" not in needs.memory(1, 512, None)
