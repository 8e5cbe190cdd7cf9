"""`maskery embed`: the vectors of all texts of a file, into a file."""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from maskery.cli.settings import JsonOption, PickleOption
from maskery.errors import Stopped

if TYPE_CHECKING:
    from maskery.vectors.stream import Done, Opening, Wanted


def embed(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A model or run folder, or sentence-transformers'.")],
    file: Annotated[str, typer.Argument(metavar="FILE", help="A text a line or record; .gz, .zst; - for stdin.")],
    out: Annotated[Path, typer.Option("--out", metavar="V", help="V.npy or V.parquet, new.")],
    pool: Annotated[
        str | None, typer.Option("--pool", metavar="P", help="Instead of the folder's pooling, e.g. mean; A,B for two.")
    ] = None,
    length: Annotated[int | None, typer.Option("--length", help="Slots of a text at most, marks counted.")] = None,
    normalize: Annotated[bool, typer.Option("--normalize", help="Bring every vector to length 1.")] = False,
    dimensions: Annotated[int | None, typer.Option("--dimensions", help="Keep so many of the first.")] = None,
    precision: Annotated[str, typer.Option("--precision", help="float32, int8 or binary.")] = "float32",
    ranges: Annotated[
        Path | None, typer.Option("--ranges", metavar="F", help="Ranges of int8, as an earlier call wrote them.")
    ] = None,
    prompt: Annotated[str | None, typer.Option("--prompt", metavar="NAME", help="One of the folder's prompts.")] = None,
    after: Annotated[
        Path | None, typer.Option("--after", metavar="F", help="A fitted whitening, centring or flow to apply.")
    ] = None,
    texts: Annotated[bool, typer.Option("--texts", help="Keep the texts beside the vectors (parquet).")] = False,
    field: Annotated[str, typer.Option("--field", metavar="NAME", help="The field or column with the text.")] = "text",
    format: Annotated[
        str | None, typer.Option("--format", metavar="F", help="text, jsonl, csv, tsv or parquet.")
    ] = None,
    errors: Annotated[str, typer.Option("--errors", help="Bytes that are no UTF-8: strict or replace.")] = "strict",
    workers: Annotated[int, typer.Option("--workers", metavar="N", help="Processes that encode.")] = 1,
    arithmetic: Annotated[
        str,
        typer.Option("--arithmetic", help="What is multiplied in: float32, int8 (quicker, nearly the same) or plain."),
    ] = "float32",
    device: Annotated[str | None, typer.Option("--device", help="cpu, cuda; a GPU if there is one.")] = None,
    allow_pickle: PickleOption = False,
    as_json: JsonOption = False,
) -> None:
    """Write one vector a text, in their order, to a file; memory stays the same whatever the size."""
    from maskery.cli.output import emit_json, say
    from maskery.corpus.lines import check_errors
    from maskery.vectors import stream
    from maskery.vectors.arithmetic import check_arithmetic
    from maskery.vectors.precision import check_precision

    names = None if pool is None else tuple(name.strip() for name in pool.split(","))
    opening = stream.Opening(
        model, pool=names, length=length, device=device, after=None if after is None else str(after),
        allow_pickle=allow_pickle, arithmetic=check_arithmetic(arithmetic),
    )  # fmt: skip
    wanted = stream.Wanted(
        prompt=prompt, normalize=normalize, dimensions=dimensions, precision=check_precision(precision), ranges=ranges,
        with_texts=texts, field=field, format=format, errors=check_errors(errors),
    )  # fmt: skip
    begun = time.monotonic()
    done = _shown(opening, file, out, wanted, workers)
    for note in _notes(done, file):
        say(note)
    if as_json:
        emit_json(_plain(done, out, precision, time.monotonic() - begun))
    else:
        say(f"written: {out} ({done.texts:,} vectors of {done.dimensions} dimensions, {precision})")


def _shown(opening: Opening, file: str, out: Path, wanted: Wanted, workers: int) -> Done:
    from maskery.cli.output import progress, say
    from maskery.vectors import stream

    with _ended_by_sigterm(), progress("embedding") as shown:

        def update(done: int, total: int | None) -> None:
            shown(done, math.inf if total is None else total, "reading stdin" if total is None else "")

        return stream.embed(opening, file, out, wanted, workers=workers, say=say, update=update)


@contextmanager
def _ended_by_sigterm() -> Iterator[None]:
    """The signal ends the work as Ctrl-C does: what is half written is removed on the way out."""

    def end(number: int, _frame: object) -> None:
        raise Stopped("stopped by a signal; nothing is written", signal_number=number)

    if threading.current_thread() is not threading.main_thread():  # signals are heard there alone
        yield
        return
    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _notes(done: Done, file: str) -> list[str]:
    found = []
    if done.cut:
        found.append(f"{done.cut:,} of {done.texts:,} texts are longer than the model reads (--length) and were cut")
    if done.empty:
        found.append(f"{done.empty:,} of {done.texts:,} texts are empty: their vector is that of the marks alone")
    if done.replaced:
        found.append(f"{done.replaced:,} characters of {file} stand for bytes that are no UTF-8")
    if done.ranges is not None:
        found.append(f"written: {done.ranges}, the ranges of int8; --ranges takes them for vectors to compare with")
    return found


def _plain(done: Done, out: Path, precision: str, seconds: float) -> dict[str, Any]:
    told = {name: value for name, value in asdict(done).items() if name not in ("low", "high")}
    return {"out": str(out), **told, "precision": precision, "seconds": round(seconds, 3)}
