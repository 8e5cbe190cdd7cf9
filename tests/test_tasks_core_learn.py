"""Each task learns a small rule; what is frozen stays; the best model is that of the best evaluation."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from oracle import same_bits
from small_task import LABELS, config_of, examples_of, family_model, quiet, task_model

from maskery.errors import InputError
from maskery.tasks.batches import TASK
from maskery.tasks.examples import Examples
from maskery.tasks.folder import TaskFolder, weights_of
from maskery.tasks.judge.measure import HEADLINES, measure
from maskery.tasks.model import TaskModel
from maskery.tasks.resolve import Splits, evaluations, resolve
from maskery.tasks.run import tune

BERT_LIKE = {"width": 32, "layers": 2}
FAST = {"many": 96, "training": {"lr": 6e-3}}
CASES = [
    ("classify", {}, 0.95),
    ("pair", {"epochs": 8, **FAST}, 0.95),
    ("regress", {"epochs": 4}, 0.9),
    ("multilabel", {"epochs": 5}, 0.95),
    ("tag", {}, 0.95),
    ("tag", {"epochs": 4, "head": {"crf": True}}, 0.95),
    ("qa", {"epochs": 4, "rows": {"length": 14, "windows": 4}, **FAST}, 0.9),
    ("choice", {"epochs": 4, **FAST}, 0.9),
    ("rank", {"epochs": 10}, 0.9),
]


def tuned(folder, task, many=48, family="bert", dev=True, say=quiet, watch=None, resume=False, **tables):
    train = examples_of(task, many)
    model = family_model(folder / "model", family, **BERT_LIKE) if not resume else _again(folder)
    splits = Splits(train, examples_of(task, 24, 100) if dev else None)
    tables = {"epochs": 8, **tables}
    config = resolve(config_of(task, **tables), model, splits, LABELS.get(task, ()), quiet)
    begun = TaskModel(model, config)
    more = {} if watch is None else {"watch": watch}
    return tune(begun, splits, folder / "run", say=say, resume=resume, **more), splits


def _again(folder):
    from maskery.checkpoint.load import load

    return load(folder / "model")


def headline(made, examples):
    feed = made.feed(examples, quiet)
    found = made.answers(feed)
    values = measure(
        made.config.task,
        feed.question.gold,
        found.answers,
        labels=made.config.labels,
        probabilities=found.probabilities,
        groups=found.groups,
    )
    return values[HEADLINES[made.config.task][0]]


@pytest.mark.parametrize(("task", "tables", "enough"), CASES)
def test_learns(task, tables, enough, tmp_path):
    made, splits = tuned(tmp_path, task, **{"many": 192, "epochs": 2, **tables})
    assert headline(made, splits.dev) >= enough
    again = TaskModel.load(tmp_path / "run")
    feed = made.feed(splits.dev, quiet)
    np.testing.assert_array_equal(again.scores(again.feed(splits.dev, quiet)), made.scores(feed))
    assert (tmp_path / "run/task.safetensors").exists() == made.config.head.crf


def test_the_best_is_kept(tmp_path):
    """The weights at the end are those after the evaluation with the highest figure, the first of equals."""
    seen = {}

    def watch(update, line):
        if "eval/accuracy" in line:
            seen[update.step] = line["eval/accuracy"], update.loss

    made, splits = tuned(tmp_path, "pair", epochs=6, watch=watch)
    state = TaskFolder(tmp_path / "run").state
    best = max(value for value, _ in seen.values())
    assert state["best"]["value"] == best
    assert state["best"]["step"] == next(step for step, (value, _) in seen.items() if value == best)
    assert headline(made, splits.dev) == best
    assert state["finished"]
    assert sorted(seen) == evaluations(made.config, 48)


def test_patience(tmp_path):
    told = []
    made, _ = tuned(tmp_path, "classify", epochs=30, patience=2, say=told.append)
    state = TaskFolder(tmp_path / "run").state
    assert state["stale"] == 2
    assert state["step"] < made.config.training.steps
    assert any("ended early" in line for line in told)


@pytest.mark.parametrize("pool", ["auto", "mix"])
def test_frozen(pool, tmp_path):
    model = family_model(tmp_path / "before", "bert", **BERT_LIKE)
    before = {name: each.clone() for name, each in model.network.state_dict().items()}
    made, splits = tuned(tmp_path, "classify", read={"frozen": True, "pool": pool}, epochs=10)
    assert same_bits(before, made.model.network.state_dict())
    assert headline(made, splits.dev) > 0.6
    assert not made.system.train().network.training


def test_frozen_without_a_pooler_trains_no_part_of_the_network(tmp_path):
    told = []
    model = family_model(tmp_path / "model", "roberta", **BERT_LIKE)
    assert model.family == "roberta"
    config = config_of("classify", read={"frozen": True})
    config = resolve(config, model, Splits(examples_of("classify")), LABELS["classify"], told.append)
    assert (config.read.pool, len(config.head.layers)) == ("first", 1)
    assert TaskModel(model, config).model.network.pooler is None
    assert any("frozen" in line for line in told)


def test_no_dropout_at_the_end_still_trains_all(tmp_path):
    """Training mode is about dropout alone: the network gets its gradient without it, too."""
    made = task_model(family_model(tmp_path / "model", "bert"), "classify")
    feed = made.feed(examples_of("classify", 8), quiet)
    made.system.eval()
    made.system(feed.asked(np.arange(8)))[TASK].backward()
    assert all(each.grad is not None for each in made.system.network.layers.parameters())


def with_columns(examples, informative):
    items = tuple(
        replace(each, texts=("the cat",), meta=(("red" if number % 2 else "blue") if informative else "red", 1.0))
        for number, each in enumerate(examples)
    )
    return Examples(task=examples.task, fields=examples.fields, items=items, meta=("colour", "size"))


def test_columns_beside_the_text(tmp_path):
    train, dev = (with_columns(examples_of("classify", many, first), True) for many, first in ((32, 0), (16, 100)))
    model = family_model(tmp_path / "model", "bert", **BERT_LIKE)
    config = config_of("classify", epochs=10, columns={"meta": ("colour", "size")})
    splits = Splits(train, dev)
    config = resolve(config, model, splits, LABELS["classify"], quiet)
    made = tune(TaskModel(model, config), splits, tmp_path / "run", say=quiet)
    assert headline(made, dev) == 1.0
    assert headline(made, with_columns(dev, False)) == 0.5
    again = TaskModel.load(tmp_path / "run")
    assert headline(again, dev) == 1.0


def test_steps_are_of_units(tmp_path):
    """Of rank a unit is a question, of a text in windows a window."""
    model = family_model(tmp_path / "model", "bert")
    rank = task_model(model, "rank", examples_of("rank", 48), epochs=2)
    assert rank.config.training.steps == 2 * 16 // 8
    long = task_model(model, "classify", examples_of("classify", 8), epochs=3, rows={"length": 5, "windows": 1})
    feed = long.feed(examples_of("classify", 8), quiet)
    assert feed.units > 8
    assert long.config.training.steps == -(-3 * feed.units // 8)


def test_unlabelled_rows_are_not_asked(tmp_path):
    model = family_model(tmp_path / "model", "bert")
    for task in ("classify", "choice", "rank", "tag", "qa"):
        made = task_model(model, task)
        examples = examples_of(task, 6)
        bare = tuple(replace(each, label=None, spans=None, answers=None) for each in examples[:3])
        mixed = replace(examples, items=(*bare, *examples[3:6]))
        feed, full = made.feed(mixed, quiet), made.feed(examples, quiet)
        few = full.asked(np.arange(full.units)[full.units // 2 :])
        found = feed.asked(np.arange(feed.units))
        assert made.system.counts(found) == made.system.counts(few)
        with torch.no_grad():
            assert made.system(found)[TASK].item() == pytest.approx(made.system(few)[TASK].item(), rel=1e-5)


@pytest.mark.parametrize(
    ("family", "task", "tables", "cause"),
    [
        ("bert", "classify", {"head": {"lm": 0.5}}, "reads from the left"),
        ("bert", "classify", {"rows": {"towers": "shared"}}, "towers"),
    ],
)
def test_refused(family, task, tables, cause, tmp_path):
    with pytest.raises(InputError, match=cause):
        task_model(family_model(tmp_path / "model", family), task, **tables)


def test_a_figure_that_is_no_number_is_never_best(tmp_path, monkeypatch):
    values = iter([float("nan"), 0.25, float("nan"), 0.125])
    monkeypatch.setattr("maskery.tasks.model.measure", lambda *_, **__: {"spearman": next(values)})
    tuned(tmp_path, "regress", many=8, epochs=4)
    assert TaskFolder(tmp_path / "run").state["best"] == {"step": 2, "value": 0.25}
    lines = [json.loads(line) for line in (tmp_path / "run/metrics.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines] == [1, 2, 3, 4]


def test_without_a_development_set_the_last_weights_are_kept(tmp_path):
    made, _ = tuned(tmp_path, "classify", dev=False, epochs=2)
    last = TaskFolder(tmp_path / "run").checkpoints()[-1][1]
    from maskery.checkpoint.tensors import read_safetensors

    assert same_bits(read_safetensors(last / "weights.safetensors"), weights_of(made.system))
