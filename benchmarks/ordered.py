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
from pathlib import Path

import torch

from benchmarks import report
from benchmarks.shapes import SIZE, Frames, facts_of, paces, planned, probes
from maskery import files
from maskery.cli.compare import watch_of
from maskery.compare.plan import Plan
from maskery.compare.run import Turn, turns_of
from maskery.corpus.store import Corpus
from maskery.errors import MaskeryError
from maskery.train import machine
from maskery.train.run import pretrain

SHAPES = ("gpt2", "xlnet", "bart")
FRAMES: Frames = {"gpt2": (("sep",), ("sep",)), "xlnet": ((), ("sep", "cls"))}


def trained(made: Plan, turns: list[Turn], corpus: Corpus) -> None:
    watch = watch_of(made, [0])
    for number, turn in enumerate(turns):
        recipe = turn.contestant.seeded(0)
        if not turn.finished:
            loggers = watch.loggers(number, turn.name, recipe)
            pretrain(recipe, corpus, turn.run.path, resume=turn.run.path.exists(), loggers=loggers, say=watch.say)


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
        made = planned(SHAPES, corpus, options.tokens, options.size)
        turns = turns_of(made, [0], options.out)
        options.out.mkdir(parents=True, exist_ok=True)
        trained(made, turns, corpus)
        recipes = {turn.contestant.label: turn.contestant.recipe for turn in turns}
        runs = {
            name: facts_of(each, turn.run.path, corpus)
            for (name, each), turn in zip(recipes.items(), turns, strict=True)
        }
        found = probes(turns, options.out, corpus, (options.train, options.dev), FRAMES)
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
