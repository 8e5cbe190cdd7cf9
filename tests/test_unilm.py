"""unilm as a user meets it: trained, saved, opened by others, read in any mode, begun with a bert, shown, compared."""

import json
import re
import shlex
from pathlib import Path

import numpy as np
import pytest
import torch
from small_model import small_network
from small_run import TINY, corpus_in, tiny_recipe
from transformers import AutoModel

import maskery
from maskery.checkpoint.model import Model
from maskery.cli import main
from maskery.compare.ask import Examination
from maskery.errors import InputError, UnknownName
from maskery.explain.flow import flow_of
from maskery.feed import Feed
from maskery.model.config import Mode
from maskery.model.transformer import inputs_of
from maskery.recipes.recipe import recipe
from maskery.train.build import rows_of_every_mode
from maskery.train.run import pretrain

ROOT = Path(__file__).parent.parent

CHANGES = {"training__steps": 2, "training__batch": 12}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return corpus_in(tmp_path_factory.mktemp("corpus"), documents=60)


@pytest.fixture(scope="module")
def run(corpus, tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "unilm"
    pretrain(tiny_recipe("unilm", **CHANGES), corpus, folder)
    return folder


def test_the_published_numbers():
    unilm, training = recipe("unilm"), recipe("unilm").training
    assert unilm.corruption.span.weights == (0.8, 0.1, 0.1)
    assert (unilm.corruption.rate, unilm.corruption.unit) == (0.15, "token")
    assert (training.lr, training.steps, training.batch, training.length) == (3e-5, 770_000, 330, 512)
    assert training.warmup * training.steps == pytest.approx(40_000)
    assert (training.betas, training.weight_decay, unilm.model.dropout) == ((0.9, 0.999), 0.01, 0.1)
    assert list(unilm.objectives) == ["masked_token", "next_sentence"]


@pytest.mark.parametrize("page", ["docs/visibility.md", "docs/zh/visibility.md"])
def test_the_pages_settings_of_a_mixture_are_accepted_as_they_stand(page, capsys):
    """Those of one line of code together: shares have to sum to 1."""
    lines = re.findall(r"`(--set visibility[^`]+)`", (ROOT / page).read_text("utf-8"))
    assert len(lines) > 2
    for line in lines:
        assert main(["recipes", "show", "unilm", *shlex.split(line)]) == 0, line


def test_a_run_is_a_plain_bert_that_reads_in_full(run):
    model = maskery.load(run)
    assert (model.family, model.config.visibility, model.config.segments) == ("bert", "full", 6)
    theirs = AutoModel.from_pretrained(run)
    assert theirs.config.type_vocab_size == 6
    ids = torch.tensor([[2, 7, 8, 9, 3, 10, 11, 3]])
    segments = torch.tensor([[0] * 5 + [1] * 3])
    with torch.no_grad():
        ours = model(ids, segments=segments).last
        assert torch.allclose(ours, theirs(ids, token_type_ids=segments).last_hidden_state, atol=1e-5)
        assert torch.equal(ours, model(ids, segments=segments, visibility="full").last)


def modes_by_call(model, ids, segments, mask=None):
    return {mode: model(ids, mask, segments, visibility=mode.kind).last for mode in Mode}


def test_a_call_reads_as_training_did(run, corpus):
    """Rows of a batch through the network with their modes, and one by one through the model with a name."""
    model = maskery.load(run)
    batch = rows_of_every_mode(Feed(tiny_recipe("unilm", **CHANGES), corpus, 0))
    with torch.no_grad():
        trained = model.network(inputs_of(batch)).last
        real = torch.arange(batch.ids.shape[1]) < batch.length[:, None]
        called = modes_by_call(model, batch.ids, batch.segments, real)
    seen = set()
    for row, mode in enumerate(batch.slots["mode"][:, 0].tolist()):
        torch.testing.assert_close(called[Mode(mode)][row], trained[row], rtol=1e-6, atol=1e-6)
        seen.add(Mode(mode))
    assert seen == set(Mode)


@pytest.mark.parametrize("segments", [0, 2, 6])
def test_a_source_ends_where_the_segment_changes(segments):
    """With padding on either side, and for a network without segment vectors."""
    model = Model(small_network(segments=segments), {})
    ids = torch.tensor([[5, 6, 7, 8, 9, 10]])
    parts = torch.tensor([[0, 0, 0, 1, 1, 1]]) + (4 if segments == 6 else 0)
    pad = torch.zeros(1, 2, dtype=torch.long)
    mask = torch.tensor([[0, 0, 1, 1, 1, 1, 1, 1, 0, 0]])
    places = torch.arange(-2, 8).clamp(min=0).unsqueeze(0)
    with torch.no_grad():
        plain = model(ids, segments=parts, visibility="prefix").last
        wide = model(
            torch.cat((pad, ids, pad), 1), mask, torch.cat((pad, parts, pad), 1), positions=places, visibility="prefix"
        ).last
        other = ids.clone()
        other[0, 4] = 20
        moved = (model(other, segments=parts, visibility="prefix").last - plain).abs().amax(-1)[0]
    torch.testing.assert_close(wide[:, 2:8], plain)
    assert moved[:4].max() == 0
    assert moved[4:].min() > 1e-4


def test_calls_that_cannot_be(run):
    model, ids = maskery.load(run), torch.tensor([[2, 7, 3]])
    with pytest.raises(InputError, match="nothing tells them apart"):
        model(ids, visibility="prefix")
    with pytest.raises(UnknownName, match="prefix"):
        model(ids, visibility="prefx")
    with torch.no_grad():
        source = model(ids, segments=torch.full_like(ids, 4), visibility="prefix").last
        assert torch.equal(source, model(ids, segments=torch.full_like(ids, 4)).last), "a source alone is read in full"


def test_begun_with_a_bert(corpus, tmp_path):
    bert = tmp_path / "bert"
    pretrain(tiny_recipe("bert", training__steps=1), corpus, bert)
    told = []
    still = tiny_recipe("unilm", training__steps=1, training__lr=1e-12, training__weight_decay=0.0)
    pretrain(still, corpus, tmp_path / "unilm", start_from=bert, say=told.append)
    assert any("segment vectors" in line for line in told)
    two, six = (maskery.load(path).network.embeddings.segments for path in (bert, tmp_path / "unilm"))
    torch.testing.assert_close(six, two[[0, 1, 0, 0, 0, 1]])


@pytest.mark.parametrize("training", ["masked", "shifted"])
def test_both_trainings_of_a_writer(training, corpus, run, tmp_path):
    shared = {"visibility__kind": "prefix", "visibility__mixture": False, "objectives__next_sentence": False}
    own = {
        "masked": {"corruption__rate": 0.7, "corruption__segment": "second", "corruption__end": True},
        "shifted": {
            "corruption__rate": 0.0,
            "objectives__masked_token": False,
            "objectives__next_token": {"weight": 1.0},
        },
    }[training]
    writer = tiny_recipe("unilm", **CHANGES, **shared, **own).require()
    batch = Feed(writer, corpus, 0).batch(0)
    assert set(batch.slots["mode"][:, 0].tolist()) == {Mode.PREFIX}
    targets = batch.targets["masked_token" if training == "masked" else "next_token"]
    second = batch.slots["document"].flatten() > 0
    shift = int(training == "shifted")
    assert second[targets.index + shift].all()
    assert torch.equal(batch.original.flatten()[targets.index + shift], targets.label)
    if shift:
        assert targets.label.numel() == int(second.sum())
    assert (targets.label == corpus.specials.sep).any(), "the end is learnt"
    pretrain(writer, corpus, tmp_path / "writer", start_from=run)
    model = maskery.load(tmp_path / "writer")
    assert model.config.visibility == "prefix"


def test_a_common_question_is_asked_in_full(corpus):
    settings = {key: TINY[key] for key in ("training.length",)}
    asked = Examination.of("roberta", corpus, 8, ("next_sentence",), settings)
    trained = tiny_recipe("unilm")
    assert asked.impossible("next_sentence", trained) is None
    asked.require_fit("unilm", trained)
    for made in (asked.masked(trained), asked.pairs("next_sentence", trained)):
        assert not made.visibility.mixed
        batch = Feed(made, corpus, 0, "heldout").make(0, *_first(made, corpus))
        assert "mode" not in batch.slots
        assert int(batch.segments.max()) <= 1


def _first(made, corpus):
    feed = Feed(made, corpus, 0, "heldout")
    phase = feed.phases[0]
    epochs, rows = feed.first(phase, 4)
    return phase, epochs, rows


def test_inspect_tells_modes_and_shares(corpus, capsys):
    flags = ["--set", "training.length=32", "--set", "training.batch=16"]
    assert main(["inspect", "unilm", "--corpus", str(corpus.path), "--rows", "160", *flags]) == 0
    out = capsys.readouterr().out
    assert "slots, read " in out
    assert "pairs read in full" in out
    assert main(["inspect", "unilm", "--corpus", str(corpus.path), "--rows", "160", "--json", *flags]) == 0
    found = json.loads(capsys.readouterr().out)
    assert sum(found["modes"].values()) == pytest.approx(1)
    assert found["nominal"]["modes"] == pytest.approx(recipe("unilm").visibility.shares)
    for kind, (low, high) in found["intervals"]["modes"].items():
        assert low <= found["modes"][kind] <= high
    full = found["modes"]["full"] * 160
    assert found["counts"]["pairs"] + found["counts"]["rows_without_pair"] == pytest.approx(full)


def test_flow_draws_every_mode(capsys):
    assert main(["inspect", "unilm", "--flow", "--json"]) == 0
    flow = json.loads(capsys.readouterr().out)["flow"]
    assert list(flow["modes"]) == ["full", "prefix", "causal", "reverse"]
    sums = {kind: int(np.sum(each["visible"])) for kind, each in flow["modes"].items()}
    assert sums == {"full": 144, "prefix": 8 * 8 + 9 + 10 + 11 + 12, "causal": 78, "reverse": 78}
    assert flow["leaks"] == {"masked_token": None, "next_sentence": None}
    assert main(["inspect", "unilm", "--flow"]) == 0
    assert "a row that is read reverse" in capsys.readouterr().out


def test_a_leak_in_one_mode_is_found(corpus):
    """However few rows are looked at, one of every mode is among them."""
    made = tiny_recipe("unilm", training__batch=64)
    batch = rows_of_every_mode(Feed(made, corpus, 0))
    assert set(batch.slots["mode"][:, 0].tolist()) == {0, 1, 2, 3}
    alone = Feed(replace_kind(made, "full"), corpus, 0)
    assert rows_of_every_mode(alone).size == 2


@pytest.mark.parametrize("batch", [1, 64])
def test_a_mode_of_a_tiny_share_is_looked_at_too(corpus, batch):
    """No row of the first steps draws it."""
    shares = {"full": 0.0, "prefix": 0.0, "causal": 0.9999, "reverse": 0.0001}
    made = tiny_recipe("unilm", training__batch=batch, visibility__mixture=shares)
    feed = Feed(made, corpus, 0)
    phase, epochs, numbers = feed.numbers(0)
    assert set(feed.modes(phase, epochs, numbers).tolist()) == {int(Mode.CAUSAL)}
    looked = rows_of_every_mode(feed)
    assert set(looked.slots["mode"][:, 0].tolist()) == {int(Mode.CAUSAL), int(Mode.REVERSE)}
    row = looked.slots["mode"][:, 0].tolist().index(int(Mode.REVERSE))
    assert set(looked.segments[row, : int(looked.length[row])].tolist()) == {3}, "and told it by its segment ids"
    assert [each.mode for each in flow_of(made, corpus, 0).drawn] == ["causal", "reverse"]
    assert [each.mode for each in flow_of(made, None, 0).drawn] == ["causal", "reverse"]


def replace_kind(made, kind):
    return made.changed({"visibility.kind": kind, "visibility.mixture": False})
