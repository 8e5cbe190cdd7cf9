"""Rotary positions, disentangled attention, gated feed-forward and local attention in whole runs, with other ideas."""

from __future__ import annotations

import json

import pytest
import torch
from small_run import corpus_in, cut_back, run_quietly, same_files, tiny_recipe

from maskery.checkpoint.load import load
from maskery.checkpoint.parts import parameters_by_part
from maskery.cli import main
from maskery.errors import RecipeError
from maskery.model.flow import by_layer

ROTARY = {"model__positions": "rotary"}
DISENTANGLED = {"model__positions": "disentangled", "model__clip": 16, "model__buckets": 8}
GATED = {"model__gated": True}
LOCAL = {"model__local": 8, "model__global_every": 2, "model__layers": 4}
MODERN = {**ROTARY, **GATED, **LOCAL}
SHAPES = {"modern": MODERN, "crossed": {**DISENTANGLED, **GATED, **LOCAL}}
RECIPES = {
    "electra": {"model__generator__width": 0.5}, "albert": {}, "gpt2": {}, "unilm": {}, "bart": {}, "xlnet": {},
    "transformer-xl": {},
}  # fmt: skip
"""Replaced tokens, shared layers, causal, prefix, a decoder, two streams, a memory."""

pytestmark = pytest.mark.usefixtures("no_waiting_for_the_disk")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return corpus_in(tmp_path_factory.mktemp("text"), documents=12)


def short(name, **changes):
    return tiny_recipe(name, training__steps=4, training__eval_every=2, training__save_every=2, **changes)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", RECIPES)
def test_a_run_opens_again_and_goes_on_bitwise(name, shape, corpus, tmp_path):
    chosen = short(name, **SHAPES[shape], **RECIPES[name])
    run_quietly(chosen, corpus, tmp_path / "whole")
    model = load(tmp_path / "whole")
    assert (model.report.missing, model.report.unused) == ((), ())
    assert model.config.gated
    assert model.config.windowed
    out = cut_back(tmp_path / "whole", 2, tmp_path / "resumed")
    _, talk = run_quietly(chosen, corpus, out, True)
    assert "resumed from step-2" in talk.text
    same_files(tmp_path / "whole/checkpoints/step-4", out / "checkpoints/step-4")


def test_a_generator_whose_heads_cannot_be_turned_is_refused():
    with pytest.raises(RecipeError, match="the generator's width is 5") as refused:
        short("electra", **ROTARY, model__generator__width=0.3333)
    assert "generator.width = 0.375" in str(refused.value)
    assert short("electra", **ROTARY, model__generator__width=0.375).model.generator_heads == 1


@pytest.mark.parametrize(("name", "changes", "reason"), [
    ("bert", {"model__local": 8, "model__layers": 1}, "local"),
    ("bert", {"model__theta": 500.0}, "theta"),
    ("bert", {**LOCAL, "model__local_theta": 500.0}, "local_theta"),
    ("bert", {"model__positions": "disentangled", "model__clip": 4, "model__buckets": 8}, "clip 4"),
    ("bert", {**ROTARY, "model__heads": 16}, "turn pairs"),
    ("albert", {**MODERN, "model__norm": "pre", "model__first_norm": False}, "first_norm"),
], ids=["one layer", "theta", "local theta", "buckets", "odd heads", "shared norm"])  # fmt: skip
def test_what_makes_no_sense_is_refused_with_a_reason(name, changes, reason):
    with pytest.raises(RecipeError, match=reason) as refused:
        short(name, **changes).require()
    assert refused.value.repair


def test_information_flows_through_windows_layer_by_layer():
    """Windows of 3: two local layers carry a fact by two places, and a layer that attends to everything anywhere."""
    shape = short("bert", model__local=2, model__global_every=3, model__layers=6).model
    seen = by_layer(torch.ones(9, 9, dtype=torch.bool), shape)
    assert [int(each[4].sum()) for each in seen] == [9, 3, 3, 9, 3, 3]


def run_of(corpus, folder, **changes):
    run_quietly(short("bert", **changes), corpus, folder)
    return folder


EXPORTED = {"gated": (GATED, None), "rotary": (ROTARY, "positions rotary"), "local": (LOCAL, "windows of 8 slots"),
            "disentangled": (DISENTANGLED, "positions disentangled")}  # fmt: skip


@pytest.mark.parametrize("kind", EXPORTED)
def test_onnx_holds_it_or_says_why_not(kind, corpus, tmp_path, capsys):
    changes, reason = EXPORTED[kind]
    run_of(corpus, tmp_path / "run", **changes)
    code = main(["export", str(tmp_path / "run"), "--out", str(tmp_path / "run.onnx")])
    assert code == (0 if reason is None else 2)
    assert reason is None or reason in capsys.readouterr().err


def test_info_tells_the_shape_and_counts_it(corpus, tmp_path, capsys):
    folder = run_of(corpus, tmp_path / "run", **MODERN, model__theta=160000.0, model__local_theta=500.0)
    capsys.readouterr()
    assert main(["info", str(folder)]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "feed-forward 64, gated, windows of 8 slots, the whole row every 2 layers" in told
    assert "rotary, base 160,000 (500 in windows), rows of any length" in told
    model = load(folder)
    a_layer = 4 * 16 * 16 + 4 * 16 + (2 * 16 * 64 + 2 * 64) + (64 * 16 + 16) + 4 * 16
    words = 255 * 16 + 2 * 16 + 2 * 16
    assert parameters_by_part(model.network, {})["encoder"] == words + 4 * a_layer
    assert main(["info", "bert", "--vocab", "255", "--json", *_flags(MODERN)]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["shape"]["gated"] is True


def test_info_tells_disentangled_positions(corpus, tmp_path, capsys):
    folder = run_of(corpus, tmp_path / "run", **DISENTANGLED)
    capsys.readouterr()
    assert main(["info", str(folder)]) == 0
    assert "disentangled, 8 buckets of a side up to 16, rows of any length" in " ".join(capsys.readouterr().out.split())


def test_the_drawing_shows_them(tmp_path):
    for shape, told in (
        (MODERN, ("gated gelu", "4 slots to either side", "queries and keys are turned")),
        ({**DISENTANGLED, **GATED}, ("gated gelu", "8 buckets a side")),
    ):
        assert main(["info", "bert", "--vocab", "255", "--draw", str(tmp_path / "n.svg"), *_flags(shape)]) == 0
        drawn = (tmp_path / "n.svg").read_text().lower()
        assert [each for each in told if each not in drawn] == []
        (tmp_path / "n.svg").unlink()


def _flags(shape):
    return [part for key, value in shape.items() for part in ("--set", f"{key.replace('__', '.')}={json.dumps(value)}")]
