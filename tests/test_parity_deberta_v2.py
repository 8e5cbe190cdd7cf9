"""DeBERTa of versions 2 and 3: the same weights give the same numbers here and in transformers, and return bitwise."""

from __future__ import annotations

import json

import pytest
import torch
import transformers
from networks import model_of, tokenizer
from oracle import VOCABULARY, make, same_bits, weights
from test_parity_modernbert import rows

from maskery.checkpoint.families import FAMILIES
from maskery.checkpoint.load import load
from maskery.checkpoint.model import Model
from maskery.errors import CheckpointError

CLOSE = {"atol": 1e-5, "rtol": 1e-5}
SIZES = {
    "relative_attention": True, "position_buckets": 8, "norm_rel_ebd": "layer_norm", "share_att_key": True,
    "pos_att_type": "p2c|c2p", "position_biased_input": False, "type_vocab_size": 0, "max_position_embeddings": 24,
}  # fmt: skip
HEADS = {
    "ForMaskedLM": "masked_token",
    "ForSequenceClassification": "sequence_class_gelu",
    "ForTokenClassification": "token_class",
    "ForQuestionAnswering": "answer_span",
    "ForMultipleChoice": "choice_gelu",
    "Model": None,
}
LENGTHS = [37, 17, 8, 1, 9]
"""Longer than the farthest distance of 24, longer than the 8 buckets of a side, and shorter."""


def made(ending, folder, **changes):
    labels = {"num_labels": 3} if ending.endswith(("SequenceClassification", "TokenClassification")) else {}
    theirs = make(f"DebertaV2{ending}", **{**SIZES, **labels, **changes})
    theirs.save_pretrained(folder)
    return theirs, load(folder)


@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize("changes", [
    {}, {"max_relative_positions": 12}, {"type_vocab_size": 2}, {"legacy": False}, {"position_buckets": 4},
], ids=["published", "nearer", "segments", "new head", "few buckets"])  # fmt: skip
@torch.no_grad()
def test_states_attentions_and_scores(changes, side, tmp_path):
    theirs, ours = made("ForMaskedLM", tmp_path, **changes)
    ids, mask = rows(LENGTHS, side)
    segments = (torch.arange(ids.shape[1]) > 5).long().expand_as(ids) * mask
    segments = segments if changes.get("type_vocab_size") else torch.zeros_like(ids)
    expected = theirs(ids, mask, segments, output_hidden_states=True, output_attentions=True)
    hidden, real = ours(ids, mask, segments, layers=True, attentions=True), mask.bool()
    for mine, other in zip(hidden.layers, expected.hidden_states, strict=True):
        torch.testing.assert_close(mine[real], other[real], **CLOSE)
    both = (real[:, None, :, None] & real[:, None, None, :]).expand(-1, 4, -1, -1)
    for mine, other in zip(hidden.attentions, expected.attentions, strict=True):
        torch.testing.assert_close(mine[both], other[both], **CLOSE)
    torch.testing.assert_close(ours.logits(ids, mask, segments)[real], expected.logits[real], **CLOSE)
    torch.testing.assert_close(ours(ids, mask, segments).last[real], expected.hidden_states[-1][real], **CLOSE)


@torch.no_grad()
def test_buckets_as_they_are_published(tmp_path):
    """256 buckets of a side and 512 positions, on a row longer than both."""
    sizes = {"position_buckets": 256, "max_position_embeddings": 512, "num_hidden_layers": 1}
    theirs, ours = made("Model", tmp_path, **sizes)
    ids, mask = rows([600])
    torch.testing.assert_close(ours(ids, mask).last, theirs(ids, mask).last_hidden_state, **CLOSE)


@pytest.mark.parametrize("legacy", [True, False], ids=["legacy", "new"])
@pytest.mark.parametrize("ending", HEADS)
@torch.no_grad()
def test_heads_and_export_bitwise(ending, legacy, tmp_path):
    theirs, ours = made(ending, tmp_path / "a", legacy=legacy)
    head = HEADS[ending]
    assert list(ours.heads) == ([] if head is None else [head])
    assert (ours.report.missing, ours.report.unused, ours.report.notes) == ((), (), ())
    assert ours.parameters_by_part()["total"] == sum(each.numel() for each in theirs.parameters())
    ids, mask = rows(LENGTHS)
    if ending == "ForMultipleChoice":
        expected = theirs(input_ids=ids[None], attention_mask=mask[None]).logits.t()
    else:
        expected = theirs(input_ids=ids, attention_mask=mask)
        expected = expected.get("logits", expected.get("last_hidden_state", expected.get("start_logits")))
    if head is not None:
        found = ours.scores(head, ids, mask)
        found = found[..., 0] if ending == "ForQuestionAnswering" else found
        real = mask.bool() if found.shape[:2] == mask.shape else slice(None)
        torch.testing.assert_close(found[real], expected[real], **CLOSE)
    assert ours.save(tmp_path / "b").notes == ()
    assert same_bits(weights(tmp_path / "a"), weights(tmp_path / "b"))
    if ending == "ForMaskedLM":
        assert json.loads((tmp_path / "b/config.json").read_text())["legacy"] is legacy
    saved = Model(ours.network, ours.heads).save(tmp_path / "c")
    assert saved.family == "deberta-v2"
    again = getattr(transformers, f"DebertaV2{ending}").from_pretrained(tmp_path / "c")
    if ending != "ForMultipleChoice":
        found = again(input_ids=ids, attention_mask=mask)
        found = found.get("logits", found.get("last_hidden_state", found.get("start_logits")))
        real = mask.bool() if found.shape[:2] == mask.shape else slice(None)
        torch.testing.assert_close(found[real], expected[real], **CLOSE)
    assert load(tmp_path / "c").config == ours.config


SHAPE = {"positions": "disentangled", "buckets": 8, "clip": 24, "segments": 0, "eps": 1e-7}


@torch.no_grad()
def test_what_we_write_opens_there(tmp_path):
    ours = model_of("masked_token", **SHAPE)
    assert ours.save(tmp_path).family == "deberta-v2"
    words = transformers.AutoTokenizer.from_pretrained(tmp_path)(
        ["the cat sat on the mat and the cats sat on the mats", "cats"], return_tensors="pt", padding=True
    )
    assert words["input_ids"][1, :4].tolist() == tokenizer().encode("cats")[0]
    theirs = transformers.AutoModelForMaskedLM.from_pretrained(tmp_path).eval()
    real = words["attention_mask"].bool()
    torch.testing.assert_close(ours.logits(words["input_ids"], real)[real], theirs(**words).logits[real], **CLOSE)
    base = transformers.AutoModel.from_pretrained(tmp_path).eval()
    states = ours(words["input_ids"], real).last
    torch.testing.assert_close(states[real], base(**words).last_hidden_state[real], **CLOSE)


@pytest.mark.parametrize(("key", "value"), [
    ("pos_att_type", ["c2p"]), ("share_att_key", False), ("position_biased_input", True), ("norm_rel_ebd", "none"),
    ("relative_attention", False), ("attention_head_size", 5), ("embedding_size", 5),
    ("position_buckets", -1),
])  # fmt: skip
def test_kinds_that_are_not_supported(key, value, tmp_path):
    made("ForMaskedLM", tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | {key: value}))
    with pytest.raises(CheckpointError, match=key) as refused:
        load(tmp_path)
    assert refused.value.repair


def test_published_config_of_version_3():
    """No class is named, and what it has beyond the encoder is found by its tensors."""
    config = {
        "model_type": "deberta-v2", "attention_probs_dropout_prob": 0.1, "hidden_act": "gelu",
        "hidden_dropout_prob": 0.1, "hidden_size": 768, "initializer_range": 0.02, "intermediate_size": 3072,
        "max_position_embeddings": 512, "relative_attention": True, "position_buckets": 256,
        "norm_rel_ebd": "layer_norm", "share_att_key": True, "pos_att_type": "p2c|c2p", "layer_norm_eps": 1e-7,
        "max_relative_positions": -1, "position_biased_input": False, "num_attention_heads": 12,
        "num_hidden_layers": 12, "type_vocab_size": 0, "vocab_size": 128100,
    }  # fmt: skip
    shape = FAMILIES["deberta-v2"].shape_of(config)
    assert (shape.positions, shape.buckets, shape.clip, shape.segments) == ("disentangled", 256, 512, 0)


def test_the_head_of_a_published_file_is_found_by_its_tensors(tmp_path):
    made("ForMaskedLM", tmp_path, legacy=False)
    config = json.loads((tmp_path / "config.json").read_text())
    del config["architectures"], config["legacy"]
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert list(load(tmp_path).heads) == ["masked_token"]
    assert load(tmp_path).config.vocabulary == VOCABULARY
