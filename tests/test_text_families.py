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


LETTERS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "Cat", "北", "京", "北京", "##京", "é", "e"]


def wordpiece_folder(folder, pieces=LETTERS, kind="bert", whole=True, **settings):
    """A BERT's or MPNet's, lower case in tokenizer.json, whatever tokenizer_config.json says."""
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({"model_type": kind}))
    (folder / "vocab.txt").write_text("".join(f"{each}\n" for each in pieces), encoding="utf-8")
    if whole:
        transformers.AutoTokenizer.from_pretrained(folder).save_pretrained(folder)
        (folder / "vocab.txt").unlink(missing_ok=True)
    named = {"tokenizer_class": "MPNetTokenizer" if kind == "mpnet" else "BertTokenizer"}
    (folder / "tokenizer_config.json").write_text(json.dumps(named | settings))
    return folder


@pytest.mark.parametrize("whole", [True, False], ids=["tokenizer.json", "vocab.txt"])
@pytest.mark.parametrize("settings", [
    {"do_lower_case": False}, {"do_lower_case": False, "strip_accents": True},
    {"do_lower_case": True, "strip_accents": False}, {"do_lower_case": True, "tokenize_chinese_chars": False},
], ids=str)  # fmt: skip
@pytest.mark.parametrize("kind", ["bert", "mpnet"])
def test_tokenizer_config_overrules_the_normaliser(kind, settings, whole, tmp_path):
    """As transformers has it for the classes of BERT and its like."""
    pieces = LETTERS if kind == "bert" else ["<s>", "<pad>", "</s>", "<unk>", *LETTERS, "<mask>"]
    folder = wordpiece_folder(tmp_path / "a", pieces, kind, whole, **settings)
    ours, theirs = Tokenizer.load(folder), transformers.AutoTokenizer.from_pretrained(folder)
    texts = ["Cat the é e", "北京 cat", "THE"]
    assert [ours.encode(each)[0] for each in texts] == [theirs(each)["input_ids"] for each in texts]
    ours.save(tmp_path / "b")
    again = transformers.AutoTokenizer.from_pretrained(tmp_path / "b")
    assert [ours.encode(each)[0] for each in texts] == [again(each)["input_ids"] for each in texts]
    assert [Tokenizer.load(tmp_path / "b").encode(each) for each in texts] == [ours.encode(each) for each in texts]


def test_a_class_that_takes_tokenizer_json_as_it_is(tmp_path):
    folder = wordpiece_folder(tmp_path / "a", tokenizer_class="PreTrainedTokenizerFast", do_lower_case=False)
    ours, theirs = Tokenizer.load(folder), transformers.AutoTokenizer.from_pretrained(folder)
    assert ours.tokens(ours.encode_marked("Cat")) == ["cat"] == theirs.tokenize("Cat")
    assert ours.note == "as written in tokenizer.json"


def test_a_cased_tokenizer_json_is_written_so_that_others_keep_the_case(tmp_path):
    """A folder that does not name the case: transformers would put texts in lower case."""
    folder = wordpiece_folder(tmp_path / "a", do_lower_case=False)
    Tokenizer.load(folder).save(tmp_path / "b")
    (tmp_path / "b/tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "BertTokenizer"}))
    ours = Tokenizer.load(tmp_path / "b")
    ours.save(tmp_path / "c")
    assert ours.tokens(ours.encode_marked("Cat")) == ["Cat"]
    assert transformers.AutoTokenizer.from_pretrained(tmp_path / "c").tokenize("Cat") == ["Cat"]
