"""A loss of the user's own: it trains as the same loss by name does, bit by bit; its name alone is written."""

from __future__ import annotations

import json

import pytest
import torch
import torch.nn.functional as F
from bad_tasks import prepared, refused
from small_task import config_of, contents, examples_of, family_model, lines, quiet, task_model

import maskery
from maskery.cli import main
from maskery.errors import InputError
from maskery.tasks.batches import TASK
from maskery.tasks.own_loss import put_loss, taken_loss
from maskery.tasks.plan import Plan
from maskery.tasks.resolve import Splits, resolve

CODE = """
import torch.nn.functional as F

def soft(scores, labels):
    return F.cross_entropy(scores, labels, reduction="none", label_smoothing=0.25)

def averaged(scores, labels):
    return F.cross_entropy(scores, labels)

def flat(scores, labels):
    return scores.detach().sum(1)

def broken(scores, labels):
    return scores.nothing
"""


def soft(scores, labels):
    return F.cross_entropy(scores, labels, reduction="none", label_smoothing=0.25)


SAME = {
    "classify": ("cross_entropy", lambda scores, labels: F.cross_entropy(scores, labels, reduction="none")),
    "regress": ("mse", lambda scores, labels: (scores - labels).square()),
    "multilabel": (
        "binary",
        lambda scores, labels: F.binary_cross_entropy_with_logits(scores, labels, reduction="none").mean(1),
    ),
    "tag": ("cross_entropy", lambda scores, labels: F.cross_entropy(scores, labels, reduction="none")),
}


@pytest.mark.parametrize("task", SAME)
def test_total_count_and_gradient_are_those_of_the_named_loss(task, tmp_path):
    name, function = SAME[task]
    found = []
    for given in (name, function):
        settings, own = taken_loss({"head": {"loss": given}}, quiet)
        model = family_model(tmp_path / f"model-{len(found)}", "bert")
        made = task_model(model, task, head=settings["head"], std=0.5)
        put_loss(made.system, own)
        batch = made.feed(examples_of(task, 7), quiet).asked(torch.arange(7).numpy())
        total = made.system(batch)[TASK]
        total.backward()
        gradient = made.system.head.answer.weight.grad
        found.append((total.item(), made.system.counts(batch)[TASK], gradient))
    assert found[0][:2] == pytest.approx(found[1][:2], rel=1e-6)
    assert torch.allclose(found[0][2], found[1][2], atol=1e-6)


def tuned(place, out, loss, say=quiet, **more):
    return maskery.finetune(
        place / "model",
        train=place / "train.tsv",
        dev=place / "dev.tsv",
        out=place / out,
        settings={"epochs": 2, "head": {"loss": loss}, "training": {"batch": 4}},
        say=say,
        **more,
    )


def test_a_function_a_file_and_a_name_train_alike(tmp_path):
    prepared(tmp_path)
    (tmp_path / "mine.py").write_text(CODE)
    said = []
    tuned(tmp_path, "function", soft)
    run = tuned(tmp_path, "file", f"{tmp_path}/mine.py:soft", say=said.append)
    assert f"{tmp_path}/mine.py:soft: the code of this file was run" in said
    named = maskery.finetune(
        tmp_path / "model",
        train=tmp_path / "train.tsv",
        dev=tmp_path / "dev.tsv",
        out=tmp_path / "named",
        settings={"epochs": 2, "head": {"smoothing": 0.25}, "training": {"batch": 4}},
        say=quiet,
    )
    for name in ("file", "function"):
        for one, other in zip(lines(tmp_path / name), lines(tmp_path / "named"), strict=True):
            assert one == pytest.approx(other, rel=1e-5)
    assert run.judgement.metrics == named.judgement.metrics
    assert 'loss = "own:soft"' in (tmp_path / "function/task.toml").read_text()
    assert 'loss = "own:soft@' in (tmp_path / "file/task.toml").read_text()
    (tmp_path / "mine.py").unlink()
    assert main(["predict", str(tmp_path / "file"), str(tmp_path / "dev.tsv")]) == 0, "predicting needs no loss"


def test_a_stopped_run_goes_on_with_the_same_function_only(tmp_path, monkeypatch):
    prepared(tmp_path)
    (tmp_path / "mine.py").write_text(CODE)
    loss = f"{tmp_path}/mine.py:soft"
    tuned(tmp_path, "whole", loss)

    def killed(*_):
        raise RuntimeError("killed")

    with monkeypatch.context() as patch:
        patch.setattr("maskery.tasks.several.write_judgement", killed)
        patch.setattr("maskery.tasks.run.Tuning.finish", killed)
        with pytest.raises(RuntimeError, match="killed"):
            tuned(tmp_path, "stopped", loss)
    (tmp_path / "mine.py").write_text(CODE.replace("0.25", "0.5"))
    with pytest.raises(maskery.MaskeryError, match=r"started with another head\.loss"):
        tuned(tmp_path, "stopped", loss, resume=True)
    (tmp_path / "mine.py").write_text(CODE)
    tuned(tmp_path, "stopped", loss, resume=True)
    assert contents(tmp_path / "stopped") == contents(tmp_path / "whole")


def test_several_trainings_are_judged_by_it(tmp_path):
    prepared(tmp_path)
    tuned(tmp_path, "seeds", soft, plan=Plan(seeds=2))
    told = dict(line.split(" = ") for line in (tmp_path / "seeds/eval_results.txt").read_text().splitlines())
    kept = json.loads((tmp_path / "seeds/state.json").read_text())["kept"]
    first = dict(
        line.split(" = ") for line in (tmp_path / "seeds" / kept / "eval_results.txt").read_text().splitlines()
    )
    assert told["eval_loss"] == first["eval_loss"]


@pytest.mark.parametrize(
    ("loss", "told"),
    [
        ("mine.py:averaged", "mine.py: the loss gave a tensor of shape () for 2 targets"),
        ("mine.py:flat", "mine.py: the loss has no gradient"),
        ("mine.py:broken", "mine.py:14: the loss failed: AttributeError"),
        ("mine.py:sof", "mine.py: unknown function 'sof'"),
        ("mine.py", "head.loss mine.py: no file and function"),
        ("none.py:soft", "head.loss none.py:soft: there is no such file"),
        ("own:soft", "head.loss: own:soft is code of yours, and a folder holds none"),
    ],
)
def test_refused_before_anything_is_written(loss, told, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    prepared(tmp_path)
    (tmp_path / "mine.py").write_text(CODE)
    refused(
        capsys,
        told,
        train="train.tsv",
        dev="dev.tsv",
        flags=("--set", f"head.loss={loss}"),
        settings={"head": {"loss": loss}},
    )
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("task", "tables", "cause"),
    [
        ("choice", {"head": {"loss": "own:soft"}}, "choice compares several"),
        ("classify", {"head": {"crf": True}}, "--crf is for the task tag; this is classify"),
        ("tag", {"head": {"crf": True, "loss": "focal"}}, "a crf has a loss of its own, so focal would not be trained"),
        ("tag", {"head": {"crf": True, "smoothing": 0.1}}, "smoothing is of cross_entropy; the loss here is crf"),
        ("regress", {"head": {"smoothing": 0.1}}, "smoothing is of cross_entropy; the loss here is mse"),
        ("classify", {"head": {"loss": "focal", "smoothing": 0.1}}, "the loss here is focal"),
        ("classify", {"head": {"focus": 1.0}}, "focus is of the focal loss; the loss here is cross_entropy"),
        ("tag", {"read": {"pool": "mean"}}, "--pool mean has no effect"),
        ("qa", {"read": {"pool": "first"}}, "--pool first has no effect"),
        ("classify", {"write": {"beams": 3}}, "classify writes no text"),
    ],
)
def test_settings_that_nobody_would_read_are_refused(task, tables, cause, tmp_path):
    with pytest.raises(InputError, match=cause):
        task_model(family_model(tmp_path / "model", "bert"), task, **tables)


def test_what_is_read_is_not_refused(tmp_path):
    model = family_model(tmp_path / "model", "bert")
    for task, head in (("tag", {"crf": True}), ("pair", {"smoothing": 0.1}), ("tag", {"loss": "focal", "focus": 1.0})):
        assert resolve(config_of(task, head=head), model, Splits(examples_of(task)), ("a", "b"), quiet).task == task


def test_an_estimator_learns_with_it_and_is_saved_without_it(tmp_path):
    prepared(tmp_path)
    judge = maskery.Classifier(str(tmp_path / "model"), epochs=1, settings={"head": {"loss": soft}})
    judge.fit(["a cat", "a mat", "b cat", "b mat"], ["animal", "thing", "animal", "thing"])
    judge.save(tmp_path / "judge")
    again = maskery.Classifier.load(tmp_path / "judge")
    assert again.settings == {"head": {"loss": "own:soft"}}
    assert (again.predict_proba(["a cat"]) == judge.predict_proba(["a cat"])).all()
    with pytest.raises(InputError, match="own:soft is code of yours"):
        again.fit(["a cat", "a mat"], ["animal", "thing"])
