"""Measured rates, coloured rows and the flow picture."""

import json
import re

import numpy as np
import pytest
import torch
from chance import share_is
from hypothesis import given
from hypothesis import strategies as st
from tiny import build

from maskery import inspection
from maskery.cli import main
from maskery.corpus.store import Flag
from maskery.edit import Edit
from maskery.explain.flow import equal_layers, flow_of
from maskery.feed import Feed
from maskery.inspection import Measured, measure, visits, word_numbers
from maskery.model.config import VISIBILITIES
from maskery.recipes.recipe import names, recipe
from maskery.rows.ragged import Rows

SHORT = {"training.length": 32, "training.phases": [], "training.batch": 16}
KEYS = {"tokens", "rows", "chosen_rate", "unit", "span_words", "replaced", "pair", "words_split"}
GPT = [
    part
    for setting in (
        "objectives={next_token={weight=1.0}}",
        "corruption.rate=0",
        "rows.kind=full_sentences",
        "rows.pair=none",
    )
    for part in ("--set", setting)
]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return build(tmp_path_factory.mktemp("inspect"))


def rows_of(word_starts, edits, special):
    """One row from per-slot facts."""
    size = len(special)
    return Rows(
        number=np.zeros(1, np.int64),
        start=np.array([0, size]),
        ids=np.zeros(size, np.int32),
        original=np.zeros(size, np.int32),
        flags=np.array(word_starts, np.uint8) * np.uint8(Flag.WORD),
        special=np.array(special, bool),
        segment=np.zeros(size, np.uint8),
        document=np.zeros(size, np.int32),
        edit=np.array(edits, np.uint8),
        label=np.array([-1]),
    )


def test_words_spans_and_splits_by_hand():
    #            CLS a  b  ##b c  SEP ##d e  SEP
    rows = rows_of([0, 1, 1, 0, 1, 0, 0, 1, 0], [0, 0, 1, 1, 3, 0, 2, 0, 0], [1, 0, 0, 0, 0, 1, 0, 0, 1])
    assert word_numbers(rows).tolist() == [-1, 0, 1, 1, 2, -1, 3, 4, -1]
    measured = Measured()
    measured.add(rows)
    found = measured.plain()
    assert found["tokens"] == 9
    assert found["chosen_rate"] == pytest.approx(4 / 6)
    assert found["span_words"]["histogram"] == {"1": 0.5, "2": 0.5}
    assert found["replaced"] == {"mask": 0.5, "random": 0.25, "keep": 0.25}
    assert found["words_split"] == 0.0
    half = Measured()
    half.add(rows_of([0, 1, 0, 1, 0], [0, 1, 0, 1, 0], [1, 0, 0, 0, 1]))
    assert half.plain()["words_split"] == 0.5


@given(st.lists(st.tuples(st.booleans(), st.sampled_from([0, 1, 2, 3])), min_size=1, max_size=30))
def test_measured_agrees_with_a_walk(slots):
    rows = rows_of([0, *(w for w, _ in slots), 0], [0, *(e for _, e in slots), 0], [1, *(0 for _ in slots), 1])
    words, runs, before = [], [], False
    for place, (starts, edit) in enumerate(slots):
        if starts or place == 0:
            words.append([])
        words[-1].append(edit > 0)
        if edit > 0:
            runs = runs if before else [*runs, set()]
            runs[-1].add(len(words))
        before = edit > 0
    measured = Measured()
    measured.add(rows)
    assert measured.words_touched == sum(any(word) for word in words)
    assert measured.words_split == sum(any(word) and not all(word) for word in words)
    assert measured.runs == {n: sum(len(run) == n for run in runs) for n in {len(run) for run in runs}}
    assert sum(measured.edits.values()) == measured.chosen == sum(edit > 0 for _, edit in slots)


def test_rates_of_bert_are_those_of_the_recipe(corpus):
    feed = Feed(recipe("bert", SHORT), corpus, 0)
    measured = measure(feed, 400)
    assert measured.rows == 400
    assert abs(measured.plain()["chosen_rate"] - 0.15) < 0.01
    for name, share in {"mask": 0.8, "random": 0.1, "keep": 0.1}.items():
        assert share_is(measured.edits[name], measured.chosen, share)
    assert set(measured.labels) == {"next", "other"}
    assert measured.drawn.keys() == {1}


def test_visits_are_the_rows_of_training(corpus):
    feed = Feed(recipe("bert", SHORT), corpus, 3)
    seen = np.concatenate([numbers for _, _, _, numbers in visits(feed, 40)])
    wanted = torch.cat([feed.batch(step).rows for step in range(3)])[:40]
    assert seen.tolist() == wanted.tolist()


def test_json(corpus, capsys):
    arguments = ["inspect", "bert", "--corpus", str(corpus.path), "--rows", "64", "--json"]
    assert main([*arguments, "--set", "training.length=32"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found.keys() >= KEYS
    assert found["rows"] == 64
    assert found["unit"] == "token"
    assert sum(found["replaced"].values()) == pytest.approx(1)
    assert sum(found["pair"].values()) == pytest.approx(1)
    assert found["span_words"].keys() == {"mean", "histogram", "drawn_mean", "drawn_histogram"}
    assert main([*arguments, "--set", "training.length=32", "--seed", "5"]) == 0
    assert json.loads(capsys.readouterr().out) != found


def test_shown_rows_are_marked(corpus, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "400")
    assert main(["inspect", "bert", "--corpus", str(corpus.path), "--rows", "50", "--set", "training.length=32"]) == 0
    out = capsys.readouterr().out
    assert out.count("of the plan") == 3
    assert "→[MASK]" in out
    assert "  A [CLS]" in out
    assert "  B " in out
    assert "(15.00 %)" in out
    feed = Feed(recipe("bert", {"training.length": 32}), corpus, 0)
    chosen = int((feed.batch(0).edit[0] != Edit.NONE).sum())
    assert out.splitlines()[0].split(", ")[1] == f"{chosen} chosen"


def test_a_recipe_without_corruption(corpus, capsys):
    assert main(["inspect", "roberta", "--corpus", str(corpus.path), "--rows", "8", "--json", *GPT]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["chosen_rate"], found["replaced"], found["pair"]) == (0, {}, {})
    assert main(["inspect", "roberta", "--corpus", str(corpus.path), "--rows", "1", *GPT]) == 0
    out = capsys.readouterr().out
    assert "measured over 1 row, " in out
    assert out.splitlines()[-1].split() == ["chosen", "0.00", "%", "of", "ordinary", "positions", "(0.00", "%)"]


def test_flow_of_a_sound_recipe(corpus, capsys, monkeypatch):
    monkeypatch.setattr(inspection, "measure", None)
    assert main(["inspect", "bert", "--corpus", str(corpus.path), "--flow"]) == 0
    out = capsys.readouterr().out
    assert re.search(r"masked_token: no target can reach its answer, apart from the \d+ of \d+ left in", out), out
    assert "next_sentence: the answer stands in no position" in out
    assert "after layers 1 to 12" in out


def test_flow_shows_a_leak_and_a_refusal(corpus, capsys):
    arguments = ["inspect", "roberta", "--corpus", str(corpus.path), "--rows", "8", "--flow", *GPT]
    assert main(arguments) == 0
    assert "next_token: LEAKS: position 0 reaches its own answer" in capsys.readouterr().out
    assert main([*arguments, "--json", "--set", "visibility.kind=causal"]) == 0
    flow = json.loads(capsys.readouterr().out)["flow"]
    assert flow["leaks"] == {"masked_token": None, "next_token": None}
    assert np.array_equal(flow["visible"], np.tril(np.ones((len(flow["tokens"]),) * 2)))
    assert [refusal["piece"] for refusal in flow["refused"]] == ["objectives.masked_token"]


def test_flow_of_a_made_up_row(capsys):
    assert main(["inspect", "bert", "--flow", "--json"]) == 0
    flow = json.loads(capsys.readouterr().out)["flow"]
    assert len(flow["tokens"]) == 12
    assert flow["tokens"].count("[SEP]") == 2
    assert flow["leaks"] == {"masked_token": None, "next_sentence": None}
    assert share_is(flow["kept"]["masked_token"], flow["targets"]["masked_token"], 0.1)
    assert main(["inspect", "roberta", "--flow", *GPT]) == 0
    out = capsys.readouterr().out
    assert "next_token: LEAKS: position 0 reaches its own answer in layer 1 directly" in out
    assert "masked_token: nothing is asked" in out


@pytest.mark.parametrize("name", names())
@pytest.mark.parametrize("visibility", VISIBILITIES.names())
def test_every_recipe_has_a_flow_without_a_corpus(name, visibility):
    drawn = flow_of(recipe(name, {"visibility.kind": visibility}), None, 0)
    assert drawn.visible.shape == (len(drawn.tokens),) * 2
    assert drawn.readings["masked_token"].leak is None


def test_targets_that_are_kept_are_no_secret(capsys):
    for shares, told in (
        ("{mask=0.0, random=0.0, keep=1.0}", r"masked_token: every target \(\d+\) is left in the input on purpose"),
        ("{mask=0.5, random=0.0, keep=0.5}", r"no target can reach its answer, apart from the \d+ of \d+ left in"),
        ("{mask=1.0, random=0.0, keep=0.0}", r"masked_token: no target can reach its answer\n"),
    ):
        assert main(["inspect", "roberta", "--flow", "--set", f"corruption.replace={shares}"]) == 0
        assert re.search(told, out := capsys.readouterr().out), out


def test_layers_that_know_the_same_are_drawn_once():
    one, two = torch.eye(2), torch.ones(2, 2)
    assert equal_layers([one, one, two, two, two]) == [(1, 1), (2, 4)]


def test_bad_input(corpus, tmp_path, capsys):
    for arguments, told in (
        (["bret", "--corpus", str(corpus.path)], "did you mean bert"),
        (["bert", "--corpus", str(tmp_path / "no")], "maskery corpus build"),
        (["bert", "--corpus", str(tmp_path)], "this is no corpus"),
        (["bert", "--corpus", str(corpus.path), "--rows", "0"], "--rows 1000"),
        (["bert"], "--corpus DIR"),
        (["bret", "--flow"], "did you mean bert"),
        (["bert", "--corpus", str(corpus.path), "--row", "x"], "Usage: maskery inspect"),
    ):
        assert main(["inspect", *arguments]) == 2
        captured = capsys.readouterr()
        assert told in captured.err
        assert captured.out == ""
