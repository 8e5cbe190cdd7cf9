"""gpt and gpt2 as a user meets them: the published numbers, how weights begin, a run that learns, who sees whom."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from small_run import corpus_in, run_quietly, tiny_recipe
from transformers import AutoModelForCausalLM

import maskery
from maskery.cli import main
from maskery.feed import Feed
from maskery.model.transformer import inputs_of
from maskery.recipes.recipe import recipe
from maskery.system import System

CHANGES = {
    "model__width": 32,
    "training__steps": 100,
    "training__batch": 16,
    "training__lr": 1e-2,
    "training__eval_every": 100,
    "training__eval_rows": 8,
}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return corpus_in(tmp_path_factory.mktemp("gpt"))


@pytest.fixture(scope="module", params=["gpt", "gpt2"])
def trained(request, corpus, tmp_path_factory):
    """The recipe, its run, and what the run wrote."""
    out, made = tmp_path_factory.mktemp("runs") / request.param, tiny_recipe(request.param, **CHANGES)
    run_quietly(made, corpus, out)
    return made, out, [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]


def test_the_published_numbers():
    gpt, second = recipe("gpt").require(), recipe("gpt2").require()
    for each in (gpt, second):
        assert (each.rows.kind, each.visibility.kind, list(each.objectives)) == ("stream", "causal", ["next_token"])
        shape = each.model
        assert (shape.layers, shape.width, shape.heads, shape.feedforward) == (12, 768, 12, 0)
        assert (shape.eps, shape.init_std, shape.dropout, shape.attention_dropout) == (1e-5, 0.02, 0.1, 0.1)
        assert (shape.activation, shape.positions, shape.segments, shape.token_head) == (
            "gelu_tanh",
            "learned",
            0,
            "plain",
        )
    assert (gpt.model.norm, gpt.model.embedding_norm, gpt.model.max_length) == ("post", "no", 512)
    training = gpt.training
    assert (training.lr, training.decay, training.batch, training.length) == (2.5e-4, "cosine", 64, 512)
    assert training.warmup * training.steps == pytest.approx(2000, abs=1)
    assert (training.weight_decay, training.bias_correction) == (0.01, True)
    assert (second.model.norm, second.model.max_length, second.training.batch) == ("pre", 1024, 512)
    assert (second.model.position_std, second.model.residual_init) == (0.01, True)
    assert second.training.warmup * second.training.steps == pytest.approx(2000, abs=1)


def started(made, vocabulary):
    """The network of a recipe as training begins with it."""
    system = System(made, vocabulary).eval()
    system.initialise(0)
    return system.network


@pytest.mark.parametrize(("name", "std", "residual"), [("gpt", 0.02, 0.02), ("gpt2", 0.01, 0.02 / math.sqrt(4))])
def test_how_weights_begin(name, std, residual):
    made = recipe(name, {"model.layers": 2, "model.width": 64, "model.heads": 2, "model.max_length": 256})
    found = started(made, 300).state_dict()
    cut = 0.8796  # what the deviation of a normal distribution shrinks to when it is cut at two
    expected = {"embeddings.tokens": 0.02, "embeddings.positions.table": std, "layers.0.up.weight": 0.02}
    expected |= {f"layers.1.{each}.weight": residual for each in ("down", "attention.output")}
    for parameter, wide in expected.items():
        assert float(found[parameter].std()) == pytest.approx(cut * wide, rel=0.05), parameter
    assert all(not value.any() for key, value in found.items() if key.endswith("bias"))


def test_the_loss_falls_below_what_counting_tokens_gives(trained, corpus):
    made, _, lines = trained
    ids = Feed(made, corpus, 0, "heldout").batch(0).ids.flatten()
    counts = np.bincount(np.asarray(corpus.tokens[:]), minlength=corpus.vocabulary) + 1
    unigram = -np.log(counts[ids.numpy()] / counts.sum()).mean()
    last = lines[-1]
    assert last["eval/loss"] < unigram - 0.5
    assert last["eval/next_token/perplexity"] == pytest.approx(math.exp(last["eval/loss"]), rel=1e-6)


@torch.no_grad()
def test_the_folder_is_theirs_and_gives_the_same_loss(trained, corpus):
    made, out, _ = trained
    ours, theirs = maskery.load(out), AutoModelForCausalLM.from_pretrained(out).eval()
    family = {"gpt": "openai-gpt", "gpt2": "gpt2"}[made.name]
    assert (ours.family, theirs.config.model_type) == (family, family)
    assert theirs.config.eos_token_id == theirs.config.bos_token_id == corpus.specials.sep
    assert theirs.config.pad_token_id == corpus.specials.pad
    ids = maskery.batch(made, corpus, split="heldout").ids
    torch.testing.assert_close(ours.logits(ids), theirs(ids).logits, rtol=0, atol=1e-4)
    scores = ours.logits(ids)[:, :-1].flatten(0, 1)
    mean = torch.nn.functional.cross_entropy(scores, ids[:, 1:].flatten())
    torch.testing.assert_close(theirs(ids, labels=ids).loss, mean, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kind", ["causal", "packed_causal"])
@torch.no_grad()
def test_documents_of_a_row_with_and_without_sight_of_each_other(kind, corpus):
    made = tiny_recipe("gpt2", visibility__kind=kind, training__length=32, training__batch=8)
    batch, network = maskery.batch(made, corpus), started(made, corpus.vocabulary)
    row = next(r for r in range(8) if batch.slots["document"][r].max() > 0)
    documents = batch.slots["document"][row]
    second = int((documents > 0).nonzero()[0])
    ids = batch.ids.clone()
    ids[row, 0] = corpus.vocabulary - 1 - ids[row, 0] % 2
    before, after = (network(inputs_of(each)).last[row] for each in (batch, replace(batch, ids=ids)))
    moved = (before != after).any(1)
    assert moved[:second].all()
    assert bool(moved[second:].any()) == (kind == "causal")
    assert int(batch.ids[row, second - 1]) == corpus.specials.sep


def test_rows_as_inspect_shows_them(corpus, capsys):
    flags = ["--size", "tiny", "--set", "training.length=23", "--set", "training.batch=8"]
    assert main(["inspect", "gpt2", "--corpus", str(corpus.path), "--rows", "8", "--json", *flags]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["rows"], found["tokens"], found["chosen_rate"]) == (8, 8 * 23, 0)
    assert main(["inspect", "gpt2", "--corpus", str(corpus.path), "--rows", "8", *flags]) == 0
    assert "left at the end, which fill no row" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("size", "vocabulary", "total"),
    [
        (["gpt"], 40478, 116_534_784),
        (["gpt2"], 50257, 124_439_808),
        (["gpt2", "--size", "large"], 50257, 354_823_168),
    ],
)
def test_info_counts_as_published(size, vocabulary, total, capsys):
    assert main(["info", *size, "--vocab", str(vocabulary), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["parameters"]["total"] == found["parameters"]["encoder"] == total
    assert found["family"] == {"gpt": "openai-gpt", "gpt2": "gpt2"}[size[0]]
