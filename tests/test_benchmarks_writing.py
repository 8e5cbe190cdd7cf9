"""The benchmark of the cache: both sides write the same, and the table has a cell for each head."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent))

from benchmarks import generate, report, report_writing


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
