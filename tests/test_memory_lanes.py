"""Rows that continue each other: which lane reads which row when, and what a run remembers between two updates."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from small_run import corpus_in, cut_back, run_quietly, tiny_recipe

from maskery.batches import Memory
from maskery.corpus.mixture import Mixture
from maskery.errors import CheckpointError, InputError
from maskery.feed import WALK, Feed
from maskery.model.transformer import inputs_of
from maskery.recipes.recipe import check
from maskery.rows.order import Lanes
from maskery.train import loop
from maskery.train.build import build_trainer
from maskery.train.evaluate import evaluate, heldout_batches
from maskery.train.lanes import LaneMemory
from maskery.train.ranks import Ranks

pytestmark = pytest.mark.usefixtures("no_waiting_for_the_disk")

SETTINGS = {
    "model__memory": 20,
    "model__dropout": 0.0,
    "model__attention_dropout": 0.0,
    "model__init_std": 0.1,
    "training__eps": 1e-4,
    "training__length": 12,
    "training__batch": 6,
    "training__steps": 8,
    "training__eval_rows": 40,
}


def say(_text):
    pass


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return corpus_in(tmp_path_factory.mktemp("lanes"), documents=60)


def xl(**changes):
    return tiny_recipe("transformer-xl", **SETTINGS | changes)


# -- the order


@given(rows=st.integers(1, 60), lanes=st.integers(1, 9), epochs=st.integers(1, 4), seed=st.integers(0, 5))
def test_a_lane_walks_rows_that_follow_each_other(rows, lanes, epochs, seed):
    """Against a walk that is done step by step."""
    order = Lanes(seed, "train 0", rows, lanes, begins=(0, rows // 2))
    visits = np.arange(lanes * order.walk * epochs)
    epoch, row = order.visit(visits)
    fresh = order.fresh(visits)
    for visit in visits.tolist():
        turn, lane = divmod(visit, lanes)
        assert epoch[visit] == turn // max(1, rows // lanes)
        begins = turn % max(1, rows // lanes) == 0
        if not begins:
            before = row[visit - lanes]
            assert row[visit] == (before + 1) % rows
        assert fresh[visit] == (begins or row[visit] in (0, rows // 2))
        if lane and begins:
            assert row[visit] == (row[visit - 1] + order.walk) % rows
    if rows >= lanes:
        for number in range(epochs):
            read = row[epoch == number]
            assert len(set(read.tolist())) == len(read) == rows // lanes * lanes
    assert row[0] == 0


def test_other_epochs_leave_out_other_rows():
    order = Lanes(0, "train 0", 103, 10)
    epochs, rows = order.visit(np.arange(100 * 20))
    left = [set(range(103)) - set(rows[epochs == number].tolist()) for number in range(20)]
    assert all(len(each) == 3 for each in left)
    assert len(set(map(frozenset, left))) > 10


# -- batches


def test_rows_of_a_lane_are_one_text(corpus):
    """What a lane reads is the stream itself, cut into rows."""
    feed = Feed(xl(), corpus, 0)
    plan = feed.plan(feed.phases[0])
    batches = [feed.batch(step) for step in range(len(plan) // 6)]
    text = torch.cat(
        [feed.make(0, feed.phases[0], np.zeros(1, int), np.array([row])).ids for row in range(len(plan))], 1
    )
    for lane in range(6):
        read = torch.cat([batch.ids[lane] for batch in batches])
        first = lane * (len(plan) // 6) * 12
        assert torch.equal(read, text[0, first : first + len(read)])
    assert all(batch.lane.tolist() == list(range(6)) for batch in batches)
    assert [bool(batch.fresh.any()) for batch in batches] == [True, *[False] * (len(batches) - 1)]
    assert bool(feed.batch(len(batches)).fresh.all()), "the next epoch begins elsewhere"


def test_ranks_and_micro_batches_slice_lanes(corpus):
    feed = Feed(xl(), corpus, 0)
    whole = feed.batch(2)
    parts = [part for rank in range(2) for part in feed.micro_batches(2, rank, 2, 2)]
    for name in ("ids", "lane", "fresh", "rows"):
        assert torch.equal(torch.cat([getattr(part, name) for part in parts]), getattr(whole, name))


def test_a_recipe_without_memory_has_no_lanes(corpus):
    batch = Feed(xl(model__memory=0), corpus, 0).batch(0)
    assert batch.lane is None
    assert batch.fresh is None
    assert not np.array_equal(np.diff(batch.rows.numpy()), np.full(5, 1)), "rows are visited in any order"


def test_corpora_one_after_another_and_never_in_turns(corpus, tmp_path):
    other = corpus_in(tmp_path, documents=30, seed=1)
    feed = Feed(xl(training__batch=3), Mixture([corpus, other]), 0)
    plan = feed.plan(feed.phases[0])
    begins = plan.begins.tolist()
    assert begins == plan.part_start[:-1].tolist()
    batches = [feed.batch(step) for step in range(len(plan) // 3)]
    fresh = {int(row) for batch in batches for row in batch.rows[batch.fresh]}
    assert begins[1] in fresh
    with pytest.raises(InputError, match="in turns"):
        Feed(xl(), Mixture([(corpus, 2), (other, 1)]), 0)


# -- what is remembered


def memory_of(*numbers, length=2):
    states = torch.tensor(numbers, dtype=torch.float32).view(-1, 1, 1).expand(-1, 2, 3)
    return Memory(states=(states, 10 * states), length=torch.full((len(numbers),), length))


def test_a_step_that_is_redone_reads_what_it_read_before(corpus):
    batch = Feed(xl(), corpus, 0).batch(1)
    memory = LaneMemory()
    memory.begin()
    memory.take(replace(batch, lane=torch.arange(6)), memory_of(*range(6)))
    assert memory.give(batch).memory is None, "nothing counts before the update has moved"
    memory.begin()
    memory.take(replace(batch, lane=torch.arange(3)), memory_of(1, 2, 3))
    memory.take(replace(batch, lane=torch.arange(3, 6)), memory_of(4, 5, 6))
    memory.commit()
    given = memory.give(replace(batch, lane=torch.tensor([4, 1]), fresh=torch.tensor([False, True]))).memory
    assert given.states[0][:, 0, 0].tolist() == [5, 2]
    assert given.states[1][:, 0, 0].tolist() == [50, 20]
    assert given.length.tolist() == [2, 0]
    assert memory.give(replace(batch, fresh=torch.ones(6, dtype=torch.bool))).memory is None
    restored = LaneMemory()
    restored.restore(memory.whole(Ranks()), torch.device("cpu"))
    again = restored.give(replace(batch, fresh=torch.zeros(6, dtype=torch.bool))).memory
    assert again.states[0][:, 0, 0].tolist() == [1, 2, 3, 4, 5, 6]


def trained(corpus, **changes):
    trainer = build_trainer(xl(**changes), corpus, 0, say)
    return trainer, [update.loss for update in trainer.updates()]


@pytest.fixture(scope="module")
def straight(corpus):
    return trained(corpus)


def test_micro_batches_leave_the_same_memory(corpus, straight):
    trainer, losses = trained(corpus, training__micro=4)
    assert max(abs(one - two) for one, two in zip(straight[1], losses, strict=True)) < 1e-5
    one, two = straight[0].memory.whole(Ranks()), trainer.memory.whole(Ranks())
    assert one.keys() == two.keys() == {"layer.0", "layer.1", "length", "lane"}
    assert one["layer.0"].shape == (6, 20, 16)
    for name in one:
        torch.testing.assert_close(one[name], two[name], atol=1e-4, rtol=1e-4)


def test_memory_is_what_the_rows_before_were_read_as(corpus):
    """With weights that hardly move, the states of the lane's last slots, read as one long row."""
    trainer, _ = trained(corpus, training__lr=1e-12, training__steps=3)
    feed, network = trainer.feed, trainer.system.network.eval()
    rows = [feed.batch(step) for step in range(3)]
    whole = replace(
        rows[0],
        ids=torch.cat([batch.ids for batch in rows], 1),
        segments=torch.zeros(6, 36, dtype=torch.long),
        positions=torch.arange(36).expand(6, 36),
        length=torch.full((6,), 36),
        slots={},
    )
    with torch.no_grad():
        first = network(inputs_of(whole), layers=True).layers[0]
    torch.testing.assert_close(trainer.memory.kept.states[0], first[:, -20:], atol=1e-5, rtol=1e-5)
    assert trainer.memory.kept.length.tolist() == [20] * 6


def test_a_refused_allocation_reads_the_old_memory_again(corpus, straight, monkeypatch):
    """Update 4 does not fit at first; with half the rows at a time it is what it would have been."""
    trainer = build_trainer(xl(training__micro=6), corpus, 0, say)
    backward, refused = loop.Trainer._backward, []

    def tight(self, batches, counts, exchange=True):
        found = backward(self, batches, counts, exchange)
        if self.step == 3 and not refused:
            refused.append(self.step)
            raise MemoryError
        return found

    monkeypatch.setattr(loop.Trainer, "_backward", tight)
    losses = [update.loss for update in trainer.updates()]
    assert refused == [3]
    assert max(abs(one - two) for one, two in zip(straight[1], losses, strict=True)) < 1e-5


# -- what is held out


def test_what_is_held_out_is_walked_with_a_memory_of_its_own(corpus, straight):
    trainer, _ = straight
    heldout = Feed(xl(), corpus, 0, "heldout")
    phase = heldout.phases[0]
    order, turns = heldout.walk(phase, 40)
    assert order.lanes == max(1, min(6, min(40, len(heldout.plan(phase))) // WALK))
    system = trainer.system.eval()
    before = trainer.memory.whole(Ranks())
    sizes = []
    for batch in heldout_batches(system, heldout, 0, phase, 40, 3, Ranks()):
        sizes.append(None if batch.memory is None else batch.memory.length.tolist())
        system.measure(batch)
    assert len(sizes) == turns
    assert sizes[0] is None
    assert sizes[1] == [12] * order.lanes
    assert sizes[2] == [20] * order.lanes
    found = [evaluate(system, heldout, 0, 40, micro, torch.device("cpu")) for micro in (1, 8)]
    assert found[0]["eval/loss"] == pytest.approx(found[1]["eval/loss"], abs=1e-6)
    for name, value in trainer.memory.whole(Ranks()).items():
        assert torch.equal(value, before[name])


# -- folders


def test_a_checkpoint_without_its_memory_is_not_gone_on_from(corpus, tmp_path):
    made = xl(training__save_every=4, training__eval_every=0)
    run_quietly(made, corpus, tmp_path / "whole")
    out = cut_back(tmp_path / "whole", 4, tmp_path / "cut")
    point = out / "checkpoints/step-4"
    assert (point / "memory.safetensors").is_file()
    assert not (out / "memory.safetensors").exists(), "a finished model is no state of a run"
    (point / "memory.safetensors").unlink()
    with pytest.raises(CheckpointError) as caught:
        run_quietly(made, corpus, out, True)
    assert "memory.safetensors" in caught.value.text()


# -- refusals


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"rows__kind": "doc_sentences"}, "does not go on"),
        ({"model__positions": "learned"}, "cannot tell how far"),
        ({"visibility__kind": "packed_causal"}, "does not look"),
        ({"model__generator__width": 0.5}, "has others beside them"),
    ],
)
def test_a_memory_that_makes_no_sense_is_refused(changes, words):
    refused = check(tiny_recipe("transformer-xl", **changes))
    assert any(words in each.reason and each.piece == "model.memory" and each.repair for each in refused)
