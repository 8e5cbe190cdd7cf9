from __future__ import annotations

import json
import math
import os
import subprocess
import sys

import pytest
from vocabularies import TEXT

from maskery.errors import InputError
from maskery.text.training import (
    KINDS,
    LARGEST,
    LAYOUT,
    SMALLEST,
    default_size,
    train_char,
    train_unigram,
    train_wordpiece,
)
from maskery.text.unigram import learn

LINES = TEXT.split("\n") * 3


def test_layout_is_googles():
    tokenizer = train_wordpiece(LINES, 400)
    assert [tokenizer.id(name) for name in ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")] == [0, 100, 101, 102, 103]
    assert all(tokenizer.id(f"[unused{n}]") == n for n in range(1, 100))
    assert tuple(tokenizer.pieces[: len(LAYOUT)]) == LAYOUT
    assert tokenizer.vocabulary <= 400
    assert len(set(tokenizer.pieces)) == tokenizer.vocabulary


def test_learns_pieces_and_knows_its_own_text():
    tokenizer = train_wordpiece(["the banana and the bandana"] * 10 + ["北京大学"] * 3, 300)
    ids = tokenizer.encode_raw(["the banana 北京大学 [unused7]"])[0][0]
    assert {"the", "banana", "北", "京"} <= set(tokenizer.tokens(ids))
    assert not any(number < 100 for number in ids), "an [unusedN] is not found in text"
    assert "##北" not in tokenizer.pieces, "Han characters stand alone and need no second form"


def test_case():
    assert "T" in train_wordpiece(["The Tree"] * 5, 300, lowercase=False).pieces
    assert "T" not in train_wordpiece(["The Tree"] * 5, 300).pieces


def test_rare_characters_without_room_are_told():
    lines = ["".join(chr(0x4E00 + n) for n in range(500)), "常见" * 10]
    tokenizer = train_wordpiece(lines, 204)
    assert "rarer characters had no room" in tokenizer.note
    assert tokenizer.id("常") is not None
    assert tokenizer.vocabulary <= 204


@pytest.mark.parametrize("kind", KINDS.names())
def test_same_text_same_tokenizer_in_every_process(tmp_path, kind):
    (tmp_path / "lines.json").write_text(json.dumps(LINES))
    code = (
        "import json, sys; from maskery.text.training import KINDS;"
        "print(KINDS.get(sys.argv[2])(iter(json.load(open(sys.argv[1]))), 330, None).fingerprint)"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "lines.json"), kind]
    found = {
        subprocess.run(
            command,
            check=True,
            capture_output=True,
            env={**os.environ, "PYTHONHASHSEED": number, "RAYON_NUM_THREADS": number},
        ).stdout
        for number in ("1", "2")
    }
    assert found == {KINDS.get(kind)(LINES, 330, None).fingerprint.encode() + b"\n"}


@pytest.mark.parametrize("kind", KINDS.names())
def test_sizes(kind):
    with pytest.raises(InputError, match="no room") as caught:
        KINDS.get(kind)(LINES, SMALLEST[kind] - 1, None)
    assert caught.value.repair == f"--vocab {SMALLEST[kind]} or more"
    made = KINDS.get(kind)(LINES, SMALLEST[kind], None)
    assert made.vocabulary <= SMALLEST[kind]
    assert len(set(made.pieces)) == made.vocabulary


def test_default_sizes():
    assert default_size("wordpiece", 0) == 1000
    assert default_size("bpe", 250_000) == 4000
    assert default_size("unigram", 10**12) == 21_128
    assert default_size("char", 10) == 21_128


def test_characters_by_code_point_behind_the_marks():
    made = train_char(["banana 北京 e\u0301"], 300)
    assert made.pieces[len(LAYOUT) :] == ["▁", "a", "b", "n", "é", "京", "北"]
    assert train_char(["AbA"], 300, lowercase=True).pieces[len(LAYOUT) :] == ["▁", "a", "b"]
    few = train_char(["".join(chr(0x4E00 + n) for n in range(500)), "常见" * 10], 200)
    assert few.vocabulary == 200
    assert "407 rarer characters had no room and read as [UNK]" in few.note
    assert few.id("常") is not None


def test_unigram_learns_what_comes_often():
    made = train_unigram(["the banana and the bandana in the cabana 北京大学 北京"] * 20, 200)
    assert {"▁the", "▁"} <= set(made.pieces)
    assert set("thebandcin北京大学") <= set(made.pieces), "every character of the text is known"
    assert made.shown(made.encode_raw(["the banana"])[0][0])[0] == "▁the"
    assert made.decode(made.encode_raw(["the cabin, 北大"])[0][0]) == "the cabin 北大", "the comma is unknown"


def test_unigram_scores_are_log_probabilities_and_pruning_keeps_the_useful():
    words = {"▁lower": 50, "▁low": 60, "▁slower": 30, "▁new": 40, "▁newer": 30, "▁x": 1}
    letters = sorted({letter for word in words for letter in word})
    pieces, left_out = learn(words, letters, len(letters) + 4)
    assert left_out == 0
    assert len(pieces) == len(letters) + 4
    assert math.isclose(sum(math.exp(score) for _, score in pieces), 1.0, rel_tol=1e-3)
    assert [score for _, score in pieces] == sorted((score for _, score in pieces), reverse=True)
    longer = {piece for piece, _ in pieces if len(piece) > 1}
    assert "er" in longer or "lower" in longer or "▁low" in longer
    assert learn({}, ["b", "a"], 5) == ([("a", 0.0), ("b", 0.0)], 0)


def test_unigram_expectations_equal_those_of_every_way_to_cut():
    """One round by hand: "ab" as a|b or ab, with equal cover of the three proposals."""
    pieces, _ = learn({"ab": 3}, ["a", "b"], 3)
    found = dict(pieces)
    a, b, ab = (math.exp(found[piece]) for piece in ("a", "b", "ab"))
    share = share_of_whole(1 / 4, 1 / 4, 1 / 2)
    apart = (1 - share) / (2 - share)
    again = share_of_whole(apart, apart, share / (2 - share))
    assert math.isclose(ab, again / (2 - again), rel_tol=1e-4)
    assert math.isclose(a, b, rel_tol=1e-9)


def share_of_whole(a, b, ab):
    """How probable it is that "ab" is one piece."""
    return ab / (ab + a * b)


def test_one_word_longer_than_all_that_is_learnt_from_does_not_hide_the_others(monkeypatch):
    monkeypatch.setattr("maskery.text.unigram._MOST_CHARACTERS", 100)
    pieces, _ = learn({"ab" * 200: 50, "cd": 9}, list("abcd"), 8)
    assert "cd" in dict(pieces)


@pytest.mark.parametrize("kind", KINDS.names())
def test_a_vocabulary_that_no_memory_holds_is_refused(kind):
    with pytest.raises(InputError, match="too large") as caught:
        KINDS.get(kind)(LINES, 10**10, None)
    assert str(LARGEST) in caught.value.repair
