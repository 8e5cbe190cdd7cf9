"""The seventh input, what is known of words beyond the text: the `[knowledge]` table of a recipe."""

from __future__ import annotations

from maskery.config import Config

SYNONYM_FILES = "a thesaurus, a list of synonyms, or a table of maskery words similar"
"""What `synonyms` may name."""


class KnowledgeConfig(Config):
    synonyms: str = ""
    """A file of words of like meaning: a table of `maskery words similar`, a thesaurus as Cilin, or plain groups."""
