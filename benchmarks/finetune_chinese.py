"""Fine-tuning in Chinese: a pretrained folder, the same network untrained, and TF-IDF with logistic regression.

    python -m benchmarks.finetune_chinese --model FOLDER --data DIR --out DIR

ChnSentiCorp, THUCNews titles, TNEWS, AFQMC, OCNLI, CLUENER, CMRC 2018 and C3; DIR holds their files anywhere in it. Of
each at most --train and --dev examples are used, chosen by key, of C3 and CMRC a quarter of that, for time. Of CMRC
only the development set is there: a fifth of its texts, by key, is asked about, the others are trained on. TF-IDF of
characters, pairs of them and words stands beside the tasks that put texts into classes.

Each cell (task, side) has a process of its own and a file in --out, so that a stopped benchmark goes on. --tasks and
--sides do a part. Intervals (95 %) are a bootstrap over examples, that of a difference over the same draws of both; one
seed, so they do not cover the chance of training. Written: benchmarks/results/finetune_chinese.json.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks import finetune_tfidf, report
from benchmarks.finetune_cells import Data, ended, in_own_process, kept, splits_of
from maskery import files
from maskery.checkpoint.load import load
from maskery.checkpoint.model import Model
from maskery.inspection.bootstrap import interval, weights
from maskery.model.initial import deviations, initialise
from maskery.tasks.finetune import finetune
from maskery.tasks.framing.frame import longest_row
from maskery.tasks.judge.answers import answer_tally
from maskery.tasks.judge.classes import class_tally, right_tally
from maskery.tasks.judge.measure import judge
from maskery.tasks.judge.tagging import span_tally
from maskery.tasks.judge.tally import Tally
from maskery.tasks.read.labels import labels_of
from maskery.tasks.resolve import Splits
from maskery.train import machine, precision

MODULE = "benchmarks.finetune_chinese"
PAIR = ("text_a", "text_b")
TASKS = {
    "ChnSentiCorp": Data(task="classify", train=("ChnSentiCorp.train.tsv",), dev=("ChnSentiCorp.dev.tsv",)),
    "THUCNews": Data(task="classify", train=("THUCNews_title.train_part.tsv",), dev=("THUCNews_title.dev.tsv",)),
    "TNEWS": Data(task="classify", train=("TNEWS.train.tsv",), dev=("TNEWS.dev.tsv",)),
    "AFQMC": Data(task="pair", train=("AFQMC.train.tsv",), dev=("AFQMC.dev.tsv",), text=PAIR, label="score"),
    "OCNLI": Data(
        task="pair",
        train=("OCNLI.train50k.tsv",),
        dev=("OCNLI.dev.tsv",),
        text=("premise", "hypothesis"),
        label="label",
    ),
    "CLUENER": Data(task="tag", train=("CLUENER.train.jsonl",), dev=("CLUENER.dev.jsonl",)),
    "CMRC": Data(task="qa", train=("cmrc2018.dev.json",), together=lambda each: each.texts[0]),
    "C3": Data(task="choice", train=("c3-m-train.json", "c3-d-train.json"), dev=("c3-m-dev.json", "c3-d-dev.json")),
}
LENGTHS = {"ChnSentiCorp": 256, "CMRC": 384, "C3": 256}
"""Slots of a row at most, and never more than the model reads; else 128."""
SHARES = {"CMRC": 4, "C3": 4}
"""Of these only such a part is used, for time: an example is several rows, and they are long."""
SIDES = ("pretrained", "untrained", "tfidf")
SETTINGS = {"train": 4000, "dev": 2000, "epochs": 3.0, "batch": 32, "lr": 1e-4, "seed": 0, "threads": 2}
Place = tuple[str, str]
"""Task, side."""


def places(tasks: Sequence[str], sides: Sequence[str]) -> list[Place]:
    able = finetune_tfidf.TASKS
    return [(task, side) for task in tasks for side in sides if side != "tfidf" or TASKS[task].task in able]


def path_of(out: Path, place: Place) -> Path:
    return out / f"{place[0]}-{place[1]}.json"


def described(options: argparse.Namespace) -> dict[str, Any]:
    return {name: getattr(options, name) for name in SETTINGS} | {"model": options.model_name or options.model.name}


def untrained(model: Path, folder: Path, seed: int) -> Path:
    """The folder of the same network with fresh weights."""
    known = load(model)
    shape = known.config
    initialise(known.network, shape.init_std, seed, own=deviations(known.network, shape))
    made = Model(known.network, {}, known.tokenizer, origin=known.origin)
    made.rows = known.rows
    shutil.rmtree(folder, ignore_errors=True)
    made.save(folder)
    return folder


Judged = tuple[Sequence[Any], Sequence[Any], tuple[str, ...], int]
"""Right answers, given ones, labels, and the length of a row (0: no rows)."""


def fine_tuned(options: argparse.Namespace, task: str, side: str, splits: Splits) -> Judged:
    asked, run_folder, fresh = TASKS[task], options.out / f"run-{task}-{side}", options.out / f"fresh-{task}"
    model = options.model if side == "pretrained" else untrained(options.model, fresh, options.seed)
    length = min(LENGTHS.get(task, 128), longest_row(load(model)) or 512)
    quickest = precision.choose("auto", torch.device("cpu")).precision
    training = {"lr": options.lr, "batch": options.batch, "seed": options.seed, "save_every": 0, "precision": quickest}
    settings = {"epochs": options.epochs, "rows": {"length": length}, "training": training}
    shutil.rmtree(run_folder, ignore_errors=True)
    assert splits.dev is not None
    run = finetune(model, out=run_folder, task=asked.task, train=splits.train, settings=settings, say=_told)
    answers = run.model.predict(splits.dev, _told).answers
    for folder in (run_folder, fresh):
        shutil.rmtree(folder, ignore_errors=True)
    return run.model.question(splits.dev).gold, answers, run.model.config.labels, length


def counted(splits: Splits) -> Judged:
    train, dev = splits.train, splits.dev
    assert dev is not None
    answers = finetune_tfidf.tfidf_answers(train, dev)
    return [str(each.label) for each in dev], answers, labels_of(train, train.task), 0


def measure_cell(options: argparse.Namespace, place: Place) -> None:
    """In the cell's own process."""
    task, side = place
    torch.set_num_threads(options.threads)
    each = SHARES.get(task, 1)
    splits = splits_of(TASKS[task], options.data, task, (options.train // each, options.dev // each))
    assert splits.dev is not None
    began = time.perf_counter()
    found = counted(splits) if side == "tfidf" else fine_tuned(options, task, side, splits)
    seconds = time.perf_counter() - began
    cell = {"task": task, "side": side, "settings": described(options), "seconds": seconds, "length": found[3]}
    cell |= {"rows": [len(splits.train), len(splits.dev)]} | judged(TASKS[task].task, *found[:3])
    files.write_json(path_of(options.out, place), cell)


TALLIES: dict[str, Callable[[Sequence[Any], Sequence[Any], tuple[str, ...]], Tally]] = {
    "classify": lambda gold, given, labels: class_tally(gold, given, labels, None),
    "pair": lambda gold, given, labels: class_tally(gold, given, labels, None),
    "tag": lambda gold, given, labels: span_tally(gold, given, None),
    "qa": lambda gold, given, labels: answer_tally(gold, given, "auto"),
    "choice": lambda gold, given, labels: right_tally(gold, given),
}


def judged(task: str, gold: Sequence[Any], given: Sequence[Any], labels: tuple[str, ...]) -> dict[str, Any]:
    """Figures and intervals, and what the first of them is in each resample: the draws are the same for every side."""
    judgement = judge(task, gold, given, labels=labels)
    tally = TALLIES[task](gold, given, labels)
    drawn = np.concatenate([tally.values(some)[judgement.headline] for some in weights(tally.size)])
    return {
        "headline": judgement.headline,
        "metrics": judgement.metrics,
        "intervals": {name: list(pair) for name, pair in judgement.intervals.items()},
        "resamples": [round(value, 6) for value in drawn.tolist()],
    }


def done(options: argparse.Namespace, every: Sequence[Place]) -> dict[Place, dict[str, Any]]:
    found = {place: kept(path_of(options.out, place), described(options)) for place in every}
    return {place: cell for place, cell in found.items() if cell is not None}


def compared(cells: dict[Place, dict[str, Any]]) -> list[dict[str, Any]]:
    """Task by task: the sides that were measured, and by how much the pretrained one is ahead of the others."""
    rows = []
    for task in TASKS:
        sides = {side: cells[task, side] for side in SIDES if (task, side) in cells}
        if "pretrained" not in sides:
            continue
        first = sides["pretrained"]
        rows.append(
            {
                "task": task,
                "kind": TASKS[task].task,
                "rows": first["rows"],
                "length": first["length"],
                "headline": first["headline"],
                "sides": {side: _short(cell) for side, cell in sides.items()},
                "ahead": {side: _ahead(first, cell) for side, cell in sides.items() if side != "pretrained"},
            }
        )
    return rows


def _short(cell: dict[str, Any]) -> dict[str, Any]:
    return {name: cell[name] for name in ("metrics", "intervals", "seconds")}


def _ahead(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """The difference of the first figure, with its interval over resamples of the same examples."""
    value = one["metrics"][one["headline"]] - other["metrics"][one["headline"]]
    return {"value": value, "interval": interval(np.array(one["resamples"]) - np.array(other["resamples"]))}


def _told(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--model", type=Path, required=True, help="the pretrained folder")
    made.add_argument("--model-name", default="", help="as the table calls it; else the name of the folder")
    made.add_argument("--data", type=Path, required=True, help="folder with the files of the tasks")
    made.add_argument("--out", type=Path, required=True, help="folder of the cells")
    made.add_argument("--tasks", nargs="+", choices=list(TASKS), default=list(TASKS))
    made.add_argument("--sides", nargs="+", choices=SIDES, default=list(SIDES))
    made.add_argument("--cell", nargs=2, metavar=("TASK", "SIDE"), help=argparse.SUPPRESS)
    made.add_argument("--json", type=Path, default=report.RESULTS / "finetune_chinese.json")
    for name, value in SETTINGS.items():
        made.add_argument(f"--{name}", type=type(value), default=value)
    return made


def _arguments(options: argparse.Namespace, place: Place) -> list[str]:
    """The command line of a cell's process."""
    flags = ["--model", str(options.model), "--data", str(options.data), "--out", str(options.out)]
    flags += ["--model-name", options.model_name]
    for name in SETTINGS:
        flags += [f"--{name}", str(getattr(options, name))]
    return [*flags, "--cell", *place]


def run(options: argparse.Namespace) -> None:
    if options.cell:
        measure_cell(options, (options.cell[0], options.cell[1]))
        return
    options.out.mkdir(parents=True, exist_ok=True)
    every = places(options.tasks, options.sides)
    for number, place in enumerate(every, 1):
        if place not in done(options, [place]):
            _told(f"{number} of {len(every)}: {' '.join(place)}")
            in_own_process(MODULE, _arguments(options, place), options.threads)
    rows = compared(done(options, places(list(TASKS), SIDES)))
    if rows:
        facts = machine.facts(torch.device("cpu"), 1, [])
        files.write_json(options.json, {"machine": facts, "settings": described(options), "tasks": rows})
        _told(f"{options.json}: python -m benchmarks.report puts it into the pages")


def main(arguments: list[str] | None = None) -> int:
    return ended(run, parser().parse_args(arguments))


if __name__ == "__main__":
    raise SystemExit(main())
