"""What `maskery pretrain` learns at its own settings, beside what it learnt with the paper's, in the same time.

    python -m benchmarks.pretrain_defaults --chinese FILE --english FILE --work DIR

Every cell is one command as a user types it, in a process of its own:

    default     maskery pretrain RECIPE --corpus C --out R --budget B
    published   the same with --as-published, shrunk to size mini, rows of 128, 32 a step, as it was before
    demo        the six settings that `maskery demo` had of its own: tiny, rows of 32, AdamW at 2e-3

Judged on the run's own held-out rows: loss, accuracy, and the loss of token frequencies on the same questions with the
interval (95 %) of the difference. Every cell is written at once into benchmarks/results/pretrain_defaults.json, and
none that stands there is measured again (--anew: it is), so that a stopped benchmark goes on; --recipes, --sides,
--seeds, --budget and --size do a part.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from benchmarks import report
from maskery import files

RECIPES = ("bert", "bert-wwm", "macbert", "nezha", "electra", "gpt2")
LANGUAGES = ("chinese", "english")
DEMO = (
    *("--size", "tiny", "--length", "32", "--batch", "16", "--lr", "2e-3"),
    *("--set", "training.optimizer=adamw", "--set", "training.betas=[0.9, 0.98]", "--set", "training.warmup=0.1"),
    *("--set", "training.clip=1.0", "--set", "model.init_std=0.06", "--set", "training.bias_correction=true"),
    *("--set", "model.dropout=0.0", "--set", "model.attention_dropout=0.0", "--set", "training.decay=linear"),
)
SIDES: dict[str, tuple[str, ...]] = {
    "default": (),
    "published": ("--as-published", "--size", "mini", "--length", "128", "--batch", "32"),
    "demo": DEMO,
}
EVAL_ROWS = 1024


@dataclass(frozen=True)
class Place:
    """One cell of the table."""

    corpus: str
    recipe: str
    side: str
    seed: int
    budget: str
    size: str | None


def maskery(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "maskery", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ)


def corpus_of(language: str, text: Path, work: Path) -> Path:
    made = work / f"corpus-{language}"
    if not made.is_dir():
        built = maskery("corpus", "build", str(text), "--out", str(made))
        if built.returncode:
            raise SystemExit(built.stderr)
    return made


def similar_of(corpus: Path, work: Path) -> list[str]:
    """MacBERT's similar words for the sides that do not learn them by themselves: those that `default` learnt."""
    found = sorted(work.glob(f"similar-{corpus.name}.tsv"))
    return ["--set", f"knowledge.synonyms={found[0]}"] if found else []


def measured(place: Place, corpus: Path, work: Path) -> dict[str, Any]:
    """One run."""
    recipe, side, run = place.recipe, place.side, work / "run"
    shutil.rmtree(run, ignore_errors=True)
    more = SIDES[side] + (("--size", place.size) if place.size and "--size" not in SIDES[side] else ())
    if recipe == "macbert" and side != "default":
        more += tuple(similar_of(corpus, work))
    given = ["--corpus", str(corpus), "--out", str(run), "--budget", place.budget, "--seed", str(place.seed), "--json"]
    ended = maskery("pretrain", recipe, *given, "--set", f"training.eval_rows={EVAL_ROWS}", *more)
    if ended.returncode:
        raise SystemExit(f"{recipe} {side} {place.seed}: {ended.stderr}")
    if recipe == "macbert" and side == "default":
        shutil.copy(run / "similar-words.tsv", work / f"similar-{corpus.name}.tsv")
    notes = [text for text in ended.stderr.splitlines() if text.startswith("--") or "frequencies" in text]
    shutil.rmtree(run, ignore_errors=True)
    return {**asdict(place), **json.loads(ended.stdout), "run": "", "said": notes}


def line(found: dict[str, Any]) -> str:
    first = found["frequencies"][0]
    accuracy = found["eval"].get(f"{first['objective']}/accuracy", float("nan"))
    gap = f"{first['loss'] - first['frequencies']:+.2f} [{first['low']:+.2f}, {first['high']:+.2f}]"
    place = f"{found['corpus']:16} {found['recipe']:9} {found['side']:10} seed {found['seed']} {found['budget']:4}"
    losses = f"loss {first['loss']:.2f} frequencies {first['frequencies']:.2f} {gap} accuracy {100 * accuracy:.1f} %"
    return f"{place} {losses} {found['tokens'] / 1e6:.1f} M tokens {found['seconds']:.0f} s"


def places(args: argparse.Namespace) -> Iterator[Place]:
    for seed in args.seeds:
        for language in args.languages:
            for recipe in args.recipes:
                for side in args.sides:
                    yield Place(f"corpus-{language}", recipe, side, seed, args.budget, args.size)


def written(target: Path) -> dict[Place, dict[str, Any]]:
    cells = json.loads(target.read_text(encoding="utf-8"))["cells"] if target.is_file() else []
    names = [each.name for each in fields(Place)]
    return {Place(**{name: each[name] for name in names}): each for each in cells}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chinese", type=Path)
    parser.add_argument("--english", type=Path)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--languages", nargs="+", default=LANGUAGES, choices=LANGUAGES)
    parser.add_argument("--recipes", nargs="+", default=RECIPES)
    parser.add_argument("--sides", nargs="+", default=list(SIDES), choices=list(SIDES))
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1])
    parser.add_argument("--budget", default="3m")
    parser.add_argument("--size")
    parser.add_argument("--anew", action="store_true")
    args = parser.parse_args()
    args.work.mkdir(parents=True, exist_ok=True)
    target = report.RESULTS / "pretrain_defaults.json"
    for place in places(args):
        cell = None if args.anew else written(target).get(place)
        if cell is None:
            language = place.corpus.removeprefix("corpus-")
            cell = measured(place, corpus_of(language, getattr(args, language), args.work), args.work)
            # Read again: another process, with a --work of its own, may have written meanwhile.
            files.write_json(target, {"cells": list({**written(target), place: cell}.values())})
        print(line(cell), flush=True)


if __name__ == "__main__":
    main()
