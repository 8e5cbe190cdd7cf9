from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from vocabularies import TEXT

from maskery.errors import InputError
from maskery.text.training import LAYOUT, SMALLEST, default_size, train_wordpiece

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


def test_same_text_same_vocabulary_in_every_process(tmp_path):
    (tmp_path / "lines.json").write_text(json.dumps(LINES))
    code = (
        "import json, sys; from maskery.text.training import train_wordpiece as train;"
        "print(train(iter(json.load(open(sys.argv[1]))), 330).fingerprint)"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "lines.json")]
    found = {
        subprocess.run(command, check=True, capture_output=True, env={**os.environ, "PYTHONHASHSEED": seed}).stdout
        for seed in ("1", "2", "3")
    }
    assert found == {train_wordpiece(LINES, 330).fingerprint.encode() + b"\n"}


def test_sizes():
    assert default_size(0) == 1000
    assert default_size(250_000) == 4000
    assert default_size(10**12) == 21_128
    with pytest.raises(InputError, match="no room"):
        train_wordpiece(LINES, SMALLEST - 1)
