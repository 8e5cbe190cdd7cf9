"""TensorFlow folders as their authors published them, NEZHA, albert_zh, XLNet, SimBERT, English ALBERT: the same
numbers as the original network, by reference implementations of its equations or by transformers."""

from __future__ import annotations

import json

import nezha_reference
import pytest
import tf_writer
import torch
from oracle import make, rows
from test_text_sentencepiece import MARKS, model

import maskery
from maskery.checkpoint.importing import import_model
from maskery.checkpoint.load import load
from maskery.cli import main
from maskery.errors import CheckpointError
from maskery.text.tokenizer import Tokenizer

CLOSE = {"atol": 1e-5, "rtol": 1e-5}
ALBERT_MARKS = {"<unk>": 2} | dict.fromkeys(("<pad>", "[CLS]", "[SEP]", "[MASK]"), 3)
HUAWEI = {"directionality": "bidi", "pooler_type": "first_token_transform", "use_relative_position": True}


def written(folder, variables, config, name="bert", vocabulary=60, file=None):
    """A folder of a checkpoint, its config and its vocabulary."""
    tf_writer.write_checkpoint(folder / f"{name}_model.ckpt", tf_writer.with_optimizer(variables))
    (folder / (file or f"{name}_config.json")).write_text(json.dumps(config))
    if vocabulary:
        tf_writer.write_vocabulary(folder / "vocab.txt", vocabulary)
    return folder


def nezha_folder(folder, **changes):
    config = nezha_reference.config_of("NezhaForPreTraining", max_relative_position=64)
    tensors = nezha_reference.tensors_of("NezhaForPreTraining", config)
    variables = {}
    for name, tensor in tensors.items():
        plain = name.replace("nezha.", "bert.", 1)
        if plain in tf_writer._PLAIN:
            variables[tf_writer._PLAIN[plain]] = tensor
        elif not plain.endswith(tf_writer._LEFT_OUT):
            google, turned = tf_writer._bert_name(plain)
            variables[google] = tensor.t().contiguous() if turned else tensor
    published = {key: value for key, value in config.items() if key in nezha_reference.config_of("").keys() - DROPPED}
    return written(folder, variables, {**published, **HUAWEI, **changes}), tensors, config


DROPPED = {"architectures", "model_type", "max_relative_position", "torch_dtype", "use_cache", "layer_norm_eps"}


@torch.no_grad()
def test_nezha_of_huawei(tmp_path):
    folder, tensors, config = nezha_folder(tmp_path / "nezha")
    report = import_model(folder, tmp_path / "out")
    ours = load(tmp_path / "out")
    assert (ours.family, ours.config.positions, ours.config.clip) == ("nezha", "nezha", 64)
    assert {"masked_token", "next_sentence"} <= set(ours.heads)
    assert report.unused == ()
    ids, mask, segments = rows("right")
    found = ours(ids, mask, segments).last
    for row, length in enumerate(mask.sum(1).tolist()):
        expected = nezha_reference.states_of_row(tensors, config, ids[row, :length], segments[row, :length])[0][-1]
        assert torch.allclose(found[row, :length], expected, **CLOSE)


def test_a_nezha_whose_config_does_not_say_so_is_told_why(tmp_path):
    folder, _, _ = nezha_folder(tmp_path / "nezha", use_relative_position=False)
    with pytest.raises(CheckpointError, match=r"as a NEZHA has none, but .*bert_config.json does not say") as caught:
        import_model(folder, tmp_path / "out")
    assert "use_relative_position" in str(caught.value)


def albert_zh_folder(folder, **changes):
    """The network of albert_zh by BERT's classes: one layer for all, word embeddings that are a product."""
    theirs = make("BertForPreTraining", hidden_act="gelu_new")
    draws = torch.Generator().manual_seed(3)
    words, factor = torch.randn(60, 10, generator=draws), torch.randn(10, 24, generator=draws) * 0.3
    with torch.no_grad():
        theirs.bert.embeddings.word_embeddings.weight.copy_(words @ factor)
        for layer in theirs.bert.encoder.layer[1:]:
            layer.load_state_dict(theirs.bert.encoder.layer[0].state_dict())
    variables = {
        name.replace("layer_0/", "layer_shared/"): tensor
        for name, tensor in tf_writer.as_google(theirs).items()
        if not name.startswith(("bert/encoder/layer_1", "bert/encoder/layer_2"))
    }
    variables |= {"bert/embeddings/word_embeddings": words, "bert/embeddings/word_embeddings_2": factor}
    sizes = ("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size")
    config = {name: getattr(theirs.config, name) for name in (*sizes, "max_position_embeddings", "type_vocab_size")}
    config |= {"hidden_act": "gelu", "embedding_size": 10, "ln_type": "postln", "directionality": "bidi"}
    written(folder, variables, {**config, **changes}, "albert", file="albert_config_tiny.json")
    return theirs, words, factor


@torch.no_grad()
def test_albert_zh(tmp_path):
    theirs, words, factor = albert_zh_folder(tmp_path / "albert_tiny_zh")
    report = import_model(tmp_path / "albert_tiny_zh", tmp_path / "out")
    ours = load(tmp_path / "out")
    assert (ours.family, ours.config.share, ours.config.layers, ours.config.embedding) == ("albert", "all", 3, 24)
    assert report.unused == ()
    assert any("a product (10 numbers a word" in note for note in report.notes)
    ids, mask, segments = rows("right")
    expected = theirs(ids, attention_mask=mask, token_type_ids=segments, output_hidden_states=True)
    real = mask.bool()
    assert torch.allclose(expected.hidden_states[-1][real], ours(ids, mask, segments).last[real], **CLOSE)
    turned = theirs.cls.predictions.transform(expected.hidden_states[-1])
    logits = turned @ factor.t() @ words.t() + theirs.cls.predictions.bias
    assert torch.allclose(logits[real], ours.logits(ids, mask, segments)[real], atol=1e-4, rtol=1e-5)
    sentence = ours.scores("sentence_order", ids, mask, segments)
    assert torch.allclose(expected.seq_relationship_logits, sentence, **CLOSE)


def test_albert_zh_that_normalises_before(tmp_path):
    albert_zh_folder(tmp_path / "x", ln_type="preln")
    with pytest.raises(CheckpointError, match="ln_type = 'preln'"):
        import_model(tmp_path / "x", tmp_path / "out")


def xlnet_folder(folder, config=True):
    sizes = {"vocab_size": 60, "d_model": 24, "n_layer": 3, "n_head": 4, "d_inner": 40}
    theirs = make("XLNetLMHeadModel", **sizes)
    variables, stacks = {}, {}
    for name, tensor in theirs.state_dict().items():
        parts = name.replace("transformer.", "model/transformer/", 1).replace(".layer.", ".layer_").split(".")
        path, last = "/".join(parts).replace("transformer//", "transformer/").replace("layer/", "layer_"), parts[-1]
        if last in ("r_w_bias", "r_r_bias", "r_s_bias", "seg_embed"):
            stacks.setdefault(f"model/transformer/{last}", []).append(tensor)
        elif last in "qkvor":
            variables[f"{path}/kernel"] = tensor
        elif "layer_norm" in path:
            ending = {"weight": "gamma", "bias": "beta"}[last]
            variables[path.replace(f"layer_norm/{last}", f"LayerNorm/{ending}")] = tensor
        elif "/ff/" in path:
            variables[path.replace("/weight", "/kernel")] = tensor.t().contiguous() if last == "weight" else tensor
    variables |= {name: torch.stack(each) for name, each in stacks.items()}
    held = theirs.state_dict()
    variables["model/transformer/word_embedding/lookup_table"] = held["transformer.word_embedding.weight"]
    variables["model/transformer/mask_emb/mask_emb"] = held["transformer.mask_emb"]
    variables["model/lm_loss/bias"] = held["lm_loss.bias"]
    told = {"d_head": 6, "ff_activation": "gelu", "n_token": 60, "untie_r": True, **sizes}
    told.pop("vocab_size")
    tf_writer.write_checkpoint(folder / "xlnet_model.ckpt", tf_writer.with_optimizer(variables))
    if config:
        (folder / "xlnet_config.json").write_text(json.dumps(told))
    (folder / "spiece.model").write_bytes(model())
    return theirs, variables


@pytest.mark.parametrize("config", [True, False])
@torch.no_grad()
def test_xlnet(tmp_path, config):
    theirs, variables = xlnet_folder(tmp_path / "xlnet", config)
    report = import_model(tmp_path / "xlnet", tmp_path / "out")
    ours = load(tmp_path / "out")
    assert (ours.family, ours.config.memory) == ("xlnet", 0)
    assert (report.unused, report.used) == ((), len(variables))
    ids, mask, segments = rows("none")
    expected = theirs(ids, attention_mask=mask, token_type_ids=segments)
    assert torch.allclose(expected.logits, ours.logits(ids, mask, segments), **CLOSE)
    assert ours.tokenizer.encode("the cat")[0][-2:] == [list(MARKS).index("<sep>"), list(MARKS).index("<cls>")]


def test_simbert_is_a_bert_that_reads_a_prefix(tmp_path):
    theirs = make("BertForPreTraining")
    config = {name: getattr(theirs.config, name) for name in ("vocab_size", "hidden_size", "num_hidden_layers")}
    config |= {"num_attention_heads": 4, "intermediate_size": 40, "max_position_embeddings": 40, "type_vocab_size": 2}
    folder = written(tmp_path / "simbert", tf_writer.as_google(theirs), {**config, "hidden_act": "gelu"})
    ours = maskery.load(folder)
    ids, _, segments = rows("none")
    by_prefix = ours.logits(ids, segments=segments, visibility="prefix")
    changed = ids.clone()
    changed[:, -1] = 7
    again = ours.logits(changed, segments=segments, visibility="prefix")
    assert torch.allclose(by_prefix[:, :-1], again[:, :-1], **CLOSE), "nothing sees the target's end but itself"
    assert not torch.allclose(by_prefix[:, -1], again[:, -1], atol=1e-3)


def test_english_albert_with_sentencepiece(tmp_path):
    theirs = make("AlbertForPreTraining", hidden_act="gelu_new")
    config = {name: getattr(theirs.config, name) for name in ("vocab_size", "hidden_size", "num_hidden_layers")}
    config |= {"num_attention_heads": 4, "intermediate_size": 40, "max_position_embeddings": 40, "type_vocab_size": 2}
    config |= {"hidden_act": "gelu", "embedding_size": 10, "num_hidden_groups": 1, "inner_group_num": 1}
    folder = written(tmp_path / "albert_base", tf_writer.as_google(theirs), config, "albert", vocabulary=0)
    (folder / "30k-clean.model").write_bytes(model(marks=ALBERT_MARKS))
    (folder / "30k-clean.vocab").write_text("")
    import_model(folder, tmp_path / "out")
    tokenizer = load(tmp_path / "out").tokenizer
    pieces = tokenizer.tokens(tokenizer.encode("the cats", "the")[0])
    assert pieces == ["[CLS]", "▁the", "▁cat", "s", "[SEP]", "▁the", "[SEP]"]
    assert tokenizer.specials.mask == 4


def test_a_file_of_sentencepiece_by_its_path(tmp_path):
    path = tmp_path / "my.model"
    path.write_bytes(model())
    assert Tokenizer.load(path).encode("the cat") == Tokenizer.load(_as_folder(tmp_path, path)).encode("the cat")
    text = tmp_path / "text.txt"
    text.write_text("the cats\n\nthe cat\n")
    code = main(["corpus", "build", str(text), "--out", str(tmp_path / "corpus"), "--tokenizer", str(path)])
    assert code == 0
    path.write_bytes(b"\xff\xff")
    with pytest.raises(maskery.MaskeryError, match="cannot be read"):
        Tokenizer.load(path)


def _as_folder(tmp_path, path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "spiece.model").write_bytes(path.read_bytes())
    return tmp_path / "folder"
