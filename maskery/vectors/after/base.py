"""What every post-processing of vectors is: fitted on vectors, applied to vectors, kept as one safetensors file.

    after = AFTER.get("whitening").fit(vectors)
    after.apply(others)                  # float32 (n, k)
    after.save("whitening.safetensors")
    After.load("whitening.safetensors")  # of whatever kind the file says it is

A fitted one never changes. Inside, everything is in double precision; what comes out is float32. Rows are worked on in
blocks, so that a memory-mapped file of any size can be given.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maskery.errors import ArgumentError, CheckpointError, UnknownName
from maskery.registry import Registry
from maskery.vectors.after import kept
from maskery.vectors.after.given import Double, blocks, single, table

PLAIN = "plain"
"""The name of the vectors to which nothing was done."""


class After(ABC):
    kind: ClassVar[str]
    notes: tuple[str, ...] = ()
    """What the fit chose or limited by itself, to be told."""

    @classmethod
    @abstractmethod
    def fit(cls, vectors: ArrayLike) -> Self: ...

    @property
    @abstractmethod
    def taken(self) -> int:
        """Dimensions of a vector that goes in."""

    @property
    @abstractmethod
    def given(self) -> int:
        """Dimensions of a vector that comes out."""

    @abstractmethod
    def transform(self, block: Double) -> Double:
        """Rows that were checked, to rows."""

    @abstractmethod
    def state(self) -> dict[str, NDArray[Any]]:
        """What was learned, by name."""

    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """What was asked and what is told of the fit, as JSON holds it."""

    @classmethod
    @abstractmethod
    def from_state(cls, state: Mapping[str, NDArray[Any]], settings: Mapping[str, Any]) -> Self: ...

    @abstractmethod
    def describe(self) -> str:
        """One line for people; the notes come on top."""

    def apply(self, vectors: ArrayLike) -> NDArray[np.float32]:
        """(n, D) to (n, k)."""
        rows = table(vectors, self.taken)
        out = np.empty((len(rows), self.given), dtype=np.float32)
        done = 0
        for block in blocks(rows):
            out[done : done + len(block)] = single(self.transform(block), done)
            done += len(block)
        return out

    def exactly(self, vectors: ArrayLike) -> Double:
        """The same before it is rounded to float32."""
        rows = table(vectors, self.taken)
        return np.concatenate([np.empty((0, self.given)), *(self.transform(block) for block in blocks(rows))])

    def save(self, path: str | Path) -> None:
        kept.write(Path(path), self.state(), {"kind": self.kind, "settings": self.settings(), "notes": [*self.notes]})

    @classmethod
    def load(cls, path: str | Path) -> After:
        state, facts = kept.read(Path(path))
        if facts["kind"] not in AFTER.names():
            raise UnknownName(AFTER.kind, facts["kind"], AFTER.names(), where=path)
        found = AFTER.get(facts["kind"])
        if not issubclass(found, cls):
            raise CheckpointError(
                f"holds {facts['kind']}, not {cls.__name__.lower()}", where=path, repair=f"{found.__name__}.load(path)"
            )
        try:
            made = found.from_state(state, facts["settings"])
        except (KeyError, TypeError, ValueError) as error:
            cause = error.cause if isinstance(error, ArgumentError) else f"settings that do not fit: {error}"
            raise CheckpointError(cause, where=path, repair=kept.AGAIN) from None
        made.notes = tuple(str(note) for note in facts["notes"])
        return made


AFTER: Registry[type[After]] = Registry(
    "post-processing of vectors",
    {
        "whitening": "maskery.vectors.after.whitening:Whitening",
        "centring": "maskery.vectors.after.centring:Centring",
        "flow": "maskery.vectors.after.flow:Flow",
    },
)


def variants(vectors: ArrayLike, afters: Mapping[str, After]) -> dict[str, NDArray[np.float32]]:
    """The vectors as they are (`plain`) and after each of the named, to be compared."""
    if PLAIN in afters:
        raise ArgumentError(f"{PLAIN!r} is the name of the vectors as they are", repair="give the other one a name")
    return {PLAIN: _plain(vectors)} | {name: after.apply(vectors) for name, after in afters.items()}


def _plain(vectors: ArrayLike) -> NDArray[np.float32]:
    rows = table(vectors)
    done = 0
    for block in blocks(rows):
        done += len(single(block, done))
    return rows.astype(np.float32, copy=False)
