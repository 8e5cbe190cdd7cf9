"""WordPiece tokenizers in BERT's manner, made from a list of pieces: clean text, Han characters and punctuation apart.

MPNet's list is BERT's, with its special tokens, after four of fairseq's and before <mask>; it frames texts with these.

Departs from the origin in nothing that changes an id: the same normaliser, the same longest-match-first search,
words above 100 characters become [UNK].
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tokenizers import AddedToken
from tokenizers import Tokenizer as RustTokenizer
from tokenizers.decoders import WordPiece as WordPieceDecoder
from tokenizers.models import WordPiece
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer
from tokenizers.processors import RobertaProcessing, TemplateProcessing

from maskery.errors import InputError
from maskery.text.marks import CONTROL_MARK

NAMES = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
LONGEST_WORD = 100
FAIRSEQ = ("<s>", "<pad>", "</s>", "<unk>")
"""What MPNet's pieces begin with."""
_MPNET = (*FAIRSEQ, "[UNK]", "<mask>")
_SETTINGS = {
    "do_lower_case": "lowercase", "strip_accents": "strip_accents", "tokenize_chinese_chars": "handle_chinese_chars",
}  # fmt: skip
"""Key of tokenizer_config.json -> what the normaliser calls it."""
_KEPT = ("clean_text", *_SETTINGS.values())
_AS_WRITTEN = ("PreTrainedTokenizer", "TokenizersBackend")
"""Classes that take tokenizer.json as it is, and look at none of these keys."""


def assemble(pieces: Sequence[str], lowercase: bool) -> RustTokenizer:
    """The tokenizer whose piece number i is `pieces[i]`."""
    numbers = {piece: number for number, piece in enumerate(pieces)}
    rust = RustTokenizer(WordPiece(numbers, unk_token="[UNK]", max_input_chars_per_word=LONGEST_WORD))
    rust.normalizer = BertNormalizer(
        clean_text=True, handle_chinese_chars=True, strip_accents=None, lowercase=lowercase
    )
    rust.pre_tokenizer = BertPreTokenizer()
    rust.decoder = WordPieceDecoder(prefix="##", cleanup=True)
    # MPNet has <unk> from fairseq, and takes [UNK].
    special = [name for name in _MPNET if name != "<unk>"] if is_mpnet(pieces) else NAMES
    rust.add_special_tokens(
        [
            AddedToken(name, special=True, normalized=False, lstrip=name == "<mask>")
            for name in special
            if name in numbers
        ]
    )
    if is_mpnet(pieces):
        # In RoBERTa's frame all of a pair is of segment 0.
        ends = {name: (name, numbers[name]) for name in ("<s>", "</s>")}
        rust.post_processor = RobertaProcessing(ends["</s>"], ends["<s>"], trim_offsets=True, add_prefix_space=False)
    else:
        frame(rust, "[CLS]", "[SEP]")
    return rust


def obey(rust: RustTokenizer, settings: Mapping[str, Any]) -> list[str]:
    """Give the normaliser the values that tokenizer_config.json names, and return the keys that changed it. The
    classes of BERT and its like let them overrule tokenizer.json, in every version of transformers."""
    normaliser = _normaliser(rust)
    if not normaliser or str(settings.get("tokenizer_class")).removesuffix("Fast") in _AS_WRITTEN:
        return []
    told = settled(settings)
    changed = [key for key, value in told.items() if normaliser[_SETTINGS[key]] != value]
    if changed:
        rust.normalizer = BertNormalizer(**normaliser | {_SETTINGS[key]: told[key] for key in changed})
    return changed


def _normaliser(rust: RustTokenizer) -> dict[str, Any]:
    """What BERT's normaliser is set to; nothing where it is another. Asked of the object: a tokenizer whose numbers go
    far beyond its pieces ends the process when it is written as text."""
    found = rust.normalizer
    return {name: getattr(found, name) for name in _KEPT} if isinstance(found, BertNormalizer) else {}


def stated(rust: RustTokenizer) -> dict[str, bool]:
    """What tokenizer_config.json has to name of the normaliser, for whoever does not look into tokenizer.json."""
    usual = {"strip_accents": None, "tokenize_chinese_chars": True}
    found = {key: set_to for key, name in _SETTINGS.items() if (set_to := _normaliser(rust).get(name)) is not None}
    return {key: value for key, value in found.items() if key not in usual or value != usual[key]}


def settled(settings: Mapping[str, Any] | None) -> dict[str, bool]:
    """What tokenizer_config.json says of the normaliser."""
    return {key: value for key in _SETTINGS if isinstance(value := (settings or {}).get(key), bool)}


def is_mpnet(pieces: Sequence[str]) -> bool:
    return tuple(pieces[: len(FAIRSEQ)]) == FAIRSEQ and "<mask>" in pieces


def frame(rust: RustTokenizer, cls: str, sep: str) -> None:
    """BERT's frame: [CLS] a [SEP] b [SEP], segments 0 and 1."""
    rust.post_processor = TemplateProcessing(
        single=f"{cls}:0 $A:0 {sep}:0",
        pair=f"{cls}:0 $A:0 {sep}:0 $B:1 {sep}:1",
        special_tokens=[(name, rust.token_to_id(name)) for name in (cls, sep)],
    )


def read_vocabulary(path: Path) -> list[str]:
    """The pieces of a vocab.txt, one a line; the line number from 0 is the piece's number."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(
            f"not UTF-8 at byte {error.start}", where=path, repair="give a vocab.txt: one piece a line, in UTF-8"
        ) from None
    pieces = [line.removesuffix("\r") for line in text.split("\n")]
    while pieces and not pieces[-1]:
        pieces.pop()
    seen: dict[str, int] = {}
    for number, piece in enumerate(pieces, start=1):
        if not piece:
            raise InputError("an empty piece", where=f"{path}:{number}", repair="remove the blank line")
        if piece in seen:
            raise InputError(
                f"piece {piece!r} stands here and in line {seen[piece]}",
                where=f"{path}:{number}",
                repair="rename one of the two: a piece has one number",
            )
        seen[piece] = number
    missing = [name for name in (_MPNET if is_mpnet(pieces) else NAMES) if name not in seen]
    if missing:
        raise InputError(
            f"no line for {', '.join(missing)}", where=path, repair="add the missing pieces, each on its own line"
        )
    return pieces


def upper_case_pieces(pieces: Sequence[str]) -> int:
    """How many pieces hold a capital from A to Z, marks such as [MASK] and <S> apart."""
    capital = re.compile("[A-Z]")
    return sum(bool(capital.search(piece)) for piece in pieces if not CONTROL_MARK.fullmatch(piece))
