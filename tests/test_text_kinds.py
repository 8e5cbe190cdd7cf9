"""Tokenizers of each kind, ours and such as come in Hugging Face folders: same ids there and here, raw text is text."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_tokenizers import KINDS
from tokenizers import AddedToken, models, pre_tokenizers
from tokenizers import Tokenizer as RustTokenizer

from maskery.cli import main
from maskery.corpus.store import Corpus
from maskery.text.marks import readable
from maskery.text.tokenizer import Specials, Tokenizer
from maskery.text.training import KINDS as TRAINERS

LINES = ["The dog didn't see 北京大学 in [MASK], did <mask> it? 👍🏽 é"] * 5
TEXTS = ["The dog  saw {} it.", " 北京{}大学，é  İx", "{} the", "<s>{}[SEP] dog </s>"]


@pytest.mark.parametrize("kind", TRAINERS.names())
def test_saved_folder_gives_the_same_ids_in_transformers(tmp_path, kind):
    from transformers import AutoTokenizer

    ours = TRAINERS.get(kind)(LINES, 330, None)
    ours.save(tmp_path)
    theirs = AutoTokenizer.from_pretrained(tmp_path)
    again = Tokenizer.load(tmp_path)
    assert again.fingerprint == ours.fingerprint
    for text in TEXTS:
        text = text.format(ours.names["mask"])
        assert theirs(text)["input_ids"] == ours.encode(text)[0] == again.encode(text)[0]
        assert theirs(text, "the dog")["input_ids"] == ours.encode(text, "the dog")[0]
        assert theirs.mask_token_id in ours.encode(text)[0]
        plain = ours.encode_raw([text])[0][0]
        assert (
            theirs.decode(plain, skip_special_tokens=True).split() == ours.decode(plain).split() or kind == "wordpiece"
        )


def test_layouts():
    bpe, unigram, char = KINDS["bpe"], KINDS["unigram"], KINDS["char"]
    assert bpe.specials == Specials(cls=0, pad=1, sep=2, unk=3, mask=4)
    assert unigram.specials == Specials(pad=0, unk=1, cls=2, sep=3, mask=4)
    assert char.specials == Specials(pad=0, unk=100, cls=101, sep=102, mask=103)
    ids, segments = bpe.encode("the", "dog")
    assert bpe.tokens(ids) == ["<s>", "the", "</s>", "dog", "</s>"], "as rows of pairs are"
    assert segments == [0, 0, 0, 1, 1]
    assert unigram.encode("the", "dog")[1] == [0, 0, 0, 1, 1]
    assert char.tokens(char.encode("ab")[0]) == ["[CLS]", "a", "b", "[SEP]"]


@pytest.mark.parametrize(
    ("kind", "text", "tokens"),
    [
        ("bpe", "the <mask> dog", ["<s>", "the", "<mask>", "▁dog", "</s>"]),
        ("unigram", "the [MASK] dog", ["[CLS]", "▁the", "[MASK]", "▁dog", "[SEP]"]),
        ("char", "a [MASK]", ["[CLS]", "a", "▁", "[MASK]", "[SEP]"]),
    ],
)
def test_the_mask_hides_the_space_that_belongs_to_its_piece(kind, text, tokens):
    assert KINDS[kind].shown(KINDS[kind].encode(text)[0]) == tokens


@pytest.mark.parametrize("kind", ["bpe", "char", "unigram"])
@pytest.mark.parametrize("text", ["the dog", "the, 我们 don't", "北京 大学。the"])
def test_decoding_gives_the_text_back(kind, text):
    made = KINDS[kind]
    assert made.decode(made.encode_raw([text])[0][0]) == text
    assert made.decode(made.encode(text)[0]) == text


@settings(deadline=None)
@given(text=st.text(max_size=40))
def test_bytes_give_any_text_back(text):
    bpe = KINDS["bpe"]
    ids = bpe.encode_raw([text])[0][0]
    assert bpe.decode(ids) == text
    shown = "".join(bpe.shown(ids))
    assert not any(letter in shown for letter in " \t\n"), "white space can be seen"


@pytest.mark.parametrize(
    ("piece", "byte_level", "shown"),
    [
        ("Ġthe", True, "▁the"),
        ("æĪĳ", True, "我"),
        ("æĪ", True, "<E6><88>"),
        ("æĪĳä", True, "我<E4>"),
        ("Ċ", True, "↵"),
        ("<0xE4>", False, "<E4>"),
        ("▁the", False, "▁the"),
        ("##s", False, "##s"),
        ("▁the", True, "▁the"),
    ],
)
def test_pieces_can_be_read(piece, byte_level, shown):
    assert readable(piece, byte_level) == shown


@pytest.mark.parametrize("kind", KINDS)
def test_specials_are_shown_as_they_are_named(kind):
    made = KINDS[kind]
    assert set(made.shown(made.specials.ids)) == set(made.names.values())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("mark", ["[MASK]", "<mask>", "<s>", "</s>", "[CLS]", "<pad>", "[unused7]"])
def test_a_mark_in_raw_text_is_text(kind, mark):
    made = KINDS[kind]
    ids = made.encode_raw([f"the {mark} dog"])[0][0].tolist()
    assert not set(ids) & (set(made.specials.ids) - {made.specials.unk})
    assert not set(ids) & set(range(1, 100)) or kind in ("bpe", "unigram")
    shown = "".join(made.shown(ids)).replace("##", "").lower()
    assert mark.strip("[]<>").lower() in shown


def sentencepiece_like():
    """Such as SentencePiece models become: the marks are pieces of the model itself, and only spaces part words."""
    names = ["<s>", "<pad>", "</s>", "<unk>"]
    learnt = ["▁", "▁the", "▁dog", *"<s>/mask", "▁<s>x"]
    pieces = [(name, 0.0) for name in names] + [(p, -3.0) for p in dict.fromkeys(learnt)] + [("<mask>", 0.0)]
    rust = RustTokenizer(models.Unigram(pieces, 3))
    rust.pre_tokenizer = pre_tokenizers.Metaspace()
    rust.add_special_tokens([AddedToken(name, special=True, normalized=False) for name in (*names, "<mask>")])
    rust.add_tokens(["covid"])
    return Tokenizer(rust)


def test_marks_among_the_pieces_of_a_model_are_not_found_in_raw_text():
    made = sentencepiece_like()
    assert made.shown(made.encode_raw(["the <s> dog</s> <mask>"])[0][0]) == [
        "▁the", "▁", "<", "s", ">", "▁dog", "<", "/", "s", ">", "▁", "<", "m", "a", "s", "k", ">"
    ]  # fmt: skip
    assert made.tokens(made.encode_raw(["the covid"])[0][0]) == ["▁the", "▁", "covid"]
    assert made.encode_raw(["covid"])[0][0].tolist()[-1] == made.id("covid"), "numbers behind the marks stay"
    assert made.specials.mask in made.encode("the <mask>")[0]


def test_ordinary_pieces_of_learnt_kinds_may_look_like_marks(tmp_path):
    made = KINDS["bpe"]
    content = json.loads(made.json)
    content["model"]["vocab"]["<=>"] = len(content["model"]["vocab"])
    opened = Tokenizer.from_json(json.dumps(content))
    assert opened.id("<=>") in opened.ordinary
    assert not set(opened.specials.ids) & set(opened.ordinary.tolist())
    assert KINDS["char"].id("[unused7]") not in KINDS["char"].ordinary


def test_lower_case_on_request():
    for kind in TRAINERS.names():
        made = TRAINERS.get(kind)(LINES, 330, True)
        assert made.encode_raw(["THE DOG"])[0][0].tolist() == made.encode_raw(["the dog"])[0][0].tolist()
        cased = TRAINERS.get(kind)(LINES, 330, False)
        assert cased.encode_raw(["The"])[0][0].tolist() != cased.encode_raw(["the"])[0][0].tolist()


def test_the_kind_of_a_given_tokenizer_is_fixed(tmp_path, capsys):
    text = tmp_path / "text.txt"
    text.write_text("\n".join(LINES), encoding="utf-8")
    build = ["corpus", "build", str(text), "--workers", "0", "--heldout", "0", "--out"]
    assert main([*build, str(tmp_path / "one"), "--kind", "unigram", "--vocab", "200"]) == 0
    assert main([*build, str(tmp_path / "two"), "--tokenizer", str(tmp_path / "one")]) == 0
    one, two = Corpus.open(tmp_path / "one"), Corpus.open(tmp_path / "two")
    assert one.fingerprint == two.fingerprint
    assert (one.manifest["options"]["kind"], two.manifest["options"]["kind"]) == ("unigram", None)
    assert main([*build, str(tmp_path / "three"), "--tokenizer", str(tmp_path / "one"), "--kind", "bpe"]) == 2
    assert "leave out --kind" in capsys.readouterr().err


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_pairs_are_framed_as_rows_are(kind, tmp_path):
    from transformers import AutoTokenizer

    assert KINDS[kind].frames_as_rows
    KINDS[kind].save(tmp_path)
    theirs = AutoTokenizer.from_pretrained(tmp_path)("the dog", "the")
    assert (theirs["input_ids"], theirs["token_type_ids"]) == KINDS[kind].encode("the dog", "the")
