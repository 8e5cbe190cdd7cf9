"""Marks such as [MASK], [unused7] and <pad>: their look, and raw text without them. Also how pieces are read."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

from tokenizers import Tokenizer as RustTokenizer
from tokenizers import normalizers

CONTROL_MARK = re.compile(r"\[[^\[\]\s]+\]|<[^<>\s]+>")
"""The shape of pieces that stand for no text: [unused7], <pad>."""
_BYTE_PIECE = re.compile(r"<0x([0-9A-F]{2})>")
_NEVER = " \ufffe"
"""Behind a piece's name it makes one that no text holds: pre-tokenizers leave no space, and this is no character."""
_SHOWN = {" ": "▁", "\n": "↵", "\r": "↵", "\t": "⇥"}


def without_marks(rust: RustTokenizer, names: Iterable[str]) -> RustTokenizer:
    """The tokenizer for which marks are text, with the same numbers; `names` are marks in any case.

    The binding can be told not to look for special tokens, but a model that holds `<s>` among its pieces (as those
    made by SentencePiece do) still finds it in text. So every mark gets a name here that no text contains. Added words
    (a user's own terms) are still found.
    """
    content = json.loads(rust.to_str())
    marks = {*names} | {token["content"] for token in content["added_tokens"] if _is_mark(token)}
    for token in content["added_tokens"]:
        if token["content"] in marks:
            token |= {"content": token["content"] + _NEVER, "special": True}
    content["model"] = _renamed(content["model"], marks)
    content["post_processor"] = None
    plain = RustTokenizer.from_str(json.dumps(content))
    plain.encode_special_tokens = True
    return plain


def with_names(rust: RustTokenizer, names: Mapping[str, str]) -> RustTokenizer:
    """The same pieces with the same numbers, some of them under other names: marks from then on."""
    content = json.loads(rust.to_str())
    rest = [token for token in content["added_tokens"] if token["content"] not in names]
    plain = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    made = [{"id": rust.token_to_id(old), "content": new, **plain} for old, new in names.items()]
    vocabulary = content["model"]["vocab"]
    if isinstance(vocabulary, dict):
        content["model"]["vocab"] = {names.get(piece, piece): number for piece, number in vocabulary.items()}
    else:
        content["model"]["vocab"] = [[names.get(piece, piece), score] for piece, score in vocabulary]
    content["added_tokens"] = sorted([*rest, *made], key=lambda token: int(token["id"]))
    return RustTokenizer.from_str(json.dumps(content))


def lowercased(rust: RustTokenizer) -> RustTokenizer:
    """The same tokenizer with lower case as its first step."""
    made = RustTokenizer.from_str(rust.to_str())
    steps: list[normalizers.Normalizer] = [normalizers.Lowercase()]
    made.normalizer = normalizers.Sequence(steps if rust.normalizer is None else [*steps, rust.normalizer])
    return made


Part = tuple[str, int]
"""A mark of a row, or one of the texts, "A" and "B", with its segment."""


def framed(rust: RustTokenizer, single: Sequence[Part], pair: Sequence[Part]) -> RustTokenizer:
    """The same tokenizer that puts one text, and two, between other marks."""
    content = json.loads(rust.to_str())
    names = {name for name, _ in (*single, *pair)} - {"A", "B"}

    def written(parts: Sequence[Part]) -> list[dict[str, Any]]:
        kinds = [("Sequence" if name in ("A", "B") else "SpecialToken", name, segment) for name, segment in parts]
        return [{kind: {"id": name, "type_id": segment}} for kind, name, segment in kinds]

    template = {
        "type": "TemplateProcessing",
        "single": written(single),
        "pair": written(pair),
        "special_tokens": {
            name: {"id": name, "ids": [rust.token_to_id(name)], "tokens": [name]} for name in sorted(names)
        },
    }
    before = content["post_processor"] or {}
    bytes_of = [each for each in (before, *before.get("processors", ())) if each.get("type") == "ByteLevel"]
    content["post_processor"] = {"type": "Sequence", "processors": [*bytes_of, template]} if bytes_of else template
    return RustTokenizer.from_str(json.dumps(content))


def _is_mark(token: dict[str, Any]) -> bool:
    return bool(token["special"] or CONTROL_MARK.fullmatch(token["content"]))


def _renamed(model: dict[str, Any], marks: set[str]) -> dict[str, Any]:
    def name(piece: str) -> str:
        return piece + _NEVER if piece in marks else piece

    vocabulary = model["vocab"]
    if isinstance(vocabulary, dict):
        vocabulary = {name(piece): number for piece, number in vocabulary.items()}
    else:
        vocabulary = [[name(piece), score] for piece, score in vocabulary]
    model = {**model, "vocab": vocabulary}
    if model.get("unk_token") is not None:
        model["unk_token"] = name(model["unk_token"])
    if "merges" in model:
        model["merges"] = [pair for pair in model["merges"] if marks.isdisjoint([*pair, "".join(pair)])]
    return model


def is_byte_level(rust: RustTokenizer) -> bool:
    """Whether the letters of pieces stand for bytes, as in GPT-2 and RoBERTa."""
    content = json.loads(rust.to_str())
    return '"ByteLevel"' in json.dumps([content["pre_tokenizer"], content["decoder"]])


@cache
def _byte_letters() -> dict[str, int]:
    """The letter that stands for each byte: itself where it can be seen, else the next free one from 256 on."""
    seen = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = [byte for byte in range(256) if byte not in seen]
    return {chr(byte): byte for byte in seen} | {chr(256 + n): byte for n, byte in enumerate(hidden)}


def readable(piece: str, byte_level: bool) -> str:
    """A piece for the eye: a space as ▁, a byte that is only a part of a character as <E4>."""
    found = _BYTE_PIECE.fullmatch(piece)
    if found:
        return f"<{found[1]}>"
    letters = _byte_letters()
    if not byte_level or not all(letter in letters for letter in piece):
        return piece
    text = bytes(letters[letter] for letter in piece).decode("utf-8", "surrogateescape")
    return "".join(f"<{ord(c) - 0xDC00:02X}>" if 0xDC80 <= ord(c) <= 0xDCFF else _SHOWN.get(c, c) for c in text)
