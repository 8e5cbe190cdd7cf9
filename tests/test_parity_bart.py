"""BART here and in transformers: the same numbers from the same weights, the same tensors back, published counts."""

from __future__ import annotations

import json
import shutil

import pytest
import torch
import transformers
from oracle import VOCABULARY, make, rows, same_bits, weights
from safetensors.torch import save_file

from maskery.checkpoint.families import FAMILIES
from maskery.checkpoint.load import load
from maskery.checkpoint.model import Model
from maskery.errors import CheckpointError, InputError
from maskery.recipes.recipe import recipe
from maskery.system import System

CLOSE = {"atol": 1e-5, "rtol": 1e-5}
SMALL = {
    "vocab_size": VOCABULARY,
    "d_model": 24,
    "encoder_layers": 2,
    "decoder_layers": 3,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 40,
    "decoder_ffn_dim": 40,
    "max_position_embeddings": 40,
}
HEADS = {
    "BartForConditionalGeneration": {"next_token"},
    "BartForSequenceClassification": {"sequence_class_tanh"},
    "BartForQuestionAnswering": {"answer_span"},
    "BartModel": set(),
}
END = 2


def made(name="BartForConditionalGeneration", **changes):
    labels = {"num_labels": 5} if name.endswith("SequenceClassification") else {}
    return make(name, **{**SMALL, **labels, **changes})


def saved(folder, name="BartForConditionalGeneration", **changes):
    made(name, **changes).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module", params=HEADS)
def pair(request, tmp_path_factory):
    """A Hugging Face model, its folder, and ours."""
    theirs = made(request.param)
    folder = tmp_path_factory.mktemp(request.param)
    theirs.save_pretrained(folder)
    return theirs, folder, load(folder)


def ended(side):
    """Rows that end with </s>, as BART's do."""
    ids, mask, _ = rows(side, pad=1)
    last = mask.shape[1] - 1 - mask.flip(1).argmax(1)
    return ids.scatter(1, last.unsqueeze(1), END), mask


def to_write(side):
    """What decoders have written so far, of other lengths than the rows that they look at."""
    ids, mask, _ = rows(side, pad=1)
    return ids.flip(0)[:, :7], mask.flip(0)[:, :7]


def compare(mine, other, real):
    for ours, theirs in zip(mine, other, strict=True):
        torch.testing.assert_close(ours[real], theirs[real], **CLOSE)


@pytest.mark.parametrize("scale", [False, True])
@pytest.mark.parametrize("side", ["none", "right", "left"])
@torch.no_grad()
def test_every_layer_of_both_stacks(side, scale, tmp_path):
    theirs = made("BartModel", scale_embedding=scale)
    theirs.save_pretrained(tmp_path)
    ours = load(tmp_path)
    assert ours.config.embedding_scale is scale
    ids, mask = ended(side)
    written, written_mask = to_write("right" if side == "left" else side)
    expected = theirs(
        input_ids=ids,
        attention_mask=mask,
        decoder_input_ids=written,
        decoder_attention_mask=written_mask,
        output_hidden_states=True,
        output_attentions=True,
    )
    hidden = ours(ids, mask, layers=True, attentions=True, decoder_ids=written, decoder_mask=written_mask)
    plain = ours(ids, mask, decoder_ids=written, decoder_mask=written_mask)
    real, there = mask.bool(), written_mask.bool()
    compare(hidden.layers, expected.encoder_hidden_states, real)
    compare(hidden.decoder.layers, expected.decoder_hidden_states, there)
    torch.testing.assert_close(plain.last[real], expected.encoder_last_hidden_state[real], **CLOSE)
    torch.testing.assert_close(plain.decoder.last[there], expected.last_hidden_state[there], **CLOSE)

    def both(queries, keys):
        return (queries[:, None, :, None] & keys[:, None, None, :]).expand(-1, 4, -1, -1)

    compare(hidden.attentions, expected.encoder_attentions, both(real, real))
    compare(hidden.decoder.attentions, expected.decoder_attentions, both(there, there))
    compare(hidden.decoder.across, expected.cross_attentions, both(there, real))
    alone = ours(ids, mask)
    assert alone.decoder is None
    assert torch.equal(alone.last, plain.last)


@pytest.mark.parametrize("side", ["none", "right", "left"])
@torch.no_grad()
def test_scores_of_tokens(side, tmp_path):
    theirs = made()
    ours = load(saved(tmp_path))
    ids, mask = ended(side)
    written, written_mask = to_write("right")
    given = {"decoder_input_ids": written, "decoder_attention_mask": written_mask}
    expected = theirs(input_ids=ids, attention_mask=mask, **given).logits
    mine = ours.logits(ids, mask, decoder_ids=written, decoder_mask=written_mask)
    there = written_mask.bool()
    torch.testing.assert_close(mine[there], expected[there], **CLOSE)
    assert (mine[~there] == 0).all()


@pytest.mark.parametrize("side", ["none", "right"])
@torch.no_grad()
def test_heads_read_what_the_decoder_makes_of_the_row(pair, side):
    """Hugging Face shifts the row itself where it is given nothing to write, and hides no padding from the decoder: on
    the left it would read that."""
    theirs, _, ours = pair
    ids, mask = ended(side)
    expected = theirs(input_ids=ids, attention_mask=mask)
    real = mask.bool()
    for head in ours.heads:
        mine = ours.scores(head, ids, mask)
        if head == "answer_span":
            both = torch.stack((expected.start_logits, expected.end_logits), dim=-1)
            torch.testing.assert_close(mine[real], both[real], **CLOSE)
        elif head == "next_token":
            torch.testing.assert_close(mine[real], expected.logits[real], **CLOSE)
        else:
            torch.testing.assert_close(mine, expected.logits, **CLOSE)


def test_heads_found(pair):
    theirs, _, ours = pair
    name = type(theirs).__name__
    assert set(ours.heads) == HEADS[name]
    report = ours.report
    buffers = ("final_logits_bias",) if name == "BartForConditionalGeneration" else ()
    assert (report.missing, report.unused, report.ignored, report.notes) == ((), (), buffers, ())
    assert ours.parameters_by_part()["total"] == sum(each.numel() for each in theirs.parameters())


def test_both_ways_bitwise(pair, tmp_path):
    theirs, folder, ours = pair
    told = ours.save(tmp_path / "ours")
    assert told.notes == ()
    assert same_bits(weights(folder), weights(tmp_path / "ours"))
    before, after = (json.loads((path / "config.json").read_text()) for path in (folder, tmp_path / "ours"))
    assert before == after
    back, info = type(theirs).from_pretrained(tmp_path / "ours", output_loading_info=True)
    assert not info["missing_keys"]
    assert not info["unexpected_keys"]
    assert same_bits(theirs.state_dict(), back.state_dict())


def test_written_from_our_shape_alone(pair, tmp_path):
    theirs, _, ours = pair
    told = Model(ours.network, ours.heads).save(tmp_path / "new")
    assert (told.family, told.notes) == ("bart", ())
    config = json.loads((tmp_path / "new/config.json").read_text())
    assert config["architectures"] == [type(theirs).__name__]
    assert config["decoder_ffn_dim"] == config["encoder_ffn_dim"] == 40
    back = type(theirs).from_pretrained(tmp_path / "new")
    assert same_bits(theirs.state_dict(), back.state_dict())
    assert load(tmp_path / "new").config == ours.config
    assert transformers.AutoModel.from_pretrained(tmp_path / "new").config.model_type == "bart"


@pytest.mark.parametrize(
    ("size", "count"), [("base", 139_420_416), ("large", 406_291_456)], ids=["BART base", "BART large"]
)
def test_published_parameter_counts(size, count):
    with torch.device("meta"):
        system = System(recipe("bart", size=size), 50265)
    assert sum(each.numel() for each in system.parameters()) == count


def test_a_bias_on_the_scores_is_not_lost_in_silence(tmp_path):
    folder = saved(tmp_path / "a")
    tensors = weights(folder)
    tensors["final_logits_bias"][0, 7] = -1.0
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(CheckpointError, match="final_logits_bias is not all 0"):
        load(folder)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"decoder_ffn_dim": 48}, "decoder_ffn_dim = 48 differs from encoder_ffn_dim = 40"),
        ({"tie_word_embeddings": False}, "tie_word_embeddings = False is not supported"),
        ({"decoder_layers": 4}, "tensors of the encoder are missing|missing"),
    ],
)
def test_configs_that_are_refused(changes, told, tmp_path):
    folder = saved(tmp_path / "a", "BartModel")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | changes))
    with pytest.raises(CheckpointError, match=told):
        load(folder)


def test_calls_that_are_refused(pair):
    _, _, ours = pair
    ids = torch.tensor([[5, 6, END]])
    with pytest.raises(InputError, match="2 rows, ids 1"):
        ours(ids, decoder_ids=ids.expand(2, 3))
    with pytest.raises(InputError, match="decoder_mask given without decoder_ids"):
        ours(ids, decoder_mask=torch.ones_like(ids))
    if "next_token" in ours.heads:
        with pytest.raises(InputError, match="says tokens with its decoder"):
            ours.logits(ids)
    else:
        with pytest.raises(InputError, match="no head over the vocabulary"):
            ours.logits(ids, decoder_ids=ids)


def test_a_model_without_a_decoder_refuses_what_one_would_read(tmp_path):
    make("BertForMaskedLM").save_pretrained(tmp_path)
    with pytest.raises(InputError, match="without a decoder"):
        load(tmp_path)(torch.tensor([[5]]), decoder_ids=torch.tensor([[5]]))


def test_the_start_is_told_by_the_config(tmp_path):
    folder = saved(tmp_path / "a", decoder_start_token_id=9)
    assert load(folder).decoder_start() == 9
    config = json.loads((folder / "config.json").read_text())
    del config["decoder_start_token_id"]
    (folder / "config.json").write_text(json.dumps(config))
    assert load(folder).decoder_start() == END
    ours = load(folder)
    with pytest.raises(InputError, match="with which its decoder begins"):
        Model(ours.network, ours.heads).decoder_start()


def test_bart_is_written_for_nothing_else():
    """What the family cannot tell keeps a shape out of it."""
    family = FAMILIES["bart"]
    shape = recipe("bart").model.shape(100)
    assert family.objections(shape, set(), 1) == []
    for key, value in {"decoder": 0, "eps": 1e-12, "token_head": "bias", "position_offset": 0, "norm": "pre"}.items():
        assert family.objections(shape.model_copy(update={key: value}), set(), 1), key
    assert family.shape_of(family.config_of(shape, 1)) == shape


def test_import_and_export_by_folder(pair, tmp_path):
    """A copy of the copy is the same folder."""
    _, folder, ours = pair
    ours.save(tmp_path / "one")
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    load(tmp_path / "two").save(tmp_path / "three")
    assert same_bits(weights(folder), weights(tmp_path / "three"))
