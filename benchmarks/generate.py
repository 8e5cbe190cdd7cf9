"""What the cache saves: greedy writing with keys and values kept against reading everything anew at every step.

    python -m benchmarks.generate                      # mini, prompt 128, 128 new tokens, batch 8 and 1
    python -m benchmarks.generate --quick              # 16 new tokens, one round, nothing written

Both sides write the same tokens with the same weights, which is checked; they alternate in one process, and the best of
several rounds counts. Reading anew computes scores at the last slot alone, so nothing is wasted on that side. The
results go to results/generate.json.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from typing import Any

import torch

from benchmarks.pretrain import RESULTS, VOCABULARY
from maskery import randomness
from maskery.checkpoint.model import Model
from maskery.recipes.recipe import recipe
from maskery.rows.config import RowsConfig
from maskery.system import System
from maskery.text.tokenizer import Tokenizer
from maskery.train import machine
from maskery.writing.forms import form_of
from maskery.writing.writer import Writer, writer_of

RECIPES = ("gpt2", "transformer-xl", "xlnet", "unilm", "bart")
ROUNDS = 3
MARKS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def model_of(name: str, size: str, slots: int) -> Model:
    """An untrained model: how long a token takes does not depend on what is written."""
    made = recipe(name, {"model.max_length": max(512, slots)}, size=size)
    system = System(made, VOCABULARY)
    system.initialise(0)
    tokenizer = Tokenizer.from_pieces([*MARKS, *(f"p{number}" for number in range(len(MARKS), VOCABULARY))])
    model = Model(system.network, dict(system.heads.items()), tokenizer)
    model.rows = RowsConfig.model_validate(made.rows.plain())
    return model


def prompts(rows: int, length: int) -> list[list[int]]:
    draws = randomness.generator(randomness.key(0, "benchmark prompts"))
    return [draws.integers(len(MARKS), VOCABULARY, length).tolist() for _ in range(rows)]


def write(writer: Writer, given: list[list[int]], new: int) -> tuple[float, list[list[int]]]:
    """Seconds, and the tokens: always the most probable, and no end."""
    begun = time.perf_counter()
    scores = writer.begin(given)
    written = [scores.argmax(1)]
    while len(written) < new:
        written.append(writer.step(written[-1]).argmax(1))
    return time.perf_counter() - begun, torch.stack(written, 1).tolist()


def compared(model: Model, rows: int, length: int, new: int, rounds: int) -> dict[str, Any]:
    form, given = form_of(model), prompts(rows, length)
    best = {"cached": float("inf"), "anew": float("inf")}
    texts = {}
    for _ in range(rounds):
        for name, keep in (("cached", True), ("anew", False)):
            seconds, texts[name] = write(writer_of(model, form, keep=keep), given, new)
            best[name] = min(best[name], seconds)
    same = sum(a == b for a, b in zip(texts["cached"], texts["anew"], strict=True))
    return {
        "rows": rows,
        "prompt": length,
        "new": new,
        "cached_seconds": best["cached"],
        "anew_seconds": best["anew"],
        "ratio": best["anew"] / best["cached"],
        "tokens_per_second": rows * new / best["cached"],
        "same_texts": same,
    }


def cases(size: str, names: list[str], length: int, new: int, rounds: int) -> Iterator[dict[str, Any]]:
    for name in names:
        model = model_of(name, size, length + new + 4)
        for rows in (8, 1):
            yield {"recipe": name, "size": size, **compared(model, rows, length, new, rounds)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--size", default="mini")
    parser.add_argument("--recipes", nargs="+", default=list(RECIPES))
    parser.add_argument("--prompt", type=int, default=128)
    parser.add_argument("--new", type=int, default=128)
    asked = parser.parse_args()
    machine.prepare()
    new, rounds = (16, 1) if asked.quick else (asked.new, ROUNDS)
    found = []
    for case in cases(asked.size, asked.recipes, asked.prompt, new, rounds):
        found.append(case)
        print(
            f"{case['recipe']:15} rows {case['rows']}  with the cache {case['cached_seconds']:.2f} s, anew "
            f"{case['anew_seconds']:.2f} s: {case['ratio']:.1f}x, {case['tokens_per_second']:,.0f} tokens/s, "
            f"same texts {case['same_texts']} of {case['rows']}",
            flush=True,
        )
    if not asked.quick:
        told = {"threads": torch.get_num_threads(), "torch": torch.__version__, "cases": found}
        (RESULTS / "generate.json").write_text(json.dumps(told, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
