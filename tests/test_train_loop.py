"""What the loop is fed is a pure function of (recipe, corpus, seed, step); what goes wrong moves no weight."""

import hashlib
import json
import multiprocessing
import os
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from small_run import corpus_in, tiny_recipe

from maskery.corpus.store import Corpus
from maskery.errors import NonFiniteError, TrainingError
from maskery.feed import Feed, batch, share
from maskery.objectives.config import OBJECTIVES
from maskery.system import System
from maskery.train.build import build_trainer
from maskery.train.loop import Trainer, batches_from
from maskery.train.optimizers import AdamW

RECIPES = ("bert", "roberta")
PHASES = [{"steps": 3, "length": 12, "batch": 6}, {"steps": 3, "length": 24}]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return corpus_in(tmp_path_factory.mktemp("corpus"))


@pytest.fixture(scope="module")
def feeds(corpus):
    """With phases, so that the boundary is in sight too."""
    return {name: Feed(tiny_recipe(name, training__phases=PHASES), corpus, 7) for name in RECIPES}


def rows_in(*batches):
    """Every row of some batches without its padding, with all that is asked of it."""
    found = []
    for each in batches:
        width = each.ids.shape[1]
        for row, length in enumerate(each.length.tolist()):
            grids = {name: getattr(each, name) for name in ("ids", "segments", "positions", "original", "edit")}
            facts = {name: grid[row, :length].tolist() for name, grid in (grids | dict(each.slots)).items()}
            found.append({"number": int(each.rows[row]), **facts, "asked": asked_of(each, row, width)})
    return found


def asked_of(each, row, width):
    asked = {}
    for name, targets in each.targets.items():
        of_rows = OBJECTIVES.get(name).needs_pooler
        here = (targets.index if of_rows else targets.index // width) == row
        slots = [0] * int(here.sum()) if of_rows else (targets.index[here] % width).tolist()
        asked[name] = list(zip(slots, targets.label[here].tolist(), strict=True))
    return asked


def digest(batches):
    return hashlib.sha256(json.dumps([rows_in(each) for each in batches]).encode()).hexdigest()


# -- a batch is a pure function


@pytest.mark.parametrize("name", RECIPES)
@settings(max_examples=25, deadline=None)
@given(step=st.integers(0, 9), world=st.integers(1, 5), micro=st.integers(1, 9))
def test_ranks_and_micro_batches_cut_the_same_rows(feeds, name, step, world, micro):
    feed = feeds[name]
    whole = rows_in(feed.batch(step))
    assert any(row["asked"]["masked_token"] for row in whole)
    assert rows_in(*[feed.batch(step, rank, world) for rank in range(world)]) == whole
    parts = [feed.micro_batches(step, rank, world, micro) for rank in range(world)]
    assert all(each.size <= micro for part in parts for each in part)
    assert rows_in(*[each for part in parts for each in part]) == whole


@given(rows=st.integers(0, 1000), world=st.integers(1, 20))
def test_ranks_share_all_rows_evenly(rows, world):
    parts = [share(rows, rank, world) for rank in range(world)]
    assert [number for part in parts for number in range(part.start, part.stop)] == list(range(rows))
    sizes = [part.stop - part.start for part in parts]
    assert max(sizes) - min(sizes) <= 1


@pytest.mark.parametrize("name", RECIPES)
def test_workers_change_nothing(feeds, name):
    alone, helped = (list(batches_from(feeds[name], 1, 6, [3], workers)) for workers in (0, 2))
    assert [digest(each) for each in alone] == [digest(each) for each in helped]
    assert [each[0].step for each in helped] == list(range(1, 6))


def test_an_error_leaves_no_workers_behind(corpus, monkeypatch):
    """While the error is still being looked at: a process that ends with one in hand would wait for them forever."""
    trainer = build_trainer(tiny_recipe(), corpus, 2, print)
    updates = trainer.updates()
    next(updates)
    assert len(multiprocessing.active_children()) == 2

    def fail(batches):
        raise ValueError("a defect")

    monkeypatch.setattr(trainer, "_gradient", fail)
    with pytest.raises(ValueError, match="a defect") as caught:
        next(updates)
    assert caught.value.__traceback__ is not None
    assert not multiprocessing.active_children()


def test_another_process_makes_the_same_batches(corpus, feeds):
    script = """
import sys
from test_train_loop import PHASES, Corpus, Feed, digest, tiny_recipe
corpus = Corpus.open(sys.argv[1])
for name in ("bert", "roberta"):
    feed = Feed(tiny_recipe(name, training__phases=PHASES), corpus, 7)
    print(digest([feed.batch(step) for step in (5, 0, 3)]))
"""
    here = Path(__file__).parent
    environment = {**os.environ, "PYTHONPATH": str(here), "PYTHONHASHSEED": "123"}
    done = subprocess.run(
        [sys.executable, "-c", script, str(corpus.path)], capture_output=True, text=True, check=True, env=environment
    )
    assert done.stdout.split() == [digest([feeds[name].batch(step) for step in (5, 0, 3)]) for name in RECIPES]


def test_seed_and_step_matter_and_the_public_function_is_the_same(corpus):
    recipe = tiny_recipe("bert")
    first = rows_in(batch(recipe, corpus))
    assert first == rows_in(Feed(recipe, corpus, recipe.training.seed).batch(0))
    assert first != rows_in(batch(recipe, corpus, step=1))
    assert first != rows_in(batch(recipe, corpus, seed=1))
    assert rows_in(batch(recipe, corpus, rank=1, world=2)) == first[4:]


@pytest.mark.parametrize("name", RECIPES)
def test_held_out_text_is_never_trained_on(corpus, feeds, name):
    feed = feeds[name]
    heldout = Feed(feed.recipe, corpus, 7, "heldout")
    seen = {}
    for each in (feed, heldout):
        documents = set()
        for phase in each.phases:
            plan = each.plan(phase)
            for places in (plan.piece_start, plan.piece_end - 1):
                sentence = np.searchsorted(corpus.sentence_start, places, side="right") - 1
                documents |= set((np.searchsorted(corpus.document_start, sentence, side="right") - 1).tolist())
        seen[each.split] = documents
    assert seen["heldout"] == set(corpus.documents("heldout").tolist())
    assert seen["train"] == set(corpus.documents("train").tolist())
    assert not seen["heldout"] & seen["train"]


@pytest.mark.parametrize("name", RECIPES)
def test_every_epoch_is_a_permutation_of_the_plan(corpus, name):
    feed = Feed(tiny_recipe(name, rows__copies=2, training__steps=10_000), corpus, 3)
    total = len(feed.plan(feed.phases[0]))
    steps = -(-2 * total // 8)
    epochs, rows = (
        np.concatenate(part) for part in zip(*[feed.numbers(step)[1:] for step in range(steps)], strict=True)
    )
    orders = [rows[epochs == epoch].tolist() for epoch in (0, 1)]
    assert sorted(orders[0]) == sorted(orders[1]) == list(range(total))
    assert orders[0] != orders[1]
    assert orders[0] != sorted(orders[0])


def masks_of_each_text(feed, passes):
    """How often each text (a stretch of the store) is shown under each mask, over whole epochs of the plan. Short
    texts have too few masks to be told apart."""
    phase = feed.phases[0]
    plan = feed.plan(phase)
    shown = defaultdict(Counter)
    numbers = np.arange(len(plan))
    for epoch in range(passes):
        for row in rows_in(feed.make(0, phase, np.full_like(numbers, epoch), numbers)):
            text = int(plan.piece_start[plan.row_start[row["number"]]]), tuple(row["original"])
            shown[text][tuple(row["ids"]), tuple(row["edit"])] += 1
    return {text: counts for text, counts in shown.items() if len(text[1]) > 30}


def long_rows(corpus, **changes):
    """Rows within one document: every pass over the text cuts the same ones."""
    size = {"training__length": 64, "model__max_length": 64}
    return Feed(tiny_recipe("roberta", rows__kind="doc_sentences", **size, **changes), corpus, 0)


def test_static_copies_show_each_mask_once_an_epoch(corpus):
    """Ten copies over forty passes of the text: each row shows ten masks, four times each."""
    shown = masks_of_each_text(long_rows(corpus, corruption__when="static", rows__copies=10), 4)
    assert len(shown) > 10
    assert all(sorted(counts.values()) == [4] * 10 for counts in shown.values())


def test_dynamic_masks_are_new_every_time(corpus):
    shown = masks_of_each_text(long_rows(corpus, corruption__when="dynamic"), 40)
    assert len(shown) > 10
    assert all(sorted(counts.values()) == [1] * 40 for counts in shown.values())


def test_the_masks_of_a_row_do_not_depend_on_training_settings(corpus):
    one = Feed(tiny_recipe("roberta"), corpus, 0)
    other = Feed(tiny_recipe("roberta", training__batch=3, training__lr=1e-5, model__layers=1), corpus, 0)
    firsts = [rows_in(*[feed.batch(step) for step in range(3)])[:9] for feed in (one, other)]
    assert firsts[0] == firsts[1]


# -- guards


def trainer_of(corpus, micro=8, **changes):
    recipe = tiny_recipe("bert", training__steps=6, **changes)
    system = System(recipe, corpus.vocabulary)
    system.initialise(0)
    feed = Feed(recipe, corpus, recipe.training.seed)
    return Trainer(recipe.training, feed, system, AdamW(system.named_parameters(), recipe.training), [micro])


def weights_of(trainer):
    state = {name: value.clone() for name, value in trainer.system.state_dict().items()}
    return state | {name: value.clone() for name, value in trainer.optimizer.state().items()}


def same(one, other):
    return one.keys() == other.keys() and all(torch.equal(value, other[name]) for name, value in one.items())


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_loss_that_is_no_number_moves_nothing(corpus, monkeypatch, value):
    trainer = trainer_of(corpus, micro=4)
    updates = trainer.updates()
    next(updates)
    before = weights_of(trainer)
    objective = trainer.system.objectives["next_sentence"]
    total = type(objective).total

    def broken(self, *arguments):
        return total(self, *arguments) * value

    monkeypatch.setattr(type(objective), "total", broken)
    with pytest.raises(NonFiniteError, match="update 2") as caught:
        next(updates)
    numbers = trainer.feed.batch(1).rows.tolist()
    assert caught.value.where == f"rows {', '.join(map(str, numbers))} of the plan"
    assert "next_sentence" in caught.value.cause
    assert caught.value.exit_code == 1
    assert same(before, weights_of(trainer))
    assert trainer.step == 1


def refusing(monkeypatch, largest, error):
    """Forward passes of more than `largest` rows fail; the sizes of all are written down."""
    forward, sizes = System.forward, []

    def limited(self, each):
        sizes.append(each.size)
        if each.size > largest:
            raise error
        return forward(self, each)

    monkeypatch.setattr(System, "forward", limited)
    return sizes


ALLOCATOR = (
    "[enforce fail at alloc_cpu.cpp:1] DefaultCPUAllocator: can't allocate memory: you tried to allocate 8 bytes."
)


@pytest.mark.parametrize("error", [RuntimeError(ALLOCATOR), MemoryError(), torch.OutOfMemoryError("no")])
def test_an_allocators_refusal_halves_the_micro_batch(corpus, monkeypatch, error):
    sizes = refusing(monkeypatch, 2, error)
    trainer = trainer_of(corpus, micro=8)
    updates = list(trainer.updates())
    assert [update.step for update in updates] == list(range(1, 7))
    assert [bool(update.note) for update in updates] == [True] + [False] * 5
    assert "step 1 was redone with micro-batches of 2 rows" in updates[0].note
    assert trainer.micro == [2]
    assert sizes == [8, 4] + [2] * 4 * 6
    expected = trainer_of(corpus, micro=2)
    assert [update.loss for update in expected.updates()] == [update.loss for update in updates]
    assert same(weights_of(expected), weights_of(trainer))


def test_a_refusal_in_the_middle_of_a_step_counts_nothing_twice(corpus, monkeypatch):
    forward, calls = System.forward, []

    def third_fails(self, each):
        calls.append(each.step)
        if len(calls) == 6:
            raise RuntimeError(ALLOCATOR)
        return forward(self, each)

    monkeypatch.setattr(System, "forward", third_fails)
    trainer = trainer_of(corpus, micro=2)
    updates = list(trainer.updates())
    assert calls == [0] * 4 + [1] * 2 + [1] * 8 + [step for step in (2, 3, 4, 5) for _ in range(8)]
    assert [update.tokens for update in updates] == [trainer.feed.batch(step).tokens for step in range(6)]
    assert trainer.micro == [1]


def test_one_row_that_does_not_fit_ends_the_run(corpus, monkeypatch):
    refusing(monkeypatch, 0, RuntimeError(ALLOCATOR))
    with pytest.raises(TrainingError, match="one row at a time") as caught:
        next(trainer_of(corpus).updates())
    assert "--size" in caught.value.repair


def test_other_errors_go_on_as_they_are(corpus, monkeypatch):
    refusing(monkeypatch, 0, RuntimeError("mat1 and mat2 shapes cannot be multiplied"))
    trainer = trainer_of(corpus)
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        next(trainer.updates())
    assert trainer.micro == [8]


class DyingFeed(Feed):
    def make(self, *arguments):
        os._exit(3)


def test_a_worker_that_dies_is_told(corpus):
    trainer = trainer_of(corpus)
    trainer.feed, trainer.workers = DyingFeed(trainer.feed.recipe, corpus, 0), 1
    with pytest.raises(TrainingError, match="a process that makes batches died") as caught:
        next(trainer.updates())
    assert "--workers 0" in caught.value.repair


def test_corpora_travel_to_workers_as_paths(corpus):
    assert isinstance(corpus, Corpus)
    function, arguments = corpus.__reduce__()
    assert function(*arguments).fingerprint == corpus.fingerprint
