"""A small corpus and tiny runs over it, for tests of training as a whole."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np

from maskery.corpus.store import Corpus
from maskery.recipes.recipe import recipe
from maskery.text.tokenizer import Tokenizer
from maskery.text.training import LAYOUT
from maskery.train.run import pretrain

STEPS = 40
WORDS = [f"{first}{vowel}{last}" for first in "bdfgkl" for vowel in "aeiou" for last in "mnrst"]
TINY = {
    "model.layers": 2,
    "model.width": 16,
    "model.heads": 2,
    "model.max_length": 32,
    "model.dropout": 0.1,
    "model.attention_dropout": 0.1,
    "training.length": 24,
    "training.phases": [],
    "training.batch": 8,
    "training.lr": 3e-3,
    "training.warmup": 0.1,
    "training.steps": STEPS,
    "training.eval_every": 10,
    "training.eval_rows": 16,
    "training.save_every": 0,
    "training.precision": "float32",  # expectations are the same on processors that compute in bfloat16
}


def flags_of(settings) -> list[str]:
    return [part for key, value in settings.items() for part in ("--set", f"{key}={json.dumps(value)}")]


TINY_FLAGS = flags_of(TINY)
"""The same for a command line."""


def text_of(documents=30, seed=0) -> str:
    """Sentences of invented words; each word mostly brings its own successor, so that there is something to learn."""
    draw = np.random.default_rng(seed)

    def sentence() -> str:
        word = int(draw.integers(len(WORDS)))
        found = []
        for _ in range(int(draw.integers(3, 10))):
            found.append(WORDS[word])
            word = (word + 1) % len(WORDS) if draw.random() < 0.8 else int(draw.integers(len(WORDS)))
        return " ".join(found) + "."

    return "\n\n".join("\n".join(sentence() for _ in range(int(draw.integers(3, 9)))) for _ in range(documents))


def word_tokenizer() -> Tokenizer:
    return Tokenizer.from_pieces([*LAYOUT, ".", *WORDS])


def corpus_in(folder: Path, documents=30, seed=0, heldout=0.15) -> Corpus:
    folder.mkdir(parents=True, exist_ok=True)
    source = folder / "text.txt"
    source.write_text(text_of(documents, seed), encoding="utf-8")
    return Corpus.build(source, folder / "corpus", tokenizer=word_tokenizer(), heldout=heldout, workers=0)


def similar_words_in(folder: Path) -> Path:
    """A list in which each three words of the texts mean alike."""
    path = folder / "similar.txt"
    path.write_text("\n".join(" ".join(WORDS[n : n + 3]) for n in range(0, 90, 3)), "utf-8")
    return path


def tiny_recipe(name="bert", **changes):
    """`changes` write the dots of a key as two underscores."""
    small = TINY | ({"model.decoder": TINY["model.layers"]} if recipe(name).model.decoder else {})
    return recipe(name, small | {key.replace("__", "."): value for key, value in changes.items()})


class Talk(list):
    """What a run said."""

    def __call__(self, text):
        self.append(text)

    @property
    def text(self):
        return "\n".join(self)


def run_quietly(chosen, corpus, out, resume=False, **options):
    talk = Talk()
    run = pretrain(chosen, corpus, out, resume, say=talk, **options)
    return run, talk


def cut_back(whole: Path, step: int, to: Path) -> Path:
    """A copy of a finished run, saved at every step, as a kill behind `step` would have left it: later checkpoints and
    the final model are gone; the metrics are longer than the checkpoint."""
    (to / "checkpoints").mkdir(parents=True)
    for name in ("recipe.toml", "metrics.jsonl"):
        shutil.copy(whole / name, to / name)
    state = json.loads((whole / "state.json").read_text())
    begun = {key: state[key] for key in ("corpus", "knowledge") if key in state}
    (to / "state.json").write_text(json.dumps({**begun, "finished": False, "step": 0}))
    if step:
        name = f"checkpoints/step-{step}"
        shutil.copytree(whole / name, to / name)
    return to


def same_files(one: Path, other: Path) -> list[str]:
    """The names of all files of a model or checkpoint folder, after comparing every byte."""
    names = sorted(path.name for path in one.iterdir() if path.is_file())
    assert names == sorted(path.name for path in other.iterdir() if path.is_file())
    for name in names:
        assert (one / name).read_bytes() == (other / name).read_bytes(), name
    return names


def lines_without_time(run: Path) -> list[dict]:
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return [{key: value for key, value in line.items() if key != "tokens_per_second"} for line in lines]
