"""`maskery.finetune` with examples: heads that are gone on from, and what does not go together."""

from __future__ import annotations

import numpy as np
import pytest
from small_task import examples_of, family_model, quiet

from maskery.errors import InputError
from maskery.tasks.finetune import finetune

QUICK = {"epochs": 1, "read": {"pool": "pooler"}, "training": {"lr": 1e-3, "batch": 8}}


def test_goes_on_from_a_head_with_the_same_labels(tmp_path):
    family_model(tmp_path / "model", "bert")
    train, dev = examples_of("classify", 16), examples_of("classify", 8, 50)
    first = finetune(tmp_path / "model", out=tmp_path / "one", train=train, dev=dev, settings=QUICK, say=quiet)
    tiny = {**QUICK, "training": {"lr": 1e-12, "batch": 8}}
    told = []
    second = finetune(tmp_path / "one", out=tmp_path / "two", train=train, dev=dev, settings=tiny, say=told.append)
    assert any("goes on from it" in line for line in told)
    scores = [run.model.scores(run.model.feed(dev, quiet)) for run in (first, second)]
    np.testing.assert_allclose(scores[0], scores[1], atol=1e-5)
    other = examples_of("pair", 16)
    told.clear()
    finetune(tmp_path / "one", out=tmp_path / "three", train=other, settings=tiny, say=told.append)
    assert not any("goes on from it" in line for line in told)


def test_steps_in_the_results_are_those_that_were_done(tmp_path):
    family_model(tmp_path / "model", "bert")
    train, dev = examples_of("classify", 16), examples_of("classify", 8, 50)
    still = {"epochs": 9, "patience": 1, "training": {"lr": 1e-12, "batch": 8}}
    finetune(tmp_path / "model", out=tmp_path / "run", train=train, dev=dev, settings=still, say=quiet)
    assert "global_step = 4" in (tmp_path / "run/eval_results.txt").read_text()


def test_examples_and_files_do_not_go_together(tmp_path):
    family_model(tmp_path / "model", "bert")
    with pytest.raises(InputError, match="dev is a file"):
        finetune(tmp_path / "model", out=tmp_path / "run", train=examples_of("classify"), dev="dev.tsv", say=quiet)
