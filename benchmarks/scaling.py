"""How cost grows: training steps with length and batch, a corpus with its text, a run with the number of ranks.

    python -m benchmarks.scaling                               # all four parts, on generated text
    python -m benchmarks.scaling --text FILE.txt FILE.txt.gz   # the corpus part on real text
    python -m benchmarks.scaling --parts length,batch          # some of them; the others' results stay in the file
    python -m benchmarks.scaling --quick                       # few points and small ones, to see that it runs

Length and batch: every point has a fresh process; the best of several rounds counts, the peak is measured as in
`benchmarks.memory`. What is expected of a length are the matrix products that the network needs (`model/cost.py`:
linear in the length, plus the quadratic share of attention) and the memory that `maskery pretrain` plans with
(`train/memory.py`). What is expected of a batch, and of a corpus, is a fixed cost and one for each row or megabyte.

Corpus and ranks run the real commands (`maskery corpus build`, `maskery pretrain` under torch's launcher) and watch the
memory of all their processes together. The cores are shared out: one rank has all threads, two ranks half each.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import torch

from benchmarks.corpus import generated, read
from benchmarks.growth import against, exponent, line
from benchmarks.memory import MIB, parameters, step_memory
from benchmarks.peak import alone, environment, run_and_watch
from benchmarks.pretrain import RESULTS, VOCABULARY, Ours, full_batch, ours_recipe
from maskery.model.cost import forward_flops
from maskery.recipes.recipe import Recipe
from maskery.train import machine, memory

ASKED = 0.15
Part = dict[str, Any]


def long_recipe(size: str, length: int) -> Recipe:
    """One shape for every length."""
    return ours_recipe(size, 0.1, length).changed({"model.max_length": 1024})


def step_seconds(size: str, length: int, rows: int, rounds: int) -> float:
    """The best of several steps of our side. To be called in a process of its own."""
    machine.prepare()
    side, best = Ours(long_recipe(size, length)), float("inf")
    for number in range(rounds + 1):
        batch = full_batch(rows, length, number)
        began = time.perf_counter()
        side.step(batch)
        if number:  # the first is a warm-up
            best = min(best, time.perf_counter() - began)
    return best


def point(size: str, length: int, rows: int, rounds: int) -> Part:
    made = long_recipe(size, length)
    shape = made.model.shape(VOCABULARY)
    seconds = alone(step_seconds, size, length, rows, rounds)
    flops = forward_flops(shape, length, ASKED)
    return {
        "length": length,
        "rows": rows,
        "seconds": seconds,
        "tokens_per_second": rows * length / seconds,
        "training_flops": 3 * rows * length * flops,
        "quadratic_share": 1 - forward_flops(shape, 0, ASKED) / flops,
        "peak_bytes": alone(step_memory, "ours", made, rows, length, 2),
        "planned_bytes": memory.peak_bytes(shape, parameters(made), length, rows, ASKED),
    }


def by_length(options: argparse.Namespace) -> Part:
    """The same number of tokens a step in ever longer rows: what is left is what attention adds."""
    lengths = [64, 128, 256] if options.quick else [64, 128, 256, 512, 1024]
    tokens = 1024 if options.quick else 4096
    head("length", "rows", "tokens/s", "attention's share", "measured / expected", "peak MiB", "/ planned")
    points = []
    for length in lengths:
        made = point(options.size, length, tokens // length, options.rounds)
        points.append(made)
        made["of_expected"] = against(column(points, "seconds"), column(points, "training_flops"), 0)[-1]
        tell(length, made["rows"], f"{made['tokens_per_second']:,.0f}", f"{made['quadratic_share']:.0%}",
             f"{made['of_expected']:.2f}", f"{made['peak_bytes'] / MIB:,.0f}",
             f"{made['peak_bytes'] / made['planned_bytes']:.2f}")  # fmt: skip
    found = {"size": options.size, "tokens": tokens, "points": points}
    for name, key in (("exponent", "seconds"), ("expected_exponent", "training_flops")):
        found[name] = exponent(lengths, [each[key] * each["length"] for each in points])
    print(
        f"a row's cost grows with its length to the {found['exponent']:.2f}; expected {found['expected_exponent']:.2f}"
    )
    return found


def by_batch(options: argparse.Namespace) -> Part:
    """More rows of 128 in one forward pass: a fixed cost (the optimiser's) and one for each row."""
    rows = [1, 4, 16] if options.quick else [1, 2, 4, 8, 16, 32, 64]
    points = [point(options.size, 128, count, options.rounds) for count in rows]
    found = {"size": options.size, "length": 128, "points": points, **fitted(points, "seconds", rows)}
    head("rows", "tokens/s", "ms a step", "measured / line", "peak MiB", "/ planned")
    for made in points:
        tell(made["rows"], f"{made['tokens_per_second']:,.0f}", f"{1000 * made['seconds']:.0f}",
             f"{made['of_line']:.2f}", f"{made['peak_bytes'] / MIB:,.0f}",
             f"{made['peak_bytes'] / made['planned_bytes']:.2f}")  # fmt: skip
    print(f"a step takes {1000 * found['fixed']:.0f} ms and {1000 * found['each']:.1f} ms a row")
    return found


def by_corpus(options: argparse.Namespace) -> Part:
    """More text: the whole command, once with a tokenizer that is given and once training one on all of the text."""
    sizes = [1, 2, 4] if options.quick else [1, 2, 4, 8, 15, 30, 60]
    head("MB", "tokenizer", "seconds", "peak MiB")
    with tempfile.TemporaryDirectory() as name:
        folder, points = Path(name), []
        data = text_of(options.text, sizes[-1])
        for size in sizes:
            source = folder / f"{size}.txt"
            source.write_bytes(data[: data.rfind(b"\n", 0, int(size * 1e6)) + 1])
            for tokenizer in ("train", "given"):
                out = folder / f"{size}-{tokenizer}"
                given = "train" if tokenizer == "train" else str(folder / f"{sizes[0]}-train")
                points.append({"megabytes": size, "tokenizer": tokenizer, **built(source, out, given)})
                tell(size, tokenizer, f"{points[-1]['seconds']:.1f}", f"{(points[-1]['peak_bytes'] or 0) / MIB:,.0f}")
    found: Part = {"text": [path.name for path in options.text] or "generated", "points": points}
    for tokenizer in ("train", "given"):
        mine = [each for each in points if each["tokenizer"] == tokenizer]
        found[tokenizer] = fitted(mine, "seconds", column(mine, "megabytes"))
        fit = found[tokenizer]
        print(f"tokenizer {tokenizer}: {fit['fixed']:.1f} s and {fit['each']:.2f} s a megabyte; "
              f"measured / line {min(column(mine, 'of_line')):.2f} to {max(column(mine, 'of_line')):.2f}")  # fmt: skip
    return found


def text_of(files: Sequence[Path], megabytes: float) -> bytes:
    if not files:
        return generated(megabytes).encode()
    data = "\n\n".join(read(path, megabytes + 1) for path in files).encode()  # 1 MB more: it ends with a whole line
    if len(data) < megabytes * 1e6:
        raise SystemExit(f"the files hold {len(data) / 1e6:.1f} MB of text, {megabytes} MB are needed: give more files")
    return data


def built(source: Path, out: Path, tokenizer: str) -> Part:
    command = [sys.executable, "-m", "maskery", "corpus", "build", str(source), "--out", str(out)]
    command += ["--tokenizer", tokenizer] + (["--vocab", "8000"] if tokenizer == "train" else [])
    began = time.perf_counter()
    peak = run_and_watch(command, environment(cores()))
    seconds = time.perf_counter() - began
    counts = json.loads((out / "manifest.json").read_text(encoding="utf-8"))["counts"]
    return {"seconds": seconds, "peak_bytes": peak, "tokens": counts["tokens"]}


def by_ranks(options: argparse.Namespace) -> Part:
    """The same run with one rank on all cores and with two on half of them each."""
    steps = 6 if options.quick else 30
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "text.txt").write_bytes(text_of(options.text, 1)[:1_000_000].rpartition(b"\n")[0])
        built(folder / "text.txt", folder / "corpus", "train")
        points = [ranked(folder, options.size, count, steps) for count in (1, 2)]
    head("ranks", "threads each", "tokens/s", "loss at the end", "peak MiB of all")
    for each in points:
        tell(each["ranks"], each["threads"], f"{each['tokens_per_second']:,.0f}", f"{each['loss']:.5f}",
             f"{(each['peak_bytes'] or 0) / MIB:,.0f}")  # fmt: skip
    ratio = points[1]["tokens_per_second"] / points[0]["tokens_per_second"]
    print(f"two ranks have {ratio:.2f} of one rank's speed on the same {cores()} cores")
    return {"size": options.size, "steps": steps, "points": points, "ratio": ratio}


def ranked(folder: Path, size: str, ranks: int, steps: int) -> Part:
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks)] if ranks > 1 else []
    out, threads = folder / f"ranks-{ranks}", max(1, cores() // ranks)
    command = [sys.executable, *launcher, "-m", "maskery", "pretrain", "roberta", "--size", size]
    command += ["--corpus", str(folder / "corpus"), "--out", str(out), "--steps", str(steps), "--batch", "32"]
    command += ["--length", "128", "--set", "training.eval_every=0"]
    command += ["--set", "model.dropout=0.0", "--set", "model.attention_dropout=0.0"]
    peak = run_and_watch(command, environment(threads))
    lines = [json.loads(each) for each in (out / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    speeds = [each["tokens_per_second"] for each in lines if "tokens_per_second" in each]
    return {
        "ranks": ranks,
        "threads": threads,
        "tokens_per_second": median(speeds[len(speeds) // 3 :]),
        "loss": next(each["loss"] for each in reversed(lines) if "loss" in each),
        "peak_bytes": peak,
    }


def fitted(points: list[Part], key: str, x: Sequence[float]) -> Part:
    """A line through the points; each point is told how far it lies from it."""
    fixed, each = line(x, column(points, key))
    for made, place in zip(points, x, strict=True):
        made["of_line"] = made[key] / (fixed + each * place)
    return {"fixed": fixed, "each": each}


def column(points: list[Part], key: str) -> list[float]:
    return [each[key] for each in points]


def cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def head(*names: str) -> None:
    print()
    tell(*names)


def tell(*cells: object) -> None:
    print("  ".join(f"{cell!s:>12}" for cell in cells), flush=True)


PARTS: dict[str, Callable[[argparse.Namespace], Part]] = {
    "length": by_length,
    "batch": by_batch,
    "corpus": by_corpus,
    "ranks": by_ranks,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--size", default="small")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--text", type=Path, nargs="+", default=[], help="text files, .gz too; else text is generated")
    parser.add_argument("--quick", action="store_true", help="few points and small ones")
    parser.add_argument("--json", type=Path, default=RESULTS / "scaling.json")
    options = parser.parse_args()
    if unknown := [name for name in options.parts.split(",") if name not in PARTS]:
        parser.error(f"no part {', '.join(unknown)}; there are {', '.join(PARTS)}")
    if options.quick:
        options.size, options.rounds = "tiny", 2
    report = json.loads(options.json.read_text(encoding="utf-8")) if options.json.is_file() else {}
    options.json.parent.mkdir(exist_ok=True)
    for name in options.parts.split(","):
        report[name] = {"machine": machine.facts(torch.device("cpu"), 1, []), **PARTS[name](options)}
        options.json.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
