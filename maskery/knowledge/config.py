"""The seventh input, what is known of words beyond the text: the `[knowledge]` table of a recipe."""

from __future__ import annotations

from maskery.config import Config


class KnowledgeConfig(Config):
    synonyms: str = ""
    """A file of words of like meaning: a thesaurus in the form of Cilin, plain groups, or word vectors as text."""
