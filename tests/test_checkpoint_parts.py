"""Parameter counts that the literature knows, to the last one."""

from __future__ import annotations

import pytest
import torch
from networks import model_of

from maskery.checkpoint.parts import embedding_arithmetic, memory, operations, parameters_by_part
from maskery.model.config import SIZES, ModelConfig
from maskery.model.transformer import Network
from maskery.objectives.config import OBJECTIVES

BASE, LARGE = SIZES["base"], SIZES["large"]
XLARGE = {"layers": 24, "width": 2048, "heads": 32}
ROBERTA = {"position_offset": 2, "segments": 1}


def counted(vocabulary, *, pooler=True, asked=(), **sizes):
    shape = ModelConfig(**sizes).shape(vocabulary)
    with torch.device("meta"):
        network = Network(shape, pooler=pooler)
        modules = {name: OBJECTIVES.get(name)().head(shape) for name in asked}
    return parameters_by_part(network, modules)


@pytest.mark.parametrize(
    ("expected", "vocabulary", "sizes", "options"),
    [
        (4_385_920, 30522, SIZES["tiny"], {}),
        (11_170_560, 30522, SIZES["mini"], {}),
        (28_763_648, 30522, SIZES["small"], {}),
        (41_373_184, 30522, SIZES["medium"], {}),
        (109_482_240, 30522, BASE, {}),
        (110_106_428, 30522, BASE, {"asked": ("masked_token", "next_sentence")}),
        (108_310_272, 28996, BASE, {}),
        (335_141_888, 30522, LARGE, {}),
        (336_226_108, 30522, LARGE, {"asked": ("masked_token", "next_sentence")}),
        (333_579_264, 28996, LARGE, {}),
        (102_267_648, 21128, BASE, {}),
        (325_522_432, 21128, LARGE, {}),
        (177_853_440, 119547, BASE, {}),
        (1_275_291_648, 30000, XLARGE, {}),
        (109_081_344, 30000, BASE, {}),
        (124_055_040, 50265, BASE | ROBERTA, {"pooler": False}),
        (124_645_632, 50265, BASE | ROBERTA, {}),
        (124_697_433, 50265, BASE | ROBERTA, {"pooler": False, "asked": ("masked_token",)}),
        (354_310_144, 50265, LARGE | ROBERTA, {"pooler": False}),
        (355_359_744, 50265, LARGE | ROBERTA, {}),
        (14_350_248, 30522, {"layers": 4, "width": 312, "heads": 12, "feedforward": 1200}, {}),
        (66_955_008, 30522, {"layers": 6, "width": 768, "heads": 12}, {}),
    ],
)
def test_published_totals(expected, vocabulary, sizes, options):
    assert counted(vocabulary, **sizes, **options)["total"] == expected


def test_parts_add_up():
    parts = counted(30522, asked=("masked_token", "next_sentence"), **BASE)
    assert parts == {
        "total": 110_106_428,
        "encoder": 108_891_648,
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
    assert operations(ModelConfig(**BASE).shape(30000), 0)["forward_per_token"] == 2 * 84_934_656


def test_embedding_arithmetic():
    def arithmetic(embedding):
        return embedding_arithmetic(ModelConfig(width=768, heads=12, embedding=embedding).shape(30000))

    assert arithmetic(0)["total"] == 23_040_000
    assert arithmetic(0)["line"] == "30,000 x 768 = 23,040,000"
    assert arithmetic(128)["total"] == 3_938_304
    assert arithmetic(100)["total"] == 3_076_800
    assert "3,938,304" in arithmetic(128)["line"]
    assert "difference 19,101,696" in arithmetic(128)["line"]


def test_memory_and_operations_in_use():
    assert memory(1000) == {"weights_bytes": 4000, "training_bytes": 16000}
    shape = ModelConfig(layers=2, width=8, heads=2).shape(10)
    found = operations(shape, 16)
    assert found["forward_per_token"] == 2 * (2 * 12 * 64 + 4 * 16 * 8)
    assert found["training_per_token"] == 3 * found["forward_per_token"]
