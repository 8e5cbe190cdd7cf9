"""Small tasks that can be learned from a few rows: their examples, and models for them."""

from __future__ import annotations

import json

from networks import FAMILY_SHAPES, model_of

from maskery.checkpoint.exporting import export_model
from maskery.checkpoint.load import load
from maskery.model.initial import initialise
from maskery.tasks.examples import Answer, Example, Examples, Span
from maskery.tasks.folder import TaskFolder
from maskery.tasks.model import TaskModel
from maskery.tasks.resolve import Splits, resolve
from maskery.tasks.settings import TaskConfig
from maskery.tasks.tags import Tags

FILLERS = ["the", "cat", "sat", "on", "mat"]
NO_DROPOUT = {"dropout": 0.0, "attention_dropout": 0.0}


def quiet(_text):
    pass


def words(number, many=4):
    return [FILLERS[(number * 7 + 3 * each) % len(FILLERS)] for each in range(many)]


def _classify(number):
    return {
        "texts": (" ".join([*words(number), "x" if number % 2 else "y"]),),
        "label": "odd" if number % 2 else "even",
    }


def _pair(number):
    first, second = "xyz"[number % 3], "xyz"[(number // 3) % 3]
    return {"texts": (f"{first} cat", f"the mat {second}"), "label": "same" if first == second else "other"}


def _regress(number):
    return {"texts": (" ".join(words(number, 3) + ["x"] * (number % 4)),), "label": float(number % 4) / 2}


def _multilabel(number):
    said = [letter for bit, letter in enumerate("xyz") if number >> bit & 1]
    return {"texts": (" ".join([*words(number, 2), *said]),), "label": frozenset(said)}


def _tag(number):
    parts = words(number, 5)
    at = number % 5
    parts[at] = "x" if number % 3 else "y y"
    start = len(" ".join([*parts[:at], ""]))
    span = Span(start, start + len(parts[at]), "one" if number % 3 else "two")
    return {"texts": (" ".join(parts),), "spans": (span,)}


def _qa(number):
    letter, other = ("x", "y") if number % 2 else ("y", "x")
    place = number % 4
    before, between = " ".join(words(number, place + 1)), " ".join(words(number + 1, 2))
    context = f"{before} {other} a {between} {letter} b ."
    return {"texts": (context, f"{letter} ."), "answers": (Answer(context.index(f"{letter} b"), f"{letter} b"),)}


def _choice(number):
    right = number % 3
    letters = ["x", "y", "z"]
    wanted = letters[(number // 3) % 3]
    rest = [each for each in letters if each != wanted]
    rest.insert(right, wanted)
    return {"texts": (" ".join([*words(number, 2), wanted]), "on"), "choices": tuple(rest), "label": str(right)}


def _rank(number):
    query, candidate = "xyz"[(number // 3) % 3], "xyz"[number % 3]
    said = f"{query} {' '.join(words(number // 3, 2))} {number // 3}"
    return {"texts": (said, f"cat {candidate}"), "label": 1.0 if query == candidate else 0.0}


MAKERS = {
    "classify": (_classify, ("text",)),
    "pair": (_pair, ("text_a", "text_b")),
    "regress": (_regress, ("text",)),
    "multilabel": (_multilabel, ("text",)),
    "tag": (_tag, ("text",)),
    "qa": (_qa, ("context", "question")),
    "choice": (_choice, ("context", "question")),
    "rank": (_rank, ("query", "text")),
}
LABELS = {
    "classify": ("even", "odd"),
    "pair": ("other", "same"),
    "multilabel": ("x", "y", "z"),
    "tag": Tags(("one", "two")).names,
    "choice": ("0", "1", "2"),
}


def examples_of(task, many=24, first=0):
    make, fields = MAKERS[task]
    items = tuple(Example(guid=f"t-{number}", **make(number)) for number in range(first, first + many))
    return Examples(task=task, fields=fields, items=items)


def family_model(folder, family, *, seed=0, **changes):
    """A model of a family as it is loaded from a folder."""
    sizes = {"max_length": 40, **NO_DROPOUT, **FAMILY_SHAPES[family], **changes}
    if family == "roberta":
        sizes["position_offset"] = 1  # one behind the padding id, as it has to be
    pooler = family in ("bert", "albert", "ernie", "nezha")
    head = "next_token" if family in ("gpt2", "openai-gpt") else None
    kin = family in ("mpnet", "xlm-roberta", "camembert")  # whose positions are counted from a padding id of 1
    made = model_of(*([head] if head else []), pooler=pooler or kin, seed=seed, pad=int(kin), **sizes)
    if kin:
        export_model(made, folder, family)
    else:
        made.save(folder)
    return load(folder)


def config_of(task, **tables):
    head = {"dropout": 0.0, **tables.pop("head", {})}
    training = {"lr": 3e-3, "batch": 8, "warmup": 0.1, **tables.pop("training", {})}
    columns = {"text": MAKERS[task][1], **tables.pop("columns", {})}
    return TaskConfig(task=task, head=head, training=training, columns=columns, **tables)


def task_model(model, task, train=None, *, std=None, say=quiet, **tables):
    """A model with the head of a task; `std`: of the head's numbers, where they matter."""
    splits = Splits(train if train is not None else examples_of(task))
    config = resolve(config_of(task, **tables), model, splits, LABELS.get(task, ()), say)
    made = TaskModel(model, config)
    if std is not None:
        for name, part in made.system.on_top.items():
            initialise(part, std, 1, prefix=name)
    return made


class KilledError(Exception):
    """As if the process had ended there."""


def lines(out):
    """The metrics of a run, but for clocks."""
    found = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    return [{name: each for name, each in line.items() if name not in ("time", "tokens_per_second")} for line in found]


def contents(out):
    """What a run leaves, but for clocks."""
    names = ["model.safetensors", "config.json", "task.toml"]
    last = TaskFolder(out).checkpoints()[-1][1]
    kept = [*(out / name for name in names), *sorted(last.glob("*.safetensors"))]
    return {str(path.relative_to(out)): path.read_bytes() for path in kept}


def of_two_classes(first, many, times=1):
    """Lines of a TSV: sentences with `cat` or `mat` in them, which is their label; `times`: how long."""
    letters = "abcdefgh"
    for number in range(first, first + many):
        said = [letters[number // 8**each % 8] for each in range(3)]
        animal = number % 2 == 0
        yield "animal" if animal else "thing", " ".join([*said * times, "cat" if animal else "mat"])


def write_tsv(path, rows, header=""):
    path.write_text(header + "".join("\t".join(row) + "\n" for row in rows), encoding="utf-8")
    return path
