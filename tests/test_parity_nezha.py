"""Folders of transformers 4 with NEZHA, which 5 has no more: against the equations, and back bitwise."""

from __future__ import annotations

import json

import pytest
import torch
import torch.nn.functional as F
from nezha_reference import HEADS, config_of, states_of_row, tensors_of
from oracle import rows, same_bits, weights
from safetensors.torch import save_file

from maskery.checkpoint.families import FAMILIES
from maskery.checkpoint.load import load
from maskery.checkpoint.model import Model
from maskery.errors import CheckpointError

CLOSE = {"atol": 1e-5, "rtol": 1e-5}


def write(folder, name, *, changes=(), **options):
    folder.mkdir(parents=True, exist_ok=True)
    config = config_of(name, **dict(changes))
    tensors = tensors_of(name, config, **options)
    (folder / "config.json").write_text(json.dumps(config))
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    return config, tensors


@pytest.mark.parametrize("side", ["none", "right", "left"])
@torch.no_grad()
def test_states_and_attentions_by_the_equations(side, tmp_path):
    config, tensors = write(tmp_path, "NezhaForPreTraining")
    ours = load(tmp_path)
    assert (ours.config.positions, ours.config.clip) == ("nezha", 3)
    ids, mask, segments = rows(side)
    hidden = ours(ids, mask, segments, layers=True, attentions=True)
    scores = ours.logits(ids, mask, segments)
    asked = ours.scores("next_sentence", ids, mask, segments)
    for row in range(len(ids)):
        real = mask[row].bool()
        states, attentions = states_of_row(tensors, config, ids[row][real], segments[row][real])
        for mine, other in zip(hidden.layers, states, strict=True):
            torch.testing.assert_close(mine[row][real], other, **CLOSE)
        for mine, other in zip(hidden.attentions, attentions, strict=True):
            torch.testing.assert_close(mine[row][:, real][:, :, real], other, **CLOSE)
        pooled = torch.tanh(
            F.linear(states[-1][0], tensors["nezha.pooler.dense.weight"], tensors["nezha.pooler.dense.bias"])
        )
        torch.testing.assert_close(hidden.pooled[row], pooled, **CLOSE)
        head = "cls.seq_relationship"
        answer = F.linear(pooled, tensors[f"{head}.weight"], tensors[f"{head}.bias"])
        torch.testing.assert_close(asked[row], answer, **CLOSE)
        head = "cls.predictions.transform"
        inner = F.gelu(F.linear(states[-1], tensors[f"{head}.dense.weight"], tensors[f"{head}.dense.bias"]))
        norm = F.layer_norm(inner, (24,), tensors[f"{head}.LayerNorm.weight"], tensors[f"{head}.LayerNorm.bias"], 1e-12)
        words = tensors["nezha.embeddings.word_embeddings.weight"]
        torch.testing.assert_close(scores[row][real], norm @ words.t() + tensors["cls.predictions.bias"], **CLOSE)


@pytest.mark.parametrize("name", HEADS)
def test_export_is_bitwise(name, tmp_path):
    classes = {"classes": 1} if name.endswith("MultipleChoice") else {}
    config, tensors = write(tmp_path / "a", name, **classes)
    ours = load(tmp_path / "a")
    assert (ours.report.missing, ours.report.unused, ours.report.notes) == ((), (), ())
    assert ours.parameters_by_part()["total"] == sum(each.numel() for each in tensors.values())
    assert ours.save(tmp_path / "b").notes == ()
    assert same_bits(tensors, weights(tmp_path / "b"))
    assert json.loads((tmp_path / "b/config.json").read_text()) == config
    saved = Model(ours.network, ours.heads).save(tmp_path / "c")
    assert saved.family == "nezha"
    assert len(saved.notes) == 1
    assert "transformers 4" in saved.notes[0]
    assert same_bits(tensors, weights(tmp_path / "c"))
    assert json.loads((tmp_path / "c/config.json").read_text())["architectures"] == [name]
    assert load(tmp_path / "c").config == ours.config


def test_every_class_of_the_table_is_here():
    assert [each.name for each in FAMILIES["nezha"].classes] == list(HEADS)


def test_waves_kept_in_the_file_are_written_back(tmp_path):
    _, tensors = write(tmp_path / "a", "NezhaForMaskedLM", buffers=True)
    ours = load(tmp_path / "a")
    assert len(ours.report.ignored) == 3
    assert ours.report.unused == ()
    ours.save(tmp_path / "b")
    assert same_bits(tensors, weights(tmp_path / "b"))


def test_nezha_with_absolute_positions_is_refused(tmp_path):
    write(tmp_path, "NezhaModel", changes={"use_relative_position": False})
    with pytest.raises(CheckpointError, match="use_relative_position = False"):
        load(tmp_path)
