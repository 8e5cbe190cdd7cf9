"""Files of SentencePiece, and who reads which: the same format is numbered and framed in three ways."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from tokenizers import Tokenizer as RustTokenizer

from maskery.text import deberta, fairseq, sentencepiece

FILES = (sentencepiece.FILE, fairseq.FILE, deberta.FILE)
"""By the names under which models are published."""


class Read(NamedTuple):
    rust: RustTokenizer
    settings: dict[str, Any]
    note: str


def in_folder(folder: Path) -> Path | None:
    """The first file of SentencePiece in a folder."""
    return next((folder / name for name in FILES if (folder / name).is_file()), None)


def read(path: Path, settings: dict[str, Any]) -> Read:
    """The tokenizer of a file; `settings` as the tokenizer_config.json beside it has them. A file of no published name
    is read as spiece.model is."""
    if path.name == fairseq.FILE:
        rust, kind = fairseq.read(path.parent, settings)
        told = {"tokenizer_class": fairseq.CLASSES[kind], **settings}
        return Read(rust, told, f"made of {path.name}, numbered as {kind} does")
    if path.name == deberta.FILE:
        return Read(
            deberta.read(path, settings), {**settings, "tokenizer_class": deberta.CLASS}, f"made of {path.name}"
        )
    return Read(sentencepiece.read(path, settings), settings, f"made of {path.name}")
