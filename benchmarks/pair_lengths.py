"""Can a label be told without reading? The best guess from the lengths of the segments alone, on real text.

    python -m benchmarks.pair_lengths --corpus CORPUS [--length 128] [--rows 20000] [--seeds 0,1,2]

Half of the rows say which label is the commonest among rows with segments of like lengths (each length in twelve parts
with equally many rows); the other half is guessed by it. Rows of three segments are told by the first two: the third
is what is left. The number of segments is there for all to see, so permuted segments are looked at for each number
apart. Prints a table of means over the seeds.
"""

from __future__ import annotations

import argparse

import numpy as np
from numpy.typing import NDArray

from maskery.corpus.store import Corpus
from maskery.rows.config import PAIRS, RowsConfig
from maskery.rows.plan import RowPlan, plan_rows

PARTS = 12
KINDS = [(kind, pair) for kind in ("segment_pair", "sentence_pair") for pair in ("next", "order", "three", "distance")]


def guessed(plan: RowPlan, rows: NDArray[np.int64]) -> tuple[float, float]:
    """The share of right guesses among every second of the rows, and that of the commonest label."""
    label = plan.label[rows].astype(np.int64)
    cell = np.zeros(len(rows), dtype=np.int64)
    for place in (0, 1):
        piece = plan.row_start[rows] + place
        size = plan.piece_end[piece] - plan.piece_start[piece]
        cell = cell * PARTS + np.searchsorted(np.quantile(size, np.arange(1, PARTS) / PARTS), size)
    seen, asked = np.arange(len(rows)) % 2 == 0, np.arange(len(rows)) % 2 == 1
    table = np.zeros((PARTS * PARTS, int(label.max()) + 1))
    np.add.at(table, (cell[seen], label[seen]), 1)
    # A cell of few rows knows little: it leans towards what is common everywhere.
    table += 20 * table.sum(0) / table.sum()
    hits = table.argmax(1)[cell[asked]] == label[asked]
    return float(hits.mean()), float(np.bincount(label[asked]).max() / asked.sum())


def rows_of(plan: RowPlan, segments: int, many: int, seed: int) -> NDArray[np.int64]:
    """Labelled rows of so many segments, a random choice of them."""
    fit = np.flatnonzero((plan.label >= 0) & (np.diff(plan.row_start) == segments))
    return np.sort(np.random.default_rng(seed).permutation(fit)[:many])


def lines(corpus: Corpus, length: int, many: int, seeds: list[int]) -> list[str]:
    found = ["| rows | question | classes | guessed from lengths | commonest label |", "|---|---|---|---|---|"]
    cases = [(kind, pair, 2, len(PAIRS.get(pair).labels)) for kind, pair in KINDS]
    cases += [("permuted_segments", "permuted", 2, 2), ("permuted_segments", "permuted", 3, 6)]
    for kind, pair, segments, classes in cases:
        plans = [plan_rows(RowsConfig.model_validate({"kind": kind, "pair": pair}), corpus, length, s) for s in seeds]
        scores = [guessed(plan, rows_of(plan, segments, many, s)) for plan, s in zip(plans, seeds, strict=True)]
        told, common = (100 * float(np.mean(each)) for each in zip(*scores, strict=True))
        name = f"{pair}, {segments} segments" if pair == "permuted" else pair
        found.append(f"| {kind} | {name} | {classes} | {told:.1f} % | {common:.1f} % |")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--corpus", required=True)
    parser.add_argument("--length", type=int, default=128)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--seeds", default="0,1,2")
    given = parser.parse_args()
    seeds = [int(seed) for seed in given.seeds.split(",")]
    print("\n".join(lines(Corpus.open(given.corpus), given.length, given.rows, seeds)))


if __name__ == "__main__":
    main()
