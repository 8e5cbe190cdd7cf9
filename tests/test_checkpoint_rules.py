"""Rules run both ways, and config.json says exactly what a shape says."""

from __future__ import annotations

import pytest
import torch
import transformers
from hypothesis import given, settings
from hypothesis import strategies as st
from networks import FAMILY_SHAPES, heads_of, model_of, network_of, shape_of
from oracle import same_bits, weights

from maskery.checkpoint.bert import FAMILY as BERT
from maskery.checkpoint.families import FAMILIES, choose
from maskery.checkpoint.family import ACTIVATIONS
from maskery.checkpoint.folder import held_by, state_of
from maskery.checkpoint.load import load
from maskery.checkpoint.rules import Rule, expand, modern, same
from maskery.checkpoint.state import export_state, import_state
from maskery.errors import CheckpointError
from maskery.model.config import ModelConfig, Shape

OF_ROBERTA = ("xlm-roberta", "camembert")
"""Families that differ from it in the tokenizer alone, so that only a folder's own name tells them apart."""
CLASSES = [(family, each) for family in FAMILIES.values() for each in family.classes]


@st.composite
def shapes(draw):
    heads = draw(st.integers(1, 3))
    width = 2 * heads * draw(st.integers(1, 3))
    layers = draw(st.integers(1, 4))
    share = draw(st.sampled_from(["none", "none", "all", "attention", "feedforward"]))
    config = ModelConfig(
        layers=layers,
        share=share,
        groups=1 if share == "none" else draw(st.sampled_from([n for n in (1, 2, 4) if layers % n == 0])),
        clip=draw(st.sampled_from([64, 64, 3])),
        tasks=draw(st.sampled_from([0, 0, 0, 3, 5])),
        width=width,
        heads=heads,
        feedforward=draw(st.integers(0, 20)),
        embedding=draw(st.sampled_from([0, 0, 0, width, 5])),
        positions=draw(st.sampled_from(["learned", "learned", "learned", "nezha", "sinusoidal", "none"])),
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


FREE = {
    "layers": st.sampled_from([2, 4, 6]),
    "width": st.sampled_from([8, 16]),
    "feedforward": st.integers(1, 90),
    "eps": st.sampled_from([1e-12, 1e-5]),
    "init_std": st.floats(1e-3, 1),
    "dropout": st.floats(0, 0.5),
    "attention_dropout": st.floats(0, 0.5),
    **{name: st.booleans() for name in ("attention_bias", "feedforward_bias", "norm_bias", "head_bias")},
    "theta": st.floats(2, 1e6),
    "local_theta": st.floats(2, 1e6),
    "local": st.sampled_from([2, 6]),
    "global_every": st.integers(2, 4),
}


@pytest.mark.parametrize("name", FAMILIES)
@given(data=st.data())
@settings(deadline=None, max_examples=20)
def test_a_family_says_all_that_its_own_shapes_can_be(name, data):
    family = FAMILIES[name]
    free = st.fixed_dictionaries({each: values for each, values in FREE.items() if each in family.fields})
    shape = shape_of(**{**FAMILY_SHAPES[name], "max_length": data.draw(st.integers(1, 40)), **data.draw(free)})
    assert family.objections(shape, [], None) == []
    assert family.shape_of(family.config_of(shape, None)) == shape


def test_windows_that_no_layer_has_are_none():
    modern = FAMILIES["modernbert"]
    for changes in ({"layers": 1}, {"global_every": 1}):
        shape = shape_of(**{**FAMILY_SHAPES["modernbert"], **changes})
        assert modern.objections(shape, [], None) == ["local = 6, and no layer is local"]
    none = shape_of(**{**FAMILY_SHAPES["modernbert"], "local": 0, "local_theta": 0.0})
    assert modern.objections(none, [], None) == []
    assert modern.shape_of(modern.config_of(none, None)) == none


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
    assert set(Shape.model_fields) == family.told()
    assert not set(family.fields) & set(family.fixed)
    assert set(family.fields.values()) <= set(family.defaults)


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"embedding": 8, "activation": "relu", "tasks": 2}, "tasks"),
        ({"positions": "sinusoidal"}, "positions"),
        ({"positions": "none"}, "positions"),
        ({"norm": "pre", "embedding_norm": "yes"}, "norm"),
        ({"segments": 0, "eps": 1e-5}, "segments = 0"),
        ({"share": "attention"}, "share = 'attention'"),
        ({"positions": "t5"}, "positions"),
        ({"clip": 5}, "clip = 5"),
        ({"visibility": "packed"}, "visibility"),
    ],
)
def test_what_no_family_can_express_is_named(changes, word):
    reasons = choose(shape_of(**changes), [], 0).reasons
    assert len(reasons) == 1
    assert word in reasons[0]


def test_the_reasons_are_those_of_the_family_that_was_meant():
    """A network that sees what stands before is a GPT, and told what it lacks for one."""
    reasons = choose(shape_of(visibility="causal"), [], 0).reasons
    assert all(reason.startswith("gpt2 cannot express: ") for reason in reasons)
    assert [reason.split()[3] for reason in reasons] == ["norm", "embedding_norm", "token_head", "segments"]


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


@pytest.mark.parametrize("name", FAMILIES)
def test_each_family_is_chosen_for_its_own_shape(name):
    shape = shape_of(**FAMILY_SHAPES[name])
    assert choose(shape, [], None).name == ("roberta" if name in OF_ROBERTA else name)
    assert choose(shape, [], None, prefer=name).name == name
    if name in ("bert", "roberta", "electra", *OF_ROBERTA):
        return
    others = [each for each in FAMILIES if each != name]
    assert all(FAMILIES[each].objections(shape, [], None) for each in others)


def test_the_family_whose_class_holds_most():
    """Where embeddings are as wide as the layers, BERT and ELECTRA are the same encoder: the heads decide."""
    shape = shape_of()
    encoder = set(state_of(network_of(shape), {}))
    assert choose(shape, encoder, 0).name == "bert"
    assert choose(shape, encoder | {"heads.replaced_token.dense.weight"}, 0).name == "bert"
    head = {f"heads.replaced_token.{each}" for each in ("dense.weight", "dense.bias", "answer.weight", "answer.bias")}
    assert choose(shape, encoder | head, 0).name == "electra"
    assert choose(shape, encoder | head, 0, prefer="bert").name == "bert"
    assert choose(shape, encoder, 0, prefer="ernie").name == "ernie"
    assert choose(shape, encoder, 0, prefer="albert").name == "bert"
    pooled = encoder | {"pooler.weight", "pooler.bias", "heads.sentence_order.dense.weight"}
    assert choose(shape, pooled, 0).name == "bert"


@pytest.mark.parametrize(
    ("name", "change", "word"),
    [
        ("albert", {"inner_group_num": 2}, "inner_group_num = 2"),
        ("albert", {"num_hidden_layers": 12, "num_hidden_groups": 5}, "groups 5"),
        ("albert", {"num_hidden_groups": 0}, "num_hidden_groups"),
        ("electra", {"embedding_size": "wide"}, "embedding_size = 'wide'"),
        ("electra", {"architectures": ["ElectraForMultipleChoice"], "summary_type": "mean"}, "summary_type"),
        ("electra", {"architectures": ["ElectraForMultipleChoice"], "summary_activation": None}, "summary_activation"),
        ("distilbert", {"activation": "silu"}, "activation = 'silu'"),
        ("distilbert", {"n_heads": 5}, "heads 5"),
        ("distilbert", {"hidden_size": 7}, "width 7"),
        ("nezha", {"max_relative_position": 0}, "max_relative_position"),
        ("nezha", {"use_relative_position": False}, "use_relative_position"),
        ("ernie", {"use_task_id": True, "task_type_vocab_size": -1}, "task_type_vocab_size"),
        ("gpt2", {"n_embd": "wide"}, "n_embd = 'wide'"),
        ("gpt2", {"n_positions": 0}, "n_positions"),
        ("gpt2", {"add_cross_attention": True}, "add_cross_attention"),
        ("bart", {"d_model": "wide"}, "d_model = 'wide'"),
        ("bart", {"decoder_layers": -1}, "decoder_layers = -1"),
        ("openai-gpt", {"afn": "gelu_new"}, "afn = 'gelu_new'"),
        ("openai-gpt", {"num_attention_heads": 5}, "heads 5"),
    ],
)
def test_a_config_of_each_family_that_makes_no_model(name, change, word):
    with pytest.raises(CheckpointError) as caught:
        FAMILIES[name].shape_of(change)
    assert word in caught.value.cause
    assert caught.value.repair


def test_what_a_class_asks_is_asked_of_that_class_alone():
    electra = FAMILIES["electra"]
    assert electra.shape_of({"summary_type": "mean", "architectures": ["ElectraForPreTraining"]}).embedding == 128


def test_albert_of_one_width_has_a_matrix_that_changes_nothing(tmp_path):
    """Its projection is there even then; ours is not."""
    model = model_of("masked_token", share="all", activation="gelu_tanh")
    assert model.save(tmp_path / "m").family == "albert"
    held = weights(tmp_path / "m")
    assert torch.equal(held["albert.encoder.embedding_hidden_mapping_in.weight"], torch.eye(16))
    again = load(tmp_path / "m")
    assert same_bits(again.network.state_dict(), model.network.state_dict())
    theirs = transformers.AlbertForMaskedLM.from_pretrained(tmp_path / "m").eval()
    ids = torch.arange(5, 14).view(1, -1)
    with torch.no_grad():
        assert torch.allclose(theirs(ids).logits, model.logits(ids), atol=1e-5)


@pytest.mark.parametrize(
    ("family", "chosen"), CLASSES, ids=["-".join((each.name, *map(str, each.says.values()))) for _, each in CLASSES]
)
def test_rules_of_every_class_run_both_ways(family, chosen):
    shape = shape_of(**FAMILY_SHAPES[family.model_type])
    assert family.objections(shape, [], None) == []
    wanted = chosen.ours(shape)
    heads = heads_of(shape, {each.split(".")[1] for each in wanted if each.startswith("heads.")})
    network = network_of(shape, pooler="pooler.weight" in wanted)
    state = state_of(network, heads)
    assert held_by(network, heads) == wanted
    theirs, rest, widened = export_state(family, chosen, state, shape, None)
    assert rest == {}
    back = import_state(family, chosen, theirs, shape)
    assert (back.unused, back.missing, widened) == ([], {}, {})
    assert back.state.keys() == state.keys()
    assert all(torch.equal(back.state[each], state[each]) for each in state)


def test_matrices_that_stand_the_other_way_round():
    """GPT-2's: y = x W, and query, key and value beside each other in W."""
    draws = torch.Generator().manual_seed(0)
    x, w, b = (torch.randn(*size, generator=draws) for size in ((5, 4), (4, 12), (12,)))
    ours, bias = Rule("x", ("w",), "columns3"), Rule("x_bias", ("b",), "split3")
    tensor = ours.read({"w": w})
    parts = torch.stack([x @ matrix.t() for matrix in tensor]) + bias.read({"b": b})[:, None]
    torch.testing.assert_close(torch.cat(tuple(parts), 1), x @ w + b)
    assert torch.equal(ours.write(tensor)["w"], w)
    assert torch.equal(bias.write(bias.read({"b": b}))["b"], b)
    plain = Rule("x", ("w",), "transpose")
    assert torch.equal(plain.read({"w": w}), w.t())
    assert torch.equal(plain.write(w.t())["w"], w)
    assert ours.read({"w": torch.zeros(4, 11)}).shape == (11, 4), "of no use, and told by its size"


def test_query_key_and_value_are_the_slices_of_one_parameter():
    rule = Rule("x", ("q", "k", "v"), "stack3")
    tensor = torch.arange(12.0).view(3, 2, 2)
    parts = rule.write(tensor)
    assert torch.equal(parts["k"], tensor[1])
    assert torch.equal(rule.read(parts), tensor)
    with pytest.raises(CheckpointError, match="query, key and value differ"):
        rule.read({**parts, "v": torch.zeros(3, 2)})


def test_patterns_and_old_names():
    rules = [same("a.{layer}", "b.{layer}"), same("a.{layer}", "g.{group}"), same("c", "d")]
    shape = shape_of(layers=4, share="all", groups=2)
    assert [(rule.ours, rule.theirs[0]) for rule in expand(rules, shape)] == [
        *[(f"a.{layer}", f"b.{layer}") for layer in range(4)],
        ("a.0", "g.0"),
        ("a.2", "g.1"),
        ("c", "d"),
    ]
    optional = [same("embeddings.projection.weight", "p"), same("embeddings.tasks", "t")]
    assert expand(optional, shape_of()) == ()
    assert len(expand(optional, shape_of(embedding=8, tasks=2))) == 2
    assert modern("embeddings.LayerNorm.gamma") == "embeddings.LayerNorm.weight"
    assert modern("embeddings.LayerNorm.beta") == "embeddings.LayerNorm.bias"
    assert modern("alphabeta") == "alphabeta"
