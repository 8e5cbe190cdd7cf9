"""The axes are free: any two choices train together, save and come back, or are refused with a reason.

What is tried is listed in snapshots/combinations.json (see choices.py). `make grid` draws far more.
"""

from __future__ import annotations

from random import Random

import pytest
import torch
from choices import accepted, calm, drawn, every_pair, overrides, pairs_of, refusals, stored
from small_run import corpus_in, similar_words_in

from maskery.checkpoint.folder import beside, save_model
from maskery.checkpoint.load import load
from maskery.errors import RecipeError
from maskery.recipes.recipe import recipe
from maskery.system import System
from maskery.train.build import build_trainer, first_rows, require_no_leak

ROWS, APART = stored()
PARTS, TRAINED, REFUSED = 40, 25, 50
"""`make grid`: tests, and the combinations in each that are trained, and that are refused; 3,000 in all."""


pytestmark = pytest.mark.usefixtures("no_waiting_for_the_disk")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    folder = tmp_path_factory.mktemp("combinations")
    similar_words_in(folder)
    return corpus_in(folder, documents=12)


def made(row, corpus):
    return recipe(
        "bert", overrides(row, str(corpus.path.parent / "similar.txt")) | {"training.steps": 2, "training.batch": 4}
    )


def trained(row, corpus):
    """After two updates, out of training; and some rows."""
    trainer = build_trainer(made(row, corpus).require(), corpus, 0, lambda _: None)
    require_no_leak(trainer)
    updates = list(trainer.updates())
    assert len(updates) == 2
    assert all(update.loss > 0 and update.gradient_norm > 0 for update in updates)
    return trainer.whole()[0].eval(), first_rows(trainer.feed, 4)


def loaded(system, chosen, corpus, folder):
    """The system with everything in the place of which a folder has something."""
    heads = system.heads_of(system.network)
    save_model(folder, system.network, heads, corpus.tokenizer, generator=beside(system))
    model, again = load(folder), System(chosen, corpus.vocabulary)
    assert model.report.unused == ()
    assert model.report.missing == ()
    again.networks["model"] = model.network
    heads = dict(model.heads)
    if model.generator is not None:
        again.networks["generator"] = model.generator.network
        heads |= model.generator.heads
    for name, head in again.heads.items():
        assert name in heads or not list(head.parameters())
        again.heads[name] = heads.get(name, head)
    return again.eval()


def assert_comes_back(row, corpus, folder):
    system, batch = trained(row, corpus)
    again = loaded(system, made(row, corpus), corpus, folder)
    assert system.network.shape == again.network.shape
    with torch.no_grad():
        expected, found = system(batch), again(batch)
    assert list(expected) == list(found)
    for name, total in expected.items():
        assert torch.equal(total, found[name]), name
    assert len(list(again.parameters())) == len(list(system.parameters())), "what is shared is one again"


@pytest.mark.parametrize("row", ROWS, ids=lambda row: "-".join(row.values()).replace(" ", "_"))
def test_every_two_choices_train_and_come_back(row, corpus, tmp_path):
    assert_comes_back(row, corpus, tmp_path / "model")


def test_every_two_choices_meet_or_are_refused():
    met = {pair for row in ROWS for pair in pairs_of(row)}
    assert not met & set(APART)
    assert met | set(APART) == set(every_pair()), "run python tests/choices.py"
    assert len(ROWS) < 200


def assert_refused(row, corpus):
    with pytest.raises(RecipeError) as refused:
        made(row, corpus).require()
    assert refused.value.exit_code == 2
    assert refused.value.repair or "repair: " in refused.value.text()


def test_choices_that_do_not_go_together_are_refused_with_a_reason(corpus):
    for pair, reason in APART.items():
        assert_refused(calm(pair), corpus)
        assert refusals(calm(pair))[0] == reason, "run python tests/choices.py"


@pytest.mark.grid
@pytest.mark.parametrize("part", range(PARTS))
def test_many_combinations(part, corpus, tmp_path):
    draw = Random(part)
    for number, row in zip(range(TRAINED), accepted(draw, {}, 100_000), strict=False):
        try:
            assert_comes_back(row, corpus, tmp_path / str(number))
        except Exception as error:
            raise AssertionError(f"{row}") from error
    found = (row for row in iter(lambda: drawn(draw, {}), None) if refusals(row))
    for _, row in zip(range(REFUSED), found, strict=False):
        assert_refused(row, corpus)
