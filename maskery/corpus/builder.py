"""Text files to a corpus folder: `maskery corpus build FILES... --out DIR`.

Lines are read once in order, cut into chunks at any line, encoded by workers and written in order. The result is the
same, byte for byte, for any number of workers and any size of chunk.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from hashlib import blake2b, sha256
from pathlib import Path
from typing import Any

from maskery.corpus import reader
from maskery.corpus.store import DATA, FORMAT, Corpus
from maskery.corpus.workers import encode_all
from maskery.corpus.writer import StoreWriter
from maskery.errors import ExistsError, InputError, TextError
from maskery.files import MANIFEST, describe, new_folder, sealed, write_json
from maskery.text.tokenizer import Tokenizer
from maskery.text.training import KINDS, default_size
from maskery.text.words import SEGMENTERS

Progress = Callable[[int, int], None]
"""Called with (bytes done, bytes in all), as the files lie on the disk."""

_CHUNK = 1 << 17
"""Characters of one chunk: about 0.1 s of work."""
_SMALL = 2_000_000
"""Bytes below which starting processes costs more than it saves."""


@dataclass(frozen=True)
class _Chunk:
    text: str
    """Lines of documents; an empty line parts two documents."""
    continues: bool
    """Its first line belongs to the last document of the chunk before."""
    done: int


def build(
    files: Iterable[str | Path] | str | Path,
    out: str | Path,
    *,
    tokenizer: str | Path | Tokenizer = "train",
    kind: str = "wordpiece",
    vocab: int | None = None,
    lowercase: bool = True,
    words: str = "auto",
    heldout: float = 0.01,
    workers: int | None = None,
    errors: str = "strict",
    progress: Progress | None = None,
) -> Corpus:
    """Build a corpus folder at `out` and open it. `workers`: processes; 0 = none, None = one for each core.

    `vocab` and `lowercase` belong to tokenizer="train"; vocab=None is chosen by the length of the text.
    """
    sources = reader.check([files] if isinstance(files, str | Path) else files)
    out = Path(out)
    how = reader.check_errors(errors)
    SEGMENTERS.check(words)
    _check_options(out, tokenizer, kind, vocab, heldout, workers)
    total = _bytes(sources)
    passes = 1
    if tokenizer == "train":
        passes = 2
        made = _train(sources, how, kind, vocab, lowercase, _scaled(progress, 0, total, passes))
    else:
        made = tokenizer if isinstance(tokenizer, Tokenizer) else Tokenizer.load(tokenizer)
    told = _scaled(progress, passes - 1, total, passes)
    count = (_cores() if total > _SMALL else 0) if workers is None else workers
    options: dict[str, Any] = {"tokenizer": "train" if tokenizer == "train" else "given", "kind": kind, "vocab": vocab}
    options |= {"words": words, "heldout": heldout, "errors": how}
    with new_folder(out) as folder:
        _fill(folder, sources, made, options, count, told)
    return Corpus.open(out)


def _check_options(
    out: Path, tokenizer: object, kind: str, vocab: int | None, heldout: float, workers: int | None
) -> None:
    if out.exists():
        raise ExistsError("is already there", where=out, repair=f"give another --out, or remove it: rm -r {out}")
    if not 0 <= heldout < 1:
        raise InputError(f"the held-out share is {heldout}", repair="--heldout takes a number from 0 to below 1")
    if workers is not None and workers < 0:
        raise InputError(f"{workers} workers", repair="--workers takes 0 or more")
    if tokenizer == "train":
        KINDS.check(kind)
    elif vocab is not None:
        raise InputError("the size of a given tokenizer is fixed", repair="leave out --vocab, or use --tokenizer train")


def _fill(
    folder: Path, sources: list[Path], tokenizer: Tokenizer, options: dict[str, Any], workers: int, told: Progress
) -> None:
    """Write every file of the corpus, the manifest last."""
    tally, hashes = reader.Tally(), array("Q")
    total = _bytes(sources)
    writer = StoreWriter(folder, tokenizer.vocabulary)
    chunks = _chunks(sources, options["errors"], tally, hashes)
    for chunk, piece in encode_all(chunks, tokenizer, options["words"], workers):
        writer.add(piece, continues=chunk.continues)
        told(chunk.done, total)
    notes = writer.finish(hashes, options["heldout"])
    told(total, total)
    if not writer.counts["tokens"]:
        raise TextError("the text gives no token", file=sources[0], repair="give files with text")
    read = {"lines": tally.lines, "characters": tally.characters}
    read |= {"replaced": tally.replaced, "cut_lines": tally.cut_lines}
    described = describe(folder, [*DATA, *tokenizer.save(folder)])
    checksums = "".join(f"{name} {described[name]['sha256']}\n" for name in sorted(DATA))
    manifest = {
        "maskery": "corpus",
        "format": FORMAT,
        "fingerprint": sha256(f"{checksums}{tokenizer.fingerprint}\n".encode()).hexdigest(),
        "vocabulary": tokenizer.vocabulary,
        "specials": asdict(tokenizer.specials),
        "tokenizer": {"fingerprint": tokenizer.fingerprint, "note": tokenizer.note},
        "counts": {**writer.counts, **read},
        "notes": notes,
        "options": options,
        "sources": [{"file": str(path), "bytes": path.stat().st_size} for path in sources],
        "files": described,
    }
    write_json(folder / MANIFEST, sealed(manifest))


def _chunks(sources: list[Path], errors: reader.Errors, tally: reader.Tally, hashes: array[int]) -> Iterator[_Chunk]:
    """The text of all files in chunks of whole lines; the hash of each document is appended when the document ends."""
    held: list[str] = []
    size = 0
    begun = continues = False
    digest = blake2b(digest_size=8)
    for path in sources:
        for _, line in reader.lines(path, errors=errors, tally=tally):
            if line:
                if not begun and (held or continues):
                    held.append("")
                begun = True
                held.append(line)
                digest.update(line.encode() + b"\n")
                size += len(line) + 1
            else:
                begun = False
                hashes.append(int.from_bytes(digest.digest(), "little"))
                digest = blake2b(digest_size=8)
            if size >= _CHUNK:
                yield _Chunk("\n".join(held), continues, tally.bytes_done)
                held, size, continues = [], 0, begun
    if held:
        yield _Chunk("\n".join(held), continues, tally.bytes_done)


class _Lines:
    """The lines of all files, to be walked more than once."""

    def __init__(self, sources: list[Path], errors: reader.Errors, told: Progress) -> None:
        self._sources, self._errors, self._told = sources, errors, told
        self._total = _bytes(sources)

    def __iter__(self) -> Iterator[str]:
        tally = reader.Tally()
        for path in self._sources:
            for number, line in reader.lines(path, errors=self._errors, tally=tally):
                if line:
                    yield line
                if number % 1000 == 0:
                    self._told(tally.bytes_done, self._total)

    def characters(self) -> int:
        return sum(map(len, self))


def _train(
    sources: list[Path], errors: reader.Errors, kind: str, vocab: int | None, lowercase: bool, told: Progress
) -> Tokenizer:
    size = vocab
    if size is None:
        characters = _Lines(sources, errors, lambda done, total: None).characters()
        size = default_size(characters)
    made = KINDS.get(kind)(_Lines(sources, errors, told), size, lowercase)
    if vocab is None:
        made.note += f"; at most {size} pieces, for a text of {characters} characters"
    return made


def _scaled(progress: Progress | None, passed: int, total: int, passes: int) -> Progress:
    """Progress of one pass as a part of all passes; it never runs back."""
    best = 0

    def tell(done: int, _: int) -> None:
        nonlocal best
        if progress is not None and passed * total + done >= best:
            best = passed * total + done
            progress(best, passes * total)

    return tell


def _bytes(sources: list[Path]) -> int:
    return sum(path.stat().st_size for path in sources)


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
