"""Before and around a training: pretraining on the task's texts, a budget of time, parts of the data."""

from __future__ import annotations

import json
import os
import signal
from collections import Counter
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from networks import FAMILY_SHAPES, model_of, model_of_family
from small_task import NO_DROPOUT, config_of, examples_of, family_model, quiet, words

from maskery.checkpoint.exporting import export_model
from maskery.checkpoint.load import load
from maskery.errors import InputError, RecipeError, Stopped
from maskery.language import phrases
from maskery.tasks import pace
from maskery.tasks.adapt import RECIPES as RECIPE_OF
from maskery.tasks.adapt import adapt, adapting_recipe, taken
from maskery.tasks.finetune import finetune
from maskery.tasks.folder import TaskFolder
from maskery.tasks.model import TaskModel, read_task
from maskery.tasks.plan import Plan
from maskery.tasks.subsets import nested_order, parts_of
from maskery.train.folder import RunFolder

QUICK = {"epochs": 1, "training": {"lr": 1e-3, "batch": 8}}
WRITERS = ("gpt", "gpt2", "transformer-xl", "bart")
TRAIN, DEV = examples_of("classify", 24), examples_of("classify", 8, 50)
LONGER = replace(
    TRAIN, items=tuple(replace(each, texts=(" ".join(words(at, 12 + at)),)) for at, each in enumerate(TRAIN))
)
"""Texts that fill a row of any kind."""


@pytest.fixture(scope="module")
def model(tmp_path_factory, no_waiting_for_the_disk):
    folder = tmp_path_factory.mktemp("before") / "model"
    family_model(folder, "bert")
    return folder


def run_of(model, out, plan, *, settings=QUICK, say=quiet, **more):
    return finetune(model, out=out, train=TRAIN, dev=DEV, settings=settings, plan=plan, say=say, **more)


# -- adapting


@contextmanager
def _killing(part):
    """Ctrl-C while the model is adapted."""

    def watch(update, line):
        if part.title == "adapting" and update.step == 2:
            os.kill(os.getpid(), signal.SIGINT)

    yield watch


def test_a_model_is_adapted_before_it_is_trained_and_goes_on_where_it_was_stopped(model, tmp_path):
    told = []
    whole = run_of(model, tmp_path / "whole", Plan(adapt=4), say=told.append)
    assert any("different texts of 24 examples" in line for line in told)
    assert any("asked: masked_token" in line and "labels are not read" in line for line in told)
    assert any("has no head for masked_token: a new one is trained" in line for line in told)
    adapted = RunFolder(whole.path / "adapted")
    assert (adapted.state["step"], adapted.state["finished"]) == (4, True)
    assert "masked_token" in load(adapted.path).heads
    assert not (whole.path / "adapted-texts").exists()
    with pytest.raises(Stopped):
        run_of(model, tmp_path / "cut", Plan(adapt=4), watching=_killing)
    told.clear()
    cut = run_of(model, tmp_path / "cut", Plan(adapt=4), resume=True, say=told.append)
    assert any("resumed from step-3" in line for line in told), "the step under way was finished"
    assert (cut.path / "model.safetensors").read_bytes() == (whole.path / "model.safetensors").read_bytes()


def test_what_was_adapted_is_what_is_trained(model, tmp_path):
    """With a rate of nearly nothing the trained network is the adapted one, and the pooler the model's own."""
    still = {"epochs": 1, "training": {"lr": 1e-12, "batch": 8}}
    run = run_of(model, tmp_path / "run", Plan(adapt=3), settings=still)
    trained, adapted, before = (load(path).network.state_dict() for path in (run.path, run.path / "adapted", model))
    name = next(name for name in adapted if name.startswith("layers"))
    np.testing.assert_allclose(trained[name], adapted[name], atol=1e-6)
    assert not np.allclose(adapted[name], before[name], atol=1e-6)
    pooler = [name for name in before if name.startswith("pooler")]
    assert pooler
    assert not set(pooler) & set(adapted)
    for name in pooler:
        np.testing.assert_allclose(trained[name], before[name], atol=1e-6)


def _heads(family):
    named = {"electra": "replaced_token", "xlnet": "permuted_token"}
    return named.get(family, "masked_token" if RECIPE_OF[family] not in WRITERS else "next_token")


@pytest.mark.parametrize("family", FAMILY_SHAPES)
def test_every_family_is_adapted(family, tmp_path):
    """Two steps move the network, and the task's model has its numbers; the folder has the head, or has none."""
    sizes = {"max_length": 40, **NO_DROPOUT}
    for name, heads in (("with", [_heads(family)]), ("bare", [])):
        whole = model_of_family(family, *heads, pooler=family in ("bert", "albert"), **sizes)
        export_model(whole, tmp_path / name, family)
        made, told = load(tmp_path / name), []
        assert made.family == family
        before = {key: each.clone() for key, each in made.network.state_dict().items()}
        (tmp_path / f"{name}-run").mkdir()
        adapt(made, tmp_path / name, LONGER, tmp_path / f"{name}-run", 2, 0, told.append)
        after = load(tmp_path / f"{name}-run" / "adapted").network.state_dict()
        now = made.network.state_dict()
        assert all((now[key] == after[key]).all() for key in after)
        assert all((before[key] != after[key]).any() for key in after)
        assert any("has no head for" in line for line in told) == (not heads)


RECIPES = {
    "bert": ("bert", ["masked_token"], "full_sentences"),
    "albert": ("albert", ["masked_token"], "full_sentences"),
    "gpt2": ("gpt2", ["next_token"], "stream"),
    "electra": ("electra", ["masked_token", "replaced_token"], "one_or_two_segments"),
    "xlnet": ("xlnet", ["permuted_token"], "stream_pair"),
    "bart": ("bart", ["next_token"], "doc_sentences"),
}


@pytest.mark.parametrize("family", RECIPES)
def test_a_family_is_adapted_by_its_own_recipe(family, tmp_path):
    made = family_model(tmp_path / "model", family)
    found = adapting_recipe(made, tmp_path / "model", 7, 3)
    name, asked, kind = RECIPES[family]
    assert (found.name, list(found.objectives), found.rows.kind) == (name, asked, kind)
    assert (found.training.steps, found.training.seed, found.rows.pair) == (7, 3, "none")
    assert (found.model.layers, found.model.width, found.model.max_length) == (
        made.config.layers, made.config.width, made.config.max_length,
    )  # fmt: skip
    found.require()


def test_heads_that_the_model_has_are_gone_on_from(tmp_path):
    model_of("next_token", visibility="causal", embedding_norm="no", token_head="plain", segments=0, norm="pre",
             max_length=40).save(tmp_path / "model")  # fmt: skip
    told = []
    run = run_of(tmp_path / "model", tmp_path / "run", Plan(adapt=2), say=told.append)
    assert any("heads taken: next_token; new: none" in line for line in told)
    made = load(tmp_path / "model")
    taken(made, run.path / "adapted")
    np.testing.assert_array_equal(
        made.network.embeddings.tokens.detach(), load(run.path / "adapted").network.embeddings.tokens.detach()
    )


# -- a budget


def test_the_plan_fits_the_time():
    """A development set that would take half of the time is sampled, and the plan fills the budget."""
    config = config_of("classify", epochs=50, training={"batch": 8, "steps": 5000})
    plan = pace.schedule(pace.Pace(update=0.1, example=0.02), config, 160, 5000, 100.0)
    assert plan.evaluating <= 20
    assert 0 < plan.rows == plan.report_rows < 5000, "the whole set takes the time of all evaluations"
    assert 80 < plan.steps * 0.1 + plan.evaluating <= 90
    short = pace.schedule(pace.Pace(update=0.1, example=0.002), config, 160, 5000, 100.0)
    assert short.rows
    assert short.report_rows == 0, "once at the end it fits"
    assert 80 < short.steps * 0.1 + short.evaluating <= 90
    small = pace.schedule(pace.Pace(update=0.1, example=0.001), config, 160, 100, 100.0)
    assert (small.rows, small.evaluate_every) == (0, 1), "all of a short set, after every epoch"


@pytest.mark.parametrize(("task", "rows"), [("classify", 7), ("rank", 7), ("classify", 0), ("classify", 100)], ids=str)
def test_a_sample_is_always_the_same(task, rows):
    dev = examples_of(task, 30)
    some = pace.sample_of(dev, rows)
    assert list(some) == list(pace.sample_of(dev, rows))
    assert len(some) == (rows if 0 < rows < 30 else 30)
    assert [each for each in dev if each in some.items] == list(some), "in the order of the set"
    if task == "rank":
        kept = Counter(each.texts[0] for each in some).values()
        assert sum(many < 3 for many in kept) <= 1, "questions stay whole, but for the last"


def test_a_budget_without_a_useful_step_is_refused(model, tmp_path, monkeypatch):
    monkeypatch.setattr(pace, "_measured", lambda tuning, seconds: pace.Pace(update=5.0, example=0.0))
    long = {"epochs": 4, "training": {"lr": 1e-3, "batch": 8}}
    with pytest.raises(InputError, match="fewer than 5 updates learn nothing") as error:
        run_of(model, tmp_path / "run", Plan(budget=20.0), settings=long)
    assert "s more" in str(error.value.repair)
    assert "0 ms for each example" in str(error.value)
    with pytest.raises(InputError, match="fewer than 5 updates learn nothing") as error:
        finetune(model, out=tmp_path / "bare", train=TRAIN, settings=long, plan=Plan(budget=20.0), say=quiet)
    assert "development set" not in str(error.value), "there is none"
    with pytest.raises(InputError, match="was over before training began"):
        run_of(model, tmp_path / "late", Plan(budget=1e-6), settings=long)


def test_few_updates_are_made_of_smaller_batches(model, tmp_path, monkeypatch):
    """Nine updates of 16 rows fit: 36 of 4 do, in the same time, and they learn more. A run that goes on keeps them."""

    def measured(tuning, seconds):
        return pace.Pace(update=0.5 * tuning.made.config.training.batch / 16, example=0.0)

    monkeypatch.setattr(pace, "_measured", measured)
    told = []
    open_batch = {"epochs": 50, "training": {"lr": 1e-3}}
    run = run_of(model, tmp_path / "open", Plan(budget=5.0), settings=open_batch, say=told.append)
    assert read_task(run.path).training.batch == 4
    assert 25 <= read_task(run.path).training.steps <= 40
    (line,) = [line for line in told if line.startswith("batch size 4: of 16 rows only ")]
    assert phrases("zh").line(line).startswith("batch 大小 4：若为 16 行，时间预算内只够更新 ")
    given = {"epochs": 50, "training": {"lr": 1e-3, "batch": 16}}
    kept = run_of(model, tmp_path / "given", Plan(budget=5.0), settings=given)
    assert read_task(kept.path).training.batch == 16
    assert read_task(kept.path).training.steps < 10
    said = []
    run_of(model, tmp_path / "open", Plan(budget=5.0), settings=open_batch, resume=True, say=said.append)
    assert any("already finished" in line for line in said)
    with pytest.raises(RecipeError, match=r"another training\.batch"):
        run_of(model, tmp_path / "open", Plan(budget=5.0), settings=given, resume=True)


def test_a_slow_first_update_is_not_taken_for_the_pace(model, tmp_path, monkeypatch):
    """It pays for what happens once; a second one is measured, unless the first has taken most of what there is."""
    monkeypatch.setattr(pace, "_SHARE", 0.0)
    for too_long, updates in ((1.0, 2), (0.0, 1)):
        monkeypatch.setattr(pace, "_TOO_LONG", too_long)
        seen = []

        monkeypatch.setattr(pace, "weights_of", lambda system: {})
        monkeypatch.setattr(pace, "put_weights", lambda system, weights: None)
        found = pace._measured(slow_tuning(seen), 100.0)
        assert len(seen) == updates
        assert found.update == (1.0 if updates == 2 else 9.0)


def slow_tuning(seen):
    """Updates of nine seconds, then of one."""

    def updates():
        for seconds in (9.0, 1.0, 1.0):
            seen.append(seconds)
            yield SimpleNamespace(seconds=seconds)

    system = torch.nn.Linear(1, 1)
    return SimpleNamespace(made=SimpleNamespace(system=system), trainer=SimpleNamespace(updates=updates), dev=None)


def test_dev_is_read_once_for_every_evaluation(model, tmp_path, monkeypatch):
    """The report at the end takes the answers of the best evaluation."""
    read = []
    plain = TaskModel.scores

    def counting(self, feed, *more):
        read.append(len(feed.question.examples))
        return plain(self, feed, *more)

    monkeypatch.setattr(TaskModel, "scores", counting)
    settings = {"epochs": 3, "training": {"lr": 1e-3, "batch": 8}}
    run = run_of(model, tmp_path / "run", Plan(), settings=settings)
    assert len(read) == 3
    monkeypatch.undo()
    fresh = TaskModel.load(run.path)
    feed = fresh.feed(examples_of("classify", 12, 100), quiet)
    assert fresh.evaluated(feed).loss == pytest.approx(fresh.loss(feed), rel=1e-5)


def test_a_sample_of_dev_is_told_in_the_report(model, tmp_path, monkeypatch):
    monkeypatch.setattr(pace, "_measured", lambda tuning, seconds: pace.Pace(update=0.01, example=0.05))
    monkeypatch.setattr(pace, "_FEWEST_ROWS", 2)
    told = []
    run = run_of(model, tmp_path / "run", Plan(budget=2.0), settings={"epochs": 2}, say=told.append)
    assert any("fixed random sample of" in line and "so does the report" in line for line in told)
    assert run.judgement.n < len(DEV)
    assert any("figures are of a fixed random sample" in note for note in run.judgement.notes)


def test_a_budget_shortens_training_and_is_kept_when_it_goes_on(model, tmp_path, monkeypatch):
    long = {"epochs": 4, "training": {"lr": 1e-3, "batch": 8}}
    monkeypatch.setattr(pace, "_measured", lambda tuning, seconds: pace.Pace(update=1.0, example=0.0))
    told = []

    @contextmanager
    def killing(part):
        yield lambda update, line: os.kill(os.getpid(), signal.SIGINT) if update.step == 2 else None

    with pytest.raises(Stopped):
        run_of(model, tmp_path / "run", Plan(budget=8.0), settings=long, say=told.append, watching=killing)
    steps = TaskFolder(tmp_path / "run").state["task"]["training"]["steps"]
    assert 2 < steps <= 7, "of 12, as 0.9 times what is left of eight seconds holds"
    assert any(f"of 4 epochs ({steps:,} steps" in line for line in told)
    monkeypatch.setattr(pace, "_measured", lambda tuning, seconds: pytest.fail("the plan is made once"))
    rates = []

    @contextmanager
    def noting(part):
        yield lambda update, line: rates.append(update.lr)

    run = run_of(model, tmp_path / "run", Plan(budget=8.0), settings=long, resume=True, watching=noting)
    assert read_task(run.path).training.steps == steps == TaskFolder(run.path).state["step"]
    assert read_task(run.path).epochs == pytest.approx(steps * 8 / 24)
    assert rates[-1] == 0.0, "the rate is at its end with the last step"


def test_a_large_budget_leaves_all_epochs_and_the_weights_as_they_were(model, tmp_path):
    told = []
    plain = run_of(model, tmp_path / "plain", Plan())
    timed = run_of(model, tmp_path / "timed", Plan(budget=600.0), say=told.append)
    assert any("all 1 epochs fit (3 steps" in line for line in told)
    names = ("model.safetensors", "evaluation.json")
    assert all((plain.path / name).read_bytes() == (timed.path / name).read_bytes() for name in names)
    assert json.loads((timed.path / "plan.json").read_text())["budget"] == 600.0


# -- parts of the data


@pytest.mark.parametrize("task", ["classify", "regress", "multilabel", "tag", "qa", "choice", "rank", "pair"])
def test_parts_are_nested_and_keyed(task):
    train = examples_of(task, 96)
    parts = parts_of(train, 3)
    assert list(parts[-1]) == list(train)
    for smaller, larger in pairwise(parts):
        assert {each.guid for each in smaller} < {each.guid for each in larger}
        assert [each.guid for each in smaller] == [each.guid for each in larger if each in smaller.items]
    assert [list(each) for each in parts] == [list(each) for each in parts_of(train, 3)]
    assert list(parts_of(train, 4)[0]) != list(parts[0])
    assert sorted(nested_order(train, 3).tolist()) == list(range(96))


def test_parts_hold_the_classes_as_all_examples_do():
    made = examples_of("classify", 160)
    labels = ["rare" if at % 40 == 0 else "a" if at % 4 else "b" for at in range(160)]
    train = replace(made, items=tuple(replace(each, label=label) for each, label in zip(made, labels, strict=True)))
    for part in parts_of(train, 0):
        found = Counter(each.label for each in part)
        assert found["rare"] >= 1
        assert abs(found["a"] / len(part) - 0.75) <= 2 / len(part)


def test_questions_of_a_ranking_stay_whole():
    train = examples_of("rank", 96)
    whole = Counter(each.texts[0] for each in train)
    for part in parts_of(train, 0):
        assert all(many == whole[query] for query, many in Counter(each.texts[0] for each in part).items())
