"""The lines of a card are run as they stand: they have to open the folder that they are in."""

from __future__ import annotations

import shlex

import pytest
from small_task import family_model, quiet, task_model

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
