"""Pieces to the files of a store, streamed: memory holds one piece and a few numbers for each document.

    tokens.bin     uint16, or uint32 for vocabularies above 65,536
    flags.bin      uint8, a `Flag` for each token
    sentences.bin  uint32, tokens of each sentence
    documents.bin  uint32, sentences of each document
    heldout.bin    uint8, 1 for documents set aside

A document is set aside by the hash of its text, so its place, the other documents and the run do not matter, and equal
documents, if they are kept at all, fall on the same side.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maskery.corpus.encode import Flag, Piece

FORMAT = 1
ENOUGH_FOR_TWO = 10
"""Documents of which two may be held out whatever the share says."""
DATA = ("tokens.bin", "flags.bin", "sentences.bin", "documents.bin", "heldout.bin")
DICTIONARY = "dictionary.txt"
"""The words of the user's dictionary, where there was one: later views find words as the build did."""


def token_dtype(vocabulary: int) -> np.dtype[np.unsignedinteger]:
    return np.dtype("<u2" if vocabulary <= 1 << 16 else "<u4")


def fingerprint(described: Mapping[str, Mapping[str, Any]], tokenizer: str) -> str:
    """Of a store's data and its tokenizer: equal for corpora that training cannot tell apart."""
    checksums = "".join(f"{name} {described[name]['sha256']}\n" for name in sorted(DATA))
    return sha256(f"{checksums}{tokenizer}\n".encode()).hexdigest()


class StoreWriter:
    def __init__(self, folder: Path, vocabulary: int) -> None:
        self._folder = folder
        self._dtype = token_dtype(vocabulary)
        self._sizes = array("L")
        """Sentences of every document begun, also of those without any."""
        self.strange: Counter[str] = Counter()
        """What was unknown, by the characters to blame."""
        self.counts = {"tokens": 0, "sentences": 0, "words": 0, "unknown": 0, "straddling": 0}

    def add(self, piece: Piece, *, continues: bool) -> None:
        """Append a piece; `continues` says that its first part belongs to the document of the part before it."""
        flags, parts = piece.flags, piece.parts.tolist()
        if continues:
            if self._sizes[-1] and parts[0]:
                flags = flags.copy()
                flags[0] &= ~np.uint8(Flag.DOCUMENT)
            self._sizes[-1] += parts.pop(0)
        self._sizes.extend(parts)
        self._append("tokens.bin", piece.tokens.astype(self._dtype))
        self._append("flags.bin", flags)
        self._append("sentences.bin", piece.sentences.astype("<u4"))
        self.counts["tokens"] += piece.tokens.size
        self.counts["sentences"] += piece.sentences.size
        self.counts["words"] += int(np.count_nonzero(flags & Flag.WORD))
        self.counts["unknown"] += piece.unknown
        self.strange.update(piece.strange)
        self.counts["straddling"] += piece.straddling

    def finish(self, hashes: NDArray[np.uint64], share: float) -> list[str]:
        """Write what is known of documents (`hashes`: one for each begun); what was decided is returned."""
        sizes = np.array(self._sizes, dtype=np.int64)
        kept = sizes > 0
        heldout, notes = hold_out(hashes[kept], share)
        self._append("documents.bin", sizes[kept].astype("<u4"))
        self._append("heldout.bin", heldout.astype(np.uint8))
        self.counts["documents"] = int(np.count_nonzero(kept))
        self.counts["empty_documents"] = int(np.count_nonzero(~kept))
        self.counts["heldout_documents"] = int(np.count_nonzero(heldout))
        return notes

    def _append(self, name: str, values: NDArray[np.generic]) -> None:
        with open(self._folder / name, "ab") as file:
            file.write(values.tobytes())


def hold_out(hashes: NDArray[np.uint64], share: float) -> tuple[NDArray[np.bool_], list[str]]:
    """Which documents are set aside: those whose hash, as a number in [0, 1), is below `share`; two at least, if there
    are enough, for rows whose second segment comes from another document."""
    edge = np.uint64(min(int(share * 2.0**64), 2**64 - 1))
    chosen = hashes < edge
    different = np.unique(hashes)
    if share > 0 and different.size >= ENOUGH_FOR_TWO and np.count_nonzero(different < edge) < 2:
        note = f"the hash held out {np.count_nonzero(chosen)} documents: the two with the smallest hashes are taken"
        return hashes <= different[1], [note]
    if share == 0 or (chosen.any() and not chosen.all()):
        return chosen, []
    if hashes.size == 0 or (hashes == hashes[0]).all():
        return np.zeros(hashes.shape, dtype=bool), ["nothing is held out: there is only one document (text of its own)"]
    if chosen.all():
        return hashes != hashes.max(), ["the hash held out every document: the one with the largest hash is kept"]
    return hashes == hashes.min(), ["the hash held out no document: the one with the smallest hash is taken"]
