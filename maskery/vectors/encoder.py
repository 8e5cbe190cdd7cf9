"""`maskery.Encoder`: texts in, vectors out.

    encoder = maskery.Encoder("folder")
    vectors = encoder.encode(["a text", "another"])        # float32 (n, D)
    encoder.similarity(vectors)                            # (n, n)
    encoder.fit_after("whitening", texts, dimensions=256).save("whitened")

How slots are pooled is part of the folder (modules.json, as sentence-transformers has it). A folder that does not say
it is pooled by the mean, and that is told; saving writes it down, so that nobody can pool otherwise later.

An empty text is a text: its vector is that of its marks alone ([CLS] [SEP]), and how many there are is told.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from inspect import signature
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from maskery import arguments
from maskery.arguments import checked
from maskery.checkpoint.model import Model
from maskery.errors import ArgumentError, InputError
from maskery.model.products import Products
from maskery.train import machine
from maskery.train.machine import Heap
from maskery.train.memory import reading_bytes
from maskery.vectors.after.base import AFTER, After
from maskery.vectors.arithmetic import TOKENS, Arithmetic, check_arithmetic, products_in
from maskery.vectors.folder import write_encoder
from maskery.vectors.model import VectorModel
from maskery.vectors.opening import Say, opened
from maskery.vectors.precision import Precision, check_precision, from_bytes, quantised, ranges_of, signs
from maskery.vectors.rows import TextRows, batches, inputs_of_rows, require_texts
from maskery.vectors.settings import VectorsConfig
from maskery.vectors.similarity import similarity, unit
from maskery.vectors.steps import Normalize, step_of

ALWAYS = ("query", "document")
"""Names that every folder has for sentence-transformers; their text may be empty."""
BATCHES = 2
"""What so many would take may lie in pieces before all of it is given back: to take it anew costs time."""
_ROWS = "an array of vectors, one a row"
Told = Callable[[int], None]
"""How many texts have become vectors since it was last called."""


class Part(NamedTuple):
    """Vectors of some texts, and what is to be told of them."""

    vectors: NDArray[np.float32]
    cut: int
    empty: int


def say_on_stderr(text: str) -> None:
    print(text, file=sys.stderr)


class Encoder:
    """Texts in, vectors out; opens encoders, also those of sentence-transformers, and every model folder or run.

    encoder = maskery.Encoder("my-encoder")
    vectors = encoder.encode(["a text", "another"])       # float32 (n, D)
    encoder.similarity(vectors)                           # (n, n)
    """

    @checked
    def __init__(
        self,
        path: str | os.PathLike[str] | Model | VectorModel,
        *,
        pool: str | Sequence[str] | None = None,
        length: int | None = None,
        device: str | torch.device | None = None,
        arithmetic: Arithmetic | None = None,
        allow_pickle: bool = False,
        say: Say = say_on_stderr,
    ) -> None:
        """`pool` and `length` instead of what the folder says; `say` is told what is cut or decided. The device is a
        GPU where there is one, unless it is said. `arithmetic` is float32 for a folder, and plain for a model that is
        given, since that may be in training."""
        self.say = say
        self.arithmetic = check_arithmetic(arithmetic or ("plain" if isinstance(path, nn.Module) else "float32"))
        self.made = opened(path, pool, length, device, allow_pickle, say)
        self.ranges: NDArray[np.float32] | None = None
        """(2,D) the ranges of int8: taken from the first vectors that are asked for in it, or set by you."""

    def __repr__(self) -> str:
        pool, slots, family = " and ".join(self.config.pool), self.config.length, self.made.model.family
        return f"Encoder({family}, {self.dimensions} dimensions, pool {pool}, {slots} slots)"

    @cached_property
    def products(self) -> Products | None:
        """What the layers multiply with, made when the first text is read; None: with their own weights."""
        return products_in(self.made.model.network, self.arithmetic)

    @cached_property
    def _heap(self) -> Heap:
        """What a batch has freed is kept for the next, which saves a tenth of the time; and memory does not grow with
        the number of texts all the same."""
        machine.keep_memory()
        tokens = TOKENS[self.arithmetic]
        length = min(self.config.length, tokens)
        return Heap(BATCHES * reading_bytes(self.made.model.network.shape, 0, length, -(-tokens // length)))

    @property
    def config(self) -> VectorsConfig:
        """How vectors are made: poolings, the longest row, prompts."""
        return self.made.config

    @property
    def dimensions(self) -> int:
        """D, the numbers in a vector."""
        return self.made.dimensions

    @checked
    def encode(
        self,
        texts: str | Iterable[str],
        *,
        prompt: str | None = None,
        normalize: bool = False,
        dimensions: int | None = None,
        precision: Precision = "float32",
        progress: bool | Told = False,
    ) -> NDArray[Any]:
        """(n, D) vectors of texts, or (D,) of one.

            encoder.encode(frame["text"])

        `texts`: one text, a list, an array, a generator, or a column of a table (a Series, one of a
        `datasets.Dataset`); of a whole table or of dicts the column `text`, or the only one. `prompt` is a name of the
        folder's prompts; `dimensions` keeps the first ones only; `normalize` brings vectors to length 1 after that.
        `progress` shows a bar, or is called with the number of texts that were encoded since the last call."""
        given = [texts] if isinstance(texts, str) else require_texts(texts)
        check_precision(precision)
        self.require_dimensions(dimensions)
        with _told(progress, len(given)) as told:
            part = self.part(given, prompt, told)
        for note in notes_of(len(given), part.cut, part.empty, self.config.length):
            self.say(note)
        vectors = shortened(part.vectors, dimensions, normalize)
        found = quantised(vectors, precision, self._ranges(vectors) if precision == "int8" else None)
        return np.asarray(found[0]) if isinstance(texts, str) else found

    @checked
    def encode_query(
        self,
        texts: str | Iterable[str],
        *,
        normalize: bool = False,
        dimensions: int | None = None,
        precision: Precision = "float32",
        progress: bool | Told = False,
    ) -> NDArray[Any]:
        """With the folder's prompt for queries, where it has one."""
        return self.encode(
            texts, prompt=self._first_prompt("query"), normalize=normalize, dimensions=dimensions, precision=precision,
            progress=progress,
        )  # fmt: skip

    @checked
    def encode_document(
        self,
        texts: str | Iterable[str],
        *,
        normalize: bool = False,
        dimensions: int | None = None,
        precision: Precision = "float32",
        progress: bool | Told = False,
    ) -> NDArray[Any]:
        """With the folder's prompt for documents, where it has one."""
        return self.encode(
            texts, prompt=self._first_prompt("document", "passage", "corpus"), normalize=normalize,
            dimensions=dimensions, precision=precision, progress=progress,
        )  # fmt: skip

    def similarity(self, one: NDArray[Any], other: NDArray[Any] | None = None) -> NDArray[np.float32]:
        """(n, m) of all pairs, by the measure of the folder. Bytes of int8 are turned back by `ranges`; of binary ones
        each bit counts as 1 or -1."""
        rows = arguments.array("one", one, _ROWS)
        others = rows if other is None else arguments.array("other", other, _ROWS)
        return similarity(self._plain(rows), self._plain(others), self.config.similarity)

    @checked
    def with_after(self, after: After) -> Encoder:
        """The same with a fitted post-processing behind all other steps. Vectors that were of length 1 are so again."""
        steps = list(self.made.steps)
        ends = [Normalize()] if steps and isinstance(steps[-1], Normalize) else []
        for note in after.notes:
            self.say(note)
        return self._with([*steps, step_of(after), *ends])

    @checked
    def fit_after(
        self,
        kind: str,
        texts: Iterable[str],
        *,
        dimensions: int | None = None,
        directions: int | None = None,
        epochs: int | None = None,
        seed: int | None = None,
        progress: bool | Told = False,
    ) -> Encoder:
        """Fit a post-processing on the vectors of texts and put it behind all other steps. `dimensions` are what
        whitening keeps, `directions` what centring takes out, `epochs` and `seed` are a flow's."""
        fit: Callable[..., After] = AFTER.get(kind).fit
        asked = {"dimensions": dimensions, "directions": directions, "epochs": epochs, "seed": seed}
        given = {name: value for name, value in asked.items() if value is not None}
        known = [name for name in asked if name in signature(fit).parameters]
        for name in given.keys() - set(known):
            raise ArgumentError(f"{kind} knows no {name}", repair=f"leave it out; {kind} knows {' and '.join(known)}")
        after = fit(self.encode(texts, progress=progress), **given)
        self.say(after.describe())
        return self.with_after(after)

    @checked
    def save(self, path: str | os.PathLike[str], *, replace: bool = False) -> None:
        """Write the folder, for sentence-transformers as well, where it knows all steps."""
        for note in write_encoder(self.made, path, replace_old=replace):
            self.say(note)

    @checked
    def part(self, texts: Sequence[str], prompt: str | None = None, told: Told | None = None) -> Part:
        """The vectors as they come, with the counts that `encode` tells. `prompt` is a name."""
        rows = self.made.rows(texts, self.prompt_text(prompt))
        return Part(self._vectors(rows, told or (lambda many: None)), rows.cut, rows.empty)

    @checked
    def prompt_text(self, name: str | None) -> str:
        """The text of a prompt; None: of the one that is used where none is asked for."""
        name = self.config.prompt if name is None else name
        if name is None or (name in ALWAYS and name not in self.config.prompts):
            return ""
        if name not in self.config.prompts:
            known = ", ".join(self.config.prompts) or "none"
            raise ArgumentError(f"no prompt is called {name!r}", repair=f"the folder's prompts: {known}")
        return self.config.prompts[name]

    @checked
    def require_dimensions(self, dimensions: int | None) -> None:
        """Refuse to keep more dimensions than there are, or none."""
        if dimensions is not None and not 1 <= dimensions <= self.dimensions:
            raise ArgumentError(f"{dimensions} dimensions of {self.dimensions}", repair="at least 1, at most all")

    def _with(self, steps: Sequence[nn.Module]) -> Encoder:
        found = Encoder(self.made.changed(self.config, steps), arithmetic=self.arithmetic, say=self.say)
        found.products = self.products
        return found

    def _first_prompt(self, *names: str) -> str | None:
        return next((name for name in names if name in self.config.prompts), None)

    def _ranges(self, vectors: NDArray[np.float32]) -> NDArray[np.float32]:
        if self.ranges is None and len(vectors):
            self.ranges = ranges_of(vectors)
            self.say(f"the ranges of int8 are those of these {len(vectors):,} texts, and are kept: encoder.ranges")
        return np.zeros((2, vectors.shape[1]), dtype=np.float32) if self.ranges is None else self.ranges

    def _plain(self, vectors: NDArray[Any]) -> NDArray[Any]:
        vectors = np.asarray(vectors)
        if vectors.dtype == np.uint8:
            whole = vectors.shape[-1] == -(-self.dimensions // 8)
            return signs(vectors, self.dimensions if whole else None)
        if vectors.dtype != np.int8:
            return vectors
        if self.ranges is None:
            raise ArgumentError("bytes without their ranges", repair="encoder.ranges = those they were made with")
        return from_bytes(vectors, self.ranges)

    @torch.inference_mode()
    def _vectors(self, rows: TextRows, told: Told) -> NDArray[np.float32]:
        found = np.empty((len(rows), self.dimensions), dtype=np.float32)
        made, pad, products = self.made, self.made.tokenizer.specials.pad, self.products
        heap, offset = self._heap, made.model.config.position_offset
        for numbers in batches(rows, TOKENS[self.arithmetic]):
            inputs = inputs_of_rows(rows, numbers, pad, offset, made.device, products)
            part = made(inputs, rows.skip)[: len(numbers)].float().cpu().numpy()
            if not np.isfinite(part).all():
                number = int(numbers[int(np.argmin(np.isfinite(part).all(axis=1)))])
                raise InputError(
                    f"the vector of text {number} is not finite: the weights are damaged, or numbers grew too large",
                    repair="fetch or save the model again; after a flow, fit it on texts like this one",
                )
            found[numbers] = part
            told(len(numbers))
            heap.look()
        return found


def shortened(vectors: NDArray[np.float32], dimensions: int | None, normalize: bool) -> NDArray[np.float32]:
    """The first dimensions, then to length 1."""
    vectors = vectors if dimensions is None else vectors[:, :dimensions]
    return np.ascontiguousarray(unit(vectors) if normalize else vectors)


def notes_of(many: int, cut: int, empty: int, length: int) -> list[str]:
    found = []
    if cut:
        found.append(f"{cut:,} of {many:,} texts are longer than {length} slots and were cut")
    if empty:
        found.append(f"{empty:,} of {many:,} texts are empty: their vector is that of the marks alone")
    return found


@contextmanager
def _told(progress: bool | Told, total: int) -> Iterator[Told]:
    if callable(progress):
        yield progress
    elif not progress:
        yield lambda many: None
    else:
        from rich.console import Console
        from rich.progress import Progress

        with Progress(console=Console(stderr=True)) as bars:
            task = bars.add_task("encoding", total=total)
            yield lambda many: bars.advance(task, many)
