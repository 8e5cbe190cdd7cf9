from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import AddedToken
from tokenizers import Tokenizer as RustTokenizer
from tokenizers.models import BPE, WordLevel
from tokenizers.pre_tokenizers import ByteLevel
from tokenizers.processors import RobertaProcessing
from vocabularies import chinese_pieces, mixed_tokenizer

from maskery.errors import InputError
from maskery.text.tokenizer import Specials, Tokenizer
from maskery.text.wordpiece import assemble


@pytest.fixture(scope="module")
def chinese():
    return Tokenizer.from_pieces(chinese_pieces())


@pytest.fixture(scope="module")
def mixed():
    return mixed_tokenizer()


def byte_level():
    """A tokenizer in RoBERTa's manner."""
    names = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    numbers = {piece: n for n, piece in enumerate([*names, *sorted(ByteLevel.alphabet()), "he", "Ġw"])}
    rust = RustTokenizer(BPE(numbers, [("h", "e"), ("Ġ", "w")], unk_token="<unk>"))
    rust.pre_tokenizer = ByteLevel(add_prefix_space=False, trim_offsets=False)
    rust.post_processor = RobertaProcessing(("</s>", 2), ("<s>", 0))
    rust.add_special_tokens([AddedToken(name, special=True, normalized=False) for name in names])
    return rust


def test_published_ids(chinese):
    assert chinese.vocabulary == 21_128
    assert chinese.specials == Specials(pad=0, unk=100, cls=101, sep=102, mask=103)
    assert [chinese.id(f"[unused{n}]") for n in (1, 99)] == [1, 99]
    pair = [101, 872, 2682, 1391, 1567, 102, 4635, 1147, 7883, 102]
    assert chinese.encode("你想吃啥", "白切鸡") == (pair, [0] * 6 + [1] * 4)
    ids, segments = chinese.encode("老爸叫小宏去买酱油，", "回来慢了就骂他。")
    first = [101, 5439, 4268, 1373, 2207, 2131, 1343, 743, 6996, 3779, 8024, 102]
    assert ids == [*first, 1726, 3341, 2714, 749, 2218, 7733, 800, 511, 102]
    assert segments == [0] * 12 + [1] * 9


def test_the_mask_in_marked_text_is_the_mask(chinese):
    ids, _ = chinese.encode("我去了北京？[MASK][MASK]，我去了上海。")
    assert ids == [101, 2769, 1343, 749, 1266, 776, 8043, 103, 103, 8024, 2769, 1343, 749, 677, 3862, 511, 102]
    assert [chinese.id(c) for c in "是的不"] == [3221, 4638, 679]


def test_raw_text_is_only_text(mixed):
    rust = assemble(mixed.pieces, lowercase=True)
    rust.add_tokens(["[unused5]", "covid"])
    for tokenizer in (mixed, Tokenizer(rust)):
        ((ids, offsets),) = tokenizer.encode_raw(["我[MASK] [unused5]"])
        assert tokenizer.tokens(ids) == ["我", "[", "mask", "]", "[", "[UNK]", "]"]
        assert not set(ids.tolist()) & {tokenizer.specials.mask, 5}
        assert offsets[1].tolist() == [1, 2]
    added = Tokenizer(rust)
    assert added.tokens(added.encode_raw(["covid"])[0][0]) == ["covid"], "a user's own word is still found"


def test_raw_offsets_point_into_the_original_text(mixed):
    text = "The  Dog，我们 unused É"
    ((ids, offsets),) = mixed.encode_raw([text])
    shown = [text[start:end] for start, end in offsets]
    assert shown == ["The", "Dog", "，", "我", "们", "un", "used", "É"]
    assert mixed.tokens(ids) == ["the", "dog", "，", "我", "们", "un", "##used", "e"]
    assert [len(a) for a, _ in mixed.encode_raw(["", "the dog", ""])] == [0, 2, 0]
    assert mixed.encode_raw([]) == []


@settings(deadline=None, max_examples=50)
@given(texts=st.lists(st.text(max_size=40), max_size=4))
def test_flat_and_single_encoding_agree(mixed, texts):
    together = mixed.encode_raw(texts)
    assert len(together) == len(texts)
    for text, (ids, offsets) in zip(texts, together, strict=True):
        alone, places = mixed.encode_raw([text])[0]
        assert np.array_equal(ids, alone)
        assert np.array_equal(offsets, places)
        assert (offsets[:, 0] >= 0).all()
        assert (offsets[:, 1] <= len(text)).all()


def test_decode_joins_han_and_keeps_spaces_of_words(mixed):
    ids, _ = mixed.encode("我们 the dog unused北京。")
    assert mixed.decode(ids) == "我们 the dog unused 北京。"
    assert mixed.decode(ids, specials=True).startswith("[CLS]")
    assert mixed.tokens([10**6]) == ["[UNK]"]


def test_ordinary_pieces_stand_for_text(mixed):
    shown = mixed.tokens(mixed.ordinary)
    assert "the" in shown
    assert "[" in shown
    assert not any(piece.startswith("[unused") or piece in ("[MASK]", "[PAD]", "[UNK]") for piece in shown)


@pytest.mark.parametrize("lowercase", [True, False])
def test_saved_folder_opens_in_transformers_and_here(tmp_path, mixed, lowercase):
    from transformers import AutoTokenizer

    tokenizer = Tokenizer.from_pieces(mixed.pieces, lowercase=lowercase)
    names = tokenizer.save(tmp_path, max_length=77)
    assert sorted(names) == sorted(path.name for path in tmp_path.iterdir())
    theirs = AutoTokenizer.from_pretrained(tmp_path)
    text, pair = "我们[MASK] The dóg", "unused 北京"
    found = theirs(text, pair)
    assert (found["input_ids"], found["token_type_ids"]) == tokenizer.encode(text, pair)
    assert theirs.mask_token_id == 103
    assert theirs.model_max_length == 77
    assert Tokenizer.load(tmp_path).fingerprint == tokenizer.fingerprint
    (tmp_path / "tokenizer.json").unlink()
    again = Tokenizer.load(tmp_path)
    assert again.fingerprint == tokenizer.fingerprint
    assert "do_lower_case" in again.note
    assert AutoTokenizer.from_pretrained(tmp_path)(text)["input_ids"] == tokenizer.encode(text)[0]


def test_byte_level_tokenizer_in_robertas_manner(tmp_path):
    from transformers import AutoTokenizer

    rust = byte_level()
    rust.enable_truncation(4)
    rust.enable_padding(length=4)
    tokenizer = Tokenizer(rust)
    assert tokenizer.specials == Specials(pad=1, unk=3, cls=0, sep=2, mask=4)
    ids, segments = tokenizer.encode("he <mask>", "w")
    assert tokenizer.tokens(ids) == ["<s>", "he", "Ġ", "<mask>", "</s>", "</s>", "w", "</s>"]
    assert segments == [0] * len(ids)
    raw = tokenizer.encode_raw(["he wore <mask> " * 5])[0][0]
    assert len(raw) > 4, "what was set to cut and pad does neither"
    assert tokenizer.specials.mask not in raw
    tokenizer.save(tmp_path)
    assert AutoTokenizer.from_pretrained(tmp_path)("he <mask>", "w")["input_ids"] == ids
    assert Tokenizer.load(tmp_path / "tokenizer.json").fingerprint == tokenizer.fingerprint


def test_case_is_decided_by_the_pieces_and_told(tmp_path, mixed):
    file = tmp_path / "vocab.txt"
    file.write_text("\n".join([*mixed.pieces, "<S>"]) + "\n", encoding="utf-8")
    uncased = Tokenizer.load(file)
    assert uncased.note == "uncased: no piece has a capital letter"
    assert uncased.tokens(uncased.encode("Dog")[0]) == ["[CLS]", "dog", "[SEP]"]
    file.write_text("\r\n".join([*mixed.pieces, "Dog"]) + "\r\n\r\n", encoding="utf-8")
    cased = Tokenizer.load(tmp_path)
    assert cased.note == "cased: 1 pieces with a capital letter"
    assert cased.tokens(cased.encode("Dog")[0]) == ["[CLS]", "Dog", "[SEP]"]
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"do_lower_case": True, "auto_map": {"x": "y"}}))
    stated = Tokenizer.load(tmp_path)
    assert stated.tokens(stated.encode("Dog")[0]) == ["[CLS]", "dog", "[SEP]"]
    stated.save(tmp_path / "again")
    assert "auto_map" not in json.loads((tmp_path / "again" / "tokenizer_config.json").read_text())


def test_words_of_more_than_a_hundred_characters_are_unknown(mixed):
    assert mixed.tokens(mixed.encode_raw(["a" * 101])[0][0]) == ["[UNK]"]
    assert len(mixed.encode_raw(["a" * 100])[0][0]) == 100


@pytest.mark.parametrize(
    ("name", "content", "cause"),
    [
        ("vocab.txt", "[PAD]\n[UNK]\na\na\n", "line 3"),
        ("vocab.txt", "[PAD]\n\n[UNK]\n", "empty piece"),
        ("vocab.txt", "a\nb\n", r"no line for \[PAD\]"),
        ("vocab.txt", b"\xff\xfe", "not UTF-8"),
        ("tokenizer.json", "{", "cannot be read"),
        ("tokenizer.json", b"\xff", "not UTF-8"),
    ],
)
def test_broken_files_are_refused(tmp_path, name, content, cause):
    file = tmp_path / name
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(InputError, match=cause) as caught:
        Tokenizer.load(tmp_path)
    assert caught.value.repair
    assert str(file) in str(caught.value.where)


def test_missing_and_useless_tokenizers_are_refused(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        Tokenizer.load(tmp_path / "nothing.txt")
    with pytest.raises(InputError, match="no tokenizer here"):
        Tokenizer.load(tmp_path)
    with pytest.raises(InputError, match="no pad token"):
        Tokenizer(RustTokenizer(WordLevel({"a": 0}, unk_token="a")))
    (tmp_path / "vocab.txt").write_text("\n".join(mixed_tokenizer().pieces))
    (tmp_path / "tokenizer_config.json").write_text("[1")
    with pytest.raises(InputError, match="not JSON"):
        Tokenizer.load(tmp_path)


def test_types_of_a_pair_and_of_one_sentence():
    """The classic worked example of BERT's input, with a vocabulary in which the pieces are as it shows them."""
    words = ["is", "this", "jack", "##son", "##ville", "?", "no", "it", "not", ".", "the", "dog", "hairy"]
    made = Tokenizer.from_pieces(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words])
    ids, types = made.encode("is this jacksonville ?", "no it is not .")
    shown = "[CLS] is this jack ##son ##ville ? [SEP] no it is not . [SEP]"
    assert made.tokens(ids) == shown.split()
    assert list(types) == [0] * 8 + [1] * 6
    ids, types = made.encode("the dog is hairy .")
    assert made.tokens(ids) == ["[CLS]", "the", "dog", "is", "hairy", ".", "[SEP]"]
    assert list(types) == [0] * 7
