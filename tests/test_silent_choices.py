"""What a folder says and cannot be followed is refused or reported, never passed over in silence."""

from __future__ import annotations

import json

import pytest
import torch
from folders import change_weights
from networks import model_of
from oracle import make, transformers
from safetensors.torch import load_file
from small_tokenizers import bpe, wordpiece

from maskery.checkpoint.load import load
from maskery.errors import CheckpointError, InputError
from maskery.text.tokenizer import Tokenizer


def changed(path, change):
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))


def test_two_pieces_of_one_number(tmp_path):
    wordpiece().save(tmp_path)

    def same_number(content):
        pieces = content["model"]["vocab"]
        content["model"]["vocab"] = pieces | {"the": pieces["dog"]}

    changed(tmp_path / "tokenizer.json", same_number)
    number = wordpiece().id("dog")
    with pytest.raises(InputError, match=f"pieces 'dog' and 'the' have the same number {number}") as refused:
        Tokenizer.load(tmp_path)
    assert "tokenizer.json" in str(refused.value)


@pytest.mark.parametrize("stated", ["dog", {"content": "dog", "special": True}], ids=["text", "table"])
def test_a_mask_that_is_an_ordinary_word(stated, tmp_path):
    wordpiece().save(tmp_path)
    changed(tmp_path / "tokenizer_config.json", lambda content: content.update(mask_token=stated))
    with pytest.raises(InputError, match=r"mask_token is 'dog'.*an ordinary piece") as refused:
        Tokenizer.load(tmp_path)
    assert refused.value.repair == "name the special token there ([MASK] or <mask>), or leave mask_token out"


def test_a_mask_that_is_nowhere_is_reported(tmp_path):
    wordpiece().save(tmp_path)
    changed(tmp_path / "tokenizer_config.json", lambda content: content.update(mask_token="[HIDDEN]"))
    opened = Tokenizer.load(tmp_path)
    assert "mask_token [HIDDEN] is not in the vocabulary, and is passed over" in opened.note
    assert opened.names["mask"] == "[MASK]"


def test_special_tokens_of_ones_own_are_taken(tmp_path):
    """A name that is no word of a text is what the folder says it is."""
    bpe().with_names({"<mask>": "<hide>"}).save(tmp_path)
    changed(tmp_path / "tokenizer_config.json", lambda content: content.update(mask_token="<hide>"))
    assert Tokenizer.load(tmp_path).names["mask"] == "<hide>"


@pytest.fixture
def shards(tmp_path):
    folder = tmp_path / "shards"
    make("BertForMaskedLM").save_pretrained(folder, max_shard_size="20KB")
    assert len(list(folder.glob("model-*.safetensors"))) > 1
    return folder


def test_a_tensor_that_the_index_leaves_out(shards):
    index, left_out = shards / "model.safetensors.index.json", "bert.embeddings.position_embeddings.weight"
    changed(index, lambda content: content["weight_map"].pop(left_out))
    with pytest.raises(CheckpointError, match=f"holds {left_out}, which the index leaves out") as refused:
        load(shards)
    assert "model-0" in str(refused.value)
    assert "model.safetensors.index.json" in refused.value.repair


def test_shards_that_agree_with_their_index_open(shards):
    assert list(load(shards).heads) == ["masked_token"]


CLASSES = ["BertForMaskedLM", "RobertaForMaskedLM", "ModernBertForMaskedLM", "ElectraForMaskedLM"]


@pytest.mark.parametrize("name", CLASSES)
@torch.no_grad()
def test_an_untied_head_that_the_file_does_not_hold(name, tmp_path):
    make(name, pad_token_id=1).save_pretrained(tmp_path / "a")
    changed(tmp_path / "a/config.json", lambda content: content.update(tie_word_embeddings=False))
    ours = load(tmp_path / "a")
    (note,) = ours.report.notes
    assert note.startswith("tie_word_embeddings = false")
    assert "the file holds no matrix of its own" in note
    ours.save(tmp_path / "b")
    assert json.loads((tmp_path / "b/config.json").read_text())["tie_word_embeddings"] is True
    ids = torch.arange(5, 17).view(2, 6)
    again = transformers.AutoModelForMaskedLM.from_pretrained(tmp_path / "b").eval()
    torch.testing.assert_close(ours.logits(ids), again(ids).logits, atol=1e-5, rtol=1e-5)


def test_an_untied_head_that_is_the_same(tmp_path):
    make("BertForMaskedLM").save_pretrained(tmp_path)
    words = "bert.embeddings.word_embeddings.weight"
    change_weights(tmp_path, lambda tensors: tensors.update({"cls.predictions.decoder.weight": tensors[words].clone()}))
    changed(tmp_path / "config.json", lambda content: content.update(tie_word_embeddings=False))
    assert "the matrix in the file is equal to them" in load(tmp_path).report.notes[0]


@pytest.mark.parametrize("name", ["BertForMaskedLM", "DebertaV2ForMaskedLM"])
def test_an_untied_head_of_other_numbers_is_refused(name, tmp_path):
    sizes = {"relative_attention": True, "position_buckets": 8, "norm_rel_ebd": "layer_norm", "share_att_key": True,
             "pos_att_type": "p2c|c2p", "position_biased_input": False} if "Deberta" in name else {}  # fmt: skip
    make(name, tie_word_embeddings=False, **sizes).save_pretrained(tmp_path)
    with pytest.raises(CheckpointError, match="an output matrix of its own is not supported"):
        load(tmp_path)


@pytest.mark.parametrize("name", ["BertModel", "ModernBertModel", "BertForSequenceClassification"])
def test_without_a_head_over_the_vocabulary_the_key_says_nothing(name, tmp_path):
    make(name, tie_word_embeddings=False, pad_token_id=1).save_pretrained(tmp_path / "a")
    ours = load(tmp_path / "a")
    assert ours.report.notes == ()
    ours.save(tmp_path / "b")
    assert json.loads((tmp_path / "b/config.json").read_text())["tie_word_embeddings"] is False


@pytest.mark.parametrize(
    ("other", "cause"),
    [
        (lambda tensor: torch.empty_like(tensor, device="meta"), "has a shape and no numbers"),
        (lambda tensor: tensor.to_sparse(), "is sparse"),
        (lambda tensor: torch.nested.nested_tensor([tensor[0], tensor[1]]), "is nested"),
    ],
    ids=["meta", "sparse", "nested"],
)
@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_a_pickle_of_tensors_that_hold_no_plain_numbers(tmp_path, other, cause):
    model_of("masked_token").save(tmp_path / "m")
    state = load_file(tmp_path / "m" / "model.safetensors")
    name = next(each for each in state if each.endswith("word_embeddings.weight"))
    torch.save({**state, name: other(state[name])}, tmp_path / "m" / "pytorch_model.bin")
    for file in ("model.safetensors", "manifest.json"):
        (tmp_path / "m" / file).unlink()
    with pytest.raises(CheckpointError, match=f"tensor {name} {cause}"):
        load(tmp_path / "m", allow_pickle=True)
