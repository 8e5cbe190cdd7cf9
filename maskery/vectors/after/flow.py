"""BERT-flow (Li and others 2020): an invertible network that makes frozen vectors as likely as possible under a normal.

The original is Glow with every filter of size 1 x 1 on an image of one pixel whose channels are the D dimensions, and
with the squeezing of pixels left out. So a convolution is a matrix product, and this is the same network on vectors:
3 levels of 3 steps, hidden width 32, additive coupling, the dimensions reversed between steps ("1x1 permutation"), the
halves that leave at each level and the last one joined as the result; 1 epoch of batches of 32 with AdamW (no
correction of its start, decay .01 on all weights, gradient cut at norm 1), rate 1e-3 throughout, loss in bits for each
dimension. `mixing="linear"` learns the mixing instead (P L U, a random rotation at first; it wants a rate of 1e-4: at
1e-3 its hundreds of thousands of weights run away from the data), `coupling="affine"` scales besides shifting.

Where it departs from the original, and why:
- everything is in double precision: the inverse then loses what rounding the result to float32 loses, and no more;
- halves may be unequal, so any number of dimensions goes; levels for which no two dimensions are left are left out;
- a dimension that is still in the first batch (a ten-thousandth of the one that varies most) starts with the scale of
  that one: the original stretches it a million times in every step, and a new text then throws it anywhere;
- a twentieth of the vectors (1,000 at most) is held out, to measure the likelihood on what was not fitted.

    flow = Flow.fit(vectors, epochs=1, seed=0)
    flow.apply(others)              # float32 (n, D); flow.inverse brings them back
    flow.before, flow.fitted        # bits for each dimension of the held-out vectors, before and after training
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from pydantic import Field, ValidationError
from torch import Tensor

from maskery import randomness
from maskery.config import Config
from maskery.errors import ArgumentError, NonFiniteError
from maskery.train.config import TrainingConfig
from maskery.train.optimizers import AdamW
from maskery.vectors.after import kept
from maskery.vectors.after.base import After
from maskery.vectors.after.given import Double, blocks, single, table
from maskery.vectors.after.glow import Glow, widths

Told = Callable[[int, int, float], None]
"""Called after each update: its number from 1, how many there will be, the bits for each dimension of its batch."""
FEWEST = 8
_HELD_OUT, _MOST_HELD_OUT = 20, 1000


class FlowShape(Config):
    """What the network is, and how a step of training is made."""

    levels: int = Field(3, ge=1)
    depth: int = Field(3, ge=1)
    width: int = Field(32, ge=1)
    coupling: Literal["additive", "affine"] = "additive"
    mixing: Literal["reverse", "linear"] = "reverse"
    batch: int = Field(32, ge=2)
    lr: float = Field(1e-3, gt=0)


class Flow(After):
    kind = "flow"

    def __init__(self, dimensions: int, shape: FlowShape, seed: int) -> None:
        """As drawn, not fitted: `fit` is the way to one that is of use."""
        self.shape, self.seed = shape, seed
        affine, linear = shape.coupling == "affine", shape.mixing == "linear"
        self.glow = Glow(dimensions, shape.levels, shape.depth, shape.width, affine, linear, seed)
        self.epochs = self.seen = self.held_out = 0
        self.before = self.fitted = math.nan

    @classmethod
    def fit(
        cls,
        vectors: ArrayLike,
        epochs: int = 1,
        seed: int = 0,
        told: Told | None = None,
        shape: FlowShape | None = None,
    ) -> Self:
        rows = _checked(vectors, epochs)
        flow = cls(rows.shape[1], shape or FlowShape(), seed)
        flow.epochs, flow.notes = epochs, _notes(rows, flow.shape)
        order = randomness.permute(randomness.key(seed, "after flow held out"), np.arange(len(rows)), len(rows))
        flow.held_out = min(_MOST_HELD_OUT, max(1, len(rows) // _HELD_OUT))
        held_out, seen = np.sort(order[: flow.held_out]), np.sort(order[flow.held_out :])
        flow.seen = len(seen)
        flow._train(rows, seen, held_out, told)
        return flow

    def _train(
        self, rows: NDArray[Any], seen: NDArray[np.int64], held_out: NDArray[np.int64], told: Told | None
    ) -> None:
        training = TrainingConfig(lr=self.shape.lr, bias_correction=False)
        optimizer = AdamW(self.glow.named_parameters(), training)
        steps = self.epochs * math.ceil(len(seen) / self.shape.batch)
        test = np.asarray(rows[held_out], dtype=np.float64)
        for number, chosen in enumerate(self._batches(seen), 1):
            batch = _tensor(rows[chosen])
            if number == 1:
                self._start(batch)
                self.before = self.bits(test)
            bits = self._update(batch, optimizer, number)
            if told:
                told(number, steps, bits)
        self.fitted = self.bits(test)
        if not math.isfinite(self.fitted):
            raise self._ran_away(steps, f"the held-out vectors have {self.fitted} bits for each dimension")
        if self.fitted >= self.before:
            self.notes += (
                f"the held-out vectors are no likelier after training ({self.fitted:.4f} bits for each dimension) than "
                f"before ({self.before:.4f}): more vectors, or a rate below {self.shape.lr:g}, are needed",
            )

    @torch.no_grad()
    def _start(self, batch: Tensor) -> None:
        self.glow(batch, start=True)

    def _batches(self, seen: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
        for epoch in range(self.epochs):
            key = randomness.key(self.seed, "after flow order", epoch)
            order = seen[randomness.permute(key, np.arange(len(seen)), len(seen))]
            for begin in range(0, len(order), self.shape.batch):
                yield order[begin : begin + self.shape.batch]

    def _update(self, batch: Tensor, optimizer: AdamW, number: int) -> float:
        loss = _bits(*self.glow(batch)).mean()
        self.glow.zero_grad()
        torch.autograd.backward(loss)
        norm = torch.nn.utils.clip_grad_norm_(self.glow.parameters(), optimizer.training.clip)
        if not bool(torch.isfinite(norm)):
            raise self._ran_away(number, f"the gradient is {float(norm)}, the loss {float(loss.detach()):.4g}")
        optimizer.step(optimizer.training.lr, number)
        return float(loss.detach())

    def _ran_away(self, number: int, cause: str) -> NonFiniteError:
        lower = f"FlowShape(lr={self.shape.lr / 10:g})"
        return NonFiniteError(
            cause,
            where=f"flow, update {number}",
            repair=f"a lower rate, {lower}, or centre and scale the vectors first",
        )

    @property
    def taken(self) -> int:
        return self.glow.widths[0]

    @property
    def given(self) -> int:
        return self.glow.widths[0]

    @torch.no_grad()
    def transform(self, block: Double) -> Double:
        found: Double = self.glow(_tensor(block))[0].numpy()
        return found

    @torch.no_grad()
    def inverse(self, z: ArrayLike) -> NDArray[np.float32]:
        """The vectors that `apply` made these of."""
        rows = table(z, self.taken)
        out = np.empty(rows.shape, dtype=np.float32)
        done = 0
        for block in blocks(rows):
            out[done : done + len(block)] = single(self.glow.inverse(_tensor(block)).numpy(), done)
            done += len(block)
        return out

    @torch.no_grad()
    def bits(self, vectors: ArrayLike) -> float:
        """Bits for each dimension, the mean over the vectors: the lower, the likelier they are."""
        rows = table(vectors, self.taken)
        if not len(rows):
            raise ArgumentError("no vectors, so no likelihood", repair="give at least 1")
        return float(sum(_bits(*self.glow(_tensor(block))).sum() for block in blocks(rows))) / len(rows)

    def state(self) -> dict[str, NDArray[Any]]:
        return {name: value.detach().numpy().copy() for name, value in self.glow.state_dict().items()}

    def settings(self) -> dict[str, Any]:
        told = ("seed", "epochs", "seen", "held_out", "before", "fitted")
        return {"dimensions": self.taken, "shape": self.shape.plain()} | {name: getattr(self, name) for name in told}

    @classmethod
    def from_state(cls, state: Mapping[str, NDArray[Any]], settings: Mapping[str, Any]) -> Self:
        try:
            shape = FlowShape.model_validate(settings["shape"])
        except ValidationError as error:
            raise ArgumentError(f"the shape of the flow: {error.errors()[0]['msg']}", repair=kept.AGAIN) from None
        dimensions = int(settings["dimensions"])
        _require_size(state, dimensions, shape)
        flow = cls(dimensions, shape, int(settings["seed"]))
        _fill(flow.glow, state)
        flow.epochs, flow.seen = int(settings["epochs"]), int(settings["seen"])
        flow.held_out = int(settings["held_out"])
        flow.before, flow.fitted = float(settings["before"]), float(settings["fitted"])
        return flow

    def describe(self) -> str:
        shape = self.shape
        return (
            f"flow, {self.taken:,} dimensions, {len(self.glow.widths)} levels of {shape.depth} steps, hidden width "
            f"{shape.width}, {shape.coupling} coupling, mixing {shape.mixing}; {self.epochs} epoch"
            f"{'' if self.epochs == 1 else 's'} over {self.seen:,} vectors; bits for each dimension of "
            f"{self.held_out:,} held out: {self.before:.4f} before, {self.fitted:.4f} after"
        )


def _tensor(block: NDArray[Any]) -> Tensor:
    """torch takes neither rows in reverse nor, without a warning, a file that may only be read: those are copied."""
    return torch.from_numpy(np.require(block, np.float64, ["C", "W"]))


def _bits(z: Tensor, determinant: Tensor) -> Tensor:
    """-log2 of the density of each vector, for each dimension."""
    normal = -0.5 * (z.square() + math.log(2 * math.pi)).sum(-1)
    return -(normal + determinant) / (math.log(2) * z.shape[-1])


def _checked(vectors: ArrayLike, epochs: int) -> NDArray[Any]:
    rows = table(vectors)
    if epochs < 1:
        raise ArgumentError(f"{epochs} epochs: at least 1 is wanted", repair="epochs=1")
    if rows.shape[1] < 2:
        raise ArgumentError("a flow couples dimensions, and these vectors have 1", repair="take whitening")
    if len(rows) < FEWEST:
        many = f"{len(rows)} vector{'' if len(rows) == 1 else 's'}"
        raise ArgumentError(
            f"{many} given: a flow needs at least {FEWEST}", repair="fit on the vectors of some thousand texts"
        )
    return rows


def _notes(rows: NDArray[Any], shape: FlowShape) -> tuple[str, ...]:
    """What is not as the shape says, after a look at every row (which refuses what is not finite)."""
    lowest, highest = np.full(rows.shape[1], np.inf), np.full(rows.shape[1], -np.inf)
    for block in blocks(rows):
        lowest, highest = np.minimum(lowest, block.min(axis=0)), np.maximum(highest, block.max(axis=0))
    constant = int(np.count_nonzero(lowest == highest))
    if constant == rows.shape[1]:
        raise ArgumentError(
            f"all {len(rows):,} vectors are equal: there is nothing to learn", repair="fit on different texts"
        )
    notes = [f"{constant:,} of {rows.shape[1]:,} dimensions never vary: their density grows without limit"] * bool(
        constant
    )
    each = widths(rows.shape[1], shape.levels)
    if len(each) < shape.levels:
        notes.append(f"{len(each)} of {shape.levels} levels: {rows.shape[1]} dimensions can be halved no further")
    odd = [width for width in each if width % 2]
    if odd:
        notes.append(f"halves are unequal where a level has {', '.join(map(str, odd))} dimensions: the first is larger")
    return tuple(notes)


def _require_size(state: Mapping[str, NDArray[Any]], dimensions: int, shape: FlowShape) -> None:
    """Before a network is made: a header must not be able to ask for one that its arrays do not fill."""
    kept.part(state, "levels.0.0.scaling.shift", dimensions)
    kept.part(state, "levels.0.0.coupling.shifts.second", shape.width, shape.width)
    steps = sum(name.endswith("coupling.shifts.second") for name in state)
    if steps != len(widths(dimensions, shape.levels)) * shape.depth:
        raise ArgumentError(f"{steps} steps are not {shape.levels} levels of {shape.depth}", repair=kept.AGAIN)


def _fill(glow: Glow, state: Mapping[str, NDArray[Any]]) -> None:
    own = glow.state_dict()
    if odd := sorted(own.keys() ^ state.keys()):
        raise ArgumentError(f"the state {'lacks' if odd[0] in own else 'has a surplus'} {odd[0]}", repair=kept.AGAIN)
    for name, value in own.items():
        found = np.asarray(state[name])
        if found.shape != tuple(value.shape):
            raise ArgumentError(f"{name} has the shape {found.shape}, not {tuple(value.shape)}", repair=kept.AGAIN)
        if name.endswith(".order") and not np.array_equal(np.sort(found), np.arange(len(found))):
            raise ArgumentError(f"{name} is no order of {len(found)} dimensions", repair=kept.AGAIN)
        value.detach().copy_(torch.from_numpy(np.array(found)))
