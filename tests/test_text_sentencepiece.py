"""spiece.model, the file of sentencepiece: read to the same pieces as the Hugging Face tools make of it."""

from __future__ import annotations

import json
import struct

import pytest
import transformers
from networks import model_of

from maskery.checkpoint.load import load
from maskery.errors import InputError
from maskery.text.tokenizer import Tokenizer

MARKS = {"<unk>": 2} | dict.fromkeys(("<s>", "</s>", "<cls>", "<sep>", "<pad>"), 3)
MARKS |= dict.fromkeys(("<mask>", "<eod>", "<eop>"), 4)
WORDS = {"▁the": -3.0, "▁cat": -5.0, "▁": -4.0, "s": -4.5, "▁The": -5.5, "9,": -2.0, ",": -3.2, "9": -3.4, ".": -3.0}
WORDS |= dict.fromkeys("abcdefghijklmnopqrstuvwxyT", -8.0) | {"e": -7.0, '"': -6.0}
TEXTS = ("the cats", "The  cat, 9,9.", "``thé''", "zebra", "a<mask>b", "the <sep> cat")


def number(value):
    found = b""
    while value > 127:
        found, value = found + bytes([value & 127 | 128]), value >> 7
    return found + bytes([value])


def field(key, value):
    if isinstance(value, float):
        return number(key << 3 | 5) + struct.pack("<f", value)
    if isinstance(value, int):
        return number(key << 3) + number(value)
    return number(key << 3 | 2) + number(len(value)) + value


def piece(text, score, kind=1):
    told = field(1, text.encode()) + field(2, score) + (b"" if kind == 1 else field(3, kind))
    return field(1, told)


def model(pieces=None, kind=1, marks=MARKS):
    """A message as sentencepiece writes it."""
    found = b"".join(piece(text, 0.0, mark) for text, mark in marks.items())
    found += b"".join(piece(text, score) for text, score in (WORDS if pieces is None else pieces).items())
    return found + field(2, field(3, kind)) + field(3, field(1, b"identity"))


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "spiece.model").write_bytes(model())
    return tmp_path


def test_as_transformers_reads_the_same_pieces(folder):
    ours = Tokenizer.load(folder)
    vocabulary = [(text, 0.0) for text in MARKS] + list(WORDS.items())
    vocabulary = [(text, score - 100 * (text == "9,")) for text, score in vocabulary]
    theirs = transformers.XLNetTokenizer(vocab=vocabulary)
    for text in TEXTS:
        assert ours.encode(text)[0] == theirs(text)["input_ids"], text
    pair = theirs("the cat", "a cat", return_token_type_ids=True)
    assert ours.encode("the cat", "a cat") == (pair["input_ids"], pair["token_type_ids"])
    assert ours.encode("the cat", "a cat")[1][-1] == 2, "<cls> at the end, of a segment of its own"
    assert (ours.specials.cls, ours.specials.sep, ours.specials.pad, ours.specials.mask) == (3, 4, 5, 6)
    assert ours.note == "made of spiece.model"
    assert ours.tokens(ours.encode("9,9")[0])[:4] == ["▁", "9", ",", "9"], "a comma behind a digit stands alone"
    assert ours.decode(ours.encode("the cats")[0]) == "the cats"


def test_case_is_told_by_the_pieces_or_by_the_settings(folder, tmp_path):
    assert Tokenizer.load(folder).encode("The")[0][0] == 9 + list(WORDS).index("▁The")
    (folder / "tokenizer_config.json").write_text(json.dumps({"do_lower_case": True}))
    assert Tokenizer.load(folder).encode("The")[0][0] == 9 + list(WORDS).index("▁the")
    small = {text: score for text, score in WORDS.items() if text == text.lower()}
    (folder / "tokenizer_config.json").unlink()
    (folder / "spiece.model").write_bytes(model(small))
    assert Tokenizer.load(folder).tokens(Tokenizer.load(folder).encode("The")[0])[0] == "▁the"


def test_a_folder_with_it_is_a_model_with_a_tokenizer(tmp_path):
    saved = model_of("permuted_token", with_tokenizer=False, visibility="permuted", positions="xlnet", streams=2,
                     segments=0, embedding_norm="no", attention_bias=False, token_head="bias")  # fmt: skip
    saved.save(tmp_path / "model")
    (tmp_path / "model" / "manifest.json").unlink()
    (tmp_path / "model" / "spiece.model").write_bytes(model())
    opened = load(tmp_path / "model")
    assert opened.family == "xlnet"
    assert opened.tokenizer.vocabulary == len(MARKS) + len(WORDS)
    opened.save(tmp_path / "again")
    again = load(tmp_path / "again").tokenizer
    assert again.encode("the cats") == opened.tokenizer.encode("the cats")
    assert again.note == "as written in tokenizer.json"


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"\x0a\xff", "cannot be read"),
        (b"", "holds no piece"),
        (model(kind=2), "is of kind 2, not unigram"),
        (b"".join(piece(text, -1.0) for text in WORDS), "has 0 unknown pieces"),
        (field(1, field(2, -1.0)), "a piece without text"),
    ],
    ids=["cut", "empty", "bpe", "no unknown", "no text"],
)
def test_what_cannot_be_read_is_told(tmp_path, data, told):
    (tmp_path / "spiece.model").write_bytes(data)
    with pytest.raises(InputError, match=told) as error:
        Tokenizer.load(tmp_path)
    assert str(error.value.where) == str(tmp_path / "spiece.model")
