"""Rows of different lengths that lie end to end, as a grid and back.

Shapes: n items, R rows of at most K items.
"""

from __future__ import annotations

import torch
from torch import Tensor


def flat_places(sizes: Tensor, width: int) -> Tensor:
    """(n,) where each item stands in a grid (R,K) that is read row by row."""
    row = torch.repeat_interleave(torch.arange(len(sizes), device=sizes.device), sizes)
    before = (sizes.cumsum(0) - sizes).index_select(0, row)
    return row * width + torch.arange(len(row), device=sizes.device) - before


def widest(sizes: Tensor) -> int:
    return int(sizes.max()) if len(sizes) else 0


def grid_of(items: Tensor, sizes: Tensor, fill: float = 0.0) -> Tensor:
    """(n,...) and the rows' sizes (R,) -> (R,K,...). Copied by index, whose backward pass is a gather: repeatable."""
    width = widest(sizes)
    flat = items.new_full((len(sizes) * width, *items.shape[1:]), fill)
    return flat.index_copy(0, flat_places(sizes, width), items).view(len(sizes), width, *items.shape[1:])


def items_of(grid: Tensor, sizes: Tensor) -> Tensor:
    """(R,K,...) -> (n,...)"""
    return grid.flatten(0, 1).index_select(0, flat_places(sizes, grid.shape[1]))
