"""Measured rates, coloured rows and the flow picture."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from chance import share_is
from tiny import build

import maskery
from maskery import inspection
from maskery.cli import main
from maskery.cli.inspect import _PLANNED
from maskery.edit import Edit
from maskery.explain.flow import equal_layers, flow_of
from maskery.explain.sights import REMEMBERED
from maskery.feed import Feed
from maskery.inspection import measure, visits
from maskery.language import phrases
from maskery.model.config import VISIBILITIES
from maskery.recipes.recipe import names, recipe
from maskery.recipes.sight import HIDES_THE_NEXT

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
MASKED_TOO = ["--set", "objectives.masked_token.weight=1.0"]
"""An objective that finds no target where nothing is corrupted."""


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return build(tmp_path_factory.mktemp("inspect"))


def test_rates_of_bert_are_those_of_the_recipe(corpus):
    feed = Feed(recipe("bert", SHORT), corpus, 0)
    measured = measure(feed, 400)
    assert measured.rows == 400
    assert abs(measured.chosen.value - 0.15) < 0.01
    for name, share in {"mask": 0.8, "random": 0.1, "keep": 0.1}.items():
        assert share_is(measured.edits[name].hits, measured.chosen.hits, share)
    assert set(measured.labels) == {"next", "other"}
    assert measured.drawn.keys() == measured.kept.keys() == {1}


def test_visits_are_the_rows_of_training(corpus):
    feed = Feed(recipe("bert", SHORT), corpus, 3)
    seen = np.concatenate([numbers for _, _, _, numbers in visits(feed, 40)])
    wanted = torch.cat([feed.batch(step).rows for step in range(3)])[:40]
    assert seen.tolist() == wanted.tolist()


def test_rows_that_pretrain_would_choose_are_named(corpus, capsys):
    arguments = ["inspect", "bert", "--corpus", str(corpus.path), "--rows", "8"]
    assert main(arguments) == 0
    assert "pretrain would choose --length 128: rows of 512" in capsys.readouterr().err
    assert main([*arguments, "--set", "training.length=64", "--set", "training.phases=[]"]) == 0
    assert "pretrain would choose" not in capsys.readouterr().err


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
    assert re.search(r"chosen +1\d\.\d\d % +1\d\.\d\d to 1\d\.\d\d % +15\.00 % +[\d,]+ ordinary positions", out)
    feed = Feed(recipe("bert", {"training.length": 32}), corpus, 0)
    chosen = int((feed.batch(0).edit[0] != Edit.NONE).sum())
    assert out.splitlines()[0].split(", ")[1] == f"{chosen} chosen"


def test_nothing_is_broken_on_a_narrow_terminal(corpus, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    assert (
        main(["inspect", "spanbert", "--corpus", str(corpus.path), "--rows", "50", "--set", "training.length=32"]) == 0
    )
    out = capsys.readouterr().out
    assert "…" not in out
    assert re.search(
        r"\n  chosen\n      1\d\.\d\d % \(1\d\.\d\d to 1\d\.\d\d %\); recipe 15\.00 %\n      of [\d,]+ ord", out
    )
    table = out[out.index("lengths, %") :].splitlines()
    assert table[0].split() == ["lengths,", "%", "recipe", "drawn", "kept", "runs,", "in", "words"]
    assert table[1].split()[:2] == ["1", "22.41"]
    assert table[10].split()[:2] == ["10", "3.01"]


def test_what_the_plan_had_to_do_is_told_in_words(corpus, capsys):
    assert main(["inspect", "bert", "--corpus", str(corpus.path), "--rows", "8", "--set", "training.length=32"]) == 0
    err = capsys.readouterr().err
    assert re.search(r"rows of 32 slots, over the whole plan: [\d,]+ documents? cut into shorter rows on purpose", err)
    assert "_" not in err


def test_every_count_of_a_plan_has_its_words_in_both_languages():
    rows = Path(maskery.__file__).parent / "rows"
    source = "\n".join(path.read_text(encoding="utf-8") for path in rows.glob("*.py"))
    names = set(re.findall(r"""(?:\.count\(|counts\[|skipped\[)"(\w+)\"""", source))
    names |= set(re.findall(r"skipped, (\w+)=", source))
    assert {"long_sentences", "empty_documents", "left_out_sentences"} <= names
    assert names - {"rows", "tokens"} <= _PLANNED.keys()
    for sentence in [each for both in _PLANNED.values() for each in both]:
        line = f"rows of 32 slots, over the whole plan: 1,234 {sentence}"
        assert re.search(r"：1,234 [\u4e00-\u9fff]", phrases("zh").line(line)), sentence


def test_a_recipe_without_corruption(corpus, capsys):
    causal = [*GPT, "--set", "visibility.kind=causal"]
    assert main(["inspect", "roberta", "--corpus", str(corpus.path), "--rows", "8", "--json", *causal]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["chosen_rate"], found["replaced"], found["pair"], found["leaks"]) == (0, {}, {}, {})
    assert main(["inspect", "roberta", "--corpus", str(corpus.path), "--rows", "1", *causal]) == 0
    out = capsys.readouterr().out
    assert "Measured over 1 rows, " in out
    assert out.splitlines()[-1].split()[:3] == ["chosen", "0.00", "%"]


def test_flow_of_a_sound_recipe(corpus, capsys, monkeypatch):
    monkeypatch.setattr(inspection, "measure", None)
    assert main(["inspect", "bert", "--corpus", str(corpus.path), "--flow"]) == 0
    out = capsys.readouterr().out
    assert re.search(r"masked_token: no target can reach its answer, apart from the \d+ of \d+ left in", out), out
    assert "next_sentence: the answer stands in no position" in out
    assert "after layers 1 to 12" in out


def test_flow_shows_a_leak_and_a_refusal(corpus, capsys):
    arguments = ["inspect", "roberta", "--corpus", str(corpus.path), "--rows", "8", "--flow", *GPT, *MASKED_TOO]
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert "next_token: LEAKS: position 0 reaches its own answer" in captured.out
    assert "next_token under full visibility: position 0 reaches its own answer" in captured.err
    assert main([*arguments, "--json", "--set", "visibility.kind=causal"]) == 0
    flow = json.loads(capsys.readouterr().out)["flow"]
    assert flow["leaks"] == {"masked_token": None, "next_token": None}
    assert np.array_equal(flow["visible"], np.tril(np.ones((len(flow["tokens"]),) * 2)))
    assert [refusal["piece"] for refusal in flow["refused"]] == ["objectives.masked_token"]


@pytest.mark.parametrize("view", ["rows", "json", "made up", "text", "compare"])
def test_a_leak_is_told_by_every_view_and_ends_in_an_error(corpus, capsys, view):
    here = ["--corpus", str(corpus.path)]
    arguments = {
        "rows": ["roberta", *here, "--rows", "4"],
        "json": ["roberta", *here, "--rows", "4", "--json"],
        "made up": ["roberta"],
        "text": ["roberta", *here, "--text", "the cat sees a dog"],
        "compare": ["--compare", "bert,roberta", *here, "--text", "the cat sees a dog"],
    }[view]
    assert main(["inspect", *arguments, *GPT]) == 2
    captured = capsys.readouterr()
    assert re.search(r"recipe \w+: next_token under full visibility: position \d+ reaches its own answer", captured.err)
    assert "choose a visibility that hides the answer" in captured.err
    assert captured.out, "it is drawn all the same"
    if view == "json":
        assert "reaches its own answer" in json.loads(captured.out)["leaks"]["next_token"]


def test_flow_of_a_made_up_row(capsys):
    assert main(["inspect", "bert", "--flow", "--json"]) == 0
    flow = json.loads(capsys.readouterr().out)["flow"]
    assert len(flow["tokens"]) == 12
    assert flow["tokens"].count("[SEP]") == 2
    assert flow["leaks"] == {"masked_token": None, "next_sentence": None}
    assert share_is(flow["kept"]["masked_token"], flow["targets"]["masked_token"], 0.1)
    assert main(["inspect", "roberta", "--flow", *GPT, *MASKED_TOO]) == 2
    out = capsys.readouterr().out
    assert "next_token: LEAKS: position 0 reaches its own answer in layer 1 directly" in out
    assert "masked_token: nothing is asked" in out


@pytest.mark.parametrize("name", names())
@pytest.mark.parametrize("visibility", VISIBILITIES.names())
def test_every_recipe_has_a_flow_without_a_corpus(name, visibility):
    made = recipe(name, {"visibility.kind": visibility})
    drawn = flow_of(made, None, 0)
    for row in drawn.drawn:
        size = len(row.tokens)
        assert row.visible.shape == (size, size + min(REMEMBERED, made.model.memory))
    for question in ("masked_token", "next_token"):
        if question in drawn.readings:
            seen = question == "next_token" and not made.model.decoder and visibility not in HIDES_THE_NEXT
            assert (drawn.readings[question].leak is not None) == seen


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
        (["bert", "--rows", "5"], "add --corpus DIR, or leave out --rows to draw a made-up row"),
        (["bret", "--flow"], "did you mean bert"),
        (["bert", "--corpus", str(corpus.path), "--row", "x"], "Usage: maskery inspect"),
    ):
        assert main(["inspect", *arguments]) == 2
        captured = capsys.readouterr()
        assert told in captured.err
        assert captured.out == ""
