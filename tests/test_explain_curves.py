"""Curves of runs: ticks, smoothing, gaps, legends, and the static drawing."""

import json
import math
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pages import SVG, check_page, check_svg, texts
from run_folders import line_of, run_folder

from maskery.errors import InputError, UnknownName
from maskery.explain.curves import curves
from maskery.explain.history import distinct_names, histories
from maskery.explain.series import smoothed, stretches, thinned, window
from maskery.picture.axes import short_number, short_time, ticks, time_ticks
from maskery.train.run import Run

NUMBER = st.floats(-1e6, 1e6, allow_subnormal=False)


@given(NUMBER, st.floats(1e-3, 1e6), st.integers(2, 12))
def test_ticks_are_round_even_and_inside(low, size, count):
    high = low + size
    found = ticks(low, high, count)
    slack = 1e-6 * size
    assert all(low - slack <= tick <= high + slack for tick in found)
    assert 1 <= len(found) <= count + 2
    steps = np.diff(found)
    assert np.allclose(steps, steps[:1], rtol=1e-6, atol=slack)


def test_ticks_by_hand():
    assert ticks(0, 300, 6) == [0, 50, 100, 150, 200, 250, 300]
    assert time_ticks(0, 600, 5) == [0, 120, 240, 360, 480, 600]
    assert time_ticks(0, 0.5, 5) == pytest.approx([0, 0.1, 0.2, 0.3, 0.4, 0.5])
    assert ticks(3, 3, 5) == [3]
    assert ticks(math.nan, 1, 5) == []


@pytest.mark.parametrize(
    ("value", "shown"), [(0, "0"), (1500, "1.5k"), (2e6, "2M"), (-20_000, "-20k"), (0.25, "0.25"), (3e9, "3G")]
)
def test_short_numbers(value, shown):
    assert short_number(value) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"), [(0, "0"), (0.25, "0.25s"), (45, "45s"), (90, "1m 30s"), (7200, "2h"), (90_061, "1d 1h")]
)
def test_short_times(seconds, shown):
    assert short_time(seconds) == shown


@given(st.lists(st.floats(-100, 100) | st.just(math.nan), min_size=1, max_size=200), st.integers(1, 20))
def test_smoothing_stays_between_and_keeps_gaps(values, over):
    values = np.array(values)
    found = smoothed(values, over)
    assert np.array_equal(np.isnan(found), np.isnan(values))
    fine = values[np.isfinite(values)]
    if len(fine):
        assert np.nanmin(found) >= fine.min() - 1e-9
        assert np.nanmax(found) <= fine.max() + 1e-9


def test_smoothing_of_a_constant_is_the_constant():
    assert smoothed(np.full(50, 3.0), 9) == pytest.approx(np.full(50, 3.0))
    assert window(10) == 1
    assert window(400) == 20


@given(st.lists(st.floats(-100, 100), min_size=1, max_size=500), st.integers(4, 60))
def test_thinning_loses_no_spike(values, most):
    y = np.array(values)
    x = np.arange(len(y), dtype=float)
    across, down = thinned(x, y, most)
    assert len(across) <= max(most, 2)
    assert (down.min(), down.max()) == (y.min(), y.max())
    assert (np.diff(across) > 0).all()


def test_stretches_part_at_what_is_not_a_number():
    y = np.array([math.nan, 1, 2, math.inf, 3, math.nan])
    found = [part.tolist() for _, part in stretches(np.arange(6.0), y)]
    assert found == [[1, 2], [3]]


def test_names_are_as_short_as_they_can_be(tmp_path):
    paths = [tmp_path / "a" / "run", tmp_path / "b" / "run", tmp_path / "other", tmp_path / "other"]
    assert distinct_names(paths) == ["a/run", "b/run", "other", "other (2)"]


def evaluated(steps, every=20):
    return [
        line_of(s, **({"eval__loss": 5.5, "eval__accuracy": 0.1} if s % every == 0 else {}))
        for s in range(1, steps + 1)
    ]


def test_one_run(tmp_path):
    run = run_folder(tmp_path / "my <run>", evaluated(100))
    picture = curves(run)
    assert picture.title == "loss of my <run>"
    page = check_page(picture.html())
    assert page.ids == []
    root = check_svg(picture.svg)
    shown = texts(root)
    assert {"loss", "steps", "0", "100"} <= set(shown)
    assert any("smoothed over about 5 updates" in text for text in shown)
    points = [each for each in root.iter(f"{SVG}path") if "mk-point" in each.get("class", "")]
    assert len(points) == 5 + 1, "one more in the legend"
    assert page.data[0]["panels"][0]["curves"][0]["points"] == [[20, 40, 60, 80, 100], [5.5] * 5]


def test_several_runs_of_different_lengths_gaps_and_no_evaluation(tmp_path):
    long = run_folder(tmp_path / "long", evaluated(200))
    broken = run_folder(tmp_path / "broken", [line_of(s, math.nan if 20 < s < 30 else None) for s in range(1, 81)])
    other = run_folder(tmp_path / "other", [line_of(s) for s in range(1, 41)], recipe="roberta")
    picture = curves([long, Run(broken), str(other)])
    note = " ".join(texts(check_svg(picture.svg)))
    assert "No eval/loss: broken and other." in note
    assert "9 values that are not a number" in note
    assert "The runs ask different questions" in note
    data = check_page(picture.html()).data[0]
    assert [curve["label"] for curve in data["panels"][0]["curves"]] == ["long", "broken", "other"]
    assert data["frames"][0][0][4:6] == [0, 200]
    lines = re.findall(r'<path d="(M[^"]*)" class="mk-s1"', picture.svg)
    assert any(line.count("M") == 2 for line in lines), "the gap parts the line in two"
    dashes = set(re.findall(r'stroke-width="2" stroke-dasharray="([^"]+)"', picture.svg))
    assert len(dashes) == 2, "the second and third run have a dash of their own"


def test_units_have_panels_and_axes_can_be_chosen(tmp_path):
    run = run_folder(tmp_path / "run", evaluated(60))
    picture = curves(run, ("loss", "loss/masked_token", "eval/accuracy"), x="seconds")
    data = check_page(picture.html()).data[0]
    assert [panel["unit"] for panel in data["panels"]] == ["loss", "accuracy"]
    assert data["frames"][0][0][5] == pytest.approx(120), "100 tokens a step at 50 a second"
    assert "training time" in texts(check_svg(picture.svg))
    assert curves(run, x="tokens").svg != picture.svg


@pytest.mark.parametrize("values", [[1.0], [2.0, 2.0], [math.nan, math.nan, 1.0]])
def test_very_short_runs(tmp_path, values):
    run = run_folder(tmp_path / "run", [line_of(step, value) for step, value in enumerate(values, 1)])
    check_svg(curves(run).svg)


def test_a_run_of_nothing_but_nan_is_still_drawn(tmp_path):
    run = run_folder(tmp_path / "run", [line_of(step, math.nan) for step in range(1, 50)])
    assert any("49 values that are not a number" in text for text in texts(check_svg(curves(run).svg)))


def test_a_long_run_makes_a_small_picture(tmp_path):
    run = run_folder(tmp_path / "run", [line_of(step, 5 + math.sin(step)) for step in range(1, 20_001)])
    assert len(curves(run).html()) < 400_000


def test_refusals(tmp_path):
    (tmp_path / "empty").mkdir()
    run = run_folder(tmp_path / "run", [line_of(1)])
    for wrong, kind, told in (
        (lambda: curves(tmp_path / "no"), InputError, "no such folder"),
        (lambda: curves(tmp_path / "empty"), InputError, "is no run folder"),
        (lambda: curves(run_folder(tmp_path / "new", [])), InputError, "no update yet"),
        (lambda: curves([]), InputError, "no run is given"),
        (lambda: curves(run, x="step"), UnknownName, "did you mean steps"),
        (lambda: curves(run, ["los"]), UnknownName, "did you mean loss"),
        (lambda: curves(run, ["eval/loss"]), InputError, "none of the runs was evaluated"),
    ):
        with pytest.raises(kind, match=told):
            wrong()


def test_a_line_cut_short_by_a_crash_is_left_out(tmp_path):
    run = run_folder(tmp_path / "run", [line_of(1), line_of(2)])
    with open(run / "metrics.jsonl", "a") as file:
        file.write(json.dumps(line_of(3))[:20])
    assert len(histories(run)[0].lines) == 2
