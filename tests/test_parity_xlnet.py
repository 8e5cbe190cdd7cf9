"""XLNet here and in transformers: the same weights give the same numbers, in one stream and in two, with a memory and
without, read from either end; and folders come back bitwise."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
import torch
import transformers
from oracle import same_bits, weights

from maskery.batches import Batch, Memory
from maskery.checkpoint.families import FAMILIES
from maskery.checkpoint.load import load
from maskery.errors import CheckpointError
from maskery.model.transformer import inputs_of

CLASSES = {
    "XLNetLMHeadModel": "permuted_token",
    "XLNetForSequenceClassification": "sequence_class_tanh",
    "XLNetForMultipleChoice": "choice_tanh",
    "XLNetForTokenClassification": "token_class",
    "XLNetForQuestionAnsweringSimple": "answer_span",
    "XLNetModel": "",
}
CLOSE = {"atol": 1e-5, "rtol": 1e-5}
SIZES = {"vocab_size": 40, "d_model": 24, "n_layer": 3, "n_head": 3, "d_inner": 32, "mem_len": 5}
PAST, SLOTS, ROWS = 5, 11, 4


def made(name, **config):
    torch.manual_seed(0)
    model = getattr(transformers, name)(transformers.XLNetConfig(**SIZES, **config))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(0, 0.3)
    return model.eval()


@pytest.fixture(scope="module", params=CLASSES)
def pair(request, tmp_path_factory):
    labels = {"num_labels": 5} if request.param.endswith(("SequenceClassification", "TokenClassification")) else {}
    theirs, folder = made(request.param, **labels), tmp_path_factory.mktemp(request.param)
    theirs.save_pretrained(folder)
    return theirs, folder, load(folder)


def rows(side, seed=0):
    draw = torch.Generator().manual_seed(seed)
    ids = torch.randint(0, 40, (ROWS, SLOTS), generator=draw)
    mask = torch.ones_like(ids)
    for row, gone in enumerate((0, 3, 1, 6)):
        if side == "left":
            mask[row, :gone] = 0
        elif side == "right" and gone:
            mask[row, -gone:] = 0
    return ids, mask, torch.randint(0, 4, ids.shape, generator=draw)


@pytest.mark.parametrize("side", ["none", "left", "right"])
@torch.no_grad()
def test_states_layers_and_attentions(pair, side):
    theirs, _, ours = pair
    ids, mask, segments = rows(side)
    base = getattr(theirs, "transformer", theirs)
    expected = base(
        ids, attention_mask=mask, token_type_ids=segments, output_hidden_states=True, output_attentions=True
    )
    hidden, real = ours(ids, mask, segments, layers=True, attentions=True), mask.unsqueeze(2)
    for mine, other in zip(hidden.layers, expected.hidden_states, strict=True):
        torch.testing.assert_close(mine * real, other * real, **CLOSE)
    torch.testing.assert_close(ours(ids, mask, segments).last, hidden.last, **CLOSE)
    both = real.unsqueeze(1) * mask[:, None, None, :]
    for mine, other in zip(hidden.attentions, expected.attentions, strict=True):
        torch.testing.assert_close(mine * both, other * both, **CLOSE)


@torch.no_grad()
def test_no_segments_are_one_segment(pair):
    theirs, _, ours = pair
    ids, _, _ = rows("none")
    base = getattr(theirs, "transformer", theirs)
    torch.testing.assert_close(ours(ids).last, base(ids).last_hidden_state, **CLOSE)


@torch.no_grad()
def test_heads(pair):
    theirs, _, ours = pair
    name = CLASSES[type(theirs).__name__]
    assert list(ours.heads) == ([name] if name else [])
    if not name:
        return
    ids, mask, segments = rows("left")
    given = {"input_ids": ids, "attention_mask": mask, "token_type_ids": segments}
    if name == "choice_tanh":
        given = {key: value.unsqueeze(0) for key, value in given.items()}
    said = theirs(**given)
    mine = ours.scores(name, ids, mask, segments)
    if name == "answer_span":
        expected = torch.stack((said.start_logits, said.end_logits), 2)
    else:
        expected = said.logits.view(-1, 1) if name == "choice_tanh" else said.logits
    real = mask.unsqueeze(2) if mine.ndim == 3 else 1
    torch.testing.assert_close(mine * real, expected * real, **CLOSE)
    if mine.ndim == 2:
        gone = (mask == 0).sum(1)
        moved = (torch.arange(SLOTS) + gone.unsqueeze(1)) % SLOTS
        right = [each.gather(1, moved) for each in (ids, mask, segments)]
        torch.testing.assert_close(ours.scores(name, *right), mine, **CLOSE, msg="padding on the right")


def permuted(seed=0):
    """A batch in a drawn order with some slots asked; most slots are known from the beginning, and the first that is
    not is a special, which is not asked."""
    draw = torch.Generator().manual_seed(seed)
    ids, _, segments = rows("none", seed)
    order, asked = torch.zeros_like(ids), []
    for row in range(ROWS):
        moving = torch.randperm(SLOTS, generator=draw)[:5]
        order[row, moving] = torch.arange(1, 6)
        asked.append(row * SLOTS + moving[1:].sort().values)
    return Batch(
        step=0,
        rows=torch.arange(ROWS),
        ids=ids,
        length=torch.full((ROWS,), SLOTS),
        segments=segments,
        positions=torch.arange(SLOTS).expand(ROWS, SLOTS),
        original=ids,
        edit=torch.zeros_like(ids).to(torch.uint8),
        slots={"order": order},
        asked=torch.cat(asked),
    )


def given_to_them(batch):
    """The same as masks: a target does not see itself, which their first stream puts right again."""
    order = batch.slots["order"]
    blind = (order[:, :, None] <= order[:, None, :]) & (order[:, None, :] > 0)
    asked = batch.asked.view(ROWS, -1) % SLOTS
    mapping = torch.nn.functional.one_hot(asked, SLOTS).float()
    return {"perm_mask": blind.float(), "target_mapping": mapping, "token_type_ids": batch.segments}


def memory(theirs, seed=3):
    draw = torch.Generator().manual_seed(seed)
    states = [torch.randn(PAST, ROWS, 24, generator=draw) for _ in range(3)]
    mine = Memory(states=tuple(each.transpose(0, 1).contiguous() for each in states), length=torch.full((ROWS,), PAST))
    return states, mine


@pytest.fixture(scope="module")
def writer(tmp_path_factory):
    theirs, folder = made("XLNetLMHeadModel"), tmp_path_factory.mktemp("writer")
    theirs.save_pretrained(folder)
    return theirs, load(folder)


@pytest.mark.parametrize("remembers", [False, True], ids=["alone", "mems"])
@torch.no_grad()
def test_both_streams(writer, remembers):
    theirs, ours = writer
    batch = permuted()
    mems, mine = memory(theirs)
    asked = given_to_them(batch) | ({"mems": mems} if remembers else {})
    expected = theirs(batch.ids, **asked, output_hidden_states=True, output_attentions=True)
    inputs = inputs_of(replace(batch, memory=mine if remembers else None))
    hidden = ours.network(inputs, layers=True, attentions=True)
    streams = zip(expected.hidden_states[::2], expected.hidden_states[1::2], strict=True)
    for layer, (content, query) in enumerate(streams):
        torch.testing.assert_close(hidden.layers[layer], content, **CLOSE)
        torch.testing.assert_close(hidden.predicted.packed_layers[layer].view_as(query), query, **CLOSE)
    head = ours.heads["permuted_token"]
    quick = ours.network(inputs, reads=torch.empty(0, dtype=torch.long))
    for each in (hidden, quick):
        said = head(each.predicted.select(batch.asked), ours.network.embeddings.tokens)
        torch.testing.assert_close(said.view_as(expected.logits), expected.logits, **CLOSE)
    for layer, kept in enumerate(expected.mems):
        torch.testing.assert_close(hidden.memory.states[layer], kept.transpose(0, 1), **CLOSE)


@pytest.mark.parametrize("remembers", [False, True], ids=["alone", "mems"])
@torch.no_grad()
def test_text_that_is_read_from_its_end(remembers, tmp_path):
    """Their `bi_data`: the second half of a batch has the distances of the other direction."""
    theirs = made("XLNetLMHeadModel", bi_data=True)
    plain = made("XLNetLMHeadModel")
    plain.save_pretrained(tmp_path)
    ours, batch = load(tmp_path), permuted(1)
    mems, mine = memory(theirs)
    asked = given_to_them(batch) | ({"mems": mems} if remembers else {})
    positions = batch.positions.clone()
    positions[2:] = positions[2:].flip(1)
    hidden = ours.network(inputs_of(replace(batch, positions=positions, memory=mine if remembers else None)))
    said = ours.heads["permuted_token"](hidden.predicted.packed, ours.network.embeddings.tokens)
    expected = theirs(batch.ids, **asked).logits
    torch.testing.assert_close(said.view_as(expected), expected, **CLOSE)


@torch.no_grad()
def test_gradients_of_both_streams(writer):
    """The same loss moves every parameter in the same way."""
    theirs, ours = writer
    batch = permuted(2)
    with torch.enable_grad():
        expected = theirs(batch.ids, **given_to_them(batch)).logits.square().sum()
        names = dict(theirs.named_parameters())
        gradients = dict(zip(names, torch.autograd.grad(expected, list(names.values())), strict=True))
        hidden = ours.network(inputs_of(batch))
        said = ours.heads["permuted_token"](hidden.predicted.packed, ours.network.embeddings.tokens)
        mine = dict(ours.network.named_parameters())
        found = dict(zip(mine, torch.autograd.grad(said.square().sum(), list(mine.values())), strict=True))
    close = {"atol": 1e-3, "rtol": 1e-4}
    torch.testing.assert_close(found["embeddings.tokens"], gradients["transformer.word_embedding.weight"], **close)
    torch.testing.assert_close(found["embeddings.start"], gradients["transformer.mask_emb"].flatten(), **close)
    for layer in range(3):
        at = f"transformer.layer.{layer}.rel_attn"
        for key, name in (("content", "r_w_bias"), ("place", "r_r_bias"), ("segment", "r_s_bias")):
            torch.testing.assert_close(
                found[f"embeddings.positions.{key}"][layer], gradients[f"{at}.{name}"], **close, msg=name
            )
        turned = found["embeddings.positions.distances"][layer].t().reshape(24, 3, 8)
        torch.testing.assert_close(turned, gradients[f"{at}.r"], **close)
        for place, name in enumerate("qkv"):
            turned = found[f"layers.{layer}.attention.inputs"][place].t().reshape(24, 3, 8)
            torch.testing.assert_close(turned, gradients[f"{at}.{name}"], **close, msg=f"{name} of layer {layer}")


def test_folders_come_back_bitwise(pair, tmp_path):
    theirs, folder, ours = pair
    assert (ours.family, ours.report.missing, ours.report.unused) == ("xlnet", (), ())
    ours.save(tmp_path / "saved")
    assert same_bits(weights(tmp_path / "saved"), weights(folder))
    again = type(theirs).from_pretrained(tmp_path / "saved", output_loading_info=True)
    assert not any(again[1].values())
    kept = json.loads((folder / "config.json").read_text())
    written = json.loads((tmp_path / "saved" / "config.json").read_text())
    for key in ("d_head", "mem_len", "n_head", "ff_activation", "architectures"):
        assert written[key] == kept[key]


def test_what_config_json_says():
    family = FAMILIES["xlnet"]
    published = {"vocab_size": 32000, "d_model": 768, "n_layer": 12, "n_head": 12, "d_inner": 3072, "d_head": 64}
    shape = family.shape_of({**published, "mem_len": None, "ff_activation": "gelu", "dropout": 0.2})
    assert (shape.memory, shape.activation, shape.dropout, shape.attention_dropout) == (0, "gelu", 0.2, 0.2)
    assert family.shape_of(published).memory == 512, "what their class takes where nothing is said"
    for wrong, told in (
        ({"d_head": 32}, "d_head = 32"),
        ({"bi_data": True}, "bi_data = True"),
        ({"clamp_len": 100}, "clamp_len = 100"),
        ({"attn_type": "uni"}, "attn_type = 'uni'"),
    ):
        with pytest.raises(CheckpointError, match=told):
            family.shape_of(published | wrong)
