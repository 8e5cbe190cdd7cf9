"""Who may see whom: predicates against a slow double loop, their hints, and how they combine."""

from typing import NamedTuple

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from maskery.model.config import VISIBILITIES
from maskery.model.visibility import Causal, Full, Packed, PackedCausal, Predicate, View, dense, view_of_rows

SLOW = {
    "full": lambda q, k, asks: True,
    "causal": lambda q, k, asks: k.place <= q.place,
    "reverse": lambda q, k, asks: k.place >= q.place,
    "prefix": lambda q, k, asks: k.document == 0 or k.place <= q.place,
    "packed": lambda q, k, asks: q.document == k.document,
    "packed_causal": lambda q, k, asks: q.document == k.document and k.place <= q.place,
    "permuted": lambda q, k, asks: k.order < q.order or (k.order == q.order and not asks),
}


class Slot(NamedTuple):
    place: int
    document: int
    order: int


def by_loop(rule, view):
    """(B,1,Q,K), asked one pair at a time."""
    rows, queries, keys = view.shape
    found = torch.zeros(rows, 1, queries, keys, dtype=torch.bool)
    for b in range(rows):
        for q in range(queries):
            for k in range(keys):
                asked = Slot(*(int(fact[b, q]) for fact in (view.q_pos, *view.q_slots.values())))
                seen = Slot(*(int(fact[b, k]) for fact in (view.k_pos, *view.k_slots.values())))
                found[b, 0, q, k] = rule(asked, seen, view.asks)
    return found


@st.composite
def views(draw):
    """Queries that are only some of the slots, in any order, and keys with memory in front."""
    rows, queries, keys, memory = (draw(st.integers(low, 5)) for low in (1, 1, 1, 0))
    seed = torch.Generator().manual_seed(draw(st.integers(0, 1000)))
    k_pos = torch.arange(-memory, keys).expand(rows, memory + keys)
    q_pos = torch.randint(0, keys, (rows, queries), generator=seed)
    facts = {name: torch.randint(0, 4, (rows, memory + keys), generator=seed) for name in ("document", "order")}
    asking = {name: fact.gather(1, q_pos + memory) for name, fact in facts.items()}
    return View(q_pos=q_pos, k_pos=k_pos, q_slots=asking, k_slots=facts, asks=draw(st.booleans()))


def test_every_visibility_has_a_slow_form():
    assert set(SLOW) == set(VISIBILITIES.names())


@pytest.mark.parametrize("name", VISIBILITIES.names())
@given(view=views())
def test_dense_is_the_double_loop(name, view):
    predicate = VISIBILITIES.get(name)().bind(view)
    found = dense(predicate, view)
    assert found.dtype == torch.bool
    assert torch.equal(found, by_loop(SLOW[name], view))
    if predicate.sees_all:
        assert found.all()


@pytest.mark.parametrize("name", VISIBILITIES.names())
@given(view=views(), seed=st.integers(0, 100))
def test_a_predicate_takes_any_broadcastable_indices(name, view, seed):
    """As flex_attention calls it: scalars, or index tensors of one shape."""
    predicate = VISIBILITIES.get(name)().bind(view)
    whole = dense(predicate, view)
    draw = torch.Generator().manual_seed(seed)
    b, q, k = (torch.randint(0, size, (7,), generator=draw) for size in view.shape)
    asked = predicate(b, torch.zeros(7, dtype=torch.long), q, k)
    assert torch.equal(asked, whole[b, 0, q, k])
    one = predicate(b[0], torch.tensor(0), q[0], k[0])
    assert bool(one) == bool(whole[b[0], 0, q[0], k[0]])


@given(view=views())
def test_combinations(view):
    causal, packed, full = (kind().bind(view) for kind in (Causal, Packed, Full))
    a, b = dense(causal, view), dense(packed, view)
    assert torch.equal(dense(causal & packed, view), a & b)
    assert torch.equal(dense(causal | packed, view), a | b)
    assert torch.equal(dense(~causal, view), ~a)
    assert torch.equal(dense(~(causal | packed), view), dense(~causal & ~packed, view))
    assert torch.equal(dense(causal & packed, view), dense(PackedCausal().bind(view), view))
    for mixed in (full & causal, causal | full, full | causal, full & full, ~full, causal & packed, ~causal):
        assert not mixed.sees_all or bool(dense(mixed, view).all()), "the hint never promises more than is there"
    assert (full & full).sees_all
    assert (causal | full).sees_all
    assert not (full & causal).sees_all
    assert not dense(~full, view).any()


def test_packed_documents_do_not_meet():
    documents = torch.tensor([[0, 0, 1, 1, 1]])
    view = view_of_rows(5, {"document": documents}, 1, torch.device("cpu"))
    seen = dense(Packed().bind(view), view)[0, 0].int().tolist()
    assert seen == [[1, 1, 0, 0, 0]] * 2 + [[0, 0, 1, 1, 1]] * 3
    causal = dense(PackedCausal().bind(view), view)[0, 0].int().tolist()
    assert causal == [[1, 0, 0, 0, 0], [1, 1, 0, 0, 0], [0, 0, 1, 0, 0], [0, 0, 1, 1, 0], [0, 0, 1, 1, 1]]


def test_causal_with_memory_and_partial_queries():
    """Memory stands at negative places; two queries of four slots."""
    view = View(q_pos=torch.tensor([[1, 3]]), k_pos=torch.tensor([[-2, -1, 0, 1, 2, 3]]))
    seen = dense(Causal().bind(view), view)[0, 0].int().tolist()
    assert seen == [[1, 1, 1, 1, 0, 0], [1, 1, 1, 1, 1, 1]]


def test_the_hint_is_not_inherited_by_a_new_predicate():
    assert not Predicate(lambda b, h, q, k: q >= k).sees_all
