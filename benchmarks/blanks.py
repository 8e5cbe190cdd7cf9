"""What a denoiser writes where text is missing: rows of the part set aside with blanks as in training, their sentences
in order, and written again.

    python -m benchmarks.blanks --run RUN --corpus DIR [--rows 200] [--length 40]

Likeness is the share of characters that the written text has in common with the original, in order (2 x common / both
lengths); beside it that of the spoilt text without its masks, which is what copying gives. The first rows are shown as
they came out. Written: benchmarks/results/blanks.json.
"""

from __future__ import annotations

import argparse
import sys
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import report
from maskery import files
from maskery.checkpoint.load import load
from maskery.corpus.store import Corpus
from maskery.errors import MaskeryError
from maskery.feed import Feed
from maskery.inspection.bootstrap import interval, resampled
from maskery.text.tokenizer import Tokenizer
from maskery.train import machine
from maskery.train.folder import RunFolder
from maskery.writing.generate import generate

SHOWN = 8


def texts(tokenizer: Tokenizer, ids: list[int]) -> tuple[str, str]:
    """A row as text, with its masks and without them; the frame is left out."""
    specials = tokenizer.specials
    inner = [each for each in ids if each not in (specials.cls, specials.sep, specials.pad)]
    bare = [each for each in inner if each != specials.mask]
    return tokenizer.decode(inner, specials=True), tokenizer.decode(bare)


def likeness(one: str, other: str) -> float:
    return SequenceMatcher(None, one, other, autojunk=False).ratio()


def measure(run: Path, corpus: Corpus, many: int, length: int) -> dict[str, Any]:
    blanks = {"training.length": length, "training.batch": many, "corruption.order.sentences": False}
    recipe = RunFolder(run).recipe.changed(blanks)
    feed, model = Feed(recipe, corpus, 0, "heldout"), load(run)
    phase = feed.phases[0]
    batch = feed.make(0, phase, *feed.first(phase, many))
    wanted, rows = batch.decoder, []
    assert wanted is not None, "a recipe with a decoder"
    for row in range(batch.size):
        read, copied = texts(corpus.tokenizer, batch.ids[row, : batch.length[row]].tolist())
        _, original = texts(corpus.tokenizer, wanted.ids[row, : wanted.length[row]].tolist())
        rows.append({"read": read, "original": original, "copied": likeness(copied, original)})
    written = generate(model, [each["read"] for each in rows], how="beam", beams=4, new=length, batch=32)
    for each, said in zip(rows, written, strict=True):
        each |= {"written": said.text, "likeness": likeness(said.text, each["original"])}
    return {
        "rows": len(rows),
        "length": length,
        "written": _mean([each["likeness"] for each in rows]),
        "copied": _mean([each["copied"] for each in rows]),
        "shown": [{key: each[key] for key in ("read", "original", "written")} for each in rows[:SHOWN]],
    }


def _mean(values: list[float]) -> dict[str, Any]:
    found = np.array(values)
    return {"mean": float(found.mean()), "interval": interval(resampled(found, np.ones_like(found)))}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=Path, required=True)
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument("--rows", type=int, default=200)
    parser.add_argument("--length", type=int, default=40)
    parser.add_argument("--json", type=Path, default=report.RESULTS / "blanks.json")
    options = parser.parse_args()
    machine.prepare()
    try:
        found = measure(options.run, Corpus.open(options.corpus), options.rows, options.length)
    except MaskeryError as error:
        print(error.text(), file=sys.stderr)
        return error.exit_code
    files.write_json(options.json, found)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
