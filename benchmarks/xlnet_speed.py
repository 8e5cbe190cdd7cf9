"""What two streams cost: XLNet's training step against our BERT's and against transformers' XLNetLMHeadModel.

    python -m benchmarks.xlnet_speed                   # the table of ratios, into results/xlnet_speed.json
    python -m benchmarks.xlnet_speed --quick           # length 128 without memory, two rounds, nothing written

All sides have the same layers and width, rows without padding, no dropout, threads and allocator, and AdamW; they run
in one process, alternating, and the best of several rounds counts. A step is forward, backward and optimiser; nobody
clips. A sixth of the slots is asked, of BERT 15 %; half of our rows are read from their end.

transformers' model is fed by its collator for permuted tokens, whose time is told apart and is no part of its step. Its
rows have two streams over all slots, because the collator asks every slot and leaves most answers out of the loss.

    bert        XLNet's step / BERT's: at most 1.5
    theirs      XLNet's step / that of transformers: at most 0.6
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from benchmarks import pretrain
from benchmarks.pretrain import RATE, RESULTS, VOCABULARY, full_batch, rows_of
from maskery import randomness
from maskery.batches import Batch, Memory, Targets
from maskery.recipes.recipe import Recipe, recipe
from maskery.train import machine

Step = Callable[[Batch], float]
MASK, PAD = 103, 0


def xlnet(size: str, length: int, memory: int) -> Recipe:
    common = {
        "model.dropout": 0.0,
        "model.attention_dropout": 0.0,
        "model.memory": memory,
        "training.clip": 0.0,
        "training.length": length,
    }
    return recipe("xlnet", common, size=size)


def permuted(batch: Batch) -> Batch:
    """The same rows with a sixth of their slots asked in a drawn order, each half for itself, in two segments; every
    second row is read from its end."""
    rows, slots = batch.ids.shape
    draws = randomness.generator(randomness.key(0, "benchmark order", batch.step))
    asked = np.zeros((rows, slots), dtype=bool)
    np.put_along_axis(asked, np.argsort(draws.random((rows, slots)), axis=1)[:, : slots // 6], True, axis=1)
    half = np.arange(slots) >= slots // 2
    order = np.where(asked, 1 + np.argsort(np.argsort(draws.random((rows, slots)), axis=1), axis=1), 0)
    order += np.where(half, slots + 1, 0)
    flat = torch.from_numpy(np.flatnonzero(asked))
    places = torch.arange(slots).expand(rows, slots).clone()
    places[1::2] = places[1::2].flip(1)
    return replace(
        batch,
        ids=batch.original,
        segments=torch.from_numpy(half.astype(np.int64)).expand(rows, slots),
        positions=places,
        slots={"order": torch.from_numpy(order)},
        asked=flat,
        remember=slots // 2,
        targets={"permuted_token": Targets(index=flat, label=batch.original.flatten()[flat])},
    )


class Ours(pretrain.Ours):
    """With memory, where the recipe has one: what the rows before left behind."""

    memory: Memory | None = None

    def step(self, batch: Batch) -> float:
        loss = super().step(replace(permuted(batch), memory=self.memory))
        self.memory = self.system.remembered
        return loss


class Tokens:
    """What transformers' collator asks of a tokenizer."""

    mask_token, mask_token_id = "[MASK]", MASK
    pad_token, pad_token_id = "[PAD]", PAD

    def get_special_tokens_mask(self, ids: list[int], already_has_special_tokens: bool = True) -> list[int]:
        return [int(token < MASK) for token in ids]


class Theirs:
    def __init__(self, made: Recipe) -> None:
        from transformers import DataCollatorForPermutationLanguageModeling, XLNetConfig, XLNetLMHeadModel

        shape = made.model.shape(VOCABULARY)
        self.slots, self.memory = made.training.length, shape.memory
        config = XLNetConfig(
            vocab_size=VOCABULARY,
            d_model=shape.width,
            n_layer=shape.layers,
            n_head=shape.heads,
            d_inner=shape.feedforward,
            ff_activation="gelu",
            dropout=0.0,
            mem_len=shape.memory or None,
            reuse_len=made.training.length // 2 if shape.memory else None,
            use_mems_train=bool(shape.memory),
            use_mems_eval=False,
        )
        self.model = XLNetLMHeadModel(config).train()
        self.collate = DataCollatorForPermutationLanguageModeling(Tokens())
        named = list(self.model.named_parameters())
        plain = [each for name, each in named if "norm" in name or name.endswith("bias")]
        other = [each for name, each in named if not ("norm" in name or name.endswith("bias"))]
        groups = [{"params": other, "weight_decay": made.training.weight_decay}, {"params": plain, "weight_decay": 0.0}]
        self.optimizer = torch.optim.AdamW(groups, lr=RATE, eps=made.training.eps, fused=True)
        self.mems: list[Tensor] | None = None
        self.fed: dict[str, Tensor] = {}

    def feed(self, batch: Batch) -> None:
        rows = batch.original.clamp(min=MASK + 1)
        self.fed = self.collate([{"input_ids": row} for row in rows.tolist()])

    def step(self, batch: Batch) -> float:
        self.optimizer.zero_grad(set_to_none=True)
        segments = (torch.arange(self.slots) >= self.slots // 2).long().expand_as(batch.ids)
        found = self.model(**self.fed, token_type_ids=segments, mems=self.mems)
        if self.memory:
            self.mems = found.mems
        found.loss.backward()
        self.optimizer.step()
        return float(found.loss.detach())


def compare(
    size: str, length: int, memory: int, rounds: int, rows: int = 0, clock: Callable[[], float] = time.perf_counter
) -> dict[str, Any]:
    rows = rows or rows_of(size, length)
    made = xlnet(size, length, memory)
    bert = pretrain.Ours(pretrain.ours_recipe(size, 0.0, length))
    sides: dict[str, Step] = {"xlnet": Ours(made).step, "bert": bert.step}
    theirs = Theirs(made) if find_spec("transformers") else None
    if theirs is None:
        print("theirs: left out, there is no transformers", flush=True)
    else:
        sides["theirs"] = theirs.step
    best = dict.fromkeys([*sides, *(["collator"] if theirs else [])], float("inf"))
    for turn in range(rounds + 1):
        batch = full_batch(rows, length, turn)
        if theirs is not None:
            began = clock()
            theirs.feed(batch)
            best["collator"] = min(best["collator"], clock() - began)
        for side, step in sides.items():
            began = clock()
            step(batch)
            if turn:  # the first is a warm-up
                best[side] = min(best[side], clock() - began)
    return {
        "size": size,
        "length": length,
        "memory": memory,
        "rows": rows,
        "milliseconds": {side: 1000 * seconds for side, seconds in best.items()},
        "ratio": {side: best["xlnet"] / best[side] for side in sides if side != "xlnet"},
    }


def tell(row: dict[str, Any]) -> None:
    times = ", ".join(f"{side} {each:.0f} ms" for side, each in row["milliseconds"].items())
    ratios = ", ".join(f"{each:.2f} x {side}" for side, each in row["ratio"].items())
    print(f"{row['size']} {row['rows']} x {row['length']}, memory {row['memory']}: {ratios}  ({times})", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="mini,small")
    parser.add_argument("--shapes", default="128:0,512:0,512:384", help="length:memory, separated by commas")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--quick", action="store_true", help="mini, length 128 without memory, two rounds; no file")
    parser.add_argument("--json", type=Path, default=RESULTS / "xlnet_speed.json")
    options = parser.parse_args()
    if options.quick:
        options.sizes, options.shapes, options.rounds = "mini", "128:0", 2
    machine.prepare()
    rows = []
    for size in options.sizes.split(","):
        for shape in options.shapes.split(","):
            length, memory = map(int, shape.split(":"))
            rows.append(compare(size, length, memory, options.rounds))
            tell(rows[-1])
    if not options.quick:
        options.json.parent.mkdir(exist_ok=True)
        report = {"machine": machine.facts(torch.device("cpu"), 1, []), "rows": rows}
        options.json.write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    main()
