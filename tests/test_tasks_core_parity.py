"""A task's folder opens in Hugging Face's classes with the same scores, and theirs opens here."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from oracle import transformers
from small_task import LABELS, examples_of, family_model, quiet, task_model

from maskery.checkpoint.load import load
from maskery.tasks.model import TaskModel

ALL = ("classify", "tag", "qa", "choice")
HELD = {
    "bert": (*ALL, "pair", "regress", "multilabel"),
    "roberta": (*ALL, "pair"),
    "albert": ALL,
    "electra": ALL,
    "distilbert": ALL,
    "ernie": ALL,
    "gpt2": ("classify", "pair", "tag", "qa"),
    "openai-gpt": ("classify", "regress"),
    "xlnet": (*ALL, "pair"),
    "bart": ("classify", "multilabel", "qa"),
    "xlm-roberta": (*ALL, "pair"),
    "camembert": ALL,
    "mpnet": (*ALL, "regress"),
    "deberta-v2": (*ALL, "pair", "multilabel"),
    "modernbert": (*ALL, "pair", "regress", "multilabel"),
}
CASES = [(family, task) for family, tasks in HELD.items() for task in tasks]
OPENER = {
    "tag": transformers.AutoModelForTokenClassification,
    "qa": transformers.AutoModelForQuestionAnswering,
    "choice": transformers.AutoModelForMultipleChoice,
}
CLOSE = {"atol": 1e-5, "rtol": 1e-5}


def theirs_of(folder, task):
    opener = OPENER.get(task, transformers.AutoModelForSequenceClassification)
    model, told = opener.from_pretrained(folder, attn_implementation="eager", output_loading_info=True)
    assert not told["missing_keys"], told
    assert not told["unexpected_keys"], told
    return model.eval()


@torch.no_grad()
def their_scores(model, task, rows):
    """Row by row, so that nothing is padded."""
    found = []
    for row in rows:
        ids = torch.from_numpy(row.ids.astype(np.int64))[None]
        given = {"input_ids": ids}
        if model.config.model_type not in ("distilbert", "bart", "gpt2", "openai-gpt"):
            given["token_type_ids"] = torch.from_numpy(row.segments.astype(np.int64))[None]
        if task == "choice":
            given = {name: value[None] for name, value in given.items()}
        said = model(**given)
        if task == "qa":
            found.append(torch.stack((said.start_logits[0], said.end_logits[0]), 1))
        else:
            found.append(said.logits[0] if task == "tag" else said.logits.view(1, -1))
    return torch.cat(found).numpy()


@pytest.mark.parametrize(("family", "task"), CASES)
def test_both_say_the_same(family, task, tmp_path):
    made = task_model(family_model(tmp_path / "model", family), task, std=0.3)
    made.save(tmp_path / "task", quiet)
    assert not (tmp_path / "task/task.safetensors").exists()
    feed = made.feed(examples_of(task, 6), quiet)
    ours = made.scores(feed)
    theirs = theirs_of(tmp_path / "task", task)
    np.testing.assert_allclose(ours, their_scores(theirs, task, feed.rows), **CLOSE)
    assert np.abs(np.diff(ours, axis=0)).max() > 1e-3
    again = TaskModel.load(tmp_path / "task")
    np.testing.assert_array_equal(again.scores(again.feed(examples_of(task, 6), quiet)), ours)
    assert_named(theirs.config, task)
    assert_read_back(tmp_path, theirs, task, ours)


def assert_named(config, task):
    if task in ("classify", "pair", "multilabel", "tag"):
        assert tuple(config.id2label[number] for number in range(config.num_labels)) == LABELS[task]
        assert config.label2id == {name: number for number, name in enumerate(LABELS[task])}
    problem = {"regress": "regression", "multilabel": "multi_label_classification"}
    assert getattr(config, "problem_type", None) == problem.get(task)


def assert_read_back(tmp_path, theirs, task, ours):
    """What transformers has saved has no task.toml: the task is that of its head."""
    theirs.save_pretrained(tmp_path / "theirs")
    for name in ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "vocab.txt"):
        if (tmp_path / "task" / name).is_file():
            (tmp_path / "theirs" / name).write_bytes((tmp_path / "task" / name).read_bytes())
    made = TaskModel.load(tmp_path / "theirs")
    # Which texts stand in a row is not told by a head: a pair is a classification.
    assert made.config.task == ("classify" if task == "pair" else task)
    if task != "pair":
        np.testing.assert_allclose(made.scores(made.feed(examples_of(task, 6), quiet)), ours, **CLOSE)
    assert json.loads((tmp_path / "theirs/config.json").read_text())["architectures"] == [type(theirs).__name__]


BIASES = dict.fromkeys(("attention_bias", "feedforward_bias", "norm_bias", "head_bias"), True)


@pytest.mark.parametrize("pooling", ["cls", "mean"])
@pytest.mark.parametrize("shape", [{}, {"activation": "gelu_tanh", "eps": 1e-3, **BIASES}], ids=["published", "other"])
@pytest.mark.parametrize("task", ["classify", "tag"])
def test_modernbert_reads_as_its_config_says(task, shape, pooling, tmp_path):
    """Published bases say `classifier_pooling` = mean; a head that is trained on one of them is of that kind."""
    family_model(tmp_path / "model", "modernbert", **shape)
    config = json.loads((tmp_path / "model/config.json").read_text())
    (tmp_path / "model/config.json").write_text(json.dumps(config | {"classifier_pooling": pooling}))
    (tmp_path / "model/manifest.json").unlink()
    made = task_model(load(tmp_path / "model"), task, std=0.3)
    made.save(tmp_path / "task", quiet)
    theirs = theirs_of(tmp_path / "task", task)
    assert theirs.config.classifier_pooling == pooling
    feed = made.feed(examples_of(task, 6), quiet)
    np.testing.assert_allclose(made.scores(feed), their_scores(theirs, task, feed.rows), **CLOSE)
    assert_read_back(tmp_path, theirs, task, made.scores(feed))
    again = TaskModel.load(tmp_path / "task")
    assert again.take_native(), "training goes on from the head that is there"
    np.testing.assert_array_equal(again.scores(again.feed(examples_of(task, 6), quiet)), made.scores(feed))
