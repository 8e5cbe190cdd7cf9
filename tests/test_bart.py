"""BART and MASS: the published numbers, spans by the law, any mixture of noises, and that a little one learns."""

import json

import numpy as np
import pytest
from chance import share_is, surprise
from made_rows import FACTS, even_rows
from small_run import corpus_in, run_quietly, tiny_recipe

from maskery.batches import Edit
from maskery.cli import main
from maskery.corruption.corrupt import candidates, corrupt
from maskery.corruption.laws import poisson
from maskery.explain.network import network
from maskery.feed import Feed
from maskery.randomness import keys
from maskery.recipes.recipe import check, recipe
from maskery.train.loop import Trainer

ROWS = 3000


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return corpus_in(tmp_path_factory.mktemp("bart"))


def test_the_published_numbers():
    bart, mass = recipe("bart"), recipe("mass")
    shape = bart.model
    assert (shape.layers, shape.decoder, shape.width, shape.max_length + shape.position_offset) == (6, 6, 768, 1026)
    large = recipe("bart", size="large").model
    assert (large.layers, large.decoder, large.width, large.heads) == (12, 12, 1024, 16)
    assert (bart.training.batch, bart.training.steps, bart.training.dropout_until) == (8000, 500_000, 0.9)
    assert (bart.corruption.rate, bart.corruption.span.law, bart.corruption.span.mean) == (0.3, "poisson", 3.0)
    assert bart.corruption.order.sentences
    assert (mass.model.layers, mass.model.decoder, mass.model.width, mass.model.heads) == (6, 6, 1024, 8)
    assert (mass.corruption.rate, mass.corruption.span.ends) == (0.5, 0.2)
    training = mass.training
    assert (training.betas, training.lr, training.decay) == ((0.9, 0.98), 1e-4, "inverse_sqrt")


def test_spans_follow_poisson_with_five_percent_insertions():
    config = recipe("bart").corruption
    _, spans = candidates(even_rows(0, ROWS, 40), config, keys(1, "mask", np.arange(ROWS)))
    law = poisson(config.span)
    assert law[0] == pytest.approx(0.0498, abs=1e-4)
    assert share_is((spans.drawn == 0).sum(), len(spans.drawn), law[0])
    counts = np.bincount(np.minimum(spans.drawn, 9), minlength=10)
    expected = len(spans.drawn) * np.append(law[:9], law[9:].sum())
    assert surprise(counts, expected) < 3.7, "p > 1e-4"


def test_a_mask_stands_for_a_span_and_three_tenths_are_gone():
    rows = even_rows(2, ROWS, 40)
    config = recipe("bart", {"corruption.order.sentences": False}).corruption
    out = corrupt(rows, config, keys(1, "mask", np.arange(ROWS)), FACTS)
    masks = np.bincount(out.row[out.edit == Edit.INFILLED], minlength=ROWS)
    hidden = rows.length - out.length + masks
    assert hidden.sum() / (40 * ROWS) == pytest.approx(0.3, abs=2e-3)
    assert (out.ids[out.edit == Edit.INFILLED] == FACTS.specials.mask).all()


def test_a_fifth_of_the_fragments_begins_at_the_front_and_a_fifth_ends_at_the_end():
    out = corrupt(even_rows(0, ROWS, 10), recipe("mass").corruption, keys(3, "mask", np.arange(ROWS)), FACTS)
    chosen = (out.edit != Edit.NONE).reshape(ROWS, 12)
    assert (chosen.sum(axis=1) == 5).all()
    assert (np.diff(chosen.astype(int), axis=1) == 1).sum() == ROWS, "in one piece"
    first = np.bincount(chosen.argmax(axis=1) - 1, minlength=6)
    expected = ROWS * (0.6 / 6 + np.array([0.2, 0, 0, 0, 0, 0.2]))
    assert surprise(first, expected) < 3.7


NONE = {"mask": 0.0, "random": 0.0, "keep": 0.0}
NOISES = {
    "masking": {"corruption.span": {"law": "single"}, "corruption.replace": {**NONE, "mask": 1.0}},
    "deletion": {"corruption.span": {"law": "single"}, "corruption.replace": {**NONE, "delete": 1.0}},
    "rotation": {"corruption.order.rotate": 1.0, "corruption.order.sentences": False, "corruption.rate": 0.0},
    "all together": {
        "corruption.span": {"law": "geometric", "p": 0.3, "longest": 5},
        "corruption.order.rotate": 0.5,
        "corruption.shuffle.rate": 0.1,
        "corruption.replace": {**NONE, "mask": 0.2, "random": 0.1, "delete": 0.3, "infill": 0.4},
    },
}


@pytest.mark.parametrize("noise", NOISES)
def test_every_noise_goes_with_the_same_text_to_write(noise, corpus):
    plain = Feed(tiny_recipe("bart"), corpus, 1).batch(0)
    made = tiny_recipe("bart", **{key.replace(".", "__"): value for key, value in NOISES[noise].items()})
    assert check(made) == []
    rows = Feed(made, corpus, 1).batch(0)
    assert (rows.decoder.ids == plain.decoder.ids).all()
    assert (rows.decoder.targets["next_token"].label == plain.decoder.targets["next_token"].label).all()
    assert rows.ids.tolist() != rows.decoder.original.tolist()


def test_dropout_ends_with_its_part_of_the_steps():
    made = tiny_recipe("bart", training__steps=10)
    trainer = Trainer.__new__(Trainer)
    trainer.training = made.training
    drops = []
    for step in range(10):
        trainer.step = step
        drops.append(trainer._drops)
    assert drops == [True] * 9 + [False]


@pytest.mark.parametrize("name", ["bart", "mass"])
def test_a_little_one_learns_to_write_the_text_again(name, corpus, tmp_path):
    """Words of this text mostly bring their own successor; a sentence is more than its words apart."""
    settings = {"training__steps": 60, "training__lr": 1e-2, "training__eval_every": 60, "training__warmup": 0.1}
    settings |= {"model__decoder": 1, "model__layers": 1, "model__dropout": 0.0, "training__batch": 16}
    settings |= {"training__decay": "linear"}
    run_quietly(tiny_recipe(name, **settings), corpus, tmp_path / "run")
    lines = [json.loads(line) for line in (tmp_path / "run/metrics.jsonl").read_text().splitlines()]
    losses = [line["loss"] for line in lines if "loss" in line]
    assert np.mean(losses[-5:]) < 0.75 * losses[0]
    assert all(line["eval/loss"] < losses[0] for line in lines if "eval/loss" in line)


@pytest.mark.parametrize(("lang", "decoder"), [("en", "decoder × 6"), ("zh", "解码器 × 6")])
def test_the_drawing_shows_the_decoder(lang, decoder):
    drawn = network(recipe("bart"), 1000, lang).svg
    assert decoder in drawn
    assert "[MASK]" in drawn
    assert "decoder" not in network(recipe("bert"), 1000).svg


def test_inspect_tells_what_the_decoder_is_asked(corpus, capsys):
    flags = ["--corpus", str(corpus.path), "--rows", "20", "--set", "training.length=24"]
    assert main(["inspect", "bart", *flags]) == 0
    shown = capsys.readouterr().out
    assert "decoder reads [SEP] [CLS]" in shown
    assert "is asked for  [CLS]" in shown
    assert main(["inspect", "bart", *flags, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["decoder"]["per_row"] == told["decoder"]["tokens"] / told["rows"]
    assert told["tokens"] != told["decoder"]["tokens"]
