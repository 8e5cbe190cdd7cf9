"""Training speed against transformers' BertForMaskedLM with fused AdamW: tokens a second, in one run, alternating.

    python -m benchmarks.pretrain                      # the table of ratios
    python -m benchmarks.pretrain --same-loss          # 200 steps on both sides: the same loss

Both sides have the same shape, batches (full rows, so nothing is won by leaving out padding), dropout, optimiser
settings and number of threads. The other side runs with the quicker of its two attention implementations. Each side
has a process of its own, set up as its users run it, and only one works at a time; with --one-process both share one,
so that the other side, too, profits from our allocator settings. The best of several rounds counts on either side.
A step is forward, backward and optimiser; neither side clips.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import torch

from maskery import randomness
from maskery.batches import Batch, Targets
from maskery.model.cost import forward_flops
from maskery.recipes.recipe import Recipe, recipe
from maskery.system import System
from maskery.train import machine
from maskery.train.optimizers import AdamW

VOCABULARY = 21128
RATE = 1e-4
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
        counts, sums = self.system.counts(batch), self.system(batch)
        loss = torch.stack([self.system.weights[name] * sums[name] / counts[name] for name in sums]).sum()
        loss.backward()
        self.optimizer.step(RATE, self.count)
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
            lr=RATE,
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


SIDES = ("ours", "eager", "sdpa")


def side_of(name: str, made: Recipe) -> Callable[[Batch], float]:
    return Ours(made).step if name == "ours" else Theirs(made, name).step


def rounds_of(name: str, size: str, dropout: float, length: int) -> Iterator[float]:
    """One side: each `next` is the quickest of a round's steps, in seconds. The first is a warm-up."""
    made = ours_recipe(size, dropout, length)
    batches = [full_batch(rows_of(size, length), length, step) for step in range(2)]
    step = side_of(name, made)
    while True:
        seconds = []
        for batch in batches:
            began = time.perf_counter()
            step(batch)
            seconds.append(time.perf_counter() - began)
        yield min(seconds)


def serve(name: str, size: str, dropout: float, length: int, pipe: Connection) -> None:
    """A side in a process of its own, set up as its users run it; a round whenever it is asked for one."""
    if name == "ours":
        machine.prepare()
    rounds = rounds_of(name, size, dropout, length)
    while pipe.recv():
        pipe.send(next(rounds))


@contextmanager
def apart(size: str, dropout: float, length: int) -> Iterator[dict[str, Callable[[], float]]]:
    """Each side in its own process; only the one that is asked works."""
    context = multiprocessing.get_context("spawn")
    pipes, processes = {}, []
    for name in SIDES:
        pipes[name], theirs = context.Pipe()
        process = context.Process(target=serve, args=(name, size, dropout, length, theirs), daemon=True)
        process.start()
        theirs.close()  # so that a side that dies ends the wait for its answer
        processes.append(process)

    def ask(name: str) -> float:
        pipes[name].send(True)
        seconds: float = pipes[name].recv()
        return seconds

    try:
        yield {name: partial(ask, name) for name in SIDES}
    finally:
        for name in SIDES:
            pipes[name].send(False)
        for process in processes:
            process.join()


@contextmanager
def together(size: str, dropout: float, length: int) -> Iterator[dict[str, Callable[[], float]]]:
    """All sides in one process, so that the other side, too, has our allocator settings."""
    machine.prepare()
    yield {name: partial(next, rounds_of(name, size, dropout, length)) for name in SIDES}


def rows_of(size: str, length: int) -> int:
    return ROWS[size] * 128 // length


def compare(size: str, dropout: float, length: int, rounds: int, one_process: bool) -> dict[str, Any]:
    best = dict.fromkeys(SIDES, float("inf"))
    with (together if one_process else apart)(size, dropout, length) as sides:
        for ask in sides.values():
            ask()
        for _ in range(rounds):
            for name, ask in sides.items():
                best[name] = min(best[name], ask())
    theirs = min(best["eager"], best["sdpa"])
    rows = rows_of(size, length)
    made = ours_recipe(size, dropout, length)
    flops = 3 * forward_flops(made.model.shape(VOCABULARY), length, round(0.15 * length) / length)
    return {
        "size": size,
        "dropout": dropout,
        "length": length,
        "rows": rows,
        "processes": "one" if one_process else "apart",
        "ours_tokens_per_second": rows * length / best["ours"],
        "theirs_tokens_per_second": rows * length / theirs,
        "theirs_attention": "eager" if best["eager"] <= best["sdpa"] else "sdpa",
        "share_of_peak": rows * length * flops / best["ours"] / machine.matmul_peak(),
        "ratio": theirs / best["ours"],
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
    parser.add_argument("--one-process", action="store_true", help="both sides in one process")
    parser.add_argument("--json", type=Path, default=RESULTS / "pretrain.json")
    parser.add_argument("--same-loss", action="store_true", help="200 steps on both sides, losses compared")
    options = parser.parse_args()
    if options.same_loss:
        found = same_loss("mini", 200)
        print(json.dumps(found, indent=2))
        options.json.parent.mkdir(exist_ok=True)
        options.json.with_name("same_loss.json").write_text(json.dumps(found, indent=2) + "\n")
        return
    rows = []
    print(f"{'size':8}{'dropout':>8}{'length':>8}{'ours tok/s':>12}{'of peak':>9}{'theirs':>12}{'ratio':>8}")
    for size in options.sizes.split(","):
        for dropout in map(float, options.dropouts.split(",")):
            row = compare(size, dropout, options.length, options.rounds, options.one_process)
            rows.append(row)
            print(
                f"{size:8}{dropout:8.1f}{options.length:8}{row['ours_tokens_per_second']:12.0f}"
                f"{row['share_of_peak']:9.0%}{row['theirs_tokens_per_second']:12.0f}{row['ratio']:8.2f}"
                f"  ({row['theirs_attention']})",
                flush=True,
            )
    options.json.parent.mkdir(exist_ok=True)
    report = {"machine": machine.facts(torch.device("cpu"), 1, []), "rows": rows}
    options.json.write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    main()
