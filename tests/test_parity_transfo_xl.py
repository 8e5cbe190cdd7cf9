"""Transformer-XL against its equations, with and without a memory; folders of transformers 4, and back bitwise."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
import torch
from folders import change_config, refused
from oracle import same_bits, weights
from safetensors.torch import save_file
from transfo_xl_reference import config_of, states_of_row, tensors_of

from maskery.checkpoint.calls import prepare
from maskery.checkpoint.load import load
from maskery.checkpoint.model import Model
from maskery.model.reading import Reading, read_stream, score_stream, score_windows

CLOSE = {"atol": 1e-5, "rtol": 1e-5}
CLASSES = ("TransfoXLLMHeadModel", "TransfoXLForSequenceClassification", "TransfoXLModel")
IDS = torch.randint(0, 30, (16,), generator=torch.Generator().manual_seed(1))


def write(folder, config, **options):
    folder.mkdir(parents=True, exist_ok=True)
    tensors = tensors_of(config, **options)
    (folder / "config.json").write_text(json.dumps(config))
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    return tensors


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder, config = tmp_path_factory.mktemp("xl"), config_of()
    tensors = write(folder, config)
    return load(folder), tensors, config


def behind(model, ids, past):
    return replace(prepare(model.network, ids[None], None, None, None), past=past)


@torch.no_grad()
def test_rows_that_remember_by_the_equations(made):
    """Four rows of four, each behind the last six slots: every layer's states and the memory that is left."""
    model, tensors, config = made
    past = before = None
    for start in range(0, 16, 4):
        ids = IDS[start : start + 4]
        hidden = model.network(behind(model, ids, past), layers=True, attentions=True)
        states = states_of_row(tensors, config, ids, before)
        for mine, other in zip(hidden.layers, states, strict=True):
            torch.testing.assert_close(mine[0], other, **CLOSE)
        assert hidden.attentions[0].shape == (1, 3, 4, 4 + (0 if before is None else len(before[0])))
        given = states[:-1] if before is None else [torch.cat(both) for both in zip(before, states, strict=False)]
        before = [each[-6:] for each in given]
        past = hidden.memory
        assert past.length.tolist() == [len(before[0])]
        for mine, other in zip(past.states, before, strict=True):
            torch.testing.assert_close(mine[0], other, **CLOSE)
            assert not mine.requires_grad


@pytest.mark.parametrize("reading", [
    Reading(length=4, memory=6), Reading(length=5, memory=7, same_length=True), Reading(length=3, memory=9, clamp=4),
    Reading(length=6),
], ids=["as in training", "same length", "clamped", "no memory"])  # fmt: skip
@torch.no_grad()
def test_a_text_scored_by_the_equations(made, reading):
    model, tensors, config = made
    found = score_stream(model.network, model.token_head(), torch.stack((IDS, IDS.flip(0))), reading)
    assert found.shape == (2, 15)
    assert model.network.embeddings.positions.clamp is None
    for row, ids in enumerate((IDS, IDS.flip(0))):
        before, wanted = None, []
        for start in range(0, 16, reading.length):
            part = ids[start : start + reading.length]
            reach = reading.memory if reading.same_length else None
            states = states_of_row(tensors, config, part, before, reading.clamp, reach)
            given = states[:-1] if before is None else [torch.cat(both) for both in zip(before, states, strict=False)]
            before = [each[-reading.memory :] for each in given] if reading.memory else None
            scores = states[-1] @ tensors["transformer.word_emb.emb_layers.0.weight"].t()
            told = (scores + tensors["crit.out_layers.0.bias"]).log_softmax(1)
            after = ids[start + 1 : start + 1 + len(part)]
            wanted.append(told[: len(after)].gather(1, after[:, None])[:, 0])
        torch.testing.assert_close(found[row], torch.cat(wanted), **CLOSE)


@torch.no_grad()
def test_windows_read_every_token_anew(made):
    model, tensors, config = made
    found = score_windows(model.network, model.token_head(), IDS, reach=5, rows=3)
    for place in range(1, 16):
        states = states_of_row(tensors, config, IDS[max(0, place - 5) : place])
        scores = states[-1][-1] @ tensors["transformer.word_emb.emb_layers.0.weight"].t()
        told = (scores + tensors["crit.out_layers.0.bias"]).log_softmax(0)
        torch.testing.assert_close(found[place - 1], told[IDS[place]], **CLOSE)
    some = score_windows(model.network, model.token_head(), IDS, reach=5, first=9)
    torch.testing.assert_close(some, found[8:], **CLOSE)


@torch.no_grad()
def test_rows_behind_a_memory_are_one_long_row(made):
    """Where all is remembered, four rows say what one row of the whole text says."""
    model, _, _ = made
    whole = model(IDS[None], layers=True)
    parts = list(read_stream(model.network, IDS[None], Reading(length=4, memory=12)))
    states = torch.cat([hidden.last for _, hidden in parts], 1)
    torch.testing.assert_close(states, whole.last, **CLOSE)


def test_no_gradient_goes_into_the_memory(made):
    """The tokens of the row before change what is said of this one, and learn nothing from it."""
    model, _, _ = made
    left = model.network(behind(model, torch.arange(0, 4), None)).memory
    other = model.network(behind(model, torch.arange(4, 8), None)).memory
    said, otherwise = (model.network(behind(model, torch.arange(20, 24), past)).last for past in (left, other))
    assert (said - otherwise).abs().max() > 1e-3
    model.zero_grad()
    said.square().sum().backward()
    gradient = model.network.embeddings.tokens.grad
    assert bool((gradient[20:24].abs().sum(1) > 0).all())
    assert not gradient[:20].any()
    model.zero_grad()


@pytest.mark.parametrize("copies", [True, False], ids=["with copies", "without"])
@pytest.mark.parametrize("name", CLASSES)
def test_export_is_bitwise(name, copies, tmp_path):
    config = config_of(name)
    tensors = write(tmp_path / "a", config, copies=copies)
    ours = load(tmp_path / "a")
    assert (ours.report.missing, ours.report.unused, ours.report.notes) == ((), (), ())
    shape = ours.config
    assert (shape.positions, shape.memory, shape.embedding_scale, shape.visibility) == ("xl", 6, True, "causal")
    assert ours.save(tmp_path / "b").notes == ()
    assert same_bits(tensors, weights(tmp_path / "b"))
    assert json.loads((tmp_path / "b/config.json").read_text()) == config
    saved = Model(ours.network, ours.heads).save(tmp_path / "c")
    assert saved.family == "transfo-xl"
    assert "transformers 4" in saved.notes[0]
    assert same_bits(tensors_of(config, copies=False), weights(tmp_path / "c"))
    assert load(tmp_path / "c").config == shape


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"cutoffs": [30]}, ["the last band begins at token 30, and the vocabulary has 30"]),
        ({"div_val": ...}, ["div_val = 4", "1"]),
        ({"untie_r": ...}, ["untie_r = True"]),
        ({"d_head": 3}, ["d_head = 3", "d_head = 4"]),
        ({"d_embed": 6}, ["d_embed = 6", "d_embed = 12"]),
        ({"pre_lnorm": True}, ["pre_lnorm = True"]),
    ],
)
def test_what_we_do_not_have_is_refused(changes, words, tmp_path):
    write(tmp_path, config_of())
    change_config(tmp_path, **changes)
    refused(tmp_path, *words)
