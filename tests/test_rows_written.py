"""What a decoder reads and writes, against lists: the whole text, the chosen tokens, the second segment."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_rows import FACTS, made_rows
from small_run import corpus_in, tiny_recipe

from maskery.corruption.config import CorruptionConfig
from maskery.corruption.corrupt import corrupt
from maskery.edit import ASKED, Edit
from maskery.feed import Feed, batch
from maskery.model.transformer import inputs_of
from maskery.objectives.next_token import NextToken
from maskery.randomness import keys
from maskery.recipes.recipe import check, recipe
from maskery.rows.config import RowsConfig
from maskery.rows.written import source, written
from maskery.system import System

CLS, SEP = 2, 3
SPECIALS = SimpleNamespace(pad=0, unk=1, cls=CLS, sep=SEP, mask=4)
FRAGMENT = CorruptionConfig(rate=0.5, span={"law": "fragment", "ends": 0.2})
BART = CorruptionConfig(
    rate=0.3,
    decide="span",
    span={"law": "poisson", "mean": 3.0},
    replace={"mask": 0.0, "random": 0.0, "keep": 0.0, "infill": 1.0},
    order={"sentences": True},
)


def rows_of(seed, many=4, config=None):
    clean = made_rows(seed, many)
    corrupted = clean if config is None else corrupt(clean, config, keys(seed, "mask", np.arange(many)), FACTS)
    return clean, corrupted


def lists(rows, values):
    return [values[rows.start[row] : rows.start[row + 1]].tolist() for row in range(len(rows))]


def asked(clean, corrupted, **config):
    made = written(clean, corrupted, RowsConfig(kind="segment_pair", **config), SPECIALS)
    assert np.array_equal(made.ids, made.original)
    assert (made.edit == Edit.NONE).all()
    assert made.mode is None
    assert len(made) == len(clean)
    return made


@given(st.integers(0, 10**6), st.sampled_from(["begin", "end"]))
@settings(max_examples=25, deadline=None)
def test_the_whole_text_shifted_by_one(seed, start):
    clean, corrupted = rows_of(seed, config=BART)
    made = asked(clean, corrupted, decoder="text", decoder_start=start)
    for row, reads, says in zip(lists(clean, clean.ids), lists(made, made.ids), lists(made, made.next), strict=True):
        wanted = row if start == "end" else row[1:]
        assert says == wanted
        assert reads == [SEP if start == "end" else CLS, *wanted[:-1]]
    assert made.position is None


@given(st.integers(0, 10**6), st.sampled_from([FRAGMENT, CorruptionConfig(rate=0.4)]))
@settings(max_examples=25, deadline=None)
def test_the_chosen_tokens_at_their_own_positions(seed, config):
    """MASS: a slot reads the token before the one that it is asked for, at that token's position."""
    clean, corrupted = rows_of(seed, config=config)
    made = asked(clean, corrupted, decoder="chosen")
    for row, edits, reads, says, places in zip(
        lists(clean, clean.ids),
        lists(corrupted, corrupted.edit),
        lists(made, made.ids),
        lists(made, made.next),
        lists(made, made.position),
        strict=True,
    ):
        chosen = [slot for slot, edit in enumerate(edits) if edit in ASKED]
        assert says == [row[slot] for slot in chosen]
        assert reads == [row[slot - 1] for slot in chosen]
        assert places == [slot - 1 for slot in chosen]


@given(st.integers(0, 10**6), st.sampled_from(["begin", "end"]))
@settings(max_examples=25, deadline=None)
def test_the_second_segment_while_the_encoder_reads_the_first(seed, start):
    clean, _ = rows_of(seed)
    config = RowsConfig(decoder="target", decoder_start=start)
    first = source(clean, config)
    made = asked(clean, first, decoder="target", decoder_start=start)
    rows = zip(
        lists(clean, clean.ids),
        lists(clean, clean.document),
        lists(first, first.ids),
        lists(made, made.ids),
        lists(made, made.next),
        strict=True,
    )
    for row, pieces, read, reads, says in rows:
        assert read == [token for token, piece in zip(row, pieces, strict=True) if piece == 0]
        wanted = [token for token, piece in zip(row, pieces, strict=True) if piece > 0]
        assert says == wanted
        assert reads == [SEP if start == "end" else CLS, *wanted][: len(wanted)]


def test_the_encoder_reads_all_where_the_text_is_written():
    clean, _ = rows_of(0)
    assert source(clean, RowsConfig(decoder="text")) is clean


def test_every_slot_of_a_decoder_is_asked_and_the_last_answer_is_read_by_nobody():
    clean, corrupted = rows_of(3, config=BART)
    made = asked(clean, corrupted, decoder="text", decoder_start="end")
    targets = NextToken().ask(made, 200)
    assert targets.label.tolist() == made.next.tolist()
    assert targets.index.tolist() == [row * 200 + slot for row, slot in zip(made.row, made.slot, strict=True)]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return corpus_in(tmp_path_factory.mktemp("written"))


@pytest.mark.parametrize("name", ["bart", "mass"])
def test_a_batch_holds_both_and_counts_the_encoder_alone(name, corpus):
    made = batch(tiny_recipe(name), corpus)
    decoder = made.decoder
    assert list(made.targets) == []
    assert list(decoder.targets) == ["next_token"]
    assert (made.rows == decoder.rows).all()
    assert made.tokens == int(made.length.sum())
    assert len(decoder.targets["next_token"].label) == int(decoder.length.sum())
    offset = recipe(name).model.position_offset
    for row in range(made.size):
        one, mine = made.one(row), int(decoder.length[row])
        assert one.decoder.ids.tolist() == [decoder.ids[row, :mine].tolist()]
        assert one.decoder.positions.tolist() == [decoder.positions[row, :mine].tolist()]
        places = decoder.positions[row, :mine] - offset
        text = made.original[row]
        if name == "mass":
            assert decoder.ids[row, :mine].tolist() == text[places].tolist()
            assert (made.edit[row, places + 1] > 0).all()
        else:
            assert places.tolist() == list(range(mine))
            assert decoder.ids[row, :2].tolist() == [corpus.specials.sep, corpus.specials.cls]


@pytest.mark.parametrize("name", ["bart", "mass"])
def test_rows_do_not_depend_on_ranks_and_slices_and_come_back_from_their_keys(name, corpus):
    feed = Feed(tiny_recipe(name), corpus, 5)
    whole = feed.batch(3)
    parts = [*feed.micro_batches(3, 0, 2, 3), *feed.micro_batches(3, 1, 2, 3)]
    assert [row for part in parts for row in part.rows.tolist()] == whole.rows.tolist()
    for field in ("ids", "positions", "original"):
        for side in (lambda each: each, lambda each: each.decoder):
            width, grids = getattr(side(whole), field), [getattr(side(part), field) for part in parts]
            lengths = side(whole).length.tolist()
            rows = [row for grid in grids for row in grid]
            assert all(
                width[place, :many].tolist() == rows[place][:many].tolist() for place, many in enumerate(lengths)
            )
    again = Feed(tiny_recipe(name), corpus, 5).batch(3)
    assert (again.ids == whole.ids).all()
    assert (again.decoder.ids == whole.decoder.ids).all()


@pytest.mark.parametrize("name", ["bart", "mass"])
def test_no_decoder_reads_its_own_answer(name, corpus):
    made = tiny_recipe(name)
    system = System(made, corpus.vocabulary)
    rows = batch(made, corpus)
    system.require_no_leak(rows)
    reading = system.readings(rows)["next_token"]
    assert reading.targets == int((rows.decoder.length - 1).sum())
    assert inputs_of(rows).decoder.ids.shape == rows.decoder.ids.shape


REFUSED = {
    "a decoder with nothing to write": ("bart", {"rows.decoder": "none"}, "model.decoder"),
    "text without a decoder": ("bart", {"model.decoder": 0}, "rows.decoder"),
    "a decoder that is not asked": (
        "bart",
        {"objectives.next_token": False, "objectives.masked_token.weight": 1.0, "corruption.replace.mask": 1.0}
        | {"corruption.replace.infill": 0.0, "corruption.span": {"law": "single"}},
        "model.decoder",
    ),
    "text in plain sight": ("bart", {"corruption.rate": 0.0, "corruption.order.sentences": False}, "rows.decoder"),
    "nothing chosen": ("mass", {"corruption.rate": 0.0}, "rows.decoder"),
    "all chosen are kept": ("mass", {"corruption.replace": {"mask": 0.0, "random": 0.0, "keep": 1.0}}, "rows.decoder"),
    "chosen that are gone": ("bart", {"rows.decoder": "chosen"}, "rows.decoder"),
    "a target without pairs": ("bart", {"rows.decoder": "target"}, "rows.decoder"),
    "a question about the target": (
        "bart",
        {"rows.kind": "segment_pair", "rows.pair": "next", "rows.decoder": "target"}
        | {"objectives.next_sentence.weight": 1.0},
        "objectives.next_sentence",
    ),
    "rows of a contrast": (
        "bart",
        {"objectives.contrast.weight": 1.0, "corruption.ngram": {"shortest": 2, "longest": 4}},
        "objectives.contrast",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused_and_by_whom(case):
    name, changes, piece = REFUSED[case]
    found = check(recipe(name, changes))
    assert piece in [each.piece for each in found], found
    assert all(each.repair for each in found)
