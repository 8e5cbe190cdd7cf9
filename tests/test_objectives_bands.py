"""A vocabulary in bands against torch's adaptive softmax and against loops; folders of transformers 4; whole runs."""

from __future__ import annotations

import json

import pytest
import torch
from folders import refused
from networks import XL, model_of
from oracle import same_bits, weights
from safetensors.torch import save_file
from small_run import corpus_in, cut_back, run_quietly, tiny_recipe
from transfo_xl_reference import config_of, states_of_row, tensors_of

from maskery.checkpoint.load import load
from maskery.errors import InputError, MaskeryError
from maskery.model.bands import band_of
from maskery.model.config import ModelConfig, Shape
from maskery.model.heads import TokenHead
from maskery.model.reading import Reading, score_stream
from maskery.objectives.answers import token_loss, token_losses_and_hits
from maskery.recipes.recipe import recipe

WORDS, WIDTH, CUTOFFS = 23, 6, (5, 9, 17)
LABELS = torch.tensor([0, 4, 5, 8, 9, 16, 17, 22, 3, 17])


def head_of(cutoffs=CUTOFFS, token_head="bias", words=WORDS):
    shape = ModelConfig(
        layers=1, width=WIDTH, heads=1, max_length=8, token_head=token_head, cutoffs=list(cutoffs)
    ).shape(words)
    head = TokenHead(shape)
    draw = torch.Generator().manual_seed(3)
    for parameter in head.parameters():
        torch.nn.init.normal_(parameter, generator=draw)
    return head


def random(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).requires_grad_()


def adaptive_of(head, tokens):
    """torch's own with the same numbers; its later bands have no bias, and a matrix more."""
    made = torch.nn.AdaptiveLogSoftmaxWithLoss(WIDTH, WORDS, list(CUTOFFS), div_value=1.0, head_bias=True)
    edges = [*CUTOFFS, WORDS]
    with torch.no_grad():
        made.head.weight.copy_(torch.cat((tokens[: CUTOFFS[0]], head.bands)))
        made.head.bias.copy_(torch.cat((head.bias[: CUTOFFS[0]], head.bands_bias)))
        for tail, start, stop in zip(made.tail, edges[:-1], edges[1:], strict=True):
            tail[0].weight.copy_(torch.eye(WIDTH))
            tail[1].weight.copy_(tokens[start:stop])
    return made


def test_as_torch_has_it():
    head, tokens, states = head_of(), random(WORDS, WIDTH), random(len(LABELS), WIDTH, seed=1)
    with torch.no_grad():
        head.bias[CUTOFFS[0] :] = 0
    theirs = adaptive_of(head, tokens)
    torch.testing.assert_close(head(states, tokens), theirs.log_prob(states), atol=1e-5, rtol=1e-5)
    total = token_loss(head, states, tokens, LABELS)
    total.backward()
    mine = states.grad.clone()
    states.grad = None
    wanted = -theirs(states, LABELS).output.sum()
    torch.testing.assert_close(total, wanted, atol=1e-5, rtol=1e-5)
    wanted.backward()
    torch.testing.assert_close(mine, states.grad, atol=1e-5, rtol=1e-5)
    first = CUTOFFS[0]
    torch.testing.assert_close(tokens.grad[:first], theirs.head.weight.grad[:first], atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(head.bands.grad, theirs.head.weight.grad[first:], atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(head.bands_bias.grad, theirs.head.bias.grad[first:], atol=1e-5, rtol=1e-5)
    tails = torch.cat([tail[1].weight.grad for tail in theirs.tail])
    torch.testing.assert_close(tokens.grad[first:], tails, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("token_head", ["transform", "bias", "plain"])
def test_by_the_definition(token_head):
    """Every token's probability by two explicit choices; together they are one."""
    head, tokens, states = head_of(token_head=token_head), random(WORDS, WIDTH), random(4, WIDTH, seed=2)
    with torch.no_grad():
        said, x = head(states, tokens), head.transform(states)
        bias = torch.zeros(WORDS) if head.bias is None else head.bias
        own = torch.zeros(3) if head.bands_bias is None else head.bands_bias
        edges = [0, *CUTOFFS, WORDS]
        for row in range(4):
            first = torch.cat([tokens[:5] @ x[row] + bias[:5], head.bands @ x[row] + own]).softmax(0)
            for word in range(WORDS):
                band = next(number for number in range(4) if edges[number] <= word < edges[number + 1])
                chance = first[word] if not band else None
                if band:
                    inside = slice(edges[band], edges[band + 1])
                    within = (tokens[inside] @ x[row] + bias[inside]).softmax(0)
                    chance = first[5 + band - 1] * within[word - edges[band]]
                assert said[row, word].exp().item() == pytest.approx(chance.item(), abs=1e-6)
        assert torch.allclose(said.exp().sum(1), torch.ones(4), atol=1e-5)
        assert band_of(torch.arange(WORDS), CUTOFFS).tolist() == [0] * 5 + [1] * 4 + [2] * 8 + [3] * 6


def test_loss_accuracy_and_nothing_asked():
    head, tokens, states = head_of(), random(WORDS, WIDTH), random(len(LABELS), WIDTH, seed=4)
    losses, hits = token_losses_and_hits(head, states, tokens, LABELS)
    said = head(states, tokens)
    torch.testing.assert_close(losses, -said.gather(1, LABELS[:, None])[:, 0])
    assert hits.tolist() == (said.argmax(1) == LABELS).tolist()
    torch.testing.assert_close(losses.sum(), token_loss(head, states, tokens, LABELS))
    nothing = token_loss(head, states[:0], tokens, LABELS[:0])
    nothing.backward()
    assert nothing.item() == 0
    assert not head.bands.grad.any(), "a head that was asked nothing still takes part: ranks need every gradient"
    assert token_losses_and_hits(head, states[:0], tokens, LABELS[:0])[0].shape == (0,)
    with pytest.raises(InputError, match="smoothed over the whole vocabulary"):
        token_loss(head, states, tokens, LABELS, 0.1)


def test_parts_of_a_batch_add_up():
    head, tokens, states = head_of(), random(WORDS, WIDTH), random(len(LABELS), WIDTH, seed=5)
    whole = torch.autograd.grad(token_loss(head, states, tokens, LABELS), [tokens, head.bands])
    parts = [
        torch.autograd.grad(token_loss(head, states[part], tokens, LABELS[part]), [tokens, head.bands])
        for part in (slice(0, 3), slice(3, 10))
    ]
    for at in range(2):
        torch.testing.assert_close(whole[at], parts[0][at] + parts[1][at], atol=1e-5, rtol=1e-5)


def test_refused():
    with pytest.raises(InputError, match="the last band begins at token 23, and the vocabulary has 23"):
        head_of((5, 23))
    for wrong in ([9, 5], [0, 4], [5, 5]):
        with pytest.raises(MaskeryError, match="do not rise from above 0"):
            recipe("transformer-xl", {"model.cutoffs": wrong})


# -- folders


def published(folder, **changes):
    """A folder as transformers 4 writes it, with the vectors of bands beside the output's bias."""
    config = config_of(cutoffs=[7, 20], **changes)
    tensors = tensors_of(config)
    draw = torch.Generator().manual_seed(9)
    tensors["crit.cluster_weight"] = torch.randn((2, 12), generator=draw)
    tensors["crit.cluster_bias"] = torch.randn(2, generator=draw)
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config))
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    return config, tensors


def test_a_folder_of_transformers_says_the_same_and_goes_back_bitwise(tmp_path):
    config, tensors = published(tmp_path / "a")
    ours = load(tmp_path / "a")
    assert (ours.report.missing, ours.report.unused, ours.config.cutoffs) == ((), (), (7, 20))
    assert ours.save(tmp_path / "b").notes == ()
    assert same_bits(tensors, weights(tmp_path / "b"))
    assert json.loads((tmp_path / "b/config.json").read_text()) == config
    ids = torch.randint(0, 30, (8,), generator=torch.Generator().manual_seed(1))
    found = score_stream(ours.network, ours.token_head(), ids[None], Reading(length=8))[0]
    words, bias = tensors["transformer.word_emb.emb_layers.0.weight"], tensors["crit.out_layers.0.bias"]
    edges = [0, 7, 20, 30]
    for place, state in enumerate(states_of_row(tensors, config, ids)[-1][:-1]):
        wanted = int(ids[place + 1])
        scores = torch.cat((words[:7] @ state + bias[:7], tensors["crit.cluster_weight"] @ state))
        scores[7:] += tensors["crit.cluster_bias"]
        first = scores.log_softmax(0)
        band = sum(wanted >= edge for edge in edges[1:-1])
        said = first[wanted] if not band else None
        if band:
            inside = slice(edges[band], edges[band + 1])
            said = first[7 + band - 1] + (words[inside] @ state + bias[inside]).log_softmax(0)[wanted - edges[band]]
        assert found[place].item() == pytest.approx(said.item(), abs=1e-5)


def test_narrower_bands_are_still_refused(tmp_path):
    published(tmp_path / "a", div_val=4)
    refused(tmp_path / "a", "div_val = 4 is not supported", "div_val = 1")


def test_a_family_without_bands_is_not_written_for_them(tmp_path):
    made = model_of("next_token", **XL, cutoffs=(9, 20))
    assert made.save(tmp_path / "xl").family == "transfo-xl"
    assert load(tmp_path / "xl").config == made.config
    other = model_of("masked_token", cutoffs=(9, 20))
    saved = other.save(tmp_path / "bert")
    assert saved.family == "maskery"
    assert "cutoffs" in " ".join(saved.notes)
    assert isinstance(load(tmp_path / "bert").config, Shape)
    assert same_bits(dict(other.heads["masked_token"].named_parameters()),
                     dict(load(tmp_path / "bert").heads["masked_token"].named_parameters()))  # fmt: skip


# -- a run


def test_a_run_learns_writes_and_goes_on_bitwise(tmp_path):
    corpus = corpus_in(tmp_path / "corpus")
    made = tiny_recipe(
        "transformer-xl", model__cutoffs=[20, 60], model__memory=8, training__steps=12, training__save_every=6,
        training__length=12, training__lr=1e-2,
    )  # fmt: skip
    run_quietly(made, corpus, tmp_path / "run")
    lines = [json.loads(line) for line in (tmp_path / "run/metrics.jsonl").read_text().splitlines()]
    assert lines[-1]["loss"] < lines[0]["loss"] - 0.3
    model = load(tmp_path / "run")
    assert model.config.cutoffs == (20, 60)
    assert json.loads((tmp_path / "run/config.json").read_text())["model_type"] == "transfo-xl"
    whole = weights(tmp_path / "run")
    run_quietly(made, corpus, cut_back(tmp_path / "run", 6, tmp_path / "again"), resume=True)
    assert same_bits(whole, weights(tmp_path / "again"))
