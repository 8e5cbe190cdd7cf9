"""From slots back to the exact characters: Chinese, emoji, accents, white space, every kind of tokenizer."""

from __future__ import annotations

from itertools import pairwise
from unicodedata import normalize

import pytest
from framing import examples_of, rows_config
from hypothesis import given, settings
from hypothesis import strategies as st
from vocabularies import mixed_tokenizer

from maskery.errors import InputError
from maskery.tasks.framing.frame import template
from maskery.tasks.framing.make import make_rows
from maskery.tasks.framing.offsets import goes_with_the_one_before
from maskery.tasks.framing.rows import Place
from maskery.tasks.framing.tokens import encode, encode_texts
from maskery.text.tokenizer import Tokenizer
from maskery.text.training import LAYOUT, train_bpe, train_char, train_unigram

LINES = ["the dog sat on the mat. 我们今天去北京 café naïve", "The Dog: 周杰伦 hello 1 2 3"] * 3
LETTERS = [chr(code) for code in range(33, 127)]


def cased():
    pieces = [*LAYOUT, *LETTERS, *(f"##{letter}" for letter in LETTERS), *"我们今天é", "##é", "##\u0301", "\u0301"]
    return Tokenizer.from_pieces(pieces, lowercase=False)


KINDS = {
    "uncased": mixed_tokenizer(),
    "cased": cased(),
    "bpe": train_bpe(LINES, 320),
    "lower bpe": train_bpe(LINES, 320, True),
    "unigram": train_unigram(LINES, 230),
    "char": train_char(LINES, 200),
}
PARTS = [
    "the", " ", "  ", "\n", "\t", "dog", "Café", "cafe\u0301", "NAI\u0308VE", "我们", "今天，", "。", "é",
    "❤️", "👨‍👩‍👧", "👍🏽", "🇨🇳", "\u200b", "\u3000", "x\u0323\u0301", "한국", "\u1112\u1161\u11ab", "ｆｕｌｌ",
    "İ", "ß", "[MASK]", "1", "Ω", "a",
]  # fmt: skip
TEXTS = st.one_of(st.lists(st.sampled_from(PARTS), max_size=12).map("".join), st.text(max_size=20))
TEXTS = TEXTS.filter(lambda text: not any(0xD800 <= ord(character) < 0xE000 for character in text))


def folded(text):
    """What is left of a text without case and accents, for comparing."""
    flat = normalize("NFKD", normalize("NFKD", text).lower())
    return "".join(c for c in flat if not goes_with_the_one_before(c) and not c.isspace())


def piece_of(tokenizer, piece):
    return tokenizer.shown([tokenizer.id(piece)])[0].removeprefix("##").replace("▁", " ")


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=30)
@given(text=TEXTS, other=TEXTS)
def test_tokens_stand_for_their_characters(kind, text, other):
    tokenizer = KINDS[kind]
    tokens = encode_texts([other, text], tokenizer)
    here = slice(*tokens.first[1:])
    ids, spans = tokens.ids[here], list(zip(tokens.start[here], tokens.stop[here], strict=True))
    assert all(0 <= start < stop <= len(text) for start, stop in spans)
    assert all(a[0] <= b[0] and a[1] <= b[1] for a, b in pairwise(spans)), "in the text's order"
    for number, (start, stop) in zip(ids, spans, strict=True):
        found = text[start:stop]
        assert found == found.strip() or not found.strip(), "no space at the ends, or nothing else"
        if number == tokenizer.specials.unk or "bpe" in kind:
            continue
        piece = piece_of(tokenizer, tokenizer.tokens([number])[0])
        assert not piece.strip() or folded(piece) in folded(found)
    covered = {n for start, stop in spans for n in range(start, stop)}
    for n, character in enumerate(text):
        if n and goes_with_the_one_before(character) and n - 1 in covered:
            assert n in covered, "an accent goes with its letter"


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=30)
@given(text=TEXTS, data=st.data())
def test_a_span_of_slots_is_exactly_the_substring(kind, text, data):
    """Words that are parted by spaces come back as they were, and lead to the same slots again."""
    tokenizer = KINDS[kind]
    rows, _ = make_rows(
        encode(examples_of(("x", text), task="pair"), tokenizer), template(tokenizer), rows_config(), 4000
    )
    spans = [(n, *map(int, rows.offsets[n])) for n in range(len(rows.ids)) if rows.field[n] == 1]
    if not spans:
        return
    first = data.draw(st.sampled_from(spans))
    last = data.draw(st.sampled_from([span for span in spans if span[0] >= first[0]]))
    place = rows.characters(0, first[0], last[0])
    assert place == Place(1, first[1], last[2])
    assert text[place.start : place.stop] == text[first[1] : last[2]]
    back = rows.slots(0, place)
    assert back is not None
    assert back[0] <= first[0] <= last[0] <= back[1]
    again = rows.characters(0, *back)
    assert again.start <= place.start < place.stop <= again.stop
    apart = all(a[1:] == b[1:] or a[2] <= b[1] for a, b in pairwise(spans))
    assert again == place or not apart, "unless a token holds parts of several characters"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "answer",
    [
        "cafe\u0301",
        "Café",
        "我们",
        "❤️",
        "👨‍👩‍👧",
        "👍🏽",
        "x\u0323\u0301",
        "NAI\u0308VE",
        "\u1112\u1161\u11ab",
        "the dog",
        "a\u0301 b",
    ],
    ids=[f"answer{n}" for n in range(11)],
)
def test_an_answer_comes_back_as_it_was_written(kind, answer):
    tokenizer = KINDS[kind]
    for before, after in (("the ", " dog"), ("", ""), ("我们 ", "\n"), ("x\t", "  1")):
        context = before + answer + after
        examples = examples_of((context, "the ?"), task="qa", fields=("context", "question"))
        rows, _ = make_rows(encode(examples, tokenizer), template(tokenizer), rows_config(), 512)
        slots = rows.slots(0, Place(0, len(before), len(before) + len(answer)))
        assert slots is not None
        found = rows.characters(0, *slots)
        assert context[found.start : found.stop] == answer


def test_marks_stand_for_no_characters():
    tokenizer = KINDS["uncased"]
    examples = examples_of(("the dog", "hello"), task="pair")
    rows, _ = make_rows(encode(examples, tokenizer), template(tokenizer), rows_config(), 512)
    for first, last in ((0, 1), (1, 4), (2, 1)):
        with pytest.raises(ValueError, match="not of one text"):
            rows.characters(0, first, last)
    assert rows.slots(0, Place(0, 3, 4)) is None, "a space is of no token"
    assert rows.slots(0, Place(0, 2, 5)) == (1, 2)


def test_half_a_character_is_told_with_its_place():
    with pytest.raises(InputError, match=r"train\.tsv:2: holds half a character, '\\ud83d'"):
        encode(examples_of("fine", "broken \ud83d"), KINDS["uncased"])


def test_texts_that_are_missing_are_told_with_their_place():
    with pytest.raises(InputError, match=r"train\.tsv:2: has 1 texts, not 2 \(text_a, text_b\)"):
        encode(examples_of(("a", "b"), ("a",), task="pair"), KINDS["uncased"])


def test_a_text_that_comes_again_is_tokenised_once():
    tokenizer = KINDS["uncased"]
    examples = examples_of(("the dog", "hello"), ("the dog", "the"), ("the", "the dog"), task="pair")
    encoded = encode(examples, tokenizer)
    assert encoded.tokens.lengths.tolist() == [2, 1, 1]
    rows, _ = make_rows(encoded, template(tokenizer), rows_config(), 512)
    assert [row.ids.tolist() for row in rows] == [tokenizer.encode(*example.texts)[0] for example in examples]


def test_unknown_and_empty_texts_are_told():
    encoded = encode(examples_of(("the \u2603", ""), ("dog", "the"), task="pair"), KINDS["uncased"])
    assert encoded.notes == (
        "1 of 4 tokens (25.00%) are unknown to the vocabulary: is this a model for another language?",
        "unknown: \u2603 1 (100.0%); take a model whose vocabulary has them",
        "1 of 4 texts hold no token",
    )
    assert encode(examples_of("the dog"), KINDS["uncased"]).notes == ()


@pytest.mark.parametrize("texts", [(), ("",), ("", " \n")], ids=["none", "empty", "space"])
def test_nothing_to_read_makes_rows_of_marks(texts):
    encoded = encode(examples_of(*texts), KINDS["uncased"])
    rows, cut = make_rows(encoded, template(KINDS["uncased"]), rows_config(), 16)
    assert [row.ids.tolist() for row in rows] == [[101, 102]] * len(texts)
    assert cut.notes == ()
