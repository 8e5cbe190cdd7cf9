"""The learning rate and the phases as functions of the step."""

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maskery.phases import phase_at, phases_of
from maskery.recipes.recipe import recipe
from maskery.train.config import DECAYS, PhaseConfig, TrainingConfig
from maskery.train.schedules import Longer, rate, warmup_steps


def training(**changes):
    return TrainingConfig(**({"lr": 1e-4, "warmup": 10_000, "steps": 1_000_000, "length": 128} | changes))


def test_linear_is_as_the_surveys_word_it():
    plan = training(decay="linear")
    assert rate(plan, 1) == pytest.approx(1e-8, rel=1e-12)
    assert rate(plan, 5_000) == pytest.approx(5e-5, rel=1e-12)
    assert rate(plan, 10_000) == pytest.approx(1e-4, rel=1e-12)
    assert rate(plan, 505_000) == pytest.approx(5e-5, rel=1e-12)
    assert rate(plan, 1_000_000) == 0


def test_google_falls_from_the_first_step():
    plan = training(decay="google")
    assert rate(plan, 5_000) == pytest.approx(5e-5, rel=1e-12), "warm-up goes to the full peak"
    assert rate(plan, 10_000) == pytest.approx(9.9e-5, rel=1e-12)
    assert rate(plan, 505_000) == pytest.approx(4.95e-5, rel=1e-12)
    assert rate(plan, 1_000_000) == 0


def test_electra_multiplies_warm_up_and_decay():
    """Nothing jumps, and the peak is never reached."""
    plan = training(decay="electra", warmup=10_000)
    assert rate(plan, 5_000) == pytest.approx(1e-4 * 0.5 * 0.995, rel=1e-12)
    assert rate(plan, 10_000) == pytest.approx(1e-4 * 0.99, rel=1e-12)
    assert rate(plan, 505_000) == pytest.approx(4.95e-5, rel=1e-12)
    assert rate(plan, 1_000_000) == 0
    assert rate(training(decay="electra", warmup=0, steps=10), 5) == pytest.approx(5e-5)


def test_cosine_constant_and_inverse_root():
    assert rate(training(decay="cosine"), 10_000) == pytest.approx(1e-4)
    assert rate(training(decay="cosine"), 505_000) == pytest.approx(5e-5)
    assert rate(training(decay="cosine"), 1_000_000) == pytest.approx(0, abs=1e-18)
    assert rate(training(decay="constant"), 1_000_000) == 1e-4
    assert rate(training(decay="inverse_sqrt"), 10_000) == pytest.approx(1e-4)
    assert rate(training(decay="inverse_sqrt"), 40_000) == pytest.approx(5e-5)


def test_warm_up_is_a_share_or_a_number():
    assert warmup_steps(training(warmup=0.01)) == 10_000
    assert warmup_steps(training(warmup=0.01, steps=1_000)) == 10
    assert warmup_steps(training(warmup=250)) == 250
    assert warmup_steps(training(warmup=1)) == 1
    assert warmup_steps(training(warmup=0)) == 0
    assert rate(training(warmup=0, decay="constant"), 1) == 1e-4


plans = st.builds(
    lambda steps, warmup, decay: training(steps=steps, warmup=warmup, decay=decay),
    st.integers(1, 400),
    st.floats(0, 0.99),
    st.sampled_from([name for name in DECAYS.names() if name != "electra"]),
)


@given(plan=plans)
def test_every_schedule_rises_to_the_peak_and_never_again(plan):
    rates = [rate(plan, step) for step in range(1, plan.steps + 1)]
    assert rates == [rate(plan, step) for step in range(1, plan.steps + 1)], "a function of the step alone"
    assert all(math.isfinite(value) and 0 <= value <= plan.lr * (1 + 1e-9) for value in rates)
    turn = max(1, warmup_steps(plan))
    rising, falling = rates[: turn - 1], rates[turn - 1 :]
    assert rising == sorted(rising)
    assert falling == sorted(falling, reverse=True)
    assert rising == pytest.approx([plan.lr * step / turn for step in range(1, turn)])


@pytest.mark.parametrize("decay", DECAYS.names())
def test_beyond_the_end_the_rate_stays(decay):
    plan = training(decay=decay, steps=100, warmup=10)
    assert rate(plan, 150) == rate(plan, 100)


# Phases

TWO = (PhaseConfig(steps=900_000, length=128), PhaseConfig(steps=100_000, length=512, batch=64, lr=5e-5))


def test_phases_are_proportions_of_the_steps():
    for steps, cut in ((1_000_000, 900_000), (1_000, 900), (15, 14), (7, 6)):
        first, second = phases_of(training(steps=steps, phases=TWO))
        assert (first.number, first.first, first.stop, first.length, first.batch) == (0, 0, cut, 128, 256)
        assert (second.number, second.first, second.stop, second.length, second.batch) == (1, cut, steps, 512, 64)


def test_a_phase_has_its_own_peak():
    plan = training(steps=1_000, warmup=0, decay="constant", phases=TWO)
    assert rate(plan, 900) == 1e-4, "update 900 is the last of the first phase"
    assert rate(plan, 901) == 5e-5
    falling = training(steps=1_000, warmup=0, decay="linear", phases=TWO)
    assert rate(falling, 950) == pytest.approx(5e-5 * 0.05), "the decay runs over all phases"


def test_without_phases_there_is_one():
    (only,) = phases_of(training(steps=50, batch=8))
    assert (only.first, only.stop, only.length, only.batch, only.lr) == (0, 50, 128, 8, 1e-4)


@given(steps=st.integers(1, 3_000), shares=st.lists(st.integers(1, 1_000), min_size=1, max_size=5))
def test_phases_tile_the_steps(steps, shares):
    given_phases = tuple(PhaseConfig(steps=share, length=8 + number) for number, share in enumerate(shares))
    phases = phases_of(training(steps=steps, phases=given_phases))
    assert phases[0].first == 0
    assert phases[-1].stop == steps
    assert all(one.stop == other.first for one, other in pairwise(phases))
    assert [phase.number for phase in phases] == list(range(len(phases)))
    for phase in phases:
        share = shares[phase.length - 8]
        assert abs((phase.stop - phase.first) - steps * share / sum(shares)) <= 1
    for step in {0, steps // 2, steps - 1}:
        at = phase_at(phases, step)
        assert at.first <= step < at.stop
    assert phase_at(phases, steps + 5) == phases[-1]


def test_the_transformer_warms_up_as_published_and_shorter_runs_keep_the_shape():
    published = recipe("transformer").training
    assert warmup_steps(published) == 4000
    for step in (1, 1000, 4000, 50_000):
        assert rate(published, step) == pytest.approx(512**-0.5 * min(step**-0.5, step * 4000**-1.5), rel=1e-4)
    short = recipe("transformer", {"training.steps": 6})
    assert short.require() is short


def test_a_longer_run_goes_over_to_the_new_schedule_in_a_straight_line():
    long = training(warmup=0.1, steps=200, lr=1.0, decay="linear")
    short = long.model_copy(update={"steps": 100})
    longer = (Longer(step=100, before=100, after=200, lr=0.0),)
    for step in (1, 10, 50, 100):
        assert rate(long, step, longer) == rate(short, step), "what was done stays"
    for step in range(101, 121):
        assert rate(long, step, longer) == pytest.approx((step - 100) / 20 * (200 - step) / 180)
    for step in range(120, 201):
        assert rate(long, step, longer) == rate(long, step)
    twice = (*longer, Longer(step=110, before=200, after=400, lr=rate(long, 110, longer)))
    longest = long.model_copy(update={"steps": 400})
    assert rate(longest, 110, twice) == rate(long, 110, longer)
    assert rate(longest, 111, twice) == pytest.approx(twice[1].lr + (rate(longest, 111) - twice[1].lr) / 40)


def test_without_warm_up_the_new_schedule_holds_at_once():
    long = training(warmup=0.0, steps=200, lr=1.0, decay="linear")
    assert rate(long, 101, (Longer(step=100, before=100, after=200, lr=0.0),)) == rate(long, 101)
