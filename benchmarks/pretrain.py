"""Training speed against transformers' BertForMaskedLM with fused AdamW: tokens a second, in one run, alternating.

    python -m benchmarks.pretrain                      # the table of ratios
    python -m benchmarks.pretrain --same-loss          # 200 steps on both sides: the same loss

Both sides have the same shape, the same weights at the start, the same batches (full rows, so nothing is won by
leaving out padding), the same dropout, the same optimiser settings, and the same number of threads. The other side
runs with the quicker of its two attention implementations. The best of several rounds counts on either side.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from maskery import randomness
from maskery.batches import Batch, Targets
from maskery.recipes.recipe import Recipe, recipe
from maskery.system import System
from maskery.train import machine
from maskery.train.optimizers import AdamW

VOCABULARY = 21128
ROWS = {"mini": 32, "small": 32, "base": 16}
RESULTS = Path(__file__).parent / "results"


def ours_recipe(size: str, dropout: float, length: int) -> Recipe:
    return recipe(
        "roberta",
        {
            "model.dropout": dropout,
            "model.attention_dropout": dropout,
            "model.eps": 1e-12,
            "training.clip": 0.0,
            "training.length": length,
        },
        size=size,
    )


def full_batch(rows: int, length: int, step: int) -> Batch:
    """Rows without padding in which 15 % of the slots are asked for; words are drawn by Zipf's law."""
    draws = randomness.generator(randomness.key(0, "benchmark", step))
    original = np.minimum(draws.zipf(1.2, size=(rows, length)) + 103, VOCABULARY - 1).astype(np.int64)
    chosen = np.argsort(draws.random((rows, length)), axis=1)[:, : round(0.15 * length)]
    edit = np.zeros((rows, length), dtype=np.uint8)
    np.put_along_axis(edit, chosen, 1, axis=1)
    flat = torch.from_numpy(np.flatnonzero(edit))
    before = torch.from_numpy(original)
    return Batch(
        step=step,
        rows=torch.arange(rows),
        ids=torch.where(torch.from_numpy(edit) > 0, 103, before),
        length=torch.full((rows,), length),
        segments=torch.zeros(rows, length, dtype=torch.long),
        positions=torch.arange(length).expand(rows, length),
        original=before,
        edit=torch.from_numpy(edit),
        targets={"masked_token": Targets(index=flat, label=before.flatten()[flat])},
    )


class Ours:
    def __init__(self, made: Recipe) -> None:
        self.system = System(made, VOCABULARY)
        self.system.initialise(0)
        self.system.train()
        self.optimizer = AdamW(self.system.named_parameters(), made.training)
        self.count = 0

    def step(self, batch: Batch) -> float:
        self.count += 1
        randomness.seed_dropout(self.count)
        self.system.zero_grad(set_to_none=True)
        loss = self.system(batch)["masked_token"] / self.system.counts(batch)["masked_token"]
        loss.backward()
        self.optimizer.step(1e-4, self.count)
        return float(loss.detach())


class Theirs:
    """BertForMaskedLM as its users train it: labels -100 where nothing is asked."""

    def __init__(self, made: Recipe, attention: str, start: System | None = None) -> None:
        from transformers import BertConfig, BertForMaskedLM

        shape = made.model.shape(VOCABULARY)
        config = BertConfig(
            vocab_size=VOCABULARY,
            hidden_size=shape.width,
            num_hidden_layers=shape.layers,
            num_attention_heads=shape.heads,
            intermediate_size=shape.feedforward,
            hidden_dropout_prob=shape.dropout,
            attention_probs_dropout_prob=shape.attention_dropout,
            attn_implementation=attention,
        )
        self.model = BertForMaskedLM(config)
        if start is not None:
            _copy(start, self.model)
        self.model.train()
        decayed = [p for n, p in self.model.named_parameters() if "LayerNorm" not in n and not n.endswith("bias")]
        others = [p for n, p in self.model.named_parameters() if "LayerNorm" in n or n.endswith("bias")]
        training = made.training
        self.optimizer = torch.optim.AdamW(
            [
                {"params": decayed, "weight_decay": training.weight_decay},
                {"params": others, "weight_decay": 0.0},
            ],
            lr=1e-4,
            betas=training.betas,
            eps=training.eps,
            fused=True,
        )

    def step(self, batch: Batch) -> float:
        labels = torch.where(batch.edit > 0, batch.original, -100)
        mask = torch.ones_like(batch.ids)
        self.optimizer.zero_grad(set_to_none=True)
        loss = self.model(input_ids=batch.ids, attention_mask=mask, token_type_ids=batch.segments, labels=labels).loss
        loss.backward()
        self.optimizer.step()
        return float(loss.detach())


def _copy(system: System, model: Any) -> None:
    """The same starting point on both sides, through a saved folder."""
    import tempfile

    from transformers import BertForMaskedLM

    from maskery.checkpoint.folder import write_model

    with tempfile.TemporaryDirectory() as folder:
        write_model(Path(folder), system.network, system.heads, None)
        model.load_state_dict(BertForMaskedLM.from_pretrained(folder).state_dict())


def best_of(sides: dict[str, Callable[[Batch], float]], batches: list[Batch], rounds: int) -> dict[str, float]:
    """Seconds of the quickest round of each side; the sides take turns."""
    for step in sides.values():
        step(batches[0])
    best = dict.fromkeys(sides, float("inf"))
    for _ in range(rounds):
        for name, step in sides.items():
            for batch in batches:
                began = time.perf_counter()
                step(batch)
                best[name] = min(best[name], time.perf_counter() - began)
    return best


def compare(size: str, dropout: float, length: int, rounds: int) -> dict[str, Any]:
    made = ours_recipe(size, dropout, length)
    rows = ROWS[size] * 128 // length
    batches = [full_batch(rows, length, step) for step in range(2)]
    sides = {
        "ours": Ours(made).step,
        "eager": Theirs(made, "eager").step,
        "sdpa": Theirs(made, "sdpa").step,
    }
    seconds = best_of(sides, batches, rounds)
    theirs = min(seconds["eager"], seconds["sdpa"])
    tokens = rows * length
    return {
        "size": size,
        "dropout": dropout,
        "length": length,
        "rows": rows,
        "ours_tokens_per_second": tokens / seconds["ours"],
        "theirs_tokens_per_second": tokens / theirs,
        "theirs_attention": "eager" if seconds["eager"] <= seconds["sdpa"] else "sdpa",
        "ratio": theirs / seconds["ours"],
    }


def same_loss(size: str, steps: int) -> dict[str, Any]:
    """Both sides from the same weights over the same batches without dropout: the losses must stay together."""
    made = ours_recipe(size, 0.0, 128)
    mine = Ours(made)
    other = Theirs(made, "eager", mine.system)
    losses = []
    for step in range(steps):
        batch = full_batch(8, 128, step)
        losses.append((mine.step(batch), other.step(batch)))
    differences = [abs(a - b) for a, b in losses]
    return {
        "size": size,
        "steps": steps,
        "first": losses[0],
        "last": losses[-1],
        "largest_difference": max(differences),
        "mean_of_last_20": [sum(pair[side] for pair in losses[-20:]) / 20 for side in (0, 1)],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="mini,small,base")
    parser.add_argument("--dropouts", default="0.1,0.0")
    parser.add_argument("--length", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path, default=RESULTS / "pretrain.json")
    parser.add_argument("--same-loss", action="store_true", help="200 steps on both sides, losses compared")
    options = parser.parse_args()
    machine.prepare()
    if options.same_loss:
        found = same_loss("mini", 200)
        print(json.dumps(found, indent=2))
        options.json.parent.mkdir(exist_ok=True)
        options.json.with_name("same_loss.json").write_text(json.dumps(found, indent=2) + "\n")
        return
    rows = []
    print(f"{'size':8}{'dropout':>8}{'length':>8}{'ours tok/s':>12}{'theirs':>12}{'ratio':>8}")
    for size in options.sizes.split(","):
        for dropout in map(float, options.dropouts.split(",")):
            row = compare(size, dropout, options.length, options.rounds)
            rows.append(row)
            print(
                f"{size:8}{dropout:8.1f}{options.length:8}{row['ours_tokens_per_second']:12.0f}"
                f"{row['theirs_tokens_per_second']:12.0f}{row['ratio']:8.2f}  ({row['theirs_attention']})",
                flush=True,
            )
    options.json.parent.mkdir(exist_ok=True)
    options.json.write_text(json.dumps({"machine": machine.facts(1, 0), "rows": rows}, indent=2) + "\n")


if __name__ == "__main__":
    main()
