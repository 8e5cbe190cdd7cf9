"""A whole fine-tuning, update by update, against transformers' model and torch's optimiser on the same batches."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
import transformers
from small_task import LABELS, examples_of, family_model, lines, quiet, task_model

from maskery.tasks.finetune import finetune

ROWS, BATCH, EPOCHS, RATE, WARMUP, DECAY, CLIP = 44, 8, 4, 1e-2, 0.3, 0.1, 0.5
TRAINING = {"lr": RATE, "batch": BATCH, "warmup": WARMUP, "weight_decay": DECAY, "clip": CLIP, "seed": 3}
SETTINGS = {
    "epochs": EPOCHS,
    "read": {"pool": "pooler"},
    "head": {"dropout": 0.0},
    "training": TRAINING | {"precision": "float32"},
}
STEPS = math.ceil(ROWS * EPOCHS / BATCH)


def theirs_after(folder, task, batches):
    """transformers' model after an update with each batch, and the losses before them."""
    kind = {"num_labels": 1, "problem_type": "regression"} if task == "regress" else {"num_labels": len(LABELS[task])}
    model = transformers.AutoModelForSequenceClassification.from_pretrained(folder, **kind).train()
    still = [p for name, p in model.named_parameters() if "LayerNorm" in name or name.endswith("bias")]
    moved = [p for p in model.parameters() if all(p is not other for other in still)]
    groups = [{"params": moved, "weight_decay": DECAY}, {"params": still, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=RATE, betas=(0.9, 0.999), eps=1e-8)
    warmup, losses = round(WARMUP * STEPS), []
    for number, given in enumerate(batches, 1):
        share = number / warmup if number < warmup else (STEPS - number) / (STEPS - warmup)
        for group in optimizer.param_groups:
            group["lr"] = RATE * share
        loss = model(**given).loss
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimizer.step()
        losses.append(loss.item())
    return model, losses


def padded(batch, task):
    """Our batch as transformers takes it."""
    label = batch.targets["task"].label
    real = torch.arange(batch.ids.shape[1]) < batch.length[:, None]
    given = {"input_ids": batch.ids, "attention_mask": real.long(), "token_type_ids": batch.segments}
    return given | {"labels": label.float() if task == "regress" else label}


@pytest.mark.parametrize("task", ["classify", "pair", "regress"])
def test_every_update_is_theirs(task, tmp_path):
    model, train = family_model(tmp_path / "model", "bert"), examples_of(task, ROWS)
    begun = task_model(model, task, train, head=SETTINGS["head"], training=SETTINGS["training"])
    begun.save(tmp_path / "begun", quiet)
    run = finetune(tmp_path / "model", out=tmp_path / "run", train=train, settings=SETTINGS, say=quiet)
    feed = run.model.feed(train, quiet)
    steps = [feed.micro_batches(step, 0, 1, BATCH)[0] for step in range(STEPS)]
    batches = [padded(each, task) for each in steps]
    theirs, losses = theirs_after(tmp_path / "begun", task, batches)
    ours = [line["loss"] for line in lines(tmp_path / "run")]
    assert max(ours) - min(ours) > 0.05, "something is learned"
    np.testing.assert_allclose(ours, losses, atol=1e-4)
    answers = [theirs.eval()(**{name: each[name] for name in each if name != "labels"}).logits for each in batches]
    rows = torch.cat([each.rows for each in steps]).numpy()
    np.testing.assert_allclose(run.model.scores(feed)[rows], torch.cat(answers).detach().numpy(), atol=1e-3)
