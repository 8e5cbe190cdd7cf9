"""SentencePiece tokenizers whose pieces fairseq numbered anew, sentencepiece.bpe.model: XLM-RoBERTa's and CamemBERT's.

fairseq begins with its own four special tokens and puts the pieces of the file after them. In XLM-RoBERTa's numbers the
file's three special tokens are these; CamemBERT has both, and frames a text with the file's. <mask> is the last.
The file does not say whose it is: tokenizer_config.json or config.json beside it does.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, decoders, normalizers, pre_tokenizers, processors
from tokenizers import Tokenizer as RustTokenizer
from tokenizers.models import Unigram

from maskery.errors import InputError
from maskery.text import sentencepiece

FILE = "sentencepiece.bpe.model"
MASK = "<mask>"
_OF_THE_FILE = ("<unk>", "<s>", "</s>")
"""The first pieces of every file."""
_BEFORE: dict[str, tuple[str, ...]] = {
    "xlm-roberta": ("<s>", "<pad>", "</s>", "<unk>"),
    "camembert": ("<s>NOTUSED", "<pad>", "</s>NOTUSED", "<unk>", "<unk>NOTUSED", "<s>", "</s>"),
}
"""Whose tokenizer -> its first pieces, in place of the file's special tokens."""
_NEVER = -100.0
"""The score of a piece that no text is to be split into."""
CLASSES = {"xlm-roberta": "XLMRobertaTokenizer", "camembert": "CamembertTokenizer"}
"""Whose tokenizer -> what the Hugging Face tools call it."""


def read(folder: Path, settings: Mapping[str, Any]) -> tuple[RustTokenizer, str]:
    """The tokenizer of the file in a folder with these settings (tokenizer_config.json), and whose it is."""
    path, kind = folder / FILE, _kind(folder, settings)
    pieces, charsmap = sentencepiece.content(path)
    if tuple(each.text for each in pieces[:3]) != _OF_THE_FILE:
        raise InputError(
            f"does not begin with {', '.join(_OF_THE_FILE)}, as the file of every {kind} does",
            where=path,
            repair="fetch the file anew, or put the tokenizer.json of the model beside it",
        )
    before, after = _BEFORE[kind], pieces[3:]
    double = {*before, MASK}.intersection(each.text for each in after)
    if double:
        raise InputError(
            f"holds {min(double)} as a piece, which {kind} adds to it",
            where=path,
            repair="put the tokenizer.json of the model beside it",
        )
    scored = [(text, _NEVER if text == "<unk>NOTUSED" else 0.0) for text in before]
    scored += [(each.text, each.score) for each in after]
    rust = RustTokenizer(Unigram([*scored, (MASK, 0.0)], unk_id=before.index("<unk>"), byte_fallback=False))
    if charsmap:
        rust.normalizer = normalizers.Precompiled(charsmap)
    rust.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always")]
    )
    rust.decoder = decoders.Metaspace(replacement="▁", prepend_scheme="always")
    special = [*before, *(each.text for each in after if each.is_mark), MASK]
    rust.add_special_tokens([AddedToken(text, special=True, normalized=False, lstrip=text == MASK) for text in special])
    rust.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>",
        pair="<s> $A </s> </s> $B </s>",
        special_tokens=[(name, before.index(name)) for name in ("<s>", "</s>")],
    )
    return rust, kind


def _kind(folder: Path, settings: Mapping[str, Any]) -> str:
    """As the Hugging Face tools decide: by the tokenizer's class, then by the model's type."""
    stated = str(settings.get("tokenizer_class")).removesuffix("Fast")
    named = next((kind for kind, name in CLASSES.items() if name == stated), "")
    kind = named or _model_type(folder / "config.json")
    if kind not in _BEFORE:
        said = f"{stated} and {kind}" if kind and stated != "None" else kind or stated
        raise InputError(
            "its numbers depend on the model, and nothing beside it says which: "
            f"{'tokenizer_class and model_type are missing' if said == 'None' else f'{said} is neither of both'}",
            where=folder / FILE,
            repair='put the model\'s config.json beside it, or a tokenizer_config.json with "tokenizer_class": '
            '"XLMRobertaTokenizer" or "CamembertTokenizer"',
        )
    return kind


def _model_type(path: Path) -> str:
    """Of a config.json that can be read; one that cannot is the business of whoever opens the model."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return ""
    return str(found.get("model_type", "")) if isinstance(found, dict) else ""
