"""The lines of a card are run as they stand: they have to open the folder that they are in."""

from __future__ import annotations

import shlex
from dataclasses import replace

import numpy as np
import pytest
import torch
import transformers
from small_task import examples_of, family_model, quiet, task_model

from maskery.cli.app import VERBS
from maskery.tasks.use import uses_of

TOLD = {"classify": "text-classification", "pair": "text_pair", "tag": "token-classification", "qa": "start_logits"}
TOLD |= {"regress": 'function_to_apply="none"', "multilabel": "top_k=None"}


@pytest.mark.parametrize("task", TOLD)
def test_transformers_runs_what_the_card_says(task, tmp_path, monkeypatch, capsys):
    made = task_model(family_model(tmp_path / "model", "bert"), task)
    made.save(tmp_path / "a run", quiet)
    (_, shell), (language, code) = uses_of(made, "a run")
    assert [shlex.split(line)[:3] for line in shell.splitlines()] == [
        ["maskery", "predict", "a run"],
        ["maskery", "evaluate", "a run"],
    ]
    assert {"predict", "evaluate"} <= set(VERBS)
    assert language == "python"
    assert TOLD[task] in code
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "card", "exec"), {})
    assert capsys.readouterr().out


def test_a_folder_that_opens_only_here_says_only_that(tmp_path):
    model = family_model(tmp_path / "model", "bert")
    made = task_model(model, "classify", read={"pool": "mean"})
    assert [language for language, _ in uses_of(made, "-run")] == ["sh"]
    assert uses_of(made, "-run")[0][1].startswith("maskery predict ./-run FILE")
    assert [language for language, _ in uses_of(task_model(model, "choice"), "run")] == ["sh"]


@pytest.mark.parametrize(("family", "task"), [("xlnet", "classify"), ("xlnet", "pair"), ("gpt2", "classify")])
def test_other_tools_frame_a_text_as_the_task_did(family, task, tmp_path):
    """[CLS] stands at the end of XLNet's rows, and GPT's end with a mark; a batch is padded where that does no harm."""
    made = task_model(family_model(tmp_path / "model", family), task, std=0.5)
    made.save(tmp_path / "run", quiet)
    examples = examples_of(task, 4)
    first = replace(examples[0], texts=tuple(" ".join(text.split()[-2:]) for text in examples[0].texts))
    examples = replace(examples, items=(first, *examples[1:]))
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "run")
    theirs = transformers.AutoModelForSequenceClassification.from_pretrained(tmp_path / "run").eval()
    texts = [list(each) for each in zip(*(each.texts for each in examples), strict=True)]
    with torch.no_grad():
        told = theirs(**tokenizer(*texts, padding=True, return_tensors="pt")).logits.softmax(1).numpy()
    np.testing.assert_allclose(told, made.predict(examples, quiet).probabilities, atol=1e-5)
    assert np.ptp(told[:, 0]) > 1e-3
