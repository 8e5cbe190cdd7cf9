"""The files that a recipe's `[knowledge]` names -> what corruption asks of them, made once for a file and tokenizer."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

from maskery.errors import InputError, TextError
from maskery.knowledge.config import SYNONYM_FILES, KnowledgeConfig
from maskery.knowledge.lines import Progress
from maskery.knowledge.similar import SimilarWords
from maskery.knowledge.synonyms import Group, filled_lines, groups, looks_like_vectors
from maskery.knowledge.table import SimilarTable, is_table
from maskery.text.tokenizer import Tokenizer

_MADE: dict[tuple[str, str], SimilarWords] = {}
_LANGUAGE = f"give a file in the language of the corpus: {SYNONYM_FILES}"


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
    """From a table, a thesaurus or a plain list; a file of no use is refused."""
    path = Path(path)
    made = SimilarWords(_groups(path, tokenizer, progress), tokenizer)
    if not made.words and made.unknown:
        unknown = f"all {made.unknown:,} hold a token that it does not know"
        raise InputError(f"the tokenizer can write none of the words: {unknown}", where=path, repair=_LANGUAGE)
    if not made.with_similar:
        cause = f"none of the {made.words:,} words has another of like meaning with as many tokens"
        raise InputError(cause, where=path, repair=_LANGUAGE)
    return made


def _groups(path: Path, tokenizer: Tokenizer, progress: Progress | None) -> Iterable[Group]:
    if path.is_file() and is_table(path):
        table = SimilarTable.read(path, progress)
        table.require(tokenizer, path)
        return table.groups()
    if path.is_file() and looks_like_vectors(path):
        raise TextError(
            "these are word vectors, from which a table has to be made first", file=path, repair=_table(path)
        )
    found = groups(filled_lines(path, progress), path)
    if not found:
        raise TextError("no line holds two words of like meaning", file=path, repair="one group of synonyms a line")
    return found


def _table(source: Path) -> str:
    return f"maskery words similar {source} --corpus DIR --out FILE, and name that FILE"


def _checksum(path: Path, key: str) -> str:
    try:
        stat = path.stat()
        return _digest(path, stat.st_size, stat.st_mtime_ns)
    except IsADirectoryError:
        raise InputError(f"{key} names a folder, not a file", where=path, repair=_table(path)) from None
    except OSError as error:
        repair = f"--set {key}=FILE: {SYNONYM_FILES}"
        raise InputError(f"{key} cannot be read ({error.strerror})", where=path, repair=repair) from None


@lru_cache(maxsize=16)
def _digest(path: Path, size: int, time: int) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
