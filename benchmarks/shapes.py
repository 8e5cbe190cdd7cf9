"""Every shape that reads both ways, at equal cost: bert, albert, nezha, electra, unilm.

    python -m benchmarks.shapes --corpus DIR --train TNEWS.train.tsv --dev TNEWS.dev.tsv --out DIR

Each is trained at mini on the same number of tokens of one corpus, alike in everything that is not the recipe, and
examined on the same held-out rows under one common masking (of ELECTRA the generator is asked; its replaced tokens are
measured apart). Then a linear probe on the frozen states of each: beside the network untrained, and TF-IDF.
Stopped at any moment, the same command goes on. Speed is measured last, on a few steps of each in turn, so that it does
not matter what else ran while they were trained. Written: benchmarks/results/shapes.json.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from benchmarks import probe, report
from maskery import files
from maskery.checkpoint.load import load
from maskery.checkpoint.model import Model
from maskery.checkpoint.whole import whole_of
from maskery.cli.compare import watch_of
from maskery.compare.ask import Examination
from maskery.compare.plan import Length, Plan, plan
from maskery.compare.run import Turn, compare, turns_of
from maskery.compare.variants import COMMON_TRAINING, Variant
from maskery.corpus.store import Corpus
from maskery.errors import MaskeryError
from maskery.recipes.recipe import Recipe
from maskery.system import System
from maskery.train import machine
from maskery.train.build import build_trainer
from maskery.train.estimate import needs_of

SHAPES = ("bert", "albert", "nezha", "electra", "unilm")
SIZE, COMMON, ROWS = "mini", "roberta", 1024
CHANGES: dict[str, dict[str, Any]] = {"albert": {"model.embedding": 128}}
"""What a size does not say."""


def made_plan(corpus: Corpus, tokens: int, size: str = SIZE) -> tuple[Plan, Examination]:
    return planned(SHAPES, corpus, tokens, size), Examination.of(COMMON, corpus, ROWS, (), {})


def planned(names: Sequence[str], corpus: Corpus, tokens: int, size: str) -> Plan:
    """Recipes that read equally many tokens, alike in everything that is not the recipe."""
    variants = [Variant(name, name, {**COMMON_TRAINING, **CHANGES.get(name, {})}) for name in names]
    return plan(variants, corpus, Length(tokens), size, {}, 0)


def facts_of(recipe: Recipe, run: Path, corpus: Corpus) -> dict[str, Any]:
    """Parameters and planned memory of a run, and what it says of its own questions."""
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    last = next(line for line in reversed(lines) if "eval/loss" in line)
    needs = needs_of(whole_of(recipe, corpus.vocabulary), recipe)
    return {
        "parameters": load(run).parameters_by_part(),
        "planned_bytes": needs.training(recipe.training.batch, recipe.training.length),
        "own": {key: value for key, value in last.items() if key.startswith("eval/")},
    }


def paces(recipes: dict[str, Recipe], corpus: Corpus, rounds: int = 3, steps: int = 6) -> dict[str, float]:
    """Tokens a second in training: the best of several rounds of a few steps, in which all take turns."""
    updates = {name: build_trainer(recipe, corpus, 0, _quiet).updates() for name, recipe in recipes.items()}
    best = dict.fromkeys(recipes, 0.0)
    for _ in range(rounds):
        for name, source in updates.items():
            next(source)  # caches are the last one's
            took = [next(source) for _ in range(steps)]
            best[name] = max(best[name], sum(each.tokens for each in took) / sum(each.seconds for each in took))
    return best


def _quiet(line: str) -> None:
    pass


def untrained(recipe: Recipe, corpus: Corpus) -> Model:
    system = System(recipe, corpus.vocabulary)
    system.initialise(0)
    return Model(system.network, {}, corpus.tokenizer)


def probed(out: Path, name: str, model: Model, data: dict[str, Any]) -> dict[str, Any]:
    """What the probe finds; what it found before is read."""
    kept = out / f"probe-{name}.json"
    if not kept.is_file():
        print(f"probe: {name}", file=sys.stderr, flush=True)
        train, test = (probe.mean_states(model, data[part]) for part in ("train_ids", "test_ids"))
        files.write_json(kept, probe.accuracy(train, data["train_labels"], test, data["test_labels"], scale=True))
    found: dict[str, Any] = json.loads(kept.read_text())
    return found


Frames = Mapping[str, tuple[Sequence[str], Sequence[str]]]
"""Label -> the marks before and behind a text, where they are not [CLS] and [SEP]."""


def probes(turns: list[Turn], out: Path, corpus: Corpus, files_of: tuple[Path, Path], frames: Frames) -> dict[str, Any]:
    """What the probe finds in every run and in the same network untrained; trained on the first file, asked on the
    second."""
    (train_texts, train_labels), (texts, labels) = map(probe.read, files_of)
    found: dict[str, Any] = {}
    for turn in turns:
        name = turn.contestant.label
        data = {
            "train_ids": probe.ids_of(corpus.tokenizer, train_texts, *frames.get(name, ())),
            "test_ids": probe.ids_of(corpus.tokenizer, texts, *frames.get(name, ())),
            "train_labels": train_labels,
            "test_labels": labels,
        }
        found[name] = probed(out, name, load(turn.run.path), data)
        bare = untrained(turn.contestant.recipe, corpus)
        found[f"{name}, untrained"] = probed(out, f"{name}-untrained", bare, data)
    return found


def characters(out: Path, files_of: tuple[Path, Path]) -> dict[str, Any]:
    """What a bag of characters finds; what it found before is read."""
    kept = out / "probe-characters.json"
    if not kept.is_file():
        (train_texts, train_labels), (texts, labels) = map(probe.read, files_of)
        files.write_json(kept, probe.characters(train_texts, train_labels, texts, labels))
    return {"TF-IDF of characters": json.loads(kept.read_text())}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument("--train", type=Path)
    parser.add_argument("--dev", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--tokens", type=int, default=2_000_000)
    parser.add_argument("--json", type=Path, default=report.RESULTS / "shapes.json")
    options = parser.parse_args()
    machine.prepare()
    try:
        corpus = Corpus.open(options.corpus)
        made, examination = made_plan(corpus, options.tokens)
        found = compare(made, [0], options.out, examination, watch_of(made, [0]))
        turns = turns_of(made, [0], options.out)
        runs = {turn.contestant.label: facts_of(turn.contestant.recipe, turn.run.path, corpus) for turn in turns}
        asked: dict[str, Any] = {}
        if options.train:
            labelled = options.train, options.dev
            asked = probes(turns, options.out, corpus, labelled, {}) | characters(options.out, labelled)
        for name, pace in paces({each.contestant.label: each.contestant.recipe for each in turns}, corpus).items():
            runs[name]["tokens_per_second"] = pace
    except MaskeryError as error:
        print(error.text(), file=sys.stderr)
        return error.exit_code
    for variant in found["variants"]:
        variant["runs"] = [{key: run[key] for key in ("seed", "tokens")} for run in variant["runs"]]
    result = {"machine": machine.facts(torch.device("cpu"), 1, []), **found, "shapes": runs, "probe": asked}
    options.json.write_text(json.dumps(result, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
