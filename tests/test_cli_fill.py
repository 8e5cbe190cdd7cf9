"""`maskery fill`: the model's own probabilities, in English and Chinese, one mask or several."""

from __future__ import annotations

import json
import shutil

import pytest
import torch
from networks import model_of
from oracle import make
from safetensors.torch import load_file, save_file

import maskery
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


def chain(model, ids, segments, slots, tokens, order):
    """The product along an order, the slow obvious way: one reading a factor."""
    row, found = list(ids), 1.0
    for place in order:
        with torch.no_grad():
            shares = model.logits(torch.tensor([row]), None, torch.tensor([segments]))[0, slots[place]].softmax(-1)
        found *= float(shares[tokens[place]])
        row[slots[place]] = tokens[place]
    return found


@pytest.mark.parametrize("order", ["left", "any"])
@pytest.mark.parametrize("text", ["我去了[MASK][MASK]。", "the [MASK] [MASK] on [MASK]"])
def test_several_masks_are_filled_together_with_exact_probabilities(capsys, folder, text, order):
    found, _ = filled(capsys, folder, text, "--top", "4", "--order", order)
    model = load(folder)
    ids, segments = model.tokenizer.encode(text)
    slots = [mask["slot"] for mask in found["masks"]]
    assert slots == [slot for slot, number in enumerate(ids) if number == model.tokenizer.specials.mask]
    assert len(found["joint"]) == 4
    for each in found["joint"]:
        places = [mask - 1 for mask in each["order"]]
        assert sorted(places) == list(range(len(slots)))
        assert order == "any" or places == sorted(places)
        exact = chain(model, ids, segments, slots, each["ids"], places)
        assert each["probability"] == pytest.approx(exact, rel=1e-4)
    shares = [each["probability"] for each in found["joint"]]
    assert shares == sorted(shares, reverse=True)
    assert found["filled"] == found["joint"][0]["text"]


def test_a_beam_as_wide_as_the_vocabulary_finds_the_best_of_all(folder):
    model = load(folder)
    text = "the [MASK] [MASK]"
    ids, segments = model.tokenizer.encode(text)
    slots = [slot for slot, number in enumerate(ids) if number == model.tokenizer.specials.mask]
    wide = maskery.fill(folder, text, top=1, beams=model.config.vocabulary)
    with torch.no_grad():
        first = model.logits(torch.tensor([ids]), None, torch.tensor([segments]))[0, slots[0]].softmax(-1)
        rows = torch.tensor(ids).repeat(len(first), 1)
        rows[:, slots[0]] = torch.arange(len(first))
        second = model.logits(rows, None, torch.tensor([segments]).expand(rows.shape))[:, slots[1]].softmax(-1)
    together = first[:, None] * second
    assert together.sum() == pytest.approx(1, abs=1e-4), "from left to right, all texts share 1"
    best = divmod(int(together.argmax()), len(first))
    assert wide.joint[0].ids == best
    assert wide.joint[0].probability == pytest.approx(float(together.max()), rel=1e-4)


def test_any_order_is_never_below_left_to_right(folder):
    text = "the [MASK] [MASK]"
    both = [maskery.fill(folder, text, order=order, beams=60).joint[0].probability for order in ("left", "any")]
    assert both[1] >= both[0] * (1 - 1e-5)


def test_one_mask_has_no_joint_and_too_many_are_told(capsys, folder):
    assert filled(capsys, folder, "the [MASK]")[0]["joint"] == []
    found, told = filled(capsys, folder, "[MASK]" * 17)
    assert found["joint"] == []
    assert "at most 16 are filled together" in told


def test_scores_that_are_not_finite_are_refused(folder):
    model = load(folder)
    with torch.no_grad():
        model.network.embeddings.tokens[5:] = 1e30
    with pytest.raises(maskery.MaskeryError, match="not finite"):
        maskery.fill(model, "the [MASK]")


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
