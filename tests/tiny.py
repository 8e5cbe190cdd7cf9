"""A small made-up text and its corpus, for tests of the verbs."""

from __future__ import annotations

from random import Random

from maskery.corpus.store import Corpus

WORDS = (
    "a",
    "the",
    "cat",
    "dog",
    "bird",
    "house",
    "sees",
    "takes",
    "finds",
    "small",
    "quiet",
    "unbelievable",
    "reading",
)
MODEL = ("model.layers=1", "model.width=16", "model.heads=2", "model.dropout=0.0", "model.attention_dropout=0.0")
SMALL = [part for setting in (*MODEL, "training.eval_rows=8") for part in ("--set", setting)]
"""Flags for a network that trains in milliseconds."""


def write_text(path, documents=40, seed=0):
    draw = Random(seed)

    def sentence():
        return " ".join(draw.choice(WORDS) for _ in range(draw.randint(4, 12))).capitalize() + "."

    def document():
        return "\n".join(" ".join(sentence() for _ in range(3)) for _ in range(draw.randint(2, 5)))

    path.write_text("\n\n".join(document() for _ in range(documents)) + "\n", encoding="utf-8")
    return path


def build(folder, **options):
    options = {"vocab": 200, "heldout": 0.1, "workers": 0} | options
    return Corpus.build([write_text(folder / "text.txt")], folder / "corpus", **options)
