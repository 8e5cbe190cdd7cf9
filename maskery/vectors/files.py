"""Vectors into a file whose number of rows is not known at first: .npy, whose header is set right at the end, and
parquet by groups of rows. The file appears whole or not at all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import numpy as np
from numpy.typing import NDArray

from maskery import files
from maskery.errors import ArgumentError, InputError
from maskery.extras import optional
from maskery.vectors.precision import Precision

KINDS: dict[Precision, str] = {"float32": "<f4", "int8": "|i1", "binary": "|u1"}
_HEADER = 128
_MAGIC = b"\x93NUMPY\x01\x00"


class Writer(Protocol):
    def __call__(self, vectors: NDArray[Any], texts: Sequence[str]) -> None: ...


def check_out(path: Path, with_texts: bool) -> None:
    """Refuse, before long work, a name that tells no format, or what the format cannot hold."""
    if path.suffix not in (".npy", ".parquet"):
        raise InputError(f"--out {path}: the name tells no format", repair="--out V.npy, or V.parquet")
    if path.suffix == ".parquet":
        optional("pyarrow.parquet", "writing parquet files")
    elif with_texts:
        raise InputError("a .npy file holds numbers, no texts", repair="--out V.parquet, or leave --texts out")
    files.require_new_file(path)


@contextmanager
def new_vectors(
    path: Path, width: int, precision: Precision, with_texts: bool = False, facts: dict[str, str] | None = None
) -> Iterator[Writer]:
    """A function that takes one block of rows after the other; `facts` are kept where the format can."""
    with files.new_file(path) as file:
        if path.suffix == ".npy":
            with _npy(file, width, KINDS[precision]) as write:
                yield write
        else:
            with _parquet(file, width, KINDS[precision], with_texts, facts or {}) as write:
                yield write


@contextmanager
def _npy(file: BinaryIO, width: int, kind: str) -> Iterator[Writer]:
    rows = 0

    def write(vectors: NDArray[Any], texts: Sequence[str]) -> None:
        nonlocal rows
        rows += len(vectors)
        file.write(np.ascontiguousarray(vectors, dtype=kind).data)

    file.write(_header(0, width, kind))
    yield write
    file.seek(0)
    file.write(_header(rows, width, kind))


def _header(rows: int, width: int, kind: str) -> bytes:
    """Always of one length, so that it can be written again."""
    told = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': ({rows}, {width}), }}"
    size = _HEADER - len(_MAGIC) - 2
    return _MAGIC + size.to_bytes(2, "little") + told.ljust(size - 1).encode("ascii") + b"\n"


@contextmanager
def _parquet(file: BinaryIO, width: int, kind: str, with_texts: bool, facts: dict[str, str]) -> Iterator[Writer]:
    library, parquet = (optional(name, "writing parquet files") for name in ("pyarrow", "pyarrow.parquet"))
    number = library.from_numpy_dtype(np.dtype(kind))
    texts_too = [library.field("text", library.string())] if with_texts else []
    schema = library.schema([*texts_too, library.field("vector", library.list_(number, width))], metadata=facts)

    def write(vectors: NDArray[Any], texts: Sequence[str]) -> None:
        flat = library.array(np.ascontiguousarray(vectors).reshape(-1), type=number)
        column = library.FixedSizeListArray.from_arrays(flat, width)
        before = [library.array(texts, type=library.string())] if with_texts else []
        writer.write_table(library.table([*before, column], schema=schema), row_group_size=len(vectors))

    with parquet.ParquetWriter(file, schema) as writer:
        yield write


def read_ranges(path: Path, width: int) -> NDArray[np.float32]:
    """Ranges of int8 that an earlier call wrote."""
    if not path.is_file():
        raise InputError("no such file", where=path, repair="give the .ranges.npy of the vectors to compare with")
    try:
        found = np.load(path, allow_pickle=False)
    except (ValueError, OSError, EOFError) as error:
        raise InputError(f"is no file of numpy ({error})", where=path, repair="give a .ranges.npy") from None
    if not isinstance(found, np.ndarray) or found.shape != (2, width) or found.dtype.kind != "f":
        what = f"{found.dtype} {found.shape}" if isinstance(found, np.ndarray) else "several arrays"
        raise ArgumentError(f"{path} holds {what}, not float32 (2, {width})", repair="the ranges of such vectors")
    return found.astype(np.float32)


def write_ranges(path: Path, ranges: NDArray[np.float32]) -> None:
    with files.new_file(path) as file:
        np.save(file, ranges, allow_pickle=False)
