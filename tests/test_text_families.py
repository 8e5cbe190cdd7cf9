"""Tokenizers of published families: the ids of AutoTokenizer, of the file alone and of the folder that we write."""

from __future__ import annotations

import json

import pytest
import sentencepiece
import transformers
from family_tokenizers import CLASSES, write_all

from maskery.errors import InputError
from maskery.text.tokenizer import Tokenizer

PLAIN = [
    "the cat sat", "北京大学的学生", "mixed 北京 cat 😀🤖", "  odd \t white\n\nspace  ", "cafe\u0301 naïve", "don't x",
    "", " ", "unknown ж ☃ x", "1,00 3.14!", "line\r\nbreak", "[CLS] literal [SEP]", "<s> literal </s>",
    "the <mask> sat", "the [MASK] sat", "[UNK] and <unk> and <pad>",
]  # fmt: skip
FOLDED = ["Ｆｕｌｌ ① ﬁne", "北京，大学！", "zero\u200bwidth\u00a0nbsp\u3000ideographic"]
"""Texts that a SentencePiece file's table of characters changes."""


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    return write_all(tmp_path_factory.mktemp)


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
