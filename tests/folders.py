"""Changing a model folder as others might have written it, and what a refusal must say."""

from __future__ import annotations

import json

import pytest
from oracle import weights
from safetensors.torch import save_file

from maskery.checkpoint.folder import state_of
from maskery.checkpoint.load import load
from maskery.errors import CheckpointError


def change_config(folder, **changes):
    path = folder / "config.json"
    config = json.loads(path.read_text()) | changes
    path.write_text(json.dumps({key: value for key, value in config.items() if value is not ...}))


def change_weights(folder, change):
    tensors = weights(folder)
    change(tensors)
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})


def refused(path, *words, **options):
    with pytest.raises(CheckpointError) as caught:
        load(path, **options)
    error = caught.value
    assert error.repair
    assert error.where
    for word in words:
        assert word in error.text(), error.text()
    return error


def state(model):
    return state_of(model.network, model.heads)


def shard(folder):
    tensors = weights(folder)
    names = sorted(tensors)
    files = {"model-00001-of-00002.safetensors": names[::2], "model-00002-of-00002.safetensors": names[1::2]}
    for file, part in files.items():
        save_file({name: tensors[name] for name in part}, folder / file, {"format": "pt"})
    index = {"metadata": {}, "weight_map": {name: file for file, part in files.items() for name in part}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    (folder / "model.safetensors").unlink()
    return index
