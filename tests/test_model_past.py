"""What stands in front of a row: reading on behind a memory or a cache gives what one long row gives."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from small_model import inputs, small_batch, small_network

from maskery.batches import Memory
from maskery.model.config import POSITIONS
from maskery.model.layout import layout_of
from maskery.model.past import Cache, filled, from_the_right, joined, lengths_of, remembered
from maskery.model.transformer import inputs_of
from maskery.model.visibility import Causal, Recent, Within

ORDERED = [name for name in POSITIONS.names() if name != "xlnet"]
CLIPS = {"disentangled": 6}
"""The least that the scheme takes with eight buckets; what comes before a row is farther away than that."""

# Stretches that are filled from the right, against lists


def from_lists(lists, size):
    """(B,size) whole numbers, the lists' last ones at the right."""
    grid = torch.zeros(len(lists), size, dtype=torch.long)
    for row, numbers in enumerate(lists):
        if numbers:
            grid[row, size - len(numbers) :] = torch.tensor(numbers)
    return grid


def to_lists(grid, length):
    return [row[len(row) - many :].tolist() for row, many in zip(grid, length.tolist(), strict=True)]


lists = st.lists(st.lists(st.integers(1, 99), max_size=4), min_size=1, max_size=4)


@settings(max_examples=40)
@given(
    pairs=st.lists(
        st.tuples(st.lists(st.integers(1, 99), max_size=4), st.lists(st.integers(1, 99), max_size=4)),
        min_size=1,
        max_size=4,
    ),
    more=st.integers(0, 2),
)
def test_joined_has_no_gap(pairs, more):
    before, after = ([pair[side] for pair in pairs] for side in (0, 1))
    sizes = [max(map(len, each)) + more for each in (before, after)]
    length, added = (torch.tensor([len(each) for each in side]) for side in (before, after))
    grids = [from_lists(side, size) for side, size in zip((before, after), sizes, strict=True)]
    found = joined(grids[0], length, grids[1], added)
    assert to_lists(found, length + added) == [one + other for one, other in pairs]
    deep = joined(grids[0][:, None, :, None], length, grids[1][:, None, :, None], added, axis=2)
    assert torch.equal(deep[:, 0, :, 0], found)
    assert to_lists(filled(length, sizes[0]).long(), length) == [[1] * len(each) for each in before]
    assert filled(length, sizes[0]).sum(1).tolist() == length.tolist()


@settings(max_examples=40)
@given(rows=lists.filter(lambda rows: any(rows)), seed=st.integers(0, 99))
def test_packed_slots_from_the_right(rows, seed):
    """Whatever side the padding is on."""
    width = max(map(len, rows)) + 1
    shift = torch.randint(0, 5, (len(rows),), generator=torch.Generator().manual_seed(seed))
    mask = torch.zeros(len(rows), width, dtype=torch.bool)
    ids = torch.zeros(len(rows), width, dtype=torch.long)
    for row, numbers in enumerate(rows):
        start = int(shift[row]) % (width - len(numbers) + 1)
        mask[row, start : start + len(numbers)] = True
        ids[row, start : start + len(numbers)] = torch.tensor(numbers, dtype=torch.long)
    layout = layout_of(mask)
    length = lengths_of(layout, ids.device)
    assert length.tolist() == [len(each) for each in rows]
    assert to_lists(from_the_right(layout, layout.pack(ids)), length) == rows


@settings(max_examples=40)
@given(
    turns=st.lists(st.lists(st.lists(st.integers(1, 99), max_size=3), min_size=2, max_size=2), min_size=1, max_size=4),
    size=st.integers(1, 6),
)
def test_what_is_remembered_is_the_end_of_all_that_was_read(turns, size):
    memory, read = None, [[], []]
    for rows in turns:
        layout = layout_of(torch.arange(3) < torch.tensor([len(each) for each in rows]).unsqueeze(1))
        packed = torch.tensor([number for n in layout.order.tolist() for number in rows[n]], dtype=torch.long)
        memory = remembered(memory, [packed.float().unsqueeze(1)], layout, size)
        read = [before + now for before, now in zip(read, rows, strict=True)]
        assert memory.states[0].shape[1] <= size
        assert to_lists(memory.states[0][..., 0], memory.length) == [each[-size:] for each in read]


def test_the_first_slots_of_rows_may_be_all_that_is_remembered():
    layout = layout_of(torch.ones(2, 4, dtype=torch.bool))
    states = torch.arange(8.0).view(8, 1)
    first = remembered(None, [states], layout, 3, first=2)
    assert first.states[0][..., 0].tolist() == [[0, 1], [4, 5]]
    second = remembered(first, [states + 10], layout, 3, first=2)
    assert second.states[0][..., 0].tolist() == [[1, 10, 11], [5, 14, 15]]


# Memory

TURNS = [[6, 6], [6, 3], [4, 6], [6, 6]]
"""The lengths of two lanes' rows, turn by turn."""


def long_rows(seed=0):
    draw = torch.Generator().manual_seed(seed)
    return [torch.randint(5, 50, (sum(turn[lane] for turn in TURNS),), generator=draw) for lane in (0, 1)]


def turn_of(rows, number, memory):
    """The rows of one turn, positions going on."""
    start = [sum(turn[lane] for turn in TURNS[:number]) for lane in (0, 1)]
    mask = torch.arange(6) < torch.tensor(TURNS[number]).unsqueeze(1)
    ids = torch.zeros(2, 6, dtype=torch.long)
    for lane in (0, 1):
        ids[lane, : TURNS[number][lane]] = rows[lane][start[lane] : start[lane] + TURNS[number][lane]]
    positions = torch.arange(6) + torch.tensor(start).unsqueeze(1)
    return replace(inputs(ids, layout_of(mask), positions=positions), past=memory), mask


def in_turns(network, rows):
    memory = None
    for number in range(len(TURNS)):
        read, mask = turn_of(rows, number, memory)
        hidden = network(read)
        memory = hidden.memory
    return hidden, mask


def in_one(network, row):
    return network(inputs(row[None], layout_of(torch.ones(1, len(row), dtype=torch.bool)))).last[0]


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("name", ORDERED)
def test_four_rows_with_memory_are_one_long_row(name, norm):
    network = small_network("causal", positions=name, memory=64, clip=CLIPS.get(name, 5), buckets=8, norm=norm)
    rows = long_rows()
    last, mask = in_turns(network, rows)
    for lane in (0, 1):
        whole = in_one(network, rows[lane])
        torch.testing.assert_close(last.last[lane, mask[lane]], whole[-TURNS[-1][lane] :], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("clamp", [None, 4])
def test_all_slots_may_see_equally_far(clamp):
    """A memory as long as the reach: nothing is lost however long the text is."""
    network, reach = small_network(positions="xl", memory=7), 8
    network.visibility, network.embeddings.positions.clamp = Recent(reach), clamp
    rows = long_rows()
    last, mask = in_turns(network, rows)
    for lane in (0, 1):
        whole = in_one(network, rows[lane])
        torch.testing.assert_close(last.last[lane, mask[lane]], whole[-TURNS[-1][lane] :], rtol=1e-5, atol=1e-5)
    network.visibility = Causal()
    assert not torch.allclose(in_turns(network, rows)[0].last, last.last, atol=1e-3), "a memory of 7 is not all"
    network.visibility = Within(reach)
    assert not torch.allclose(in_turns(network, rows)[0].last, last.last, atol=1e-3), "what comes later is seen"


def test_no_gradient_goes_into_memory():
    """Tokens that only the row before has move the loss, but not by a gradient."""
    network = small_network("causal", positions="xl", memory=8)
    before, now = torch.tensor([[5, 6, 7]]), torch.tensor([[8, 9]])
    three, two = (layout_of(torch.ones(1, size, dtype=torch.bool)) for size in (3, 2))
    memory = network(inputs(before, three)).memory
    assert not any(each.requires_grad for each in memory.states)
    network(replace(inputs(now, two), past=memory)).packed.square().sum().backward()
    gradient = network.embeddings.tokens.grad
    assert (gradient[[5, 6, 7]] == 0).all()
    assert gradient[[8, 9]].all()
    other = network(inputs(before + 10, three)).memory
    one, two_ = (network(replace(inputs(now, two), past=each)).packed for each in (memory, other))
    assert not torch.allclose(one, two_, atol=1e-3)


def test_a_memory_that_is_not_filled_is_none():
    network, batch = small_network("causal", positions="xl", memory=4), small_batch([5, 3])
    empty = Memory(states=tuple(torch.full((2, 4, 16), 9.0) for _ in range(2)), length=torch.zeros(2, dtype=torch.long))
    plain = network(inputs_of(batch)).packed
    torch.testing.assert_close(network(inputs_of(replace(batch, memory=empty))).packed, plain, rtol=1e-5, atol=1e-5)


# Cache

PROMPT, STEPS = [4, 2, 4], [1, 3, 1]
"""Slots that rows of three lengths begin with; then how many all go on by."""


def cached(network, rows, documents, size=None):
    """The last states of every slot, read in steps; and the cache at the end."""
    done, states, cache = [0] * len(rows), [[] for _ in rows], None
    for lengths in (PROMPT, *([step] * len(rows) for step in STEPS)):
        width = max(lengths)
        mask = torch.arange(width) < torch.tensor(lengths).unsqueeze(1)
        grids = torch.zeros(3, len(rows), width, dtype=torch.long)
        for row, (start, length) in enumerate(zip(done, lengths, strict=True)):
            cut = slice(start, start + length)
            grids[:, row, :length] = torch.stack((rows[row][cut], documents[row][cut], torch.arange(start, cut.stop)))
        facts = {"document": grids[1]}
        read = replace(
            inputs(grids[0], layout_of(mask), positions=grids[2], slots=facts, segments=grids[1]), past=cache
        )
        hidden = network(read, keep=True)
        cache = hidden.cache
        for row, length in enumerate(lengths):
            states[row].append(hidden.last[row, :length])
            done[row] += length
    return [torch.cat(each) for each in states], cache


def case(seed=1):
    draw = torch.Generator().manual_seed(seed)
    rows = [torch.randint(5, 50, (length + sum(STEPS),), generator=draw) for length in PROMPT]
    return rows, [(torch.arange(len(row)) >= 2).long() for row in rows]


@pytest.mark.parametrize("visibility", ["causal", "prefix", "packed_causal"])
@pytest.mark.parametrize("name", POSITIONS.names())
def test_a_cache_is_the_full_row(name, visibility):
    norm = "pre" if name in ("learned", "xl", "t5") else "post"
    clip, share = CLIPS.get(name, 3), "all" if name == "shaw" else "none"
    network = small_network(visibility, positions=name, clip=clip, buckets=8, norm=norm, share=share)
    rows, documents = case()
    with torch.no_grad():
        states, cache = cached(network, rows, documents)
        for row, (ids, document) in enumerate(zip(rows, documents, strict=True)):
            layout, facts = layout_of(torch.ones(1, len(ids), dtype=torch.bool)), {"document": document[None]}
            whole = network(inputs(ids[None], layout, slots=facts, segments=document[None])).last[0]
            torch.testing.assert_close(states[row], whole, rtol=1e-5, atol=1e-5)
    assert cache.length.tolist() == [len(row) for row in rows]
    assert to_lists(cache.positions, cache.length) == [list(range(len(row))) for row in rows]


def test_rows_of_a_cache_may_be_chosen_again():
    network = small_network("causal")
    rows, documents = case()
    with torch.no_grad():
        _, cache = cached(network, rows, [torch.zeros_like(each) for each in documents])
        chosen = cache.select(torch.tensor([2, 0, 0]))
        assert isinstance(chosen, Cache)
        layout = layout_of(torch.ones(3, 1, dtype=torch.bool))
        places = cache.length[:, None]

        def on(past, numbers):
            read = inputs(torch.tensor([[7], [8], [9]]), layout, positions=numbers)
            return network(replace(read, past=past)).last

        plain, other = on(cache, places), on(chosen, places[[2, 0, 0]])
        assert not torch.allclose(plain, other, atol=1e-3)
        whole = torch.cat((rows[0], torch.tensor([8])))
        alone = network(inputs(whole[None], layout_of(torch.ones(1, len(whole), dtype=torch.bool)))).last
        torch.testing.assert_close(other[1], alone[0, -1:], rtol=1e-5, atol=1e-5)


def test_weights_behind_a_cache_are_those_of_the_full_row():
    network = small_network("causal")
    ids = torch.tensor([[7, 8, 9, 10, 11]])

    def read(first, stop, past):
        layout = layout_of(torch.ones(1, stop - first, dtype=torch.bool))
        return replace(inputs(ids[:, first:stop], layout, positions=torch.arange(first, stop)[None]), past=past)

    with torch.no_grad():
        cache = network(read(0, 3, None), keep=True).cache
        found = network(read(3, 5, cache), attentions=True).attentions
        whole = network(read(0, 5, None), attentions=True).attentions
    for one, other in zip(found, whole, strict=True):
        torch.testing.assert_close(one, other[:, :, 3:], rtol=1e-5, atol=1e-5)
