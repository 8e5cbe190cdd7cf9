"""Spans of characters as tags and back: exact in the original text, whatever the tokenizer makes of it."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maskery.errors import InputError, UnknownName
from maskery.tasks.examples import Span
from maskery.tasks.tags import PARTS, Tags, pieces_of, places_in
from maskery.text.tokenizer import Tokenizer

SCHEMES = list(PARTS)
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefghijklmnopqrstuvwxyz", *"小宏去北京"]
UNCASED = Tokenizer.from_pieces([*WORDS, "new", "york", "##er", "##s", "cafe", "in", "20", "##19"])


def named(tags, path):
    return [tags.names[tag] for tag in path]


def row_of(text, tokenizer=UNCASED):
    """Offsets with a mark at both ends."""
    (_, offsets), *_ = tokenizer.encode_raw([text])
    return np.concatenate(([[-1, -1]], offsets, [[-1, -1]]))


def legal_by_the_book(names, closed):
    """Whether tags are well formed, told letter by letter; `closed`: spans must end by a tag of their own."""
    open_kind = None
    for name in [*names, "O"]:
        part, _, kind = name.partition("-")
        if part in ("I", "M", "E") and kind != open_kind:
            return False
        if part in ("O", "B", "S") and open_kind is not None and closed:
            return False
        if part in ("O", "S", "E"):
            open_kind = None
        elif part == "B":
            open_kind = kind
    return True


@pytest.mark.parametrize("scheme", SCHEMES)
def test_the_rules_are_those_of_the_scheme(scheme):
    tags = Tags(["LOC", "PER"], scheme)
    begins, follows, ends = tags.rules
    assert follows.shape == (len(tags), len(tags))
    for length in (1, 2, 3):
        for path in itertools.product(range(len(tags)), repeat=length):
            ruled = begins[path[0]] and all(follows[a, b] for a, b in itertools.pairwise(path)) and ends[path[-1]]
            assert ruled == legal_by_the_book(named(tags, path), scheme == "BMES"), named(tags, path)
            assert tags.well_formed(path) == ruled
            repaired, changed = tags.repair(path)
            assert tags.well_formed(repaired)
            assert (changed == 0) == ruled
            assert changed == sum(a != b for a, b in zip(path, repaired, strict=True))


def test_names():
    assert Tags(["LOC", "PER"]).names == ("O", "B-LOC", "I-LOC", "B-PER", "I-PER")
    assert Tags(["x-y"], "BMES").names == ("O", "B-x-y", "M-x-y", "E-x-y", "S-x-y")
    for scheme in SCHEMES:
        made = Tags(["LOC", "x-y"], scheme)
        again = Tags.of_names(made.names)
        assert (again.kinds, again.scheme) == (made.kinds, made.scheme)
    with pytest.raises(InputError, match="not those of a scheme"):
        Tags.of_names(["B-LOC", "O", "I-LOC"])
    with pytest.raises(InputError, match="twice: LOC"):
        Tags(["LOC", "PER", "LOC"])
    with pytest.raises(UnknownName, match="BIO"):
        Tags(["LOC"], "BOI")


@pytest.mark.parametrize(("scheme", "expected"), [("BIO", "O B-P I-P O B-L I-L"), ("BMES", "O B-P E-P O B-L E-L")])
def test_chinese(scheme, expected):
    text = "去小宏去北京"
    tags, pieces = Tags(["P", "L"], scheme), pieces_of(row_of(text), text)
    spans = (Span(1, 3, "P"), Span(4, 6, "L"))
    found = tags.encode(spans, pieces)
    assert " ".join(named(tags, found.tags)) == expected
    assert found[1:] == (0, 0, 0)
    assert pieces.slot.tolist() == [1, 2, 3, 4, 5, 6]
    assert tags.decode(found.tags, pieces) == spans


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize(
    ("text", "start", "stop"),
    [
        ("in New  Yorkers", 3, 15),
        ("in cafe\u0301 b", 3, 8),  # an accent that the tokenizer drops
        ("in café b", 3, 7),
        ("a \U0001f468\u200d\U0001f469\u200d\U0001f467 b", 2, 7),  # five characters, one sign, [UNK]
        ("去𠮷宏了北京", 1, 3),  # beyond the first plane, unknown
        ("in \u200bnew\u200b york", 4, 13),
    ],
)
def test_what_comes_back_is_what_was_there(scheme, text, start, stop):
    tags, pieces = Tags(["X"], scheme), pieces_of(row_of(text), text)
    found = tags.encode([Span(start, stop, "X")], pieces)
    assert tags.decode(found.tags, pieces) == (Span(start, stop, "X"),)
    assert found[1:] == (0, 0, 0)


def test_bytes_of_one_character_are_one_piece():
    # 👍🏽 as bytes: six tokens have parts of the first sign, two of its shade; then " b" with its space.
    text = "a👍🏽 b"
    offsets = [(0, 1), (1, 2), (1, 2), (1, 2), (2, 3), (2, 3), (3, 5)]
    pieces = pieces_of(offsets, text)
    assert pieces.slot.tolist() == [0, 1, 6]
    assert pieces.last.tolist() == [0, 5, 6]
    assert list(zip(pieces.start.tolist(), pieces.stop.tolist(), strict=True)) == [(0, 1), (1, 3), (4, 5)]
    tags = Tags(["X"])
    assert tags.decode([0, 1, 2], pieces) == (Span(1, 5, "X"),)


def test_tokens_across_a_border_are_counted_and_told():
    text = "xyz ab"
    pieces = pieces_of([(0, 3), (4, 5), (5, 6)], text)
    found = Tags(["X", "Y"]).encode([Span(0, 1, "X"), Span(1, 3, "Y"), Span(4, 5, "X")], pieces)
    assert found.tags.tolist() == [3, 1, 0]  # most of the first piece is Y's
    assert (found.straddled, found.lost, found.changed) == (1, 1, 1)


def test_words_of_the_file():
    text = "new yorkers 2019 é"
    words = ((0, 3), (4, 11), (12, 13), (13, 14), (14, 16), (17, 18))
    offsets = [(-1, -1), (0, 3), (4, 8), (8, 10), (10, 11), (12, 14), (14, 16), (-1, -1)]
    pieces = pieces_of(offsets, text, words)
    assert pieces.slot.tolist() == [1, 2, 5, 6]
    assert pieces.last.tolist() == [1, 4, 5, 6]
    assert (pieces.unread, pieces.shared) == (1, 1)  # é was not read; 2 and 0 have one token
    tags = Tags(["X"])
    spans = (Span(4, 11, "X"), Span(12, 16, "X"))
    found = tags.encode(spans, pieces)
    assert named(tags, found.tags) == ["O", "B-X", "B-X", "I-X"]
    assert tags.decode(found.tags, pieces) == spans
    each = pieces_of(offsets, text, words, every=True)
    assert named(tags, tags.encode(spans, each).tags) == ["O", "B-X", "I-X", "I-X", "B-X", "I-X"]


def test_no_span_goes_over_what_was_not_read():
    text = "ab, cdefgh ij"
    pieces = pieces_of([(0, 2), (4, 5), (8, 10), (11, 13)], text)  # "," and "def" were cut out
    assert pieces.gap.tolist() == [False, True, True, False]
    assert Tags(["X"]).decode([1, 0, 1, 2], pieces) == (Span(0, 2, "X"), Span(8, 13, "X"))
    assert Tags(["X"]).decode([0, 1, 2, 0], pieces) == (Span(4, 5, "X"), Span(8, 10, "X"))


def test_slots_of_another_text_are_not_asked():
    places = places_in([(-1, -1), (0, 2), (0, 1), (-1, -1)], [-1, 0, 1, -1], 1)
    assert places.tolist() == [[-1, -1], [-1, -1], [0, 1], [-1, -1]]


def test_refusals():
    pieces = pieces_of([(0, 1), (1, 2)], "ab")
    tags = Tags(["X"])
    with pytest.raises(InputError, match="form no spans: O I-X"):
        tags.decode([0, 2], pieces)
    with pytest.raises(InputError, match="1 tags for 2 pieces"):
        tags.decode([0], pieces)
    with pytest.raises(InputError, match=r"X at 0-2 and X at 1-2"):
        tags.encode([Span(0, 2, "X"), Span(1, 2, "X")], pieces)
    with pytest.raises(UnknownName, match="Y"):
        tags.encode([Span(0, 2, "Y")], pieces)
    nothing = pieces_of([(-1, -1)], "ab")
    assert tags.decode([], nothing) == ()
    assert tags.encode([Span(0, 2, "X")], nothing).lost == 1


@st.composite
def texts_and_spans(draw):
    """A text, tokens that cover it but for some characters, and spans that begin and end at tokens."""
    text = draw(st.text(st.sampled_from("ab 京宏é\u0301👍\u200d🏽"), min_size=1, max_size=14))
    cuts = sorted({0, len(text), *draw(st.lists(st.integers(0, len(text)), max_size=8))})
    tokens = [pair for pair in itertools.pairwise(cuts) if draw(st.integers(0, 5))]
    pieces = pieces_of([(-1, -1), *tokens, (-1, -1)], text)
    spans, at = [], 0
    while at < len(pieces):
        size = draw(st.integers(1, 3))
        last = min(at + size, len(pieces)) - 1
        if draw(st.booleans()) and not pieces.gap[at + 1 : last + 1].any():
            spans.append(Span(int(pieces.start[at]), int(pieces.stop[last]), draw(st.sampled_from("XY"))))
        at = last + 1
    return text, pieces, tuple(spans)


@pytest.mark.parametrize("scheme", SCHEMES)
@settings(deadline=None, max_examples=50)
@given(made=texts_and_spans())
def test_spans_of_pieces_come_back(scheme, made):
    _, pieces, spans = made
    tags = Tags("XY", scheme)
    found = tags.encode(spans, pieces)
    assert found[1:] == (0, 0, 0)
    assert tags.decode(found.tags, pieces) == spans


@settings(deadline=None, max_examples=50)
@given(made=texts_and_spans(), path=st.lists(st.integers(0, 8), min_size=14, max_size=14))
def test_any_tags_give_spans_inside_the_text_that_are_apart(made, path):
    text, pieces, _ = made
    assert (pieces.start[1:] >= pieces.stop[:-1]).all()
    tags = Tags("XY", "BMES")
    spans = tags.decode(tags.repair(path[: len(pieces)])[0], pieces)
    ends = [place for span in spans for place in (span.start, span.stop)]
    assert ends == sorted(ends)
    assert all(0 <= span.start < span.stop <= len(text) for span in spans)
    assert all(not text[span.start : span.stop][0].isspace() for span in spans)
