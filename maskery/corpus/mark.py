"""A corpus with the phrases and entities of word lists marked: `maskery corpus mark CORPUS --phrases FILE --out DIR`.

The new store differs from the old one in flags.bin alone; the other files are the same ones on the disk where it can
hold a file under two names, copies elsewhere. The first token of a phrase has `Flag.PHRASE`, every other token of it
`Flag.IN_PHRASE`; entities likewise. A phrase of one word is not marked: a word is taken whole anyway. An entity of one
word is, because that it is one says more than that it is a word. Marks of the same kind that the corpus has are
replaced, those of the other kind are kept.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from maskery.arguments import checked
from maskery.corpus.encode import Flag
from maskery.corpus.writer import fingerprint
from maskery.errors import CorpusError, ExistsError, InputError
from maskery.files import MANIFEST, checksum, describe, new_folder, require_writable_around, sealed, write_json
from maskery.knowledge.lexicon import Lexicon

if TYPE_CHECKING:
    from maskery.corpus.store import Corpus

Files = str | Path | Sequence[str | Path]
Told = Callable[[float, float], None]
"""Work done, work in all."""
_FLAGS = "flags.bin"
_BLOCK = 1 << 20
"""Tokens looked at once, up to the end of a sentence: bounds the memory."""
_READING = 3.0
"""Work of reading a byte of a list, beside 1 for looking at a token of the text."""


@dataclass(frozen=True)
class Kind:
    first: Flag
    inside: Flag
    least: int
    """Words of the shortest stretch that is marked."""


KINDS = {
    "phrases": Kind(Flag.PHRASE, Flag.IN_PHRASE, 2),
    "entities": Kind(Flag.ENTITY, Flag.IN_ENTITY, 1),
}


@dataclass
class Layer:
    """One kind of mark under way."""

    kind: Kind
    lexicon: Lexicon
    seen: NDArray[np.bool_] = field(init=False)
    matches: int = 0
    tokens: int = 0
    single: int = 0

    def __post_init__(self) -> None:
        self.seen = np.zeros(max(1, len(self.lexicon.trie)), dtype=bool)

    def put(self, tokens: NDArray[Any], flags: NDArray[np.uint8], sentence_start: NDArray[np.int64]) -> None:
        """Mark what stands in these whole sentences, in place."""
        word = (flags & Flag.WORD) != 0
        found = self.lexicon.matches(tokens, word, sentence_start)
        begun = np.concatenate(([0], np.cumsum(word)))
        enough = begun[found.start + found.length] - begun[found.start] >= self.kind.least
        self.seen[found.entry] = True
        self.single += int((~enough).sum())
        start, length = found.start[enough], found.length[enough]
        self.matches += len(start)
        self.tokens += int(length.sum())
        inside = np.zeros(len(flags) + 1, dtype=np.int64)
        np.add.at(inside, start + 1, 1)
        np.add.at(inside, start + length, -1)
        flags &= np.uint8(0xFF & ~(self.kind.first | self.kind.inside))
        flags[np.cumsum(inside[:-1]) > 0] |= np.uint8(self.kind.inside)
        flags[start] |= np.uint8(self.kind.first)

    def counts(self) -> dict[str, int]:
        listed = self.lexicon
        return {
            "entries": listed.entries,
            "repeated": listed.repeated,
            "unknown": listed.unknown,
            "too_long": listed.too_long,
            "found": listed.distinct_in(self.seen),
            "matches": self.matches,
            "single": self.single,
            "tokens": self.tokens,
        }


@checked
def mark(
    corpus: Corpus,
    out: str | Path,
    *,
    phrases: Files | None = None,
    entities: Files | None = None,
    progress: Told | None = None,
) -> Corpus:
    """A corpus at `out` that is `corpus` with marks for the entries of these lists.

    `manifest["options"]["marks"]` says what was found: for each kind the lists with their checksums, and the counts
    entries, repeated, unknown and too_long (left out), found (entries that stand in the text), matches, single
    (matches of one word that are no mark) and tokens (marked).
    """
    from maskery.corpus.store import Corpus

    out = Path(out)
    given = {"phrases": phrases, "entities": entities}
    lists = {name: found for name, files in given.items() if files is not None and (found := _paths(files))}
    if not any(lists.values()):
        raise InputError("there is nothing to mark", repair="--phrases FILE, --entities FILE, or both")
    if corpus.manifest["options"]["words"] == "none":
        raise CorpusError(
            "the corpus was built with --words none, and phrases and entities are runs of whole words",
            where=corpus.path,
            repair="build it with words first: maskery corpus build FILES --words auto --out DIR",
        )
    if out.exists():
        remove = f", or remove it: rm -r {out}" if (out / MANIFEST).is_file() else ""
        raise ExistsError("is already there", where=out, repair=f"give another --out{remove}")
    require_writable_around(out)
    corpus.verify()
    reading = {name: _READING * sum(map(_size, files)) for name, files in lists.items()}
    tell = _Work(progress, sum(reading.values()) + corpus.tokens.size)
    layers = {}
    for name, files in lists.items():
        layers[name] = Layer(KINDS[name], Lexicon.read(files, corpus.tokenizer, tell.part(reading[name])))
    with new_folder(out) as folder:
        _link_others(corpus, folder)
        _write_flags(corpus, folder, list(layers.values()), tell.part(corpus.tokens.size))
        marks = {
            name: {"lists": [_described(file) for file in lists[name]], **layer.counts()}
            for name, layer in layers.items()
        }
        write_json(folder / MANIFEST, sealed(_manifest(corpus, folder, marks)))
    return Corpus.open(out)


def _paths(files: Files) -> list[Path]:
    return [Path(files)] if isinstance(files, str | Path) else [Path(each) for each in files]


def _size(file: Path) -> int:
    return file.stat().st_size if file.is_file() else 0


def _described(file: Path) -> dict[str, str]:
    return {"file": file.name, "sha256": checksum(file)}


def _write_flags(corpus: Corpus, folder: Path, layers: list[Layer], tell: Callable[[int, int], None]) -> None:
    with open(folder / _FLAGS, "wb") as file:
        for begin, end, sentence_start in pieces(corpus.sentence_start):
            tokens, flags = np.asarray(corpus.tokens[begin:end]), np.array(corpus.flags[begin:end])
            for layer in layers:
                layer.put(tokens, flags, sentence_start)
            file.write(flags.tobytes())
            tell(end, corpus.tokens.size)


def pieces(sentence_start: NDArray[np.int64]) -> Iterator[tuple[int, int, NDArray[np.int64]]]:
    """(first token, last, sentence starts counted from the first) of whole sentences, about `_BLOCK` tokens each."""
    last, sentence = len(sentence_start) - 1, 0
    while sentence < last:
        begin = int(sentence_start[sentence])
        stop = max(sentence + 1, int(np.searchsorted(sentence_start, begin + _BLOCK, side="right")) - 1)
        yield begin, int(sentence_start[stop]), sentence_start[sentence : stop + 1] - begin
        sentence = stop


def _link_others(corpus: Corpus, folder: Path) -> None:
    """Every other file under a second name; a disk that cannot do that gets a copy."""
    for name in corpus.manifest["files"]:
        if name != _FLAGS:
            try:
                os.link(corpus.path / name, folder / name)
            except OSError:
                shutil.copyfile(corpus.path / name, folder / name)


def _manifest(corpus: Corpus, folder: Path, marks: dict[str, Any]) -> dict[str, Any]:
    old = {key: value for key, value in corpus.manifest.items() if key != "seal"}
    files = {**old["files"], **describe(folder, [_FLAGS])}
    options = {**old["options"], "marks": {**old["options"].get("marks", {}), **marks}}
    return {
        **old,
        "fingerprint": fingerprint(files, corpus.tokenizer.fingerprint),
        "options": options,
        "files": files,
    }


class _Work:
    """Progress of one part of the work after another, as one number."""

    def __init__(self, progress: Told | None, whole: float) -> None:
        self._progress, self._whole, self._before = progress, whole, 0.0

    def part(self, work: float) -> Callable[[int, int], None]:
        before = self._before
        self._before += work

        def tell(done: int, total: int) -> None:
            if self._progress is not None:
                self._progress(before + work * done / max(1, total), self._whole)

        return tell
