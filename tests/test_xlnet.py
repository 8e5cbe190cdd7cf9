"""xlnet as a user meets it: the published numbers, a run with its memory, opened by others, shown, refused."""

from __future__ import annotations

import json

import pytest
import torch
import transformers
from small_run import TINY_FLAGS, corpus_in, lines_without_time, tiny_recipe

import maskery
from maskery.cli import main
from maskery.recipes.recipe import check, recipe
from maskery.train.run import pretrain

CHANGES = {"model__memory": 10, "training__length": 24, "training__steps": 24, "model__dropout": 0.0}
PUBLISHED = {"base": 116_718_336, "large": 360_268_800}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return corpus_in(tmp_path_factory.mktemp("text"))


@pytest.fixture(scope="module")
def run(corpus, tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "xlnet"
    pretrain(tiny_recipe("xlnet", **CHANGES, model__attention_dropout=0.0), corpus, folder)
    return folder


def test_the_published_numbers():
    xlnet, training = recipe("xlnet"), recipe("xlnet").training
    assert (xlnet.rows.kind, xlnet.rows.both_ways, xlnet.model.memory) == ("stream_pair", True, 384)
    assert xlnet.corruption.rate == pytest.approx(1 / 6)
    assert (training.lr, training.steps, training.batch, training.length) == (4e-4, 500_000, 8192, 512)
    assert training.warmup * training.steps == 40_000
    assert (training.eps, training.weight_decay, xlnet.model.eps) == (1e-6, 0.01, 1e-12)
    assert check(xlnet) == []


@pytest.mark.parametrize("size", PUBLISHED)
def test_published_parameters(size, capsys):
    assert main(["info", "xlnet", "--size", size, "--vocab", "32000", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["parameters"]["encoder"] == PUBLISHED[size]


def test_it_learns_and_others_open_it(run, corpus):
    lines = [line for line in lines_without_time(run) if "loss" in line]
    assert lines[-1]["loss"] < lines[0]["loss"] - 0.1
    model = maskery.load(run)
    assert (model.family, list(model.heads), model.config.memory) == ("xlnet", ["permuted_token"], 10)
    theirs = transformers.AutoModel.from_pretrained(run).eval()
    ids = torch.randint(5, corpus.vocabulary, (2, 9))
    with torch.no_grad():
        torch.testing.assert_close(model(ids).last, theirs(ids).last_hidden_state, atol=1e-5, rtol=1e-5)


def test_a_batch_of_lanes(corpus):
    batch = maskery.batch(tiny_recipe("xlnet", **CHANGES), corpus, step=1)
    assert (batch.remember, batch.lane.tolist()) == (12, list(range(8)))
    falling = batch.positions[:, 0] > batch.positions[:, 1]
    assert falling[:4].tolist() + falling[5:].tolist() == [False] * 4 + [True] * 3, "half of the lanes, rounded"
    before = maskery.batch(tiny_recipe("xlnet", **CHANGES), corpus, step=0)
    a = [(before.segments[row] == 1).nonzero()[0].item() - 13 for row in range(8)]
    assert not batch.fresh[:4].any()
    for row in (~batch.fresh).nonzero().flatten().tolist():
        shared = min(12, a[row])
        assert batch.ids[row, :shared].tolist() == before.ids[row, 12 : 12 + shared].tolist(), "behind the first half"


def test_shown(corpus, capsys):
    flags = [*TINY_FLAGS, "--set", "model.memory=10", "--rows", "200", "--json"]
    assert main(["inspect", "xlnet", "--corpus", str(corpus.path), *flags]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["chosen_rate"] == pytest.approx(1 / 6, abs=0.01)
    assert found["replaced"]["keep"] == 1
    assert found["words_split"] == 0


MASKED = {"objectives": {"masked_token": {"weight": 1.0}, "permuted_token": False}}
REFUSED = {
    "masks": ({"corruption.replace": {"mask": 1.0, "random": 0.0, "keep": 0.0}}, "leaves only 0 of them in the text"),
    "nothing": ({"corruption.rate": 0.0}, "chooses no token"),
    "one stream": ({"model.streams": 1}, "a state that knows its own token"),
    "another sight": ({"visibility.kind": "causal"}, "asks in an order of its own"),
    "no question": (MASKED, '"permuted" reads in the order in which permuted_token asks'),
    "seen ahead": (
        MASKED | {"visibility.kind": "full", "model.streams": 1, "corruption.replace": {"mask": 1.0, "keep": 0.0,
         "random": 0.0}},
        "the first half of a row",
    ),
    "segments": ({"model.segments": 2}, "have three segments"),
    "strangers": ({"rows.kind": "full_sentences", "rows.both_ways": False}, "memory would be of other text"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case):
    changes, told = REFUSED[case]
    found = check(recipe("xlnet", changes))
    assert any(told in each.reason and each.repair for each in found), found


def test_free_choices():
    for changes in (
        {"model.memory": 0, "model.positions": "learned"},
        {"model.memory": 0, "rows.kind": "full_sentences", "rows.both_ways": False},
        {"corruption.unit": "token", "corruption.span": {"law": "single", "weights": []}},
        {"model.positions": "nezha", "model.share": "all"},
        {"model.segments": 3},
    ):
        assert check(recipe("xlnet", changes)) == []
