"""Folders of every family that cannot be right are refused, with cause, place and repair."""

from __future__ import annotations

import json
import shutil
from contextlib import suppress

import pytest
import torch
from damage import FOREIGN, survives
from folders import change_config, change_weights, refused, shard
from networks import VOCABULARY, model_of, model_of_family
from oracle import make, weights

from maskery.checkpoint.exporting import export_model
from maskery.checkpoint.families import FAMILIES
from maskery.checkpoint.load import load
from maskery.cli import main
from maskery.errors import CheckpointError, InputError

UP = {
    "albert": "encoder.albert_layer_groups.1.albert_layers.0.ffn.weight",
    "distilbert": "transformer.layer.1.ffn.lin1.weight",
    "gpt2": "h.1.mlp.c_fc.weight",
    "openai-gpt": "h.1.mlp.c_fc.weight",
    "transfo-xl": "layers.1.pos_ff.CoreNet.0.weight",
    "bart": "encoder.layers.1.fc1.weight",
    "xlnet": "layer.1.ff.layer_1.weight",
    "modernbert": "layers.1.mlp.Wi.weight",
}
"""Their name of a weight of the second layer (albert: of the second group)."""


@pytest.fixture(params=FAMILIES)
def family(request):
    return request.param


TURNED = ("gpt2", "openai-gpt")
"""Where matrices stand the other way round."""
GATED = ("modernbert",)
"""Where that weight holds the gate as well."""
QUESTION = dict.fromkeys((*TURNED, "transfo-xl", "bart"), "next_token") | {"xlnet": "permuted_token"}
"""What a model of the family is asked, where that is not the masked token."""


@pytest.fixture
def folder(family, tmp_path):
    """A whole folder without a manifest, as others write it."""
    made = model_of_family(family, QUESTION.get(family, "masked_token"))
    assert export_model(made, tmp_path / "m", family).family == family
    (tmp_path / "m/manifest.json").unlink()
    return tmp_path / "m"


@pytest.fixture
def up(family):
    return FAMILIES[family].prefix + UP.get(family, "encoder.layer.1.intermediate.dense.weight")


def test_a_tensor_of_another_size(folder, up, family):
    change_weights(folder, lambda tensors: tensors.update({up: tensors[up][:-1].clone()}))
    rows = 128 if family in GATED else 64
    refused(folder, up, f"({rows}, 15)" if family in TURNED else f"({rows - 1}, 16)", f"({rows}, 16)")


def test_a_tensor_that_is_missing(folder, up, family):
    change_weights(folder, lambda tensors: tensors.pop(up))
    refused(folder, up.removeprefix(FAMILIES[family].prefix), "missing")


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_weights_that_are_no_numbers(folder, family, up, value):
    def spoil(tensors):
        tensors[up][0, 0] = value

    change_weights(folder, spoil)
    refused(folder, up, f"1 of the {2048 if family in GATED else 1024} weights", "earlier checkpoint")


def test_a_shard_that_is_missing(folder):
    shard(folder)
    load(folder)
    (folder / "model-00002-of-00002.safetensors").unlink()
    refused(folder, "model-00002-of-00002.safetensors is missing")


def test_the_config_of_another_family(folder, family):
    """Names of tensors do not fit, and those that do not are not taken for something else."""
    other = "distilbert" if family != "distilbert" else "bert"
    change_config(folder, model_type=other)
    refused(folder, "missing")


def test_a_type_that_nobody_knows_lists_those_we_know(folder):
    change_config(folder, model_type="big_bird")
    refused(folder, "'big_bird' is not supported", *FAMILIES, "maskery")


def test_every_value_of_a_config(folder, family):
    """Whatever stands in config.json, a model comes or an error that says what to do."""
    whole = json.loads((folder / "config.json").read_text())
    usual = FAMILIES[family].shape_of(whole)
    for key in whole:
        for value in (*FOREIGN, ...):
            config = {**whole, key: value} if value is not ... else {k: v for k, v in whole.items() if k != key}
            shape = usual
            with suppress(CheckpointError):
                shape = FAMILIES[family].shape_of(config)
            if shape != usual:
                (folder / "config.json").write_text(json.dumps(config))
                survives(load, folder)


def test_layers_that_share_need_no_tensors_but_have_a_limit(tmp_path):
    model_of("masked_token", share="all", embedding=6, layers=60).save(tmp_path / "m")
    assert len(weights(tmp_path / "m")) < 60
    assert load(tmp_path / "m").config.layers == 60
    (tmp_path / "m/manifest.json").unlink()
    change_config(tmp_path / "m", num_hidden_layers=10**9)
    refused(tmp_path / "m", "1000000000 layers")


def test_albert_of_one_width_is_refused(tmp_path):
    make("AlbertModel", embedding_size=24).save_pretrained(tmp_path)
    refused(tmp_path, "embeddings that have the width of the layers")


def test_albert_with_inner_groups_is_refused(tmp_path):
    make("AlbertModel", inner_group_num=2).save_pretrained(tmp_path)
    refused(tmp_path, "inner_group_num = 2")


def test_electra_that_chooses_by_the_mean_is_refused(tmp_path):
    make("ElectraForMultipleChoice", summary_type="mean").save_pretrained(tmp_path)
    refused(tmp_path, "summary_type = 'mean'")


def test_electra_whose_generator_computes_otherwise_is_refused(tmp_path):
    make("ElectraForMaskedLM", hidden_act="relu").save_pretrained(tmp_path)
    refused(tmp_path, "relu", "masked token head")
    make("ElectraForPreTraining", hidden_act="relu").save_pretrained(tmp_path)
    assert load(tmp_path).config.activation == "relu"


def test_a_head_with_too_many_scores(tmp_path):
    make("BertForQuestionAnswering").save_pretrained(tmp_path)

    def widen(tensors):
        tensors["qa_outputs.weight"] = torch.zeros(3, 24)
        tensors["qa_outputs.bias"] = torch.zeros(3)

    change_weights(tmp_path, widen)
    refused(tmp_path, "qa_outputs.weight", "(3, 24)", "(2, 24)")


def test_what_config_says_beyond_the_network_is_kept(tmp_path):
    """The dropout of classifiers, which changes no number in use."""
    for name, key in (
        ("AlbertForSequenceClassification", "classifier_dropout_prob"),
        ("ElectraForSequenceClassification", "classifier_dropout"),
        ("DistilBertForSequenceClassification", "seq_classif_dropout"),
    ):
        make(name, **{key: 0.37}).save_pretrained(tmp_path / name)
        load(tmp_path / name).save(tmp_path / name / "again")
        assert json.loads((tmp_path / name / "again/config.json").read_text())[key] == 0.37


def test_scores_of_a_head_that_is_not_there_or_reads_otherwise():
    model = model_of("sequence_class", "sequence_class_relu", "span_boundary")
    row = torch.tensor([[2, 7, 8, 3]])
    assert model.scores("sequence_class_relu", row).shape == (1, 3)
    for head, words in (
        ("riddle", ("no head 'riddle'", "sequence_class_relu")),
        ("sequence_class", ("no pooler",)),
        ("span_boundary", ("reads more than rows", "model.heads")),
    ):
        with pytest.raises(InputError) as caught:
            model.scores(head, row)
        for word in words:
            assert word in caught.value.text()


def test_tasks_that_do_not_fit():
    model, plain = model_of(tasks=3), model_of()
    row = torch.tensor([[2, 7, 8, 3]])
    assert model(row, tasks=torch.full((1, 4), 2)).last.shape == (1, 4, 16)
    for used, tasks, word in (
        (plain, torch.zeros(1, 4, dtype=torch.long), "knows none"),
        (model, torch.full((1, 4), 3), "task 3 at row 0"),
        (model, torch.zeros(1, 3, dtype=torch.long), "tasks have the shape"),
        (model, torch.zeros(1, 4), "whole numbers"),
    ):
        with pytest.raises(InputError, match=word):
            used(row, tasks=tasks)


@pytest.fixture
def tokenizer_file(tmp_path):
    model_of("masked_token").save(tmp_path / "ours")
    return tmp_path / "ours/tokenizer.json"


def test_a_tokenizer_larger_than_the_embedding_is_refused(tokenizer_file, tmp_path):
    make("BertForMaskedLM", vocab_size=20).save_pretrained(tmp_path / "small")
    load(tmp_path / "small")
    shutil.copy(tokenizer_file, tmp_path / "small")
    refused(tmp_path / "small", "pieces", "20", "another model")


def test_a_tokenizer_smaller_than_the_embedding_is_usual(tokenizer_file, tmp_path):
    make("BertForMaskedLM", vocab_size=VOCABULARY + 7).save_pretrained(tmp_path / "wide")
    shutil.copy(tokenizer_file, tmp_path / "wide")
    assert load(tmp_path / "wide").tokenizer.vocabulary == VOCABULARY


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"positions": "nezha", "embedding": 8}, "nezha cannot express: embedding 8 differs from width 16"),
        ({"positions": "mpnet", "clip": 128, "segments": 0}, "mpnet cannot express: position_offset = 0"),
        ({"share": "attention", "embedding": 8}, "cannot express: share = 'attention'"),
        ({"decoder": 2, "segments": 0, "norm": "pre", "embedding_norm": "no"}, "bart cannot express: norm = 'pre'"),
    ],
    ids=str,
)
def test_the_nearest_family_gives_the_reason(tmp_path, capsys, changes, reason):
    """When it is saved, and whenever it is asked for."""
    model = model_of("masked_token", **changes)
    assert model.family == "maskery"
    assert any(reason in each for each in model.reasons)
    saved = model.save(tmp_path / "m")
    assert any(reason in note for note in saved.notes)
    assert main(["info", str(tmp_path / "m")]) == 0
    assert reason in " ".join(capsys.readouterr().out.split())


def test_a_type_of_hugging_face_needs_no_reason():
    assert model_of("masked_token").reasons == ()
