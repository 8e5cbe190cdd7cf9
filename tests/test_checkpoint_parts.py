"""Parameters by part, and the arithmetic of embeddings."""

from __future__ import annotations

import pytest
import torch
from networks import model_of

from maskery.checkpoint.parts import embedding_arithmetic, parameters_by_part
from maskery.checkpoint.whole import whole_of
from maskery.model.config import SIZES, ModelConfig
from maskery.model.transformer import Network
from maskery.objectives.config import OBJECTIVES
from maskery.recipes.recipe import names, recipe

BASE = SIZES["base"]


def counted(vocabulary, *, pooler=True, asked=(), **sizes):
    shape = ModelConfig(**sizes).shape(vocabulary)
    with torch.device("meta"):
        network = Network(shape, pooler=pooler)
        modules = {name: OBJECTIVES.get(name)().head(shape) for name in asked}
    return parameters_by_part(network, modules)


def test_parts_add_up():
    parts = counted(30522, asked=("masked_token", "next_sentence"), **BASE)
    assert parts == {
        "total": 110_106_428,
        "encoder": 108_891_648,
        "decoder": 0,
        "pooler": 590_592,
        "heads": 624_188,
        "generator": 0,
    }


def test_a_generator_counts_what_it_adds():
    model = model_of("masked_token")
    generator = torch.nn.Module()
    generator.borrowed = model.network.embeddings.tokens
    generator.own = torch.nn.Parameter(torch.zeros(3, 4))
    parts = parameters_by_part(model.network, model.heads, generator)
    assert parts["generator"] == 12
    assert parts["total"] == parts["encoder"] + parts["heads"] + 12


def test_one_layer_and_its_arithmetic():
    one, two = (counted(30000, layers=layers, width=768, heads=12)["total"] for layers in (1, 2))
    assert two - one == 7_087_872


def test_embedding_arithmetic():
    def arithmetic(embedding):
        return embedding_arithmetic(ModelConfig(width=768, heads=12, embedding=embedding).shape(30000))

    assert arithmetic(0)["total"] == 23_040_000
    assert arithmetic(0)["line"] == "30,000 x 768 = 23,040,000"
    assert arithmetic(128)["total"] == 3_938_304
    assert arithmetic(100)["total"] == 3_076_800
    assert "3,938,304" in arithmetic(128)["line"]
    assert "difference 19,101,696" in arithmetic(128)["line"]


SHAPES = {
    "albert": {"model.share": "all", "model.embedding": 16},
    "groups": {"model.share": "all", "model.groups": 2, "model.layers": 4},
    "attention": {"model.share": "attention", "model.norm": "pre"},
    "feedforward": {"model.share": "feedforward", "model.positions": "shaw"},
    "t5": {"model.positions": "t5", "model.tasks": 3, "model.segments": 0},
    "generator": {"model.generator.width": 0.5, "objectives.replaced_token.weight": 50.0},
}


@pytest.mark.parametrize("name", [*SHAPES, *names()])
def test_the_parts_of_a_network_are_all_there_is(name):
    made = recipe(name if name in names() else "bert", SHAPES.get(name, {}) if name not in names() else {}, size="tiny")
    whole = whole_of(made, 1000)
    parts, beside = whole.parts(), whole.generator.parts() if whole.generator else []
    sums = whole.parameters()
    assert sum(part.count for part in [*parts, *beside]) == sums["total"]
    assert sum(part.count for part in parts if part.of in ("embeddings", "layers")) == sums["encoder"]
    assert sum(part.count for part in parts if part.of == "decoder") == sums["decoder"]
    assert (sums["decoder"] > 0) == (made.model.decoder > 0)
    assert sum(part.count for part in parts if part.of == "heads") == sums["heads"]
    assert sum(part.count for part in beside) == sums["generator"]
    assert whole.own == sums["total"] - sums["generator"]
    layers = [part for part in parts if part.of == "layers" and part.name != "last norm"]
    absent = {"attention norm": 0 if made.model.first_norm else 1}  # ModernBERT's first layer has none
    assert {part.held * part.used + absent.get(part.name, 0) for part in layers} == {made.model.layers}


def test_what_is_shared_is_held_once():
    def held(**changes):
        made = recipe("bert", {f"model.{key}": value for key, value in changes.items()}, size="medium")
        parts = {part.name: part for part in whole_of(made, 1000).parts()}
        return {half: (parts[half].held, parts[half].used) for half in ("attention", "feed-forward")}

    assert held() == {"attention": (8, 1), "feed-forward": (8, 1)}
    assert held(share="all") == {"attention": (1, 8), "feed-forward": (1, 8)}
    assert held(share="all", groups=2) == {"attention": (2, 4), "feed-forward": (2, 4)}
    assert held(share="attention") == {"attention": (1, 8), "feed-forward": (8, 1)}
    assert held(share="feedforward", groups=4) == {"attention": (8, 1), "feed-forward": (4, 2)}


def test_the_parts_of_bert_base():
    parts = {part.name: part.count for part in whole_of(recipe("bert"), 30522).parts()}
    assert parts == {
        "tokens": 30522 * 768,
        "segments": 2 * 768,
        "positions": 512 * 768,
        "norm": 2 * 768,
        "attention": 12 * 4 * (768 * 768 + 768),
        "attention norm": 12 * 2 * 768,
        "feed-forward": 12 * (2 * 768 * 3072 + 3072 + 768),
        "feed-forward norm": 12 * 2 * 768,
        "pooler": 768 * 768 + 768,
        "masked_token": 622_650,
        "next_sentence": 1_538,
    }
