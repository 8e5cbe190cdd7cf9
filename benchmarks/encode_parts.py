"""What `benchmarks.encode` measures: sides, texts, and one function for each part.

A side makes vectors of texts, from strings to float32 arrays, tokenising included. All sides stand in one process and
take turns; what needs a fresh process (the first vector, memory) has one.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from benchmarks import peak
from benchmarks.finetune_cells import SOURCE, by_key
from benchmarks.growth import against, exponent
from benchmarks.vectors_data import read_pairs, texts_of
from maskery.compress.ways import WAYS, encode_of
from maskery.errors import InputError, MaskeryError
from maskery.vectors.encoder import Encoder, say_on_stderr
from maskery.vectors.judge.sts import similarity_tally
from maskery.vectors.similarity import unit
from maskery.vectors.stream import Opening, embed

Vectors = NDArray[np.float32]
Encode = Callable[[Sequence[str]], Vectors]
FILES = ("STSB.train.tsv", "STSB.dev.tsv", "SICK.train.tsv")
JUDGED = "STSB.dev.tsv"
THEIRS = "sentence-transformers"
BATCHES = (32, 64, 128)
"""Of the other side; the first is its default, and its side has no number behind the name."""
FIRST = {
    THEIRS: "import sys; from sentence_transformers import SentenceTransformer as Model\n"
    "print(len(Model(sys.argv[1], device='cpu').encode('A first text.', show_progress_bar=False)), flush=True)",
    **{
        name: "import sys, maskery\n"
        f"encoder = maskery.Encoder(sys.argv[1], device='cpu', arithmetic='{name}')\n"
        "print(len(encoder.encode('A first text.')), flush=True)"
        for name in ("float32", "int8")
    },
}
"""All that a fresh process does, by side; it is called with the model's folder."""


@dataclass
class Sides:
    """Both sides on one model."""

    encodes: dict[str, Encode]
    reasons: dict[str, str]
    """Why a way of ours cannot be had."""
    our_rows: Callable[[Sequence[str]], tuple[list[list[int]], int]]
    """Ids of each text, and how many texts were cut."""
    their_rows: Callable[[Sequence[str]], list[list[int]]]


def their_name(batch: int) -> str:
    return THEIRS if batch == BATCHES[0] else f"{THEIRS}, {batch}"


def sides_of(model: Path) -> Sides:
    from sentence_transformers import SentenceTransformer

    theirs = SentenceTransformer(str(model), device="cpu")
    made = Encoder(model, device="cpu", say=say_on_stderr).made

    def encode_by(batch: int) -> Encode:
        return lambda texts: np.asarray(theirs.encode(list(texts), batch_size=batch, show_progress_bar=False))

    def our_rows(texts: Sequence[str]) -> tuple[list[list[int]], int]:
        rows = made.rows(texts)
        return [part.tolist() for part in np.split(rows.ids, rows.start[1:-1])], rows.cut

    def their_rows(texts: Sequence[str]) -> list[list[int]]:
        found: list[list[int]] = theirs.tokenizer(list(texts), truncation=True, max_length=theirs.max_seq_length)[
            "input_ids"
        ]
        return found

    encodes, reasons = {their_name(batch): encode_by(batch) for batch in BATCHES}, {}
    for name in WAYS:
        try:
            encodes[name] = encode_of(name, made)
        except MaskeryError as error:
            reasons[name] = error.cause
    return Sides(encodes, reasons, our_rows, their_rows)


def texts_by_key(data: Path, many: int) -> list[str]:
    """Distinct texts of all files, those with the smallest keys, in the order of the files."""
    every = texts_of(read_pairs(data, name) for name in FILES)
    if len(every) < many:
        say_on_stderr(f"the files hold {len(every):,} distinct texts, not {many:,}: all of them are taken")
    return [every[number] for number in by_key("encode", len(every), many).tolist()]


# -- speed


def speed(sides: Sides, texts: Sequence[str], rounds: int) -> dict[str, Any]:
    """Every side on the same texts: seconds of each round, and how near the vectors are to the other side's."""
    tokens, cut = _same_tokens(sides, texts)
    right = unit(sides.encodes[THEIRS](texts))
    cosines = {name: (unit(encode(texts)) * right).sum(1) for name, encode in sides.encodes.items()}
    seconds: dict[str, list[float]] = {name: [] for name in sides.encodes}
    for number in range(rounds):
        for name, encode in sides.encodes.items():
            begun = time.perf_counter()
            encode(texts)
            seconds[name].append(time.perf_counter() - begun)
        say_on_stderr(f"speed: round {number + 1} of {rounds}")
    best = {name: min(each) for name, each in seconds.items()}
    batch = min(BATCHES, key=lambda batch: best[their_name(batch)])
    found = {
        name: {
            "seconds": seconds[name],
            "best": best[name],
            "texts_per_second": len(texts) / best[name],
            "ratio": best[THEIRS] / best[name],
            "ratio_to_best": best[their_name(batch)] / best[name],
            "cosine": float(cosines[name].mean()),
            "least": float(cosines[name].min()),
        }
        for name in sides.encodes
    }
    facts = {"texts": len(texts), "tokens": tokens, "same_tokens": True, "cut": cut, "best_batch": batch}
    return facts | {"sides": found, "reasons": sides.reasons}


def _same_tokens(sides: Sides, texts: Sequence[str]) -> tuple[int, int]:
    """How many tokens both sides read, and how many texts are cut; a comparison of different rows is refused."""
    (ours, cut), theirs = sides.our_rows(texts), sides.their_rows(texts)
    for text, one, other in zip(texts, ours, theirs, strict=True):
        if one != other:
            cause = f"{text[:60]!r} has {len(one)} tokens here and {len(other)} there, or others"
            raise InputError(cause, repair="a model that both sides tokenise alike")
    return sum(map(len, ours)), cut


# -- quality


class _Fixed:
    """What the judge asks of an encoder."""

    def __init__(self, encode: Encode) -> None:
        self.encode = encode


def quality(sides: Sides, data: Path) -> dict[str, Any]:
    """Spearman's correlation of cosines with people's scores, by side, and the difference to the other side."""
    pairs = read_pairs(data, JUDGED)
    found = {name: _spearman(encode, pairs) for name, encode in sides.encodes.items()}
    return {
        "set": JUDGED,
        "n": len(pairs),
        "sides": {name: {"spearman": each, "points": 100 * (each - found[THEIRS])} for name, each in found.items()},
    }


def _spearman(encode: Encode, pairs: Any) -> float:
    tally = similarity_tally(_Fixed(encode), pairs, names=("cosine",))
    return float(tally.values(np.ones((1, tally.size)))["spearman"][0])


# -- the first vector of a fresh process


def first(model: Path, rounds: int, threads: int) -> dict[str, Any]:
    """Seconds from the start of Python to the first vector; the best of the rounds counts."""
    seconds: dict[str, list[float]] = {name: [] for name in FIRST}
    for number in range(rounds):
        for name, code in FIRST.items():
            seconds[name].append(until_first_line(code, str(model), threads))
        say_on_stderr(f"first vector: round {number + 1} of {rounds}")
    return {"sides": {name: {"seconds": each, "best": min(each)} for name, each in seconds.items()}}


def until_first_line(code: str, argument: str, threads: int) -> float:
    """Seconds until a fresh Python that runs the code has said its first line."""
    begun = time.perf_counter()
    with subprocess.Popen(
        [sys.executable, "-c", code, argument],
        env=_environment(threads),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        seconds = time.perf_counter() - begun
        _, said = process.communicate()
    if not line or process.returncode:
        raise InputError(f"a fresh process failed: {said.decode(errors='replace')[-300:]}", repair="see its message")
    return seconds


def _environment(threads: int) -> dict[str, str]:
    path = os.pathsep.join([str(SOURCE), *filter(None, [os.environ.get("PYTHONPATH")])])
    return peak.environment(threads) | {"HF_HUB_OFFLINE": "1", "PYTHONPATH": path}


# -- growth


def growth(model: Path, texts: Sequence[str], sizes: Sequence[int], threads: int) -> dict[str, Any]:
    """Files of more and more texts, each embedded by a process of its own."""
    points = []
    for size in sizes:
        seconds, highest = peak.alone(embedded, str(model), list(texts), size, threads)
        points.append({"texts": size, "seconds": seconds, "peak_bytes": highest})
        say_on_stderr(f"growth: {size:,} texts, {seconds:.1f} s")
    took = [point["seconds"] for point in points]
    for point, share in zip(points, against(took, sizes, 0), strict=True):
        point["of_first"] = share
        point["peak_of_first"] = point["peak_bytes"] / points[0]["peak_bytes"]
    return {"points": points, "exponent": exponent(sizes, took) if len(points) > 1 else None}


def embedded(model: str, texts: Sequence[str], size: int, threads: int) -> tuple[float, int]:
    """Seconds to embed a file of so many texts (given ones, again and again), and the peak of the process."""
    torch.set_num_threads(threads)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        few, all_of_them = place / "few.txt", place / "texts.txt"
        _write(few, texts, min(size, 64))
        _write(all_of_them, texts, size)
        embed(Opening(model, device="cpu"), few, place / "few.npy")  # what is loaded on first use is loaded here
        begun = time.perf_counter()
        done = embed(Opening(model, device="cpu"), all_of_them, place / "texts.npy")
        seconds = time.perf_counter() - begun
    assert done.texts == size
    return seconds, peak.highest()


def _write(path: Path, texts: Sequence[str], size: int) -> None:
    with path.open("w", encoding="utf-8") as out:
        for number in range(size):
            out.write(" ".join(texts[number % len(texts)].split()) + "\n")


PARTS = ("speed", "quality", "first", "growth")


def measured(
    part: str, model: Path, data: Path, asked: Mapping[str, Any], sides: Callable[[], Sides]
) -> dict[str, Any]:
    """One part; `sides` opens both when they are needed."""
    if part == "quality":
        return quality(sides(), data)
    if part == "first":
        return first(model, asked["rounds"], asked["threads"])
    texts = texts_by_key(data, asked["texts"])
    if part == "speed":
        return speed(sides(), texts, asked["rounds"])
    return growth(model, texts, asked["sizes"], asked["threads"])
