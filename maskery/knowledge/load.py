"""The files that a recipe's `[knowledge]` names -> what corruption asks of them, made once for a file and tokenizer."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from itertools import chain, islice
from pathlib import Path

import numpy as np

from maskery.errors import InputError, TextError
from maskery.knowledge.config import KnowledgeConfig
from maskery.knowledge.lines import Progress
from maskery.knowledge.similar import SimilarWords
from maskery.knowledge.spelling import spellings
from maskery.knowledge.synonyms import Group, filled_lines, groups
from maskery.knowledge.vectors import MOST, Vectors, looks_like_vectors, neighbours, read_vectors
from maskery.text.tokenizer import Tokenizer

_MADE: dict[tuple[str, str], SimilarWords] = {}
_LANGUAGE = "give a file in the language of the corpus: a thesaurus, a list of synonyms or word vectors"


def fingerprints(config: KnowledgeConfig) -> dict[str, str]:
    """Key -> checksum of the file it names, for the state of a run."""
    return {key: _checksum(Path(path), f"knowledge.{key}") for key, path in config.plain().items() if path}


def similar_words(
    config: KnowledgeConfig, tokenizer: Tokenizer, progress: Progress | None = None
) -> SimilarWords | None:
    """The similar words of `config.synonyms`, as ids of the tokenizer; None if no file is named."""
    if not config.synonyms:
        return None
    path = Path(config.synonyms)
    place = (_checksum(path, "knowledge.synonyms"), tokenizer.fingerprint)
    if place not in _MADE:
        _MADE[place] = read_similar(path, tokenizer, progress)
    return _MADE[place]


def read_similar(path: str | Path, tokenizer: Tokenizer, progress: Progress | None = None) -> SimilarWords:
    """From a thesaurus, a plain list or a file of vectors; a file of no use is refused."""
    path = Path(path)
    lines = filled_lines(path)
    front = list(islice(lines, 2))
    if not front:
        raise TextError("holds no word", file=path, repair=_LANGUAGE)
    whole = chain(front, lines)
    if looks_like_vectors(front):
        made = _from_vectors(read_vectors(whole, path, _half(progress, 0)), tokenizer, _half(progress, 1))
    else:
        made = _from_groups(groups(whole, path), tokenizer, path)
    if not made.words and made.unknown:
        unknown = f"all {made.unknown:,} hold a token that it does not know"
        raise InputError(f"the tokenizer can write none of the words: {unknown}", where=path, repair=_LANGUAGE)
    if not made.with_similar:
        cause = f"none of the {made.words:,} words has another of like meaning with as many tokens"
        raise InputError(cause, where=path, repair=_LANGUAGE)
    return made


def _from_groups(found: list[Group], tokenizer: Tokenizer, path: Path) -> SimilarWords:
    if not found:
        raise TextError("no line holds two words of like meaning", file=path, repair="one group of synonyms a line")
    return SimilarWords(found, tokenizer)


def _from_vectors(vectors: Vectors, tokenizer: Tokenizer, progress: Progress) -> SimilarWords:
    lengths = np.stack([way.length for way in spellings(tokenizer, vectors.words)])
    length = lengths[(lengths > 0).argmax(axis=0), np.arange(len(vectors.words))]
    found = neighbours(vectors, np.where(length > 0, length, -1), progress)
    note = f"only the first {MOST:,} vectors are read" if vectors.more else ""
    return SimilarWords(found, tokenizer, unknown=int((length == 0).sum()), note=note)


def _half(progress: Progress | None, half: int) -> Progress:
    """Reading is one half of the work, comparing the other."""

    def tell(done: int, total: int) -> None:
        if progress is not None:
            progress(half * total + done, 2 * total)

    return tell


def _checksum(path: Path, key: str) -> str:
    try:
        stat = path.stat()
        return _digest(path, stat.st_size, stat.st_mtime_ns)
    except OSError as error:
        repair = f"--set {key}=FILE: a thesaurus, a list of synonyms or word vectors"
        raise InputError(f"{key} cannot be read ({error.strerror})", where=path, repair=repair) from None


@lru_cache(maxsize=16)
def _digest(path: Path, size: int, time: int) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
