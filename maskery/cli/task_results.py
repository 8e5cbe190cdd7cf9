"""What `maskery finetune` hands out at its end: figures for eyes and for programs, and the answers to the test set."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from maskery import files
from maskery.cli.called import program
from maskery.cli.evaluate import plain, show_groups
from maskery.cli.output import duration, emit_json, print_table, results, say, tell
from maskery.cli.task_answers import records, tsv
from maskery.cli.task_files import asked
from maskery.language import phrases
from maskery.tasks.finetune import TaskRun
from maskery.tasks.folder import TaskFolder
from maskery.tasks.judge.measure import HEADLINES, Judgement
from maskery.tasks.judge.repeats import LearningCurve
from maskery.tasks.judge.report import baseline_table
from maskery.tasks.judge.results import FILE, eval_block
from maskery.tasks.judge.words import figure_text, judge_words
from maskery.tasks.resolve import Splits

TEST_ANSWERS = "test_predictions.tsv"


def answer_test(run: TaskRun, splits: Splits) -> Path | None:
    """The answers to the test set, beside the model."""
    if splits.test is None:
        return None
    path = run.path / TEST_ANSWERS
    found = asked(run.model, splits.test, "test")
    for note in found.notes:
        say(f"test: {note}")
    files.write_text(path, tsv(records(splits.test, found, run.model.config.labels, texts=True)))
    return path


def _results(run: TaskRun) -> dict[str, float]:
    """eval_results.txt, which was just written."""
    lines = (run.path / FILE).read_text(encoding="utf-8").splitlines()
    pairs = [line.split(" = ") for line in lines]
    return {key: int(value) if key == "global_step" else float(value) for key, value in pairs}


def emit(run: TaskRun, answers: Path | None, seconds: float) -> None:
    state, judgement = TaskFolder(run.path).state, run.judgement
    emit_json(
        {
            "run": str(run.path),
            "task": run.model.config.task,
            "labels": list(run.model.config.labels),
            "steps": state["step"],
            "tokens": state["tokens"],
            "epochs": run.model.config.epochs,
            "best": state["best"],
            "kept": state.get("kept"),
            "eval": None if judgement is None else plain(judgement),
            **_repeated(run),
            "results": {} if judgement is None else _results(run),
            "report": None if judgement is None else str(run.path / "report.html"),
            "test": None if answers is None else str(answers),
            "seconds": seconds,
        }
    )


def _repeated(run: TaskRun) -> dict[str, Any]:
    found = run.repeated.plain()
    return {key: found[key] for key in ("seeds", "learning") if key in found}


def show(run: TaskRun, answers: Path | None, seconds: float) -> None:
    if run.judgement is not None:
        _show_repeats(run)
        results().print(eval_block(_results(run)), soft_wrap=True)
        show_baselines(run.judgement)
        show_groups(run.judgement)
    tell(f"{run.path}: a model for {run.model.config.task}, in {duration(seconds)}")
    if run.judgement is not None:
        tell(f"report: {run.path / 'report.html'}")
    if answers is not None:
        tell(f"answers to the test set: {answers}")
    name = program()
    say(f"next: {name} predict {run.path} FILE        {name} evaluate {run.path} --data FILE")


def show_baselines(judgement: Judgement) -> None:
    """The simplest answers beside the model's, and whether it is ahead of them."""
    if judgement.baselines:
        heads, lines = baseline_table(judgement, judge_words(phrases().lang))
        print_table([heads, *lines])
    if judgement.verdict:
        tell(judgement.verdict)


def _show_repeats(run: TaskRun) -> None:
    """The curve, and the spread of the seeds, as small tables."""
    names, found = HEADLINES[run.model.config.task], run.repeated
    if found.learning is not None:
        heads = map(phrases().name, ("examples", names[0], "sd", "95 % from", "to"))
        print_table([[*heads], *_curve_lines(found.learning, names[0])])
    if found.seeds:
        each = [(name, found.seeds[name]) for name in names]
        lines = [
            [name, figure_text(told.mean), figure_text(told.sd), " ".join(map(figure_text, told.each))]
            for name, told in each
        ]
        print_table([[*map(phrases().name, ("seeds", "mean", "sd", "each"))], *lines])


def _curve_lines(curve: LearningCurve, metric: str) -> list[list[str]]:
    bounds = curve.intervals(metric)
    return [
        [
            f"{size:,}",
            figure_text(each.mean),
            figure_text(each.sd) if len(each.each) > 1 else "",
            *([figure_text(bound) for bound in bounds.get(size, ())] or ["", ""]),
        ]
        for size, each in curve.over_sizes(metric).items()
    ]
