"""Parameter counts that the literature knows, to the last one. Nothing is allocated: the networks have no numbers."""

from __future__ import annotations

import pytest
import torch
from test_albert_counts import ABLATION
from torch import nn

from maskery.model.config import SIZES, ModelConfig
from maskery.model.transformer import Network
from maskery.objectives.config import OBJECTIVES
from maskery.recipes.recipe import recipe
from maskery.system import System

BASE, LARGE = SIZES["base"], SIZES["large"]
XLARGE = {"layers": 24, "width": 2048, "heads": 32}
ROBERTA = {"position_offset": 2, "segments": 1}
ALBERT = {"embedding": 128, "share": "all", "activation": "gelu_tanh"}
NARROW = {"layers": 12, "width": 256, "heads": 4, "embedding": 128}
DISTILBERT = {"layers": 6, "width": 768, "heads": 12, "segments": 0}
TINY = {"layers": 4, "width": 312, "heads": 12, "feedforward": 1200}
NEZHA = BASE | {"positions": "nezha"}
GPT = BASE | {"segments": 0, "embedding_norm": "no", "token_head": "plain"}
GPT2 = GPT | {"norm": "pre", "max_length": 1024}
PLAIN = {"pooler": False}
WRITES = PLAIN | {"asked": ("next_token",)}
BOTH = {"asked": ("masked_token", "next_sentence")}

COUNTS = {
    "BERT-tiny": (4_385_920, 30522, SIZES["tiny"], {}),
    "BERT-mini": (11_170_560, 30522, SIZES["mini"], {}),
    "BERT-small": (28_763_648, 30522, SIZES["small"], {}),
    "BERT-medium": (41_373_184, 30522, SIZES["medium"], {}),
    "BERT-base": (109_482_240, 30522, BASE, {}),
    "BERT-base with heads": (110_106_428, 30522, BASE, BOTH),
    "BERT-base cased": (108_310_272, 28996, BASE, {}),
    "BERT-large": (335_141_888, 30522, LARGE, {}),
    "BERT-large with heads": (336_226_108, 30522, LARGE, BOTH),
    "BERT-large cased": (333_579_264, 28996, LARGE, {}),
    "BERT-base-Chinese": (102_267_648, 21128, BASE, {}),
    "MacBERT-large": (325_522_432, 21128, LARGE, {}),
    "mBERT": (177_853_440, 119547, BASE, {}),
    "BERT-xlarge": (1_275_291_648, 30000, XLARGE, {}),
    "BERT-base of ALBERT's paper": (109_081_344, 30000, BASE, {}),
    "RoBERTa-base": (124_055_040, 50265, BASE | ROBERTA, PLAIN),
    "RoBERTa-base with pooler": (124_645_632, 50265, BASE | ROBERTA, {}),
    "RoBERTa-base with head": (124_697_433, 50265, BASE | ROBERTA, PLAIN | {"asked": ("masked_token",)}),
    "RoBERTa-large": (354_310_144, 50265, LARGE | ROBERTA, PLAIN),
    "RoBERTa-large with pooler": (355_359_744, 50265, LARGE | ROBERTA, {}),
    "ALBERT-base": (11_683_584, 30000, BASE | ALBERT, {}),
    "ALBERT-large": (17_683_968, 30000, LARGE | ALBERT, {}),
    "ALBERT-xlarge": (58_724_864, 30000, XLARGE | ALBERT | {"heads": 16}, {}),
    "ALBERT-xxlarge": (222_595_584, 30000, {"layers": 12, "width": 4096, "heads": 64} | ALBERT, {}),
    "ELECTRA-small": (13_483_008, 30522, NARROW, PLAIN),
    "ELECTRA-small with head": (13_549_057, 30522, NARROW, PLAIN | {"asked": ("replaced_token",)}),
    "ELECTRA-base": (108_891_648, 30522, BASE, PLAIN),
    "ELECTRA-base with head": (109_483_009, 30522, BASE, PLAIN | {"asked": ("replaced_token",)}),
    "ELECTRA-large": (334_092_288, 30522, LARGE, PLAIN),
    "DistilBERT": (66_362_880, 30522, DISTILBERT, PLAIN),
    "TinyBERT 4 layers": (14_350_248, 30522, TINY, {}),
    "TinyBERT 6 layers": (66_955_008, 30522, {"layers": 6, "width": 768, "heads": 12}, {}),
    "NEZHA-base": (101_874_432, 21128, NEZHA, {}),
    "GPT": (116_534_784, 40478, GPT, WRITES),
    "GPT-2": (124_439_808, 50257, GPT2, WRITES),
    "GPT-2 medium": (354_823_168, 50257, GPT2 | LARGE, WRITES),
    "GPT-2 large": (774_030_080, 50257, GPT2 | {"layers": 36, "width": 1280, "heads": 20}, WRITES),
    "GPT-2 XL": (1_557_611_200, 50257, GPT2 | {"layers": 48, "width": 1600, "heads": 25}, WRITES),
}
"""Name -> count, vocabulary, sizes, and what stands on the network: with a pooler and no head unless it says so."""


def distinct(*modules):
    return sum(each.numel() for each in {id(each): each for module in modules for each in module.parameters()}.values())


def counted(vocabulary, *, pooler=True, asked=(), **sizes):
    shape = ModelConfig(**sizes).shape(vocabulary)
    with torch.device("meta"):
        return distinct(Network(shape, pooler=pooler), *(OBJECTIVES.get(name)().head(shape) for name in asked))


@pytest.mark.parametrize("name", COUNTS)
def test_published_totals(name):
    expected, vocabulary, sizes, options = COUNTS[name]
    assert counted(vocabulary, **sizes, **options) == expected


@pytest.mark.parametrize(("embedding", "share"), ABLATION)
def test_albert_by_embedding_and_sharing(embedding, share):
    sizes = BASE | {"embedding": embedding, "share": share}
    assert (counted(30000, pooler=False, **sizes), counted(30000, **sizes)) == ABLATION[embedding, share]


GENERATORS = {
    "small": (647_162, {"model.width": 256, "model.heads": 4, "model.embedding": 128, "model.generator.width": 0.25}),
    "base": (9_903_418, {}),
}


@pytest.mark.parametrize("name", GENERATORS)
def test_what_a_generator_adds(name):
    """Its layers, its projection and its head; the embeddings are the model's."""
    expected, changes = GENERATORS[name]
    with torch.device("meta"):
        system = System(recipe("electra", changes), 30522)
        alone = System(recipe("electra", changes), 30522)
    del alone.networks["generator"], alone.heads["masked_token"]
    assert distinct(system) - distinct(alone) == expected
    assert distinct(alone) == COUNTS[f"ELECTRA-{name} with head"][0]


def test_tinybert_with_the_matrix_to_its_teacher():
    with torch.device("meta"):
        network = Network(ModelConfig(**TINY).shape(30522), pooler=True)
        assert distinct(network, nn.Linear(312, 768)) == 14_590_632


def test_a_layer_and_its_halves():
    """12 H^2 a layer: attention a third, feed-forward two thirds; norms and biases on top."""
    with torch.device("meta"):
        layer = Network(ModelConfig(**BASE).shape(30000), pooler=False).layers[0]
    assert distinct(layer) == 7_087_872
    matrices = {name: each.numel() for name, each in layer.named_parameters() if each.ndim > 1 and "bias" not in name}
    attention = sum(size for name, size in matrices.items() if name.startswith("attention"))
    assert (attention, sum(matrices.values()) - attention) == (2_359_296, 4_718_592)
    assert sum(matrices.values()) == 7_077_888
    assert 12 * sum(matrices.values()) == 84_934_656


def test_smaller_by():
    large, shared = COUNTS["BERT-large"][0], COUNTS["ALBERT-large"][0]
    assert round(large / shared, 2) == 18.95
    every, none = ABLATION[768, "all"][1], ABLATION[768, "none"][1]
    assert round(100 * every / none, 1) == 28.5
    assert round(100 * COUNTS["ALBERT-xxlarge"][0] / large) == 66
