"""Encode chunks in several processes, results in the order of the chunks.

A worker is a plain subprocess with pipes, not a `multiprocessing` one: a script that builds a corpus then needs no
`__main__` guard, nothing is forked while threads hold locks, and the tokenizer's own threads are switched off by the
environment it starts in. Bytes go in and come out, each message behind its length: text and `Piece` for a corpus.
"""

from __future__ import annotations

import json
import os
import signal
import struct
import subprocess
import sys
import tempfile
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from queue import SimpleQueue
from typing import IO, Protocol, TypeVar

from maskery.corpus.encode import Pairs, Piece, encode
from maskery.errors import CorpusError
from maskery.text.dictionary import Dictionary
from maskery.text.tokenizer import Tokenizer
from maskery.text.words import segmenter

_START = "from maskery.corpus.workers import serve; serve()"
_ONE_THREAD = {
    "TOKENIZERS_PARALLELISM": "false",
    "RAYON_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}
_AHEAD = 2
"""Chunks under way for each worker: enough that none waits, few enough that memory stays small."""


class Chunk(Protocol):
    @property
    def text(self) -> str: ...


C = TypeVar("C", bound=Chunk)
T = TypeVar("T")


def encode_all(
    chunks: Iterable[C],
    tokenizer: Tokenizer,
    words: str,
    workers: int,
    dictionary: Dictionary | None = None,
    pairs: Pairs | None = None,
) -> Iterator[tuple[C, Piece]]:
    """Each chunk with its piece, in order; `workers` = 0 encodes in this process."""
    if workers == 0:
        find_words = segmenter(words, dictionary)
        for chunk in chunks:
            yield chunk, encode(chunk.text, tokenizer, find_words, pairs)
        return
    with pool(workers, _START, _greeting(tokenizer, words, dictionary, pairs)) as ask:
        for chunk, data in in_order(((chunk, chunk.text.encode()) for chunk in chunks), ask, workers):
            yield chunk, Piece.from_bytes(data)


class _Worker:
    def __init__(self, start: str, greeting: bytes, threads: int, talk: IO[bytes]) -> None:
        self._talk = talk
        paths = {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
        environment = {**os.environ, **_ONE_THREAD, "OMP_NUM_THREADS": str(threads), **paths}
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", start],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._talk,
            env=environment,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._to, self._from = self._process.stdin, self._process.stdout
        self._greeting: bytes | None = greeting

    def ask(self, message: bytes) -> bytes:
        try:
            if self._greeting is not None:
                send(self._to, self._greeting)
                self._greeting = None
            send(self._to, message)
            data = receive(self._from)
        except (OSError, ValueError):
            data = None
        if data is None:
            raise CorpusError(self._obituary(), repair="give fewer workers (--workers 1), or none (--workers 0)")
        return data

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        for pipe in (self._to, self._from):
            try:
                pipe.close()
            except OSError:  # a pipe whose other end is gone cannot be flushed
                continue

    def _obituary(self) -> str:
        code = self._process.wait()
        self._talk.seek(0)
        last = self._talk.read().decode(errors="replace").strip().rpartition("\n")[2]
        return f"a worker process ended with code {code}{': ' + last if last else ''}"


class Ask(Protocol):
    def __call__(self, message: bytes, /) -> Future[bytes]: ...


@contextmanager
def pool(workers: int, start: str, greeting: bytes, threads: int = 1) -> Iterator[Ask]:
    """Processes that run the code `start` with so many threads each; the first message of each is the greeting. What is
    asked is answered by whichever is idle."""
    idle: SimpleQueue[_Worker] = SimpleQueue()

    def run(message: bytes) -> bytes:
        worker = idle.get()
        try:
            return worker.ask(message)
        finally:
            idle.put(worker)

    with ExitStack() as stack:
        waiting = ThreadPoolExecutor(workers)
        stack.callback(waiting.shutdown, wait=True, cancel_futures=True)
        # Closed before the threads are joined: a thread that waits for a killed worker reads the end of its pipe.
        for _ in range(workers):
            worker = _Worker(start, greeting, threads, stack.enter_context(tempfile.TemporaryFile()))
            stack.callback(worker.close)
            idle.put(worker)
        yield lambda message: waiting.submit(run, message)


def in_order(messages: Iterable[tuple[T, bytes]], ask: Ask, workers: int) -> Iterator[tuple[T, bytes]]:
    """Each with its answer, in order; no more are under way than keep all workers busy."""
    under_way: deque[tuple[T, Future[bytes]]] = deque()
    for given, message in messages:
        under_way.append((given, ask(message)))
        if len(under_way) > _AHEAD * workers:
            done, future = under_way.popleft()
            yield done, future.result()
    while under_way:
        done, future = under_way.popleft()
        yield done, future.result()


def _greeting(tokenizer: Tokenizer, words: str, dictionary: Dictionary | None, pairs: Pairs | None) -> bytes:
    entries = None if dictionary is None else dictionary.entries
    target = None if pairs is None or pairs.target is None else pairs.target.json
    told = {"tokenizer": tokenizer.json, "words": words, "dictionary": entries}
    return json.dumps(told | {"pairs": pairs is not None, "target": target}).encode()


def serve() -> None:
    """The life of a worker: a greeting, then texts until the pipe closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    to, source = sys.stdout.buffer, sys.stdin.buffer
    greeting = receive(source)
    if greeting is None:
        return
    settings = json.loads(greeting)
    entries = settings["dictionary"]
    dictionary = None if entries is None else Dictionary(tuple((word, frequency) for word, frequency in entries))
    tokenizer, find_words = Tokenizer.from_json(settings["tokenizer"]), segmenter(settings["words"], dictionary)
    target = None if settings["target"] is None else Tokenizer.from_json(settings["target"])
    pairs = Pairs(target) if settings["pairs"] else None
    while (data := receive(source)) is not None:
        send(to, encode(data.decode(), tokenizer, find_words, pairs).to_bytes())


def send(pipe: IO[bytes], data: bytes) -> None:
    pipe.write(struct.pack("<q", len(data)))
    pipe.write(data)
    pipe.flush()


def receive(pipe: IO[bytes]) -> bytes | None:
    head = pipe.read(8)
    if len(head) < 8:
        return None
    (size,) = struct.unpack("<q", head)
    data = pipe.read(size)
    return data if len(data) == size else None
