"""Rows that are read in modes of their own: the network against the equations written out, and by changing what may not
be seen."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from small_model import VOCABULARY, batch_of, rows_of, small_network

from maskery.model.config import VISIBILITIES, Mode
from maskery.model.flow import jacobian_pattern, reach, visible_row
from maskery.model.transformer import inputs_of, visibility_of
from maskery.model.visibility import Mixed, View, dense

LENGTHS, MODES = [5, 9, 6, 9, 9, 9, 1], [0, 1, 2, 3, 2, 0, 1]
"""The rows of nine slots are one group with every mode in it."""


def mixed_rows(lengths=LENGTHS, modes=MODES, seed=0):
    return replace(rows_of(lengths, seed), mode=np.array(modes, dtype=np.uint8))


def may_see(mode, q, k, document):
    """The four rules, for one pair of slots."""
    return {
        Mode.FULL: True,
        Mode.PREFIX: document[k] == 0 or k <= q,
        Mode.CAUSAL: k <= q,
        Mode.REVERSE: k >= q,
    }[Mode(mode)]


@given(seed=st.integers(0, 500), rows=st.integers(1, 4), slots=st.integers(1, 5))
def test_the_predicate_is_the_double_loop(seed, rows, slots):
    draw = np.random.default_rng(seed)
    mode = np.repeat(draw.integers(0, 4, (rows, 1)), slots, axis=1)
    document = np.sort(draw.integers(0, 2, (rows, slots)), axis=1)
    places = torch.arange(slots).expand(rows, slots)
    facts = {"mode": torch.from_numpy(mode), "document": torch.from_numpy(document)}
    view = View(q_pos=places, k_pos=places, q_slots=facts, k_slots=facts)
    predicate = Mixed().bind(view)
    found = dense(predicate, view)
    slow = [[[may_see(mode[b, 0], q, k, document[b]) for k in range(slots)] for q in range(slots)] for b in range(rows)]
    assert found[:, 0].tolist() == slow
    assert predicate.sees_all == (mode == Mode.FULL).all()


# The network once more, a row and a pair of slots at a time


def norm(x, weight, bias, eps):
    mean = sum(x.tolist()) / len(x)
    variance = sum((value - mean) ** 2 for value in x.tolist()) / len(x)
    return (x - mean) / math.sqrt(variance + eps) * weight + bias


def slow_states(network, batch, row, mode):
    """The last states of one row by the equations of a post-norm Transformer, in double precision."""
    p = {name: value.detach().double() for name, value in network.named_parameters()}
    shape, length = network.shape, int(batch.length[row])
    size = shape.width // shape.heads
    document = batch.slots["document"][row].tolist()
    x = []
    for t in range(length):
        summed = (
            p["embeddings.tokens"][batch.ids[row, t]]
            + p["embeddings.positions.table"][t]
            + p["embeddings.segments"][batch.segments[row, t]]
        )
        x.append(norm(summed, p["embeddings.norm.weight"], p["embeddings.norm.bias"], shape.eps))
    for layer in range(shape.layers):
        own = {name.removeprefix(f"layers.{layer}."): value for name, value in p.items()}
        q, k, v = (
            [own["attention.inputs"][part] @ each + own["attention.inputs_bias"][part] for each in x]
            for part in range(3)
        )
        states = []
        for i in range(length):
            heads = []
            for head in range(shape.heads):
                cut = slice(head * size, (head + 1) * size)
                seen = [j for j in range(length) if may_see(mode, i, j, document)]
                score = [math.exp(float(q[i][cut] @ k[j][cut]) / math.sqrt(size)) for j in seen]
                heads.append(sum(value / sum(score) * v[j][cut] for value, j in zip(score, seen, strict=True)))
            mixed = own["attention.output.weight"] @ torch.cat(heads) + own["attention.output.bias"]
            state = norm(x[i] + mixed, own["attention_norm.weight"], own["attention_norm.bias"], shape.eps)
            inner = own["up.weight"] @ state + own["up.bias"]
            inner = torch.tensor([u / 2 * (1 + math.erf(u / math.sqrt(2))) for u in inner.tolist()]).double()
            turned = own["down.weight"] @ inner + own["down.bias"]
            states.append(norm(state + turned, own["feedforward_norm.weight"], own["feedforward_norm.bias"], shape.eps))
        x = states
    return torch.stack(x)


def test_states_are_those_of_the_equations():
    network, batch = small_network(segments=6), batch_of(mixed_rows())
    with torch.no_grad():
        last = network(inputs_of(batch)).last.double()
    for row, mode in enumerate(MODES):
        slow = slow_states(network, batch, row, mode)
        torch.testing.assert_close(last[row, : len(slow)], slow, rtol=1e-5, atol=1e-5)


def test_a_row_is_read_as_in_a_network_of_its_visibility():
    """The same weights, with every row in one mode: bitwise the rows of the mixture that have it."""
    mixed, rows = small_network(), rows_of(LENGTHS)
    with torch.no_grad():
        together = mixed(inputs_of(batch_of(mixed_rows()))).last
        for mode in Mode:
            alone = small_network(mode.kind)(inputs_of(batch_of(rows))).last
            for row in np.flatnonzero(np.array(MODES) == mode):
                torch.testing.assert_close(together[row], alone[row], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("mode", Mode, ids=lambda mode: mode.kind)
def test_the_jacobian_has_the_pattern_of_the_mode(mode):
    network, batch = small_network(), batch_of(mixed_rows([7], [mode]))
    visible = visible_row(visibility_of(batch), batch, 0)
    assert torch.equal(jacobian_pattern(network, batch, 0), reach(visible, 2)[-1])


# What may not be seen changes nothing, what may be seen does


def changed(batch, row, slot):
    ids = batch.ids.clone()
    ids[row, slot] = 5 + (ids[row, slot] - 4) % (VOCABULARY - 5)
    assert ids[row, slot] != batch.ids[row, slot]
    return replace(batch, ids=ids)


@pytest.mark.parametrize("positions", ["learned", "nezha", "t5"])
@pytest.mark.parametrize("kind", [*VISIBILITIES.names(), "mixed"])
def test_a_state_depends_on_what_it_may_see_alone(kind, positions):
    mixed = kind == "mixed"
    network = small_network("full" if mixed else kind, positions=positions)
    batch = batch_of(mixed_rows() if mixed else rows_of(LENGTHS))
    width = batch.ids.shape[1]
    draw = np.random.default_rng(1)
    for row, length in enumerate(LENGTHS):
        visible = visible_row(visibility_of(batch) or network.visibility, batch, row)
        known = reach(visible, network.shape.layers)[-1]
        slot = int(draw.integers(length))
        asked = torch.arange(length)[: max(1, length // 3)] + row * width
        with torch.no_grad():
            pair = [inputs_of(batch), inputs_of(changed(batch, row, slot))]
            one, other = (network(each).last for each in pair)
            some, others = (network(each, reads=asked) for each in pair)
        moved = (one - other).abs().amax(-1)
        assert (moved[row, :length][~known[:, slot]] <= 1e-6).all()
        assert (moved[row, :length][known[:, slot]] > 1e-5).all()
        assert (moved[torch.arange(len(LENGTHS)) != row] <= 1e-6).all(), "no other row"
        assert some.selection is not None, "the last layer computes some slots only"
        selected = (some.select(asked) - others.select(asked)).abs().amax(-1)
        torch.testing.assert_close(selected > 1e-5, known[: len(asked), slot])
