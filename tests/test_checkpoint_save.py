"""What is written: the class that fits, the rest beside it, equal bytes for equal weights, whole or not at all."""

from __future__ import annotations

import json

import pytest
import torch
import transformers
from networks import model_of, network_of, shape_of, tokenizer
from oracle import same_bits, weights
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from maskery import files
from maskery.checkpoint import folder as folder_module
from maskery.checkpoint.folder import save_into, state_of, write_model
from maskery.checkpoint.load import load
from maskery.checkpoint.locate import write_manifest
from maskery.errors import ExistsError

BOTH = ("masked_token", "next_sentence")


def config_of(folder):
    return json.loads((folder / "config.json").read_text())


def assert_same_model(left, right):
    assert left.config == right.config
    assert set(left.heads) == set(right.heads)
    assert same_bits(state_of(left.network, left.heads), state_of(right.network, right.heads))


@pytest.mark.parametrize(
    ("heads", "pooler", "expected", "rest"),
    [
        (BOTH, True, "BertForPreTraining", set()),
        (("masked_token",), False, "BertForMaskedLM", set()),
        (("masked_token",), True, "BertForMaskedLM", {"pooler.weight", "pooler.bias"}),
        (("sequence_class",), True, "BertForSequenceClassification", set()),
        (("token_class",), False, "BertForTokenClassification", set()),
        ((), True, "BertModel", set()),
        (("next_sentence",), True, "BertForNextSentencePrediction", set()),
        (("choice",), True, "BertForMultipleChoice", set()),
        (("answer_span",), False, "BertForQuestionAnswering", set()),
        (("three_way",), True, "BertModel", {"heads.three_way.dense.weight", "heads.three_way.dense.bias"}),
        (
            ("masked_token", "token_class"),
            False,
            "BertForMaskedLM",
            {"heads.token_class.dense.weight", "heads.token_class.dense.bias"},
        ),
    ],
)
def test_the_class_that_fits_and_the_rest_beside_it(tmp_path, heads, pooler, expected, rest):
    model = model_of(*heads, pooler=pooler)
    saved = model.save(tmp_path / "m")
    assert saved.family == "bert"
    assert config_of(tmp_path / "m")["architectures"] == [expected]
    written = set(load_file(tmp_path / "m/heads.safetensors")) if rest else set()
    assert written == rest
    assert any("heads.safetensors" in note for note in saved.notes) == bool(rest)
    again = load(tmp_path / "m")
    assert_same_model(model, again)
    assert (again.report.missing, again.report.unused) == ((), ())
    theirs, told = getattr(transformers, expected).from_pretrained(tmp_path / "m", output_loading_info=True)
    assert not told["missing_keys"]
    assert not told["unexpected_keys"]
    assert theirs.config.pad_token_id == 0


@pytest.mark.parametrize(("heads", "changes"), [((), {}), (("replaced_token",), {"positions": "nezha"})])
def test_that_there_is_no_pooler_is_written_down(tmp_path, heads, changes):
    """As for the bare class of a family whose class has one; nothing is missing in what is so on purpose."""
    saved = model_of(*heads, **changes).save(tmp_path / "m")
    assert any("Model.from_pretrained(DIR, add_pooling_layer=False) opens it" in note for note in saved.notes)
    config = config_of(tmp_path / "m")
    assert config["has_pooler"] is False
    model = load(tmp_path / "m")
    assert (model.report.missing, model.network.pooler) == ((), None)
    again = model.save(tmp_path / "again")
    assert config_of(tmp_path / "again") == config, again.notes
    if not heads:
        opened = transformers.AutoModel.from_pretrained
        _, told = opened(tmp_path / "m", add_pooling_layer=False, output_loading_info=True)
        assert not told["missing_keys"]
        _, told = opened(tmp_path / "m", output_loading_info=True)
        assert set(told["missing_keys"]) == {"pooler.dense.weight", "pooler.dense.bias"}


def test_a_pooler_that_is_lost_is_told(tmp_path):
    model_of(pooler=True).save(tmp_path / "m")
    weights = tmp_path / "m" / "model.safetensors"
    save_file({name: each for name, each in load_file(weights).items() if "pooler" not in name}, weights)
    (tmp_path / "m" / files.MANIFEST).unlink()
    assert load(tmp_path / "m").report.missing == ("pooler.dense.weight", "pooler.dense.bias")


def test_transformers_opens_model_and_tokenizer(tmp_path):
    model = model_of("masked_token", position_offset=0)
    model.save(tmp_path / "m")
    theirs = transformers.AutoModelForMaskedLM.from_pretrained(tmp_path / "m").eval()
    their_tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "m")
    assert their_tokenizer.model_max_length == 24
    encoded = their_tokenizer("the cat [MASK] on 北京", return_tensors="pt")
    ids, _ = model.tokenizer.encode("the cat [MASK] on 北京")
    assert encoded["input_ids"][0].tolist() == ids
    with torch.no_grad():
        torch.testing.assert_close(model.logits(torch.tensor([ids])), theirs(**encoded).logits, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"share": "attention"}, "share"),
        ({"positions": "sinusoidal"}, "positions"),
        ({"norm": "pre"}, "norm"),
        ({"segments": 0, "eps": 1e-3}, "segments"),
        ({"visibility": "causal"}, "gpt2 cannot express: norm = 'post'"),
        ({"visibility": "packed"}, "visibility"),
    ],
    ids=str,
)
def test_what_hugging_face_cannot_express_is_of_our_own_type_and_says_so(tmp_path, changes, reason):
    heads = ("next_token",) if changes.get("visibility") == "causal" else BOTH
    model = model_of(*heads, pooler=True, **changes)
    saved = model.save(tmp_path / "m")
    assert saved.family == model.family == "maskery"
    assert len(saved.notes) == 1
    assert "cannot open" in saved.notes[0]
    assert reason in saved.notes[0]
    again = load(tmp_path / "m")
    assert again.family == "maskery"
    assert_same_model(model, again)
    ids = torch.tensor([[2, 7, 8, 3]])
    with torch.no_grad():
        assert torch.equal(model.logits(ids), again.logits(ids))


def test_the_same_weights_give_the_same_bytes(tmp_path):
    model = model_of(*BOTH, "token_class", pooler=True)
    names = model.save(tmp_path / "a").files
    load(tmp_path / "a").save(tmp_path / "b")
    for name in ("model.safetensors", "heads.safetensors", *names):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes(), name
    with safe_open(tmp_path / "a/model.safetensors", "pt") as file:
        assert file.metadata() == {"format": "pt"}


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_the_original_dtype_is_kept(tmp_path, dtype):
    model_of("masked_token", pooler=True).save(tmp_path / "a")
    for name in ("model.safetensors", "heads.safetensors"):
        halves = {each: tensor.to(dtype) for each, tensor in load_file(tmp_path / "a" / name).items()}
        halves.pop("embeddings.position_ids", None)
        if name == "model.safetensors":
            kept = "bert.encoder.layer.0.attention.self.key.weight"
            halves[kept] = halves[kept].to(torch.float32)
        save_file(halves, tmp_path / "a" / name, {"format": "pt"})
    (tmp_path / "a/manifest.json").unlink()
    model = load(tmp_path / "a")
    assert {each.dtype for each in model.parameters()} == {torch.float32}
    model.save(tmp_path / "b")
    assert same_bits(weights(tmp_path / "a"), weights(tmp_path / "b"))
    assert same_bits(load_file(tmp_path / "a/heads.safetensors"), load_file(tmp_path / "b/heads.safetensors"))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_weights_that_changed_since_are_not_rounded(tmp_path, dtype):
    name = str(dtype).removeprefix("torch.")
    model_of("masked_token").save(tmp_path / "a")
    save_file({key: each.to(dtype) for key, each in weights(tmp_path / "a").items()}, tmp_path / "a/model.safetensors")
    config = config_of(tmp_path / "a") | {"dtype": name}
    (tmp_path / "a/config.json").write_text(json.dumps(config))
    (tmp_path / "a/manifest.json").unlink()
    model = load(tmp_path / "a")
    with torch.no_grad():
        model.network.embeddings.norm.weight.fill_(0.5)  # fits
        model.network.embeddings.norm.bias.fill_(1 + 2**-20)
    saved = model.save(tmp_path / "b")
    assert any(f"1 tensor was loaded from {name} and changed since" in note for note in saved.notes)
    written = weights(tmp_path / "b")
    wide = [key for key, each in written.items() if each.dtype == torch.float32]
    assert wide == ["bert.embeddings.LayerNorm.bias"]
    assert torch.equal(written[wide[0]], model.network.embeddings.norm.bias.detach())
    assert config_of(tmp_path / "b")["dtype"] == "float32"
    assert_same_model(load(tmp_path / "b"), model)


def test_tied_copies_buffers_and_unknown_keys_are_written_back(tmp_path):
    model_of("masked_token").save(tmp_path / "a")
    tensors = weights(tmp_path / "a")
    tensors["cls.predictions.decoder.weight"] = tensors["bert.embeddings.word_embeddings.weight"].clone()
    tensors["cls.predictions.decoder.bias"] = tensors["cls.predictions.bias"].clone()
    tensors["bert.embeddings.position_ids"] = torch.arange(24).view(1, -1)
    save_file(tensors, tmp_path / "a/model.safetensors", {"format": "pt"})
    config = config_of(tmp_path / "a") | {"our_house": {"rooms": [1, 2]}, "hidden_act": "gelu_python"}
    (tmp_path / "a/config.json").write_text(json.dumps(config))
    (tmp_path / "a/manifest.json").unlink()
    model = load(tmp_path / "a")
    assert model.report.ignored == ("embeddings.position_ids",)
    model.save(tmp_path / "b")
    assert same_bits(weights(tmp_path / "a"), weights(tmp_path / "b"))
    assert config_of(tmp_path / "b") == config
    with torch.no_grad():
        model.network.embeddings.tokens += 1
    model.save(tmp_path / "c")
    changed = weights(tmp_path / "c")
    assert torch.equal(changed["cls.predictions.decoder.weight"], changed["bert.embeddings.word_embeddings.weight"])


def test_an_existing_path_is_refused_unless_empty_or_replaced(tmp_path):
    model = model_of("masked_token")
    (tmp_path / "m").mkdir()
    model.save(tmp_path / "m")
    with pytest.raises(ExistsError, match="replace=True"):
        model_of("masked_token", seed=1).save(tmp_path / "m")
    assert_same_model(load(tmp_path / "m"), model)
    (tmp_path / "file").write_text("x")
    with pytest.raises(ExistsError):
        model.save(tmp_path / "file")
    for name in ("recipe.toml", "notes.txt"):
        (tmp_path / name).mkdir()
        (tmp_path / name / name).write_text("x")
        with pytest.raises(ExistsError, match="replace=True"):
            model.save(tmp_path / name)
        assert [path.name for path in (tmp_path / name).iterdir()] == [name]
        model.save(tmp_path / name, replace=True)
        assert (tmp_path / name / name).read_text() == "x"


def test_replacing_leaves_nothing_of_the_old_model(tmp_path):
    model_of("masked_token", pooler=True).save(tmp_path / "m")
    (tmp_path / "m/notes.txt").write_text("mine")
    other = model_of("masked_token", seed=3, width=8)
    other.save(tmp_path / "m", replace=True)
    assert_same_model(load(tmp_path / "m"), other)
    assert not (tmp_path / "m/heads.safetensors").exists()
    assert (tmp_path / "m/notes.txt").read_text() == "mine"
    assert not [path for path in (tmp_path / "m").iterdir() if path.name.startswith(".")]


def test_a_crash_while_writing_leaves_nothing(tmp_path, monkeypatch):
    def fail(*_):
        raise OSError("no space left")

    monkeypatch.setattr(folder_module, "write_safetensors", fail)
    with pytest.raises(OSError, match="no space"):
        model_of("masked_token").save(tmp_path / "m")
    assert list(tmp_path.iterdir()) == []


def test_a_step_folder_may_hold_more_files_under_one_manifest(tmp_path):
    model = model_of(*BOTH, pooler=True)
    saved = write_model(tmp_path, model.network, torch.nn.ModuleDict(dict(model.heads)), model.tokenizer)
    assert not (tmp_path / "manifest.json").exists()
    (tmp_path / "state.json").write_text("{}")
    write_manifest(tmp_path, [*saved.files, "state.json"])
    assert set(json.loads((tmp_path / "manifest.json").read_text())["files"]) == {*saved.files, "state.json"}
    assert_same_model(load(tmp_path), model)


def test_the_final_model_of_a_run_tells_what_it_is(tmp_path):
    (tmp_path / "recipe.toml").write_text("")
    told = []
    shape = shape_of(norm="pre")
    save_into(tmp_path, network_of(shape), {}, tokenizer(), told.append)
    assert len(told) == 1
    assert "norm = 'pre'" in told[0]
    assert (tmp_path / files.MANIFEST).is_file()
    assert load(tmp_path).note == ""


def test_labels_of_a_classifier_are_kept_or_numbered(tmp_path):
    model = model_of("sequence_class", pooler=True)
    model.save(tmp_path / "a")
    config = config_of(tmp_path / "a")
    assert config["id2label"] == {"0": "LABEL_0", "1": "LABEL_1", "2": "LABEL_2"}
    names = {"0": "体育", "1": "财经", "2": "科技"}
    (tmp_path / "a/config.json").write_text(json.dumps(config | {"id2label": names}))
    (tmp_path / "a/manifest.json").unlink()
    load(tmp_path / "a").save(tmp_path / "b")
    assert config_of(tmp_path / "b")["id2label"] == names
