"""What a memory is worth: a gpt2 without one and a transformer-xl with one, equal parameters, the same tokens each.

    python -m benchmarks.perplexity --wikitext TRAIN VALID --zhwiki FILE --out DIR [--tokens 4000000] [--seed 0]
                                    [--size mini] [--length 128] [--batch 32]

Text: WikiText-2, in 8,000 pieces of its own, scored as perplexity a word: all that the pieces of the validation text
cost, the ends of its documents among them, over its words as the file parts them. The first 5 MB of the Chinese
Wikipedia in single characters, scored as bits a character on the half megabyte behind them. Files may be gzipped.

Both models have rows of the same length, the same batch, optimiser, schedule and dropout; the feed-forward layers of
transformer-xl are narrower, so that both have as many parameters. It is scored with the memory of training, with none,
and with four times as much. Stopped at any moment, the same command goes on.
Written: OUT/perplexity.json and benchmarks/results/perplexity.json.
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from benchmarks.report import RESULTS
from maskery import files
from maskery.checkpoint.load import load
from maskery.checkpoint.tensors import read_json
from maskery.corpus.store import Corpus
from maskery.model.reading import Reading, score_stream
from maskery.recipes.recipe import Recipe, recipe
from maskery.system import System
from maskery.train import machine
from maskery.train.run import pretrain

COMMON = {
    "model.dropout": 0.1,
    "model.attention_dropout": 0.0,
    "training.optimizer": "adamw",
    "training.lr": 1e-3,
    "training.betas": [0.9, 0.98],
    "training.eps": 1e-8,
    "training.weight_decay": 0.01,
    "training.clip": 0.25,
    "training.warmup": 0.1,
    "training.decay": "cosine",
    "training.phases": [],
    "training.save_every": 200,
    "training.keep": 1,
    "training.eval_every": 0,
}
PIECES = 8000
TRAINED, VALIDATED = 5_000_000, 500_000
"""Bytes of the Chinese text."""
LANES = 8
"""Texts beside each other while a text is scored: each is a stretch of it."""


def opened(path: Path) -> str:
    with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else open(path, encoding="utf-8") as file:
        return file.read()


def cut(text: str, start: int, size: int) -> str:
    """About `size` bytes from the byte `start` on, in whole articles."""
    plain = text.encode()
    first = plain.find(b"\n\n", start) + 2 if start else 0
    last = plain.find(b"\n\n", first + size)
    return plain[first : last if last > 0 else None].decode()


def corpora(name: str, train: str, valid: str, out: Path, pieces: int) -> tuple[Corpus, Corpus]:
    """Both texts in the same pieces; what was built before is opened."""
    built: list[Corpus] = []
    for part, text in (("train", train), ("valid", valid)):
        folder = out / f"{name}-{part}"
        if not folder.is_dir():
            source = out / f"{name}-{part}.txt"
            source.write_text(text, encoding="utf-8")
            common: dict[str, Any] = {"heldout": 0.0, "words": "none", "duplicates": "keep"}
            if built:
                Corpus.build([source], folder, tokenizer=built[0].tokenizer, **common)
            else:
                kind = "char" if name == "zhwiki" else "bpe"
                Corpus.build([source], folder, tokenizer="train", kind=kind, vocab=pieces, **common)
        built.append(Corpus.open(folder))
    return built[0], built[1]


def stream_of(corpus: Corpus) -> Tensor:
    """All tokens, a [SEP] behind each document."""
    ends = np.asarray(corpus.sentence_start)[np.asarray(corpus.document_start)[1:]]
    tokens = np.asarray(corpus.tokens[np.arange(int(corpus.sentence_start[-1]))], dtype=np.int64)
    return torch.from_numpy(np.insert(tokens, ends, corpus.specials.sep))


def parameters(made: Recipe, vocabulary: int) -> int:
    with torch.device("meta"):
        return sum(each.numel() for each in System(made, vocabulary).parameters())


def rivals(size: str, length: int, batch: int, tokens: int, seed: int, vocabulary: int) -> dict[str, Recipe]:
    """The two recipes, as many parameters each as the width of a feed-forward layer allows."""
    shared = COMMON | {
        "training.length": length,
        "training.batch": batch,
        "training.steps": -(-tokens // (length * batch)),
        "training.seed": seed,
    }
    plain = recipe("gpt2", shared | {"model.max_length": length}, size=size)
    wanted = parameters(plain, vocabulary)
    remembering = recipe("transformer-xl", shared | {"model.memory": length}, size=size)
    width = 4 * remembering.model.width
    one = parameters(remembering.changed({"model.feedforward": width + 1}), vocabulary)
    step = one - parameters(remembering.changed({"model.feedforward": width}), vocabulary)
    fitting = width + 1 + round((wanted - one) / step)
    return {"gpt2": plain, "transformer-xl": remembering.changed({"model.feedforward": fitting})}


def cost(run: Path, ids: Tensor, reading: Reading) -> float:
    """Nats that all tokens of a text but the first cost, read as a few stretches beside each other: each begins with
    the last token of the one before it."""
    model = load(run).to(machine.device())
    size = -(-(len(ids) - 1) // LANES)
    stretches = [ids[start : start + size + 1] for start in range(0, len(ids) - 1, size)]
    whole = [each for each in stretches if len(each) == size + 1]
    grids = [torch.stack(whole), *(each[None] for each in stretches if len(each) <= size)]
    return -sum(float(score_stream(model.network, model.token_head(), grid, reading).double().sum()) for grid in grids)


def measured(name: str, label: str, made: Recipe, both: tuple[Corpus, Corpus], valid: str, out: Path) -> dict[str, Any]:
    """A model trained and scored; what was done before is read."""
    kept = out / f"{name}-{label}-{made.training.seed}.json"
    if kept.is_file():
        return read_json(kept)
    run = out / f"run-{name}-{label}-{made.training.seed}"
    pretrain(made, both[0], run, resume=run.is_dir())
    length, ids = made.training.length, stream_of(both[1]).to(machine.device())
    units = len(valid.split()) if name == "wikitext2" else sum(not each.isspace() for each in valid)
    scores = []
    for memory in (0, length, 4 * length) if made.model.memory else (0,):
        nats = cost(run, ids, Reading(length=length, memory=memory)) / units
        scores.append({"memory": memory, "value": math.exp(nats) if name == "wikitext2" else nats / math.log(2)})
    found = {
        "text": name,
        "recipe": label,
        "parameters": parameters(made, both[0].vocabulary),
        "tokens": made.training.steps * made.training.batch * length,
        "feedforward": made.model.feedforward,
        "pieces": len(ids),
        "units": units,
        "scores": scores,
    }
    files.write_json(kept, found)
    return found


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--wikitext", nargs=2, type=Path, metavar=("TRAIN", "VALID"))
    parser.add_argument("--zhwiki", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--tokens", type=int, default=4_000_000)
    parser.add_argument("--size", default="mini")
    parser.add_argument("--length", type=int, default=128)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--pieces", type=int, default=PIECES)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--nowhere-else", action="store_true", help="do not write into benchmarks/results")
    asked = parser.parse_args(arguments)
    asked.out.mkdir(parents=True, exist_ok=True)
    machine.prepare()
    texts: dict[str, tuple[str, str]] = {}
    if asked.wikitext:
        texts["wikitext2"] = opened(asked.wikitext[0]), opened(asked.wikitext[1])
    if asked.zhwiki:
        whole = opened(asked.zhwiki)
        texts["zhwiki"] = cut(whole, 0, TRAINED), cut(whole, TRAINED, VALIDATED)
    runs = []
    for name, (train, valid) in texts.items():
        both = corpora(name, train, valid, asked.out, asked.pieces)
        made = rivals(asked.size, asked.length, asked.batch, asked.tokens, asked.seed, both[0].vocabulary)
        for label, each in made.items():
            runs.append(measured(name, label, each, both, valid, asked.out))
            print(json.dumps(runs[-1]), file=sys.stderr, flush=True)
    found = {"size": asked.size, "length": asked.length, "batch": asked.batch, "seed": asked.seed, "runs": runs}
    files.write_json(asked.out / "perplexity.json", found)
    if not asked.nowhere_else:
        files.write_json(RESULTS / "perplexity.json", found)


if __name__ == "__main__":
    main()
