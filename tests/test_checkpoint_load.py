"""Folders that are old, in pieces, unfinished, foreign, damaged or hostile."""

from __future__ import annotations

import json
import os
import pickle
import shutil

import pytest
import torch
from folders import change_config, change_weights, refused, shard, state
from networks import model_of
from oracle import make, same_bits, weights
from safetensors.torch import load_file, save_file

from maskery.checkpoint.load import load
from maskery.errors import InputError


@pytest.fixture
def folder(tmp_path):
    """A whole folder of ours, with a manifest."""
    model_of("masked_token", "next_sentence", pooler=True).save(tmp_path / "m")
    return tmp_path / "m"


@pytest.fixture
def loose(folder):
    """The same without a manifest, as others write it, to be changed."""
    (folder / "manifest.json").unlink()
    return folder


# Damage


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "tokenizer.json"])
def test_a_flipped_byte_is_found_and_the_file_named(folder, name):
    data = bytearray((folder / name).read_bytes())
    data[len(data) // 2] ^= 1
    (folder / name).write_bytes(data)
    refused(folder, name, "checksum", "manifest.json")


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
def test_a_file_cut_short_is_found_and_named(folder, name):
    data = (folder / name).read_bytes()
    (folder / name).write_bytes(data[:-7])
    refused(folder, name, f"{len(data) - 7} bytes")


def test_a_file_that_went_missing_is_named(folder):
    (folder / "model.safetensors").unlink()
    refused(folder, "model.safetensors is missing")


@pytest.mark.parametrize("text", ["[]", "{", '{"files": 3}', '{"files": {"../x": {"bytes": 1, "sha256": "a"}}}'])
def test_a_manifest_that_is_none(folder, text):
    (folder / "manifest.json").write_text(text)
    refused(folder, "manifest.json")


@pytest.mark.parametrize("cut", [0, 4, 200, -7])
def test_weights_cut_short_without_a_manifest(loose, cut):
    path = loose / "model.safetensors"
    path.write_bytes(path.read_bytes()[:cut])
    refused(loose, "model.safetensors")


@pytest.mark.parametrize("data", [b"", b"{", b"[1]", b"\xff\xfe{}", b"[" * 100_000])
def test_a_config_that_is_no_json(loose, data):
    (loose / "config.json").write_bytes(data)
    refused(loose, "config.json")


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_weights_that_are_no_numbers(loose, value):
    def spoil(tensors):
        tensors["bert.encoder.layer.1.output.dense.weight"][3, 4] = value

    change_weights(loose, spoil)
    refused(loose, "layers.1.down.weight", "1 of the")


# Config and weights that do not fit


def test_a_missing_tensor_of_the_encoder(loose):
    change_weights(loose, lambda tensors: tensors.pop("bert.encoder.layer.1.attention.self.key.bias"))
    refused(loose, "layers.1.attention.inputs_bias", "missing")


@pytest.mark.parametrize(
    ("key", "value", "word"),
    [
        ("hidden_size", 32, "embeddings.tokens"),
        ("vocab_size", 99, "embeddings.tokens"),
        ("max_position_embeddings", 10, "embeddings.positions.table"),
        ("intermediate_size", 10, "up.weight"),
        ("num_hidden_layers", 3, "layers.2"),
        ("num_hidden_layers", 10**9, "1000000000 layers"),
        ("hidden_size", 10**9, "larger than memory"),
        ("vocab_size", 10**15, "embeddings.tokens"),
        ("hidden_size", "16", "hidden_size"),
        ("hidden_act", "mish", "hidden_act"),
    ],
)
def test_a_config_of_another_model(loose, key, value, word):
    change_config(loose, **{key: value})
    refused(loose, word)


def test_fewer_layers_than_the_file_holds_are_reported(loose):
    change_config(loose, num_hidden_layers=1)
    model = load(loose)
    assert model.config.layers == 1
    assert len(model.report.unused) == 16
    assert all(name.startswith("bert.encoder.layer.1.") for name in model.report.unused)


def test_unused_and_missing_tensors_are_reported(loose):
    def spoil(tensors):
        tensors["riddle.weight"] = torch.zeros(2, 16)
        del tensors["cls.predictions.bias"]

    change_weights(loose, spoil)
    model = load(loose)
    assert set(model.heads) == {"next_sentence"}
    assert "riddle.weight" in model.report.unused
    assert model.report.missing == ("cls.predictions.bias",)


def test_a_missing_tensor_that_no_class_names_is_told_by_our_name(loose):
    change_config(loose, architectures=["BertModel"])
    change_weights(loose, lambda tensors: tensors.pop("cls.predictions.bias"))
    model = load(loose)
    assert set(model.heads) == {"next_sentence"}
    assert model.report.missing == ("heads.masked_token.bias",)
    assert model.report.lines()[0] == "missing tensors: 1: heads.masked_token.bias"


def test_a_classifier_without_its_class_is_unused(tmp_path):
    make("BertForSequenceClassification").save_pretrained(tmp_path)
    change_config(tmp_path, architectures=["BertForSomethingElse"])
    model = load(tmp_path)
    assert model.heads == {}
    assert model.report.unused == ("classifier.bias", "classifier.weight")


def test_an_output_matrix_of_its_own_is_refused(loose):
    def untie(tensors):
        tensors["cls.predictions.decoder.weight"] = tensors["bert.embeddings.word_embeddings.weight"] + 1

    change_weights(loose, untie)
    refused(loose, "cls.predictions.decoder.weight", "tie_word_embeddings")


def test_quantised_weights_are_refused(loose):
    def quantise(tensors):
        name = "bert.pooler.dense.weight"
        tensors[name] = tensors[name].to(torch.int8)

    change_weights(loose, quantise)
    refused(loose, "pooler.dense.weight", "int8")


def test_query_of_another_size(loose):
    def cut(tensors):
        name = "bert.encoder.layer.0.attention.self.query.weight"
        tensors[name] = tensors[name][:8].clone()

    change_weights(loose, cut)
    refused(loose, "query, key and value")


def test_roberta_with_a_head_it_computes_differently(tmp_path):
    make("RobertaForMaskedLM", hidden_act="relu").save_pretrained(tmp_path)
    refused(tmp_path, "relu", "masked token head")


def test_float64_is_rounded_and_told(loose):
    def widen(tensors):
        tensors["bert.pooler.dense.weight"] = tensors["bert.pooler.dense.weight"].double()

    change_weights(loose, widen)
    assert any("float64" in note for note in load(loose).report.notes)


# Names and pieces


@pytest.mark.parametrize("prefix", ["bert.", ""])
def test_names_with_and_without_prefix(loose, prefix):
    before = state(load(loose))
    renamed = {prefix + name.removeprefix("bert."): each for name, each in weights(loose).items()}
    renamed = {name.removeprefix(prefix) if "cls." in name else name: each for name, each in renamed.items()}
    save_file(renamed, loose / "model.safetensors", {"format": "pt"})
    after = load(loose)
    assert same_bits(before, state(after))
    assert (after.report.missing, after.report.unused) == ((), ())


def test_old_names_of_norms(loose):
    before = state(load(loose))
    old = {
        name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): each
        for name, each in weights(loose).items()
    }
    assert sum("gamma" in name for name in old) == 6
    save_file(old, loose / "model.safetensors", {"format": "pt"})
    after = load(loose)
    assert same_bits(before, state(after))
    assert any("gamma" in note for note in after.report.notes)


def test_weights_in_shards(loose):
    before = state(load(loose))
    shard(loose)
    assert same_bits(before, state(load(loose)))


@pytest.mark.parametrize("name", ["../outside.safetensors", "/etc/passwd", "..", 3])
def test_shards_outside_the_folder(loose, name):
    index = shard(loose)
    index["weight_map"]["bert.pooler.dense.bias"] = name
    (loose / "model.safetensors.index.json").write_text(json.dumps(index))
    refused(loose, "outside the folder")


def test_a_missing_shard_and_a_lying_index(loose):
    index = shard(loose)
    index["weight_map"]["not.there"] = "model-00001-of-00002.safetensors"
    (loose / "model.safetensors.index.json").write_text(json.dumps(index))
    refused(loose, "not.there")
    (loose / "model-00001-of-00002.safetensors").unlink()
    refused(loose, "model-00001-of-00002.safetensors is missing")


# Pickles and code


def test_a_pickle_only_on_request(loose):
    before = state(load(loose))
    torch.save(weights(loose), loose / "pytorch_model.bin")
    (loose / "model.safetensors").unlink()
    refused(loose, "--allow-pickle")
    assert same_bits(before, state(load(loose, allow_pickle=True)))


class Bomb:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize("write", [torch.save, lambda value, path: path.write_bytes(pickle.dumps(value))])
def test_a_pickle_that_would_run_code_does_not_run_it(loose, tmp_path, write):
    write({"weight": Bomb(tmp_path / "run")}, loose / "pytorch_model.bin")
    (loose / "model.safetensors").unlink()
    refused(loose, "nothing in it was run", allow_pickle=True)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("value", [[1, 2], {"a": 1}, {1: torch.zeros(2)}])
def test_a_pickle_without_named_tensors(loose, value):
    torch.save(value, loose / "pytorch_model.bin")
    (loose / "model.safetensors").unlink()
    refused(loose, "not a table of named tensors", allow_pickle=True)


def test_code_named_by_data_is_refused(loose):
    change_config(loose, auto_map={"AutoModel": "modeling_x.Model"})
    refused(loose, "auto_map", "no code")


@pytest.mark.parametrize("kind", ["t5", None, ["bert"], ...])
def test_an_unknown_type_lists_the_known(loose, kind):
    change_config(loose, model_type=kind)
    refused(loose, "bert", "roberta", "albert", "electra", "distilbert", "nezha", "ernie", "maskery")


def test_our_own_config_from_another_version(tmp_path):
    model_of("masked_token", norm="pre").save(tmp_path / "m")
    (tmp_path / "m/manifest.json").unlink()
    for shape in (None, {}, {"layers": 2, "new_field": 1}):
        change_config(tmp_path / "m", shape=shape)
        refused(tmp_path / "m", "shape", "version")


def test_an_unknown_head_of_our_own_type_is_unused(tmp_path):
    model_of("masked_token", norm="pre").save(tmp_path / "m")
    (tmp_path / "m/manifest.json").unlink()
    change_weights(tmp_path / "m", lambda tensors: tensors.update({"heads.riddle.weight": torch.zeros(2)}))
    model = load(tmp_path / "m")
    assert set(model.heads) == {"masked_token"}
    assert model.report.unused == ("heads.riddle.weight",)


# Places


def test_paths_that_are_no_model(tmp_path):
    refused(tmp_path / "nowhere", "no such folder")
    refused(tmp_path, "no config.json")
    (tmp_path / "file.txt").write_text("x")
    refused(tmp_path / "file.txt", "is a file")
    (tmp_path / "config.json").write_text('{"model_type": "bert"}')
    refused(tmp_path, "no weights")


def test_a_folder_without_a_tokenizer(tmp_path):
    make("BertForMaskedLM").save_pretrained(tmp_path)
    assert load(tmp_path).tokenizer is None


def test_a_broken_tokenizer_is_the_users_to_repair(loose):
    (loose / "tokenizer.json").write_text("{}")
    with pytest.raises(InputError, match=r"tokenizer\.json"):
        load(loose)


def test_a_run_gives_its_final_model_or_else_its_newest_checkpoint(tmp_path):
    run = tmp_path / "run"
    (run / "checkpoints").mkdir(parents=True)
    (run / "recipe.toml").write_text("")
    refused(run, "has not saved a model yet", "--resume")
    models = {step: model_of("masked_token", seed=step) for step in (9, 100)}
    for step, model in models.items():
        model.save(run / f"checkpoints/step-{step}")
    shutil.copytree(run / "checkpoints/step-9", run / "checkpoints/step-200")
    (run / "checkpoints/step-200/manifest.json").unlink()  # still being written
    shutil.copy(run / "checkpoints/step-9/config.json", run)
    found = load(run)
    assert "step-100" in found.note
    assert same_bits(state(found), state(models[100]))
    final = model_of("masked_token", seed=1)
    final.save(run, replace=True)
    found = load(run)
    assert found.note == ""
    assert same_bits(state(found), state(final))
    assert (run / "recipe.toml").is_file()


def test_heads_file_with_foreign_names(tmp_path):
    model_of("masked_token", pooler=True).save(tmp_path / "m")
    (tmp_path / "m/manifest.json").unlink()
    extra = load_file(tmp_path / "m/heads.safetensors") | {"layers.0.up.weight": torch.zeros(2)}
    save_file(extra, tmp_path / "m/heads.safetensors", {"format": "pt"})
    model = load(tmp_path / "m")
    assert model.report.unused == ("layers.0.up.weight",)
    assert model.network.pooler is not None


def test_errors_name_tensors_as_the_file_does(tmp_path):
    model_of("masked_token").save(tmp_path / "m")
    name = "bert.encoder.layer.1.intermediate.dense.weight"

    def with_tensors(folder, change):
        shutil.copytree(tmp_path / "m", folder, ignore=shutil.ignore_patterns("manifest.json"))
        change_weights(folder, change)
        return folder

    def shorter(tensors):
        tensors[name] = tensors[name][:-1].clone()

    def broken(tensors):
        tensors[name][0, 0] = float("nan")

    refused(with_tensors(tmp_path / "short", shorter), f"{name} has the size (63, 16)")
    refused(with_tensors(tmp_path / "nan", broken), f"of the 1024 weights of {name} are not finite")
    refused(with_tensors(tmp_path / "gone", lambda tensors: tensors.pop(name)), name.removeprefix("bert."))
