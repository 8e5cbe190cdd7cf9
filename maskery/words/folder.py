"""The folder of word vectors, written whole or not at all and checked when it is read."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from maskery.errors import ExistsError, InputError
from maskery.files import (
    MANIFEST,
    damage,
    describe,
    is_described,
    new_folder,
    require_writable_around,
    seal_broken,
    sealed,
    write_bytes,
    write_json,
    write_text,
    written_by_library,
)
from maskery.words.subwords import Subwords

if TYPE_CHECKING:
    from maskery.words.vectors import WordVectors

FORMAT = 1
WORDS, COUNTS, VECTORS, STATE = "words.txt", "counts.bin", "vectors.safetensors", "state"
_TRAIN = "train them anew: maskery words train CORPUS --out DIR"
_SUBWORDS = ("shortest", "longest", "buckets", "seed")


def write(vectors: WordVectors, path: Path, *, replace: bool) -> Path:
    if path.exists() and not replace:
        raise ExistsError("is already there", where=path, repair="give another folder, or remove it")
    require_writable_around(path)
    _check_lines(vectors.words)
    with new_folder(path) as made:
        write_text(made / WORDS, "".join(f"{word}\n" for word in vectors.words))
        write_bytes(made / COUNTS, vectors.counts.astype("<i8").tobytes())
        arrays: dict[str, NDArray[Any]] = {"vectors": vectors.matrix}
        parts: dict[str, Any] = {}
        if vectors.subwords is not None:
            arrays |= {"ngrams": vectors.subwords.matrix, "ngram_buckets": vectors.subwords.bucket}
            parts = {"subwords": {name: getattr(vectors.subwords, name) for name in _SUBWORDS}}
        write_arrays(made / VECTORS, arrays)
        shape = {"words": len(vectors), "width": vectors.width, **parts}
        listed = {"files": describe(made, [WORDS, COUNTS, VECTORS])}
        head = {"maskery": "words", "format": FORMAT}
        write_json(made / MANIFEST, sealed({**head, **shape, "facts": vectors.facts, **listed}))
    return path


def write_arrays(path: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    with written_by_library(path):
        save_file(dict(arrays), path)


def _check_lines(words: Sequence[str]) -> None:
    for word in words:
        if not word or "\n" in word or "\r" in word:
            raise InputError(f"{word!r} cannot be a line of {WORDS}", repair="leave this word out")


def read(path: Path) -> WordVectors:
    from maskery.words.vectors import WordVectors

    manifest = _manifest(path)
    found = damage(path, manifest["files"], full=True)
    if found:
        raise InputError("; ".join(found), where=path, repair=_TRAIN)
    words = (path / WORDS).read_text(encoding="utf-8").split("\n")[:-1]
    counts = np.frombuffer((path / COUNTS).read_bytes(), dtype="<i8")
    try:
        arrays = load_file(path / VECTORS)
        subwords = _subwords(manifest.get("subwords"), arrays)
        return WordVectors(words, counts, arrays["vectors"], manifest["facts"], subwords=subwords)
    except (SafetensorError, KeyError, TypeError) as error:
        raise InputError(f"{VECTORS} cannot be read ({error})", where=path, repair=_TRAIN) from None
    except InputError as error:
        raise InputError(error.cause, where=path, repair=error.repair) from None


def _subwords(given: dict[str, int] | None, arrays: dict[str, NDArray[Any]]) -> Subwords | None:
    if given is None:
        return None
    numbers = {name: int(given[name]) for name in _SUBWORDS}
    return Subwords(bucket=arrays["ngram_buckets"], matrix=arrays["ngrams"], **numbers)


def _manifest(path: Path) -> dict[str, Any]:
    file = path / MANIFEST
    if (path / STATE).is_dir() and not file.is_file():
        raise InputError(
            "the training of these vectors has not ended",
            where=path,
            repair=f"let it go on: maskery words train CORPUS --out {path} ... --resume",
        )
    if not file.is_file():
        what = "no word vectors here: there is no manifest.json" if path.exists() else "no such folder or file"
        raise InputError(what, where=path, repair="give a folder made by maskery words train, or a file of word2vec")
    try:
        manifest = json.loads(file.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{MANIFEST} cannot be read ({error})", where=path, repair=_TRAIN) from None
    if not isinstance(manifest, dict) or manifest.get("maskery") != "words":
        raise InputError(
            "these are no word vectors: the manifest.json is of another kind",
            where=path,
            repair="give a folder made by maskery words train, or a file of word2vec",
        )
    if manifest.get("format") != FORMAT:
        cause = f"the vectors have format {manifest.get('format')}, this version reads {FORMAT}"
        raise InputError(cause, where=path, repair=_TRAIN)
    files: Any = manifest.get("files")
    whole = is_described(files) and {WORDS, COUNTS, VECTORS} <= files.keys() and isinstance(manifest.get("facts"), dict)
    if seal_broken(manifest) or not whole:
        cause = "manifest.json does not match its own checksum: some byte has changed since it was written"
        raise InputError(cause, where=path, repair=_TRAIN)
    return manifest
