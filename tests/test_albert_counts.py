"""ALBERT's published sizes and its tables of embedding width and sharing, as exact numbers of parameters."""

import json
import sys
from pathlib import Path

import pytest
import torch

from maskery.checkpoint.parts import embedding_arithmetic, parameters_by_part
from maskery.cli import main
from maskery.model.config import ModelConfig
from maskery.model.cost import forward_flops
from maskery.model.transformer import Network
from maskery.recipes.recipe import recipe

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks import albert_sizes  # noqa: E402

VOCABULARY = 30_000


def parameters(**changes):
    """Without and with the pooler."""
    shape = recipe("albert").model.model_copy(update=changes).shape(VOCABULARY)
    return counted(shape)


def counted(shape):
    with torch.device("meta"):
        parts = parameters_by_part(Network(shape, pooler=True), {})
    return parts["encoder"], parts["total"]


SIZES = {
    "base": ({}, 11_683_584),
    "large": ({"layers": 24, "width": 1024, "heads": 16}, 17_683_968),
    "xlarge": ({"layers": 24, "width": 2048, "heads": 16}, 58_724_864),
    "xxlarge": ({"layers": 12, "width": 4096, "heads": 64}, 222_595_584),
}
BERT_LARGE = 335_141_888
"""With a vocabulary of 30,522."""


@pytest.mark.parametrize("size", SIZES)
def test_published_sizes(size):
    changes, count = SIZES[size]
    assert parameters(**changes)[1] == count


@pytest.mark.parametrize("size", SIZES)
def test_published_sizes_as_the_command_prints_them(size, capsys):
    changes, count = SIZES[size]
    settings = [part for key, value in changes.items() for part in ("--set", f"model.{key}={value}")]
    assert main(["info", "albert", "--vocab", str(VOCABULARY), "--json", *settings]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["parameters"]["encoder"] + found["parameters"]["pooler"] == count
    assert found["shape"]["feedforward"] == 4 * changes.get("width", 768)


ABLATION = {
    (64, "all"): (9_090_816, 9_681_408),
    (64, "none"): (87_057_408, 87_648_000),
    (128, "all"): (11_092_992, 11_683_584),
    (128, "none"): (89_059_584, 89_650_176),
    (128, "attention"): (63_056_640, 63_647_232),
    (128, "feedforward"): (37_095_936, 37_686_528),
    (256, "all"): (15_097_344, 15_687_936),
    (256, "none"): (93_063_936, 93_654_528),
    (768, "all"): (30_524_160, 31_114_752),
    (768, "none"): (108_490_752, 109_081_344),
    (768, "attention"): (82_487_808, 83_078_400),
    (768, "feedforward"): (56_527_104, 57_117_696),
}
"""Embedding width and what is shared -> parameters without and with the pooler."""
PUBLISHED = {
    (64, "all"): 10, (64, "none"): 87, (128, "all"): 12, (128, "none"): 89, (128, "attention"): 64,
    (128, "feedforward"): 38, (256, "all"): 16, (256, "none"): 93, (768, "all"): 31, (768, "none"): 108,
    (768, "attention"): 83, (768, "feedforward"): 57,
}  # fmt: skip
"""In millions, as the paper's tables 3 and 4 have them: without the pooler where nothing is shared, else with it."""


@pytest.mark.parametrize(("embedding", "share"), ABLATION)
def test_the_papers_tables(embedding, share):
    found = parameters(embedding=embedding, share=share)
    assert found == ABLATION[embedding, share]
    assert round(found[share != "none"] / 1e6) == PUBLISHED[embedding, share]


def test_groups_lie_between_all_and_none():
    layer = 7_087_872
    for groups in (1, 2, 3, 4, 6, 12):
        assert parameters(groups=groups)[0] == ABLATION[128, "all"][0] + (groups - 1) * layer
    assert parameters(groups=12) == ABLATION[128, "none"]


def test_what_surveys_say_of_these_numbers():
    assert round(BERT_LARGE / SIZES["large"][1], 2) == 18.95
    assert ABLATION[768, "all"][1] / ABLATION[768, "none"][1] == pytest.approx(0.285, abs=5e-4)
    assert SIZES["xxlarge"][1] / BERT_LARGE == pytest.approx(0.66, abs=5e-3)
    xlarge = ModelConfig(layers=24, width=2048, heads=16).shape(VOCABULARY)
    assert counted(xlarge)[1] == 1_275_291_648


def test_the_embedding_in_two_factors():
    found = embedding_arithmetic(recipe("albert").model.shape(VOCABULARY))
    assert (found["undivided"], found["total"]) == (23_040_000, 3_938_304)
    assert found["undivided"] - found["total"] == 19_101_696
    assert found["line"].startswith("30,000 x 128 + 128 x 768 = 3,938,304; undivided 23,040,000, difference 19,101,696")
    narrower = recipe("albert", {"model.embedding": 100}).model.shape(VOCABULARY)
    assert embedding_arithmetic(narrower)["total"] == 3_076_800


def test_twelve_times_the_square_of_the_width():
    """Matrices alone, of all layers and of the one that all share; attention to feed-forward is as one to two."""

    def matrices(share):
        with torch.device("meta"):
            network = Network(ModelConfig(share=share).shape(VOCABULARY), pooler=False)
        named = [(name, each.numel()) for name, each in network.layers.named_parameters()]
        return {
            half: sum(size for name, size in named if any(part in name for part in parts) and not name.endswith("bias"))
            for half, parts in (("attention", (".attention.",)), ("feedforward", (".up.", ".down.")))
        }

    one, all_ = matrices("all"), matrices("none")
    assert one == {"attention": 2_359_296, "feedforward": 4_718_592}
    assert sum(one.values()) == 7_077_888 == 12 * 768**2
    assert sum(all_.values()) == 84_934_656 == 12 * 12 * 768**2
    assert ABLATION[768, "all"][0] - ABLATION[768, "none"][0] == -11 * 7_087_872


@pytest.mark.parametrize("page", ["docs/sharing.md", "docs/zh/sharing.md"])
def test_the_page_shows_what_is_counted(page):
    lines = (ROOT / page).read_text(encoding="utf-8").splitlines()
    counted_rows = [f"| {' | '.join(row)} |" for row in (*albert_sizes.sizes(), *albert_sizes.tables())]
    assert len(counted_rows) == len(SIZES) + len(ABLATION)
    assert all(row in lines for row in counted_rows), "python -m benchmarks.albert_sizes"


def test_sharing_saves_no_arithmetic():
    """Operations by hand: 12 layers, a projection, and for what is asked a head of the embedding's width."""
    shared = recipe("albert").model.shape(VOCABULARY)
    layer = 2 * (12 * 768**2 + 2 * 512 * 768)
    assert forward_flops(shared, 512) == 12 * layer + 2 * 128 * 768
    apart = recipe("albert", {"model.share": "none"}).model.shape(VOCABULARY)
    assert forward_flops(apart, 512) == forward_flops(shared, 512)
    head = 2 * (768 * 128 + 128 * VOCABULARY)
    assert forward_flops(shared, 512, 0.75) - forward_flops(shared, 512) == 0.75 * head
