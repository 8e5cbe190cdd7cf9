"""A checkpoint of TensorFlow ("tensor bundle"): NAME.index says where each tensor lies in NAME.data-00000-of-0000N.

Data files are mapped, not read; a tensor's bytes are checked against its checksum when it is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import prod
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from maskery.checkpoint.tensorflow.crc32c import Bytes, crc32c, masked
from maskery.checkpoint.tensorflow.table import AGAIN, read_table
from maskery.errors import CheckpointError
from maskery.text import wire

DTYPES = {
    1: torch.float32,
    2: torch.float64,
    3: torch.int32,
    4: torch.uint8,
    6: torch.int8,
    9: torch.int64,
    10: torch.bool,
    14: torch.bfloat16,
    19: torch.float16,
}
"""TensorFlow's number of a type -> the type."""
_STRING = 7

INDEX = ".index"


@dataclass(frozen=True, kw_only=True)
class Entry:
    """Where a tensor lies, and what it is."""

    dtype: int
    shape: tuple[int, ...]
    shard: int
    offset: int
    size: int
    checksum: int
    sliced: bool


@dataclass(frozen=True)
class Bundle:
    prefix: Path
    """The path of the checkpoint without .index."""
    entries: Mapping[str, Entry]
    shards: int
    _maps: dict[int, Bytes] = field(default_factory=dict)

    @property
    def index(self) -> Path:
        return with_ending(self.prefix, INDEX)

    def shard(self, number: int) -> Path:
        return with_ending(self.prefix, f".data-{number:05d}-of-{self.shards:05d}")

    def require_shards(self) -> None:
        """Refuse a checkpoint whose data files are not all there, or too short, before anything is read."""
        for number in range(self.shards):
            path = self.shard(number)
            if not path.is_file():
                raise CheckpointError(
                    f"data file {number + 1} of {self.shards} is missing",
                    where=path,
                    repair=f"fetch {path.name} into the folder; the index beside it needs it",
                )
            here = [(each.offset + each.size, name) for name, each in self.entries.items() if each.shard == number]
            end, last = max(here, default=(0, ""))
            if path.stat().st_size < end:
                raise CheckpointError(
                    f"has {path.stat().st_size:,} bytes, but {last} ends at byte {end:,}", where=path, repair=AGAIN
                )

    def tensor(self, name: str, tell: Callable[[int], None] | None = None) -> Tensor:
        """A copy of a tensor's numbers; `tell` hears how many bytes were checked."""
        entry = self.entries[name]
        _require_readable(name, entry, self.index)
        data = self._map(entry.shard)[entry.offset : entry.offset + entry.size]
        if masked(crc32c(data, tell)) != entry.checksum:
            raise CheckpointError(
                f"wrong checksum of the tensor {name}, bytes {entry.offset:,} to {entry.offset + entry.size:,}: "
                "some byte has changed since it was written",
                where=self.shard(entry.shard),
                repair=AGAIN,
            )
        dtype = DTYPES[entry.dtype]
        if entry.size == 0:  # whose bytes cannot be seen as another type
            return torch.empty(entry.shape, dtype=dtype)
        return torch.from_numpy(np.array(data)).view(dtype).view(entry.shape)

    def _map(self, number: int) -> Bytes:
        if number not in self._maps:
            path = self.shard(number)
            empty = not path.stat().st_size  # which cannot be mapped
            self._maps[number] = np.empty(0, np.uint8) if empty else np.memmap(path, dtype=np.uint8, mode="r")
        return self._maps[number]


def with_ending(prefix: Path, ending: str) -> Path:
    """prefix + ending; a prefix may have dots in its name."""
    return prefix.with_name(prefix.name + ending)


def open_bundle(prefix: Path) -> Bundle:
    """The checkpoint whose index is PREFIX.index; every block of the index is checked."""
    path = with_ending(prefix, INDEX)
    table = read_table(path)
    if b"" not in table:
        raise CheckpointError("has no header", where=path, repair=AGAIN)
    try:
        shards = _shards(table.pop(b""), path)
        # A key that begins with zero is one slice of a partitioned tensor; the whole has an entry by its name.
        entries = {key.decode(): _entry(value) for key, value in table.items() if not key.startswith(b"\0")}
    except ValueError as error:
        raise CheckpointError(f"is not the index of a checkpoint: it {error}", where=path, repair=AGAIN) from None
    astray = next((name for name, entry in entries.items() if not _within(entry, shards)), None)
    if astray is not None:
        raise CheckpointError(f"{astray} lies in no data file of the checkpoint", where=path, repair=AGAIN)
    return Bundle(prefix, dict(sorted(entries.items())), shards)


def _shards(message: bytes, path: Path) -> int:
    header = wire.fields(message)
    if wire.number(header, 2) != 0:
        raise CheckpointError(
            "was written by a big-endian machine, and its numbers with it",
            where=path,
            repair="load and save the checkpoint again with TensorFlow on a usual (little-endian) machine",
        )
    shards = wire.number(header, 1)
    if not 1 <= shards <= 99_999:
        raise ValueError(f"speaks of {shards} data files")
    return shards


def _entry(message: bytes) -> Entry:
    found = wire.fields(message)
    shape = [wire.fields(each) for part in wire.messages(found, 2) for each in wire.messages(wire.fields(part), 2)]
    return Entry(
        dtype=wire.number(found, 1),
        shape=tuple(wire.number(dimension, 1) for dimension in shape),
        shard=wire.number(found, 3),
        offset=wire.number(found, 4),
        size=wire.number(found, 5),
        checksum=wire.number(found, 6),
        sliced=7 in found,
    )


def _within(entry: Entry, shards: int) -> bool:
    return entry.sliced or (0 <= entry.shard < shards and entry.offset >= 0 and entry.size >= 0)


def _require_readable(name: str, entry: Entry, path: Path) -> None:
    if entry.sliced:
        raise CheckpointError(
            f"{name} is partitioned: stored as several slices, which are not put together here",
            where=path,
            repair="load the checkpoint in TensorFlow without a partitioner and save it again",
        )
    if entry.dtype not in DTYPES:
        kind = "text" if entry.dtype == _STRING else f"TensorFlow's type {entry.dtype}"
        raise CheckpointError(
            f"{name} holds {kind}, not numbers that a model is made of",
            where=path,
            repair="use the checkpoint of a model in float32, float16 or bfloat16",
        )
    expected = prod(entry.shape) * DTYPES[entry.dtype].itemsize
    if min(entry.shape, default=0) < 0 or entry.size != expected:
        raise CheckpointError(
            f"{name} of the shape {entry.shape} would take {expected:,} bytes, and has {entry.size:,}",
            where=path,
            repair=AGAIN,
        )
