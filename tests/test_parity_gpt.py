"""GPT and GPT-2: the same weights give the same numbers here and in transformers, and come back bitwise."""

from __future__ import annotations

import json

import pytest
import torch
import transformers
from folders import change_config, refused
from oracle import make, rows, same_bits, weights
from safetensors.torch import save_file

from maskery.checkpoint.families import FAMILIES
from maskery.checkpoint.load import load
from maskery.checkpoint.locate import TENSORLESS
from maskery.checkpoint.model import Model

CLASSES = [each.name for kind in ("gpt2", "openai-gpt") for each in FAMILIES[kind].classes]
CLOSE = {"atol": 1e-5, "rtol": 1e-5}
HEADS = {
    "LMHeadModel": ["next_token"],
    "ForSequenceClassification": ["sequence_class_last"],
    "ForTokenClassification": ["token_class"],
    "ForQuestionAnswering": ["answer_span"],
    "Model": [],
}


@pytest.fixture(scope="module", params=CLASSES)
def pair(request, tmp_path_factory):
    """A Hugging Face model, its folder, and ours."""
    labels = {"num_labels": 5} if request.param.endswith(("SequenceClassification", "TokenClassification")) else {}
    theirs = make(request.param, **labels)
    folder = tmp_path_factory.mktemp(request.param)
    theirs.save_pretrained(folder)
    return theirs, folder, load(folder)


def answer(expected, head):
    return torch.stack((expected.start_logits, expected.end_logits), -1) if head == "answer_span" else expected.logits


@pytest.mark.parametrize("side", ["none", "right", "left"])
@torch.no_grad()
def test_states_attentions_and_heads(pair, side):
    theirs, _, ours = pair
    ids, mask, _ = rows(side)
    expected = theirs(input_ids=ids, attention_mask=mask, output_hidden_states=True, output_attentions=True)
    hidden = ours(ids, mask, layers=True, attentions=True)
    real = mask.bool()
    for mine, other in zip(hidden.layers, expected.hidden_states, strict=True):
        torch.testing.assert_close(mine[real], other[real], **CLOSE)
    torch.testing.assert_close(ours(ids, mask).last[real], expected.hidden_states[-1][real], **CLOSE)
    both = (real[:, None, :, None] & real[:, None, None, :]).expand(-1, ours.config.heads, -1, -1)
    for mine, other in zip(hidden.attentions, expected.attentions, strict=True):
        torch.testing.assert_close(mine[both], other[both], **CLOSE)
    for head in ours.heads:
        mine, other = ours.scores(head, ids, mask), answer(expected, head)
        assert mine.shape == other.shape
        read = real if mine.ndim == 3 else slice(None)
        torch.testing.assert_close(mine[read], other[read], **CLOSE)


def test_heads_and_counts(pair):
    theirs, _, ours = pair
    name = type(theirs).__name__
    assert list(ours.heads) == HEADS[max((each for each in HEADS if name.endswith(each)), key=len)]
    assert (ours.report.missing, ours.report.unused, ours.report.ignored, ours.report.notes) == ((), (), (), ())
    assert ours.parameters_by_part()["total"] == sum(each.numel() for each in theirs.parameters())


def test_comes_back_bitwise_and_opens_there(pair, tmp_path):
    theirs, folder, ours = pair
    assert ours.save(tmp_path / "again").notes == ()
    assert same_bits(weights(folder), weights(tmp_path / "again"))
    before, after = (json.loads((path / "config.json").read_text()) for path in (folder, tmp_path / "again"))
    assert before == after
    alone = Model(ours.network, ours.heads).save(tmp_path / "alone")
    assert (alone.family, alone.notes) == (theirs.config.model_type, ())
    written = json.loads((tmp_path / "alone/config.json").read_text())
    assert written["architectures"] == [type(theirs).__name__]
    assert TENSORLESS not in written
    assert load(tmp_path / "alone").config == ours.config
    for path in ("again", "alone"):
        back, told = type(theirs).from_pretrained(tmp_path / path, output_loading_info=True)
        assert not told["missing_keys"]
        assert not told["unexpected_keys"]
        assert same_bits(theirs.state_dict(), back.state_dict())


@torch.no_grad()
def test_padding_on_the_left_with_positions_counts_from_the_first_token(pair):
    """What generation needs: positions that begin behind the padding give the numbers of a row that has none."""
    theirs, _, ours = pair
    (left, mask, _), (right, right_mask, _) = rows("left"), rows("right")
    places = (mask.cumsum(1) - 1).clamp(min=0)
    hidden = ours(left, mask, positions=places).last
    expected = theirs(input_ids=left, attention_mask=mask, position_ids=places, output_hidden_states=True)
    real = mask.bool()
    torch.testing.assert_close(hidden[real], expected.hidden_states[-1][real], **CLOSE)
    assert torch.equal(left[real], right[right_mask.bool()])
    torch.testing.assert_close(hidden[real], ours(right, right_mask).last[right_mask.bool()], **CLOSE)


@pytest.mark.parametrize("name", ["GPT2LMHeadModel", "OpenAIGPTLMHeadModel"])
def test_a_file_of_the_first_releases(name, tmp_path):
    """No prefix although the class has a head, a mask in every layer, the output written out: all comes back."""
    theirs = make(name)
    theirs.save_pretrained(tmp_path / "a")
    old = {each.removeprefix("transformer."): tensor for each, tensor in weights(tmp_path / "a").items()}
    old |= {f"h.{layer}.attn.bias": torch.ones(1, 1, 40, 40).tril() for layer in range(3)}
    old |= {f"h.{layer}.attn.masked_bias": torch.tensor(-1e4) for layer in range(3)}
    old["lm_head.weight"] = theirs.lm_head.weight.detach().clone()
    save_file(old, tmp_path / "a/model.safetensors", metadata={"format": "pt"})
    ours = load(tmp_path / "a")
    assert len(ours.report.ignored) == 6
    assert (ours.report.missing, ours.report.unused) == ((), ())
    ours.save(tmp_path / "b")
    assert same_bits(old, weights(tmp_path / "b"))
    assert same_bits(theirs.state_dict(), type(theirs).from_pretrained(tmp_path / "b").state_dict())


@pytest.mark.parametrize("name", ["GPT2LMHeadModel", "OpenAIGPTLMHeadModel"])
def test_a_class_that_nobody_names_has_the_output(name, tmp_path):
    make(name).save_pretrained(tmp_path)
    change_config(tmp_path, architectures=["GPT2DoubleHeadsModel"])
    assert list(load(tmp_path).heads) == ["next_token"]
    change_config(tmp_path, architectures=[name.replace("LMHead", "")])
    assert list(load(tmp_path).heads) == []


@torch.no_grad()
def test_sizes_and_activations_and_what_cannot_be(tmp_path):
    theirs = make("GPT2LMHeadModel", n_inner=None, activation_function="gelu", layer_norm_epsilon=1e-3)
    theirs.save_pretrained(tmp_path)
    ours = load(tmp_path)
    assert (ours.config.feedforward, ours.config.activation, ours.config.eps) == (96, "gelu", 1e-3)
    ids, mask, _ = rows("right")
    real = mask.bool()
    torch.testing.assert_close(ours.logits(ids, mask)[real], theirs(ids, attention_mask=mask).logits[real], **CLOSE)
    opened = transformers.AutoModelForCausalLM.from_pretrained(tmp_path)
    assert type(opened).__name__ == "GPT2LMHeadModel"
    change_config(tmp_path, scale_attn_by_inverse_layer_idx=True)
    refused(tmp_path, "scale_attn_by_inverse_layer_idx = True")
    change_config(tmp_path, scale_attn_by_inverse_layer_idx=False, n_head=5)
    refused(tmp_path, "heads 5")


def test_a_head_without_tensors_beside_another_is_written_down(tmp_path):
    """One that the class does not tell of: in config.json; a foreign word there is refused."""
    make("GPT2ForTokenClassification").save_pretrained(tmp_path / "a")
    ours = load(tmp_path / "a")
    from_class, written = load(tmp_path / "a").heads, tmp_path / "b"
    make("GPT2LMHeadModel").save_pretrained(tmp_path / "c")
    next_token = load(tmp_path / "c").heads["next_token"]
    Model(ours.network, {**from_class, "masked_token": next_token}).save(written)
    config = json.loads((written / "config.json").read_text())
    assert config["architectures"] == ["GPT2ForTokenClassification"]
    assert config[TENSORLESS] == ["masked_token"]
    assert set(load(written).heads) == {"token_class", "masked_token"}
    (written / "manifest.json").unlink()
    for wrong in (["riddle"], "masked_token!", [3], ["next_sentence"]):
        change_config(written, **{TENSORLESS: wrong})
        refused(written, "no head without tensors")
