"""The original Transformer learns what cannot be guessed: to write a text backwards, texts that it never read too."""

from __future__ import annotations

import random

import pytest

from maskery.checkpoint.load import load
from maskery.corpus.store import Corpus
from maskery.recipes.recipe import recipe
from maskery.train.run import pretrain
from maskery.writing.generate import generate

SMALL = {
    "model.layers": 1,
    "model.decoder": 1,
    "model.width": 64,
    "model.heads": 4,
    "model.feedforward": 128,
    "model.init_std": 0.1,
    "model.dropout": 0.0,
    "model.attention_dropout": 0.0,
    "objectives.next_token.smoothing": 0.0,
    "training.batch": 64,
    "training.length": 8,
    "training.steps": 200,
    "training.warmup": 0.1,
    "training.lr": 4e-3,
    "training.eval_every": 0,
    "training.save_every": 0,
}


@pytest.fixture
def pairs():
    draw = random.Random(0)
    texts = {"".join(draw.choices("abcdef", k=draw.randint(2, 5))) for _ in range(3000)}
    return [(text, text[::-1]) for text in sorted(texts)]


def test_it_learns_to_reverse(pairs, tmp_path):
    (tmp_path / "pairs.tsv").write_text("".join(f"{one}\t{other}\n" for one, other in pairs), encoding="utf-8")
    corpus = Corpus.build(
        tmp_path / "pairs.tsv", tmp_path / "corpus", pairs=("1", "2"), kind="char", workers=0, heldout=0.05
    )
    run = pretrain(recipe("transformer", SMALL), corpus, tmp_path / "run", say=lambda line: None)
    unread = [pair for pair, out in zip(pairs, corpus.heldout, strict=True) if out]
    written = [each.text for each in generate(load(run.path), [one for one, _ in unread], new=8, batch=128)]
    assert len(unread) > 50
    right = sum(said == other for said, (_, other) in zip(written, unread, strict=True))
    assert right >= 0.97 * len(unread), (right, len(unread))
