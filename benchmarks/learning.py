"""Does it learn as well, and faster? Ours and a plain transformers loop on the same batches, then on the same clock.

    python -m benchmarks.learning [FILE] [--vocab FILE] [--tokens 2000000]

1. Equal tokens: both sides start from the same weights, read the same batches in turn (so a noisy machine slows both),
   with the same rate, clipping, optimiser and dropout. Held-out loss is compared on the same rows and masks.
2. Equal wall-clock: the other side trains anew, on a schedule of its own, with as many steps as fit the time that
   ours took for all its tokens.

Losses are per row; the interval of the difference is a paired bootstrap over held-out rows (2,000 resamples, 95 %).
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from benchmarks.pretrain import RESULTS, Theirs
from maskery import randomness
from maskery.batches import Batch
from maskery.corpus.store import Corpus
from maskery.feed import Feed
from maskery.model.transformer import inputs_of
from maskery.objectives.cross_entropy import losses_and_hits
from maskery.recipes.recipe import Recipe, recipe
from maskery.system import System
from maskery.train import machine
from maskery.train.loop import Trainer
from maskery.train.optimizers import AdamW
from maskery.train.schedules import rate

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"
LENGTH, ROWS, EVAL_ROWS = 128, 32, 1024


def made_recipe(steps: int) -> Recipe:
    return recipe(
        "roberta",
        {
            "training.steps": steps,
            "training.batch": ROWS,
            "training.length": LENGTH,
            "training.lr": 1e-3,
            "training.warmup": 0.1,
            "training.clip": 1.0,
            "model.eps": 1e-12,
        },
        size="mini",
    )


class Side:
    """One contestant: `step` trains on a batch, `losses` gives (row, loss) of a held-out batch's targets."""

    def __init__(self, step: Callable[[int, Batch], None], losses: Callable[[Batch], torch.Tensor]) -> None:
        self.step, self.losses, self.seconds = step, losses, 0.0

    def timed(self, number: int, batch: Batch) -> None:
        began = time.perf_counter()
        self.step(number, batch)
        self.seconds += time.perf_counter() - began

    def by_row(self, heldout: Feed) -> NDArray[np.float64]:
        """(rows, 2): each held-out row's summed loss and number of targets."""
        phase = heldout.phases[0]
        epochs, rows = heldout.first(phase, EVAL_ROWS)
        found = []
        for start in range(0, len(rows), ROWS):
            part = slice(start, start + ROWS)
            batch = heldout.make(0, phase, epochs[part], rows[part])
            owner = (batch.targets["masked_token"].index // batch.ids.shape[1]).numpy()
            losses = self.losses(batch).double().numpy()
            sums = np.bincount(owner, losses, minlength=batch.size)
            found.append(np.stack([sums, np.bincount(owner, minlength=batch.size)], axis=1))
        return np.concatenate(found)


def ours(made: Recipe, corpus: Corpus) -> tuple[Side, System]:
    system = System(made, corpus.vocabulary)
    system.initialise(0)
    optimizer = AdamW(system.named_parameters(), made.training)
    trainer = Trainer(
        training=made.training, feed=Feed(made, corpus, 0), system=system, optimizer=optimizer, micro=[ROWS]
    )

    def step(number: int, batch: Batch) -> None:
        system.train()
        trainer.step = number
        trainer._gradient([batch])
        optimizer.step(rate(made.training, number + 1), number + 1)

    @torch.no_grad()
    def losses(batch: Batch) -> torch.Tensor:
        system.eval()
        network, head, targets = system.network, system.heads["masked_token"], batch.targets["masked_token"]
        states = head.transform(network(inputs_of(batch)).select(targets.index))  # type: ignore[operator]
        return losses_and_hits(states, network.embeddings.tokens, head.bias, targets.label)[0]  # type: ignore[arg-type]

    return Side(step, losses), system


def theirs(made: Recipe, start: System) -> Side:
    other = Theirs(made, "eager", start)

    def step(number: int, batch: Batch) -> None:
        other.model.train()
        for group in other.optimizer.param_groups:
            group["lr"] = rate(made.training, number + 1)
        randomness.seed_dropout(randomness.key(0, "their dropout", number))
        other.optimizer.zero_grad(set_to_none=True)
        labels = torch.where(batch.edit > 0, batch.original, -100)
        mask = torch.arange(batch.ids.shape[1]) < batch.length[:, None]
        loss = other.model(
            input_ids=batch.ids, attention_mask=mask.long(), token_type_ids=batch.segments, labels=labels
        ).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(other.model.parameters(), made.training.clip)
        other.optimizer.step()

    @torch.no_grad()
    def losses(batch: Batch) -> torch.Tensor:
        other.model.eval()
        mask = (torch.arange(batch.ids.shape[1]) < batch.length[:, None]).long()
        scores = other.model(input_ids=batch.ids, attention_mask=mask, token_type_ids=batch.segments).logits
        targets = batch.targets["masked_token"]
        picked = scores.flatten(0, 1)[targets.index]
        return torch.nn.functional.cross_entropy(picked, targets.label, reduction="none")

    return Side(step, losses)


def loss_of(rows: NDArray[np.float64]) -> float:
    return float(rows[:, 0].sum() / rows[:, 1].sum())


def interval(a: NDArray[np.float64], b: NDArray[np.float64]) -> tuple[float, float]:
    """95 % of the difference of losses a - b over resampled rows."""
    draws = randomness.generator(randomness.key(0, "bootstrap"))
    picks = draws.integers(0, len(a), size=(2000, len(a)))
    differences = a[picks, 0].sum(1) / a[picks, 1].sum(1) - b[picks, 0].sum(1) / b[picks, 1].sum(1)
    low, high = np.quantile(differences, [0.025, 0.975])
    return float(low), float(high)


def talk(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def equal_tokens(corpus: Corpus, steps: int) -> tuple[dict[str, Any], NDArray[np.float64]]:
    """The comparison, and ours by row."""
    made = made_recipe(steps)
    feed, heldout = Feed(made, corpus, 0), Feed(made, corpus, 0, "heldout")
    mine, system = ours(made, corpus)
    other = theirs(made, system)
    tokens = 0
    for step in range(steps):
        batch = feed.batch(step)
        tokens += batch.tokens
        mine.timed(step, batch)
        other.timed(step, batch)
        if step % 20 == 0:
            talk(f"step {step}/{steps}: ours {mine.seconds:.0f} s, theirs {other.seconds:.0f} s")
    a, b = mine.by_row(heldout), other.by_row(heldout)
    low, high = interval(a, b)
    return {
        "steps": steps,
        "tokens": tokens,
        "ours": {"loss": loss_of(a), "seconds": mine.seconds},
        "theirs": {"loss": loss_of(b), "seconds": other.seconds},
        "difference": loss_of(a) - loss_of(b),
        "interval": [low, high],
    }, a


def equal_clock(corpus: Corpus, seconds: float, per_step: float, a: NDArray[np.float64]) -> dict[str, Any]:
    """The other side in the `seconds` that gave ours the losses `a`; a step of it took `per_step`."""
    steps = round(seconds / per_step)
    made = made_recipe(steps)
    feed, heldout = Feed(made, corpus, 0), Feed(made, corpus, 0, "heldout")
    other = theirs(made, ours(made, corpus)[1])
    for step in range(steps):
        other.timed(step, feed.batch(step))
        if step % 20 == 0:
            talk(f"step {step}/{steps}: theirs {other.seconds:.0f} s of {seconds:.0f} s")
    b = other.by_row(heldout)
    low, high = interval(a, b)
    return {
        "seconds_ours": seconds,
        "seconds_theirs": other.seconds,
        "steps_theirs": steps,
        "ours": loss_of(a),
        "theirs": loss_of(b),
        "difference": loss_of(a) - loss_of(b),
        "interval": [low, high],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, nargs="?", default=SHARED / "corpus" / "zhwiki.txt.gz")
    parser.add_argument("--vocab", type=Path, default=SHARED / "vocab" / "vocab_zh_21128.txt")
    parser.add_argument("--tokens", type=int, default=2_000_000)
    parser.add_argument("--corpus", type=Path, default=Path("runs") / "learning-corpus")
    parser.add_argument("--json", type=Path, default=RESULTS / "learning.json")
    options = parser.parse_args()
    machine.prepare()
    if not options.corpus.exists():
        Corpus.build([options.file], options.corpus, tokenizer=options.vocab)
    corpus = Corpus.open(options.corpus)
    feed = Feed(made_recipe(1), corpus, 0)
    steps = round(options.tokens / feed.batch(0).tokens)
    first, a = equal_tokens(corpus, steps)
    print(json.dumps({"equal_tokens": first}, indent=2), flush=True)
    clock = equal_clock(corpus, first["ours"]["seconds"], first["theirs"]["seconds"] / steps, a)
    print(json.dumps({"equal_clock": clock}, indent=2))
    options.json.parent.mkdir(exist_ok=True)
    report = {"machine": machine.facts(torch.device("cpu"), 1, [ROWS]), "equal_tokens": first, "equal_clock": clock}
    options.json.write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    main()
