"""Google's checkpoints imported: the numbers of transformers with the same tensors, and nothing left untold."""

from __future__ import annotations

import json

import pytest
import tf_writer
import torch
import transformers
from oracle import make, rows, same_bits, weights

from maskery.checkpoint.importing import import_model
from maskery.checkpoint.load import load
from maskery.errors import CheckpointError, InputError

CLOSE = {"atol": 1e-5, "rtol": 1e-5}
COMMON = [
    "vocab_size",
    "hidden_size",
    "num_hidden_layers",
    "num_attention_heads",
    "intermediate_size",
    "max_position_embeddings",
    "type_vocab_size",
    "hidden_act",
]
KEYS = {"bert": COMMON, "albert": [*COMMON, "embedding_size", "num_hidden_groups", "inner_group_num"]}
NARROW = {"hidden_size": 128, "num_attention_heads": 2, "embedding_size": 20, "num_hidden_layers": 1}


def google_folder(folder, model, *, config=True, **options):
    """A folder as Google published them."""
    family = model.config.model_type
    variables = tf_writer.with_optimizer(tf_writer.as_google(model))
    tf_writer.write_checkpoint(folder / f"{family}_model.ckpt", variables, **options)
    tf_writer.write_vocabulary(folder / "vocab.txt", model.config.vocab_size)
    if config:
        tf_writer.write_config(folder / f"{family}_config.json", model.config, KEYS[family])
    return variables


@torch.no_grad()
def assert_same_answers(theirs, ours, head_outputs):
    for side in ("none", "right"):
        ids, mask, segments = rows(side)
        given = {"input_ids": ids, "attention_mask": mask, "token_type_ids": segments}
        expected = theirs(**given, output_hidden_states=True)
        found = ours(ids, mask, segments, layers=True)
        real = mask.bool()
        for left, right in zip(expected.hidden_states, found.layers, strict=True):
            assert torch.allclose(left[real], right[real], **CLOSE)
        for head, output in head_outputs.items():
            left, right = expected[output], ours.scores(head, ids, mask, segments)
            if left.ndim > 1 and left.shape[:2] == mask.shape:
                left, right = left[real], right[real]
            assert torch.allclose(left, right, **CLOSE), head


@pytest.mark.parametrize("shards", [1, 2])
def test_bert(tmp_path, shards):
    theirs = make("BertForPreTraining")
    variables = google_folder(tmp_path / "chinese", theirs, shards=shards)
    report = import_model(tmp_path / "chinese", tmp_path / "out")
    ours = load(tmp_path / "out")
    heads = {"masked_token": "prediction_logits", "next_sentence": "seq_relationship_logits"}
    assert_same_answers(theirs, ours, heads)
    assert report.unused == ()
    assert report.used + len(report.state) == len(variables)
    assert len(report.state) == 2 * report.used + 1
    assert report.model.parameters_by_part()["total"] == sum(each.numel() for each in theirs.parameters())
    assert "uncased: no piece has a capital letter" in report.notes
    again = transformers.AutoModelForPreTraining.from_pretrained(tmp_path / "out")
    assert type(again) is transformers.BertForPreTraining
    left, right = theirs.state_dict(), again.state_dict()
    assert same_bits({name: left[name] for name in right}, right)
    assert ours.tokenizer.encode("W7")[0] == [2, 12, 3]


@pytest.mark.parametrize(("layers", "groups"), [(3, 1), (4, 2)])
def test_albert(tmp_path, layers, groups):
    theirs = make("AlbertForPreTraining", num_hidden_layers=layers, num_hidden_groups=groups, hidden_act="gelu_new")
    google_folder(tmp_path / "albert", theirs)
    config = tmp_path / "albert" / "albert_config.json"
    config.write_text(json.dumps({**json.loads(config.read_text()), "hidden_act": "gelu"}))
    report = import_model(tmp_path / "albert", tmp_path / "out")
    ours = load(tmp_path / "out")
    assert_same_answers(theirs, ours, {"masked_token": "prediction_logits", "sentence_order": "sop_logits"})
    assert (ours.family, ours.config.activation, ours.config.groups) == ("albert", "gelu_tanh", groups)
    assert any("gelu_new" in note for note in report.notes)
    assert report.unused == ()
    transformers.AlbertForPreTraining.from_pretrained(tmp_path / "out")


def electra_folder(folder, generator_width=64):
    discriminator = make("ElectraForPreTraining", **NARROW)
    generator = make("ElectraForMaskedLM", **{**NARROW, "hidden_size": generator_width, "num_attention_heads": 1})
    generator.electra.embeddings.load_state_dict(discriminator.electra.embeddings.state_dict())
    variables = {**tf_writer.as_google(generator, generator=True), **tf_writer.as_google(discriminator)}
    tf_writer.write_checkpoint(folder / "electra_small", tf_writer.with_optimizer(variables))
    tf_writer.write_vocabulary(folder / "vocab.txt", 60)
    return discriminator, generator


def test_electra_with_its_generator_and_without_a_config(tmp_path):
    discriminator, generator = electra_folder(tmp_path / "electra")
    report = import_model(tmp_path / "electra", tmp_path / "out")
    ours = load(tmp_path / "out")
    assert_same_answers(discriminator, ours, {"replaced_token": "logits"})
    assert_same_answers(generator, ours.generator, {"masked_token": "logits"})
    assert_same_answers(generator, load(tmp_path / "out" / "generator"), {"masked_token": "logits"})
    assert ours.generator.network.embeddings.tokens is ours.network.embeddings.tokens
    assert any("2 heads of 64" in note for note in report.notes)
    assert report.unused == ()
    assert isinstance(
        transformers.AutoModelForPreTraining.from_pretrained(tmp_path / "out"), transformers.ElectraForPreTraining
    )
    transformers.ElectraForMaskedLM.from_pretrained(tmp_path / "out" / "generator")


def test_electra_whose_generator_does_not_fit_is_told(tmp_path):
    electra_folder(tmp_path / "electra", generator_width=131)
    report = import_model(tmp_path / "electra", tmp_path / "out")
    assert load(tmp_path / "out").generator is None
    assert any("the generator is left aside: its width 131" in note for note in report.notes)
    assert "generator_predictions/dense/kernel" in report.unused
    assert "generator/encoder/layer_0/attention/self/query/kernel" in report.unused


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_a_narrow_type_is_kept(tmp_path, dtype):
    theirs = make("BertForMaskedLM").to(dtype)
    google_folder(tmp_path / "narrow", theirs)
    import_model(tmp_path / "narrow", tmp_path / "out")
    found = weights(tmp_path / "out")
    assert {each.dtype for each in found.values()} == {dtype}
    name = "bert.encoder.layer.2.output.dense.weight"
    assert torch.equal(found[name], theirs.state_dict()[name])


def test_what_no_family_has_is_listed(tmp_path):
    theirs = make("BertForMaskedLM")
    variables = {
        **tf_writer.as_google(theirs),
        "output_weights": torch.zeros(3, 24),
        "cls/seq_relationship/output_weights": torch.zeros(2, 24),
    }
    google_folder(tmp_path / "x", theirs)
    tf_writer.write_checkpoint(tmp_path / "x" / "bert_model.ckpt", variables)
    report = import_model(tmp_path / "x", tmp_path / "out")
    assert report.unused == ("cls/seq_relationship/output_weights", "output_weights")
    assert report.used == len(variables) - 2
    assert set(load(tmp_path / "out").heads) == {"masked_token"}


def refused(path, out, match, **options):
    with pytest.raises(CheckpointError, match=match) as caught:
        import_model(path, out, **options)
    assert caught.value.repair
    assert caught.value.where
    assert "partial-" not in str(caught.value)
    assert not out.exists()
    return caught.value


@pytest.fixture
def bert(tmp_path):
    google_folder(tmp_path / "bert", make("BertForMaskedLM"))
    return tmp_path / "bert"


def changed(folder, **values):
    path = folder / "bert_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


@pytest.mark.parametrize("key", ["vocab_size", "hidden_size", "num_hidden_layers", "intermediate_size"])
def test_a_config_of_another_model(tmp_path, bert, key):
    changed(bert, **{key: 48})
    error = refused(bert, tmp_path / "out", f"{key} is 48 there and")
    assert error.where == str(bert / "bert_config.json")


def test_a_config_that_makes_no_model(tmp_path, bert):
    changed(bert, num_attention_heads=5)
    error = refused(bert, tmp_path / "out", "not a multiple of heads 5")
    assert str(bert) in error.where
    (bert / "bert_config.json").write_text("{")
    refused(bert, tmp_path / "out", "is not JSON")


def test_a_config_that_is_not_there_or_not_the_only_one(tmp_path, bert):
    (bert / "other_config.json").write_text("{}")
    refused(bert, tmp_path / "out", "several configs")
    moved = (bert / "bert_config.json").rename(tmp_path / "moved.json")
    (bert / "other_config.json").unlink()
    assert "--config" in refused(bert, tmp_path / "out", "no bert_config.json").repair
    refused(bert, tmp_path / "out", "no such file", config=tmp_path / "nowhere.json")
    import_model(bert, tmp_path / "out", config=moved)


def test_vocabularies(tmp_path, bert):
    tf_writer.write_vocabulary(bert / "vocab.txt", 61)
    refused(bert, tmp_path / "out", "has 61 pieces, but the checkpoint has vectors for 60")
    moved = tmp_path / "moved.txt"
    (bert / "vocab.txt").unlink()
    tf_writer.write_vocabulary(moved, 50)
    assert "--vocab" in refused(bert, tmp_path / "out", "no vocab.txt").repair
    report = import_model(bert, tmp_path / "out", vocabulary=moved)
    assert any("50 pieces" in note and "60 vectors" in note for note in report.notes)
    (bert / "30k-clean.model").write_bytes(b"x")
    with pytest.raises(InputError, match="cannot be read") as caught:
        import_model(bert, tmp_path / "bare")
    assert caught.value.where == str(bert / "30k-clean.model")
    (bert / "other.model").write_bytes(b"x")
    assert "--vocab" in refused(bert, tmp_path / "bare", "several vocabularies are here: 30k-clean").repair


def test_the_case_of_letters(tmp_path, bert):
    folder = bert.rename(tmp_path / "multi_cased_L-3")
    report = import_model(folder, tmp_path / "guessed")
    assert any("the folder's name says cased: --case cased would" in note for note in report.notes)
    assert load(tmp_path / "guessed").tokenizer.encode("W7")[0] == [2, 12, 3]
    import_model(folder, tmp_path / "said", case="cased")
    assert load(tmp_path / "said").tokenizer.encode("W7")[0] == [2, 1, 3]
    tf_writer.write_vocabulary(folder / "vocab.txt", 60, extra=["Word"])
    report = import_model(folder, tmp_path / "capitals")
    assert "cased: 1 pieces with a capital letter" in report.notes


def test_damage_is_found_and_nothing_is_written(tmp_path, bert):
    data = bert / "bert_model.ckpt.data-00000-of-00001"
    whole = data.read_bytes()
    tf_writer.flip(data, 4)
    error = refused(bert, tmp_path / "out", "wrong checksum of the tensor bert/embeddings/LayerNorm/beta")
    assert error.where == str(data)
    data.write_bytes(whole[:-3])
    refused(bert, tmp_path / "out", "ends at byte")
    data.unlink()
    refused(bert, tmp_path / "out", "data file 1 of 1 is missing")
    assert not list(tmp_path.glob(".partial-*"))


def test_weights_that_are_no_numbers_or_not_there(tmp_path, bert):
    variables = tf_writer.as_google(make("BertForMaskedLM"))
    broken = {**variables, "bert/encoder/layer_1/output/dense/bias": torch.full((24,), torch.nan)}
    tf_writer.write_checkpoint(bert / "bert_model.ckpt", broken)
    error = refused(bert, tmp_path / "out", "not finite")
    assert error.where == str(bert / "bert_model.ckpt")
    del variables["bert/encoder/layer_1/output/dense/bias"]
    tf_writer.write_checkpoint(bert / "bert_model.ckpt", variables)
    error = refused(bert, tmp_path / "out", "missing")
    assert "bert_config.json" in error.repair


def test_which_checkpoint_is_meant(tmp_path, bert):
    theirs = make("BertForMaskedLM")
    tf_writer.write_checkpoint(bert / "model.ckpt-10", tf_writer.as_google(theirs))
    error = refused(bert, tmp_path / "out", "2 checkpoints are here: bert_model.ckpt, model.ckpt-10")
    assert error.repair == f"name one: maskery import {bert / 'model.ckpt-10'}"
    import_model(bert / "model.ckpt-10", tmp_path / "out")
    import_model(bert / "model.ckpt-10.index", tmp_path / "again")
    assert same_bits(weights(tmp_path / "out"), weights(tmp_path / "again"))
    refused(tmp_path / "nowhere", tmp_path / "none", "no such folder")
    assert str(bert) in refused(tmp_path, tmp_path / "none", "in a folder inside").repair
    (tmp_path / "empty").mkdir()
    refused(tmp_path / "empty", tmp_path / "none", "neither a TensorFlow checkpoint")
    (tmp_path / "bert.zip").write_bytes(b"PK")
    refused(tmp_path / "bert.zip", tmp_path / "none", "is an archive")
    assert refused(bert / "vocab.txt", tmp_path / "none", "is no checkpoint").repair == f"give the folder: {bert}"
    alone = tmp_path / "old" / "bert_model.ckpt"
    alone.parent.mkdir()
    alone.write_bytes(b"torn")
    for path, cause in ((alone, "none is beside it"), (alone.parent, "bert_model.ckpt alone is no checkpoint")):
        repair = refused(path, tmp_path / "none", cause).repair
        assert repair.startswith("fetch bert_model.ckpt.index and bert_model.ckpt.data-00000-of-00001 into ")
    for path in bert.glob("*.index"):
        path.unlink()
    refused(bert, tmp_path / "none", "but not bert_model.ckpt.index")


@pytest.mark.parametrize(
    ("name", "match"),
    [
        ("_CHECKPOINTABLE_OBJECT_GRAPH", "Python objects"),
        ("conv/weights", "no family that we know; the first: conv/weights"),
    ],
)
def test_checkpoints_of_other_models(tmp_path, name, match):
    tf_writer.write_checkpoint(tmp_path / "x" / "model", {name: torch.zeros(2)})
    refused(tmp_path / "x", tmp_path / "out", match)


def test_the_first_format_is_recognised(tmp_path):
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "model.ckpt").write_bytes(tf_writer.table({b"": b"x"}))
    refused(tmp_path / "old", tmp_path / "out", "first format")
    refused(tmp_path / "old" / "model.ckpt", tmp_path / "out", "first format")


def test_progress_reaches_the_end(tmp_path, bert):
    told = []
    import_model(bert, tmp_path / "out", tell=lambda done, total, what: told.append((done, total, what)))
    assert [done for done, _, _ in told] == sorted(done for done, _, _ in told)
    assert told[-1][0] == told[-1][1] == told[-2][0]
    assert {what for _, _, what in told} == {"reading", "writing"}


def test_options_that_are_for_tensorflow_only(tmp_path):
    make("BertForMaskedLM").save_pretrained(tmp_path / "theirs")
    with pytest.raises(InputError, match="--case is for TensorFlow's files"):
        import_model(tmp_path / "theirs", tmp_path / "out", case="cased")
