"""Choices on every axis, the recipes that they make together, and a short list in which every two of them meet.

A choice is a few dotted keys. Choices are chosen freely; what contradicts what is known to `check` and to the axes
themselves, and to nothing here. `python tests/choices.py` makes the list anew (snapshots/combinations.json), which
takes a minute: after a new choice, or a new refusal.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from itertools import combinations
from pathlib import Path
from random import Random
from typing import Any

from pydantic import ValidationError
from small_run import TINY

from maskery.corruption.config import CorruptionConfig
from maskery.model.config import ModelConfig, VisibilityConfig
from maskery.objectives.config import PAIR_OF, ObjectiveConfig
from maskery.recipes.recipe import Recipe, check, recipe
from maskery.rows.config import ONLY_PAIR, RowsConfig

Choice = dict[str, Any]
"""Dotted keys and their values."""
Row = dict[str, str]
"""Axis -> name of the choice."""

SNAPSHOT = Path(__file__).parent / "snapshots" / "combinations.json"
WORDS = {"unit": "word", "decide": "word"}
SHAPES = {
    "share": {
        "none": {},
        "all": {"share": "all"},
        "attention": {"share": "attention"},
        "feedforward": {"share": "feedforward"},
        "groups": {"share": "all", "groups": 2, "layers": 4},
    },
    "embedding": {"whole": {}, "factorised": {"embedding": 8}},
    "positions": {
        "learned": {},
        "sinusoidal": {"positions": "sinusoidal"},
        "no": {"positions": "none"},
        "nezha": {"positions": "nezha", "clip": 4},
        "shaw": {"positions": "shaw", "clip": 4},
        "t5": {"positions": "t5", "buckets": 8, "clip": 16},
        "mpnet": {"positions": "mpnet", "buckets": 8, "clip": 16},
        "xl": {"positions": "xl"},
        "rotary": {"positions": "rotary", "theta": 500.0},
        "disentangled": {"positions": "disentangled", "buckets": 4, "clip": 16},
    },
    "window": {"no": {}, "local": {"local": 6, "global_every": 2}},
    "feedforward": {"plain": {}, "gated": {"gated": True, "feedforward_bias": False}},
    "memory": {"no": {}, "yes": {"memory": 10}},
    "norm": {
        "post": {},
        "pre": {"norm": "pre"},
        "gpt": {"embedding_norm": "no", "token_head": "plain"},
        "gpt2": {"norm": "pre", "token_head": "plain", "residual_init": True, "position_std": 0.01},
        "modern": {
            "norm": "pre",
            "embedding_norm": "yes",
            "first_norm": False,
            "norm_bias": False,
            "head_bias": False,
            "attention_bias": False,
        },
        "biased": {"norm": "pre", "embedding_norm": "yes", "token_head": "bias", "embedding_scale": True},
    },
    "activation": {"gelu": {}, "gelu_tanh": {"activation": "gelu_tanh"}, "relu": {"activation": "relu"}},
    "segments": {"0": {"segments": 0}, "1": {"segments": 1}, "2": {}, "6": {"segments": 6}},
    "tasks": {"0": {}, "3": {"tasks": 3}},
    "generator": {"off": {}, "on": {"generator": {"width": 0.5}}},
}
CORRUPTIONS: dict[str, Choice] = {
    "nothing": {"rate": 0.0},
    "token": {"random_from": "vocabulary"},
    "word": {"unit": "word", "when": "static", "masks": 2},
    "n-grams": {"unit": "word", "span": {"law": "weights", "weights": [6, 3, 2]}},
    "spans": {"unit": "word", "decide": "span", "span": {"law": "geometric", "p": 0.2, "longest": 10}},
    "stages": {"stages": [{"unit": "token"}, {"unit": "phrase"}, {"unit": "entity"}]},
    "similar": {**WORDS, "of": "words", "replace": {"mask": 0.0, "random": 0.1, "keep": 0.1, "similar": 0.8}},
    "shuffle": {"shuffle": {"rate": 0.2}},
    "electra": {"replace": {"mask": 0.85, "random": 0.0, "keep": 0.15}},
    "infill": {"decide": "span", "replace": {"mask": 0.5, "random": 0.0, "keep": 0.0, "infill": 0.5}},
    "delete": {"replace": {"mask": 0.7, "random": 0.0, "keep": 0.1, "delete": 0.2}},
    "order": {"order": {"sentences": True, "rotate": 0.3}},
    "second": {"segment": "second", "end": True},
}
VISIBILITY: dict[str, Choice] = {
    **{kind: {"kind": kind} for kind in ("full", "causal", "reverse", "prefix", "packed", "packed_causal")},
    "mixture": {"mixture": {"full": 0.4, "prefix": 0.2, "causal": 0.2, "reverse": 0.2}},
}
ROWS = (
    "segment_pair",
    "sentence_pair",
    "full_sentences",
    "doc_sentences",
    "one_or_two_segments",
    "permuted_segments",
    "stream",
)
MASKED = ("masked_token",)
QUESTIONS: dict[str, tuple[str, ...]] = {
    "masked": MASKED,
    "boundary": (*MASKED, "span_boundary"),
    **{name: (*MASKED, name) for name in PAIR_OF},
    "word_order": (*MASKED, "word_order"),
    "contrast": (*MASKED, "contrast"),
    "next_token": ("next_token",),
    "sentences only": ("sentence_order",),
}
DECODERS = ("none", "text", "chosen", "target")
TRAINING: dict[str, dict[str, Choice]] = {
    "optimizer": {"adamw": {"optimizer": "adamw"}, "lamb": {"optimizer": "lamb"}},
    "micro": {"whole": {"micro": 0}, "3": {"micro": 3}},
}
AXES: dict[str, tuple[str, ...]] = {
    "corruption": tuple(CORRUPTIONS),
    "questions": tuple(QUESTIONS),
    "visibility": tuple(VISIBILITY),
    "rows": ROWS,
    "decoder": DECODERS,
    **{axis: tuple(choices) for axis, choices in SHAPES.items()},
    **{axis: tuple(choices) for axis, choices in TRAINING.items()},
    "dropout": ("0", "0.1"),
}
DULL = {"corruption": "token", "questions": "masked", "visibility": "full", "rows": "segment_pair", "segments": "2"}
"""What contradicts least, for the axes that can contradict."""


def _rows(row: Row) -> Choice:
    pairs = [PAIR_OF[name] for name in QUESTIONS[row["questions"]] if name in PAIR_OF]
    start = "end" if row["decoder"] == "text" else "begin"
    chosen: Choice = {"kind": row["rows"], "copies": 2, "decoder": row["decoder"], "decoder_start": start}
    if pairs:
        return {**chosen, "pair": pairs[0]}
    return {**chosen, "pair": ONLY_PAIR.get(row["rows"], "next")}


def _corruption(row: Row) -> Choice:
    chosen: Choice = {"when": "dynamic", **CORRUPTIONS[row["corruption"]]}
    if row["questions"] == "word_order":
        chosen["shuffle"] = {"rate": 0.2}
    if row["questions"] == "contrast":
        chosen["ngram"] = {"shortest": 2, "longest": 4}
    return chosen


def _model(row: Row) -> Choice:
    chosen: Choice = {key: value for axis, names in SHAPES.items() for key, value in names[row[axis]].items()}
    chosen["decoder"] = 0 if row["decoder"] == "none" else 2
    return {**chosen, "dropout": float(row["dropout"]), "attention_dropout": float(row["dropout"])}


def _objectives(row: Row) -> dict[str, Choice]:
    written = () if row["decoder"] == "none" else ("next_token",)
    asked = {name: {"weight": 1.0} for name in dict.fromkeys((*QUESTIONS[row["questions"]], *written))}
    return asked | ({"replaced_token": {"weight": 50.0}} if row["generator"] == "on" else {})


def _training(row: Row) -> Choice:
    return {key: value for axis, names in TRAINING.items() for key, value in names[row[axis]].items()}


def tables(row: Row) -> dict[str, Choice]:
    return {
        "rows": _rows(row),
        "corruption": _corruption(row),
        "visibility": VISIBILITY[row["visibility"]],
        "model": _model(row),
        "objectives": _objectives(row),
        "training": _training(row),
    }


def overrides(row: Row, synonyms: str) -> Choice:
    """The row as overrides of the recipe `bert`, at a tiny size."""
    dotted = {f"{axis}.{key}": value for axis, table in tables(row).items() for key, value in table.items()}
    bare = {f"objectives.{name}": False for name in recipe("bert").objectives if name not in _objectives(row)}
    known = {"knowledge.synonyms": synonyms} if row["corruption"] == "similar" else {}
    return TINY | bare | dotted | known


@cache
def _bert() -> Recipe:
    return recipe("bert", TINY | {"knowledge.synonyms": "some.txt"})


_KINDS = {"rows": RowsConfig, "corruption": CorruptionConfig, "visibility": VisibilityConfig, "model": ModelConfig}


@cache
def _part(axis: str, chosen: tuple[str, ...]) -> Any:
    """The config of one axis from the choices that touch it, or why it refuses them."""
    row = dict(zip(AXES, chosen, strict=True))
    base = getattr(_bert(), axis).plain()
    try:
        return _KINDS[axis](**(base | tables(row)[axis]))
    except ValidationError as error:
        return "; ".join(each["msg"] for each in error.errors())


_TOUCHES = {
    "rows": ("rows", "questions", "decoder"),
    "corruption": ("corruption", "questions"),
    "visibility": ("visibility",),
    "model": (*SHAPES, "dropout", "decoder"),
}


def refusals(row: Row) -> list[str]:
    """Why the choices do not go together; quick, because axes that others share are made once."""
    first = {axis: names[0] for axis, names in AXES.items()}
    parts: dict[str, Any] = {}
    for axis, touched in _TOUCHES.items():
        part = _part(axis, tuple(row[each] if each in touched else first[each] for each in AXES))
        if isinstance(part, str):
            return [part]
        parts[axis] = part
    asked = {name: ObjectiveConfig(**config) for name, config in _objectives(row).items()}
    made = _bert().model_copy(update={**parts, "objectives": asked})
    return [f"{each.piece}: {each.reason}" for each in check(made)]


Pair = tuple[tuple[str, str], tuple[str, str]]


def pairs_of(row: Row) -> Iterator[Pair]:
    return combinations(row.items(), 2)


def every_pair() -> dict[Pair, None]:
    return {
        ((one, first), (other, second)): None
        for one, other in combinations(AXES, 2)
        for first in AXES[one]
        for second in AXES[other]
    }


def calm(pair: Pair) -> Row:
    """The pair among choices that contradict little."""
    return {axis: DULL.get(axis, names[0]) for axis, names in AXES.items()} | dict(pair)


def drawn(draw: Random, fixed: Row) -> Row:
    return {axis: fixed.get(axis) or draw.choice(names) for axis, names in AXES.items()}


def accepted(draw: Random, fixed: Row, tries: int) -> Iterator[Row]:
    """Rows that hold the fixed choices and that nothing speaks against; of some the rest is mostly dull."""
    for attempt in range(tries):
        dull = {axis: name for axis, name in DULL.items() if attempt % 4 == 3 and draw.random() < 0.7}
        row = drawn(draw, dull | fixed)
        if not refusals(row):
            yield row


def covering() -> tuple[list[Row], list[Pair]]:
    """Accepted rows in which every two choices meet that can, and the pairs for which no such row was found."""
    draw, missing = Random(0), every_pair()
    rows: list[Row] = []
    apart: list[Pair] = []
    while missing:
        pair = next(iter(missing))
        found = [row for row, _ in zip(accepted(draw, dict(pair), 600), range(30), strict=False)]
        if not found:
            missing.pop(pair)
            apart.append(pair)
            continue
        rows.append(max(found, key=lambda row: sum(each in missing for each in pairs_of(row))))
        for each in pairs_of(rows[-1]):
            missing.pop(each, None)
    met = {pair for row in rows for pair in pairs_of(row)}
    return rows, [pair for pair in apart if pair not in met]


def stored() -> tuple[list[Row], dict[Pair, str]]:
    """The same as it was last made, with a reason for each refused pair."""
    told = json.loads(SNAPSHOT.read_text(encoding="utf-8"))
    rows = [dict(zip(AXES, line.split(", "), strict=True)) for line in told["rows"]]
    apart = {tuple(tuple(side.split("=")) for side in pair.split(", ")): why for pair, why in told["refused"].items()}
    return rows, apart  # type: ignore[return-value]


if __name__ == "__main__":
    made, apart = covering()
    refused = {", ".join("=".join(side) for side in pair): refusals(calm(pair))[0] for pair in apart}
    told = {"rows": [", ".join(row.values()) for row in made], "refused": refused}
    SNAPSHOT.write_text(json.dumps(told, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"{len(made)} rows, {len(apart)} refused pairs")
