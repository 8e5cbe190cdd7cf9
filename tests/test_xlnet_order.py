"""XLNet's order in a real network: who depends on whom, by the predicate, by reachability, and by changing tokens."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from small_model import small_network
from small_run import corpus_in, tiny_recipe

from maskery.batches import Batch, Memory
from maskery.feed import Feed
from maskery.model.config import VISIBILITIES
from maskery.model.flow import reach_two_streams, read_answers, visible_row
from maskery.model.transformer import inputs_of
from maskery.system import System

SHAPE = {
    "positions": "xlnet",
    "streams": 2,
    "segments": 0,
    "embedding_norm": "no",
    "attention_bias": False,
    "token_head": "bias",
    "activation": "gelu_tanh",
}


def row_in_order(order, ids=None):
    """One row whose slots, counted from 1, become known in this order; every slot is asked for."""
    size = len(order)
    rank = torch.tensor([order.index(slot) for slot in range(1, size + 1)]).unsqueeze(0)
    ids = torch.arange(5, 5 + size).unsqueeze(0) if ids is None else ids
    plain = torch.zeros_like(ids)
    return Batch(
        step=0,
        rows=torch.tensor([0]),
        ids=ids,
        length=torch.tensor([size]),
        segments=plain,
        positions=torch.arange(size).unsqueeze(0),
        original=ids,
        edit=plain.to(torch.uint8),
        slots={"order": rank},
        asked=torch.arange(size),
    )


def sets(matrix):
    return {row + 1: {int(k) + 1 for k in seen.nonzero().flatten()} for row, seen in enumerate(matrix)}


def both_streams(order):
    batch, permuted = row_in_order(order), VISIBILITIES.get("permuted")()
    return visible_row(permuted, batch, 0), visible_row(permuted, batch, 0, asks=True)


def depends(network, batch):
    """(2,T,T) on which slots' input vectors the states of each slot depend: the first stream's, then the second's."""
    embedded = []

    def keep(_module, _inputs, output):
        embedded.append(output.detach().requires_grad_())
        return embedded[0]

    hook = network.embeddings.register_forward_hook(keep)
    hidden = network(inputs_of(batch))
    hook.remove()
    found = []
    for states in (hidden.packed, hidden.predicted.packed):
        weights = torch.linspace(0.5, 1.5, states.shape[1])
        rows = [
            torch.autograd.grad((state * weights).sum(), embedded[0], retain_graph=True, allow_unused=True)[0]
            for state in states
        ]
        found.append(torch.stack([torch.zeros(len(states)) if r is None else r.abs().amax(1) for r in rows]) > 0)
    return torch.stack(found)


NEW_YORK = {
    (4, 2, 1, 5, 3): {1: {2, 4}, 2: {4}, 3: {1, 2, 4, 5}, 4: set(), 5: {1, 2, 4}},
    (2, 1, 5, 3, 4): {1: {2}, 2: set(), 3: {1, 2, 5}, 4: {1, 2, 3, 5}, 5: {1, 2}},
}


def test_order_3241_by_the_predicate():
    content, query = both_streams([3, 2, 4, 1])
    assert sets(content) == {1: {1, 2, 3, 4}, 2: {2, 3}, 3: {3}, 4: {2, 3, 4}}
    assert sets(query) == {1: {2, 3, 4}, 2: {3}, 3: set(), 4: {2, 3}}


@pytest.mark.parametrize("order", [*NEW_YORK, (1, 2, 3, 4, 5), (5, 4, 3, 2, 1)], ids=str)
def test_new_york_is_a_city_in_a_real_network(order):
    content, query = both_streams(list(order))
    forward = {slot: set(range(1, slot)) for slot in range(1, 6)}
    backward = {slot: set(range(slot + 1, 6)) for slot in range(1, 6)}
    expected = NEW_YORK.get(order, forward if order[0] == 1 else backward)
    assert sets(query) == expected
    for layers in (1, 3):
        network = small_network("permuted", layers=layers, **SHAPE)
        first, second = depends(network, row_in_order(list(order)))
        assert torch.equal(first, content), "the states of a slot know what they see, itself included"
        assert sets(second) == expected, "at every depth"
        assert torch.equal(second, reach_two_streams(content, query, layers)[-1])


def test_the_same_prefix_asks_for_two_places_with_two_answers():
    """Orders 2 1 3 4 .. and 2 1 3 5 ..: what is known is the same, and only the place that is asked for tells them
    apart. Without it, the second stream would say the same for both."""
    network = small_network("permuted", **SHAPE)
    ids = torch.tensor([[7, 9, 11, 13, 13]])

    def said(order, slot):
        batch = replace(row_in_order(order, ids), asked=torch.tensor([slot - 1]))
        return network(inputs_of(batch)).predicted.packed[0]

    fourth, fifth = said([2, 1, 3, 4, 5], 4), said([2, 1, 3, 5, 4], 5)
    assert (fourth - fifth).abs().max() > 1e-3
    with torch.no_grad():
        network.embeddings.positions.distances.zero_()
    assert torch.equal(said([2, 1, 3, 4, 5], 4), said([2, 1, 3, 5, 4], 5)), "every distance made equal"


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return corpus_in(tmp_path_factory.mktemp("xlnet"))


@pytest.fixture(scope="module")
def system(corpus):
    made = System(tiny_recipe("xlnet", model__memory=12, training__length=40), corpus.vocabulary)
    made.initialise(0)
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.mul_(12)
    return made.eval()


@pytest.fixture(scope="module")
def batch(corpus):
    return Feed(tiny_recipe("xlnet", model__memory=12, training__length=40), corpus, 0).batch(0)


def memory_of(system, rows):
    draw = torch.Generator().manual_seed(1)
    shape = system.network.shape
    states = tuple(torch.randn(rows, 12, shape.width, generator=draw) for _ in range(shape.layers))
    return Memory(states=states, length=torch.full((rows,), 12))


@pytest.mark.parametrize("remembers", [False, True], ids=["alone", "memory"])
def test_a_target_reads_the_targets_before_it_and_never_itself(system, batch, remembers):
    """Every pair of targets of two rows, one of which is read from its end: change the true token of one, and see
    whose prediction moves."""
    width = batch.ids.shape[1]
    rows = batch.asked // width
    for row in (0, batch.size - 1):
        mine = (batch.asked[rows == row] % width).tolist()
        one = replace(batch.one(row), memory=memory_of(system, 1) if remembers else None)
        changed = [one.ids, *(one.ids.clone() for _ in mine)]
        for slot, ids in zip(mine, changed[1:], strict=True):
            ids[0, slot] = 5 + (ids[0, slot] - 4) % 90
        said = [system.network(inputs_of(replace(one, ids=ids))).predicted.packed for ids in changed]
        order = one.slots["order"][0]
        for place, (slot, other) in enumerate(zip(mine, said[1:], strict=True)):
            moved = ((other - said[0]).abs().amax(1) > 1e-5).tolist()
            assert moved == [bool(order[each] > order[slot]) for each in mine], (slot, mine)
            assert not moved[place]


def test_no_target_reaches_its_answer(system, batch):
    reading = system.readings(batch)["permuted_token"]
    assert (reading.leak, reading.kept) == (None, 0)
    assert reading.targets == len(batch.asked)
    system.require_no_leak(batch)
    index = batch.asked
    one_stream = read_answers(system.network, batch, index, index)
    assert one_stream.kept == len(index), "the first stream holds its own token"


def test_a_view_that_shows_the_answer_is_refused(system, batch):
    """Were the second stream to see what comes no later, as the first does, a target would see itself."""
    permuted = system.network.visibility

    class NoLater:
        needs = permuted.needs

        def bind(self, view):
            return permuted.bind(replace(view, asks=False))

    system.network.visibility = NoLater()
    try:
        leak = system.readings(batch)["permuted_token"].leak
        assert (leak.layer, leak.path, leak.asked) == (1, (), leak.answer)
    finally:
        system.network.visibility = permuted


def test_in_use_there_is_one_stream_and_all_see_all(system, batch):
    plain = replace(batch, asked=None, slots={}, memory=None)
    hidden = system.network(inputs_of(plain))
    assert hidden.predicted is None
    ids = plain.ids.clone()
    ids[:, -3] = 7
    moved = (system.network(inputs_of(replace(plain, ids=ids))).last - hidden.last).abs().amax(2) > 1e-6
    assert moved.all()
