"""What a run says and keeps of the word lists it reads: similar words, and the marks that its corpora have."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from maskery.errors import RecipeError
from maskery.feed import Feed
from maskery.knowledge.config import KnowledgeConfig
from maskery.knowledge.load import fingerprints

_MARKS = {"phrase": "phrases", "entity": "entities"}
"""Unit -> the marks of a corpus that it takes whole."""


def require_same(state: dict[str, Any], config: KnowledgeConfig, where: Path) -> None:
    """Resuming reads the word lists the run was started with."""
    for key, checksum in fingerprints(config).items():
        if (then := state.get("knowledge", {}).get(key)) != checksum:
            raise RecipeError(
                f"knowledge.{key}: the run was started with a file of checksum {str(then)[:12]}, "
                f"{config.plain()[key]} now has {checksum[:12]}",
                where=where,
                repair="resume with the file it was started with",
            )


def tell(feed: Feed) -> list[str]:
    """How many similar words there are, and which units find no mark in a corpus; one sentence each."""
    return [*_similar(feed), *_unmarked(feed)]


def _similar(feed: Feed) -> list[str]:
    name, similar = feed.recipe.knowledge.synonyms, feed.similar
    if similar is None:
        return [f"knowledge.synonyms = {name} is not read: corruption.replace.similar is 0"] if name else []
    left_out = f"; {similar.unknown:,} left out: with a token unknown to the tokenizer" if similar.unknown else ""
    have = f"{similar.with_similar:,} have a similar one of as many tokens"
    return [f"similar words: {similar.words:,} of {name}, {have}{left_out}"]


def _unmarked(feed: Feed) -> list[str]:
    units = [unit for unit in dict.fromkeys(feed.recipe.corruption.units) if unit in _MARKS]
    return [
        f"{part.path} has no marked {_MARKS[unit]}: unit {unit!r} takes words there "
        f"(maskery corpus mark {part.path} --{_MARKS[unit]} FILE --out DIR)"
        for part in feed.parts
        for unit in units
        if not part.manifest["options"].get("marks", {}).get(_MARKS[unit], {}).get("matches")
    ]
