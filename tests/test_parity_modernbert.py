"""ModernBERT: the same weights give the same numbers here and in transformers, at any length, and come back bitwise."""

from __future__ import annotations

import json

import pytest
import torch
import transformers
from networks import MODERNBERT, model_of, tokenizer
from oracle import VOCABULARY, make, same_bits, weights

from maskery.checkpoint.families import FAMILIES
from maskery.checkpoint.load import load
from maskery.checkpoint.model import Model
from maskery.errors import CheckpointError

CLOSE = {"atol": 1e-5, "rtol": 1e-5}
SIZES = {"hidden_activation": "gelu", "local_attention": 8, "pad_token_id": 0, "num_hidden_layers": 4}
HEADS = {
    "ForMaskedLM": "masked_token",
    "ForSequenceClassification": "sequence_class_normed",
    "ForTokenClassification": "token_class_normed",
    "ForQuestionAnswering": "answer_span_normed",
    "ForMultipleChoice": "choice_normed",
    "Model": None,
}
LENGTHS = [30, 17, 4, 1, 9]
"""Longer than the window of 8, as long as it reaches, and shorter."""


def made(ending, folder, **changes):
    labels = {"num_labels": 3} if ending.endswith(("SequenceClassification", "TokenClassification")) else {}
    theirs = make(f"ModernBert{ending}", **{**SIZES, **labels, **changes})
    theirs.save_pretrained(folder)
    return theirs, load(folder)


def rows(lengths=LENGTHS, side="right"):
    draws = torch.Generator().manual_seed(3)
    widest = max(lengths)
    ids, mask = torch.zeros(len(lengths), widest, dtype=torch.long), torch.zeros(len(lengths), widest, dtype=torch.long)
    for row, length in enumerate(lengths):
        places = slice(0, length) if side == "right" else slice(widest - length, widest)
        ids[row, places] = torch.randint(5, VOCABULARY, (length,), generator=draws)
        mask[row, places] = 1
    return ids, mask


@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize("changes", [
    {}, {"attention_bias": True, "mlp_bias": True, "norm_bias": True, "classifier_bias": True},
    {"local_attention": 6, "global_attn_every_n_layers": 2, "hidden_activation": "gelu_pytorch_tanh",
     "classifier_activation": "gelu_pytorch_tanh"},
    {"layer_types": ["full_attention"] * 4},
], ids=["published", "biases", "another rhythm", "no windows"])  # fmt: skip
@torch.no_grad()
def test_states_attentions_and_scores(changes, side, tmp_path):
    theirs, ours = made("ForMaskedLM", tmp_path, **changes)
    ids, mask = rows(side=side)
    expected = theirs(input_ids=ids, attention_mask=mask, output_hidden_states=True, output_attentions=True)
    hidden, real = ours(ids, mask, layers=True, attentions=True), mask.bool()
    for mine, other in zip(hidden.layers[:-1], expected.hidden_states[:-1], strict=True):
        torch.testing.assert_close(mine[real], other[real], **CLOSE)
    both = (real[:, None, :, None] & real[:, None, None, :]).expand(-1, 4, -1, -1)
    for mine, other in zip(hidden.attentions, expected.attentions, strict=True):
        torch.testing.assert_close(mine[both], other[both], **CLOSE)
    torch.testing.assert_close(ours.logits(ids, mask)[real], expected.logits[real], **CLOSE)
    last = theirs.model(input_ids=ids, attention_mask=mask).last_hidden_state
    torch.testing.assert_close(hidden.last[real], last[real], **CLOSE)
    torch.testing.assert_close(ours(ids, mask).last[real], last[real], **CLOSE)


@torch.no_grad()
def test_the_quick_kernel_of_long_rows(tmp_path):
    """Rows of several hundred slots, many times the window."""
    theirs, ours = made("ForMaskedLM", tmp_path, max_position_embeddings=1024)
    ids, mask = rows([700, 300])
    expected = theirs(input_ids=ids, attention_mask=mask).logits
    torch.testing.assert_close(ours.logits(ids, mask)[mask.bool()], expected[mask.bool()], **CLOSE)


@pytest.mark.parametrize("pooling", ["cls", "mean"])
@pytest.mark.parametrize("ending", HEADS)
@torch.no_grad()
def test_heads_and_export_bitwise(ending, pooling, tmp_path):
    theirs, ours = made(ending, tmp_path / "a", classifier_pooling=pooling)
    head = HEADS[ending]
    if pooling == "mean" and head in ("sequence_class_normed", "choice_normed"):
        head = head.replace("normed", "mean")
    assert list(ours.heads) == ([] if head is None else [head])
    assert (ours.report.missing, ours.report.unused, ours.report.notes) == ((), (), ())
    assert ours.parameters_by_part()["total"] == sum(each.numel() for each in theirs.parameters())
    ids, mask = rows()
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
    saved = Model(ours.network, ours.heads).save(tmp_path / "c")
    assert saved.family == "modernbert"
    assert same_bits(weights(tmp_path / "a"), weights(tmp_path / "c"))
    again = getattr(transformers, f"ModernBert{ending}").from_pretrained(tmp_path / "c", attn_implementation="eager")
    if ending in ("ForSequenceClassification", "ForMultipleChoice"):
        assert again.config.classifier_pooling == pooling
    assert all(torch.equal(one, other) for one, other in zip(again.parameters(), theirs.parameters(), strict=True))
    assert again.config.layer_types == theirs.config.layer_types
    assert load(tmp_path / "c").config == ours.config


SHAPE = {**MODERNBERT, "feedforward": 24, "layers": 4}


@torch.no_grad()
def test_what_we_write_opens_there(tmp_path):
    ours = model_of("masked_token", **SHAPE)
    assert ours.save(tmp_path).family == "modernbert"
    words = transformers.AutoTokenizer.from_pretrained(tmp_path)(
        ["the cat sat on the mat", "cats"], return_tensors="pt", padding=True
    )
    assert "token_type_ids" not in words
    assert words["input_ids"][0].tolist() == tokenizer().encode("the cat sat on the mat")[0]
    theirs = transformers.AutoModelForMaskedLM.from_pretrained(tmp_path, attn_implementation="eager").eval()
    real = words["attention_mask"].bool()
    expected = theirs(**words).logits
    torch.testing.assert_close(ours.logits(words["input_ids"], real)[real], expected[real], **CLOSE)
    base = transformers.AutoModel.from_pretrained(tmp_path).eval()
    states = ours(words["input_ids"], real).last
    torch.testing.assert_close(states[real], base(**words).last_hidden_state[real], **CLOSE)


@pytest.mark.parametrize(("key", "value", "said"), [
    ("rope_parameters", {"full_attention": {"rope_type": "linear", "factor": 2.0}}, "rope_type"),
    ("layer_types", ["sliding_attention"] * 3 + ["full_attention"], "layer_types"),
    ("decoder_bias", False, "decoder_bias"),
    ("classifier_activation", "relu", "classifier_activation"),
])  # fmt: skip
def test_kinds_that_are_not_supported(key, value, said, tmp_path):
    made("ForMaskedLM", tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | {key: value}))
    with pytest.raises(CheckpointError, match=said) as refused:
        load(tmp_path)
    assert refused.value.repair


def test_published_config_of_version_4(tmp_path):
    """The published files name bases and rhythm, and no kinds of layers."""
    config = {
        "model_type": "modernbert", "architectures": ["ModernBertForMaskedLM"], "global_attn_every_n_layers": 3,
        "global_rope_theta": 160000.0, "local_rope_theta": 10000.0, "local_attention": 128, "num_hidden_layers": 22,
        "max_position_embeddings": 8192, "hidden_size": 768, "intermediate_size": 1152, "vocab_size": 50368,
    }  # fmt: skip
    shape = FAMILIES["modernbert"].shape_of(config)
    assert (shape.theta, shape.local, shape.local_theta, shape.global_every) == (160_000.0, 128, 10_000.0, 3)
    assert [shape.is_local(layer) for layer in range(4)] == [False, True, True, False]
    assert (shape.gated, shape.first_norm, shape.norm_bias, shape.max_length) == (True, False, False, 8192)


@torch.no_grad()
def test_the_other_name_of_the_window(tmp_path):
    """transformers takes `sliding_window` for half of `local_attention`, and lets it overrule that."""
    made("ForMaskedLM", tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | {"sliding_window": 2}))
    ours = load(tmp_path)
    assert ours.config.local == 4
    theirs = transformers.AutoModelForMaskedLM.from_pretrained(tmp_path, attn_implementation="eager").eval()
    ids, mask = rows()
    expected = theirs(input_ids=ids, attention_mask=mask).logits
    torch.testing.assert_close(ours.logits(ids, mask)[mask.bool()], expected[mask.bool()], **CLOSE)
    ours.save(tmp_path / "again")
    assert load(tmp_path / "again").config == ours.config
