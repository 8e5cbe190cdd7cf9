"""What the cells of `benchmarks.vectors_learning` measure, each in a process of its own.

Vectors are judged by Spearman's correlation of their cosines with people's scores (`maskery.vectors.judge`). No
training looks at what is judged: it ends after its epochs, with the weights that it then has.
"""

from __future__ import annotations

import argparse
import shutil
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from benchmarks import vectors_data
from benchmarks.finetune_cells import by_key, file_of, kept
from benchmarks.vectors_data import SETS, judged_pairs, judged_sets, texts_of
from maskery import files
from maskery.checkpoint.load import load
from maskery.errors import InputError
from maskery.inspection.bootstrap import interval, resamples
from maskery.train import precision
from maskery.vectors.after.base import After
from maskery.vectors.after.centring import Centring
from maskery.vectors.after.flow import Flow
from maskery.vectors.after.whitening import Whitening
from maskery.vectors.encoder import Encoder, say_on_stderr
from maskery.vectors.judge.encodes import Encodes, Vectors, vectors_of
from maskery.vectors.judge.examples import Searches, TextPairs, searches
from maskery.vectors.judge.measure import evaluate_vectors
from maskery.vectors.judge.sts import MAIN, similarity_tally
from maskery.vectors.learn.data import TextSet, text_set
from maskery.vectors.learn.folder import WRITER
from maskery.vectors.learn.read import read_texts
from maskery.vectors.learn.run import train_encoder
from maskery.vectors.learn.settings import JOINS
from maskery.writing.generate import generate

POOLS = ("mean", "first_last")
LOSSES = ("cosine", "cosent", "simcse_cosent")
UNTRAINED = "untrained"
DIMENSIONS = (64, 128, 256, 384)
MODELS = ("model", "minilm")
SHOWN = 10
"""Texts for which another is written."""
JUDGED = ("model", "most")
LEARNED = (*JUDGED, "lr", "pool", "length", "batch")
FROM_TEXT = (*LEARNED, "sentences", "corpus_text")
RELEVANT: Mapping[str, tuple[str, ...]] = {
    "sentences": ("sentences", "corpus_text"),
    "simcse": FROM_TEXT,
    "supervised": (*FROM_TEXT, "epochs"),
    "sbert": (*LEARNED, "most_train"),
    "whitening": ("model", "minilm"),
    "simbert": (*JUDGED, "held_out", "simbert_epochs", "simbert_lr"),
    "geometry": (*FROM_TEXT, "minilm"),
}
"""Settings that a part depends on; its cells are of use while these are the same."""
_ASKED = tuple(f"{name}.dev.tsv" for name in SETS)
NEEDED: Mapping[str, tuple[str, ...]] = {
    "simcse": _ASKED,
    "supervised": (*_ASKED, "STS-B.train.tsv"),
    "sbert": ("STS-B.dev.tsv", "OCNLI.train50k.tsv"),
    "whitening": tuple(f"{name}.{part}.tsv" for name in ("STS-B", "STSB") for part in ("dev", "train")),
    "simbert": _ASKED,
    "geometry": ("STS-B.dev.tsv", "STSB.dev.tsv"),
}
"""Files that a part reads; what SimBERT learns from may be missing in part."""


def described(options: argparse.Namespace, part: str) -> dict[str, Any]:
    """Paths by their last name, so that nothing of a machine is written down."""
    found = {name: getattr(options, name) for name in RELEVANT[part]}
    plain = {name: value.name if isinstance(value, Path) else value for name, value in found.items()}
    return plain | ({"model": options.model_name or options.model.name} if "model" in plain else {})


@dataclass(frozen=True)
class Known:
    """Vectors that were made already, by their texts."""

    numbers: Mapping[str, int]
    vectors: Vectors

    def encode(self, texts: Sequence[str], /) -> Vectors:
        return self.vectors[[self.numbers[text] for text in texts]]

    def after(self, after: After) -> Known:
        return Known(self.numbers, after.apply(self.vectors))


def known(encoder: Encodes, texts: Iterable[str]) -> Known:
    every = list(dict.fromkeys(texts))
    return Known({text: number for number, text in enumerate(every)}, vectors_of(encoder, every))


def spearman(encoder: Encodes, pairs: TextPairs) -> dict[str, Any]:
    """The figure, its interval over pairs, and what it is in each resample: the draws are the same for every side."""
    tally = similarity_tally(encoder, pairs, names=(MAIN,))
    value = float(tally.values(np.ones((1, tally.size)))["spearman"][0])
    drawn = resamples(tally.values, tally.size)["spearman"]
    if not isfinite(value) or not np.isfinite(drawn).all():
        cause = f"no correlation on {tally.size:,} pairs: {'; '.join(tally.notes) or 'too few differ'}"
        raise InputError(cause, where=Path(pairs.place).name, repair="more pairs (--most), or other weights")
    rounded = [round(each, 6) for each in drawn.tolist()]
    return {"value": value, "interval": interval(drawn), "n": tally.size, "resamples": rounded}


def judged_on(encoder: Encodes, sets: Mapping[str, TextPairs]) -> dict[str, Any]:
    return {name: spearman(encoder, pairs) for name, pairs in sets.items()}


def sentences(options: argparse.Namespace) -> list[str]:
    """The sentences of the text, chosen once and kept."""
    path, settings = options.out / "sentences.json", described(options, "sentences")
    cell = kept(path, settings)
    if cell is None:
        chosen = vectors_data.sentences_of(options.corpus_text, options.sentences)
        cell = {"settings": settings, "texts": chosen}
        files.write_json(path, cell)
    texts: list[str] = cell["texts"]
    return texts


def trained(
    options: argparse.Namespace, model: Path, loss: str, train: TextSet, folder: Path, seed: int, **settings: Any
) -> Encoder:
    """The encoder at the end of its epochs; `folder` is made anew."""
    shutil.rmtree(folder, ignore_errors=True)
    quickest = precision.choose("auto", torch.device("cpu")).precision
    training = {"lr": options.lr, "seed": seed, "save_every": 0, "precision": quickest} | settings.pop("training", {})
    asked = {"length": options.length, **settings, "training": training}
    return train_encoder(model, loss=loss, train=train, out=folder, settings=asked, say=say_on_stderr)


def simcse_folder(options: argparse.Namespace, seed: int) -> Path:
    """The encoder that SimCSE makes of the model; other cells go on from it."""
    folder: Path = options.out / f"encoder-simcse-{seed}"
    told, settings = folder.with_suffix(".json"), described(options, "simcse")
    if kept(told, settings) is None or not folder.is_dir():
        lines = text_set("lines", ((each,) for each in sentences(options)))
        began = time.perf_counter()
        asked: dict[str, Any] = {"pool": (options.pool,), "training": {"batch": options.batch}}
        trained(options, options.model, "simcse", lines, folder, seed, **asked)
        files.write_json(told, {"settings": settings, "seconds": time.perf_counter() - began})
    return folder


def simcse(options: argparse.Namespace, what: str) -> dict[str, Any]:
    """Before, by a pooling, or after, by the number of a seed; as it is, and whitened on the sentences of the text."""
    lines, sets = sentences(options), judged_sets(options.data, options.most)
    before = what in POOLS
    encoder = Encoder(options.model, pool=what) if before else Encoder(simcse_folder(options, int(what)))
    found = known(encoder, texts_of(sets.values()))
    white = Whitening.fit(encoder.encode(lines))
    return {
        "plain": judged_on(found, sets),
        "whitened": judged_on(found.after(white), sets),
        "fitted_on": len(lines),
        "notes": list(white.notes),
    }


def supervised(options: argparse.Namespace, loss: str, seed: str) -> dict[str, Any]:
    folder, asked = options.out / f"run-{loss}-{seed}", {"epochs": options.epochs, "pool": (options.pool,)}
    model = options.model if loss != "simcse_cosent" else simcse_folder(options, int(seed))
    loss = loss.removeprefix("simcse_")
    train = read_texts(file_of(options.data, "STS-B.train.tsv"), loss)
    encoder = trained(options, model, loss, train, folder, int(seed), training={"batch": 32}, **asked)
    found = judged_on(encoder, judged_sets(options.data, options.most))
    shutil.rmtree(folder, ignore_errors=True)
    return {"plain": found, "pairs": len(train)}


def sbert(options: argparse.Namespace, join: str, seed: str) -> dict[str, Any]:
    """What the classes are told from, trained on OCNLI; asked for cosines on STS-B."""
    sets = {"STS-B": judged_pairs(options.data, "STS-B", options.most)}
    if join == UNTRAINED:
        return {"plain": judged_on(Encoder(options.model, pool=options.pool), sets), "pairs": 0}
    every = read_texts(file_of(options.data, "OCNLI.train50k.tsv"), "softmax")
    keep = np.zeros(len(every), dtype=bool)
    keep[by_key("OCNLI", len(every), options.most_train)] = True
    train = every.taken(keep, "are left out, by key")
    folder = options.out / f"run-sbert-{join}-{seed}"
    asked: dict[str, Any] = {"join": join, "pool": (options.pool,), "training": {"batch": 32}}
    encoder = trained(options, options.model, "softmax", train, folder, int(seed), **asked)
    shutil.rmtree(folder, ignore_errors=True)
    return {"plain": judged_on(encoder, sets), "pairs": len(train)}


def whitening(options: argparse.Namespace, which: str) -> dict[str, Any]:
    """First-last average of a model that was not trained for it, after every post-processing, fitted on the asked
    sentences and on those of the training file; never on a score."""
    name, folder = {"model": ("STS-B", options.model), "minilm": ("STSB", options.minilm)}[which]
    encoder = Encoder(folder, pool="first_last")
    pairs, others = (vectors_data.read_pairs(options.data, f"{name}.{part}.tsv") for part in ("dev", "train"))
    asked, train = known(encoder, texts_of([pairs])), known(encoder, texts_of([others]))
    found: dict[str, Any] = {"none": spearman(asked, pairs), "width": encoder.dimensions, "set": name}
    for place, fitted in (("asked", asked), ("train", train)):
        afters = _afters(fitted.vectors)
        found[place] = {
            "fitted_on": len(fitted.vectors),
            "afters": {each: spearman(asked.after(after), pairs) for each, after in afters.items()},
            "notes": [note for after in afters.values() for note in after.notes],
            "flow": _flow_facts(afters["flow"], asked.vectors),
        }
    return found


def _afters(vectors: NDArray[np.float32]) -> dict[str, After]:
    """Name and dimensions; a fit of whitening serves all sizes."""
    width = vectors.shape[1]
    white = Whitening.fit(vectors)
    sizes = [*(each for each in DIMENSIONS if each < width), width]
    found: dict[str, After] = {"centring": Centring.fit(vectors)}
    return found | {f"whitening-{size}": white.reduced(size) for size in sizes} | {"flow": Flow.fit(vectors)}


def _flow_facts(flow: After, vectors: NDArray[np.float32]) -> dict[str, Any]:
    assert isinstance(flow, Flow)
    error = np.abs(flow.inverse(flow.apply(vectors)) - vectors).max()
    return {
        "before": flow.before,
        "fitted": flow.fitted,
        "seen": flow.seen,
        "held_out": flow.held_out,
        "error": float(error),
        "largest": float(np.abs(vectors).max()),
    }


def simbert(options: argparse.Namespace) -> dict[str, Any]:
    """Search and writing from one training."""
    pairs = vectors_data.partners(options.data, options.most, options.held_out)
    for note in pairs.notes:
        say_on_stderr(note)
    asked = searched(pairs.held_out)
    found = {pool: _recalls(Encoder(options.model, pool=pool), asked) for pool in (*POOLS, "first")}
    folder = options.out / "run-simbert"
    training = {"lr": options.simbert_lr}
    train = text_set("pairs", pairs.train)
    epochs = options.simbert_epochs
    encoder = trained(options, options.model, "simbert", train, folder, 0, length=32, epochs=epochs, training=training)
    found["simbert"] = _recalls(encoder, asked)
    shown = written(folder / WRITER, pairs.held_out)
    shutil.rmtree(folder, ignore_errors=True)
    return {"search": found, "written": shown, "sources": pairs.sources, "notes": pairs.notes, "pairs": len(train)}


def searched(pairs: Sequence[tuple[str, str]]) -> Searches:
    """Every text looks for its partners among all texts but itself."""
    relevance: dict[str, dict[str, float]] = {}
    for one, other in pairs:
        relevance.setdefault(one, {})[other] = 1.0
        relevance.setdefault(other, {})[one] = 1.0
    texts = {text: text for text in relevance}
    return searches(texts, texts, relevance)


def _recalls(encoder: Encodes, asked: Searches) -> dict[str, Any]:
    judgement = evaluate_vectors(encoder, "retrieval", asked)
    names = ("recall@1", "recall@10")
    return {
        "n": judgement.n,
        "documents": len(asked.documents),
        **{name: {"value": judgement.metrics[name], "interval": judgement.intervals[name]} for name in names},
    }


def written(writer: Path, pairs: Sequence[tuple[str, str]]) -> list[dict[str, str]]:
    """For some texts, by key: what is most probable, and one draw, as they came out."""
    some = [pairs[number] for number in by_key("written", len(pairs), SHOWN).tolist()]
    model, given = load(writer), [one for one, _ in some]
    likely = [each.text for each in generate(model, given, beams=4, new=32)]
    drawn = [each.text for each in generate(model, given, top_p=0.9, new=32, seed=0)]
    return [
        {"given": one, "partner": other, "likely": text, "drawn": draw}
        for (one, other), text, draw in zip(some, likely, drawn, strict=True)
    ]


def geometry(options: argparse.Namespace, which: str) -> dict[str, Any]:
    """How vectors lie: of the model before, of SimCSE by the number of a seed, of MiniLM as its folder has it."""
    if which == "minilm":
        encoder, file = Encoder(options.minilm), "STSB.dev.tsv"
    else:
        file = "STS-B.dev.tsv"
        encoder = (
            Encoder(options.model, pool=options.pool)
            if which == UNTRAINED
            else Encoder(simcse_folder(options, int(which)))
        )
    judgement = evaluate_vectors(encoder, "geometry", vectors_data.read_pairs(options.data, file))
    return {"set": file.removesuffix(".dev.tsv"), **judgement.plain()}


PARTS: Mapping[str, Callable[..., dict[str, Any]]] = {
    "simcse": simcse,
    "supervised": supervised,
    "sbert": sbert,
    "whitening": whitening,
    "simbert": simbert,
    "geometry": geometry,
}


def names(part: str, seeds: Sequence[int], sbert_seeds: Sequence[int]) -> list[str]:
    """The cells of a part: its name, and what its function is asked for, with lines between."""
    those = list(map(str, seeds))
    rest: dict[str, list[tuple[str, ...]]] = {
        "simcse": [(each,) for each in (*POOLS, *those)],
        "supervised": [(loss, seed) for seed in those for loss in LOSSES],
        "sbert": [(UNTRAINED, "0"), *((join, str(seed)) for seed in sbert_seeds for join in JOINS)],
        "whitening": [(each,) for each in MODELS],
        "simbert": [()],
        "geometry": [(each,) for each in (UNTRAINED, *those, "minilm")],
    }
    return ["-".join((part, *each)) for each in rest[part]]


def measure(options: argparse.Namespace, name: str) -> dict[str, Any]:
    part, *what = name.split("-")
    began = time.perf_counter()
    found = PARTS[part](options, *what)
    return {"settings": described(options, part), "seconds": time.perf_counter() - began, **found}
