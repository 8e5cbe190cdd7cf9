"""`maskery fill`: the model's own probabilities, in English and Chinese, one mask or several."""

from __future__ import annotations

import json
import shutil

import pytest
import torch
from networks import model_of
from oracle import make
from safetensors.torch import load_file, save_file

from maskery.checkpoint.load import load
from maskery.cli import main


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("fill") / "m"
    model_of("masked_token").save(path)
    return path


def filled(capsys, *arguments):
    assert main(["fill", *map(str, arguments), "--json"]) == 0
    output = capsys.readouterr()
    return json.loads(output.out), output.err


def refused(capsys, *arguments):
    assert main(["fill", *map(str, arguments)]) == 2
    output = capsys.readouterr()
    assert output.out == ""
    return output.err


@pytest.mark.parametrize("text", ["the cat [MASK] on the mat.", "我去了[MASK]京。"])
def test_candidates_are_the_models_probabilities(capsys, folder, text):
    found, told = filled(capsys, folder, text, "--top", "3")
    model = load(folder)
    ids, segments = model.tokenizer.encode(text)
    slot = ids.index(model.tokenizer.specials.mask)
    with torch.no_grad():
        shares = model.logits(torch.tensor([ids]), None, torch.tensor([segments]))[0, slot].softmax(-1)
    (mask,) = found["masks"]
    assert mask["slot"] == slot
    assert [each["id"] for each in mask["candidates"]] == shares.topk(3).indices.tolist()
    for each in mask["candidates"]:
        assert each["probability"] == pytest.approx(float(shares[each["id"]]), abs=1e-6)
        assert each["token"] == model.tokenizer.tokens([each["id"]])[0]
    assert "[MASK]" not in found["filled"]
    assert told == ""


def test_several_masks_are_filled_each_by_itself_and_that_is_said(capsys, folder):
    found, told = filled(capsys, folder, "我去了[MASK][MASK]。")
    assert [mask["slot"] for mask in found["masks"]] == [4, 5]
    assert "each filled by itself" in told


def test_unknown_tokens_are_counted(capsys, folder):
    found, told = filled(capsys, folder, "龘 [MASK]")
    assert found["unknown"] == 1
    assert "1 token of the text is not" in told
    assert "2 tokens of the text are not" in filled(capsys, folder, "龘 龘 [MASK]")[1]


def test_what_loading_found_is_said(capsys, folder, tmp_path):
    shutil.copytree(folder, tmp_path / "m")
    (tmp_path / "m/manifest.json").unlink()
    tensors = load_file(tmp_path / "m/model.safetensors")
    tensors["riddle.weight"] = torch.zeros(2)
    tensors["bert.embeddings.position_ids"] = torch.arange(24).view(1, -1)
    save_file(tensors, tmp_path / "m/model.safetensors", {"format": "pt"})
    _, told = filled(capsys, tmp_path / "m", "the [MASK]")
    assert told.splitlines() == ["unused tensors: 1: riddle.weight", "ignored tensors: 1: embeddings.position_ids"]


def test_the_table(capsys, folder):
    assert main(["fill", str(folder), "the [MASK] [MASK].", "--top", "2"]) == 0
    out = capsys.readouterr().out
    assert "mask 1" in out
    assert "mask 2" in out
    assert out.count("0.") >= 4


def test_more_candidates_than_there_are_tokens(capsys, folder):
    found, _ = filled(capsys, folder, "[MASK]", "--top", "100000")
    assert sum(each["probability"] for each in found["masks"][0]["candidates"]) == pytest.approx(1, abs=1e-4)


def test_refusals(capsys, folder, tmp_path):
    assert 'fill MODEL "' in refused(capsys, folder, "no hole here")
    assert "cut rows to 24" in refused(capsys, folder, "[MASK] " + "the " * 40)
    assert "--top" in refused(capsys, folder, "[MASK]", "--top", "0")
    assert "no such folder" in refused(capsys, tmp_path / "nowhere", "[MASK]")
    make("BertForMaskedLM").save_pretrained(tmp_path / "mute")
    assert "no tokenizer" in refused(capsys, tmp_path / "mute", "[MASK]")
    model_of(pooler=True).save(tmp_path / "headless")
    assert "no masked_token head" in refused(capsys, tmp_path / "headless", "[MASK]")
    torch.save({}, tmp_path / "mute/pytorch_model.bin")
    (tmp_path / "mute/model.safetensors").unlink()
    assert "--allow-pickle" in refused(capsys, tmp_path / "mute", "[MASK]")
