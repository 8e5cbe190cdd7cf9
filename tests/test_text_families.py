"""Tokenizers of published families: the ids of AutoTokenizer, of the file alone and of the folder that we write."""

from __future__ import annotations

import io
import json

import pytest
import sentencepiece
import tokenizers
import transformers
from oracle import SIZES  # noqa: F401  (silences transformers and keeps it off the network)

from maskery.errors import InputError
from maskery.text.tokenizer import Tokenizer

LINES = [
    "the cat sat on the mat and looked at the dog", "北京 大学 的 学生 在 图书馆 里 看书", "我们喜欢自然语言处理",
    "emoji 😀 and 🤖 here", "Numbers 1,000 and 3.14!", "naïve résumé café — “quotes”",
] * 40  # fmt: skip
PLAIN = [
    "the cat sat", "北京大学的学生", "mixed 北京 cat 😀🤖", "  odd \t white\n\nspace  ", "cafe\u0301 naïve", "don't x",
    "", " ", "unknown ж ☃ x", "1,00 3.14!", "line\r\nbreak", "[CLS] literal [SEP]", "<s> literal </s>",
    "the <mask> sat", "the [MASK] sat", "[UNK] and <unk> and <pad>",
]  # fmt: skip
FOLDED = ["Ｆｕｌｌ ① ﬁne", "北京，大学！", "zero\u200bwidth\u00a0nbsp\u3000ideographic"]
"""Texts that a SentencePiece file's table of characters changes."""
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


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Every family's tokenizer in the files that it is published with, no tokenizer.json but ModernBERT's."""
    made = {}
    for kind, name in CLASSES.items():
        folder = made[kind] = tmp_path_factory.mktemp(kind)
        (folder / "config.json").write_text(json.dumps({"model_type": kind}))
        if kind != "modernbert":
            (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": name}))
    for kind in ("xlm-roberta", "camembert"):
        pieces_file(made[kind] / "sentencepiece.bpe.model")
    pieces_file(made["deberta-v2"] / "spm.model", **DEBERTA)
    (made["mpnet"] / "vocab.txt").write_text("".join(f"{each}\n" for each in MPNET), encoding="utf-8")
    modernbert(made["modernbert"])
    return made


def assert_same(ours, theirs, texts):
    for text in texts:
        assert ours.encode(text)[0] == theirs(text)["input_ids"], text
    for left, right in ((texts[0], texts[1]), (texts[2], " "), (texts[3], texts[0])):
        assert ours.encode(left, right)[0] == theirs(left, right)["input_ids"], (left, right)


@pytest.mark.parametrize("kind", CLASSES)
def test_ids_and_pairs_are_those_of_auto_tokenizer(kind, folders):
    ours, theirs = Tokenizer.load(folders[kind]), transformers.AutoTokenizer.from_pretrained(folders[kind])
    assert_same(ours, theirs, PLAIN if kind == "deberta-v2" else PLAIN + FOLDED)
    assert ours.vocabulary == len(theirs)
    specials = {role: getattr(theirs, f"{role}_token_id") for role in ("pad", "unk", "cls", "sep", "mask")}
    assert {role: getattr(ours.specials, role) for role in specials} == specials
    if kind not in ("mpnet", "modernbert"):
        assert "made of" in ours.note


@pytest.mark.parametrize("kind", CLASSES)
def test_the_folder_that_we_write_gives_the_same_ids_there(kind, folders, tmp_path):
    ours = Tokenizer.load(folders[kind])
    ours.save(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps({"model_type": kind}))
    assert_same(ours, transformers.AutoTokenizer.from_pretrained(tmp_path), PLAIN + FOLDED)
    again = Tokenizer.load(tmp_path)
    assert [again.encode(text) for text in PLAIN + FOLDED] == [ours.encode(text) for text in PLAIN + FOLDED]


@pytest.mark.parametrize("kind", ["xlm-roberta", "camembert", "deberta-v2"])
def test_raw_text_is_split_as_sentencepiece_splits_it(kind, folders):
    """With the table of characters, which transformers 5 leaves out for DeBERTa."""
    folder = folders[kind]
    (file,) = folder.glob("*.model")
    raw, ours = sentencepiece.SentencePieceProcessor(model_file=str(file)), Tokenizer.load(folder)
    plain = [text for text in PLAIN + FOLDED if not set("<[") & set(text) and "\u0301" not in text]
    for text in plain:
        known = [piece if raw.piece_to_id(piece) != raw.unk_id() else None for piece in raw.encode(text, out_type=str)]
        unknown = ours.names["unk"]
        mine = [None if each == unknown else each for each in ours.tokens(ours.encode_marked(text))]
        assert mine == known, text


def test_a_file_by_its_path_is_read_as_its_name_says(folders):
    for kind in ("xlm-roberta", "deberta-v2"):
        (file,) = folders[kind].glob("*.model")
        by_path, by_folder = Tokenizer.load(file), Tokenizer.load(folders[kind])
        assert by_path.encode("the cat") == by_folder.encode("the cat")


def test_deberta_settings(folders, tmp_path):
    (tmp_path / "spm.model").write_bytes((folders["deberta-v2"] / "spm.model").read_bytes())
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"do_lower_case": True}))
    assert Tokenizer.load(tmp_path).encode("THE CAT") == Tokenizer.load(folders["deberta-v2"]).encode("the cat")
    (tmp_path / "tokenizer_config.json").write_text(
        json.dumps({"split_by_punct": True, "tokenizer_class": "DebertaV2Tokenizer"})
    )
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "deberta-v2"}))
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
    assert Tokenizer.load(tmp_path).encode("1,000 x.y")[0] == theirs("1,000 x.y")["input_ids"]


def test_a_file_without_debertas_special_tokens_is_refused(folders, tmp_path):
    (tmp_path / "spm.model").write_bytes((folders["xlm-roberta"] / "sentencepiece.bpe.model").read_bytes())
    with pytest.raises(InputError, match=r"holds no piece \[PAD\], \[CLS\], \[SEP\], \[UNK\]") as refused:
        Tokenizer.load(tmp_path)
    assert "tokenizer.json" in refused.value.repair


def test_a_fairseq_file_that_nobody_owns_is_refused(folders, tmp_path):
    (tmp_path / "sentencepiece.bpe.model").write_bytes(
        (folders["xlm-roberta"] / "sentencepiece.bpe.model").read_bytes()
    )
    with pytest.raises(InputError, match="tokenizer_class and model_type are missing") as refused:
        Tokenizer.load(tmp_path)
    assert "config.json" in refused.value.repair
