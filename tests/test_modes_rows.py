"""How rows get their mode, what the mode does to segment ids and questions, and corruption of one segment."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from chance import share_is
from hypothesis import given, settings
from hypothesis import strategies as st
from made_rows import FACTS, even_rows, made_rows
from small_model import rows_of
from tiny import build

from maskery.corpus.encode import Flag
from maskery.corruption.config import CorruptionConfig
from maskery.corruption.corrupt import candidates, corrupt
from maskery.edit import Edit
from maskery.errors import InputError
from maskery.feed import Feed
from maskery.model.config import Mode, VisibilityConfig
from maskery.objectives.config import OBJECTIVES, PAIR_OF
from maskery.randomness import keys
from maskery.recipes.recipe import check, recipe
from maskery.rows.modes import modes, with_segments_by_mode

SMALL = {"training.length": 32, "training.batch": 12, "training.steps": 50}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return build(tmp_path_factory.mktemp("modes"), heldout=0.2)


def feed(corpus, split="train", seed=3, **changes):
    return Feed(
        recipe("unilm", SMALL | {key.replace("__", "."): value for key, value in changes.items()}), corpus, seed, split
    )


def mixture(kind="full", **shares):
    """Every share, because overrides merge."""
    return {"kind": kind, "mixture": dict.fromkeys(("full", "prefix", "causal", "reverse"), 0.0) | shares}


# The draw


def test_shares_of_the_recipe():
    shares = recipe("unilm").visibility.shares
    assert shares == pytest.approx({"full": 1 / 3, "prefix": 1 / 3, "causal": 1 / 6, "reverse": 1 / 6}, abs=1e-6)
    drawn = modes(recipe("unilm").visibility, keys(0, "mode", np.arange(40_000)))
    for mode in Mode:
        assert share_is(int((drawn == mode).sum()), 40_000, shares[mode.kind])


def test_rows_without_a_mixture():
    own = keys(0, "mode", np.arange(5))
    for kind in ("full", "packed", "packed_causal"):
        assert modes(VisibilityConfig(kind=kind), own) is None
    assert modes(VisibilityConfig(kind="reverse"), own).tolist() == [Mode.REVERSE] * 5


@settings(max_examples=30, deadline=None)
@given(weights=st.lists(st.integers(0, 5), min_size=4, max_size=4).filter(any), seed=st.integers(0, 99))
def test_a_share_of_nothing_is_never_drawn(weights, seed):
    shares = {
        name: weight / sum(weights)
        for name, weight in zip(("full", "prefix", "causal", "reverse"), weights, strict=True)
    }
    drawn = modes(VisibilityConfig.model_validate({"mixture": shares}), keys(seed, "mode", np.arange(200)))
    assert {Mode(code).kind for code in drawn} <= {name for name, share in shares.items() if share}


def test_a_mode_belongs_to_split_epoch_and_row(corpus):
    made = feed(corpus)
    phase, epochs, rows = made.numbers(0)
    drawn = made.modes(phase, epochs, rows)
    back = np.arange(len(rows))[::-1]
    assert made.modes(phase, epochs[back], rows[back]).tolist() == drawn[back].tolist(), "whoever stands beside it"
    many = np.arange(400)
    first = made.modes(phase, np.zeros(400, dtype=np.int64), many)
    for other in (
        made.modes(phase, np.ones(400, dtype=np.int64), many),
        feed(corpus, "heldout").modes(phase, np.zeros(400, dtype=np.int64), many),
        feed(corpus, seed=4).modes(phase, np.zeros(400, dtype=np.int64), many),
    ):
        assert 0.1 < (first == other).mean() < 0.5, "drawn apart: equal by chance alone"


def test_ranks_and_micro_batches_read_the_same_modes(corpus):
    made = feed(corpus)
    whole = made.batch(5)
    parts = [*made.micro_batches(5, 0, 2, 4), *made.micro_batches(5, 1, 2, 4)]
    assert [m for part in parts for m in part.slots["mode"][:, 0].tolist()] == whole.slots["mode"][:, 0].tolist()
    real = torch.arange(whole.ids.shape[1]) < whole.length[:, None]
    assert (whole.slots["mode"][real] == whole.slots["mode"][:, :1].expand_as(real)[real]).all()
    assert (whole.slots["mode"][~real] == -1).all()


def test_bert_has_no_mode(corpus):
    assert list(Feed(recipe("bert", SMALL | {"training.phases": []}), corpus, 0).batch(0).slots) == ["document"]


@pytest.mark.parametrize("shares", [{"full": 0.5}, {"full": 0.6, "causal": 0.6}, {"prefix": 0.99}])
def test_shares_that_do_not_sum_to_one(shares):
    with pytest.raises(InputError, match=r"visibility.mixture: shares sum to ") as error:
        recipe("unilm", {"visibility": mixture(**shares)})
    assert error.value.repair.startswith("set { ")


def test_rounded_shares_are_taken_in_proportion():
    third = recipe("unilm", {"visibility": mixture(full=0.333, prefix=0.333, causal=0.333)})
    assert third.visibility.shares == pytest.approx(dict.fromkeys(("full", "prefix", "causal"), 1 / 3))


# Segment ids and questions


def test_segment_ids_tell_the_mode():
    rows = replace(rows_of([4, 4, 4, 4]), mode=np.array([0, 1, 2, 3], dtype=np.uint8))
    assert with_segments_by_mode(rows).segment.reshape(4, 4).tolist() == [
        [0, 0, 1, 1],
        [4, 4, 5, 5],
        [2, 2, 2, 2],
        [3, 3, 3, 3],
    ]
    assert with_segments_by_mode(rows_of([4])).segment.tolist() == [0, 0, 1, 1], "no mode: read in full"


def test_batches_carry_them_where_the_recipe_says_so(corpus):
    batch, plain = (feed(corpus, rows__segments=kind).batch(0) for kind in ("mode", "pair"))
    mode = batch.slots["mode"][:, 0]
    found = {
        Mode(code).kind: set(batch.segments[mode == code].flatten().tolist()) - {0} for code in mode.unique().tolist()
    }
    assert found == {"full": {1}, "prefix": {4, 5}, "causal": {2}, "reverse": {3}}
    assert set(plain.segments.flatten().tolist()) == {0, 1}
    assert torch.equal(plain.ids, batch.ids)


@pytest.mark.parametrize("name", PAIR_OF)
def test_a_pair_is_asked_about_where_it_is_read_in_full(name):
    rows = rows_of([4] * 8)
    rows = replace(
        rows, label=np.array([0, 1, 0, 1, -1, 1, 0, 1]), mode=np.array([0, 1, 2, 3, 0, 0, 1, 0], dtype=np.uint8)
    )
    targets = OBJECTIVES.get(name)().ask(rows, 4)
    assert targets.index.tolist() == [0, 5, 7]
    assert targets.label.tolist() == [0, 1, 1]
    assert OBJECTIVES.get(name)().ask(replace(rows, mode=None), 4).index.tolist() == [0, 1, 2, 3, 5, 6, 7]


def test_next_token_of_a_prefix_row_is_asked_behind_the_source():
    rows = replace(rows_of([6, 5, 1]), mode=np.array([1, 2, 1], dtype=np.uint8))
    targets = OBJECTIVES.get("next_token")().ask(rows, 6)
    assert targets.index.tolist() == [2, 3, 4, 6, 7, 8, 9]
    assert targets.label.tolist() == [*rows.original[3:6], *rows.original[7:11]]


# Corruption of the second segment


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 200),
    unit=st.sampled_from(["token", "word", "entity"]),
    decide=st.sampled_from(["token", "word", "span"]),
    rate=st.floats(0.05, 0.95),
    end=st.booleans(),
    shuffled=st.booleans(),
)
def test_the_second_segment_alone(seed, unit, decide, rate, end, shuffled):
    rows = made_rows(seed, 6)
    config = CorruptionConfig.model_validate(
        {
            "rate": rate,
            "unit": unit,
            "decide": decide,
            "segment": "second",
            "end": end,
            "shuffle": {"rate": 0.2 * shuffled},
        }
    )
    out = corrupt(rows, config, keys(seed, "mask", np.arange(6)), FACTS)
    touched = out.edit != Edit.NONE
    assert not touched[rows.document == 0].any()
    last = np.isin(np.arange(len(rows.ids)), rows.start[1:] - 1)
    assert not touched[rows.special & ~last].any()
    assert end or not touched[last].any()
    assert np.array_equal(out.special, rows.special)
    assert np.array_equal(out.flags, rows.flags)
    open_slots = (rows.document > 0) & (~rows.special | (last & end))
    chosen = np.isin(out.edit, (Edit.MASK, Edit.RANDOM, Edit.KEEP))
    for row in range(6):
        mine = rows.row == row
        budget = rate * int(open_slots[mine].sum())
        assert int(chosen[mine].sum()) <= max(1, np.ceil(budget))
        if unit == "token":
            assert int(chosen[mine].sum()) >= min(np.floor(budget), 1)


def test_the_end_is_a_word_of_its_own():
    rows = made_rows(3, 40)
    config = CorruptionConfig(unit="word", segment="second", end=True, rate=0.5)
    units, _ = candidates(rows, config, keys(0, "mask", np.arange(40)))
    last = rows.start[1:] - 1
    paired = last[rows.document[last] > 0]
    assert np.isin(paired, units.start).all()
    assert (units.length[np.isin(units.start, paired)] == 1).all()
    assert not np.isin(last[rows.document[last] == 0], units.start).any(), "a row without a target has no end to choose"
    assert not (rows.flags[last] & Flag.WORD).any()


@pytest.mark.parametrize("of", ["tokens", "words"])
def test_the_end_costs_what_other_words_cost(of):
    """Without a cost it would fit every budget, and be chosen in every row."""
    rows = even_rows(2, 600, 20)
    config = CorruptionConfig(unit="word", decide="word", of=of, rate=0.2, end=True)
    out = corrupt(rows, config, keys(0, "mask", np.arange(600)), FACTS)
    last = rows.start[1:] - 1
    assert 0.05 < (out.edit[last] != Edit.NONE).mean() < 0.4


def test_the_end_is_chosen_as_often_as_others_and_asked_for():
    rows = even_rows(1, 600, 20)
    out = corrupt(rows, CorruptionConfig(rate=0.4, end=True), keys(0, "mask", np.arange(600)), FACTS)
    last = rows.start[1:] - 1
    assert share_is(int((out.edit[last] != Edit.NONE).sum()), 600, 0.4)
    targets = OBJECTIVES.get("masked_token")().ask(out, int(rows.length.max()))
    assert int((targets.label == int(rows.original[last[0]])).sum()) >= int((out.edit[last] != Edit.NONE).sum())


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"end": True, "replace": {"mask": 0.5, "delete": 0.3}}, "would take out"),
        ({"segment": "second", "ngram": {"longest": 4}}, "anywhere in the row"),
        ({"segment": "first"}, "segment"),
    ],
)
def test_corruption_that_makes_no_sense(changes, told):
    with pytest.raises(InputError, match=told):
        recipe("bert", {"corruption": changes})


# Contradictions


@pytest.mark.parametrize(
    ("changes", "piece"),
    [
        ({"visibility": mixture("causal", prefix=0.5, causal=0.5)}, "objectives.next_sentence"),
        ({"visibility": {"kind": "reverse", "mixture": False}}, "objectives.next_sentence"),
        ({"visibility": {"kind": "prefix", "mixture": False}}, "objectives.next_sentence"),
        ({"visibility": mixture("packed", full=1.0)}, "visibility.kind"),
        (
            {"visibility": mixture("full", causal=1.0), "objectives.next_sentence": False},
            "visibility.kind",
        ),
        ({"rows.pair": "none", "objectives.next_sentence": False}, "visibility.mixture.prefix"),
        ({"model.segments": 2}, "rows.segments"),
        ({"model.segments": 0}, "rows.segments"),
        (
            {
                "objectives": {"next_sentence": False, "masked_token": False, "next_token": {"weight": 1.0}},
                "corruption.rate": 0.0,
            },
            "objectives.next_token",
        ),
    ],
)
def test_what_is_refused(changes, piece):
    refused = check(recipe("unilm", changes))
    assert [each.piece for each in refused] == [piece]
    assert refused[0].repair


@pytest.mark.parametrize(
    "changes",
    [
        {
            "visibility": {"kind": "prefix", "mixture": False},
            "corruption.segment": "second",
            "objectives.next_sentence": False,
        },
        {
            "visibility": {"kind": "prefix", "mixture": False},
            "corruption.rate": 0.0,
            "objectives": {"masked_token": False, "next_sentence": False, "next_token": {"weight": 1.0}},
        },
        {
            "visibility": mixture("causal", prefix=0.5, causal=0.5),
            "corruption.rate": 0.0,
            "objectives": {"masked_token": False, "next_sentence": False, "next_token": {"weight": 1.0}},
        },
    ],
    ids=["masked", "shifted", "shifted in a mixture"],
)
def test_what_is_not(changes):
    assert check(recipe("unilm", changes)) == []
