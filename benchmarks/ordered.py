"""Shapes that read in an order, as readers: gpt2, xlnet and bart by the linear probe of those that read both ways.

    python -m benchmarks.ordered --corpus DIR --train TNEWS.train.tsv --dev TNEWS.dev.tsv --out DIR

Each is trained at mini on the same tokens as `benchmarks.shapes` gives to its shapes, with the same common answers, and
its states are frozen. A text stands in a row as the recipe's own rows have it: gpt2 reads it behind the end of another
text, xlnet with [CLS] at the end. Of bart, whose layers are parted between two stacks, the encoder's states are asked.
Stopped at any moment, the same command goes on. Written: benchmarks/results/ordered.json.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from benchmarks import probe, report
from benchmarks.shapes import SIZE, facts_of, paces, probed, untrained
from maskery import files
from maskery.checkpoint.load import load
from maskery.cli.compare import watch_of
from maskery.compare.plan import Length, Plan, plan
from maskery.compare.run import Turn, turns_of
from maskery.compare.variants import COMMON_TRAINING, Variant
from maskery.corpus.store import Corpus
from maskery.errors import MaskeryError
from maskery.train import machine
from maskery.train.run import pretrain

SHAPES = ("gpt2", "xlnet", "bart")
FRAMES: dict[str, tuple[Sequence[str], Sequence[str]]] = {
    "gpt2": (("sep",), ("sep",)),
    "xlnet": ((), ("sep", "cls")),
    "bart": (("cls",), ("sep",)),
}
"""The marks before and behind a text."""


def made_plan(corpus: Corpus, tokens: int, size: str = SIZE) -> Plan:
    return plan([Variant(name, name, dict(COMMON_TRAINING)) for name in SHAPES], corpus, Length(tokens), size, {}, 0)


def trained(made: Plan, turns: list[Turn], corpus: Corpus) -> None:
    watch = watch_of(made, [0])
    for number, turn in enumerate(turns):
        recipe = turn.contestant.seeded(0)
        if not turn.finished:
            loggers = watch.loggers(number, turn.name, recipe)
            pretrain(recipe, corpus, turn.run.path, resume=turn.run.path.exists(), loggers=loggers, say=watch.say)


def probes(turns: list[Turn], out: Path, corpus: Corpus, train: Path, dev: Path) -> dict[str, Any]:
    (train_texts, train_labels), (texts, labels) = probe.read(train), probe.read(dev)
    found: dict[str, Any] = {}
    for turn in turns:
        name = turn.contestant.label
        data = {
            "train_ids": probe.ids_of(corpus.tokenizer, train_texts, *FRAMES[name]),
            "test_ids": probe.ids_of(corpus.tokenizer, texts, *FRAMES[name]),
            "train_labels": train_labels,
            "test_labels": labels,
        }
        found[name] = probed(out, name, load(turn.run.path), data)
        bare = untrained(turn.contestant.recipe, corpus)
        found[f"{name}, untrained"] = probed(out, f"{name}-untrained", bare, data)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument("--train", type=Path, required=True)
    parser.add_argument("--dev", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--tokens", type=int, default=2_000_000)
    parser.add_argument("--size", default=SIZE)
    parser.add_argument("--json", type=Path, default=report.RESULTS / "ordered.json")
    options = parser.parse_args()
    machine.prepare()
    try:
        corpus = Corpus.open(options.corpus)
        made = made_plan(corpus, options.tokens, options.size)
        turns = turns_of(made, [0], options.out)
        options.out.mkdir(parents=True, exist_ok=True)
        trained(made, turns, corpus)
        recipes = {turn.contestant.label: turn.contestant.recipe for turn in turns}
        runs = {
            name: facts_of(each, turn.run.path, corpus)
            for (name, each), turn in zip(recipes.items(), turns, strict=True)
        }
        found = probes(turns, options.out, corpus, options.train, options.dev)
        for name, pace in paces(recipes, corpus).items():
            runs[name]["tokens_per_second"] = pace
    except MaskeryError as error:
        print(error.text(), file=sys.stderr)
        return error.exit_code
    result = {
        "machine": machine.facts(torch.device("cpu"), 1, []),
        "tokens": options.tokens,
        "size": options.size,
        "shapes": runs,
        "probe": found,
    }
    files.write_json(options.json, result)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
