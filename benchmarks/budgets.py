"""Is a time budget kept? Commands with `--budget`, each timed from start to end in a process of its own.

    python -m benchmarks.budgets --data DIR --work DIR

DIR of --data holds the labelled sets and `corpus/zhwiki.txt.gz`, `corpus/enwiki.txt.gz`; among the commands are those
with development sets that alone would take longer than the budget. Written: benchmarks/results/budgets.json. Run it
alone: on a machine whose speed changes during a command no plan holds. --only NAME does a part.
"""

from __future__ import annotations

import argparse
import gzip
import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import report
from benchmarks.finetune_english import model_folder
from benchmarks.pretrain_defaults import maskery
from maskery import files
from maskery.checkpoint.tensors import read_json
from maskery.train.budget import parse_budget

TEXTS = {"zh": ("zhwiki.txt.gz", 5_000_000), "en": ("enwiki.txt.gz", 3_000_000)}
"""Text of the corpora, and how many bytes of it."""


@dataclass(frozen=True)
class Command:
    budget: str
    verb: str
    what: str
    """A recipe for `pretrain`; a training file for `finetune`."""
    more: tuple[str, ...] = ()
    """A corpus for `pretrain`; a development file and options for `finetune`."""


COMMANDS = {
    "bert, Chinese": Command("60s", "pretrain", "bert", ("zh",)),
    "macbert, Chinese": Command("90s", "pretrain", "macbert", ("zh",)),
    "electra, English": Command("60s", "pretrain", "electra", ("en",)),
    "gpt2, English": Command("60s", "pretrain", "gpt2", ("en",)),
    "SST-2": Command("60s", "finetune", "SST2.train.tsv", ("SST2.dev.tsv",)),
    "CMRC (long dev)": Command("240s", "finetune", "cmrc2018.trial.json", ("cmrc2018.dev.json",)),
    "CLUENER": Command("60s", "finetune", "CLUENER.train.jsonl", ("CLUENER.dev.jsonl",)),
    "C3 (long dev)": Command("90s", "finetune", "c3-d-train.json", ("c3-d-dev.json",)),
    "STS-B": Command("45s", "finetune", "STSB.train.tsv", ("STSB.dev.tsv", "--label", "score")),
    "OCNLI": Command("60s", "finetune", "OCNLI.train50k.tsv", ("OCNLI.dev.tsv", "--label", "label")),
    "SST-2, three seeds": Command("90s", "finetune", "SST2.train.tsv", ("SST2.dev.tsv", "--seeds", "3")),
}


def corpus_of(language: str, data: Path, work: Path) -> Path:
    made = work / f"budget-{language}"
    if not made.is_dir():
        name, size = TEXTS[language]
        text = work / f"{language}.txt"
        with gzip.open(data / "corpus" / name) as packed:
            text.write_text(packed.read(size).decode(errors="ignore"), encoding="utf-8")
        built = maskery("corpus", "build", str(text), "--out", str(made))
        if built.returncode:
            raise SystemExit(built.stderr)
    return made


def arguments_of(command: Command, data: Path, work: Path, run: Path) -> list[str]:
    if command.verb == "pretrain":
        corpus = corpus_of(command.more[0], data, work)
        return ["pretrain", command.what, "--corpus", str(corpus), "--out", str(run), "--budget", command.budget]
    train, dev = (str(next(data.rglob(name))) for name in (command.what, command.more[0]))
    named = ["--train", train, "--dev", dev, "--out", str(run), "--budget", command.budget]
    return ["finetune", str(model_folder(None)), *named, *command.more[1:]]


def timed(name: str, data: Path, work: Path) -> dict[str, Any]:
    command, run = COMMANDS[name], work / "run"
    shutil.rmtree(run, ignore_errors=True)
    arguments = arguments_of(command, data, work, run)
    began = time.monotonic()
    ended = maskery(*arguments)
    seconds = time.monotonic() - began
    if ended.returncode:
        raise SystemExit(f"{name}: {ended.stderr}")
    notes = [line for line in ended.stderr.splitlines() if "budget" in line or "evaluation has" in line]
    budget = parse_budget(command.budget)
    return {"name": name, "verb": command.verb, "budget": budget, "seconds": round(seconds, 1), "notes": notes}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--only", nargs="+", choices=list(COMMANDS), default=list(COMMANDS))
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    target = report.RESULTS / "budgets.json"
    cells = {each["name"]: each for each in read_json(target)["cells"]} if target.is_file() else {}
    for name in options.only:
        cells[name] = timed(name, options.data, options.work)
        found = cells[name]
        print(f"{name:24} budget {found['budget']:5.0f} s, took {found['seconds']:6.1f} s", *found["notes"], flush=True)
        files.write_json(target, {"cells": [cells[each] for each in COMMANDS if each in cells]})


if __name__ == "__main__":
    main()
