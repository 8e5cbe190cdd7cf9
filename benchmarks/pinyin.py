"""The original Transformer on a real pair set: syllables without tones in, Chinese characters out.

    pip install pypinyin
    python -m benchmarks.pinyin --text zhwiki.txt.gz --out DIR [--pairs 120000] [--tokens 6000000] [--size mini]

Every run of Chinese characters between two signs of a text is a pair: its syllables, and itself. The two sides have
vocabularies of their own. What is measured on pairs set aside: the share of characters that greedy writing gets right,
place by place, and of whole texts; beside the character that each syllable stands for most often. Stopped at any
moment, the same command goes on. Written: benchmarks/results/pinyin.json.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks import report
from maskery.checkpoint.load import load
from maskery.corpus.store import Corpus
from maskery.errors import InputError, MaskeryError
from maskery.inspection.bootstrap import interval, resampled
from maskery.recipes.recipe import recipe
from maskery.text.training import KINDS
from maskery.train import machine
from maskery.train.run import pretrain
from maskery.writing.generate import generate

SHORTEST, LONGEST = 5, 24
"""Characters of a pair."""
BATCH, LENGTH, SHOWN = 64, 32, 8
_RUN = re.compile(f"[\u4e00-\u9fff]{{{SHORTEST},}}")


def runs(path: Path) -> Iterator[str]:
    """Runs of Chinese characters, in the order of the text, each once; long ones are passed over."""
    seen: set[str] = set()
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            for found in _RUN.findall(line):
                if len(found) <= LONGEST and found not in seen:
                    seen.add(found)
                    yield found


def write_pairs(text: Path, out: Path, many: int) -> None:
    try:
        spell = import_module("pypinyin").lazy_pinyin
    except ModuleNotFoundError:
        raise InputError("spelling Chinese characters needs pypinyin", repair="pip install pypinyin") from None
    with out.open("w", encoding="utf-8") as file:
        for number, characters in enumerate(runs(text)):
            if number == many:
                return
            file.write(f"{' '.join(spell(characters))}\t{characters}\n")


def read_pairs(path: Path) -> list[tuple[str, str]]:
    lines = path.read_text(encoding="utf-8").splitlines()
    return [(source, target) for source, target in (line.split("\t") for line in lines)]


def build(pairs: Path, out: Path) -> Corpus:
    """A corpus with two vocabularies: pieces of syllables, and single characters."""
    sources, targets = zip(*read_pairs(pairs), strict=True)
    spelling, characters = KINDS.get("wordpiece")(sources, 1200, None), KINDS.get("char")(targets, 8000, None)
    return Corpus.build(pairs, out, pairs=("1", "2"), tokenizer=spelling, target_tokenizer=characters, heldout=0.02)


def split(corpus: Corpus, pairs: list[tuple[str, str]]) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Pairs that are trained on, and pairs set aside: documents stand in the order of the file."""
    aside = corpus.heldout.tolist()
    if len(aside) != len(pairs):
        raise SystemExit("some pairs were left out of the corpus: remove it, and begin anew")
    kept = [pair for pair, held in zip(pairs, aside, strict=True) if not held]
    return kept, [pair for pair, held in zip(pairs, aside, strict=True) if held]


def most_frequent(pairs: list[tuple[str, str]]) -> dict[str, str]:
    """The character that each syllable stands for most often."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for source, target in pairs:
        for syllable, character in zip(source.split(), target, strict=True):
            counts[syllable][character] += 1
    return {syllable: found.most_common(1)[0][0] for syllable, found in counts.items()}


def score(written: list[str], wanted: list[str]) -> dict[str, Any]:
    """Characters that are right at their place, with an interval over texts, and whole texts that are."""
    right = np.array([sum(a == b for a, b in zip(w, t, strict=False)) for w, t in zip(written, wanted, strict=True)])
    many = np.array([len(each) for each in wanted])
    whole = np.array([w == t for w, t in zip(written, wanted, strict=True)])
    return {
        "characters": float(right.sum() / many.sum()),
        "interval": interval(resampled(right.astype(float), many.astype(float))),
        "texts": float(whole.mean()),
    }


def measure(options: argparse.Namespace) -> dict[str, Any]:
    out: Path = options.out
    out.mkdir(parents=True, exist_ok=True)
    file, folder = out / "pairs.tsv", out / "corpus"
    if not file.is_file():
        write_pairs(options.text, file, options.pairs)
    corpus = Corpus.open(folder) if folder.is_dir() else build(file, folder)
    kept, aside = split(corpus, read_pairs(file))
    tokens = sum(len(source.split()) + 2 for source, _ in kept) / len(kept)
    steps = round(options.tokens / (BATCH * tokens))
    settings = {
        "training.batch": BATCH,
        "training.length": LENGTH,
        "training.steps": steps,
        "training.warmup": 0.1,
        "training.lr": 1e-3,
    }
    run = pretrain(recipe("transformer", settings, size=options.size), corpus, out / "run", (out / "run").exists())
    aside = aside[: options.asked]
    model = load(run.path)
    written = [each.text for each in generate(model, [source for source, _ in aside], new=LONGEST + 2, batch=64)]
    wanted, table = [target for _, target in aside], most_frequent(kept)
    usual = ["".join(table.get(syllable, "?") for syllable in source.split()) for source, _ in aside]
    return {
        "pairs": len(kept),
        "asked": len(aside),
        "steps": steps,
        "source_tokens": options.tokens,
        "parameters": sum(each.numel() for each in model.parameters()),
        "transformer": score(written, wanted),
        "most_frequent": score(usual, wanted),
        "shown": [
            {"source": source, "wanted": target, "written": mine}
            for (source, target), mine in zip(aside[:SHOWN], written, strict=False)
        ],
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--text", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--pairs", type=int, default=120_000)
    parser.add_argument("--tokens", type=int, default=6_000_000)
    parser.add_argument("--asked", type=int, default=1000)
    parser.add_argument("--size", default="mini")
    parser.add_argument("--json", type=Path, default=report.RESULTS / "pinyin.json")
    options = parser.parse_args()
    machine.prepare()
    try:
        found = measure(options)
    except MaskeryError as error:
        print(error.text(), file=sys.stderr)
        return error.exit_code
    facts = machine.facts(torch.device("cpu"), 1, [])
    options.json.write_text(json.dumps({"machine": facts, **found}, indent=2, ensure_ascii=False) + "\n", "utf-8")
    print(json.dumps(found, indent=2, ensure_ascii=False))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
