"""A corpus folder opened: token ids and flags memory-mapped, sentence and document offsets in memory.

N tokens, S sentences, D documents.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from maskery import arguments
from maskery.arguments import checked
from maskery.corpus import builder, mark
from maskery.corpus.encode import Flag
from maskery.corpus.writer import DATA, DICTIONARY, FORMAT, token_dtype
from maskery.errors import CorpusError, UnknownName
from maskery.files import MANIFEST, damage, is_described, seal_broken
from maskery.text.dictionary import Dictionary
from maskery.text.tokenizer import Specials, Tokenizer
from maskery.text.words import Segmenter, segmenter

__all__ = ["Corpus", "CorpusFacts", "Flag", "DATA", "FORMAT", "Split"]

Split = Literal["train", "heldout"]
SPLITS = ("train", "heldout")
_REBUILD = "build it anew: maskery corpus build FILES... --out DIR"
_COUNT_BLOCK = 1 << 24


@dataclass(frozen=True)
class CorpusFacts:
    """What the other axes may know of a corpus."""

    vocabulary: int
    specials: Specials
    _count: Callable[[], NDArray[np.int64]]
    _find_ordinary: Callable[[], NDArray[np.int64]]

    @cached_property
    def frequency(self) -> NDArray[np.int64]:
        """How often each id stands in the corpus; counted when first asked for."""
        return self._count()

    @cached_property
    def ordinary(self) -> NDArray[np.int64]:
        """Ids that stand for text: no specials, no [unusedN]."""
        return self._find_ordinary()


class Corpus:
    """A folder of tokenised text, opened: token ids in the memory map, documents, sentences, the tokenizer.

    corpus = maskery.Corpus.build(["a.txt", "b.jsonl"], "my-corpus")     # once, of files or of a DataFrame; then
    corpus = maskery.Corpus.open("my-corpus")
    corpus.counts["tokens"], corpus.tokenizer.tokens(corpus.tokens[:10].tolist())
    """

    path: Path
    manifest: dict[str, Any]
    tokens: NDArray[np.unsignedinteger]
    """(N,) memory-mapped."""
    flags: NDArray[np.uint8]
    """(N,) memory-mapped; the bits are `Flag`."""
    sentence_start: NDArray[np.int64]
    """(S+1,) tokens."""
    document_start: NDArray[np.int64]
    """(D+1,) sentences."""
    heldout: NDArray[np.bool_]
    """(D,)"""
    vocabulary: int
    specials: Specials
    fingerprint: str
    target_vocabulary: int
    """Of the second texts of pairs; 0: they are written like the first, or there are none."""
    target_specials: Specials

    def __init__(self, path: str | Path) -> None:
        self.path = arguments.path("path", path, "the path of a corpus folder")
        self._whole = False
        self.manifest = _manifest(self.path)
        self.vocabulary = int(self.manifest["vocabulary"])
        self.specials = Specials(**self.manifest["specials"])
        self.fingerprint = str(self.manifest["fingerprint"])
        theirs = self.manifest.get("target")
        self.target_vocabulary = 0 if theirs is None else int(theirs["vocabulary"])
        self.target_specials = self.specials if theirs is None else Specials(**theirs["specials"])
        self.tokens = self._map("tokens.bin", token_dtype(max(self.vocabulary, self.target_vocabulary)))
        self.flags = self._map("flags.bin", np.dtype(np.uint8))
        self.sentence_start = _offsets(self._map("sentences.bin", np.dtype("<u4")))
        self.document_start = _offsets(self._map("documents.bin", np.dtype("<u4")))
        self.heldout = np.array(self._map("heldout.bin", np.dtype(np.uint8)), dtype=bool)
        self._check_shapes()

    def __repr__(self) -> str:
        documents, tokens = self.counts["documents"], self.counts["tokens"]
        return f"Corpus({str(self.path)!r}: {documents:,} documents, {tokens:,} tokens, {self.vocabulary:,} pieces)"

    @classmethod
    def open(cls, path: str | Path) -> Corpus:
        """Open a folder; sizes are checked, contents are not (`verify` does)."""
        return cls(path)

    build = staticmethod(builder.build)
    mark = mark.mark

    def __reduce__(self) -> tuple[Callable[[Path], Corpus], tuple[Path]]:
        """Another process opens the folder itself: nothing that is mapped is copied."""
        return Corpus.open, (self.path,)

    @property
    def counts(self) -> dict[str, int]:
        """How many tokens, words, sentences and documents there are, and what else was counted."""
        counts: dict[str, int] = self.manifest["counts"]
        return counts

    @cached_property
    def tokenizer(self) -> Tokenizer:
        """What made the tokens."""
        return Tokenizer.load(self.path)

    @property
    def pairs(self) -> bool:
        """Whether documents are pairs, each of a source and its target."""
        return self.manifest["options"].get("pairs") is not None

    @property
    def target_tokenizer(self) -> Tokenizer:
        """What made the tokens of the second texts of pairs."""
        return self.tokenizer.of_targets

    @cached_property
    def segmenter(self) -> Segmenter:
        """What found the words of this corpus, with the user's dictionary if there was one."""
        options = self.manifest["options"]
        if options.get("dictionary") is None:
            return segmenter(options["words"])
        if DICTIONARY not in self.manifest["files"]:
            raise CorpusError("the corpus does not hold its dictionary", where=self.path, repair=_REBUILD)
        return segmenter(options["words"], Dictionary.read(self.path / DICTIONARY))

    @cached_property
    def facts(self) -> CorpusFacts:
        """Vocabulary, special tokens and frequencies: what corruption draws random tokens by."""
        return CorpusFacts(self.vocabulary, self.specials, self._frequency, lambda: self.tokenizer.ordinary)

    @checked
    def documents(self, split: str = "train") -> NDArray[np.int64]:
        """The numbers of the documents of a split, ascending."""
        if split not in SPLITS:
            raise UnknownName("split", split, SPLITS)
        return np.flatnonzero(self.heldout if split == "heldout" else ~self.heldout)

    def verify(self) -> None:
        """Read every file and compare it with its checksum; once found whole, an open corpus is not read again."""
        if self._whole:
            return
        found = damage(self.path, self.manifest["files"], full=True)
        if found:
            raise CorpusError("; ".join(found), where=self.path, repair=_REBUILD)
        self._whole = True

    def _frequency(self) -> NDArray[np.int64]:
        total = np.zeros(self.vocabulary, dtype=np.int64)
        for start in range(0, self.tokens.size, _COUNT_BLOCK):
            total += np.bincount(self.tokens[start : start + _COUNT_BLOCK], minlength=self.vocabulary)
        return total

    def _map(self, name: str, dtype: np.dtype[Any]) -> NDArray[Any]:
        path = self.path / name
        if path.stat().st_size % dtype.itemsize or not path.stat().st_size:
            raise CorpusError(f"{name} is not a row of {dtype.itemsize}-byte numbers", where=self.path, repair=_REBUILD)
        return np.memmap(path, dtype=dtype, mode="r")

    def _check_shapes(self) -> None:
        sizes = {
            "flags.bin and tokens.bin": (self.flags.size, self.tokens.size),
            "sentences.bin and tokens.bin": (int(self.sentence_start[-1]), self.tokens.size),
            "documents.bin and sentences.bin": (int(self.document_start[-1]), self.sentence_start.size - 1),
            "heldout.bin and documents.bin": (self.heldout.size, self.document_start.size - 1),
        }
        for names, (one, other) in sizes.items():
            if one != other:
                raise CorpusError(f"{names} do not agree: {one} and {other}", where=self.path, repair=_REBUILD)


def _manifest(path: Path) -> dict[str, Any]:
    """The manifest of a folder whose files have the sizes it states."""
    file = path / MANIFEST
    if not file.is_file():
        what = "no such folder" if not path.exists() else "this is no corpus: it has no manifest.json"
        build = f"{path} --out {path.with_suffix('')}-corpus" if path.is_file() else f"FILES... --out {path}"
        raise CorpusError(what, where=path, repair=f"maskery corpus build {build}")
    try:
        manifest = json.loads(file.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise CorpusError(f"manifest.json cannot be read ({error})", where=path, repair=_REBUILD) from None
    if not isinstance(manifest, dict) or manifest.get("maskery") != "corpus":
        raise CorpusError(
            "this is no corpus: its manifest.json is of another kind",
            where=path,
            repair="maskery corpus build FILES... --out DIR, and give that DIR",
        )
    if manifest.get("format") != FORMAT:
        raise CorpusError(
            f"the corpus has format {manifest.get('format')}, this version reads {FORMAT}", where=path, repair=_REBUILD
        )
    if seal_broken(manifest):
        raise CorpusError(
            "manifest.json does not match its own checksum: some byte has changed since it was written",
            where=path,
            repair=_REBUILD,
        )
    found = _faults(manifest) or damage(path, manifest["files"], full=False)
    if found:
        raise CorpusError("; ".join(found), where=path, repair=_REBUILD)
    return manifest


def _faults(manifest: dict[str, Any]) -> list[str]:
    """What a manifest lacks, or holds in another form than this version writes."""
    forms = {"fingerprint": str, "vocabulary": int, "tokenizer": dict, "counts": dict, "notes": list, "options": dict}
    wrong = [key for key, form in forms.items() if not isinstance(manifest.get(key), form)]
    wrong += [] if _are_specials(manifest.get("specials"), manifest.get("vocabulary")) else ["specials"]
    theirs = manifest.get("target")
    if theirs is not None and not (
        isinstance(theirs, dict) and _are_specials(theirs.get("specials"), theirs.get("vocabulary"))
    ):
        wrong.append("target")
    listed: Any = manifest.get("files")
    wrong += [name for name in DATA if name not in listed] if is_described(listed) else ["files"]
    return [f"manifest.json lacks {key}, or has it in another form" for key in wrong]


def _are_specials(given: Any, vocabulary: Any) -> bool:
    """Whether there is a number inside the vocabulary for each; there may be no mask."""
    names = {field.name for field in fields(Specials)}
    if not isinstance(given, dict) or given.keys() != names or not isinstance(vocabulary, int):
        return False
    return all(
        (isinstance(number, int) and 0 <= number < vocabulary) or (name == "mask" and number is None)
        for name, number in given.items()
    )


def _offsets(lengths: NDArray[Any]) -> NDArray[np.int64]:
    offsets = np.zeros(lengths.size + 1, dtype=np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets
