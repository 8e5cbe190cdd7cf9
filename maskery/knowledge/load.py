"""The files that a recipe's `[knowledge]` names -> what corruption asks of them, made once for a file and tokenizer."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from pathlib import Path

from maskery.errors import InputError
from maskery.knowledge.config import KnowledgeConfig
from maskery.knowledge.similar import SimilarWords
from maskery.knowledge.synonyms import groups
from maskery.text.tokenizer import Tokenizer

_MADE: dict[tuple[str, str], SimilarWords] = {}


def fingerprints(config: KnowledgeConfig) -> dict[str, str]:
    """Key -> checksum of the file it names, for the state of a run."""
    return {key: _checksum(Path(path), f"knowledge.{key}") for key, path in config.plain().items() if path}


def similar_words(config: KnowledgeConfig, tokenizer: Tokenizer) -> SimilarWords | None:
    """The similar words of `config.synonyms`, as ids of the tokenizer; None if no file is named."""
    if not config.synonyms:
        return None
    path = Path(config.synonyms)
    place = (_checksum(path, "knowledge.synonyms"), tokenizer.fingerprint)
    if place not in _MADE:
        _MADE[place] = SimilarWords(groups(path), tokenizer)
        if not _MADE[place].words_with_a_like():
            raise InputError(
                "no word has another of like meaning with as many tokens",
                where=path,
                repair="give a file in the language of the corpus: a thesaurus, a list of synonyms or word vectors",
            )
    return _MADE[place]


def _checksum(path: Path, key: str) -> str:
    try:
        stat = path.stat()
        return _digest(path, stat.st_size, stat.st_mtime_ns)
    except OSError as error:
        raise InputError(f"{key} cannot be read ({error.strerror})", where=path, repair="check the name") from None


@lru_cache(maxsize=16)
def _digest(path: Path, size: int, time: int) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
