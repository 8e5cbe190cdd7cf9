"""Information flow: worked matrices, the network's own Jacobian, and the refusal of questions that leak."""

from dataclasses import replace
from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from small_model import VOCABULARY, small_batch, small_network, small_recipe

from maskery.edit import Edit
from maskery.errors import RefusedError
from maskery.model.config import VISIBILITIES
from maskery.model.flow import (
    Leak,
    Reading,
    find_leak,
    jacobian_pattern,
    reach,
    reach_two_streams,
    read_answers,
    visible_row,
)
from maskery.model.visibility import Predicate
from maskery.recipes.recipe import names
from maskery.system import System


class Given:
    """A visibility written out as a matrix."""

    needs = ()

    def __init__(self, matrix):
        self.matrix = matrix

    def bind(self, view):
        return Predicate(lambda b, h, q, k: self.matrix[view.q_pos[b, q], view.k_pos[b, k]])


def network_with(matrix, layers=2, **changes):
    network = small_network(layers=layers, **changes)
    network.visibility = Given(matrix)
    return network


def matrices(size=5):
    return st.lists(st.lists(st.booleans(), min_size=size, max_size=size), min_size=size, max_size=size).map(
        torch.tensor
    )


def slow_reach(visible, layers, residual=True):
    """Sets of slots, one layer after another."""
    size = len(visible)
    known = [{slot} for slot in range(size)]
    for _ in range(layers):
        seen = [set().union(*(known[k] for k in range(size) if visible[q, k])) for q in range(size)]
        known = [seen[q] | known[q] if residual else seen[q] for q in range(size)]
    return torch.tensor([[slot in known[q] for slot in range(size)] for q in range(size)])


@given(visible=matrices(), layers=st.integers(0, 4), residual=st.booleans())
def test_reach_is_a_union_of_sets(visible, layers, residual):
    steps = reach(visible, layers, residual=residual)
    assert len(steps) == layers + 1
    for depth, step in enumerate(steps):
        assert torch.equal(step, slow_reach(visible, depth, residual))


@settings(max_examples=15, deadline=None)
@given(visible=matrices(), layers=st.integers(1, 3), norm=st.sampled_from(["post", "pre"]))
def test_reach_is_the_pattern_of_the_jacobian(visible, layers, norm):
    """Any matrix, blind queries and slots that do not see themselves included."""
    network = network_with(visible, layers, norm=norm)
    assert torch.equal(jacobian_pattern(network, small_batch([5]), 0), reach(visible, layers)[-1])


@pytest.mark.parametrize("visibility", VISIBILITIES.names())
@pytest.mark.parametrize("name", names())
def test_every_recipe_and_visibility_flows_as_it_says(name, visibility):
    recipe = small_recipe(name, model__init_std=0.3, visibility__kind=visibility)
    system = System(recipe, VOCABULARY).eval()
    system.initialise(0)
    batch = small_batch([4, 9, 6])
    for row in range(3):
        visible = visible_row(system.network.visibility, batch, row)
        expected = reach(visible, recipe.model.layers)[-1]
        assert torch.equal(jacobian_pattern(system.network, batch, row), expected)


@pytest.mark.parametrize("name", names())
def test_every_recipe_flows_as_it_says(name):
    recipe = small_recipe(name, model__init_std=0.3)
    system = System(recipe, VOCABULARY).eval()
    system.initialise(0)
    batch = small_batch([4, 9, 6], list(recipe.objectives))
    visible = visible_row(system.network.visibility, batch, 1)
    assert torch.equal(jacobian_pattern(system.network, batch, 1), reach(visible, recipe.model.layers)[-1])
    system.require_no_leak(batch)


def test_visible_row_leaves_padding_out():
    batch = small_batch([3, 5])
    assert visible_row(VISIBILITIES.get("causal")(), batch, 0).tolist() == torch.ones(3, 3).tril().bool().tolist()
    assert visible_row(VISIBILITIES.get("packed")(), batch, 1).int().tolist() == (
        [[1, 1, 0, 0, 0]] * 2 + [[0, 0, 1, 1, 1]] * 3
    )


@given(content=matrices(4), query=matrices(4), layers=st.integers(0, 3))
def test_two_streams_are_queries_that_nobody_reads(content, query, layers):
    """The same as one network over eight slots: four of content, four that only ask."""
    nothing = torch.zeros(4, 4, dtype=torch.bool)
    both = torch.cat((torch.cat((content, nothing), 1), torch.cat((query, nothing), 1)))
    start = torch.cat((torch.cat((torch.eye(4, dtype=torch.bool), nothing), 1), torch.zeros(4, 8, dtype=torch.bool)))
    joint = reach(both, layers, start=start)
    apart = reach_two_streams(content, query, layers)
    assert [step.tolist() for step in apart] == [step[4:, :4].tolist() for step in joint]


# Leaks


def next_token_system(visibility, layers=2):
    recipe = small_recipe("roberta", visibility__kind=visibility, model__layers=layers, corruption__rate=0.0)
    asked = {"next_token": recipe.objectives["masked_token"]}
    return System(recipe.model_copy(update={"objectives": asked}), VOCABULARY)


@pytest.mark.parametrize("visibility", ["full", "packed"])
def test_next_token_leaks_where_the_right_is_seen(visibility):
    system = next_token_system(visibility)
    batch = small_batch([5, 7], ["next_token"], chosen=0)
    with pytest.raises(RefusedError) as caught:
        system.require_no_leak(batch)
    text = str(caught.value)
    assert f"next_token under {visibility} visibility" in text
    assert "position 0 reaches its own answer in layer 1 directly (the answer stands at position 1)" in text
    assert "repair:" in text


@pytest.mark.parametrize("visibility", ["causal", "packed_causal"])
def test_next_token_does_not_leak_to_the_right(visibility):
    next_token_system(visibility).require_no_leak(small_batch([5, 7], ["next_token"], chosen=0))


@pytest.mark.parametrize("visibility", VISIBILITIES.names())
def test_masked_tokens_do_not_leak_where_they_are_hidden(visibility):
    recipe = small_recipe("roberta", visibility__kind=visibility)
    batch = small_batch([6, 9], ["masked_token"])
    assert len(batch.targets["masked_token"].index) > 2
    System(recipe, VOCABULARY).require_no_leak(batch)


def test_a_masked_token_left_in_the_input_leaks():
    """Full visibility without the diagonal does not help: a slot carries its own content from the input on."""
    apart = ~torch.eye(6, dtype=torch.bool)
    batch = small_batch([6], ["masked_token"])
    shown = replace(batch, edit=torch.zeros_like(batch.edit))
    index = batch.targets["masked_token"].index
    assert find_leak(network_with(apart), batch, index, index) is None
    leak = find_leak(network_with(apart), shown, index, index)
    assert leak is not None
    assert (leak.asked, leak.answer, leak.layer) == (int(index[0]), int(index[0]), 0)
    assert leak.text() == f"position {int(index[0])} holds its own answer in the input"


def test_the_path_of_a_leak():
    """Each slot sees itself and the next: three layers reach three slots on."""
    visible = torch.eye(5, dtype=torch.bool) | torch.eye(5, dtype=torch.bool).roll(1, 1).triu()
    batch = small_batch([2, 5], chosen=0)
    width = batch.ids.shape[1]
    asked, answer = torch.tensor([width + 1]), torch.tensor([width + 4])
    for layers in (1, 2):
        assert find_leak(network_with(visible, layers), batch, asked, answer) is None
    leak = find_leak(network_with(visible, 3), batch, asked, answer)
    assert (leak.row, leak.asked, leak.answer, leak.layer, leak.path) == (1, 1, 4, 3, (2, 3))
    assert leak.text() == (
        "position 1 reaches its own answer in layer 3 through positions 2 and 3 (the answer stands at position 4)"
    )
    assert Leak(0, 2, 2, 2, (1,)).text() == "position 2 reaches its own answer in layer 2 through position 1"


def test_the_model_does_not_read_what_corruption_kept_for_the_generator():
    """Every chosen slot is filled with a drawn token before the model reads it."""
    asked = ["masked_token", "replaced_token", "span_boundary"]
    changed = {"corruption__decide": "span", "objectives__span_boundary": {"weight": 1.0}}
    system = System(small_recipe("electra", **changed), VOCABULARY)
    batch = small_batch([6, 9], asked)
    chosen = batch.targets["masked_token"].index
    edit = batch.edit.flatten().index_fill(0, chosen, int(Edit.KEEP)).view_as(batch.edit)
    readings = system.readings(replace(batch, edit=edit))
    generator, model = readings["masked_token"], readings["span_boundary"]
    assert generator.kept == generator.targets == len(chosen) > 0
    assert model.targets > 0, "from both ends of a span"
    assert model.kept == 0


def test_answers_kept_on_purpose_are_counted_where_they_can_be_read():
    batch = small_batch([6], ["masked_token"], chosen=1.0)
    edit = batch.edit.clone()
    edit[0, :2] = int(Edit.KEEP)
    kept, index = replace(batch, edit=edit), batch.targets["masked_token"].index
    assert read_answers(network_with(torch.eye(6, dtype=torch.bool)), kept, index, index) == Reading(6, None, 2)
    causal = network_with(torch.ones(6, 6).tril().bool())
    assert read_answers(causal, kept, index[:-1], index[:-1] + 1) == Reading(5, None, 0), "they are not reached"
    full = network_with(torch.ones(6, 6).bool())
    assert read_answers(full, kept, index[:-1], index[:-1] + 1) == Reading(5, None, 1)


@settings(max_examples=40, deadline=None)
@given(visible=matrices(6), asked=st.integers(0, 5), answer=st.integers(0, 5), layers=st.integers(1, 4))
def test_a_path_is_a_way_through_the_matrix(visible, asked, answer, layers):
    network = network_with(visible, layers)
    leak = find_leak(network, small_batch([6], chosen=0), torch.tensor([asked]), torch.tensor([answer]))
    assert (leak is not None) == bool(reach(visible, layers)[-1][asked, answer])
    if leak is None or leak.layer == 0:
        assert leak is None or asked == answer
        return
    way = [asked, *leak.path, answer]
    assert len(way) == leak.layer + 1
    assert all(visible[one, other] for one, other in pairwise(way))
    assert not reach(visible, leak.layer - 1)[-1][asked, answer], "the shortest"
