"""Unigram tokenizers as sentencepiece writes them, spiece.model: XLNet's and ALBERT's.

The file is one protocol-buffer message: pieces with scores and kinds, and the table by which text is normalised. What
the authors' programs do besides, to text and to pieces such as `9,`, is done as the Hugging Face tools do it.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from tokenizers import AddedToken, decoders, normalizers, pre_tokenizers, processors
from tokenizers import Tokenizer as RustTokenizer
from tokenizers.models import Unigram

from maskery.errors import InputError
from maskery.text import wire

FILE = "spiece.model"
_UNKNOWN, _CONTROL, _USER = 2, 3, 4
_UNIGRAM = 1
_AFTER_A_DIGIT = 100.0
"""What the score of a piece such as `9,` loses, so that the comma stands alone."""
_AGAIN = "fetch the file anew"


class Piece(NamedTuple):
    text: str
    score: float
    kind: int

    @property
    def is_mark(self) -> bool:
        """Whether it stands for no text."""
        return self.kind in (_UNKNOWN, _CONTROL, _USER)


def read(path: Path, settings: Mapping[str, Any]) -> RustTokenizer:
    """The tokenizer of a file; `settings` (tokenizer_config.json) may say `do_lower_case` and `keep_accents`."""
    pieces, charsmap = content(path)
    unknown = [number for number, piece in enumerate(pieces) if piece.kind == _UNKNOWN]
    if len(unknown) != 1:
        raise InputError(f"has {len(unknown)} unknown pieces, not one", where=path, repair=_AGAIN)
    rust = RustTokenizer(
        Unigram([(each.text, _score(each)) for each in pieces], unk_id=unknown[0], byte_fallback=False)
    )
    rust.normalizer = _normaliser(pieces, charsmap, settings)
    rust.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always")]
    )
    rust.decoder = decoders.Metaspace(replacement="▁", prepend_scheme="always")
    special = [each.text for each in pieces if each.is_mark]
    rust.add_special_tokens(
        [AddedToken(text, special=True, normalized=False, lstrip=text in ("<mask>", "[MASK]")) for text in special]
    )
    numbers = {each.text: number for number, each in enumerate(pieces)}
    if "<cls>" in numbers and "<sep>" in numbers:
        rust.post_processor = processors.TemplateProcessing(
            single="$A:0 <sep>:0 <cls>:2",
            pair="$A:0 <sep>:0 $B:1 <sep>:1 <cls>:2",
            special_tokens=[(name, numbers[name]) for name in ("<sep>", "<cls>")],
        )
    return rust


def content(path: Path) -> tuple[list[Piece], bytes]:
    """The pieces of a file, and the table of characters by which text is normalised."""
    try:
        return _parsed(path.read_bytes())
    except (ValueError, struct.error) as error:
        raise InputError(f"cannot be read: {error}", where=path, repair=_AGAIN) from None


def _parsed(data: bytes) -> tuple[list[Piece], bytes]:
    model = wire.fields(data)
    pieces = [_piece(wire.fields(part)) for part in wire.messages(model, 1)]
    if not pieces:
        raise ValueError("holds no piece")
    trainer = [wire.fields(part) for part in wire.messages(model, 2)]
    kind = wire.number(trainer[-1], 3) if trainer and 3 in trainer[-1] else _UNIGRAM
    if kind != _UNIGRAM:
        raise ValueError(f"is of kind {kind}, not unigram")
    rules = [wire.fields(part) for part in wire.messages(model, 3)]
    tables = wire.messages(rules[-1], 2) if rules else []
    return pieces, tables[-1] if tables else b""


def _piece(found: wire.Fields) -> Piece:
    text = wire.messages(found, 1)
    if not text:
        raise ValueError("holds a piece without text")
    score = struct.unpack("<f", struct.pack("<I", wire.number(found, 2) & 0xFFFFFFFF))[0]
    return Piece(text[-1].decode("utf-8"), score, wire.number(found, 3) if 3 in found else 1)


def _score(piece: Piece) -> float:
    digit_and_comma = len(piece.text) > 1 and piece.text[-1] == "," and piece.text[-2].isdigit()
    return piece.score - _AFTER_A_DIGIT if digit_and_comma else piece.score


def _normaliser(pieces: list[Piece], charsmap: bytes, settings: Mapping[str, Any]) -> normalizers.Normalizer:
    lowercase = settings.get("do_lower_case")
    if not isinstance(lowercase, bool):
        ordinary = (each.text for each in pieces if not each.is_mark)
        lowercase = not any(character.isupper() for text in ordinary for character in text)
    steps: list[normalizers.Normalizer] = [normalizers.Replace("``", '"'), normalizers.Replace("''", '"')]
    if settings.get("keep_accents") is not True:
        steps += [normalizers.NFKD(), normalizers.StripAccents()]
    steps += [normalizers.Lowercase()] if lowercase else []
    steps += [normalizers.Precompiled(charsmap)] if charsmap else []
    return normalizers.Sequence(steps)
