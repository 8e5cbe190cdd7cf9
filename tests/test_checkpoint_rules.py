"""Rules run both ways, and config.json says exactly what a shape says."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from networks import heads_of, network_of, shape_of

from maskery.checkpoint.bert import FAMILY as BERT
from maskery.checkpoint.families import FAMILIES, choose
from maskery.checkpoint.family import ACTIVATIONS, FIXED
from maskery.checkpoint.folder import state_of
from maskery.checkpoint.rules import Rule, expand, modern, same
from maskery.checkpoint.state import export_state, import_state
from maskery.errors import CheckpointError
from maskery.model.config import ModelConfig, Shape


@st.composite
def shapes(draw):
    heads = draw(st.integers(1, 3))
    width = 2 * heads * draw(st.integers(1, 3))
    config = ModelConfig(
        layers=draw(st.integers(1, 3)),
        width=width,
        heads=heads,
        feedforward=draw(st.integers(0, 20)),
        embedding=draw(st.sampled_from([0, 0, 0, width, 5])),
        positions=draw(st.sampled_from(["learned", "learned", "learned", "sinusoidal", "none"])),
        max_length=draw(st.integers(1, 40)),
        position_offset=draw(st.sampled_from([0, 0, 1, 2])),
        segments=draw(st.sampled_from([0, 1, 2, 2, 3])),
        norm=draw(st.sampled_from(["post", "post", "post", "pre"])),
        activation=draw(st.sampled_from(["gelu", "gelu_tanh", "relu"])),
        eps=draw(st.sampled_from([1e-12, 1e-5])),
        init_std=draw(st.floats(1e-3, 1)),
        dropout=draw(st.floats(0, 0.5)),
        attention_dropout=draw(st.floats(0, 0.5)),
    )
    return config.shape(draw(st.integers(1, 50)), draw(st.sampled_from(["full", "full", "full", "causal", "packed"])))


@given(shapes(), st.sampled_from(sorted(FAMILIES)), st.sampled_from([None, 0, 1]))
@settings(deadline=None)
def test_a_family_without_objections_says_the_whole_shape(shape, name, pad):
    family = FAMILIES[name]
    if family.objections(shape, [], pad):
        return
    assert family.shape_of(family.config_of(shape, pad)) == shape


@given(shapes(), st.sampled_from([None, 0, 1]))
@settings(deadline=None)
def test_the_chosen_family_has_no_objection_and_our_own_type_has_reasons(shape, pad):
    choice = choose(shape, [], pad)
    if choice.family is None:
        assert choice.reasons
        assert all(family.objections(shape, [], pad) for family in FAMILIES.values())
    else:
        assert not choice.family.objections(shape, [], pad)


@pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)
def test_every_field_of_the_shape_is_in_a_table(family):
    told = {*family.fields, *FIXED, "activation", "embedding", "max_length", "position_offset"}
    assert set(Shape.model_fields) == told


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"embedding": 8}, "embedding 8"),
        ({"positions": "sinusoidal"}, "positions"),
        ({"positions": "none"}, "positions"),
        ({"norm": "pre"}, "norm"),
        ({"segments": 0}, "segments = 0"),
        ({"visibility": "causal"}, "visibility"),
        ({"visibility": "packed"}, "visibility"),
    ],
)
def test_what_bert_cannot_express_is_named(changes, word):
    reasons = choose(shape_of(**changes), [], 0).reasons
    assert len(reasons) == 1
    assert word in reasons[0]


def test_offset_makes_roberta_and_must_follow_the_padding_id():
    shape = shape_of(position_offset=2)
    assert choose(shape, [], 1).name == "roberta"
    assert choose(shape, [], None).name == "roberta"
    assert choose(shape, [], 0).name == "maskery"
    relu = shape_of(position_offset=2, activation="relu")
    assert choose(relu, [], 1).name == "roberta"
    assert choose(relu, ["heads.masked_token.bias"], 1).name == "maskery"


def test_an_activation_has_one_name_on_the_way_out():
    written = {ours: BERT.config_of(shape_of(activation=ours), 0)["hidden_act"] for ours in set(ACTIVATIONS.values())}
    assert written == {"gelu": "gelu", "gelu_tanh": "gelu_new", "relu": "relu"}


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"hidden_size": "wide"}, "hidden_size = 'wide'"),
        ({"num_attention_heads": 5}, "heads 5"),
        ({"num_hidden_layers": 0}, "num_hidden_layers = 0"),
        ({"max_position_embeddings": 0}, "max_position_embeddings"),
        ({"hidden_dropout_prob": float("nan")}, "hidden_dropout_prob"),
        ({"hidden_act": "silu"}, "hidden_act = 'silu'"),
        ({"hidden_act": ["gelu"]}, "hidden_act"),
        ({"is_decoder": True}, "is_decoder"),
        ({"position_embedding_type": "relative_key"}, "position_embedding_type"),
        ({"pruned_heads": {"0": [1]}}, "pruned_heads"),
    ],
)
def test_a_config_that_makes_no_model_names_its_key(change, word):
    with pytest.raises(CheckpointError) as caught:
        BERT.shape_of(change)
    assert word in caught.value.cause
    assert caught.value.repair


@pytest.mark.parametrize("name", [each.name for family in FAMILIES.values() for each in family.classes])
def test_rules_of_every_class_run_both_ways(name):
    family = BERT if name.startswith("Bert") else FAMILIES["roberta"]
    chosen = next(each for each in family.classes if each.name == name)
    shape = shape_of(position_offset=2 if family.offset_from_pad else 0)
    wanted = chosen.ours(shape.layers)
    heads = heads_of(shape, {each.split(".")[1] for each in wanted if each.startswith("heads.")})
    state = state_of(network_of(shape, pooler="pooler.weight" in wanted), heads)
    assert set(state) == wanted
    theirs, rest, widened = export_state(family, chosen, state, shape.layers, None)
    assert rest == {}
    back = import_state(family, chosen, theirs, shape.layers)
    assert (back.unused, back.missing, widened) == ([], {}, {})
    assert back.state.keys() == state.keys()
    assert all(torch.equal(back.state[each], state[each]) for each in state)


def test_query_key_and_value_are_the_slices_of_one_parameter():
    rule = Rule("x", ("q", "k", "v"), "stack3")
    tensor = torch.arange(12.0).view(3, 2, 2)
    parts = rule.write(tensor)
    assert torch.equal(parts["k"], tensor[1])
    assert torch.equal(rule.read(parts), tensor)
    with pytest.raises(CheckpointError, match="query, key and value differ"):
        rule.read({**parts, "v": torch.zeros(3, 2)})


def test_patterns_and_old_names():
    assert [rule.theirs[0] for rule in expand([same("a.{layer}", "b.{layer}"), same("c", "d")], 2)] == [
        "b.0",
        "b.1",
        "d",
    ]
    assert modern("embeddings.LayerNorm.gamma") == "embeddings.LayerNorm.weight"
    assert modern("embeddings.LayerNorm.beta") == "embeddings.LayerNorm.bias"
    assert modern("alphabeta") == "alphabeta"
