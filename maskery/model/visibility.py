"""Who may see whom: one predicate over index tensors, (batch, head, query, key) -> bool.

The signature is that of flex_attention's `mask_mod`, so the same predicate is evaluated densely on a CPU (and for
pictures and flow analysis) and compiled to a block mask on a GPU. A predicate never assumes that query q and key k
number the same thing: it reads their coordinates from the `View` it was bound to, so memory in front of the keys,
partial query streams, cached generation and cross-attention need no new predicate.

Shapes: B rows, Q queries, K keys (memory first).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Protocol

import torch
from torch import Tensor

from maskery.model.config import Mode

MaskMod = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class View:
    """The facts that predicates read."""

    q_pos: Tensor
    """(B,Q) where each query stands in its row."""
    k_pos: Tensor
    """(B,K) where each key stands; memory has negative places."""
    q_slots: Mapping[str, Tensor] = field(default_factory=dict)
    """Named facts of each query slot, (B,Q): document, order, mode, branch."""
    k_slots: Mapping[str, Tensor] = field(default_factory=dict)
    k_real: Tensor | None = None
    """(B,K) false for keys that are none: the unfilled part of a past."""
    asks: bool = False
    """Whether the queries are of the second stream, which knows the places of what it is asked for and no more."""

    def first(self) -> View:
        """Of the first row alone, with its places and nothing else."""
        return View(q_pos=self.q_pos[:1], k_pos=self.k_pos[:1])

    @property
    def shape(self) -> tuple[int, int, int]:
        return self.q_pos.shape[0], self.q_pos.shape[1], self.k_pos.shape[1]


@dataclass(frozen=True)
class Predicate:
    """A bound visibility; combines with &, | and ~. `sees_all` lets a kernel skip the mask."""

    mask_mod: MaskMod
    sees_all: bool = False

    def __call__(self, b: Tensor, h: Tensor, q: Tensor, k: Tensor) -> Tensor:
        return self.mask_mod(b, h, q, k)

    def __and__(self, other: Predicate) -> Predicate:
        return Predicate(
            lambda b, h, q, k: self.mask_mod(b, h, q, k) & other.mask_mod(b, h, q, k),
            self.sees_all and other.sees_all,
        )

    def __or__(self, other: Predicate) -> Predicate:
        return Predicate(
            lambda b, h, q, k: self.mask_mod(b, h, q, k) | other.mask_mod(b, h, q, k),
            self.sees_all or other.sees_all,
        )

    def __invert__(self) -> Predicate:
        return Predicate(lambda b, h, q, k: ~self.mask_mod(b, h, q, k))


class Visibility(Protocol):
    """What a recipe names. `needs` are the slot facts that its predicate reads."""

    needs: ClassVar[tuple[str, ...]]

    def bind(self, view: View) -> Predicate: ...


class Full:
    """Everybody sees everybody."""

    needs: ClassVar[tuple[str, ...]] = ()

    def bind(self, view: View) -> Predicate:
        return Predicate(lambda b, h, q, k: (q >= 0) & (k >= 0), sees_all=True)


class Causal:
    """A slot sees itself and what stands before it, memory included."""

    needs: ClassVar[tuple[str, ...]] = ()

    def bind(self, view: View) -> Predicate:
        return Predicate(lambda b, h, q, k: view.k_pos[b, k] <= view.q_pos[b, q])


class Reverse:
    """A slot sees itself and what stands behind it."""

    needs: ClassVar[tuple[str, ...]] = ()

    def bind(self, view: View) -> Predicate:
        return Predicate(lambda b, h, q, k: view.k_pos[b, k] >= view.q_pos[b, q])


class Prefix:
    """Everybody sees the first piece of the row; beyond it, a slot sees what stands before (UniLM, sequence to
    sequence)."""

    needs: ClassVar[tuple[str, ...]] = ("document",)

    def bind(self, view: View) -> Predicate:
        theirs = view.k_slots["document"]
        return Predicate(lambda b, h, q, k: theirs[b, k] == 0) | Causal().bind(view)


class Packed:
    """A slot sees its own document only, where several documents share a row."""

    needs: ClassVar[tuple[str, ...]] = ("document",)

    def bind(self, view: View) -> Predicate:
        mine, theirs = view.q_slots["document"], view.k_slots["document"]
        return Predicate(lambda b, h, q, k: mine[b, q] == theirs[b, k])


class PackedCausal:
    """Its own document, and there only what stands before."""

    needs: ClassVar[tuple[str, ...]] = ("document",)

    def bind(self, view: View) -> Predicate:
        return Packed().bind(view) & Causal().bind(view)


class Permuted:
    """The tokens have an order of their own: a slot sees those that come no later in it, and the second stream those
    that come before (XLNet). Slots of equal order see each other."""

    needs: ClassVar[tuple[str, ...]] = ("order",)

    def bind(self, view: View) -> Predicate:
        mine, theirs = view.q_slots["order"] - int(view.asks), view.k_slots["order"]
        every = not mine.numel() or not theirs.numel() or bool(theirs.amax() <= mine.amin())
        return Predicate(lambda b, h, q, k: theirs[b, k] <= mine[b, q], sees_all=every)


class Real:
    """Keys that are there: a past need not be filled."""

    needs: ClassVar[tuple[str, ...]] = ()

    def bind(self, view: View) -> Predicate:
        real = view.k_real
        if real is None:
            return Full().bind(view)
        return Predicate(lambda b, h, q, k: real[b, k] & (q >= 0))


class Within:
    """A slot sees the nearest `reach` slots that end with itself, so that all see equally far."""

    needs: ClassVar[tuple[str, ...]] = ()

    def __init__(self, reach: int) -> None:
        self.reach = reach

    def bind(self, view: View) -> Predicate:
        return Predicate(lambda b, h, q, k: view.q_pos[b, q] - view.k_pos[b, k] < self.reach)


class Window:
    """A slot sees no farther than `reach` slots to either side."""

    needs: ClassVar[tuple[str, ...]] = ()

    def __init__(self, reach: int) -> None:
        self.reach = reach

    def bind(self, view: View) -> Predicate:
        mine, theirs = view.q_pos, view.k_pos
        every = bool(mine.numel()) and bool(
            (mine.amax() - theirs.amin() <= self.reach) & (theirs.amax() - mine.amin() <= self.reach)
        )
        return Predicate(lambda b, h, q, k: (mine[b, q] - theirs[b, k]).abs() <= self.reach, sees_all=every)


class Recent:
    """Causal, and no further back than `reach` slots, itself counted."""

    needs: ClassVar[tuple[str, ...]] = ()

    def __init__(self, reach: int) -> None:
        self.reach = reach

    def bind(self, view: View) -> Predicate:
        return Causal().bind(view) & Within(self.reach).bind(view)


class Mixed:
    """Every row in a mode of its own: `mode` tells which of the four it is read with (UniLM)."""

    needs: ClassVar[tuple[str, ...]] = ("mode", "document")

    def bind(self, view: View) -> Predicate:
        mode = view.q_slots["mode"]
        ways: dict[Mode, Visibility] = {Mode.PREFIX: Prefix(), Mode.CAUSAL: Causal(), Mode.REVERSE: Reverse()}
        bound = {way: visibility.bind(view) for way, visibility in ways.items() if bool((mode == way).any())}

        def mask_mod(b: Tensor, h: Tensor, q: Tensor, k: Tensor) -> Tensor:
            mine = mode[b, q]
            seen = (mine == Mode.FULL) & (k >= 0)
            for way, predicate in bound.items():
                seen = seen | ((mine == way) & predicate(b, h, q, k))
            return seen

        return Predicate(mask_mod, sees_all=not bound)


def facts_for(visibility: Visibility, slots: Mapping[str, Tensor], like: Tensor) -> dict[str, Tensor]:
    """What the predicate reads of the slots. Rows of which nothing is said are one document without an order."""
    return {name: slots[name] if name in slots else torch.zeros_like(like) for name in visibility.needs}


def dense(predicate: Predicate, view: View) -> Tensor:
    """The predicate as a boolean array (B,1,Q,K)."""
    rows, queries, keys = view.shape
    device = view.q_pos.device
    b = torch.arange(rows, device=device).view(rows, 1, 1, 1)
    h = torch.zeros(1, 1, 1, 1, dtype=torch.long, device=device)
    q = torch.arange(queries, device=device).view(1, 1, queries, 1)
    k = torch.arange(keys, device=device).view(1, 1, 1, keys)
    return predicate(b, h, q, k).expand(rows, 1, queries, keys)


def view_of_rows(length: int, slots: Mapping[str, Tensor], rows: int, device: torch.device) -> View:
    """The view of self-attention without memory over rows of `length` real slots."""
    places = torch.arange(length, device=device).expand(rows, length)
    return View(q_pos=places, k_pos=places, q_slots=slots, k_slots=slots)
