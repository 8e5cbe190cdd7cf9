"""Transformer-XL, evaluated: tokens scored a second with a memory, against reading the last tokens anew for each token.

    python -m benchmarks.xl_evaluation                 # lengths 200, 800, 1600, 3800, into results/xl_evaluation.json
    python -m benchmarks.xl_evaluation --quick         # 50 and 100, nothing written

Both ways let every token see equally many tokens before it, with the same weights: random ones, for they change no
time. With a memory the text is read once, in rows of 128 behind what was remembered (`score_stream`, same_length). The
other way reads a window of that many tokens for each token (`score_windows`), as many windows at once as fill the
cores, and in its last layer the last slot alone. Rows of the table say how many tokens were measured; the slow way is
measured on few. The paper's 1,874 times at length 3,800 is of a larger model on a GPU (Dai et al. 2019, table 9).
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from benchmarks.report import RESULTS
from maskery import files
from maskery.model.heads import TokenHead
from maskery.model.reading import Reading, score_stream, score_windows
from maskery.objectives.next_token import NextToken
from maskery.recipes.recipe import recipe
from maskery.system import System
from maskery.train import machine

LENGTHS = (200, 800, 1600, 3800)
PUBLISHED = {3800: 1874}
"""Times as quick, Dai et al. 2019."""
SIZE, VOCABULARY, ROW = "mini", 8000, 128
AT_ONCE = 4096
"""Tokens of the windows that are read at once: beyond it nothing gets quicker."""


def network_of(size: str = SIZE) -> tuple[System, TokenHead]:
    made = recipe("transformer-xl", size=size)
    system = System(made, VOCABULARY).eval()
    system.initialise(0)
    head = system.heads[NextToken.name]
    assert isinstance(head, TokenHead)
    return system, head


def best(work: Callable[[], Tensor], rounds: int) -> float:
    """Seconds of the quickest round."""
    found = []
    for _ in range(rounds):
        began = time.perf_counter()
        work()
        found.append(time.perf_counter() - began)
    return min(found)


def with_memory(system: System, head: TokenHead, reach: int, rounds: int, tokens: int) -> float:
    """Tokens a second, once the memory is full."""
    ids = torch.randint(0, VOCABULARY, (1, reach + tokens), generator=torch.Generator().manual_seed(0))
    reading = Reading(length=ROW, memory=reach, same_length=True)
    full = best(lambda: score_stream(system.network, head, ids, reading), rounds)
    filling = best(lambda: score_stream(system.network, head, ids[:, :reach], reading), rounds)
    return tokens / max(1e-9, full - filling)


def anew(system: System, head: TokenHead, reach: int, rounds: int, windows: int) -> float:
    """Tokens a second where each is read with the `reach` tokens before it."""
    ids = torch.randint(0, VOCABULARY, (reach + windows,), generator=torch.Generator().manual_seed(0))
    rows = max(1, min(windows, AT_ONCE // reach))
    return windows / best(lambda: score_windows(system.network, head, ids, reach, reach, rows), rounds)


def point(system: System, head: TokenHead, reach: int, rounds: int = 3) -> dict[str, Any]:
    tokens, windows = 8 * ROW, max(4, 4 * AT_ONCE // reach)
    quick = with_memory(system, head, reach, rounds, tokens)
    slow = anew(system, head, reach, rounds, windows)
    return {
        "length": reach,
        "tokens": tokens,
        "windows": windows,
        "memory_per_second": quick,
        "anew_per_second": slow,
        "ratio": quick / slow,
        "published": PUBLISHED.get(reach),
    }


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="short lengths, one round, nothing written")
    asked = parser.parse_args(arguments)
    machine.prepare()
    system, head = network_of("tiny" if asked.quick else SIZE)
    points = []
    for reach in (50, 100) if asked.quick else LENGTHS:
        points.append(point(system, head, reach, 1 if asked.quick else 3))
        print(json.dumps(points[-1]), file=sys.stderr, flush=True)
    found = {"size": SIZE, "row": ROW, "vocabulary": VOCABULARY, "threads": torch.get_num_threads(), "points": points}
    if asked.quick:
        print(json.dumps(found))
    else:
        files.write_json(RESULTS / "xl_evaluation.json", found)


if __name__ == "__main__":
    main()
