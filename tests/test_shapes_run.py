"""Shapes of distilled models pretrain, save, load and run: without segments and pooler, and with odd sizes."""

from __future__ import annotations

import json

import pytest
import torch
import transformers
from folders import change_weights
from networks import model_of
from oracle import same_bits, weights
from small_run import corpus_in, run_quietly, tiny_recipe

from maskery.checkpoint.load import load
from maskery.model.initial import initialise
from maskery.train.run import pretrain

TINYBERT = {"layers": 4, "width": 312, "heads": 12, "feedforward": 1200}
CLOSE = {"atol": 1e-5, "rtol": 1e-5}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return corpus_in(tmp_path_factory.mktemp("text"), documents=12)


def short(name, **changes):
    return tiny_recipe(name, training__steps=4, training__eval_every=0, **changes)


@torch.no_grad()
def assert_opens_there(folder, kind, text="bam ben [MASK] gun."):
    """transformers' own tokenizer and model say what ours do."""
    ours = load(folder)
    theirs = transformers.AutoModelForMaskedLM.from_pretrained(folder, attn_implementation="eager").eval()
    assert type(theirs).__name__ == kind
    encoded = transformers.AutoTokenizer.from_pretrained(folder)(text, "dim.", return_tensors="pt")
    torch.testing.assert_close(
        ours.logits(encoded["input_ids"], segments=encoded.get("token_type_ids")), theirs(**encoded).logits, **CLOSE
    )
    return encoded


def test_distilbert_from_scratch(corpus, tmp_path):
    chosen = short("roberta", model__segments=0, model__position_offset=0, model__eps=1e-12)
    _, talk = run_quietly(chosen, corpus, tmp_path / "run")
    folder = tmp_path / "run"
    assert json.loads((folder / "config.json").read_text())["model_type"] == "distilbert"
    assert not (folder / "heads.safetensors").exists()
    assert "Hugging Face tools cannot open" not in talk.text
    assert "token_type_ids" not in assert_opens_there(folder, "DistilBertForMaskedLM")
    model = load(folder)
    assert model.network.pooler is None
    assert model.network.embeddings.segments is None
    assert (model.report.missing, model.report.unused) == ((), ())
    model.save(tmp_path / "again")
    assert same_bits(weights(folder), weights(tmp_path / "again"))


def test_pairs_without_segment_vectors(corpus, tmp_path):
    """Rows of two segments that the network does not tell apart; the question about them still has its pooler."""
    chosen = short("bert", model__segments=0)
    pretrain(chosen, corpus, tmp_path / "run", say=lambda _: None)
    config = json.loads((tmp_path / "run/config.json").read_text())
    assert config["architectures"] == ["DistilBertForMaskedLM"]
    model = load(tmp_path / "run")
    assert set(model.heads) == {"masked_token", "next_sentence"}
    row = torch.tensor([[2, 7, 8, 3]])
    assert model.scores("next_sentence", row).shape == (1, 2)
    assert_opens_there(tmp_path / "run", "DistilBertForMaskedLM")


def test_factorised_shared_and_with_tasks(corpus, tmp_path):
    for changes, kind in (
        ({"model__embedding": 8, "model__share": "all"}, "AlbertForMaskedLM"),
        ({"model__embedding": 8}, "ElectraForMaskedLM"),
        ({"model__tasks": 3}, "ErnieForMaskedLM"),
    ):
        chosen = short("roberta", model__segments=2, model__position_offset=0, model__eps=1e-12, **changes)
        pretrain(chosen, corpus, tmp_path / kind, say=lambda _: None)
        assert_opens_there(tmp_path / kind, kind)


def test_tinybert(tmp_path):
    """Its head size is 26. General distillation leaves a matrix to the teacher's width in the file."""
    model = model_of("masked_token", "next_sentence", pooler=True, **TINYBERT)
    initialise(model, 0.02, 0)
    assert model.save(tmp_path / "m").family == "bert"
    (tmp_path / "m/manifest.json").unlink()
    extra = {"fit_dense.weight": torch.zeros(768, 312), "fit_dense.bias": torch.zeros(768)}
    change_weights(tmp_path / "m", lambda tensors: tensors.update(extra))
    again = load(tmp_path / "m")
    assert again.report.unused == ("fit_dense.bias", "fit_dense.weight")
    theirs = transformers.BertForPreTraining.from_pretrained(tmp_path / "m", attn_implementation="eager").eval()
    row = torch.tensor([[2, 7, 8, 9, 3]])
    with torch.no_grad():
        torch.testing.assert_close(again.logits(row), theirs(row).prediction_logits, **CLOSE)
