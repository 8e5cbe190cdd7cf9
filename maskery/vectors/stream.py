"""A file of texts to a file of vectors, in constant memory and with as many processes as are wanted.

    done = embed(Opening("folder"), "texts.jsonl.gz", "V.npy", Wanted(normalize=True), workers=2)

Texts are taken in chunks of 4,096 (`texts.chunks`); inside of a chunk those of like lengths are read together. Chunks
are the same however many processes work on them, and so are the vectors, bit for bit. int8 needs the ranges of all
vectors before the first byte: without those of an earlier file, float32 goes to the disk first and is turned then.
"""

from __future__ import annotations

import json
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from maskery import files
from maskery.corpus.lines import Errors, Tally
from maskery.corpus.sources import Source
from maskery.corpus.workers import in_order, pool, receive, send
from maskery.errors import InputError, MaskeryError
from maskery.vectors.after.base import After
from maskery.vectors.arithmetic import Arithmetic
from maskery.vectors.encoder import Encoder, Part, shortened
from maskery.vectors.files import check_out, new_vectors, read_ranges, write_ranges
from maskery.vectors.opening import Say
from maskery.vectors.precision import Precision, check_precision, quantised
from maskery.vectors.texts import Chunk, chunks, source_of

Update = Callable[[int, int | None], None]
"""Bytes of the file that are done, and all; None while stdin comes in."""
_START = "from maskery.vectors.stream import serve; serve()"


@dataclass(frozen=True)
class Opening:
    """How an encoder is opened: here, and in every process that helps."""

    path: str
    pool: tuple[str, ...] | None = None
    length: int | None = None
    device: str | None = None
    after: str | None = None
    """A file of a fitted post-processing."""
    allow_pickle: bool = False
    arithmetic: Arithmetic | None = None

    def open(self, say: Say) -> Encoder:
        encoder = Encoder(
            self.path, pool=self.pool, length=self.length, device=self.device, arithmetic=self.arithmetic,
            allow_pickle=self.allow_pickle, say=say,
        )  # fmt: skip
        return encoder if self.after is None else encoder.with_after(After.load(self.after))


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What is read, and what is made of it."""

    prompt: str | None = None
    normalize: bool = False
    dimensions: int | None = None
    precision: Precision = "float32"
    ranges: Path | None = None
    """Of int8: those of an earlier file."""
    with_texts: bool = False
    field: str = "text"
    format: str | None = None
    errors: Errors = "strict"


@dataclass
class Done:
    """What came of it."""

    texts: int = 0
    dimensions: int = 0
    cut: int = 0
    empty: int = 0
    replaced: int = 0
    """Characters put in the place of bytes that are no UTF-8."""
    ranges: str | None = None
    """The file with the ranges of int8."""
    low: NDArray[np.float32] | None = field(default=None, repr=False)
    high: NDArray[np.float32] | None = field(default=None, repr=False)


class _Ready(NamedTuple):
    chunk: Chunk
    part: Part


def embed(
    opening: Opening,
    file: str | Path,
    out: str | Path,
    wanted: Wanted = Wanted(),  # noqa: B008 (frozen)
    *,
    workers: int = 1,
    say: Say = lambda text: None,
    update: Update = lambda done, total: None,
) -> Done:
    """Write the vectors of all texts, in their order. A file that is there is refused, a failure leaves none."""
    target = Path(out)
    check_precision(wanted.precision)
    check_out(target, wanted.with_texts)
    new_ranges = target.with_name(f"{target.stem}.ranges.npy")
    if wanted.precision == "int8" and wanted.ranges is None:
        files.require_new_file(new_ranges)
    elif wanted.ranges is not None and wanted.precision != "int8":
        raise InputError(f"ranges are for int8, not for {wanted.precision}", repair="--precision int8")
    if workers < 1:
        raise InputError(f"{workers} workers", repair="--workers 1: this process alone")
    with ExitStack() as stack:
        source = stack.enter_context(source_of(file, wanted.format, wanted.field, update))
        encoder = opening.open(say)
        encoder.require_dimensions(wanted.dimensions)
        encoder.prompt_text(wanted.prompt)
        if workers > 1 and encoder.made.device.type != "cpu":
            raise InputError(
                f"the model is on {encoder.made.device}, which one process keeps busy", repair="--workers 1"
            )
        done = Done(dimensions=wanted.dimensions or encoder.dimensions)
        run = _Run(encoder, opening, source, wanted, workers, done, update)
        run.write(target, new_ranges)
    return done


@dataclass
class _Run:
    encoder: Encoder
    opening: Opening
    source: Source
    wanted: Wanted
    workers: int
    done: Done
    update: Update

    def write(self, target: Path, new_ranges: Path) -> None:
        if self.wanted.precision == "int8" and self.wanted.ranges is None:
            self._write_by_own_ranges(target, new_ranges)
            return
        ranges = None if self.wanted.ranges is None else read_ranges(self.wanted.ranges, self.done.dimensions)
        with self._out(target) as put:
            for chunk, vectors in self._vectors():
                put(quantised(vectors, self.wanted.precision, ranges), chunk.texts)

    def _write_by_own_ranges(self, target: Path, new_ranges: Path) -> None:
        """float32 into a file without a name, then bytes of it, chunk by chunk as it was made."""
        with tempfile.TemporaryFile(dir=target.parent) as plain:
            with files.writing(target):
                for _, vectors in self._vectors():
                    plain.write(vectors.data)
            low, high = self.done.low, self.done.high
            assert low is not None
            assert high is not None
            ranges = np.stack([low, high])
            plain.seek(0)
            with self._out(target) as put:
                for chunk in chunks(self.source, self.wanted.errors, Tally()):
                    size = len(chunk.texts) * self.done.dimensions * 4
                    vectors = np.frombuffer(plain.read(size), dtype=np.float32).reshape(len(chunk.texts), -1)
                    put(quantised(vectors, "int8", ranges), chunk.texts)
                write_ranges(new_ranges, ranges)
        self.done.ranges = str(new_ranges)

    def _out(self, target: Path) -> Any:
        many, precision = self.done.dimensions, self.wanted.precision
        config = self.encoder.config
        facts = {"maskery": json.dumps({"dimensions": many, "precision": precision, "vectors": config.plain()})}
        width = -(-many // 8) if precision == "binary" else many
        return new_vectors(target, width, precision, self.wanted.with_texts, facts)

    def _vectors(self) -> Iterator[tuple[Chunk, NDArray[np.float32]]]:
        """Each chunk with its float32 vectors; what is counted is counted here."""
        tally, done = Tally(), self.done
        parts = _here if self.workers == 1 else _there
        for chunk, part in parts(self, chunks(self.source, self.wanted.errors, tally)):
            vectors = shortened(part.vectors, self.wanted.dimensions, self.wanted.normalize)
            done.texts += len(vectors)
            done.cut += part.cut
            done.empty += part.empty
            low, high = vectors.min(axis=0), vectors.max(axis=0)
            done.low = low if done.low is None else np.minimum(done.low, low)
            done.high = high if done.high is None else np.maximum(done.high, high)
            yield chunk, vectors
            self.update(chunk.bytes_done, self.source.size)
        done.replaced = tally.replaced
        if not done.texts:
            raise InputError("there is no text", where=self.source.name, repair="give a file with texts")


def _here(run: _Run, given: Iterator[Chunk]) -> Iterator[_Ready]:
    before, size = 0, run.source.size
    for chunk in given:
        share, made = (chunk.bytes_done - before) / len(chunk.texts), 0

        def told(many: int, begin: int = before, share: float = share) -> None:
            nonlocal made
            made += many
            run.update(int(begin + share * made), size)

        with _placed(run.source, chunk):
            part = run.encoder.part(chunk.texts, run.wanted.prompt, told)
        yield _Ready(chunk, part)
        before = chunk.bytes_done


def _there(run: _Run, given: Iterator[Chunk]) -> Iterator[_Ready]:
    """In other processes, each with its share of the threads."""
    greeting = json.dumps({"opening": asdict(run.opening), "prompt": run.wanted.prompt}).encode()
    threads = max(1, torch.get_num_threads() // run.workers)
    messages = ((chunk, json.dumps(chunk.texts).encode()) for chunk in given)
    with pool(run.workers, _START, greeting, threads) as ask:
        for chunk, answer in in_order(messages, ask, run.workers):
            head, _, body = answer.partition(b"\n")
            told = json.loads(head)
            with _placed(run.source, chunk):
                if "cause" in told:
                    raise InputError(told["cause"], where=told["where"], repair=told["repair"])
            vectors = np.frombuffer(body, dtype=np.float32).reshape(len(chunk.texts), -1)
            yield _Ready(chunk, Part(vectors, told["cut"], told["empty"]))


@contextmanager
def _placed(source: Source, chunk: Chunk) -> Iterator[None]:
    """An error of the encoder, which counts the texts it was given, with the file and the place of the chunk in it."""
    try:
        yield
    except MaskeryError as error:
        where = f"{source.name}, counting from text {chunk.first} on (of 0, 1, ...)"
        raise InputError(error.cause, where=error.where or where, repair=error.repair) from None


def serve() -> None:
    """The life of a process that helps: how to open the encoder, then chunks until the pipe closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    to, given = sys.stdout.buffer, sys.stdin.buffer
    greeting = receive(given)
    if greeting is None:
        return
    settings = json.loads(greeting)
    encoder = Opening(**settings["opening"]).open(lambda text: None)
    while (data := receive(given)) is not None:
        _answer(encoder, json.loads(data), settings["prompt"], to)


def _answer(encoder: Encoder, texts: list[str], prompt: str | None, to: IO[bytes]) -> None:
    try:
        part = encoder.part(texts, prompt)
    except MaskeryError as error:
        send(to, json.dumps({"cause": error.cause, "where": error.where, "repair": error.repair}).encode() + b"\n")
        return
    head = json.dumps({"cut": part.cut, "empty": part.empty}).encode() + b"\n"
    send(to, head + part.vectors.tobytes())
