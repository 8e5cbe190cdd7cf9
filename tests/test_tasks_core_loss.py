"""A task's loss and gradient are those of Hugging Face's classes, however a batch is cut into micro-batches."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from small_task import examples_of, family_model, quiet, task_model
from test_tasks_core_parity import theirs_of

from maskery.tasks.batches import TASK
from maskery.tasks.system import LANGUAGE
from maskery.train.config import OPTIMIZERS
from maskery.train.loop import Trainer

CASES = [
    *(("bert", task) for task in ("classify", "regress", "multilabel", "tag", "qa", "choice")),
    ("gpt2", "classify"),
    ("bart", "classify"),
    ("xlnet", "choice"),
]


def padded(rows, values, fill=0):
    return torch.from_numpy(rows.padded(values, fill))


def wanted_of(batch, task, shape):
    """The targets as transformers has them: -100 at slots that are not asked."""
    targets = batch.targets[TASK]
    if task == "qa":
        return {"start_positions": targets.label[:, 0], "end_positions": targets.label[:, 1]}
    if task != "tag":
        return {"labels": targets.label}
    labels = torch.full((shape.numel(),), -100)
    labels[targets.index] = targets.label
    return {"labels": labels.view(shape)}


def their_loss(theirs, made, feed, units, task):
    batch = feed.asked(units)
    mask = (torch.arange(batch.ids.shape[1]) < batch.length[:, None]).long()
    given = {"input_ids": batch.ids, "attention_mask": mask}
    if theirs.config.model_type not in ("gpt2", "bart"):
        given["token_type_ids"] = batch.segments
    if task == "choice":
        given = {name: value.view(len(units), -1, value.shape[1]) for name, value in given.items()}
    return theirs(**given, **wanted_of(batch, task, batch.ids.shape)).loss


def alike(feed, task):
    """Units whose rows are of one length: transformers lets an answer begin at padding, and BART read it."""
    if task != "qa" and feed.decoder_start is None:
        return np.arange(8)
    length = feed.rows.length
    return np.flatnonzero(length == np.bincount(length).argmax())[:8]


def gradient_of(made, feed, units, micro):
    batches = [feed.asked(units[start : start + micro]) for start in range(0, len(units), micro)]
    counts = [made.system.counts(batch)[TASK] for batch in batches]
    made.system.zero_grad()
    made.system.train()
    loss = sum(made.system(batch)[TASK] for batch in batches) / sum(counts)
    loss.backward()
    return loss.item(), {
        name: each.grad.clone() for name, each in made.system.named_parameters() if each.grad is not None
    }


@pytest.mark.parametrize(("family", "task"), CASES)
def test_loss_and_gradient(family, task, tmp_path):
    made = task_model(family_model(tmp_path / "model", family), task, std=0.3)
    made.save(tmp_path / "task", quiet)
    theirs = theirs_of(tmp_path / "task", task)
    feed = made.feed(examples_of(task, 16), quiet)
    units = alike(feed, task)
    assert len(units) >= 4
    loss, gradient = gradient_of(made, feed, units, 4)
    expected = their_loss(theirs, made, feed, units, task)
    assert loss == pytest.approx(expected.item(), abs=1e-5)
    expected.backward()
    norm = torch.nn.utils.get_total_norm([each.grad for each in theirs.parameters() if each.grad is not None])
    assert norm > 1e-3
    assert torch.nn.utils.get_total_norm(gradient.values()).item() == pytest.approx(norm.item(), rel=1e-5)


@pytest.mark.parametrize("task", ["classify", "tag", "qa", "choice", "rank", "multilabel", "regress"])
@pytest.mark.parametrize("crf", [False, True])
def test_micro_batches(task, crf, tmp_path):
    if crf and task != "tag":
        task, crf = "pair", False
    made = task_model(family_model(tmp_path / "model", "bert"), task, std=0.3, head={"crf": crf})
    feed = made.feed(examples_of(task, 48), quiet)
    one = gradient_of(made, feed, np.arange(16), 16)
    for micro in (4, 1):
        other = gradient_of(made, feed, np.arange(16), micro)
        assert other[0] == pytest.approx(one[0], rel=1e-5)
        for name in one[1]:
            torch.testing.assert_close(other[1][name], one[1][name], atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("task", ["choice", "rank"])
def test_a_question_twice_in_a_batch(task, tmp_path):
    made = task_model(family_model(tmp_path / "model", "bert"), task, std=0.3)
    feed = made.feed(examples_of(task, 12), quiet)
    twice = feed.asked(np.array([1, 1, 0, 1]))
    assert twice.targets[TASK].extra["sizes"].tolist() == [3, 3, 3, 3]
    with torch.no_grad():
        apart = [made.system(feed.asked(np.array([unit])))[TASK].item() for unit in (1, 1, 0, 1)]
        assert made.system(twice)[TASK].item() == pytest.approx(sum(apart), rel=1e-5)
    assert made.system.counts(twice)[TASK] == 4


def test_language_model_beside_the_task(tmp_path):
    """GPT's L3 = L2 + 0.5 L1, of means; and that is the step's gradient."""
    made = task_model(family_model(tmp_path / "model", "gpt2"), "classify", std=0.3, head={"lm": 0.5})
    feed = made.feed(examples_of("classify", 8), quiet)
    training = made.config.training
    optimizer = OPTIMIZERS.get("adamw")(list(made.system.named_parameters()), training)
    trainer = Trainer(training, feed, made.system, optimizer, [8])
    whole = feed.micro_batches(0, 0, 1, 8)[0]
    sums, counts = made.system(whole), made.system.counts(whole)
    update = next(iter(trainer.updates()))
    means = {name: sums[name].item() / counts[name] for name in sums}
    assert update.loss == pytest.approx(means[TASK] + 0.5 * means[LANGUAGE], rel=1e-5)
    logits = made.model.network
    assert counts[LANGUAGE] == int((whole.length - 1).sum())
    assert logits is made.system.network
    made.save(tmp_path / "task", quiet)
    again = type(made).load(tmp_path / "task")
    np.testing.assert_array_equal(again.scores(feed), made.scores(feed))


def test_language_loss_is_that_of_transformers(tmp_path):
    import transformers

    made = task_model(family_model(tmp_path / "model", "gpt2"), "classify", head={"lm": 0.5})
    feed = made.feed(examples_of("classify", 8), quiet)
    batch = feed.asked(np.arange(8))
    theirs = transformers.GPT2LMHeadModel.from_pretrained(tmp_path / "model", attn_implementation="eager").eval()
    labels = batch.ids.masked_fill(torch.arange(batch.ids.shape[1]) >= batch.length[:, None], -100)
    with torch.no_grad():
        expected = theirs(batch.ids, labels=labels).loss.item()
        ours = made.system(batch)[LANGUAGE].item() / made.system.counts(batch)[LANGUAGE]
    assert ours == pytest.approx(expected, rel=1e-5)
