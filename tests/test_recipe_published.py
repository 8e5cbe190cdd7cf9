"""The recipes that vary BERT's masks and questions, against the published numbers, written down a second time."""

import pytest
import torch

from maskery.model.transformer import Network
from maskery.recipes.layers import IDENTITY
from maskery.recipes.matrix import largest_batch, positions
from maskery.recipes.recipe import diff, recipe


def changed(name, parent):
    """The keys in which a recipe differs from another, apart from names and training."""
    keys = diff(recipe(parent), recipe(name))
    return {key for key in keys if key not in IDENTITY and not key.startswith("training.")}


def phases(name):
    return [(phase.steps, phase.length, phase.batch) for phase in recipe(name).training.phases]


def test_whole_word_masking_changes_the_unit_alone():
    wwm = recipe("bert-wwm")
    assert changed("bert-wwm", "bert") == {"corruption.unit"}
    assert (wwm.corruption.unit, wwm.corruption.decide, wwm.training.optimizer) == ("word", "token", "lamb")
    assert phases("bert-wwm") == [(100_000, 128, 2560), (100_000, 512, 384)]
    assert wwm.training.steps == 200_000


def test_the_extended_models():
    assert changed("bert-wwm-ext", "bert-wwm") == {"data"}
    assert recipe("bert-wwm-ext").data == pytest.approx(5.4 / 0.4)
    assert phases("bert-wwm-ext") == [(1_000_000, 128, 2560), (400_000, 512, 384)]
    assert recipe("bert-wwm-ext").training.steps == 1_400_000
    last = recipe("roberta-wwm-ext")
    assert (last.corruption.when, last.corruption.unit) == ("static", "word")
    assert list(last.objectives) == ["masked_token"]
    training = last.training
    assert (training.optimizer, training.steps, training.length, training.batch) == ("adamw", 1_000_000, 512, 384)
    assert training.phases == ()


@pytest.mark.parametrize(
    ("name", "read"),
    [
        ("bert", 900_000 * 256 * 128 + 100_000 * 256 * 512),
        ("bert-wwm", 32_768_000_000 + 19_660_800_000),
        ("bert-wwm-ext", 327_680_000_000 + 78_643_200_000),
        ("roberta-wwm-ext", 1_000_000 * 384 * 512),
        ("spanbert", 2_400_000 * 4096 * 32),
        ("roberta", 500_000 * 8192 * 512),
        ("albert", 125_000 * 4096 * 512),
        ("electra", 766_000 * 256 * 512),
    ],
)
def test_positions_read(name, read):
    assert positions(recipe(name).training) == read


def test_positions_of_a_run_that_is_cut_short_keep_their_proportions():
    training = recipe("bert-wwm", {"training.steps": 20}).training
    assert positions(training) == 10 * 2560 * 128 + 10 * 384 * 512
    assert largest_batch(training) == 2560
    assert positions(recipe("bert", {"training.length": 64, "training.steps": 7}).training) == 7 * 256 * 64


def test_the_batches_of_roberta_read_about_as_many_rows():
    assert 256 * 1_000_000 == 2048 * 125_000 == 256_000_000
    assert 8192 * 31_000 == 253_952_000
    rows = [
        positions(recipe("roberta", {"training.batch": batch, "training.steps": steps}).training) // 512
        for batch, steps in ((256, 1_000_000), (2048, 125_000), (8192, 31_000))
    ]
    assert rows == [256_000_000, 256_000_000, 253_952_000]


def test_spanbert():
    span = recipe("spanbert")
    training, corruption = span.training, span.corruption
    assert (training.steps, training.lr, training.eps, training.weight_decay, training.clip) == (
        2_400_000,
        1e-4,
        1e-8,
        0.01,
        1.0,
    )
    assert training.warmup * training.steps == pytest.approx(10_000)
    assert training.batch * training.length == 4096 * 32
    assert training.bias_correction is True
    assert (corruption.unit, corruption.of, corruption.decide) == ("word", "tokens", "span")
    assert (corruption.random_from, corruption.when, corruption.rate) == ("corpus", "dynamic", 0.15)
    weights = [corruption.span.p * (1 - corruption.span.p) ** n for n in range(corruption.span.longest)]
    mean = sum(n * weight for n, weight in enumerate(weights, 1)) / sum(weights)
    assert mean == pytest.approx(3.797, abs=5e-4)
    assert (span.rows.pair, span.rows.short) == ("none", 0)
    assert {name: each.weight for name, each in span.objectives.items()} == {"masked_token": 1, "span_boundary": 1}


def test_electra():
    """The base model of the published code."""
    electra = recipe("electra")
    corruption, training, rows = electra.corruption, electra.training, electra.rows
    shares = {name: share for name, share in corruption.replace.plain().items() if share}
    assert (corruption.rate, corruption.unit, corruption.when, shares) == (
        0.15,
        "token",
        "dynamic",
        {"mask": 0.85, "keep": 0.15},
    )
    assert {name: each.weight for name, each in electra.objectives.items()} == {"masked_token": 1, "replaced_token": 50}
    small = electra.model.generator_shape(30_522)
    assert (small.width, small.heads, small.feedforward, small.layers, small.embedding) == (256, 4, 1024, 12, 768)
    assert (rows.kind, rows.pair, rows.short, rows.copies) == ("one_or_two_segments", "none", 0.05, 1)
    assert (training.lr, training.batch, training.steps, training.length) == (2e-4, 256, 766_000, 512)
    assert training.warmup * training.steps == pytest.approx(10_000, abs=0.1)
    assert (training.decay, training.bias_correction, training.eps, training.clip) == ("electra", False, 1e-6, 1.0)
    assert (training.betas, training.weight_decay, training.phases) == ((0.9, 0.999), 0.01, ())


def test_ernie():
    ernie = recipe("ernie")
    assert [(stage.unit, stage.share) for stage in ernie.corruption.stages] == [
        ("token", 1),
        ("phrase", 1),
        ("entity", 1),
    ]
    assert ernie.data == pytest.approx((21 + 51 + 47 + 54) / 21, abs=0.05)
    assert changed("ernie", "bert") == {"data", "rows.copies", "corruption.when", "corruption.stages"}


def test_macbert():
    mac = recipe("macbert")
    corruption = mac.corruption
    weights = corruption.span.weights
    assert weights == (0.4, 0.3, 0.2, 0.1)
    assert sum(n * weight for n, weight in enumerate(weights, 1)) == pytest.approx(2.0)
    assert (corruption.rate, corruption.of, corruption.decide) == (0.15, "words", "word")
    replace = corruption.replace
    assert (replace.similar, replace.random, replace.keep, replace.mask) == (0.8, 0.1, 0.1, 0)
    assert list(mac.objectives) == ["masked_token", "sentence_order"]
    assert mac.rows.pair == "order"
    assert mac.data == recipe("bert-wwm-ext").data


def test_albert():
    albert = recipe("albert")
    corruption, training, model = albert.corruption, albert.training, albert.model
    shares = [weight / sum(corruption.span.weights) for weight in corruption.span.weights]
    assert shares == pytest.approx([0.5455, 0.2727, 0.1818], abs=5e-5)
    assert sum(n * share for n, share in enumerate(shares, 1)) == pytest.approx(1.636, abs=5e-4)
    assert (corruption.rate, corruption.of, corruption.unit, corruption.decide) == (0.15, "tokens", "word", "token")
    assert corruption.replace == recipe("bert").corruption.replace
    rows = albert.rows
    assert (rows.kind, rows.pair, rows.short, rows.copies) == ("segment_pair", "order", 0.1, 40)
    assert {name: each.weight for name, each in albert.objectives.items()} == {"masked_token": 1, "sentence_order": 1}
    assert (model.embedding, model.share, model.groups, model.activation) == (128, "all", 1, "gelu_tanh")
    assert (model.dropout, model.attention_dropout, model.eps) == (0, 0, 1e-12)
    assert (training.optimizer, training.lr, training.bias_correction) == ("lamb", 1.76e-3, False)
    assert (training.betas, training.eps, training.weight_decay, training.clip) == ((0.9, 0.999), 1e-6, 0.01, 1.0)
    assert (training.batch, training.steps, training.length, training.phases) == (4096, 125_000, 512, ())
    assert training.warmup * training.steps == 3_125
    assert albert.data == 1


def test_structbert():
    struct = recipe("structbert")
    assert (struct.corruption.shuffle.rate, struct.corruption.shuffle.size) == (0.05, 3)
    weights = {name: each.weight for name, each in struct.objectives.items()}
    assert weights == {"masked_token": 1, "word_order": 1, "three_way": 1}
    assert struct.rows.pair == "three"
    assert struct.training == recipe("bert").training


def test_nezha():
    """The base model of the paper, with the program's masks and its LAMB."""
    nezha = recipe("nezha")
    assert changed("nezha", "bert-wwm") == {"data", "rows.copies", "model.positions"}
    assert (nezha.model.positions, nezha.model.clip, nezha.rows.copies) == ("nezha", 64, 5)
    assert nezha.data == pytest.approx(10_536 / 202, abs=0.05)
    assert nezha.corruption.rate * nezha.corruption.replace.mask == pytest.approx(0.12)
    assert nezha.corruption.rate * nezha.corruption.replace.random == pytest.approx(0.015)
    training = nezha.training
    assert (training.optimizer, training.lr, training.batch, training.length) == ("lamb", 1.8e-4, 180 * 80, 128)
    assert training.phases == ()
    assert training.warmup * training.steps == pytest.approx(1800)
    assert (training.bias_correction, training.decay, training.eps) == (True, "linear", 1e-6)


def test_nezha_has_the_published_number_of_weights():
    with torch.device("meta"):
        networks = [Network(recipe(name).model.shape(21_128), pooler=True) for name in ("nezha", "bert")]
    nezha, bert = (sum(each.numel() for each in network.parameters()) for network in networks)
    assert nezha == 101_874_432
    assert bert - nezha == 512 * 768


def test_modernbert_is_the_published_training_file():
    modern, training = recipe("modernbert").model, recipe("modernbert").training
    assert (modern.layers, modern.width, modern.heads, modern.feedforward) == (22, 768, 12, 1152)
    assert (modern.positions, modern.local, modern.global_every, modern.gated) == ("rotary", 128, 3, True)
    assert (modern.norm, modern.first_norm, modern.embedding_norm, modern.eps) == ("pre", False, "yes", 1e-5)
    assert not any((modern.norm_bias, modern.attention_bias, modern.feedforward_bias, modern.head_bias))
    assert recipe("modernbert").corruption.rate == 0.3
    assert (training.lr, training.betas, training.eps, training.weight_decay) == (8e-4, (0.9, 0.98), 1e-6, 1e-5)
    assert (training.batch, training.length) == (4608, 1024)
    assert training.steps * training.batch * training.length == pytest.approx(1_719e9, rel=1e-5)
    assert training.warmup * training.steps * training.batch * training.length == pytest.approx(3e9, rel=1e-5)


def test_modernbert_has_the_published_number_of_weights():
    with torch.device("meta"):
        network = Network(recipe("modernbert").model.shape(50_368), pooler=False)
    assert sum(each.numel() for each in network.parameters()) == 149_014_272
