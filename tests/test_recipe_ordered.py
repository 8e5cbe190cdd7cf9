"""What reads in an order and contradicts itself is refused, with the piece, the reason and the choices."""

import pytest

from maskery.recipes import ordered
from maskery.recipes.checks import CHECKS
from maskery.recipes.recipe import check, names, recipe

ASKED = {"objectives.masked_token": False, "objectives.next_sentence": False}
KEPT = {"corruption.replace": {"mask": 0.0, "random": 0.0, "keep": 1.0}, "corruption.rate": 0.16}
PERMUTED = {**ASKED, **KEPT, "objectives.permuted_token.weight": 1.0, "rows.pair": "none"}
MEMORY = {"model.memory": 8, "model.positions": "xl"}

CASES = {
    "asked in no order": ("bert", PERMUTED, "objectives.permuted_token", 'visibility.kind = "full" has none'),
    "asked of one stream": (
        "bert",
        {**PERMUTED, "visibility.kind": "permuted"},
        "objectives.permuted_token",
        "model.streams = 1 has no other",
    ),
    "asked of what is hidden": (
        "xlnet",
        {"corruption.replace": {"mask": 0.8, "random": 0.1, "keep": 0.1}},
        "objectives.permuted_token",
        "leaves only 0.1 of them",
    ),
    "nothing is chosen": ("xlnet", {"corruption.rate": 0.0}, "objectives.permuted_token", "nothing is asked"),
    "an order that nobody asks in": ("roberta", {"visibility.kind": "permuted"}, "visibility.kind", "is not asked"),
    "two streams without an order": ("gpt2", {"model.streams": 2}, "model.streams", "in an order"),
    "a memory of other text": ("roberta", MEMORY, "model.memory", "would be of other text"),
    "a memory of places": ("gpt2", {"model.memory": 8}, "model.memory", "cannot tell how far"),
    "a memory that nobody sees": (
        "gpt2",
        {**MEMORY, "visibility.kind": "packed_causal"},
        "model.memory",
        "does not look at what stands before",
    ),
    "a memory that saw ahead": (
        "xlnet",
        {"visibility.kind": "full", "model.streams": 1, "objectives.permuted_token": False}
        | {"objectives.masked_token.weight": 1.0},
        "model.memory",
        "would remember it",
    ),
    "a third segment": ("xlnet", {"model.segments": 2}, "model.segments", "three segments"),
    "a contrast of no [CLS]": (
        "gpt2",
        {"visibility.kind": "full", "objectives.next_token": False, "objectives.contrast.weight": 1.0}
        | {"corruption.ngram.longest": 3},
        "objectives.contrast",
        "have none there",
    ),
    "a target that half of the rows lack": (
        "transformer",
        {"rows.kind": "one_or_two_segments"},
        "rows.decoder",
        "lack",
    ),
    "the next token in sight": ("gpt2", {"visibility.kind": "full"}, "objectives.next_token", "sees the token"),
    "the next token changed": ("gpt2", {"corruption.rate": 0.15}, "objectives.next_token", "as it is"),
    "rows longer than positions": ("gpt2", {"training.length": 2048}, "model.positions", "model.max_length = 1024"),
}


@pytest.mark.parametrize("case", CASES)
def test_contradictions(case):
    name, changes, piece, word = CASES[case]
    found = [each for each in check(recipe(name, changes)) if each.piece == piece and word in each.reason]
    assert len(found) == 1, check(recipe(name, changes))
    assert found[0].repair


@pytest.mark.parametrize("name", names())
def test_what_comes_with_the_package_contradicts_nothing(name):
    changes = {"knowledge.synonyms": "x.txt"} if recipe(name).corruption.replace.similar else {}
    assert check(recipe(name, changes)) == []


def test_every_contradiction_is_looked_for():
    written = {each for each in vars(ordered).values() if getattr(each, "__module__", "") == ordered.__name__}
    assert written
    assert written <= set(CHECKS)


@pytest.mark.parametrize("kind", ["nezha", "shaw", "t5", "xl"])
def test_a_stream_may_remember_with_any_distances(kind):
    assert check(recipe("gpt2", {"model.memory": 8, "model.positions": kind})) == []
