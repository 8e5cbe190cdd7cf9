"""Marks of the user's own in free rows of the vocabulary."""

from __future__ import annotations

import pytest
import transformers
from framing import examples_of, plain, rows_config
from vocabularies import chinese_pieces

from maskery.errors import InputError
from maskery.tasks.framing.frame import template
from maskery.tasks.framing.make import make_rows
from maskery.tasks.framing.marks import take_marks
from maskery.tasks.framing.tokens import encode, encode_texts
from maskery.text.tokenizer import Tokenizer
from maskery.text.training import LAYOUT, train_bpe

CULTURE, SPORT = "[CAT=CULTURE]", "[CAT=SPORT]"
ENGLISH = ("[PAD]", *(f"[unused{n}]" for n in range(99)), "[UNK]", "[CLS]", "[SEP]", "[MASK]")


@pytest.fixture(params=["chinese", "english"], scope="module")
def tokenizer(request):
    """Chinese vocabularies begin with [unused1], English ones with [unused0]: row 1 in both."""
    pieces = [*chinese_pieces()] if request.param == "chinese" else [*ENGLISH]
    return Tokenizer.from_pieces([*pieces, "q", "a", "[", "]", "=", "c", "##at", "##ulture", "cat"])


def rows_of(marks, *pairs):
    encoded = encode(examples_of(*pairs, task="pair"), marks.tokenizer, marks.ids)
    return make_rows(encoded, template(marks.tokenizer), rows_config(), 64)[0]


def test_the_published_row(tokenizer):
    before = tokenizer.vocabulary
    marks = take_marks(tokenizer, [CULTURE])
    assert marks.ids == {CULTURE: 1}
    assert marks.tokenizer.vocabulary == before, "the embedding keeps its shape"
    assert marks.notes == (f"{CULTURE} takes row 1 of the vocabulary, {tokenizer.pieces[1]}",)
    rows = rows_of(marks, (f"{CULTURE} q", "a"))
    q, a = tokenizer.id("q"), tokenizer.id("a")
    assert plain(rows) == [[101, 1, q, 102, a, 102]]
    assert rows[0].segments.tolist() == [0, 0, 0, 0, 1, 1]
    assert rows[0].offsets[1:3].tolist() == [[0, len(CULTURE)], [len(CULTURE) + 1, len(CULTURE) + 2]]
    assert tokenizer.id(CULTURE) is None, "the tokenizer that was given is as it was"


def test_a_mark_is_found_only_if_it_was_declared(tokenizer):
    marks = take_marks(tokenizer, [CULTURE])
    text = f"q{CULTURE}{SPORT} [unused5] [MASK] a{CULTURE}"
    tokens = encode_texts(["", text, "q"], marks.tokenizer, marks.ids)
    ids = tokens.ids.tolist()
    assert ids.count(1) == 2
    assert not {103, 2, 5, 6} & set(ids)
    assert tokens.lengths.tolist() == [0, len(ids) - 1, 1]
    found = [text[a:b] for a, b, number in zip(tokens.start, tokens.stop, ids, strict=True) if number == 1]
    assert found == [CULTURE, CULTURE]
    nobody = encode_texts([text], tokenizer)
    assert 1 not in nobody.ids
    assert len(nobody.ids) > len(ids)
    assert [text[a:b] for a, b in zip(nobody.start, nobody.stop, strict=True)][:2] == ["q", "["]


def test_several_take_rows_in_their_order_and_keep_them(tokenizer, tmp_path):
    marks = take_marks(tokenizer, [SPORT, CULTURE])
    assert marks.ids == {SPORT: 1, CULTURE: 2}
    marks.tokenizer.save(tmp_path)
    again = take_marks(Tokenizer.load(tmp_path), [CULTURE, "<NEW>", SPORT])
    assert again.ids == {CULTURE: 2, "<NEW>": 3, SPORT: 1}, "saved marks keep their rows, whatever the order"
    assert len(again.notes) == 1
    declared = take_marks(tokenizer, [tokenizer.pieces[1], CULTURE])
    assert declared.ids == {tokenizer.pieces[1]: 1, CULTURE: 2}, "a free row that is named is not free"
    assert take_marks(tokenizer, []).ids == {}


def test_other_tools_find_the_marks_of_a_saved_tokenizer(tokenizer, tmp_path):
    marks = take_marks(tokenizer, [CULTURE])
    marks.tokenizer.save(tmp_path)
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
    told = theirs(f"{CULTURE} q", "a", return_token_type_ids=True)
    row = rows_of(marks, (f"{CULTURE} q", "a"))[0]
    assert (told["input_ids"], told["token_type_ids"]) == (row.ids.tolist(), row.segments.tolist())
    assert len(theirs) == tokenizer.vocabulary
    assert Tokenizer.load(tmp_path).encode(f"{CULTURE} q", "a")[0] == row.ids.tolist()


def test_no_room_is_told_with_how_many_are_needed(tokenizer):
    with pytest.raises(InputError, match=r"100 marks need a free row of the vocabulary each, and 99 rows are free"):
        take_marks(tokenizer, [f"[M{n}]" for n in range(100)])
    assert len(take_marks(tokenizer, [f"[M{n}]" for n in range(99)]).ids) == 99


def test_a_vocabulary_without_free_rows_refuses():
    with pytest.raises(InputError, match=r"2 marks need a free row(.|\n)*\(BPE\) has none(.|\n)*repair: write what"):
        take_marks(train_bpe(["the cat"] * 3, 300), [CULTURE, SPORT])


@pytest.mark.parametrize(
    ("names", "told"),
    [
        ([CULTURE, CULTURE], "declared twice"),
        (["culture"], "does not look like a mark"),
        (["[A B]"], "does not look like a mark"),
        ([""], "does not look like a mark"),
        (["[UNK]"], "meaning of its own"),
    ],
)
def test_marks_that_cannot_be(names, told):
    with pytest.raises(InputError, match=told):
        take_marks(Tokenizer.from_pieces([*LAYOUT, "a"]), names)
