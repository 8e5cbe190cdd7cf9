"""Small tokenizers in the files that published families have: made by sentencepiece and by transformers."""

from __future__ import annotations

import io
import json

import sentencepiece
import tokenizers
from oracle import transformers

LINES = [
    "the cat sat on the mat and looked at the dog", "北京 大学 的 学生 在 图书馆 里 看书", "我们喜欢自然语言处理",
    "emoji 😀 and 🤖 here", "Numbers 1,000 and 3.14!", "naïve résumé café — “quotes”",
] * 40  # fmt: skip
CLASSES = {
    "xlm-roberta": "XLMRobertaTokenizer", "camembert": "CamembertTokenizer", "deberta-v2": "DebertaV2Tokenizer",
    "mpnet": "MPNetTokenizer", "modernbert": "PreTrainedTokenizerFast",
}  # fmt: skip
DEBERTA = {
    "pad_id": 0, "bos_id": 1, "eos_id": 2, "unk_id": 3,
    "pad_piece": "[PAD]", "bos_piece": "[CLS]", "eos_piece": "[SEP]", "unk_piece": "[UNK]",
}  # fmt: skip
MPNET = [
    "<s>",
    "<pad>",
    "</s>",
    "<unk>",
    "[PAD]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "[MASK]",
    "the",
    "cat",
    "sat",
    "##s",
    "北",
    "京",
]
MPNET += [
    *"abcdefghijklmnopqrstuvwxyz0123456789,.!'",
    *(f"##{each}" for each in "abcdefghijklmnopqrtuvwxyz0"),
    "<mask>",
]


def pieces_file(path, **layout):
    written = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(LINES), model_writer=written, vocab_size=150, model_type="unigram", num_threads=1,
        hard_vocab_limit=False, character_coverage=1.0, minloglevel=2, **layout,
    )  # fmt: skip
    path.write_bytes(written.getvalue())


def modernbert(folder):
    """Byte-level BPE with BERT's special tokens after the pieces, as ModernBERT's is laid out."""
    rust = tokenizers.Tokenizer(tokenizers.models.BPE())
    rust.normalizer = tokenizers.normalizers.NFC()
    rust.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    rust.decoder = tokenizers.decoders.ByteLevel()
    alphabet = tokenizers.pre_tokenizers.ByteLevel.alphabet()
    rust.train_from_iterator(
        LINES, tokenizers.trainers.BpeTrainer(vocab_size=400, initial_alphabet=alphabet, show_progress=False)
    )
    names = ["[UNK]", "[CLS]", "[SEP]", "[PAD]", "[MASK]"]
    rust.add_special_tokens([tokenizers.AddedToken(each, lstrip=each == "[MASK]", special=True) for each in names])
    ends = [(each, rust.token_to_id(each)) for each in ("[CLS]", "[SEP]")]
    rust.post_processor = tokenizers.processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B [SEP]", special_tokens=ends
    )
    roles = {f"{each[1:-1].lower()}_token": each for each in names}
    transformers.PreTrainedTokenizerFast(tokenizer_object=rust, **roles).save_pretrained(folder)


def write_all(make_folder):
    """Every family's tokenizer in the files that it is published with, no tokenizer.json but ModernBERT's."""
    made = {}
    for kind, name in CLASSES.items():
        folder = made[kind] = make_folder(kind)
        (folder / "config.json").write_text(json.dumps({"model_type": kind}))
        if kind != "modernbert":
            (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": name}))
    for kind in ("xlm-roberta", "camembert"):
        pieces_file(made[kind] / "sentencepiece.bpe.model")
    pieces_file(made["deberta-v2"] / "spm.model", **DEBERTA)
    (made["mpnet"] / "vocab.txt").write_text("".join(f"{each}\n" for each in MPNET), encoding="utf-8")
    modernbert(made["modernbert"])
    return made
