"""CamemBERT as Hugging Face names it: RoBERTa's network; its SentencePiece tokenizer is in maskery.text.fairseq."""

from __future__ import annotations

from maskery.checkpoint.roberta import family_of

FAMILY = family_of("camembert", "Camembert", 30522)
