"""The benchmarks' own arithmetic, how they measure memory, and that pages show what the result files hold."""

import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks import peak, report, report_recipes  # noqa: E402
from benchmarks.growth import against, exponent, line  # noqa: E402

MEGABYTE = 2**20
positive = st.floats(0.01, 100)


@given(positive, st.floats(0.2, 3))
def test_the_power_of_a_power_law_is_found(scale, power):
    x = [1, 2, 4, 8, 16]
    assert exponent(x, [scale * each**power for each in x]) == pytest.approx(power)


@given(st.floats(0, 100), positive)
def test_a_line_is_found(fixed, each):
    x = [1, 2, 4, 8, 60]
    assert line(x, [fixed + each * place for place in x]) == pytest.approx((fixed, each), rel=1e-5, abs=1e-5)


def test_a_fixed_cost_is_never_negative():
    fixed, each = line([1, 2, 4], [1, 4, 16])
    assert fixed == 0
    assert each > 0


def test_what_grew_too_much_is_above_one():
    assert against([2, 4, 16], [1, 2, 4], 0) == [1, 1, 2]


def takes(megabytes):
    """The peak above what was there, of a block that is gone when the peak is read."""
    before = peak.resident()
    peak.forget()
    block = bytearray(b"\1" * (megabytes * MEGABYTE))
    size = len(block)
    del block
    return peak.highest() - before, size


def fails(_):
    raise ValueError("on purpose")


@pytest.mark.skipif(not peak.STATUS.is_file(), reason="the peak of a stretch of work is told by Linux only")
def test_a_peak_that_has_gone_is_seen():
    more, size = peak.alone(takes, 200)
    assert size <= more < 2.2 * size, "the block, and a second one where it is copied"
    assert peak.alone(takes, 20)[0] < 60 * MEGABYTE, "a fresh process knows nothing of the peak before"


def test_an_error_in_another_process_comes_back():
    with pytest.raises(RuntimeError, match="ValueError: on purpose"):
        peak.alone(fails, 0)


@pytest.mark.skipif(not peak.STATUS.is_file(), reason="the memory of other processes is told by Linux only")
def test_a_tree_of_processes_is_watched_together():
    child = "import time; block = b'1' * (80 << 20); time.sleep(1.5)"
    code = f"import subprocess, sys; block = b'1' * (80 << 20); subprocess.run([sys.executable, '-c', {child!r}])"
    found = peak.run_and_watch([sys.executable, "-c", code], peak.environment(1))
    assert found > 160 * MEGABYTE
    with pytest.raises(RuntimeError, match=r"code 3:\nspoken"):
        peak.run_and_watch([sys.executable, "-c", "print('spoken'); exit(3)"], peak.environment(1))


@pytest.mark.parametrize("language", report.PAGES)
def test_pages_show_the_result_files(language):
    pages = [path.read_text(encoding="utf-8") for path in report.PAGES[language]]
    assert all("".join(pages).count(f"<!-- {name} -->") == 1 for name in report.HEADS)
    for page in pages:
        assert report.filled(page, language, report.results()) == page, "python -m benchmarks.report"


def test_tables_have_as_many_cells_as_heads():
    point = {"rows": 2, "length": 64, "seconds": 1.0, "tokens_per_second": 128.0, "quadratic_share": 0.1}
    point |= {"of_expected": 1.0, "of_line": 1.0, "peak_bytes": 3 * MEGABYTE, "planned_bytes": 2 * MEGABYTE}
    point |= {"megabytes": 1, "tokenizer": "train", "tokens": 5, "ranks": 1, "threads": 2, "loss": 1.5}
    side = {"size": "mini", "rows": 2, "length": 64, "dropout": 0.1, "fill": "ragged", "ratio": 0.5}
    side |= dict.fromkeys(("ours_bytes", "planned_bytes", "eager_bytes", "sdpa_bytes"), MEGABYTE)
    found = {name: {"points": [point]} for name in report.TABLES} | {"memory": {"rows": [side]}}
    share = {"accuracy": 0.5, "interval": [0.4, 0.6], "loss": 1.0, "head": "fresh", "difference": 0.0}
    share |= {"difference_interval": [-0.1, 0.1]}
    variant = {"same_as": None, "batch": 32, "steps": 9, "runs": [{"seed": 0, "tokens": 5}], "own_accuracy": None}
    variant |= {"masked": share, "trained_with": [], "questions": {"next_sentence": share}}
    compared = {"variants": [{**variant, "label": "bert"}, {**variant, "label": "none"}]}
    found |= dict.fromkeys(report_recipes.HEADS, compared)
    run = {"own": {}, "parameters": {"total": 7}, "planned_bytes": MEGABYTE, "tokens_per_second": 9.0}
    shapes = {"variants": [{**variant, "label": "bert"}], "shapes": {"bert": run}}
    probed = {"probe": {"bert": share, "bert, untrained": share}}
    found |= {"shapes": shapes, "probe": shapes | probed}
    found["ordered"] = {"shapes": {"bert": run | {"own": {"eval/loss": 2.0}}}, **probed}
    stretches = {"by_seed": [[0.1, 0.2, 0.3, 0.4]], "accuracy": [0.1, 0.2, 0.3, 0.4], "interval": [[0.0, 1.0]] * 4}
    found |= {"longer_rows": {"models": {"nezha": stretches}}, "shape_speed": {"rows": [{**side, "name": "albert"}]}}
    for name in report.TABLES:
        for language in report.PAGES:
            lines = report.markdown(name, language, found).splitlines()
            assert len(lines) == 3
            assert len({each.count("|") for each in lines}) == 1, lines
    assert "| **0.50** |" in report.markdown("memory", "en", found)
