"""Peak memory of a training step against transformers' BertForMaskedLM with fused AdamW.

    python -m benchmarks.memory                        # the table
    python -m benchmarks.memory --quick                # mini only, length 128, two steps

Every side and setting has a fresh process. It imports all that it needs and trains a model of width 8 for two steps,
so that code and libraries that are loaded on first use count as import. Then the peak is set back (`benchmarks.peak`),
the model is built and trains a few steps; the number is the peak of these minus what the process held before. So it
covers weights, gradients, moments and activations, and also whatever the allocator did not use well.

Both sides have the same shape, batches (15 % asked), dropout, optimiser settings and threads, and take the whole batch
in one pass: nothing is chosen automatically. Our side runs with the allocator settings of `maskery pretrain`, which
keep freed memory. The other side is measured with both of its attention implementations, and the smaller counts.

Rows are full, so that nothing is won by leaving out padding. For each size there is also a setting with ragged rows,
other lengths in every step, over more steps: kept memory that no longer fits would show itself there.
"""

from __future__ import annotations

import argparse
import gc
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from benchmarks.peak import alone, forget, highest, resident
from benchmarks.pretrain import RESULTS, SIDES, VOCABULARY, full_batch, ours_recipe, rows_of, side_of
from maskery import randomness
from maskery.batches import Batch, Targets
from maskery.recipes.recipe import Recipe
from maskery.system import System
from maskery.train import machine, memory

MIB = 2**20
LIMIT = 1.05
"""Ours may take this much of the other side's memory."""


def ragged(batch: Batch) -> Batch:
    """The same batch in rows of a quarter of the slots up to all of them."""
    rows, slots = batch.ids.shape
    draws = randomness.generator(randomness.key(0, "benchmark lengths", batch.step))
    length = torch.from_numpy(draws.integers(slots // 4, slots + 1, rows))
    targets = batch.targets["masked_token"]
    inside = targets.index % slots < length[targets.index // slots]
    asked = Targets(index=targets.index[inside], label=targets.label[inside])
    return replace(batch, length=length, targets={"masked_token": asked})


def step_memory(name: str, made: Recipe, rows: int, length: int, steps: int, cut: bool = False) -> int:
    """Bytes that building and training one side took at its peak. To be called in a process of its own."""
    if name == "ours":
        machine.prepare()
    toy = side_of(name, made.changed({"model.layers": 1, "model.width": 8, "model.heads": 1, "model.feedforward": 8}))
    for number in range(2):
        toy(full_batch(2, 16, number))
    del toy
    gc.collect()
    before = resident()
    forget()
    step = side_of(name, made)
    for number in range(steps):
        batch = full_batch(rows, length, number)
        step(ragged(batch) if cut else batch)
    return highest() - before


def compare(size: str, dropout: float, length: int, steps: int, cut: bool = False) -> dict[str, Any]:
    made, rows = ours_recipe(size, dropout, length), rows_of(size, length)
    shape = made.model.shape(VOCABULARY)
    took = {name: alone(step_memory, name, made, rows, length, steps, cut) for name in SIDES}
    theirs = min(took["eager"], took["sdpa"])
    return {
        "size": size,
        "dropout": dropout,
        "length": length,
        "rows": rows,
        "fill": "ragged" if cut else "full",
        "steps": steps,
        "ours_bytes": took["ours"],
        "eager_bytes": took["eager"],
        "sdpa_bytes": took["sdpa"],
        "planned_bytes": memory.peak_bytes(shape, parameters(made), length, rows, 0.15),
        "ratio": took["ours"] / theirs,
    }


def parameters(made: Recipe) -> int:
    with torch.device("meta"):
        return sum(each.numel() for each in System(made, VOCABULARY).parameters())


def tell(row: dict[str, Any]) -> None:
    shown = [f"{row[key] / MIB:.0f}" for key in ("ours_bytes", "planned_bytes", "eager_bytes", "sdpa_bytes")]
    rows = f"{row['rows']} x {'<' if row['fill'] == 'ragged' else ''}{row['length']}"
    print(
        f"{row['size']:8}{rows:>12}{row['dropout']:9.1f}{shown[0]:>10}{shown[1]:>9}{shown[2]:>8}{shown[3]:>8}"
        f"{row['ratio']:8.2f}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="mini,small,base")
    parser.add_argument("--dropouts", default="0.1,0.0")
    parser.add_argument("--lengths", default="128,512")
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--quick", action="store_true", help="mini only, length 128, two steps")
    parser.add_argument("--json", type=Path, default=RESULTS / "memory.json")
    options = parser.parse_args()
    if options.quick:
        options.sizes, options.lengths, options.steps = "mini", "128", 2
    lengths, dropouts = [int(each) for each in options.lengths.split(",")], options.dropouts.split(",")
    rows = []
    print(f"{'size':8}{'rows':>12}{'dropout':>9}{'ours MiB':>10}{'planned':>9}{'eager':>8}{'sdpa':>8}{'ratio':>8}")
    for size in options.sizes.split(","):
        settings = [(float(dropout), length, options.steps, False) for length in lengths for dropout in dropouts]
        settings.append((float(dropouts[0]), lengths[0], 5 * options.steps, True))
        for setting in settings:
            rows.append(compare(size, *setting))
            tell(rows[-1])
    worst = max(row["ratio"] for row in rows)
    print(f"at most {worst:.2f} of the other side's memory; the limit is {LIMIT}")
    options.json.parent.mkdir(exist_ok=True)
    report = {
        "machine": machine.facts(torch.device("cpu"), 1, []),
        "steps": options.steps,
        "limit": LIMIT,
        "rows": rows,
    }
    options.json.write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    main()
