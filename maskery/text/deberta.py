"""DeBERTa's tokenizer of versions 2 and 3, spm.model: a SentencePiece file that has [PAD], [CLS], [SEP] and [UNK] among
its pieces, and [MASK] after the last.

Text is normalised by the file's own table, as sentencepiece does it and the authors' code with it. transformers 5 reads
the file without the table (it composes only, NFC), so that ，and ① are unknown there. A folder that we write therefore
names no class of its own: every tool then takes tokenizer.json as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Regex, decoders, normalizers, pre_tokenizers
from tokenizers import Tokenizer as RustTokenizer
from tokenizers.models import Unigram

from maskery.errors import InputError
from maskery.text import sentencepiece
from maskery.text.wordpiece import frame

FILE = "spm.model"
CLASS = "PreTrainedTokenizerFast"
"""What is written as the tokenizer's class: one that leaves tokenizer.json as it is."""
MASK = "[MASK]"
_OF_THE_FILE = ("[PAD]", "[CLS]", "[SEP]", "[UNK]")


def read(path: Path, settings: Mapping[str, Any]) -> RustTokenizer:
    """The tokenizer of a file; `settings` (tokenizer_config.json) may say `do_lower_case` and `split_by_punct`."""
    pieces, charsmap = sentencepiece.content(path)
    scored = [(each.text, each.score) for each in pieces]
    numbers = {text: number for number, (text, _) in enumerate(scored)}
    missing = [name for name in _OF_THE_FILE if name not in numbers]
    if missing:
        raise InputError(
            f"holds no piece {', '.join(missing)}, as the file of every DeBERTa does",
            where=path,
            repair="fetch the file anew, or put the tokenizer.json of the model beside it",
        )
    scored += [] if MASK in numbers else [(MASK, 0.0)]
    rust = RustTokenizer(Unigram(scored, unk_id=numbers["[UNK]"], byte_fallback=False))
    rust.normalizer = _normaliser(charsmap, settings)
    spaces = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always")
    by_sign = [pre_tokenizers.Punctuation(behavior="isolated")] if settings.get("split_by_punct") is True else []
    rust.pre_tokenizer = pre_tokenizers.Sequence([*by_sign, spaces])
    rust.decoder = decoders.Metaspace(replacement="▁", prepend_scheme="always")
    special = dict.fromkeys([*_OF_THE_FILE, *(each.text for each in pieces if each.is_mark), MASK])
    rust.add_special_tokens([AddedToken(text, special=True, normalized=False) for text in special])
    frame(rust, "[CLS]", "[SEP]")
    return rust


def _normaliser(charsmap: bytes, settings: Mapping[str, Any]) -> normalizers.Normalizer:
    steps: list[normalizers.Normalizer] = [normalizers.Lowercase()] if settings.get("do_lower_case") is True else []
    steps += [normalizers.Precompiled(charsmap)] if charsmap else []
    steps += [normalizers.Replace(Regex(r"\s+"), " "), normalizers.Strip()]
    return normalizers.Sequence(steps)
