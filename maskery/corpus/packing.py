"""Compression, the outer layer of every text format: an open file to blocks of its unpacked bytes.

Each way answers with blocks of bounded size, so that an archive never has to fit in memory, and raises `Damaged` for
bytes that it cannot unpack or that end too early.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Iterator
from typing import BinaryIO

from maskery.extras import optional
from maskery.registry import Registry

Unpack = Callable[[BinaryIO], Iterator[bytes]]

PACKINGS: Registry[Unpack] = Registry(
    "compression",
    {
        "none": "maskery.corpus.packing:plain",
        "gzip": "maskery.corpus.packing:unpack_gzip",
        "zstd": "maskery.corpus.packing:unpack_zstd",
    },
)

BLOCK = 1 << 20
_ZSTD_BITE = 1 << 12
"""Packed bytes given to zstd at once: at worst (one repeated byte) they grow to 128 MiB."""
_ZSTD_WINDOW = 1 << 31
"""What `zstd --long=31` makes; the library alone stops at 128 MiB."""


class Damaged(Exception):
    """An archive that cannot be unpacked; whoever knows the file and the line says where."""


def plain(file: BinaryIO) -> Iterator[bytes]:
    while data := file.read(BLOCK):
        yield data


def unpack_gzip(file: BinaryIO) -> Iterator[bytes]:
    unpacked = gzip.GzipFile(fileobj=file, mode="rb")
    while True:
        try:
            data = unpacked.read(BLOCK)
        except EOFError:
            raise Damaged("the archive ends in its middle") from None
        except (zlib.error, gzip.BadGzipFile) as error:
            raise Damaged(f"the archive is damaged ({error})") from None
        if not data:
            return
        yield data


def unpack_zstd(file: BinaryIO) -> Iterator[bytes]:
    """Frames one after another. The library's own stream ends quietly where a file is cut; this one does not."""
    library = optional("zstandard", "reading .zst files")
    frame = None
    while data := file.read(_ZSTD_BITE):
        while data:
            frame = frame or library.ZstdDecompressor(max_window_size=_ZSTD_WINDOW).decompressobj()
            try:
                unpacked = frame.decompress(data)
            except library.ZstdError as error:
                raise Damaged(f"the archive is damaged ({error})") from None
            for begin in range(0, len(unpacked), BLOCK):
                yield unpacked[begin : begin + BLOCK]
            data = frame.unused_data
            frame = None if frame.eof else frame
    if frame is not None:
        raise Damaged("the archive ends in its middle")
