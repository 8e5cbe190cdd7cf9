"""Word lists of a recipe, read before anything asks for them, so that a long reading shows how far it is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from maskery.corpus.mixture import Corpora
    from maskery.recipes.recipe import Recipe

_LARGE = 1 << 21
"""Bytes that take more than about a second."""


def prepare(recipe: Recipe, corpus: Corpora) -> None:
    """Read the similar words that the recipe asks for."""
    from maskery.cli.output import progress
    from maskery.knowledge.load import similar_words

    path = Path(recipe.knowledge.synonyms)
    if not recipe.corruption.replace.similar or not path.is_file() or path.stat().st_size < _LARGE:
        return
    with progress("similar words") as update:
        similar_words(recipe.knowledge, corpus.tokenizer, update)
