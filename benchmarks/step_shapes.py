"""What the choices of `[model]` cost: a training step beside BERT's, in one process, alternating; the quickest counts.

    python -m benchmarks.step_shapes                    # mini, rows of 128 and 512, processor time
    python -m benchmarks.step_shapes --rounds 2 --lengths 128

Every side is our bert with one answer changed, rows without padding with 15 % of the slots as targets. The gated one
has two thirds of the feed-forward width, so that its three matrices hold what BERT's two hold. `twin` is bert again:
what it differs by is the noise.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

from benchmarks.pretrain import full_batch
from benchmarks.shape_speed import Ours, shaped

SIDES: dict[str, dict[str, Any]] = {
    "bert": {},
    "twin": {},
    "rotary": {"model.positions": "rotary"},
    "disentangled": {"model.positions": "disentangled", "model.buckets": 256, "model.clip": 512},
    "gated": {"model.gated": True, "model.feedforward": 683},
    "local": {"model.local": 128, "model.global_every": 3},
}
SLOTS = 2048
"""Of a batch."""


def measured(size: str, length: int, rounds: int, dropout: float) -> dict[str, float]:
    """Seconds of processor time of each side's quickest step."""
    longest = {"model.max_length": max(512, length)}
    made = {name: shaped("bert", size, dropout, length, **longest, **changes) for name, changes in SIDES.items()}
    steps = {name: Ours(each).step for name, each in made.items()}
    best = dict.fromkeys(steps, float("inf"))
    for number in range(rounds + 1):  # the first round warms up
        for name, step in steps.items():
            batch = full_batch(SLOTS // length, length, number)
            began = time.process_time()
            step(batch)
            best[name] = min(best[name], time.process_time() - began) if number else best[name]
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", default="mini")
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--lengths", default="128,512")
    parser.add_argument("--dropout", type=float, default=0.1)
    options = parser.parse_args()
    print("| rows | " + " | ".join(SIDES) + " |")
    for length in map(int, options.lengths.split(",")):
        found = measured(options.size, length, options.rounds, options.dropout)
        ratios = (f"{each / found['bert']:.2f}" for each in found.values())
        print(f"| {SLOTS // length} of {length} | " + " | ".join(ratios) + " |")


if __name__ == "__main__":
    main()
