"""The network of BERT-flow: an invertible map of vectors, and the logarithm of its determinant.

    x, y: (B, W), B vectors of the width W of a level; determinants: logarithms, (B,) or one for all

Level:  depth times [scale and shift -> mix -> couple]; then the second half leaves as it is, the first goes on.
Couple: the first half stays; the second is shifted (or shifted and scaled) by what a small network makes of the first.
Halves of an odd width: the first is the larger.

Names of parameters avoid "norm" and "bias": the original's decay of weights spares none of its own, so ours must not.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from maskery import randomness

_FACTOR = 3.0
"""Logarithms of scales are learned as a third of themselves, so that they move three times as fast."""
_STILL = 1e-4
"""A dimension that varies in the first batch by less than this part of the one that varies most counts as still, and is
scaled as that one: stretched by its own deviation, it would be torn further apart by every step."""
_STD = 0.05


class Scaling(nn.Module):
    """(x + shift) * scale for each dimension; the first batch leaves it with mean 0 and variance 1."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.shift = nn.Parameter(torch.zeros(width, dtype=torch.float64))
        self.log_scale = nn.Parameter(torch.zeros(width, dtype=torch.float64))

    @torch.no_grad()
    def start(self, x: Tensor) -> None:
        deviation = x.std(0, correction=0)
        largest = deviation.max()
        if largest > 0:
            deviation = torch.where(deviation < _STILL * largest, largest, deviation)
            self.log_scale.copy_(-deviation.log() / _FACTOR)
        self.shift.copy_(-x.mean(0))

    def forward(self, x: Tensor, start: bool = False) -> tuple[Tensor, Tensor]:
        if start:
            self.start(x)
        logs = self.log_scale * _FACTOR
        return (x + self.shift) * logs.exp(), logs.sum()

    def inverse(self, y: Tensor) -> Tensor:
        return y * (-self.log_scale * _FACTOR).exp() - self.shift


class Reverse(nn.Module):
    """The dimensions in the opposite order: the halves change places. Nothing is learned."""

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return x.flip(-1), x.new_zeros(())

    def inverse(self, y: Tensor) -> Tensor:
        return y.flip(-1)


class Linear(nn.Module):
    """x P L (U + diag(s)): a rotation at the start; the determinant is the product of s."""

    order: Tensor
    signs: Tensor

    def __init__(self, width: int, draws: torch.Generator) -> None:
        super().__init__()
        square = torch.randn(width, width, generator=draws, dtype=torch.float64)
        permutation, lower, upper = torch.linalg.lu(torch.linalg.qr(square)[0])
        self.register_buffer("order", permutation.argmax(0))
        self.register_buffer("signs", upper.diag().sign())
        self.lower = nn.Parameter(lower.tril(-1))
        self.upper = nn.Parameter(upper.triu(1))
        self.log_scale = nn.Parameter(upper.diag().abs().log())

    def _triangles(self) -> tuple[Tensor, Tensor]:
        one = torch.eye(len(self.order), dtype=torch.float64)
        return self.lower.tril(-1) + one, self.upper.triu(1) + torch.diag(self.signs * self.log_scale.exp())

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        lower, upper = self._triangles()
        return x[:, self.order] @ lower @ upper, self.log_scale.sum()

    def inverse(self, y: Tensor) -> Tensor:
        lower, upper = self._triangles()
        half = torch.linalg.solve_triangular(upper, y, upper=True, left=False)
        mixed: Tensor = torch.linalg.solve_triangular(lower, half, upper=False, left=False, unitriangular=True)
        return mixed[:, self.order.argsort()]


class Shifts(nn.Module):
    """What the first half says about the second: two hidden layers, then one that begins as zero."""

    def __init__(self, width: int, hidden: int, out: int, name: str, seed: int) -> None:
        super().__init__()
        self.first = _drawn(width, hidden, f"{name}.first", seed)
        self.first_scaling = Scaling(hidden)
        self.second = _drawn(hidden, hidden, f"{name}.second", seed)
        self.second_scaling = Scaling(hidden)
        self.last = nn.Parameter(torch.zeros(hidden, out, dtype=torch.float64))
        self.last_scaling = Scaling(out)

    def forward(self, x: Tensor, start: bool = False) -> Tensor:
        hidden = self.first_scaling(x @ self.first, start)[0].relu()
        deeper = self.second_scaling(hidden @ self.second, start)[0].relu()
        found: Tensor = self.last_scaling(deeper @ self.last)[0]
        return found


def _drawn(rows: int, columns: int, name: str, seed: int) -> nn.Parameter:
    draws = randomness.torch_generator(randomness.key(seed, f"after flow {name}"))
    return nn.Parameter(_STD * torch.randn(rows, columns, generator=draws, dtype=torch.float64))


class Coupling(nn.Module):
    def __init__(self, width: int, hidden: int, affine: bool, name: str, seed: int) -> None:
        super().__init__()
        self.kept = width - width // 2
        self.affine = affine
        self.shifts = Shifts(self.kept, hidden, (width // 2) * (2 if affine else 1), name, seed)

    def _moves(self, kept: Tensor, start: bool = False) -> tuple[Tensor, Tensor]:
        """Shift, and the logarithm of the scale."""
        found = self.shifts(kept, start)
        if not self.affine:
            return found, found.new_zeros(found.shape)
        return found[:, 0::2], nn.functional.logsigmoid(found[:, 1::2] + 2.0)

    def forward(self, x: Tensor, start: bool = False) -> tuple[Tensor, Tensor]:
        kept, moved = x[:, : self.kept], x[:, self.kept :]
        shift, logs = self._moves(kept, start)
        return torch.cat([kept, (moved + shift) * logs.exp()], -1), logs.sum(-1)

    def inverse(self, y: Tensor) -> Tensor:
        kept, moved = y[:, : self.kept], y[:, self.kept :]
        shift, logs = self._moves(kept)
        return torch.cat([kept, moved * (-logs).exp() - shift], -1)


class Step(nn.Module):
    def __init__(self, width: int, hidden: int, affine: bool, linear: bool, name: str, seed: int) -> None:
        super().__init__()
        draws = randomness.torch_generator(randomness.key(seed, f"after flow {name}.mixing"))
        self.scaling = Scaling(width)
        self.mixing = Linear(width, draws) if linear else Reverse()
        self.coupling = Coupling(width, hidden, affine, f"{name}.coupling", seed)

    def forward(self, x: Tensor, start: bool = False) -> tuple[Tensor, Tensor]:
        scaled, one = self.scaling(x, start)
        mixed, two = self.mixing(scaled)
        coupled, three = self.coupling(mixed, start)
        return coupled, one + two + three

    def inverse(self, y: Tensor) -> Tensor:
        found: Tensor = self.scaling.inverse(self.mixing.inverse(self.coupling.inverse(y)))
        return found


class Glow(nn.Module):
    """(B, D) to (B, D): the halves that left at each level, then what the last level gave."""

    def __init__(self, dimensions: int, levels: int, depth: int, hidden: int, affine: bool, linear: bool, seed: int):
        super().__init__()
        self.widths = widths(dimensions, levels)
        self.levels = nn.ModuleList(
            nn.ModuleList(Step(width, hidden, affine, linear, f"{level}.{step}", seed) for step in range(depth))
            for level, width in enumerate(self.widths)
        )

    def forward(self, x: Tensor, start: bool = False) -> tuple[Tensor, Tensor]:
        """The vectors, and the determinant at each; `start` sets all scalings by this batch."""
        going, left = x, []
        determinant = x.new_zeros(len(x))
        for number, level in enumerate(self.levels):
            if number:
                going, leaving = going[:, : self.widths[number]], going[:, self.widths[number] :]
                left.append(leaving)
            for step in _steps(level):
                going, own = step(going, start)
                determinant = determinant + own
        return torch.cat([*left, going], -1), determinant

    def inverse(self, z: Tensor) -> Tensor:
        parts = [before - after for before, after in zip(self.widths, self.widths[1:], strict=False)]
        *left, going = torch.split(z, [*parts, self.widths[-1]], -1)
        for number in reversed(range(len(self.widths))):
            for step in reversed(_steps(self.levels[number])):
                going = step.inverse(going)
            if number:
                going = torch.cat([going, left[number - 1]], -1)
        return going


def _steps(level: nn.Module) -> list[Step]:
    return [step for step in level.children() if isinstance(step, Step)]


def widths(dimensions: int, levels: int) -> list[int]:
    """Dimensions of each level, as long as there are two to couple."""
    found = [dimensions]
    while len(found) < levels and found[-1] > 2:
        found.append(found[-1] - found[-1] // 2)
    return found
