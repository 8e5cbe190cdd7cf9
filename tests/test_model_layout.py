"""Padded rows <-> packed slots."""

import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from maskery.model.layout import layout_of

MASKS = arrays.arrays(bool, st.tuples(st.integers(0, 6), st.integers(1, 7)))


@given(MASKS)
def test_pack_and_unpack_are_inverse(array):
    mask = torch.from_numpy(array)
    layout = layout_of(mask)
    x = torch.arange(1.0, mask.numel() * 2 + 1).view(*mask.shape, 2)
    packed = layout.pack(x)
    assert packed.shape == (int(mask.sum()), 2)
    assert layout.count == len(packed)
    assert torch.equal(layout.unpack(packed), x * mask.unsqueeze(-1))
    flat = mask.flatten().nonzero().squeeze(1)
    assert torch.equal(packed.index_select(0, layout.places(flat)), x.flatten(0, 1)[flat])


@given(MASKS)
def test_groups_tile_the_packed_slots_and_the_rows(array):
    mask = torch.from_numpy(array)
    layout = layout_of(mask)
    lengths = mask.sum(1)
    at, seen = 0, []
    for group in layout.groups:
        assert group.start == at
        assert group.length > 0
        assert group.rows > 0
        at = group.stop
        rows = layout.group_rows(group)
        assert (lengths[rows] == group.length).all()
        seen += rows.tolist()
    assert at == int(lengths.sum())
    assert sorted(seen) == (lengths > 0).nonzero().squeeze(1).tolist()
    assert len({group.length for group in layout.groups}) == len(layout.groups)


@given(MASKS)
def test_a_row_keeps_the_order_of_its_slots(array):
    mask = torch.from_numpy(array)
    layout = layout_of(mask)
    flat = layout.pack(torch.arange(mask.numel()).view(mask.shape))
    for group in layout.groups:
        grid = flat[group.start : group.stop].view(group.rows, group.length)
        assert torch.equal(grid // mask.shape[1], layout.group_rows(group).unsqueeze(1).expand_as(grid))
        assert (grid.diff(dim=1) > 0).all()


@given(MASKS)
def test_first_places_are_the_first_real_slots(array):
    mask = torch.from_numpy(array)
    layout = layout_of(mask)
    flat = layout.pack(torch.arange(mask.numel()).view(mask.shape))
    for row, place in enumerate(layout.first_places().tolist()):
        if mask[row].any():
            assert flat[place] == row * mask.shape[1] + int(mask[row].int().argmax())


def test_full_rows_are_not_copied():
    layout = layout_of(torch.ones(3, 4, dtype=torch.bool))
    x = torch.randn(3, 4, 5)
    packed = layout.pack(x)
    assert packed.data_ptr() == x.data_ptr()
    assert layout.unpack(packed).data_ptr() == x.data_ptr()
    assert [(group.rows, group.length) for group in layout.groups] == [(3, 4)]
    index = torch.tensor([0, 7, 11])
    assert layout.places(index) is index


def test_unpack_has_a_gradient():
    layout = layout_of(torch.tensor([[True, False, True], [False, True, False]]))
    x = torch.randn(3, 2, requires_grad=True)
    layout.unpack(x).sum().backward()
    assert torch.equal(x.grad, torch.ones(3, 2))
