"""The comparison of similar words with Cilin, against pairs counted one by one."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from maskery.knowledge.table import SimilarTable
from maskery.text.tokenizer import Tokenizer
from maskery.text.training import LAYOUT

sys.path.insert(0, str(Path(__file__).parent.parent))

from benchmarks.similar_words import LEVELS, codes, main, measure

CILIN = "Aa01A01= 人 士 客\nAa01A02= 手 口\nAa01B01# 民 士\nBb02A01@ 天\n"
ENTRIES = {"人": ["士", "手", "龙"], "士": ["民"], "天": ["口", "人"], "人手": ["人口"], "龙": ["人"]}
TOKENIZER = Tokenizer.from_pieces([*LAYOUT, *"人士客手口民天龙"])


def table():
    entries = {word: [(other, 0.5) for other in others] for word, others in ENTRIES.items()}
    return SimilarTable(entries=entries, tokenizer=TOKENIZER.fingerprint, made={"source": "toy"})


def slow(known, letters, first):
    """Share of pairs that share a code, and the mean of that share over every word that could have been drawn."""
    words = {*ENTRIES, *(other for others in ENTRIES.values() for other in others)} & set(known)
    pairs = [(a, b) for a, others in ENTRIES.items() for b in others[: 1 if first else 9] if {a, b} <= set(known)]

    def like(a, b):
        return any(one[:letters] == two[:letters] for one in known[a] for two in known[b])

    chance = []
    for a, _ in pairs:
        could = [word for word in words if word != a and len(word) == len(a)]
        chance.append(sum(like(a, word) for word in could) / len(could))
    return len(pairs), sum(like(a, b) for a, b in pairs) / len(pairs), sum(chance) / len(chance)


def test_shares_and_chance(tmp_path):
    file = tmp_path / "cilin.txt"
    file.write_text(CILIN, encoding="utf-8")
    known = codes(file)
    assert known["士"] == {"Aa01A01", "Aa01B01"}
    found = measure(table(), known, TOKENIZER)
    assert found["in_cilin"] == pytest.approx(3 / 5)
    for level, letters in LEVELS.items():
        for name, first in (("nearest", True), ("all", False)):
            pairs, share, chance = slow(known, letters, first)
            each = found["agreement"][level][name]
            assert each["pairs"] == pairs
            assert each["share"] == pytest.approx(share)
            assert each["random"] == pytest.approx(chance)
            assert each["interval"][0] <= each["share"] <= each["interval"][1]
    assert found["agreement"]["one line"]["all"]["share"] == pytest.approx(2 / 5)


def test_the_command(tmp_path, monkeypatch, capsys):
    (tmp_path / "cilin.txt").write_text(CILIN, encoding="utf-8")
    TOKENIZER.save(tmp_path / "tokenizer")
    table().save(tmp_path / "table.txt")
    files = [str(tmp_path / name) for name in ("table.txt", "cilin.txt")]
    asked = ["x", *files, "--tokenizer", str(tmp_path / "tokenizer"), "--json", str(tmp_path / "out.json")]
    monkeypatch.setattr(sys, "argv", asked)
    main()
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 6
    assert "one line" in lines[0]
    assert "40.00 %" in lines[1]
    assert (tmp_path / "out.json").is_file()
    (tmp_path / "cilin.txt").write_text("人 士\n", encoding="utf-8")
    with pytest.raises(SystemExit, match="no code"):
        main()
