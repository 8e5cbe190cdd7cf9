"""A wrong value is refused with the value that mends it, not with a hint to read."""

import pytest

from maskery.errors import RecipeError
from maskery.recipes.recipe import recipe

WRONG = [
    ("bert", {"model.heads": 7}, "set heads = 6, or width = 770"),
    ("albert", {"model.groups": 5}, "set groups = 4"),
    ("bert", {"model.groups": 2}, "set share = 'all', or groups = 1"),
    ("bert", {"model.positions": "t5", "model.clip": 8}, "set clip = 128"),
    ("electra", {"model.generator.heads": 7}, "set generator.heads = 4, or 0 for as many as are usual"),
    ("bert", {"visibility.mixture": {"full": 0.5, "causal": 0.25}}, "set { full = 0.6667, causal = 0.3333 }"),
    ("bert", {"corruption.unit": "wrod"}, "did you mean word? choices: entity, phrase, token, word"),
    ("infoword", {"corruption.ngram.shortest": 12}, "set longest = 12"),
    ("bert", {"corruption.masks": 3, "corruption.when": "dynamic"}, "set when = 'static'"),
]


@pytest.mark.parametrize(("name", "changes", "repair"), WRONG, ids=str)
def test_the_repair_is_the_one_that_helps(name, changes, repair):
    with pytest.raises(RecipeError) as caught:
        recipe(name, changes)
    assert caught.value.repair == repair
    assert repair not in caught.value.cause, "told once"


def test_the_repair_helps():
    for name, changes in (
        ("bert", {"model.heads": 6}),
        ("bert", {"model.heads": 7, "model.width": 770}),
        ("albert", {"model.groups": 4}),
        ("bert", {"model.positions": "t5", "model.clip": 128}),
        ("electra", {"model.generator.heads": 4}),
        ("bert", {"visibility.mixture": {"full": 0.6667, "causal": 0.3333}}),
    ):
        recipe(name, changes)


def test_where_the_check_has_no_repair_the_keys_are_shown():
    with pytest.raises(RecipeError) as caught:
        recipe("bert", {"model.layers": "many"})
    assert "maskery recipes show bert" in caught.value.repair
