"""A generator beside the model: what it draws, what the model then reads and is asked, and where gradients go."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from chance import surprise
from slow_draw import slowly
from small_run import WORDS, corpus_in, tiny_recipe

from maskery.batches import Targets
from maskery.edit import Edit
from maskery.errors import NonFiniteError
from maskery.feed import Feed
from maskery.model.transformer import Network, inputs_of
from maskery.objectives.masked_token import DRAWS
from maskery.recipes.recipe import check, recipe
from maskery.rewrite import filled
from maskery.system import System
from maskery.train.build import build_trainer

STILL = {"model__dropout": 0.0, "model__attention_dropout": 0.0, "model__init_std": 0.3}
TIED = ["tokens", "segments", "positions.table", "norm.weight", "norm.bias"]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return corpus_in(tmp_path_factory.mktemp("rewrite"))


def system_of(corpus, **changes):
    made = tiny_recipe("electra", **(STILL | changes)).require()
    system = System(made, corpus.vocabulary)
    system.initialise(0)
    return system, Feed(made, corpus, 0)


# What is drawn


def merged(counts, expected):
    """Rare tokens as one cell."""
    rare = expected < 10
    cells = [*zip(counts[~rare], expected[~rare], strict=True), (counts[rare].sum(), expected[rare].sum())]
    return np.array([cell for cell in cells if cell[1] > 0]).T


@torch.no_grad()
def test_the_law_is_the_softmax_of_the_scores(corpus):
    """Many draws for the same targets: as often as the generator says."""
    system, feed = system_of(corpus)
    batch, head = feed.batch(0), system.heads["masked_token"]
    targets = batch.targets["masked_token"]
    hidden = system.generator(inputs_of(batch), reads=targets.index)
    chance = head(hidden.select(targets.index), system.network.embeddings.tokens).double().softmax(1).numpy()
    turns = 2000
    many = Targets(
        index=targets.index.repeat(turns),
        label=targets.label.repeat(turns),
        extra={DRAWS: torch.from_numpy(np.random.default_rng(0).random(turns * len(chance)))},
    )
    asked = replace(batch, targets={"masked_token": many})
    _, drawn = system.objectives["masked_token"].total_and_draws(system.generator, head, hidden, asked)
    counts = np.zeros_like(chance)
    np.add.at(counts, (np.tile(np.arange(len(chance)), turns), drawn.numpy()), 1)
    assert surprise(*merged(counts.sum(0), turns * chance.sum(0))) < 4
    for row in range(len(chance)):
        assert surprise(*merged(counts[row], turns * chance[row])) < 4


def test_numbers_belong_to_row_and_visit(corpus):
    """Static masks stay; what is drawn for them does not. Held-out rows are always filled alike."""
    made = tiny_recipe("electra", corruption__when="static")
    feed, heldout = Feed(made, corpus, 0), Feed(made, corpus, 0, "heldout")
    phase = feed.phases[0]
    rows = np.arange(4)
    one, other = (feed.make(epoch, phase, np.full(4, epoch), rows) for epoch in (0, 1))
    assert torch.equal(one.ids, other.ids)
    draws = [batch.targets["masked_token"].extra[DRAWS] for batch in (one, other)]
    assert (draws[0] != draws[1]).all()
    assert len(draws[0].unique()) == len(draws[0])
    epochs, numbers = heldout.first(phase, 4)
    kept = [heldout.make(step, phase, epochs, numbers).targets["masked_token"].extra[DRAWS] for step in (0, 9)]
    assert torch.equal(*kept)


def test_without_a_generator_nothing_is_drawn(corpus):
    assert not Feed(tiny_recipe("bert"), corpus, 0).batch(0).targets["masked_token"].extra


# What is read and asked


def test_labels_say_which_ids_differ(corpus):
    system, feed = system_of(corpus)
    batch = feed.batch(0)
    made = system.read(batch)["replaced_token"].batch
    width = batch.ids.shape[1]
    chosen = set(batch.targets["masked_token"].index.tolist())
    targets = made.targets["replaced_token"]
    labels = dict(zip(targets.index.tolist(), targets.label.tolist(), strict=True))
    asked = 0
    for row, length in enumerate(batch.length.tolist()):
        for slot in range(width):
            flat, read = row * width + slot, int(made.ids[row, slot])
            if slot >= length:
                assert flat not in labels, "padding is not asked"
                assert read == feed.corpus.specials.pad
                continue
            asked += 1
            assert labels[flat] == int(read != batch.original[row, slot])
            assert flat in chosen or labels[flat] == 0
            assert flat in chosen or read == batch.original[row, slot]
    assert len(labels) == asked == system.counts(batch)["replaced_token"] == batch.tokens
    assert feed.corpus.specials.mask not in made.ids, "every mask is filled"
    assert set(batch.edit.flatten()[sorted(chosen)].tolist()) == {Edit.MASK, Edit.KEEP}


def test_the_right_token_counts_as_original(corpus):
    _, feed = system_of(corpus)
    batch = feed.batch(0)
    targets = batch.targets["masked_token"]
    right = filled(batch, targets.index, targets.label)
    assert torch.equal(right.ids, batch.original)
    assert not right.targets["replaced_token"].label.any()
    wrong = filled(batch, targets.index, targets.label + 1)
    assert int(wrong.targets["replaced_token"].label.sum()) == len(targets.label)


def test_what_others_changed_is_not_asked(corpus):
    system, feed = system_of(
        corpus, corruption__shuffle={"rate": 0.2, "size": 3}, objectives__word_order={"weight": 1.0}
    )
    batch = feed.batch(0)
    shuffled = (batch.edit == Edit.SHUFFLED).flatten()
    asked = torch.zeros_like(shuffled)
    asked[batch.targets["replaced_token"].index] = True
    assert shuffled.any()
    assert not (asked & shuffled).any()
    real = (torch.arange(batch.ids.shape[1]) < batch.length[:, None]).flatten()
    assert torch.equal(asked, real & ~shuffled)
    assert all(torch.isfinite(total) for total in system(batch).values())


# The whole step, slowly


def plain_twin(system):
    """The generator as a network that owns everything."""
    twin = Network(system.generator.shape, pooler=False)
    own = dict(system.generator.state_dict())
    own |= {f"embeddings.{name}": value for name, value in system.generator.embeddings.borrowed().items()}
    twin.load_state_dict(own)
    return twin


def slow_step(system, batch):
    """Two networks that share nothing, scores of every slot, sums one by one."""
    generator, model = plain_twin(system), deepcopy(system.network)
    heads = {name: deepcopy(head) for name, head in system.heads.items()}
    targets = batch.targets["masked_token"]
    states = generator(inputs_of(batch)).last.flatten(0, 1)
    scores = heads["masked_token"](states, generator.embeddings.tokens)
    masked, ids = torch.zeros(()), batch.ids.flatten().clone()
    for flat, label, number in zip(targets.index, targets.label, targets.extra[DRAWS].tolist(), strict=True):
        masked = masked - scores[flat].log_softmax(0)[label]
        ids[flat] = slowly(scores[flat].detach().double().softmax(0).tolist(), number)
    states = model(inputs_of(replace(batch, ids=ids.view_as(batch.ids)))).last
    told = heads["replaced_token"](states)
    replaced = torch.zeros(())
    for row, length in enumerate(batch.length.tolist()):
        wrong = ids.view_as(batch.ids)[row, :length] != batch.original[row, :length]
        chance = torch.sigmoid(told[row, :length])
        replaced = replaced - torch.where(wrong, chance, 1 - chance).log().sum()
    return {"masked_token": masked, "replaced_token": replaced}, generator, model, heads


@pytest.mark.parametrize("changes", [{}, {"model__embedding": 8, "model__generator__width": 0.5}], ids=str)
def test_against_two_networks_apart(corpus, changes):
    system, feed = system_of(corpus, **changes)
    batch = feed.batch(0)
    sums = system(batch)
    slow, generator, model, heads = slow_step(system, batch)
    weights = {name: system.weights[name] / system.counts(batch)[name] for name in sums}
    for name in sums:
        torch.testing.assert_close(sums[name], slow[name], rtol=1e-5, atol=1e-5)
    sum(weights[name] * sums[name] for name in sums).backward()
    sum(weights[name] * slow[name] for name in sums).backward()
    theirs = {f"networks.model.{name}": p.grad for name, p in model.named_parameters()}
    theirs |= {f"heads.{name}.{key}": p.grad for name, head in heads.items() for key, p in head.named_parameters()}
    for name, parameter in generator.named_parameters():
        shared = name.removeprefix("embeddings.") in TIED
        key = f"networks.{'model' if shared else 'generator'}.{name}"
        theirs[key] = parameter.grad + (theirs[key] if shared else 0)
    found = {name: p.grad for name, p in system.named_parameters()}
    assert set(found) == set(theirs)
    for name, gradient in found.items():
        scale = max(1.0, float(theirs[name].abs().max()))
        torch.testing.assert_close(gradient, theirs[name], rtol=1e-4, atol=2e-5 * scale, msg=name)


def test_nothing_of_the_model_reaches_the_generator(corpus):
    system, feed = system_of(corpus)
    system(feed.batch(0))["replaced_token"].backward()
    reached = {name for name, p in system.named_parameters() if p.grad is not None}
    assert not [name for name in reached if "generator" in name or name.startswith("heads.masked_token")]
    assert "networks.model.embeddings.tokens" in reached
    system.zero_grad(set_to_none=True)
    system(feed.batch(0))["masked_token"].backward()
    reached = {name for name, p in system.named_parameters() if p.grad is not None}
    assert {f"networks.model.embeddings.{name}" for name in TIED} <= reached, "both train the embeddings"
    assert not [name for name in reached if "networks.model.layers" in name or "replaced_token" in name]


def test_micro_batches_add_up(corpus):
    system, feed = system_of(corpus)
    system(feed.batch(3))["replaced_token"].backward()
    whole = {name: p.grad.clone() for name, p in system.named_parameters() if p.grad is not None}
    system.zero_grad(set_to_none=True)
    for part in feed.micro_batches(3, 0, 1, 3):
        system(part)["replaced_token"].backward()
    for name, gradient in whole.items():
        scale = max(1.0, float(gradient.abs().max()))
        torch.testing.assert_close(
            dict(system.named_parameters())[name].grad, gradient, rtol=1e-4, atol=1e-5 * scale, msg=name
        )


# One parameter each


def test_what_both_read_is_one_parameter(corpus):
    system, _ = system_of(corpus)
    names = [name for name, _ in system.named_parameters()]
    assert [name for name in names if name.startswith("networks.generator.embeddings")] == [
        f"networks.generator.embeddings.projection.{kind}" for kind in ("weight", "bias")
    ]
    own, lent = system.network.embeddings, system.generator.embeddings
    assert lent.tokens is own.tokens
    assert lent.segments is own.segments
    assert lent.positions is own.positions
    assert lent.norm is own.norm
    assert set(lent.borrowed()) == set(TIED)
    twin = deepcopy(system)
    assert twin.generator.embeddings.tokens is twin.network.embeddings.tokens
    assert twin.generator.embeddings.tokens is not own.tokens


@pytest.mark.parametrize("positions", ["nezha", "shaw", "t5"])
def test_positions_inside_attention_are_each_networks_own(corpus, positions):
    """They belong to heads, of which the two have other numbers."""
    system, feed = system_of(corpus, model__positions=positions, model__generator__width=0.5)
    assert system.generator.embeddings.positions is not system.network.embeddings.positions
    sums = system(feed.batch(0))
    sum(sums.values()).backward()
    assert all(p.grad is not None for p in system.parameters())


PUBLISHED = {
    "small": (
        {"model.width": 256, "model.embedding": 128, "model.heads": 4, "model.generator.width": 0.25},
        (13_483_008, 647_162),
    ),
    "base": ({}, (108_891_648, 9_903_418)),
    "large": (
        {"model.layers": 24, "model.width": 1024, "model.heads": 16, "model.generator.width": 0.25},
        (334_092_288, 19_512_378),
    ),
}


@pytest.mark.parametrize("size", PUBLISHED)
def test_published_sizes(size):
    changes, (encoder, extra) = PUBLISHED[size]
    with torch.device("meta"):
        system = System(recipe("electra", changes), 30522)

    def count(*modules):
        return sum(p.numel() for module in modules for p in module.parameters())

    width = system.network.shape.width
    assert count(system.network) == encoder
    assert count(system.heads["replaced_token"]) == width * width + width + width + 1
    assert count(system.generator, system.heads["masked_token"]) == extra
    small = system.generator.shape
    assert (small.layers, small.heads) == (system.network.shape.layers, max(1, small.width // 64))
    assert small.feedforward == 4 * small.width


@pytest.mark.parametrize("width", [0.1, 0.3333333333, 0.5, 1.0])
@pytest.mark.parametrize("size", ["tiny", "mini", "small", "medium", "base", "large"])
def test_a_generator_of_any_width_has_whole_heads(size, width):
    made = recipe("electra", {"model.generator.width": width}, size=size)
    shape = made.model.generator_shape(100)
    assert shape.width == round(width * made.model.width)
    assert shape.width % shape.heads == 0


# What goes together

COMBINED = {
    "whole words": {"corruption__unit": "word"},
    "spans": {"corruption__unit": "word", "corruption__decide": "span", "corruption__span": {"law": "geometric"}},
    "span boundary": {
        "corruption__unit": "word",
        "corruption__decide": "span",
        "corruption__span": {"law": "geometric"},
        "objectives__span_boundary": {"weight": 1.0},
    },
    "pairs": {"rows__kind": "segment_pair", "rows__pair": "order", "objectives__sentence_order": {"weight": 1.0}},
    "contrast": {"corruption__ngram": {"longest": 3}, "objectives__contrast": {"weight": 1.0}},
    "shared layers": {"model__share": "all", "model__embedding": 8},
    "pre-norm": {"model__norm": "pre"},
    "no segments": {"model__segments": 0},
    "a mixture of visibilities": {"visibility__mixture": {"full": 0.5, "causal": 0.5}},
    "a generator as wide": {"model__generator__width": 1.0},
    "a deeper one": {"model__generator": {"width": 0.5, "layers": 3, "heads": 4, "feedforward": 20}},
}


@pytest.mark.parametrize("name", COMBINED)
def test_axes_are_free(name, corpus):
    system, feed = system_of(corpus, **COMBINED[name])
    batch = feed.batch(0)
    sums = system(batch)
    torch.stack(list(sums.values())).sum().backward()
    assert all(torch.isfinite(total) for total in sums.values())
    assert all(p.grad is not None for p in system.parameters()), "ranks wait for each other's gradients"
    assert set(system.measure(batch)) == set(sums)
    system.require_no_leak(batch)


def test_similar_words_feed_the_generator(corpus, tmp_path):
    """MacBERT's rows hold no mask; the generator reads similar words, and what it draws is asked about."""
    similar = tmp_path / "similar.txt"
    similar.write_text("\n".join(" ".join(WORDS[n : n + 3]) for n in range(0, 90, 3)), encoding="utf-8")
    changes = {"objectives__replaced_token": {"weight": 50.0}, "model__generator__width": 0.5}
    made = tiny_recipe("macbert", **STILL, **changes, knowledge__synonyms=str(similar)).require()
    system, batch = System(made, corpus.vocabulary), Feed(made, corpus, 0).batch(0)
    system.initialise(0)
    assert (batch.edit == Edit.SIMILAR).any()
    read = system.read(batch)["replaced_token"].batch
    chosen = batch.targets["masked_token"].index
    rest = torch.ones(batch.ids.numel(), dtype=torch.bool).index_fill(0, chosen, False)
    assert torch.equal(read.ids.flatten()[rest], batch.original.flatten()[rest]), "no similar word is left"
    assert all(torch.isfinite(total) for total in system(batch).values())


REFUSED = {
    "objectives.replaced_token": {"model__generator__width": 0.0},
    "model.generator": {"objectives__replaced_token": False},
    "model.generator ": {"objectives__masked_token": False},
    "objectives.next_token": {
        "objectives__masked_token": False,
        "objectives__next_token": {"weight": 1.0},
        "corruption__rate": 0.0,
        "visibility__kind": "causal",
    },
    "model.segments": {"model__segments": 1},
}


@pytest.mark.parametrize("piece", REFUSED)
def test_what_makes_no_sense_is_refused(piece):
    refused = check(tiny_recipe("electra", **REFUSED[piece]))
    assert piece.strip() in [each.piece for each in refused]
    assert all(each.reason and each.repair for each in refused)


def test_binary_cross_entropy_is_that_of_torch(corpus):
    system, feed = system_of(corpus)
    read = system.read(feed.batch(0))["replaced_token"]
    targets = read.batch.targets["replaced_token"]
    told = system.heads["replaced_token"](read.hidden.select(targets.index))
    found = system.measure(feed.batch(0))["replaced_token"]
    expected = F.binary_cross_entropy_with_logits(told, targets.label.float(), reduction="sum")
    assert found["loss"][0] == pytest.approx(float(expected.detach()), rel=1e-5)
    hits = int(((told > 0) & (targets.label == 1)).sum())
    assert found["precision"] == (hits, int((told > 0).sum()))
    assert found["recall"] == (hits, int(targets.label.sum()))


def test_a_run_that_diverges_says_so(corpus):
    """A generator without numbers draws anyway: the loss tells, as in every recipe, and no other error comes first."""
    trainer = build_trainer(tiny_recipe("electra", training__lr=1e18, training__warmup=0.0), corpus, 0, lambda _: None)
    with pytest.raises(NonFiniteError):
        list(trainer.updates())
