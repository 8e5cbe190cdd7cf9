"""What is to be read: FILES as a user names them (files, folders, `-` for stdin) to a list of sources.

The format and the compression of a file go by the end of its name: `.txt`, `.jsonl.zst`, `.csv.gz`. `--format`
overrides the format, never the compression. A folder is walked in sorted order: hidden files are passed over, and so
are, with a note, files whose name tells no format.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from maskery import arguments
from maskery.errors import InputError, TextError
from maskery.files import writing
from maskery.registry import Registry

if TYPE_CHECKING:
    from maskery.corpus.formats import Format

FORMATS: Registry[Format] = Registry(
    "text format",
    {
        "text": "maskery.corpus.formats:text",
        "jsonl": "maskery.corpus.formats:jsonl",
        "csv": "maskery.corpus.tables:csv_records",
        "tsv": "maskery.corpus.tables:tsv_records",
        "parquet": "maskery.corpus.parquet:parquet",
    },
)
SUFFIXES = {
    ".txt": "text",
    ".text": "text",
    ".md": "text",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".csv": "csv",
    ".tsv": "tsv",
    ".parquet": "parquet",
}
PACKED = {".gz": "gzip", ".zst": "zstd"}
STDIN = "-"
FORM = (
    "files or folders: a path, or a list of paths; or documents: a pandas DataFrame, a datasets.Dataset, a list of "
    "dicts, or an iterator of texts, iter(texts)"
)
NO_FILES = 'strings of a list name files; texts are given as [{"text": ...}, ...] or as iter(texts)'
_LONGEST_NAME = 4096
"""Characters of a path that systems take."""
_NAMED = 3
"""Names that a note lists before it only counts."""

Progress = Callable[[int, int | None], None]
"""Called with (bytes done, bytes in all), as the files lie on the disk. The second is None while stdin comes in, and
while a vocabulary is learnt, of which no part can be told."""


@dataclass(frozen=True, kw_only=True)
class Source:
    path: Path
    name: str
    """What an error calls it."""
    format: str
    packing: str = "none"
    field: str = "text"
    target: str = ""
    """Where records are pairs: the field that holds the second text."""
    named: bool = True
    """The user named it; a file that a folder holds may be without text."""

    @property
    def size(self) -> int:
        return self.path.stat().st_size


@dataclass
class _Found:
    sources: list[Source] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


@contextmanager
def gathered(
    files: Iterable[str | Path] | str | Path,
    format: str | None = None,
    field: str = "text",
    told: Progress = lambda done, total: None,
    target: str = "",
) -> Iterator[tuple[list[Source], list[str]]]:
    """The sources in the order given, and notes on what was passed over; stdin lies in a file as long as this is open.

    What cannot be read is refused here, before any work is done.
    """
    if format is not None:
        FORMATS.check(format)
    if not field:
        raise InputError("the name of the field is empty", repair="--field text, or whatever it is called in the files")
    given = [files] if isinstance(files, str | Path) else arguments.items("files", files, FORM)
    for number, each in enumerate(given):
        if isinstance(each, str) and ("\n" in each or len(each) > _LONGEST_NAME):
            raise arguments.wrong(f"files[{number}]", each, FORM, NO_FILES)
        arguments.path(f"files[{number}]", each, FORM)
    if not given:
        raise TextError("no text file was given", file="FILES", repair="maskery corpus build FILE ... --out DIR")
    if sum(str(each) == STDIN for each in given) > 1:
        raise TextError("stdin is given twice", file=STDIN, repair="it can be read once: give - once")
    found = _Found()
    with ExitStack() as stack:
        for each in given:
            if str(each) == STDIN:
                path = stack.enter_context(spooled(told))
                found.sources.append(Source(path=path, name="stdin", format=format or "text", field=field))
            elif Path(each).is_dir():
                _folder(Path(each), format, field, found)
            else:
                found.sources.append(_file(Path(each), format, field, found))
        if target:
            _check_pairs(found.sources, field, target)
        _check_field(found.sources, field)
        yield [replace(source, target=target) for source in found.sources], found.notes


def by_name(path: Path) -> tuple[str | None, str]:
    """Format and compression that the end of a name tells; None if it tells no format."""
    packing = PACKED.get(path.suffix.lower(), "none")
    inner = path if packing == "none" else path.with_suffix("")
    if packing != "none" and not inner.suffix:
        return "text", packing
    return SUFFIXES.get(inner.suffix.lower()), packing


def _file(path: Path, format: str | None, field: str, found: _Found) -> Source:
    if not path.exists():
        raise TextError("no such file", file=path, repair="check the name")
    if not path.is_file():
        fix = f"pipe it in, it is read more than once: maskery corpus build - --out DIR < {path}"
        raise TextError("is no ordinary file", file=path, repair=fix)
    if path.stat().st_size == 0:
        raise TextError("the file is empty", file=path, repair="leave it out")
    known, _ = by_name(path)
    if known is None and format is None and path.suffix:
        found.notes.append(f"{path} is read as plain text: its name tells no format (--format would)")
    return _source(path, format or known or "text", field, named=True)


def _folder(folder: Path, format: str | None, field: str, found: _Found) -> None:
    """Every file of a known format below the folder, in the order of their paths."""
    if _is_made(folder):
        fix = "give the text it was made from"
        raise TextError("is the folder of a corpus or a model, not one of texts", file=folder, repair=fix)
    taken, made, unknown, empty = [], [], [], []
    for path in _walk(folder):
        if path.is_dir() and _is_made(path):
            made.append(path)
        elif path.is_dir() or not path.is_file() or (by_name(path)[0] is None and format is None):
            unknown.append(path)
        elif path.stat().st_size == 0:
            empty.append(path)
        else:
            taken.append(path)
    if not taken:
        ends = " ".join(SUFFIXES)
        rest = unknown + empty + made
        holds = f"; it holds {_names(rest, folder)}" if rest else ""
        fix = f"files that end in {ends} (and .gz or .zst) are read; --format text reads all others as text"
        raise TextError(f"there is no text in the folder{holds}", file=folder, repair=fix)
    if made:
        found.notes.append(f"{folder}: passed over, as they are corpora or models: {_names(made, folder)}")
    if unknown:
        found.notes.append(f"{folder}: passed over, as the name tells no format: {_names(unknown, folder)}")
    if empty:
        found.notes.append(f"{folder}: passed over, as they are empty: {_names(empty, folder)}")
    found.sources.extend(_source(path, format or by_name(path)[0] or "text", field, named=False) for path in taken)


def _is_made(folder: Path) -> bool:
    """Whether it is a corpus or a model: its vocabulary and its metrics are no text to learn from."""
    return (folder / "tokenizer.json").is_file()


def _walk(folder: Path) -> Iterator[Path]:
    """Files, folders of corpora and models, and links to folders (which are not followed), sorted; hidden ones are
    passed over."""
    try:
        entries = sorted(path for path in folder.iterdir() if not path.name.startswith("."))
    except OSError as error:
        fix = f"chmod +rx {folder}"
        raise TextError(f"cannot be read ({error.strerror})", file=folder, repair=fix) from None
    for path in entries:
        if path.is_dir() and not path.is_symlink() and not _is_made(path):
            yield from _walk(path)
        else:
            yield path


def _source(path: Path, format: str, field: str, *, named: bool) -> Source:
    packing = by_name(path)[1]
    if not os.access(path, os.R_OK):
        raise TextError("may not be read", file=path, repair=f"chmod +r {path}")
    if format == "parquet" and packing != "none":
        fix = f"unpack the file first: {'gunzip' if packing == 'gzip' else 'unzstd'} {path}"
        raise TextError("a parquet file is compressed inside, not outside", file=path, repair=fix)
    return Source(path=path, name=str(path), format=format, packing=packing, field=field, named=named)


def _check_field(sources: list[Source], field: str) -> None:
    formats = {source.format for source in sources}
    if field != "text" and formats == {"text"}:
        raise InputError(
            f"--field {field}: plain text has no fields",
            repair="leave it out, or say what the files hold: --format jsonl (or csv, tsv, parquet)",
        )
    if formats & {"csv", "tsv"} and field.isdecimal() and int(field) == 0:
        raise InputError("--field 0: columns are counted from 1", repair="--field 1 for the first column")


def _check_pairs(sources: list[Source], field: str, target: str) -> None:
    plain = [source for source in sources if source.format == "text"]
    if plain:
        raise TextError(
            "plain text has no columns, so it holds no pairs",
            file=plain[0].name,
            repair="two files, line by line: paste SOURCES TARGETS > pairs.tsv, then --pairs 1,2; or --format tsv",
        )
    if {source.format for source in sources} & {"csv", "tsv"} and field.isdecimal() != target.isdecimal():
        raise InputError(
            f"--pairs {field},{target}: one is the name of a column, the other a number",
            repair="two names where there is a header, two numbers (from 1) where there is none",
        )
    if field == target:
        raise InputError(f"--pairs {field},{target}: both texts are the same", repair="two different columns")


@contextmanager
def spooled(told: Progress, command: str = "maskery corpus build - --out DIR") -> Iterator[Path]:
    """Stdin in a temporary file: it comes once, and is read more than once. `command` reads it, for the repair."""
    pipe = getattr(sys.stdin, "buffer", None)
    if pipe is None or sys.stdin.isatty():
        raise TextError("nothing is piped in", file="stdin", repair=f"zcat texts.gz | {command}")
    folder = Path(tempfile.mkdtemp(prefix="maskery-stdin-"))
    try:
        path = folder / "stdin"
        with writing(path, reads=True):
            copied = _copy(pipe, path, told)
        if not copied:
            raise TextError("is empty", file="stdin", repair="check the command before the pipe")
        yield path
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _copy(pipe: BinaryIO, path: Path, told: Progress) -> int:
    done = 0
    with open(path, "wb") as file:
        while data := pipe.read(1 << 20):
            file.write(data)
            done += len(data)
            told(done, None)
    return done


def _names(paths: list[Path], folder: Path) -> str:
    shown = [str(path.relative_to(folder)) for path in paths[:_NAMED]]
    more = len(paths) - len(shown)
    return ", ".join(shown) + (f" and {more:,} more" if more else "")
