"""The benchmark of the cache: both sides write the same, and the table has a cell for each head."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent))

from small_run import corpus_in, run_quietly, tiny_recipe

from benchmarks import blanks, generate, report, report_writing


def test_both_sides_write_the_same_and_fill_the_table(monkeypatch):
    monkeypatch.setattr(generate, "VOCABULARY", 200)
    cases = list(generate.cases("tiny", ["gpt2", "bart"], 5, 4, 1))
    assert [(each["recipe"], each["rows"], each["same_texts"]) for each in cases] == [
        ("gpt2", 8, 8), ("gpt2", 1, 1), ("bart", 8, 8), ("bart", 1, 1),
    ]  # fmt: skip
    for each in cases:
        assert each["ratio"] == pytest.approx(each["anew_seconds"] / each["cached_seconds"])
    for language in report.PAGES:
        lines = report.markdown("generate", language, {"generate": {"cases": cases}}).splitlines()
        assert len(lines) == 2 + len(cases)
        assert len({line.count("|") for line in lines}) == 1
    assert set(report_writing.HEADS) == set(report_writing.FILES) == set(report_writing.TABLES)


def test_blanks_of_a_little_bart(tmp_path):
    corpus = corpus_in(tmp_path)
    run, _ = run_quietly(tiny_recipe("bart", training__steps=2), corpus, tmp_path / "run")
    found = blanks.measure(run.path, corpus, 3, 20)
    assert found["rows"] == len(found["shown"]) == 3
    for side in ("written", "copied"):
        low, high = found[side]["interval"]
        assert 0 <= low <= found[side]["mean"] <= high <= 1
    assert found["copied"]["mean"] > 0.3, "what is read is the original with blanks"
    assert any("[MASK]" in each["read"] for each in found["shown"])
    assert not any("[MASK]" in each["original"] for each in found["shown"])
    for language in report.PAGES:
        for name, lines in (("blanks", 4), ("blanks_shown", 5)):
            told = report.markdown(name, language, {name: found}).splitlines()
            assert len(told) == lines
            assert len({line.count("|") for line in told}) == 1


def test_the_table_of_syllables():
    side = {"characters": 0.5, "interval": [0.4, 0.6], "texts": 0.25}
    found = {"pinyin": {"transformer": side, "most_frequent": side}}
    for language in report.PAGES:
        lines = report.markdown("pinyin", language, found).splitlines()
        assert len(lines) == 4
        assert lines[2].endswith("| 50.00 [40.00, 60.00] | 25.00 |")
