"""What the shapes cost: training steps side by side, in one process, alternating; the best of several rounds counts.

    python -m benchmarks.shape_speed                   # the table of ratios, into results/shape_speed.json
    python -m benchmarks.shape_speed --quick           # mini, without dropout, two rounds, nothing written

    albert      ours against transformers' AlbertForPreTraining (the quicker of its two attentions): how many times as
                quick ours is. It needs transformers
    nezha       our bert against our nezha: the part of bert's speed that distances told inside attention leave
    electra     generator alone and discriminator alone, one after the other, against the step of both: above 1 the
                whole is quicker than its parts. Each part alone has embeddings of its own to move, the whole has one

All sides have the same layers, rows without padding with 15 % of the slots asked, dropout, threads and allocator, and
the same optimiser: AdamW, for transformers has no LAMB. A step is forward, backward and optimiser; nobody clips. What
lacks its recipe or its library is left out, and said.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch

from benchmarks import pretrain
from benchmarks.pretrain import RATE, RESULTS, VOCABULARY, full_batch, rows_of
from maskery import randomness
from maskery.batches import Batch, Targets
from maskery.objectives.config import PAIR_OF
from maskery.objectives.masked_token import DRAWS
from maskery.recipes.recipe import Recipe, names, recipe
from maskery.train import machine

Step = Callable[[Batch], float]
Sides = dict[str, Step]


def shaped(name: str, size: str, dropout: float, length: int, **changes: Any) -> Recipe:
    """A recipe at a size, with what all sides have in common."""
    common = {
        "model.dropout": dropout,
        "model.attention_dropout": dropout,
        "training.clip": 0.0,
        "training.length": length,
        "training.weight_decay": 0.01,
        "training.eps": 1e-6,
    }
    return recipe(name, common | changes, size=size)


def asking(batch: Batch, objectives: list[str]) -> Batch:
    """A batch of masked tokens that also asks about pairs, and about every token whether it was replaced."""
    rows, slots = batch.ids.shape
    masked = batch.targets["masked_token"]
    draws = randomness.generator(randomness.key(0, "benchmark draws", batch.step)).random(len(masked.index))
    targets = {"masked_token": replace(masked, extra={DRAWS: torch.from_numpy(draws)})}
    every = Targets(index=torch.arange(rows * slots), label=(batch.edit > 0).long().flatten())
    for name in objectives:
        if name in PAIR_OF:
            targets[name] = Targets(index=torch.arange(rows), label=torch.arange(rows) % 2)
        elif name != "masked_token":
            targets[name] = every
    segments = (torch.arange(slots) >= slots // 2).long().expand(rows, slots)
    return replace(batch, segments=segments, targets=targets)


class Ours(pretrain.Ours):
    """With whatever a recipe asks."""

    def step(self, batch: Batch) -> float:
        return super().step(asking(batch, list(self.system.weights)))


class Albert:
    """AlbertForPreTraining as its users train it: labels -100 where nothing is asked."""

    def __init__(self, made: Recipe, attention: str) -> None:
        from transformers import AlbertConfig, AlbertForPreTraining

        shape = made.model.shape(VOCABULARY)
        config = AlbertConfig(
            vocab_size=VOCABULARY,
            embedding_size=shape.embedding,
            hidden_size=shape.width,
            num_hidden_layers=shape.layers,
            num_hidden_groups=shape.groups,
            num_attention_heads=shape.heads,
            intermediate_size=shape.feedforward,
            hidden_act="gelu_new",
            hidden_dropout_prob=shape.dropout,
            attention_probs_dropout_prob=shape.attention_dropout,
            classifier_dropout_prob=shape.dropout,
            attn_implementation=attention,
        )
        self.model = AlbertForPreTraining(config).train()
        named = list(self.model.named_parameters())
        plain = [each for name, each in named if "norm" in name.lower() or name.endswith("bias")]
        other = [each for name, each in named if not ("norm" in name.lower() or name.endswith("bias"))]
        groups = [{"params": other, "weight_decay": made.training.weight_decay}, {"params": plain, "weight_decay": 0.0}]
        self.optimizer = torch.optim.AdamW(groups, lr=RATE, eps=made.training.eps, fused=True)

    def step(self, batch: Batch) -> float:
        asked = asking(batch, ["sentence_order"])
        self.optimizer.zero_grad(set_to_none=True)
        loss = self.model(
            input_ids=asked.ids,
            attention_mask=torch.ones_like(asked.ids),
            token_type_ids=asked.segments,
            labels=torch.where(asked.edit > 0, asked.original, -100),
            sentence_order_label=asked.targets["sentence_order"].label,
        ).loss
        loss.backward()
        self.optimizer.step()
        return float(loss.detach())


def albert(size: str, dropout: float, length: int) -> Sides:
    made = shaped("albert", size, dropout, length)
    theirs = {f"transformers {kind}": Albert(made, kind).step for kind in ("eager", "sdpa")}
    return {"albert": Ours(made).step, **theirs}


def nezha(size: str, dropout: float, length: int) -> Sides:
    return {name: Ours(shaped(name, size, dropout, length)).step for name in ("nezha", "bert")}


def electra(size: str, dropout: float, length: int) -> Sides:
    made = shaped("electra", size, dropout, length)
    small = made.model.generator_shape(VOCABULARY)
    assert small is not None, "electra has a generator"
    keys = ("layers", "width", "heads", "feedforward", "embedding")
    alone = {"model.generator": {"width": 0, "layers": 0, "heads": 0, "feedforward": 0}}
    parts = {
        "generator": {f"model.{key}": getattr(small, key) for key in keys} | {"objectives.replaced_token": False},
        "discriminator": {"objectives.masked_token": False},
    }
    return {"electra": Ours(made).step, **{name: Ours(made.changed(alone | own)).step for name, own in parts.items()}}


COMPARISONS: dict[str, tuple[Callable[[str, float, int], Sides], tuple[str, ...], Callable[[list[float]], float]]] = {
    "albert": (albert, ("albert",), min),
    "nezha": (nezha, ("nezha", "bert"), min),
    "electra": (electra, ("electra",), sum),
}
"""Name -> its sides, ours first; the recipes it needs; and how the times of the other sides are taken together."""


def possible() -> Iterator[str]:
    for name, (_, needed, _) in COMPARISONS.items():
        missing = [f"recipe {each}" for each in needed if each not in names()]
        if name == "albert" and find_spec("transformers") is None:
            missing.append("transformers")
        if missing:
            print(f"{name}: left out, there is no {', '.join(missing)}", flush=True)
        else:
            yield name


def compare(name: str, size: str, dropout: float, length: int, rounds: int, rows: int = 0) -> dict[str, Any]:
    make, _, together = COMPARISONS[name]
    sides, rows = make(size, dropout, length), rows or rows_of(size, length)
    best = dict.fromkeys(sides, float("inf"))
    for turn in range(rounds + 1):
        batch = full_batch(rows, length, turn)
        for side, step in sides.items():
            began = time.perf_counter()
            step(batch)
            if turn:  # the first is a warm-up
                best[side] = min(best[side], time.perf_counter() - began)
    ours, *others = best.values()
    return {
        "name": name,
        "size": size,
        "dropout": dropout,
        "length": length,
        "rows": rows,
        "milliseconds": {side: 1000 * seconds for side, seconds in best.items()},
        "tokens_per_second": rows * length / ours,
        "ratio": together(others) / ours,
    }


def tell(row: dict[str, Any]) -> None:
    times = ", ".join(f"{side} {each:.0f} ms" for side, each in row["milliseconds"].items())
    print(
        f"{row['name']:9}{row['size']:8}{row['dropout']:8.1f}{row['rows']:6} x {row['length']:<5}{row['ratio']:6.2f}  "
        f"({times})",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="mini,small")
    parser.add_argument("--dropouts", default="0.1,0.0")
    parser.add_argument("--lengths", default="128,512")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--quick", action="store_true", help="mini, without dropout, length 128, two rounds; no file")
    parser.add_argument("--json", type=Path, default=RESULTS / "shape_speed.json")
    options = parser.parse_args()
    if options.quick:
        options.sizes, options.dropouts, options.lengths, options.rounds = "mini", "0.0", "128", 2
    machine.prepare()
    rows = []
    print(f"{'':9}{'size':8}{'dropout':>8}{'rows':>6}   {'':5}{'ratio':>6}")
    for name in possible():
        for size in options.sizes.split(","):
            for dropout in map(float, options.dropouts.split(",")):
                for length in map(int, options.lengths.split(",")):
                    rows.append(compare(name, size, dropout, length, options.rounds))
                    tell(rows[-1])
    if not options.quick:
        options.json.parent.mkdir(exist_ok=True)
        report = {"machine": machine.facts(torch.device("cpu"), 1, []), "rows": rows}
        options.json.write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    main()
