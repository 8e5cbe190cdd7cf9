"""The file of a lexicon: what is written is read again; doubles, tags and long files."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_tokenizers import KINDS

from maskery.errors import TextError
from maskery.knowledge import lines
from maskery.knowledge.entries import read_entries, tag_of, write_entries
from maskery.knowledge.lexicon import Lexicon

every_tokenizer = pytest.mark.parametrize("kind", list(KINDS))


def entries(path):
    return [entry for block in read_entries(path) for entry in block]


@given(
    rows=st.lists(
        st.tuples(st.text("ab北京·", min_size=1), st.integers(1, 10**9), st.sampled_from(["", "nr"])), min_size=1
    )
)
def test_what_is_written_is_read_again(rows, tmp_path_factory):
    file = tmp_path_factory.mktemp("list") / "list.txt"
    write_entries(file, ["a note", "entity\tcount\ttag"], [(text, f"{count}", tag) for text, count, tag in rows])
    assert file.read_text(encoding="utf-8").startswith("# a note\n# entity\tcount\ttag\n")
    found = entries(file)
    assert [text for text, _ in found] == [text for text, _, _ in rows]
    assert [tag_of(rest) for _, rest in found] == [tag for _, _, tag in rows]


@pytest.mark.parametrize(
    ("rest", "tag"), [("", ""), ("120", ""), ("nr", "nr"), ("120\tns", "ns"), ("nt\t5", "nt"), ("120\t3.5\tnr", "")]
)
def test_a_tag_stands_behind_the_entry_or_its_count(rest, tag):
    assert tag_of(rest) == tag


def test_a_list_of_comments_has_no_entry(tmp_path):
    (tmp_path / "list.txt").write_text("# phrase\tcount\n\n#\n", encoding="utf-8")
    with pytest.raises(TextError, match="no entry"):
        entries(tmp_path / "list.txt")


@every_tokenizer
def test_lines_are_told_apart_and_doubles_are_one_entry(kind, tmp_path):
    file = tmp_path / "list.txt"
    file.write_text("北京\n大学\t3\n龘\n北京\tns\nthe dog\n" + "我" * 80 + "\n", encoding="utf-8")
    lexicon = Lexicon.read(file, KINDS[kind])
    known = [True, True, kind == "bpe", True, True, False]
    assert (lexicon.line >= 0).tolist() == known
    assert lexicon.line[0] == lexicon.line[3]
    assert len({lexicon.line[at] for at in (0, 1, 4)}) == 3
    assert lexicon.repeated == 1
    assert lexicon.distinct == sum(known) - 1


@every_tokenizer
def test_an_entry_is_counted_in_all_ways_of_writing_it(kind, tmp_path):
    """At the start, behind a space and behind a sign; once each."""
    file, tokenizer = tmp_path / "list.txt", KINDS[kind]
    file.write_text("dog\nthe\ndog\n", encoding="utf-8")
    lexicon = Lexicon.read(file, tokenizer)
    found = np.zeros(len(lexicon.trie), dtype=np.int64)
    for text in ("dog the dog", "the", "the dog"):
        ids = tokenizer.encode_raw([text])[0][0]
        shown = tokenizer.shown(ids)
        word = np.array([at == 0 or piece.startswith("▁") or kind == "wordpiece" for at, piece in enumerate(shown)])
        matches = lexicon.matches(ids, word, np.array([0, len(ids)]))
        np.add.at(found, matches.entry, 1)
    assert lexicon.counts(found)[lexicon.line].tolist() == [3, 3, 3]


def test_a_long_list_is_read_in_blocks(tmp_path, monkeypatch):
    """No more than a block of lines is held at a time; the numbers of lines go on."""
    monkeypatch.setattr(lines, "_BLOCK", 1 << 10)
    file = tmp_path / "list.txt"
    file.write_text("".join(f"北京{n}\t{n}\n" for n in range(5000)), encoding="utf-8")
    blocks, told = 0, []
    for block in read_entries(file, lambda done, total: told.append((done, total))):
        blocks += 1
        assert len(block) < 200
    assert blocks > 50
    assert told[-1] == (file.stat().st_size, file.stat().st_size)
    with file.open("a", encoding="utf-8") as more:
        more.write("\t7\n")
    with pytest.raises(TextError, match=r"list\.txt:5001: no entry before the tab"):
        entries(file)
