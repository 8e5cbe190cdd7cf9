"""A model as ONNX: fed by name, onnxruntime says the same; what cannot be written is refused; bench tells the truth."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from networks import model_of
from vector_models import TEXTS, made_of, quiet

from maskery.cli import main
from maskery.compress import onnx_encoder, ways
from maskery.compress.onnx_encoder import VECTORS, compared, input_names, onnx_of, session_of
from maskery.compress.onnx_graph import STATES
from maskery.compress.onnx_heads import write_onnx
from maskery.errors import InputError
from maskery.vectors.encoder import Encoder
from maskery.vectors.model import VectorModel
from maskery.vectors.settings import VectorsConfig
from maskery.vectors.steps import Dense, Normalize


def drawn(module, seed=0):
    torch.manual_seed(seed)
    for each in module.parameters():
        torch.nn.init.normal_(each, std=0.3)
    return module


def of_shape(**shape):
    return VectorModel(model_of(pooler=True, **shape), VectorsConfig(pool=("mean",), length=20))


@pytest.mark.parametrize(
    "shape",
    [
        {}, {"norm": "pre", "activation": "gelu_tanh"}, {"share": "all", "layers": 3}, {"embedding": 8},
        {"segments": 0, "position_offset": 2}, {"positions": "sinusoidal", "embedding_scale": True},
        {"positions": "none", "activation": "relu", "attention_bias": False}, {"tasks": 3},
    ],
    ids=str,
)  # fmt: skip
def test_every_shape_that_reads_in_full_says_the_same(shape):
    made = of_shape(**shape)
    assert compared(onnx_of(made, pools=True), made, input_names(made), pools=True) < 1e-5


@pytest.mark.parametrize(
    "pool", ["first", "pooler", "mean", "sqrt_mean", "weighted", "max", "last", "first_last", "last_two"]
)
def test_every_pooling_says_the_same(pool):
    made = made_of(pool, steps=[drawn(Dense(16, 5)), Normalize()]) if pool == "mean" else made_of(pool)
    if pool == "mean":
        assert made.dimensions == 5
    assert compared(onnx_of(made, pools=True), made, input_names(made), pools=True) < 1e-5


def test_two_poolings_lie_side_by_side():
    made = made_of("mean", "max")
    session = session_of(onnx_of(made, pools=True))
    rows = dict.fromkeys(input_names(made), np.ones((2, 6), dtype=np.int64))
    states, vectors = session.run([STATES, VECTORS], rows)
    assert vectors.shape == (2, made.dimensions)
    assert vectors[0] == pytest.approx(np.concatenate([states[0].mean(0), states[0].max(0)]), abs=1e-5)


def test_a_wrong_file_is_found(monkeypatch):
    made = made_of()
    data = onnx_of(made, pools=True)
    with torch.no_grad():
        made.model.network.blocks[0].attention.inputs[2].mul_(1.1)
    with pytest.raises(InputError, match="differs from the model by"):
        compared(data, made, input_names(made), pools=True)


@pytest.mark.parametrize(
    ("shape", "reason"),
    [({"positions": "nezha"}, "positions nezha act inside"), ({"visibility": "causal"}, "visibility causal")],
)
def test_what_cannot_be_said_is_refused(shape, reason):
    with pytest.raises(InputError, match=reason):
        onnx_of(of_shape(**shape), pools=True)


def test_a_learned_attention_is_refused():
    with pytest.raises(InputError, match="pooling by attention"):
        onnx_of(made_of("attention"), pools=True)


@pytest.fixture(scope="module")
def folder(tmp_path_factory, no_waiting_for_the_disk):
    place = tmp_path_factory.mktemp("onnx")
    Encoder(made_of(), say=quiet).save(place / "encoder")
    model_of(pooler=True).save(place / "model")
    return place


def test_export_writes_and_compares(folder, tmp_path, capsys):
    target = tmp_path / "m.onnx"
    assert main(["export", str(folder / "encoder"), "--out", str(target), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["inputs"] == ["input_ids", "attention_mask", "token_type_ids"]
    assert told["outputs"] == ["last_hidden_state", "sentence_embedding"]
    assert told["difference"] < 1e-5
    before = target.read_bytes()
    assert main(["export", str(folder / "encoder"), "--out", str(target)]) == 2
    assert "already there" in capsys.readouterr().err
    assert target.read_bytes() == before
    assert main(["export", str(folder / "encoder"), "--out", str(tmp_path / "n.onnx"), "--family", "bert"]) == 2
    assert not (tmp_path / "n.onnx").exists()


def test_a_model_without_a_pooling_has_states_alone(folder, tmp_path):
    found = write_onnx(folder / "model", tmp_path / "m.onnx", say=quiet)
    assert found.outputs == ("last_hidden_state",)
    assert [each.name for each in session_of((tmp_path / "m.onnx").read_bytes()).get_outputs()] == [STATES]


def test_without_onnxruntime_the_file_is_written_and_that_is_told(folder, tmp_path, monkeypatch):
    told = []
    monkeypatch.setattr(onnx_encoder, "find_spec", lambda name: None)
    found = write_onnx(folder / "encoder", tmp_path / "m.onnx", say=told.append)
    assert found.difference is None
    assert 'pip install "maskery[onnx]"' in told[-1]


def test_bench_measures_every_way(folder, tmp_path, capsys):
    (tmp_path / "texts.txt").write_text("\n".join(text for text in TEXTS if text), encoding="utf-8")
    flags = ["--text", str(tmp_path / "texts.txt"), "--rounds", "1", "--json"]
    assert main(["bench", str(folder / "encoder"), *flags]) == 0
    told = json.loads(capsys.readouterr().out)
    found = {each["way"]: each for each in told["ways"]}
    assert set(found) == set(ways.WAYS)
    assert told["texts"] == len([text for text in TEXTS if text])
    for name in ("plain", "float32", "onnxruntime"):
        assert found[name]["least_cosine"] == pytest.approx(1, abs=1e-5)
        assert found[name]["seconds"] > 0
    assert found["onnxruntime int8"]["least_cosine"] > 0.9
    assert told["said"][-1].startswith("why: products")


def test_bench_says_what_cannot_be_had(tmp_path, capsys, no_waiting_for_the_disk):
    Encoder(of_shape(positions="nezha"), say=quiet).save(tmp_path / "nezha")
    assert main(["bench", str(tmp_path / "nezha"), "--texts", "4", "--rounds", "1"]) == 0
    output = capsys.readouterr().out
    assert "onnxruntime: this model cannot be written as ONNX: positions nezha act inside of attention" in output
    assert "quickest" in output
    empty = tmp_path / "empty.txt"
    empty.write_text("")
    assert main(["bench", str(tmp_path / "nezha"), "--text", str(empty)]) == 2
    assert "the file is empty" in capsys.readouterr().err
