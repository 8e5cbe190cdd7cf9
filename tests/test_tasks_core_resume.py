"""A fine-tuning that was stopped goes on bitwise, and leaves the best model so far."""

from __future__ import annotations

import os
import signal
from dataclasses import replace

import numpy as np
import pytest
from small_task import LABELS, KilledError, config_of, contents, examples_of, family_model, lines, quiet

from maskery.checkpoint.load import load
from maskery.errors import InputError, RecipeError, Stopped
from maskery.model import multiply
from maskery.tasks.folder import TaskFolder
from maskery.tasks.model import TaskModel
from maskery.tasks.resolve import Splits, resolve
from maskery.tasks.run import tune
from maskery.train import machine

SPLITS = Splits(examples_of("classify", 24), examples_of("classify", 12, 50))


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model") / "model"
    family_model(folder, "bert", dropout=0.1, attention_dropout=0.1)
    return folder


def run(model, out, *, splits=SPLITS, resume=False, watch=lambda update, line: None, say=quiet, **training):
    loaded = load(model)
    given = {"lr": 1e-2, **training}
    config = resolve(config_of("classify", epochs=4, training=given), loaded, splits, LABELS["classify"], quiet)
    return tune(TaskModel(loaded, config), splits, out, resume=resume, say=say, watch=watch)


def killing(step):
    def watch(update, _line):
        if update.step == step:
            raise KilledError

    return watch


@pytest.mark.parametrize("step", [2, 5, 9])
def test_killed(step, model, tmp_path):
    """Before the first checkpoint, in the middle of an epoch, and where one has just ended."""
    run(model, tmp_path / "whole")
    with pytest.raises(KilledError):
        run(model, tmp_path / "killed", watch=killing(step))
    run(model, tmp_path / "killed", resume=True)
    assert len(lines(tmp_path / "whole")) == 12
    assert lines(tmp_path / "killed") == lines(tmp_path / "whole")
    assert contents(tmp_path / "killed") == contents(tmp_path / "whole")


@pytest.mark.parametrize("family", ["modernbert", "deberta-v2", "mpnet"])
def test_killed_with_another_network(family, tmp_path):
    """Rotary positions, windows and gates; disentangled attention; distances in buckets."""
    family_model(tmp_path / "model", family, dropout=0.1, attention_dropout=0.1)
    run(tmp_path / "model", tmp_path / "whole")
    with pytest.raises(KilledError):
        run(tmp_path / "model", tmp_path / "killed", watch=killing(5))
    run(tmp_path / "model", tmp_path / "killed", resume=True)
    assert lines(tmp_path / "killed") == lines(tmp_path / "whole")
    assert contents(tmp_path / "killed") == contents(tmp_path / "whole")


def test_saved_between_evaluations(model, tmp_path):
    with pytest.raises(KilledError):
        run(model, tmp_path / "run", watch=killing(6), save_every=5)
    assert [step for step, _ in TaskFolder(tmp_path / "run").checkpoints()] == [5]


def test_interrupted(model, tmp_path):
    """Ctrl-C in the fifth step: the state is saved, and the folder holds the best model of the evaluations so far."""
    run(model, tmp_path / "whole")
    best = {}

    def watch(update, line):
        if "eval/accuracy" in line:
            best[update.step] = line["eval/accuracy"]
        if update.step == 4:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(Stopped) as stopped:
        run(model, tmp_path / "run", watch=watch)
    assert stopped.value.exit_code == 128 + signal.SIGINT
    folder = TaskFolder(tmp_path / "run")
    assert not folder.state["finished"]
    left = TaskModel.load(tmp_path / "run")
    feed = left.feed(SPLITS.dev, quiet)
    right = np.mean([said == gold for said, gold in zip(left.answers(feed).answers, feed.question.gold, strict=True)])
    assert folder.state["best"] == {"step": 3, "value": pytest.approx(right)}
    assert best == {3: pytest.approx(right)}
    run(model, tmp_path / "run", resume=True)
    assert folder.state["finished"]
    assert lines(tmp_path / "run") == lines(tmp_path / "whole")
    assert contents(tmp_path / "run") == contents(tmp_path / "whole")


def test_finished_is_only_told(model, tmp_path):
    run(model, tmp_path / "run")
    before, told = contents(tmp_path / "run"), []
    run(model, tmp_path / "run", resume=True, say=told.append)
    assert contents(tmp_path / "run") == before
    assert any("already finished" in line for line in told)


def test_micro_batches_are_those_of_the_start(model, tmp_path, monkeypatch):
    """Memory may be another when a run goes on: sums in another order would be other bits."""
    run(model, tmp_path / "whole")
    with pytest.raises(KilledError):
        run(model, tmp_path / "run", watch=killing(5))
    from maskery.tasks import run as module

    chosen = module.choose_micro
    monkeypatch.setattr(module, "choose_micro", lambda *given: replace(chosen(*given), rows=2))
    run(model, tmp_path / "run", resume=True)
    assert contents(tmp_path / "run") == contents(tmp_path / "whole")


def test_other_settings_or_examples_are_refused(model, tmp_path):
    with pytest.raises(KilledError):
        run(model, tmp_path / "run", watch=killing(5))
    with pytest.raises(RecipeError, match="another training"):
        run(model, tmp_path / "run", resume=True, lr=1e-3)
    other = Splits(examples_of("classify", 24, 1), SPLITS.dev)
    with pytest.raises(RecipeError, match="other examples"):
        run(model, tmp_path / "run", resume=True, splits=other)


def test_in_bfloat16(model, tmp_path):
    """The network in fewer digits, losses not: near float32's run, told, and resumed bitwise."""
    told = []
    run(model, tmp_path / "plain", say=told.append)
    assert not any(line.startswith("precision: bfloat16") for line in told), "float32 unless asked"
    run(model, tmp_path / "whole", precision="bfloat16", say=told.append)
    assert any(line.startswith("precision: bfloat16 (as asked") for line in told)
    with pytest.raises(KilledError):
        run(model, tmp_path / "killed", precision="bfloat16", watch=killing(5))
    run(model, tmp_path / "killed", precision="bfloat16", resume=True)
    assert contents(tmp_path / "killed") == contents(tmp_path / "whole")
    plain, few = ([line["loss"] for line in lines(tmp_path / name)] for name in ("plain", "whole"))
    assert plain != few
    assert few == pytest.approx(plain, rel=0.1)


def test_float16_is_refused(model, tmp_path):
    with pytest.raises(InputError, match="float16 is for pretraining"):
        run(model, tmp_path / "run", precision="float16")


def test_another_machine_is_told(model, tmp_path, monkeypatch):
    with pytest.raises(KilledError):
        run(model, tmp_path / "run", watch=killing(6), save_every=5)
    here = machine.facts
    monkeypatch.setattr(machine, "facts", lambda *given: here(*given) | {"float32_products": "another"})
    said = []
    run(model, tmp_path / "run", resume=True, save_every=5, say=said.append)
    told = [line for line in said if "bitwise" in line]
    assert len(told) == 1
    assert told[0].startswith(f"warning: float32_products was {multiply.library()!r}, is 'another'")
