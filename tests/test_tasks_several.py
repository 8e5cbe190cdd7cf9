"""Several trainings as one run: ends of long texts, seeds, and what stands at the top of the run's folder."""

from __future__ import annotations

import json
import os
import signal
from contextlib import contextmanager
from dataclasses import replace
from random import Random

import numpy as np
import pytest
from small_task import FILLERS, examples_of, family_model, quiet

from maskery.errors import CheckpointError, InputError, RecipeError, Stopped
from maskery.tasks.finetune import finetune
from maskery.tasks.folder import TaskFolder
from maskery.tasks.judging import read_judgement
from maskery.tasks.model import TaskModel, read_task
from maskery.tasks.plan import Plan
from maskery.tasks.together import Together, opened

QUICK = {"epochs": 2, "training": {"lr": 3e-3, "batch": 8}}


def long_texts(many, first=0):
    """What tells the label stands among the last words, behind more of them than a row of 12 slots holds."""
    made = examples_of("classify", many, first)
    draw = Random(first)
    fronts = [" ".join(draw.choice(FILLERS) for _ in range(18)) for _ in made]
    items = [replace(each, texts=(f"{front} {each.texts[0]}",)) for front, each in zip(fronts, made, strict=True)]
    return replace(made, items=tuple(items))


@pytest.fixture(scope="module")
def model(tmp_path_factory, no_waiting_for_the_disk):
    folder = tmp_path_factory.mktemp("several") / "model"
    family_model(folder, "bert")
    return folder


TRAIN, DEV = long_texts(32), long_texts(16, 100)
SHORT = {**QUICK, "rows": {"length": 12}}


def run_of(model, out, plan, *, train=TRAIN, dev=DEV, settings=SHORT, say=quiet, **more):
    return finetune(model, out=out, train=train, dev=dev, settings=settings, plan=plan, say=say, **more)


def probabilities(folder):
    return opened(folder).predict(DEV, quiet).probabilities


def test_the_best_end_is_kept_and_all_three_are_told(model, tmp_path):
    told = []
    train, settings = long_texts(64), {**SHORT, "epochs": 8}
    run = run_of(model, tmp_path / "run", Plan(truncate="all"), train=train, settings=settings, say=told.append)
    values = {end: read_judgement(run.path / end).value for end in ("head", "tail", "head+tail")}
    assert values["head"] < 0.8, "nothing in the head tells the label"
    assert values["tail"] > 0.95
    assert run.judgement.value == values["tail"] >= values["head+tail"]
    assert run.model.config.rows.truncate == read_task(run.path).rows.truncate == "tail"
    assert TaskFolder(run.path).state["kept"] == "tail"
    assert opened(run.path).predict(DEV, quiet).answers == opened(run.path / "tail").predict(DEV, quiet).answers
    for end, value in values.items():
        assert any(line.startswith(f"truncate {end}: accuracy {value:.4f} [") for line in told)
        assert f"truncate {end}" in (run.path / "README.md").read_text()
    assert [line for line in told if line.startswith("training ")] == [
        "training 1 of 3, head", "training 2 of 3, tail", "training 3 of 3, head+tail",
    ]  # fmt: skip


@pytest.fixture(scope="module")
def fused(model, tmp_path_factory):
    return run_of(model, tmp_path_factory.mktemp("fused") / "run", Plan(truncate="fuse"))


def test_the_three_ends_together_are_their_average(fused):
    run = fused
    assert isinstance(run.model, Together)
    assert read_task(run.path).fused == ("head", "tail", "head+tail")
    singly = [TaskModel.load(run.path / end).predict(DEV, quiet).probabilities for end in ("head", "tail", "head+tail")]
    np.testing.assert_allclose(probabilities(run.path), np.mean(singly, axis=0), atol=1e-7)
    np.testing.assert_array_equal(run.predict(["x", "y"]).probabilities.shape, (2, 2))
    right = np.mean(
        [found == each.label for found, each in zip(run.model.predict(DEV, quiet).answers, DEV, strict=True)]
    )
    assert run.judgement.value == pytest.approx(right)
    assert not (run.path / "model.safetensors").exists(), "it is the three inside"
    assert "eval_loss" in (run.path / "eval_results.txt").read_text()


def test_where_no_row_is_cut_there_is_one_training(model, tmp_path):
    told = []
    train, dev = examples_of("classify", 16), examples_of("classify", 8, 50)
    run = run_of(model, tmp_path / "run", Plan(truncate="fuse"), train=train, dev=dev, settings=QUICK, say=told.append)
    assert any("no row is cut" in line for line in told)
    assert (run.path / "model.safetensors").is_file()
    assert not (run.path / "head").exists()


def test_answers_that_cannot_be_averaged_are_refused(model, tmp_path):
    tags = examples_of("tag", 16)
    with pytest.raises(InputError, match="--truncate all keeps the best"):
        run_of(model, tmp_path / "run", Plan(truncate="fuse"), train=tags, dev=tags, settings={"rows": {"length": 6}})
    assert not (tmp_path / "run").exists()


def test_seeds_are_told_with_mean_and_deviation(model, tmp_path):
    told = []
    settings = {**QUICK, "training": {**QUICK["training"], "seed": 5}}
    train, dev = examples_of("classify", 24), examples_of("classify", 16, 50)
    run = run_of(model, tmp_path / "run", Plan(seeds=3), train=train, dev=dev, settings=settings, say=told.append)
    each = [read_judgement(run.path / f"seed-{seed}").value for seed in (5, 6, 7)]
    spread = run.repeated.seeds["accuracy"]
    assert spread.each == tuple(each)
    assert (spread.mean, spread.sd) == pytest.approx((np.mean(each), np.std(each, ddof=1)))
    assert run.judgement.value == max(each)
    assert read_task(run.path).training.seed == 5 + int(np.argmax(each))
    assert f"{spread.mean:.4f}" in (run.path / "README.md").read_text()
    assert "Several seeds" in (run.path / "report.html").read_text()
    assert any(line.startswith(f"3 seeds: accuracy {spread.mean:.4f}, sd {spread.sd:.4f}") for line in told)
    weights = [(run.path / f"seed-{seed}" / "model.safetensors").read_bytes() for seed in (5, 6)]
    assert weights[0] != weights[1]


def test_the_curve_stands_on_parts_of_the_data_and_the_last_is_kept(model, tmp_path):
    train, dev = examples_of("classify", 32), examples_of("classify", 16, 100)
    quick = {**QUICK, "epochs": 1}
    run = run_of(model, tmp_path / "run", Plan(curve=True, seeds=2), train=train, dev=dev, settings=quick)
    points = [(point.size, point.seed) for point in run.repeated.learning.points]
    assert points == [(16, 0), (16, 1), (32, 0), (32, 1)]
    for point in run.repeated.learning.points:
        alone = read_judgement(run.path / f"examples-{point.size}" / f"seed-{point.seed}")
        assert (point.metrics, dict(point.intervals)) == (alone.metrics, alone.intervals)
    steps = [TaskFolder(run.path / f"examples-{size}").state["step"] for size in (16, 32)]
    assert [read_task(run.path / f"examples-{size}").training.steps for size in (16, 32)] == steps == [2, 4]
    kept = run.path / "examples-32" / TaskFolder(run.path / "examples-32").state["kept"]
    np.testing.assert_array_equal(opened(run.path).predict(dev, quiet).probabilities,
                                  opened(kept).predict(dev, quiet).probabilities)  # fmt: skip
    assert "Learning curve" in (run.path / "report.html").read_text()
    card = (run.path / "README.md").read_text()
    assert "## Learning curve (accuracy)" in card
    assert all(f"| {size} | " in card for size in (16, 32))


class _Kill:
    """A watcher that stops the n-th training at a step, as Ctrl-C does."""

    def __init__(self, training, step):
        self.training, self.step, self.seen = training, step, []

    @contextmanager
    def __call__(self, part):
        self.seen.append(part.title)

        def watch(update, line):
            if len(self.seen) == self.training and update.step == self.step:
                os.kill(os.getpid(), signal.SIGINT)

        yield watch


def test_a_stopped_run_leaves_a_model_and_goes_on_to_the_same(model, fused, tmp_path):
    whole, plan = fused, Plan(truncate="fuse")
    kill, cut, told = _Kill(2, 5), tmp_path / "cut", []
    with pytest.raises(Stopped):
        run_of(model, cut, plan, watching=kill, say=told.append)
    assert any(line.startswith("so far: ") for line in told)
    assert read_task(cut).fused == ("head", "tail"), "what there is so far answers"
    assert probabilities(cut).shape == (16, 2)
    assert kill.seen == ["training 1 of 3, head", "training 2 of 3, tail"]
    with pytest.raises(RecipeError, match="the run was started with"):
        run_of(model, cut, Plan(seeds=3), resume=True)
    told.clear()
    run = run_of(model, cut, plan, resume=True, say=told.append)
    assert any(line.startswith(f"{cut / 'head'}: already finished") for line in told)
    assert any("resumed from step-5" in line for line in told)
    np.testing.assert_array_equal(probabilities(cut), probabilities(whole.path))
    assert (cut / "evaluation.json").read_bytes() == (whole.path / "evaluation.json").read_bytes()
    told.clear()
    again = run_of(model, cut, plan, resume=True, say=told.append)
    assert any("already finished" in line for line in told)
    assert again.judgement == run.judgement
    with pytest.raises(RecipeError, match="started with other examples"):
        run_of(model, cut, plan, resume=True, dev=TRAIN)
    with pytest.raises(RecipeError, match=r"another training.lr: 0.003, now 0.1"):
        run_of(model, cut, plan, resume=True, settings={**SHORT, "training": {"lr": 0.1, "batch": 8}})


def test_a_folder_of_several_models_says_what_is_missing(fused, tmp_path):
    (tmp_path / "task.toml").write_text((fused.path / "task.toml").read_text())
    with pytest.raises(CheckpointError, match="names head, which is not there"):
        opened(tmp_path)


def test_a_plan_is_kept_and_a_plain_run_has_none(model, tmp_path):
    train, dev = examples_of("classify", 16), examples_of("classify", 8, 50)
    run_of(model, tmp_path / "one", Plan(), train=train, dev=dev, settings=QUICK)
    assert not (tmp_path / "one" / "plan.json").exists()
    with pytest.raises(RecipeError, match=r"another epochs: 2.0, now 3.0"):
        run_of(model, tmp_path / "one", Plan(), train=train, dev=dev, settings={**QUICK, "epochs": 3}, resume=True)
    with pytest.raises(InputError, match=r"is no run of maskery finetune"):
        run_of(model, model, Plan(), train=train, dev=dev, settings=QUICK, resume=True)
    with pytest.raises(RecipeError, match="seeds = 1, asked is 2"):
        run_of(model, tmp_path / "one", Plan(seeds=2), train=train, dev=dev, settings=QUICK, resume=True)


def test_a_run_of_several_is_not_gone_on_with_as_one(fused, model):
    assert json.loads((fused.path / "plan.json").read_text())["truncate"] == "fuse"
    with pytest.raises(RecipeError, match="truncate = 'fuse', asked is ''"):
        run_of(model, fused.path, Plan(), resume=True)
