"""Memory that is kept between steps, and given back where holes have made the process larger than planned."""

import numpy as np
import pytest
from small_run import corpus_in, tiny_recipe

from maskery.train import machine
from maskery.train.build import build_trainer
from maskery.train.machine import Heap

MIB = 2**20


def watched(monkeypatch, sizes):
    """A process that has these sizes, one after another, and the number of times that it gave memory back."""
    given = []
    left = iter(sizes)
    monkeypatch.setattr(machine, "resident", lambda: next(left))
    monkeypatch.setattr(machine, "give_back", lambda: given.append(True))
    return given


def test_memory_is_given_back_beyond_plan_and_margin(monkeypatch):
    given = watched(monkeypatch, [100, 224, 226, 90, 216, 90])
    heap = Heap(100)
    assert not heap.look(), "100 there before, 100 planned, a quarter of it as margin"
    assert heap.look()
    assert heap.limit == 215, "beside what is left"
    assert heap.look()
    assert len(given) == 2


def test_what_cannot_be_given_back_is_not_tried_again(monkeypatch):
    given = watched(monkeypatch, [100, 300, 280, 400, 406, 406])
    heap = Heap(100)
    assert heap.look()
    assert not heap.look(), "the process needs so much"
    assert heap.look(), "and now more"
    assert len(given) == 2


def test_where_the_system_tells_nothing_nothing_happens(monkeypatch):
    given = watched(monkeypatch, [0, 0])
    assert not Heap(100).look()
    assert not given


@pytest.mark.skipif(machine._glibc() is None, reason="only glibc keeps memory in this way")
def test_holes_are_given_back_to_the_system():
    machine.prepare()
    blocks = [np.ones(MIB // 8) for _ in range(128)]
    kept = blocks[::16]
    before = machine.resident()
    assert before > 128 * MIB
    del blocks
    machine.give_back()
    assert before - machine.resident() > 64 * MIB
    assert all(float(each.sum()) == MIB // 8 for each in kept), "what is in use stays as it is"


def test_a_run_is_watched(tmp_path, monkeypatch):
    """With the estimate of its own steps, and with the same losses."""
    corpus = corpus_in(tmp_path)
    chosen = tiny_recipe("bert", training__steps=9)
    looked = []
    trainer = build_trainer(chosen, corpus, 0, lambda text: None)
    monkeypatch.setattr(Heap, "look", lambda heap: looked.append(trainer.step))
    assert trainer.planned > 0
    losses = [update.loss for update in trainer.updates()]
    assert looked == [8], "every eighth step"
    monkeypatch.undo()
    monkeypatch.setattr(Heap, "EVERY", 1)
    monkeypatch.setattr(Heap, "MARGIN", 0.0)
    again = build_trainer(chosen, corpus, 0, lambda text: None)
    assert [update.loss for update in again.updates()] == losses, "memory was given back after every step"
