"""How quick corruption is: rows a second on one thread, beside a training step and beside transformers' collators.

    python -m benchmarks.corruption_speed --corpus CORPUS [--synonyms FILE] [--batch 256] [--rounds 7]

Three things are timed in one process, one after the other in every round; the best round of each counts.

    training    a step of `bert` at mini (forward, backward, optimiser), 32 rows of 128, vocabulary 21,128, all cores
    ours        for every recipe, on one thread: `corrupt` alone on rows that lie in memory, and the whole batch as
                training asks for it (reading, corruption, targets, padding)
    theirs      on one thread: DataCollatorForLanguageModeling, by single tokens and by whole words, on the same rows
                as lists of ids with what they need beside (special tokens marked, our words as offsets, padded because
                its whole words cannot take rows of different lengths): the whole call, and its masking alone

Must hold: `corrupt` alone makes 33 times the rows of a training step for every recipe, 20 times those of the whole-word
collator and twice those of the plain one. Batch with batch and masking with masking stand beside.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from benchmarks import other_maskers as others
from benchmarks.masking_laws import laid, stand_in
from benchmarks.pretrain import RESULTS, VOCABULARY
from maskery import randomness
from maskery.batches import Batch
from maskery.corpus.encode import Flag
from maskery.corpus.store import Corpus
from maskery.corruption.corrupt import corrupt
from maskery.errors import MaskeryError
from maskery.feed import Feed, padded
from maskery.recipes.recipe import Recipe, names, recipe
from maskery.rows.ragged import Rows, gather
from maskery.system import System
from maskery.train import machine
from maskery.train.optimizers import AdamW

LENGTH = 128
TRAINED = 32
TIMES_TRAINING = 33
TIMES_WHOLE_WORDS = 20
TIMES_PLAIN = 2
AGAIN = 3
"""Calls in a round; the quickest counts."""

Work = Callable[[], Any]


@dataclass(frozen=True)
class Task:
    work: Work
    rows: int
    threads: int = 1


def training_step(corpus: Corpus, size: str) -> Work:
    """`bert` on a batch of the corpus, with a vocabulary of 21,128 or the corpus's if that is larger."""
    made = recipe("bert", {"training.phases": [], "training.length": LENGTH, "training.batch": TRAINED}, size=size)
    batch = Feed(made, corpus, 0).batch(0)
    system = System(made, max(VOCABULARY, corpus.vocabulary))
    system.initialise(0)
    system.train()
    optimizer = AdamW(system.named_parameters(), made.training)
    return lambda: _step(system, optimizer, batch)


def _step(system: System, optimizer: AdamW, batch: Batch) -> None:
    randomness.seed_dropout(0)
    system.zero_grad(set_to_none=True)
    sums, counts = system(batch), system.counts(batch)
    total: torch.Tensor = sum(system.weights[name] * value / max(counts[name], 1) for name, value in sums.items())
    total.backward()
    optimizer.step(1e-4, 1)


def our_tasks(made: Recipe, corpus: Corpus, count: int) -> tuple[Task, Task]:
    """`corrupt` alone, and the whole batch."""
    feed = Feed(made, corpus, 0)
    plan, (rows, keys) = feed.plan(feed.phases[0]), read(feed, count)
    config, facts, similar = feed.corruption(made.training.steps - 1), corpus.facts, feed.similar

    def batch() -> Batch:
        # What `Feed.make` does, with the plan in hand: of all recipes' plans only a few are kept.
        new = corrupt(gather(plan, rows.number, corpus), config, keys, facts, similar)
        return padded(new, 0, feed.objectives, corpus.specials.pad, made.model.position_offset)

    return Task(lambda: corrupt(rows, config, keys, facts, similar), count), Task(batch, count)


def read(feed: Feed, count: int) -> tuple[Rows, randomness.Keys]:
    """The first rows of a run, not corrupted yet, and their keys."""
    phase = feed.phases[0]
    epochs, numbers = feed.first(phase, count)
    return gather(feed.plan(phase), numbers, feed.corpus), feed.mask_keys(phase, epochs, numbers)


def features(rows: Rows, pad: int) -> list[dict[str, Any]]:
    """The rows as the other side's users hand them over; a gap in the offsets is where a word of ours begins."""
    begins = rows.special | ((rows.flags & Flag.WORD) != 0)
    end = np.cumsum(1 + begins)
    offsets = np.stack([end - 1, end], axis=1)
    offsets[rows.special] = 0

    def grid(values: NDArray[Any], fill: int) -> list[Any]:
        made = np.full((len(rows), int(rows.length.max()), *values.shape[1:]), fill, dtype=np.int64)
        made[rows.row, rows.slot] = values
        listed: list[Any] = made.tolist()
        return listed

    columns = {
        "input_ids": grid(rows.ids, pad),
        "attention_mask": grid(np.ones_like(rows.ids), 0),
        "special_tokens_mask": grid(rows.special, 1),
        "offset_mapping": grid(offsets, 0),
    }
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def their_tasks(corpus: Corpus, rows: Rows, whole: bool) -> tuple[Task, Task]:
    """The whole call of the collator, and its masking alone."""
    collator, _ = others.collator(corpus.path, whole_word_mask=whole, seed=1)
    wanted = {"input_ids", "attention_mask", "special_tokens_mask", *({"offset_mapping"} if whole else ())}
    given = [
        {name: value for name, value in each.items() if name in wanted} for each in features(rows, corpus.specials.pad)
    ]
    collator(given)  # makes its generator
    whole_call = Task(lambda: collator(given), len(rows))
    grid = collator.tokenizer.pad(given, return_tensors="pt")
    offsets = grid.get("offset_mapping")

    def masking() -> None:
        collator.torch_mask_tokens(grid["input_ids"].clone(), grid["special_tokens_mask"], offsets)

    return whole_call, Task(masking, len(rows))


def quickest(tasks: dict[str, Task], rounds: int) -> dict[str, float]:
    """Rows a second of each task in its best round; in every round each has its turn."""
    best, threads = dict.fromkeys(tasks, float("inf")), torch.get_num_threads()
    for number in range(rounds + 1):
        for name, task in tasks.items():
            torch.set_num_threads(task.threads)
            for _ in range(AGAIN if number else 1):
                began = time.perf_counter()
                task.work()
                seconds = time.perf_counter() - began
                best[name] = min(best[name], seconds) if number else best[name]
        print(f"\rround {number} of {rounds}", end="" if number < rounds else "\r", file=sys.stderr, flush=True)
    torch.set_num_threads(threads)
    return {name: task.rows / best[name] for name, task in tasks.items()}


def tasks_of(corpus: Corpus, recipes: list[str], synonyms: Path, count: int, size: str = "mini") -> dict[str, Task]:
    threads = torch.get_num_threads()
    tasks = {"training": Task(training_step(corpus, size), TRAINED, threads)}
    for name in recipes:
        made = laid(name, {"knowledge.synonyms": str(synonyms)})
        tasks[f"{name} alone"], tasks[f"{name} batch"] = our_tasks(made, corpus, count)
    for name, whole in (("roberta", False), ("bert-wwm", True)):
        rows, _ = read(Feed(laid(name, {}), corpus, 0), count)
        tasks[f"their {name} batch"], tasks[f"their {name} alone"] = their_tasks(corpus, rows, whole)
    return tasks


def against(speed: dict[str, float]) -> list[dict[str, Any]]:
    """Ours and theirs on the same rows; the first of each three is what must hold."""
    found = []
    for what, name in (("whole_words", "bert-wwm"), ("tokens", "roberta")):
        alone, batch = speed[f"{name} alone"], speed[f"{name} batch"]
        found += [
            {"what": what, "ours": alone, "theirs": speed[f"their {name} batch"]},
            {"what": f"{what}_masking", "ours": alone, "theirs": speed[f"their {name} alone"]},
            {"what": f"{what}_batch", "ours": batch, "theirs": speed[f"their {name} batch"]},
        ]
    return found


def failures(report: dict[str, Any]) -> list[str]:
    step = report["training_rows_per_second"]
    slow = [row["recipe"] for row in report["rows"] if row["corruption"] < TIMES_TRAINING * step]
    failed = [f"{name} is below {TIMES_TRAINING} x training" for name in slow]
    limits = {"whole_words": TIMES_WHOLE_WORDS, "tokens": TIMES_PLAIN}
    for row in report["against"]:
        limit = limits.get(row["what"])
        if limit is not None and row["ours"] < limit * row["theirs"]:
            failed.append(f"{row['what']} is below {limit} x theirs")
    return failed


def show(report: dict[str, Any]) -> None:
    step = report["training_rows_per_second"]
    print(f"training, bert at mini: {step:,.1f} rows/s\n")
    print(f"{'recipe':20}{'corruption, rows/s':>20}{'x training':>12}{'batch, rows/s':>16}{'x training':>12}")
    for row in report["rows"]:
        alone, batch = row["corruption"], row["batch"]
        print(f"{row['recipe']:20}{alone:20,.0f}{alone / step:12,.0f}{batch:16,.0f}{batch / step:12,.0f}")
    print(f"\n{'against transformers':28}{'ours, rows/s':>14}{'theirs':>12}{'ratio':>8}")
    for row in report["against"]:
        print(f"{row['what']:28}{row['ours']:14,.0f}{row['theirs']:12,.0f}{row['ours'] / row['theirs']:8.1f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=Path, required=True, help="a corpus of Chinese text")
    parser.add_argument("--synonyms", type=Path, help="words of like meaning")
    parser.add_argument("--recipes", default=",".join(names()))
    parser.add_argument("--batch", type=int, default=256, help="rows that are corrupted at once")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", type=Path, default=RESULTS / "corruption_speed.json")
    options = parser.parse_args()
    if min(options.batch, options.rounds) < 1:
        parser.error("--batch and --rounds: at least 1")
    machine.prepare()
    recipes = options.recipes.split(",")
    needed = [*recipes, *(name for name in ("roberta", "bert-wwm") if name not in recipes)]
    try:
        corpus = Corpus.open(options.corpus)
        with tempfile.TemporaryDirectory() as folder:
            synonyms = options.synonyms or stand_in(corpus, Path(folder))
            tasks = tasks_of(corpus, needed, synonyms, options.batch)
            speed = quickest(tasks, options.rounds)
    except MaskeryError as error:
        parser.error(str(error))
    report = {
        "machine": machine.facts(torch.device("cpu"), 1, []),
        "batch": options.batch,
        "training_rows_per_second": speed["training"],
        "training_threads": tasks["training"].threads,
        "rows": [{"recipe": n, "corruption": speed[f"{n} alone"], "batch": speed[f"{n} batch"]} for n in recipes],
        "against": against(speed),
    }
    show(report)
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    failed = failures(report)
    print("".join(f"\nFAILED: {each}" for each in failed) or "\nall limits hold")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
