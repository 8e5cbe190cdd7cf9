"""`maskery import` and `maskery export` as commands: what they print, what they write, what they refuse."""

from __future__ import annotations

import json
import shutil

import pytest
import tf_writer
import torch
import transformers
from networks import model_of
from oracle import make, same_bits, weights
from small_task import family_model, quiet, task_model

from maskery.checkpoint.load import load
from maskery.cli import main

SIZES = ["hidden_size", "num_attention_heads", "num_hidden_layers", "intermediate_size", "vocab_size", "hidden_act"]


@pytest.fixture(scope="module")
def google(tmp_path_factory):
    folder = tmp_path_factory.mktemp("published") / "uncased_L-1"
    theirs = make("BertForPreTraining", num_hidden_layers=1)
    variables = {**tf_writer.with_optimizer(tf_writer.as_google(theirs)), "extra": torch.zeros(1)}
    tf_writer.write_checkpoint(folder / "bert_model.ckpt", variables)
    tf_writer.write_vocabulary(folder / "vocab.txt", 60)
    tf_writer.write_config(folder / "bert_config.json", theirs.config, SIZES)
    return folder


def run(capsys, *arguments, code=0):
    assert main([*map(str, arguments)]) == code
    return capsys.readouterr()


def test_a_folder_of_google(capsys, tmp_path, google):
    facts = json.loads(run(capsys, "import", google, "--out", tmp_path / "out", "--json").out)
    assert facts["family"] == "bert"
    assert facts["format"] == "TensorFlow, 1 data file"
    assert facts["tensors"] == {"used": 30, "unused": ["extra"], "skipped": 61}
    assert facts["heads"] == ["masked_token", "next_sentence"]
    assert facts["parameters"]["total"] == load(tmp_path / "out").parameters_by_part()["total"]
    assert facts["tokenizer"] == {"kind": "WordPiece", "vocabulary": 60}
    told = json.loads(run(capsys, "info", tmp_path / "out", "--json").out)
    assert told["parameters"] == facts["parameters"]


def test_the_table_and_the_folder_that_is_chosen(capsys, tmp_path, google):
    folder = shutil.copytree(google, tmp_path / "uncased_L-1")
    found = " ".join(run(capsys, "import", folder).out.split())
    assert "tensors used 30 " in found
    assert "unused tensors 1: extra" in found
    assert "skipped 61 variables of the optimiser" in found
    assert f"written {tmp_path / 'uncased_L-1-maskery'}" in found
    again = run(capsys, "import", folder, code=2)
    assert "something is there already" in again.err
    assert "--out" in again.err


def test_the_case_must_be_one_of_two(capsys, tmp_path, google):
    told = run(capsys, "import", google, "--out", tmp_path / "out", "--case", "uncase", code=2).err
    assert "did you mean uncased" in told


def test_damage_is_told_with_cause_place_and_repair(capsys, tmp_path, google):
    folder = shutil.copytree(google, tmp_path / "damaged")
    tf_writer.flip(folder / "bert_model.ckpt.index", 30)
    told = run(capsys, "import", folder, "--out", tmp_path / "out", code=2).err
    assert f"{folder / 'bert_model.ckpt.index'}: wrong checksum of the block at bytes 0 to" in told
    assert "repair: the file is damaged" in told
    assert not (tmp_path / "out").exists()


def test_a_pickle_of_hugging_face(capsys, tmp_path):
    theirs = make("BertForMaskedLM")
    theirs.config.save_pretrained(tmp_path / "theirs")
    torch.save(theirs.state_dict(), tmp_path / "theirs" / "pytorch_model.bin")
    arguments = ["import", tmp_path / "theirs", "--out", tmp_path / "out"]
    assert "--allow-pickle" in run(capsys, *arguments, code=2).err
    facts = json.loads(run(capsys, *arguments, "--allow-pickle", "--json").out)
    assert facts["format"] == "Hugging Face, pytorch_model.bin"
    assert facts["tensors"]["unused"] == []
    assert facts["tensors"]["used"] == len(theirs.state_dict())
    again = transformers.BertForMaskedLM.from_pretrained(tmp_path / "out")
    assert same_bits(theirs.state_dict(), again.state_dict())


def test_export_writes_what_hugging_face_opens(capsys, tmp_path):
    model = model_of("masked_token")
    model.save(tmp_path / "model")
    facts = json.loads(run(capsys, "export", tmp_path / "model", "--out", tmp_path / "out", "--json").out)
    assert facts["family"] == "bert"
    assert set(facts["files"]) <= {path.name for path in (tmp_path / "out").iterdir()}
    assert same_bits(weights(tmp_path / "model"), weights(tmp_path / "out"))
    transformers.AutoModel.from_pretrained(tmp_path / "out")
    assert (
        "something is there already" in run(capsys, "export", tmp_path / "model", "--out", tmp_path / "out", code=2).err
    )


def test_export_refuses_to_lose_the_head_of_a_task(capsys, tmp_path):
    family_model(tmp_path / "base", "bert")
    task_model(load(tmp_path / "base"), "classify", read={"pool": "mean"}).save(tmp_path / "run", quiet)
    arguments = ["export", tmp_path / "run", "--out", tmp_path / "out"]
    told = run(capsys, *arguments, code=2).err
    assert "the head of the task is in task.safetensors" in told
    assert "--out NAME.onnx writes the model with its head" in told
    assert not (tmp_path / "out").exists()
    run(capsys, *arguments, "--head", "none")
    assert same_bits(weights(tmp_path / "run"), weights(tmp_path / "out"))
    task_model(load(tmp_path / "base"), "tag", head={"crf": True}).save(tmp_path / "crf", quiet)
    assert "task.safetensors" in run(capsys, "export", tmp_path / "crf", "--out", tmp_path / "no", code=2).err
    model_of("masked_token").save(tmp_path / "masked")
    run(capsys, "export", tmp_path / "masked", "--out", tmp_path / "encoder", "--head", "none")
    assert not load(tmp_path / "encoder").heads
    assert "--head chooses" in run(capsys, *arguments, "--head", "masked_token", code=2).err
    task_model(load(tmp_path / "base"), "classify").save(tmp_path / "own", quiet)
    run(capsys, "export", tmp_path / "own", "--out", tmp_path / "whole")
    transformers.AutoModelForSequenceClassification.from_pretrained(tmp_path / "whole")


def test_export_refuses_what_a_family_cannot_hold(capsys, tmp_path):
    model_of("masked_token").save(tmp_path / "plain")
    arguments = ["export", tmp_path / "plain", "--out", tmp_path / "out"]
    told = run(capsys, *arguments, "--family", "albert", code=2).err
    assert "albert cannot express this model: share = 'none'" in told
    assert "leave out --family: bert can" in told
    assert "did you mean bert" in run(capsys, *arguments, "--family", "bertt", code=2).err
    model_of("masked_token", norm="pre").save(tmp_path / "own")
    told = run(capsys, "export", tmp_path / "own", "--out", tmp_path / "out", code=2).err
    assert "no family of Hugging Face can express this model" in told
    assert "norm = 'pre'" in told
    assert not (tmp_path / "out").exists()


def test_a_folder_of_tensorflow_is_read_where_it_lies_too(capsys, tmp_path, google):
    run(capsys, "import", google, "--out", tmp_path / "out")
    told, imported = (json.loads(run(capsys, "info", each, "--json").out) for each in (google, tmp_path / "out"))
    assert told["family"] == "bert"
    assert told["parameters"] == imported["parameters"]
    said = " ".join(run(capsys, "info", google).out.split())
    assert "read from the TensorFlow checkpoint" in said


def test_a_folder_of_two_checkpoints_given_elsewhere_leads_here(capsys, tmp_path, google):
    folder = shutil.copytree(google, tmp_path / "two")
    for each in google.glob("bert_model.ckpt.*"):
        shutil.copy(each, folder / each.name.replace("bert_model", "older"))
    told = run(capsys, "info", folder, code=2).err
    assert "2 checkpoints are here" in told
    assert "maskery import" in told
