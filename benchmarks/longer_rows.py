"""Rows longer than in training: models that differ in their positions alone, trained on rows of 128 and asked at 512.

    python -m benchmarks.longer_rows --corpus DIR --out DIR [--tokens 2000000] [--seeds 0,1,2]
                                     [--positions learned,nezha] [--rows 512]

Every model is nezha's recipe with other positions, trained by `maskery compare` on the same tokens in the same way:
`learned` is BERT's table with 512 rows, of which training reaches 128. Then all are asked for the same masked tokens of
the same held-out rows of 512 slots, and the answers are counted by where in the row they stand. Nothing but positions
parts the first stretch from the others: same text, same masks, same context on both sides.

Stopped at any moment, the same command goes on.
Written: OUT/longer_rows.json and .md, and benchmarks/results/longer_rows.json.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray

from benchmarks import report
from maskery import files
from maskery.checkpoint.load import load
from maskery.checkpoint.tensors import read_json
from maskery.cli.compare import watch_of
from maskery.cli.variants import parse_seeds
from maskery.compare.ask import MASKED, SEED, Examination
from maskery.compare.plan import Length, Plan, plan
from maskery.compare.run import Turn, compare, turns_of
from maskery.compare.variants import Variant
from maskery.corpus.store import Corpus
from maskery.errors import InputError, MaskeryError
from maskery.feed import Feed
from maskery.inspection.bootstrap import interval, resampled
from maskery.model.config import POSITIONS
from maskery.model.heads import TokenHead
from maskery.model.transformer import inputs_of
from maskery.objectives.cross_entropy import losses_and_hits
from maskery.train import machine

SIZE, COMMON, RECIPE = "mini", "roberta", "nezha"
SHORT_ROWS = 1024
"""Held-out rows of the training length that `compare` asks about."""
_MICRO = 16


@dataclass(frozen=True)
class Study:
    """What is trained, and on which rows it is asked."""

    corpus: Corpus
    trained: int = 128
    asked: int = 512
    rows: int = 512
    size: str = SIZE

    @property
    def stretches(self) -> list[tuple[int, int]]:
        """Where answers are counted: as many slots each as training's rows had."""
        return [(start, min(start + self.trained, self.asked)) for start in range(0, self.asked, self.trained)]

    def plan(self, positions: Sequence[str], length: Length, seed: int, settings: dict[str, Any]) -> Plan:
        shared = {"training.length": self.trained, "model.max_length": self.asked, **settings}
        variants = [Variant(name, RECIPE, {"model.positions": name}) for name in positions]
        return plan(variants, self.corpus, length, self.size, shared, seed)

    def examination(self, length: int, rows: int) -> Examination:
        return Examination.of(COMMON, self.corpus, rows, (), {"training.length": length})


@torch.no_grad()
def answers(turn: Turn, study: Study) -> dict[str, Any]:
    """Hits and answers of each row by stretch, (R, stretches) each; what was asked before is read."""
    examination = study.examination(study.asked, study.rows)
    kept = turn.out / turn.contestant.label / f"longer-{turn.seed}.json"
    settings = {**examination.plain(), "stretches": [list(each) for each in study.stretches]}
    known = read_json(kept) if kept.is_file() else {}
    if known.get("settings") == settings:
        return known
    model = load(turn.run.path).to(machine.device())
    head = cast(TokenHead, model.heads[MASKED])
    feed = Feed(examination.masked(turn.run.recipe), study.corpus, SEED, "heldout")
    phase = feed.phases[0]
    epochs, numbers = feed.first(phase, study.rows)
    found = []
    for start in range(0, len(numbers), _MICRO):
        part = slice(start, start + _MICRO)
        batch = feed.make(0, phase, epochs[part], numbers[part]).to(machine.device())
        targets = batch.targets[MASKED]
        hidden = model.network(inputs_of(batch), reads=targets.index)
        states = head.transform(hidden.select(targets.index))
        _, hits = losses_and_hits(states, model.network.embeddings.tokens, head.bias, targets.label)
        rows, slots = batch.ids.shape
        found.append(by_stretch(hits.cpu().numpy(), targets.index.cpu().numpy(), rows, slots, study))
    hits_of, asked_of = np.concatenate(found, axis=1)
    known = {"settings": settings, "hits": hits_of.tolist(), "asked": asked_of.tolist()}
    files.write_json(kept, known)
    return known


def by_stretch(
    hits: NDArray[np.generic], index: NDArray[np.int64], rows: int, slots: int, study: Study
) -> NDArray[np.float64]:
    """(2, rows, stretches): hits, and how many were asked; `index` are flat slots."""
    many = len(study.stretches)
    place = index // slots * many + index % slots // study.trained
    sums = [np.bincount(place, values, minlength=rows * many) for values in (hits.astype(float), np.ones(len(place)))]
    return np.stack(sums).astype(np.float64).reshape(2, rows, many)


def summary(study: Study, told: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    """Accuracies by stretch with intervals over rows, and the difference from the first stretch and the first model."""
    asked = np.array(next(iter(told.values()))[0]["asked"])
    shares: dict[str, list[NDArray[np.float64]]] = {}
    by_seed: dict[str, list[list[float]]] = {}
    for name, runs in told.items():
        hits = np.array([run["hits"] for run in runs])
        shares[name] = [resampled(hits.mean(0)[:, each], asked[:, each]) for each in range(len(study.stretches))]
        by_seed[name] = (hits.sum(1) / np.maximum(1, asked.sum(0))).tolist()
    first = next(iter(told))
    return {
        "stretches": [list(each) for each in study.stretches],
        "asked": asked.sum(0).tolist(),
        "models": {
            name: {
                "by_seed": by_seed[name],
                "accuracy": np.mean(by_seed[name], axis=0).tolist(),
                "interval": [interval(each) for each in shares[name]],
                "from_first_stretch": [interval(each - shares[name][0]) for each in shares[name]],
                f"from_{first}": [interval(a - b) for a, b in zip(shares[name], shares[first], strict=True)],
            }
            for name in told
        },
    }


def markdown(found: dict[str, Any]) -> str:
    """One line a model: accuracy in % by stretch with its interval, and what each seed gave."""
    heads = [f"{start}-{stop - 1}" for start, stop in found["stretches"]]
    lines = ["| positions | " + " | ".join(heads) + " |", "|---|" + "---|" * len(heads)]
    for name, model in found["models"].items():
        cells = []
        for number, (low, high) in enumerate(model["interval"]):
            seeds = " ".join(f"{100 * run[number]:.2f}" for run in model["by_seed"])
            cells.append(f"{100 * model['accuracy'][number]:.2f} [{100 * low:.2f}, {100 * high:.2f}] ({seeds})")
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def measure(study: Study, made: Plan, seeds: Sequence[int], out: Path) -> dict[str, Any]:
    """Train what is not trained yet, ask, and write."""
    short = compare(made, seeds, out, study.examination(study.trained, SHORT_ROWS), watch_of(made, seeds))
    told: dict[str, list[dict[str, Any]]] = {}
    for turn in turns_of(made, seeds, out):
        print(f"asking {turn.name}: rows of {study.asked}", file=sys.stderr)
        told.setdefault(turn.contestant.label, []).append(answers(turn, study))
    rows = len(told[made.contestants[0].label][0]["asked"])
    if rows < study.rows:
        print(f"the held-out part has {rows} rows of {study.asked}, not {study.rows}", file=sys.stderr)
    found = {
        "trained": study.trained,
        "asked_at": study.asked,
        "rows": rows,
        "size": study.size,
        "tokens": made.tokens,
        "seeds": list(seeds),
        "short": {each["label"]: each["masked"] for each in short["variants"]},
        **summary(study, told),
    }
    files.write_json(out / "longer_rows.json", found)
    files.write_text(out / "longer_rows.md", markdown(found))
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--tokens", type=int, default=2_000_000)
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--positions", default="learned,nezha")
    parser.add_argument("--rows", type=int, default=512)
    parser.add_argument("--json", type=Path, default=report.RESULTS / "longer_rows.json")
    options = parser.parse_args()
    machine.prepare()
    try:
        names = [POSITIONS.check(name) for name in options.positions.split(",")]
        if options.rows < 1:
            raise InputError(f"--rows {options.rows}: at least one", repair="--rows 512")
        study, seeds = Study(Corpus.open(options.corpus), rows=options.rows), parse_seeds(options.seeds)
        study.corpus.verify()
        made = study.plan(names, Length(options.tokens), seeds[0], {})
        found = measure(study, made, seeds, options.out)
    except MaskeryError as error:
        print(error.text(), file=sys.stderr)
        return error.exit_code
    facts = machine.facts(torch.device("cpu"), 1, [])
    options.json.write_text(json.dumps({"machine": facts, **found}, indent=2) + "\n")
    print(markdown(found))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
