"""What sentence vectors learn, before and after: SimCSE, supervised losses, whitening and flow, SimBERT, geometry.

    python -m benchmarks.vectors_learning --model FOLDER --minilm FOLDER --corpus-text FILE --data DIR --out DIR

--model is a Chinese model that nobody trained for vectors, --minilm all-MiniLM-L6-v2; --data holds the sets' files
anywhere in it (STS-B, ATEC, BQ, LCQMC, PAWSX, OCNLI; STSB in English). Parts:

    simcse       from sentences of the text; before and after, each plain and whitened on those sentences
    supervised   cosine and CoSENT on STS-B's training pairs, and CoSENT on top of SimCSE
    sbert        what the softmax over classes is told from, trained on OCNLI
    whitening    first-last averages after centring, whitening, flow; fitted on the asked sentences, or on others
    simbert      search and writing from one training
    geometry     mean cosine, alignment, uniformity

Each cell has a process of its own and a file in --out, so that a stopped benchmark goes on; --parts and --cells do a
part. Intervals (95 %) are a bootstrap over pairs. Written: benchmarks/results/vectors_learning.json.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from benchmarks import report, vectors_cells
from benchmarks.finetune_cells import ended, file_of, in_own_process, kept
from benchmarks.vectors_gather import gathered
from maskery import files
from maskery.errors import InputError
from maskery.train import machine
from maskery.vectors.encoder import say_on_stderr
from maskery.vectors.settings import POOLINGS

MODULE = "benchmarks.vectors_learning"
SETTINGS: dict[str, tuple[Any, str]] = {
    "sentences": (20000, "sentences that SimCSE learns from and whitening is fitted on, by key"),
    "most": (5000, "judged pairs of a set, by key; 0: all"),
    "most_train": (20000, "pairs of OCNLI, by key; 0: all"),
    "held_out": (1000, "pairs that SimBERT does not learn from, and has to find"),
    "length": (64, "slots of a text in training; SimBERT's have 32"),
    "batch": (64, "lines of SimCSE that are compared; supervised losses have 32 pairs"),
    "lr": (1e-4, "the highest rate"),
    "epochs": (3.0, "supervised training on STS-B"),
    "simbert_epochs": (3.0, "SimBERT's training"),
    "simbert_lr": (3e-4, "its highest rate"),
    "threads": (2, ""),
}
MINUTES = {"simcse": 16, "supervised": 15, "sbert": 16, "whitening": 3, "simbert": 8, "geometry": 1}
"""Of two cores, with the settings above, for 4 layers of width 256: reckoned from short runs."""


def path_of(out: Path, name: str) -> Path:
    return out / f"{name}.json"


def part_of(name: str) -> str:
    return name.partition("-")[0]


def cells_of(options: argparse.Namespace, parts: Sequence[str]) -> list[str]:
    return [name for part in parts for name in vectors_cells.names(part, options.seeds, options.sbert_seeds)]


def chosen(options: argparse.Namespace) -> list[str]:
    """The cells that were asked for, in the order of the parts."""
    every = cells_of(options, options.parts)
    wrong = [name for name in options.cells or () if name not in every]
    if wrong:
        cause = f"--cells {wrong[0]}: there is no such cell in the parts {', '.join(options.parts)}"
        raise InputError(cause, repair=f"one of {', '.join(every)}")
    return [name for name in every if not options.cells or name in options.cells]


def cell_of(options: argparse.Namespace, name: str) -> dict[str, Any] | None:
    return kept(path_of(options.out, name), vectors_cells.described(options, part_of(name)))


def measured(options: argparse.Namespace) -> dict[str, dict[str, Any]]:
    """Cells of all parts that are there; those of other settings are refused."""
    found = {name: cell_of(options, name) for name in cells_of(options, list(vectors_cells.PARTS))}
    return {name: cell for name, cell in found.items() if cell is not None}


def require(options: argparse.Namespace) -> None:
    """Nothing that is needed may turn out to be missing after half an hour."""
    for name in ("model", "minilm", "corpus_text"):
        if not getattr(options, name).exists():
            flag = f"--{name.replace('_', '-')}"
            raise InputError(f"{flag}: there is no {getattr(options, name)}", repair=f"{flag} with a path that exists")
    for file in dict.fromkeys(file for part in options.parts for file in vectors_cells.NEEDED[part]):
        file_of(options.data, file)


def told_plan(options: argparse.Namespace, every: Sequence[str], missing: Sequence[str]) -> None:
    say_on_stderr(
        f"{len(every)} cells, {len(missing)} of them to be measured in {options.out}; in minutes of two cores,"
    )
    say_on_stderr("for 4 layers of width 256 and the usual settings:")
    whole = 0.0
    for part in options.parts:
        own, left = ([name for name in those if part_of(name) == part] for those in (every, missing))
        minutes = MINUTES[part] * len(left) / len(cells_of(options, [part]))
        whole += minutes
        if left:
            say_on_stderr(f"  {part}: {len(left)} of {len(own)} cells, about {minutes:.0f}")
    say_on_stderr(f"  about {whole:.0f} in all")


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--model", type=Path, required=True, help="a Chinese model that was not trained for vectors")
    made.add_argument("--model-name", default="", help="as the tables call it; else the name of the folder")
    made.add_argument("--minilm", type=Path, required=True, help="the folder of all-MiniLM-L6-v2")
    made.add_argument("--corpus-text", type=Path, required=True, help="a text, packed or not, to take sentences from")
    made.add_argument("--data", type=Path, required=True, help="folder with the files of the sets")
    made.add_argument("--out", type=Path, required=True, help="folder of the cells")
    made.add_argument("--parts", nargs="+", choices=list(vectors_cells.PARTS), default=list(vectors_cells.PARTS))
    made.add_argument("--cells", nargs="+", metavar="CELL", help="only these, such as simcse-0 or sbert-uv-0")
    made.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2], help="of simcse, supervised and geometry")
    made.add_argument("--sbert-seeds", nargs="+", type=int, default=[0])
    made.add_argument("--pool", choices=POOLINGS, default="mean", help="what is pooled in training and after it")
    made.add_argument("--cell", help=argparse.SUPPRESS)
    made.add_argument("--json", type=Path, default=report.RESULTS / "vectors_learning.json")
    for name, (value, about) in SETTINGS.items():
        made.add_argument(f"--{name.replace('_', '-')}", type=type(value), default=value, help=f"{about} ({value})")
    return made


def measure_cell(options: argparse.Namespace, name: str) -> None:
    """In the cell's own process."""
    torch.set_num_threads(options.threads)
    files.write_json(path_of(options.out, name), vectors_cells.measure(options, name))


def run(options: argparse.Namespace, given: Sequence[str]) -> None:
    if options.cell:
        measure_cell(options, options.cell)
        return
    require(options)
    options.out.mkdir(parents=True, exist_ok=True)
    every, known = chosen(options), measured(options)
    missing = [name for name in every if name not in known]
    told_plan(options, every, missing)
    for number, name in enumerate(missing, 1):
        say_on_stderr(f"{number} of {len(missing)}: {name}")
        in_own_process(MODULE, [*given, "--cell", name], options.threads)
        seconds = (cell_of(options, name) or {}).get("seconds", 0.0)
        say_on_stderr(f"{name}: {seconds:,.0f} s")
    write(options)


def write(options: argparse.Namespace) -> None:
    """All that was measured, of whatever parts, as one file."""
    parts, found = list(vectors_cells.PARTS), measured(options)
    results = gathered(found)
    settings: dict[str, Any] = {"pool": options.pool, "seeds": options.seeds, "sbert_seeds": options.sbert_seeds}
    for part in parts:
        settings |= vectors_cells.described(options, part)
    seconds = {part: sum(cell["seconds"] for name, cell in found.items() if part_of(name) == part) for part in parts}
    head = {"machine": machine.facts(torch.device("cpu"), 1, []), "settings": settings, "seconds": seconds}
    files.write_json(options.json, head | results)
    say_on_stderr(f"{options.json}: {', '.join(results) or 'no part'} of {', '.join(parts)}")
    say_on_stderr("python -m benchmarks.report puts it into the pages")


def main(arguments: list[str] | None = None) -> int:
    given = sys.argv[1:] if arguments is None else arguments
    return ended(lambda options: run(options, given), parser().parse_args(given))


if __name__ == "__main__":
    raise SystemExit(main())
