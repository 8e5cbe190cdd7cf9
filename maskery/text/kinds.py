"""Byte-level BPE, unigram and character tokenizers, made from their pieces. WordPiece has a file of its own.

`bpe` is RoBERTa's: bytes as letters, GPT-2's way of cutting text, a space belongs to the word behind it. Its frame of a
pair is that of our rows, <s> a </s> b </s>, because a model must be used as it was trained; RoBERTa's has </s> twice.
`unigram` and `char` write white space as "▁", one for a run of it. Their text is only composed (NFC), not folded: NFKC
would turn ，into , and ① into 1. Unigram pieces never reach over a run of Han characters, letters, or digits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers, processors
from tokenizers import Tokenizer as RustTokenizer

from maskery.text.wordpiece import NAMES, frame

BPE_LAYOUT = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")
UNIGRAM_LAYOUT = ("<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]")
SPACE = "▁"
_LETTERS = r"[\p{L}\p{M}&&[^\p{Han}]]+"
_RUN = rf"{SPACE}?(?:\p{{Han}}+|{_LETTERS}(?:['’]{_LETTERS})*|\p{{N}}+|[^{SPACE}\p{{L}}\p{{M}}\p{{N}}])|{SPACE}"


def bpe(numbers: Mapping[str, int], merges: Sequence[tuple[str, str]], lowercase: bool = False) -> RustTokenizer:
    """Byte-level BPE; `numbers` holds BPE_LAYOUT, the 256 letters for bytes, and what the merges make."""
    rust = RustTokenizer(models.BPE(dict(numbers), list(merges), unk_token="<unk>"))
    if lowercase:
        rust.normalizer = normalizers.Lowercase()
    rust.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    rust.decoder = decoders.ByteLevel()
    _add_specials(rust, BPE_LAYOUT, "<mask>")
    frame(rust, "<s>", "</s>")
    rust.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=True), rust.post_processor])
    return rust


def unigram(pieces: Sequence[tuple[str, float]], lowercase: bool = False) -> RustTokenizer:
    """Pieces with their log-probabilities; the first are UNIGRAM_LAYOUT."""
    rust = RustTokenizer(models.Unigram(list(pieces), UNIGRAM_LAYOUT.index("<unk>")))
    rust.normalizer = _composed(lowercase)
    rust.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Metaspace(SPACE, "first", False), pre_tokenizers.Split(Regex(_RUN), "isolated")]
    )
    rust.decoder = decoders.Metaspace(SPACE, "first", False)
    _add_specials(rust, UNIGRAM_LAYOUT, "[MASK]")
    frame(rust, "[CLS]", "[SEP]")
    return rust


def char(pieces: Sequence[str], lowercase: bool = False) -> RustTokenizer:
    """One token for each code point; piece number i is `pieces[i]`."""
    numbers = {piece: number for number, piece in enumerate(pieces)}
    rust = RustTokenizer(models.WordLevel(numbers, unk_token="[UNK]"))
    rust.normalizer = _composed(lowercase)
    rust.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Metaspace(SPACE, "never", False),
            pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated"),
        ]
    )
    rust.decoder = decoders.Metaspace(SPACE, "never", False)
    _add_specials(rust, NAMES, None)
    frame(rust, "[CLS]", "[SEP]")
    return rust


def _composed(lowercase: bool) -> normalizers.Normalizer:
    steps = [normalizers.NFC(), normalizers.Replace(Regex(r"\s+"), " ")]
    return normalizers.Sequence([*([normalizers.Lowercase()] if lowercase else []), *steps])


def _add_specials(rust: RustTokenizer, names: Sequence[str], greedy: str | None) -> None:
    """The token `greedy` takes the space before it, which belongs to the piece that it hides."""
    rust.add_special_tokens([AddedToken(name, lstrip=name == greedy, special=True, normalized=False) for name in names])
