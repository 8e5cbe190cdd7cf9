"""Folders of sentence-transformers on the families that people have: the same vectors here and there, both ways."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from family_tokenizers import write_all
from oracle import make, transformers
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, Transformer
from vector_models import quiet

from maskery import Encoder
from maskery.errors import CheckpointError

DEBERTA = {
    "relative_attention": True, "position_buckets": 8, "norm_rel_ebd": "layer_norm", "share_att_key": True,
    "pos_att_type": "p2c|c2p", "position_biased_input": False, "type_vocab_size": 0,
}  # fmt: skip
NETWORKS = {
    "mpnet": ("MPNetModel", {}),
    "xlm-roberta": ("XLMRobertaModel", {}),
    "camembert": ("CamembertModel", {}),
    "deberta-v2": ("DebertaV2Model", DEBERTA),
    "modernbert": ("ModernBertModel", {"local_attention": 8, "global_attn_every_n_layers": 2}),
}
TEXTS = [
    "the cat sat on the mat",
    "北京大学的学生",
    "mixed 北京 cat 😀🤖",
    "a",
    "",
    " odd \t white\n\nspace ",
    "The CAT " * 30,
]
PROMPTS = {"query": "query: ", "passage": "passage: "}
CLOSE = 1e-5


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """A network and its tokenizer for each family, as transformers saves them."""
    found = {}
    for kind, folder in write_all(tmp_path_factory.mktemp).items():
        name, changes = NETWORKS[kind]
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        sizes = {"vocab_size": len(tokenizer), "pad_token_id": tokenizer.pad_token_id}
        found[kind] = folder / "plain"
        make(name, **sizes, **changes).save_pretrained(found[kind])
        tokenizer.save_pretrained(found[kind])
    return found


def saved(plain, folder, pool="mean", prompts=PROMPTS):
    network = Transformer(str(plain), max_seq_length=20)
    modules = [network, Pooling(24, pooling_mode=pool), Normalize()]
    SentenceTransformer(modules=modules, prompts=prompts, device="cpu").save_pretrained(str(folder))
    return SentenceTransformer(str(folder), device="cpu")


@pytest.mark.parametrize("pool", ["cls", "mean", "lasttoken"])
@pytest.mark.parametrize("kind", NETWORKS)
def test_theirs_here_and_ours_there(kind, pool, plain, tmp_path):
    theirs, ours = saved(plain[kind], tmp_path / "theirs", pool), Encoder(tmp_path / "theirs", say=quiet)
    np.testing.assert_allclose(ours.encode(TEXTS), theirs.encode(TEXTS), atol=CLOSE)
    np.testing.assert_allclose(
        ours.encode(TEXTS, prompt="query"), theirs.encode(TEXTS, prompt_name="query"), atol=CLOSE
    )
    np.testing.assert_allclose(ours.encode_document(TEXTS), theirs.encode(TEXTS, prompt_name="passage"), atol=CLOSE)
    ours.save(tmp_path / "ours")
    again = SentenceTransformer(str(tmp_path / "ours"), device="cpu")
    np.testing.assert_allclose(again.encode(TEXTS), ours.encode(TEXTS), atol=CLOSE)
    np.testing.assert_allclose(again.encode(TEXTS, prompt_name="query"), ours.encode_query(TEXTS), atol=CLOSE)


@pytest.mark.parametrize("kind", NETWORKS)
def test_lower_case_of_the_folder(kind, plain, tmp_path):
    """Release 6 forgets to write the key, which earlier ones did, and still reads it."""
    heard = []
    saved(plain[kind], tmp_path / "theirs", prompts={})
    path = tmp_path / "theirs/sentence_bert_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"do_lower_case": True}))
    theirs = SentenceTransformer(str(tmp_path / "theirs"), device="cpu")
    assert np.array_equal(theirs.encode("THE CAT"), theirs.encode("the cat"))
    ours = Encoder(tmp_path / "theirs", say=heard.append)
    np.testing.assert_allclose(ours.encode(TEXTS), theirs.encode(TEXTS), atol=CLOSE)
    assert np.array_equal(ours.encode("THE CAT"), ours.encode("the cat"))
    assert any("do_lower_case" in each for each in heard) is (kind != "mpnet"), "MPNet's tokenizer does it by itself"
    ours.save(tmp_path / "ours")
    again = SentenceTransformer(str(tmp_path / "ours"), device="cpu")
    np.testing.assert_allclose(again.encode(TEXTS), ours.encode(TEXTS), atol=CLOSE)


def test_the_dense_part_of_bge_m3(plain, tmp_path):
    theirs = saved(plain["xlm-roberta"], tmp_path / "m3", "cls", prompts={})
    for name, width in (("colbert_linear.pt", 24), ("sparse_linear.pt", 1)):
        torch.save({"weight": torch.zeros(width, 24), "bias": torch.zeros(width)}, tmp_path / "m3" / name)
    heard = []
    ours = Encoder(tmp_path / "m3", say=heard.append)
    assert any("colbert_linear.pt and sparse_linear.pt are not read: vectors are the dense ones" in e for e in heard)
    np.testing.assert_allclose(ours.encode(TEXTS), theirs.encode(TEXTS), atol=CLOSE)


def test_a_network_that_is_code_in_the_folder_is_refused(plain, tmp_path):
    """As Alibaba's gte-base-en-v1.5 and its like have it."""
    saved(plain["modernbert"], tmp_path / "gte", "cls")
    config = json.loads((tmp_path / "gte/config.json").read_text())
    config |= {"model_type": "new", "architectures": ["NewModel"], "auto_map": {"AutoModel": "modeling.NewModel"}}
    (tmp_path / "gte/config.json").write_text(json.dumps(config))
    with pytest.raises(CheckpointError, match=r"model_type 'new'.*runs no code that a folder names") as refused:
        Encoder(tmp_path / "gte", say=quiet)
    assert "modernbert" in refused.value.repair


def test_first_dimensions_only(plain, tmp_path):
    """Release 6 writes `truncate_dim` into the folder, and it holds for whoever opens it."""
    network = Transformer(str(plain["mpnet"]), max_seq_length=20)
    made = SentenceTransformer(modules=[network, Pooling(24), Normalize()], device="cpu", truncate_dim=7)
    made.save_pretrained(str(tmp_path / "theirs"))
    theirs, heard = SentenceTransformer(str(tmp_path / "theirs"), device="cpu"), []
    ours = Encoder(tmp_path / "theirs", say=heard.append)
    assert ours.dimensions == 7
    assert any("first 7 of 24 dimensions" in each for each in heard)
    np.testing.assert_allclose(ours.encode(TEXTS), theirs.encode(TEXTS), atol=CLOSE)
    ours.save(tmp_path / "ours")
    again = SentenceTransformer(str(tmp_path / "ours"), device="cpu")
    np.testing.assert_allclose(again.encode(TEXTS), theirs.encode(TEXTS), atol=CLOSE)
    path = tmp_path / "theirs/config_sentence_transformers.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"truncate_dim": 0}))
    with pytest.raises(CheckpointError, match="truncate_dim = 0"):
        Encoder(tmp_path / "theirs", say=quiet)


@pytest.mark.parametrize("name", ["roberta", "xlm-roberta", "distilbert"])
def test_lengths_under_the_names_of_first_releases(name, plain, tmp_path):
    saved(plain["xlm-roberta"], tmp_path / "theirs", prompts={})
    (tmp_path / "theirs/sentence_bert_config.json").unlink()
    told = json.dumps({"max_seq_length": 9, "do_lower_case": True})
    (tmp_path / f"theirs/sentence_{name}_config.json").write_text(told)
    theirs, ours = SentenceTransformer(str(tmp_path / "theirs"), device="cpu"), Encoder(tmp_path / "theirs", say=quiet)
    assert ours.config.length == 9
    np.testing.assert_allclose(ours.encode(TEXTS), theirs.encode(TEXTS), atol=CLOSE)


@pytest.mark.parametrize(("changes", "said"), [
    ({"modality_config": {"text": {"method": "forward", "method_output_name": "pooler_output"}}}, "pooler_output"),
    ({"transformer_task": "fill-mask"}, "fill-mask"),
    ({"config_args": {"num_hidden_layers": 1}}, "num_hidden_layers"),
])  # fmt: skip
def test_vectors_of_something_else_than_last_states_are_refused(changes, said, plain, tmp_path):
    saved(plain["xlm-roberta"], tmp_path / "theirs", prompts={})
    path = tmp_path / "theirs/sentence_bert_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    with pytest.raises(CheckpointError, match=said) as refused:
        Encoder(tmp_path / "theirs", say=quiet)
    assert refused.value.repair
