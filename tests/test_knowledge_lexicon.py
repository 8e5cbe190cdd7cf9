"""Word lists, and where their entries stand: against a search that looks at one token after another."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_tokenizers import KINDS

from maskery.errors import TextError
from maskery.knowledge import lines
from maskery.knowledge.lexicon import Lexicon
from maskery.knowledge.spelling import LONGEST, Spelt

TOKENIZER = KINDS["wordpiece"]


def of_ids(entries):
    ids = np.array([number for entry in entries for number in entry], dtype=np.int64)
    length = np.array([len(entry) for entry in entries], dtype=np.int64)
    return Lexicon([Spelt(ids, length, np.zeros(len(length), dtype=bool))], vocabulary=5)


def one_by_one(entries, tokens, word, sentence_start):
    """Longest first, left to right: the rule as it is said."""
    found, at = [], 0
    while at < len(tokens):
        end_of_sentence = min(end for end in sentence_start if end > at)
        ends = [
            at + len(entry)
            for entry in entries
            if tuple(tokens[at : at + len(entry)]) == entry
            and at + len(entry) <= end_of_sentence
            and word[at]
            and (at + len(entry) == len(tokens) or word[at + len(entry)])
        ]
        if ends:
            found.append((at, max(ends) - at))
        at = max(ends, default=at + 1)
    return found


ENTRIES = st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=4).map(tuple), min_size=1, max_size=8)


@given(
    entries=ENTRIES,
    text=st.lists(st.tuples(st.integers(0, 3), st.booleans(), st.booleans()), min_size=1, max_size=40),
)
def test_matches_are_those_of_a_search_token_by_token(entries, text):
    tokens = np.array([token for token, _, _ in text], dtype=np.uint16)
    starts = np.array([place == 0 or last for place, (_, _, last) in enumerate(text)])
    sentence_start = np.append(np.flatnonzero(starts), len(text))
    word = starts | np.array([new for _, new, _ in text])
    found = of_ids(entries).matches(tokens, word, sentence_start)
    wanted = one_by_one(entries, tokens.tolist(), word.tolist(), sentence_start.tolist())
    assert list(zip(found.start.tolist(), found.length.tolist(), strict=True)) == wanted


def test_many_that_overlap_in_a_chain():
    """aba in abababa...: the first, the third, ...; each of hundreds begins inside the one before it."""
    tokens = np.array([0, 1] * 300, dtype=np.uint16)
    found = of_ids([(0, 1, 0)]).matches(tokens, np.ones(600, dtype=bool), np.array([0, 600]))
    assert found.start.tolist() == list(range(0, 597, 4))


def read(folder, text, tokenizer=TOKENIZER):
    file = folder / "list.txt"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return Lexicon.read(file, tokenizer)


def places(lexicon, text, tokenizer=TOKENIZER):
    """What is found in a text of one sentence in which each token is a word."""
    ids = tokenizer.encode_raw([text])[0][0]
    found = lexicon.matches(ids, np.ones(len(ids), dtype=bool), np.array([0, len(ids)]))
    shown = tokenizer.shown(ids)
    return ["".join(shown[at : at + many]) for at, many in zip(found.start, found.length, strict=True)]


def test_a_file_has_an_entry_a_line_and_perhaps_a_count_or_a_tag(tmp_path):
    listed = read(
        tmp_path,
        "\ufeff北京大学\t120\n北京\tns\r\n\n# a comment\n#\nNew York\t7\tns\tmore\n周杰伦\t\n北京\nnew york\n龘\n",
    )
    assert (listed.entries, listed.distinct, listed.repeated, listed.unknown) == (7, 4, 2, 1)
    assert places(listed, "我们去北京大学看New York周杰伦") == ["北京大学", "newyork", "周杰伦"]


@pytest.mark.parametrize("kind", KINDS)
def test_entries_are_found_at_the_start_behind_a_space_and_behind_a_sign(tmp_path, kind):
    listed = read(tmp_path, "dog\n北京\n", KINDS[kind])
    for text in ("dog", "the dog", "。dog"):
        assert [each.strip("▁") for each in places(listed, text, KINDS[kind])] == ["dog"], text
    for text in ("北京", "the 北京", "我北京"):
        assert [each.strip("▁") for each in places(listed, text, KINDS[kind])] == ["北京"], text
    assert (listed.entries, listed.distinct, listed.repeated) == (2, 2, 0)


def test_several_files_are_one_list_and_long_lines_are_left_out(tmp_path):
    one, two = tmp_path / "one.txt", tmp_path / "two.txt"
    one.write_text("北京\n大学\n", encoding="utf-8")
    two.write_text("大学\n" + "大学" * LONGEST + "\n", encoding="utf-8")
    listed = Lexicon.read([one, two], TOKENIZER)
    assert (listed.entries, listed.distinct, listed.repeated, listed.too_long, listed.unknown) == (4, 2, 1, 1, 0)


def test_blocks_of_lines_do_not_matter(tmp_path, monkeypatch):
    text = "北京\n大学\n我们\n" * 50 + "周杰伦"
    whole = read(tmp_path, text)
    monkeypatch.setattr(lines, "_BLOCK", 10)
    told = []
    parts = Lexicon.read(tmp_path / "list.txt", TOKENIZER, lambda done, total: told.append((done, total)))
    assert (parts.entries, parts.distinct) == (whole.entries, whole.distinct) == (151, 4)
    assert len(told) > 10
    assert told[-1][0] == told[-1][1] == (tmp_path / "list.txt").stat().st_size


@pytest.mark.parametrize(
    ("content", "cause", "line"),
    [
        (b"", "no entry", None),
        (b"\n# only a comment\n\n", "no entry", None),
        ("好\n北京\n".encode("gbk"), "byte 0xba is not UTF-8", 1),
        ("ok\n北京\n".encode("gbk"), "is not UTF-8", 2),
        (b"\xef\xbb\xbfok\n\xff\n", "byte 0xff is not UTF-8", 2),
        (b"ok\n\n\0\n", "a zero byte", 3),
        ("北京\n\t5\n".encode(), "no entry before the tab", 2),
        ("北京\t首都\t中国\n".encode(), "'首都' behind the tab", 1),
    ],
)
def test_bad_lists_are_refused_with_file_and_line(tmp_path, content, cause, line):
    with pytest.raises(TextError, match=cause) as caught:
        read(tmp_path, content)
    assert caught.value.line == line
    assert caught.value.repair


def test_what_is_no_file_is_refused(tmp_path):
    with pytest.raises(TextError, match="is a folder"):
        Lexicon.read(tmp_path, TOKENIZER)
    with pytest.raises(TextError, match="no such file"):
        Lexicon.read(tmp_path / "nothing", TOKENIZER)


@given(content=st.one_of(st.binary(max_size=40), st.text(max_size=40).map(str.encode)))
def test_any_file_is_read_or_refused(tmp_path_factory, content):
    folder = tmp_path_factory.getbasetemp()
    with suppress(TextError):
        listed = read(folder, content)
        assert listed.entries == listed.distinct + listed.repeated + listed.unknown + listed.too_long >= 1
        return
    with pytest.raises(TextError, match=r"list\.txt") as caught:
        read(folder, content)
    assert caught.value.repair
