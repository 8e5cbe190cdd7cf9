"""The benchmark of shapes: every comparison runs, its sides do the same work, and its ratio is what it says."""

import sys
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parent.parent))

from benchmarks import shape_speed, xlnet_speed
from benchmarks.pretrain import full_batch

POSSIBLE = [name for name, (_, needed, _) in shape_speed.COMPARISONS.items() if set(needed) <= set(shape_speed.names())]


@pytest.fixture(autouse=True)
def _few_words(monkeypatch):
    """A vocabulary that costs nothing."""
    for module in (shape_speed, xlnet_speed, sys.modules["benchmarks.pretrain"]):
        monkeypatch.setattr(module, "VOCABULARY", 300)


@pytest.mark.parametrize("name", POSSIBLE)
def test_every_comparison_runs(name):
    found = shape_speed.compare(name, "tiny", 0.0, 16, rounds=1, rows=2)
    ours, *others = found["milliseconds"].values()
    assert min(ours, *others) > 0
    together = shape_speed.COMPARISONS[name][2]
    assert found["ratio"] == pytest.approx(together(others) / ours)
    assert found["tokens_per_second"] == pytest.approx(1000 * 32 / ours)


def test_both_alberts_are_of_one_size_and_learn():
    made = shape_speed.shaped("albert", "mini", 0.0, 16)
    mine, other = shape_speed.Ours(made), shape_speed.Albert(made, "sdpa")
    ours, theirs = (sum(each.numel() for each in model.parameters()) for model in (mine.system, other.model))
    assert ours == theirs
    batch = full_batch(4, 16, 0)
    for side in (mine, other):
        losses = [side.step(batch) for _ in range(8)]
        assert losses[0] == pytest.approx(torch.tensor(300.0).log().item() + torch.tensor(2.0).log().item(), rel=0.1)
        assert losses[-1] < losses[0]


def test_what_cannot_be_compared_is_said(monkeypatch, capsys):
    monkeypatch.setattr(shape_speed, "names", lambda: ["bert", "albert"])
    monkeypatch.setattr(shape_speed, "find_spec", lambda name: None)
    assert list(shape_speed.possible()) == []
    told = capsys.readouterr().out
    assert "albert: left out, there is no transformers" in told
    assert "nezha: left out, there is no recipe nezha" in told
    assert "electra: left out, there is no recipe electra" in told


@pytest.mark.parametrize("memory", [0, 8])
def test_two_streams_beside_one_and_beside_transformers(memory):
    found = xlnet_speed.compare("tiny", 16, memory, rounds=2, rows=4)
    times = found["milliseconds"]
    assert set(times) == {"xlnet", "bert", "theirs", "collator"}
    assert min(times.values()) > 0
    assert found["ratio"] == {side: pytest.approx(times["xlnet"] / times[side]) for side in ("bert", "theirs")}


def test_both_xlnets_are_of_one_size_and_learn():
    made = xlnet_speed.xlnet("tiny", 16, 8)
    mine, other = xlnet_speed.Ours(made), xlnet_speed.Theirs(made)
    ours, theirs = (sum(each.numel() for each in model.parameters()) for model in (mine.system, other.model))
    assert ours == theirs
    batch = full_batch(4, 16, 0)
    other.feed(batch)
    for side in (mine, other):
        losses = [side.step(batch) for _ in range(8)]
        assert losses[0] == pytest.approx(torch.tensor(300.0).log().item(), rel=0.1)
        assert losses[-1] < losses[0]
    asked = xlnet_speed.permuted(batch)
    assert mine.memory.length.tolist() == [8] * 4
    assert len(asked.asked) == 4 * (16 // 6)
