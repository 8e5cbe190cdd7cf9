"""A sorted string table, the format of a checkpoint's index: keys and values in blocks, each block with a checksum.

From the end of the file: a footer names the place of the index block, whose values name the places of the data blocks.
In a block a key leaves out what it shares with the key before it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from maskery.checkpoint.tensorflow.crc32c import crc32c, masked
from maskery.errors import CheckpointError
from maskery.text.wire import varint

AGAIN = "the file is damaged or was cut short; fetch it again"

_MAGIC = (0xDB4775248B80FB57).to_bytes(8, "little")
_FOOTER = 48
_TRAILER = 5
"""After each block: how it is packed, one byte, and the checksum of the block and that byte."""


def is_table(path: Path) -> bool:
    """Whether the file ends as a sorted string table does."""
    with open(path, "rb") as file:
        file.seek(0, 2)
        file.seek(max(0, file.tell() - len(_MAGIC)))
        return file.read() == _MAGIC


def read_table(path: Path) -> dict[bytes, bytes]:
    """Every key of the table with its value; damage is refused with its place."""
    data = path.read_bytes()
    if len(data) < _FOOTER or not data.endswith(_MAGIC):
        raise CheckpointError("does not end as the index of a checkpoint does", where=path, repair=AGAIN)
    try:
        _, _, at = _place(data, len(data) - _FOOTER)
        start, size, _ = _place(data, at)
        found: dict[bytes, bytes] = {}
        for _, place in _entries(_block(data, start, size, path)):
            start, size, _ = _place(place, 0)
            found |= _entries(_block(data, start, size, path))
    except ValueError as error:
        raise CheckpointError(f"is not a table of keys and values: it {error}", where=path, repair=AGAIN) from None
    return found


def _place(data: bytes, at: int) -> tuple[int, int, int]:
    """Offset and size of a block, and where the next thing begins."""
    start, at = varint(data, at)
    size, at = varint(data, at)
    return start, size, at


def _block(data: bytes, start: int, size: int, path: Path) -> bytes:
    end = start + size
    if end + _TRAILER > len(data) - _FOOTER:
        raise ValueError(f"names a block at byte {start:,} that reaches beyond its end")
    stored = int.from_bytes(data[end + 1 : end + _TRAILER], "little")
    if masked(crc32c(data[start : end + 1])) != stored:
        raise CheckpointError(
            f"wrong checksum of the block at bytes {start:,} to {end:,}: some byte has changed since it was written",
            where=path,
            repair=AGAIN,
        )
    if data[end] != 0:
        raise CheckpointError(
            f"the block at byte {start:,} is compressed, which TensorFlow's own writer never does",
            where=path,
            repair="save the checkpoint again with TensorFlow",
        )
    return data[start:end]


def _entries(block: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Keys and values of a block; the list of places where a key is written whole, at its end, is of no use here."""
    if len(block) < 4:
        raise ValueError("has a block without an end")
    end = len(block) - 4 * (1 + int.from_bytes(block[-4:], "little"))
    if end < 0:
        raise ValueError("has a block that is shorter than its own list of places")
    at, key = 0, b""
    while at < end:
        shared, at = varint(block, at)
        own, at = varint(block, at)
        size, at = varint(block, at)
        if shared > len(key) or at + own + size > end:
            raise ValueError("has an entry that reaches beyond its block")
        key = key[:shared] + block[at : at + own]
        at += own
        yield key, block[at : at + size]
        at += size
