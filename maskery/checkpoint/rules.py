"""How one of our tensors is called by others: a rule that runs both ways.

- `same`: one tensor, two names.
- `stack3`: their query, key and value are the three slices of our one parameter.
- `stack`: they have a tensor for each layer, which are the slices of our one parameter.
- `split3`: theirs is one tensor too, query, key and value below each other.
- `transpose`: a matrix that they multiply from the other side (GPT-2).
- `columns3`: such a matrix of query, key and value beside each other.
- `heads`: a matrix whose columns they part by heads (D,H,K); `heads3`: query, key and value, each such a matrix the
  other way round; `heads_stack`: the same of all layers (XLNet).
- `vector`: theirs has two axes of one in front.
- `tied`: their second copy of a tensor that we hold once; checked on the way in.
- `identity`: a layer that they have and we do not, because it changes nothing: the unit matrix, or a bias of zeros;
  checked on the way in, made on the way out.
- `ignore`: a buffer without information, kept only to be written back.

Names hold `{layer}` where a rule stands for every layer. Where their name holds `{group}` instead, a group of layers
has its weights once, and ours are those of the group's first layer. `{every}` stands for all layers at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor

from maskery.errors import CheckpointError
from maskery.model.config import Shape

Op = Literal[
    "same", "stack3", "stack", "split3", "transpose", "columns3", "heads", "heads3", "heads_stack", "vector", "tied",
    "ignore", "identity",
]  # fmt: skip
_STACKED = ("stack3", "stack", "heads3", "heads_stack")
_TURNED_HEADS = ("heads3", "heads_stack")

OLD_ENDINGS = {"LayerNorm.gamma": "LayerNorm.weight", "LayerNorm.beta": "LayerNorm.bias"}
"""Names of the first releases, understood on the way in and never written."""


@dataclass(frozen=True)
class Rule:
    ours: str
    theirs: tuple[str, ...]
    op: Op = "same"
    heads: int = 0
    """Of the shape, where the op parts a matrix by them."""

    def at(self, layer: int, group: int = 0) -> Rule:
        def numbered(name: str) -> str:
            for pattern, number in (("{layer}", layer), ("{decoder}", layer), ("{group}", group)):
                name = name.replace(pattern, str(number))
            return name

        return Rule(numbered(self.ours), tuple(numbered(name) for name in self.theirs), self.op, self.heads)

    @property
    def carries(self) -> bool:
        """Whether a tensor of ours comes and goes by it."""
        return self.op not in ("tied", "ignore", "identity")

    def read(self, tensors: Mapping[str, Tensor]) -> Tensor:
        """Their tensors -> ours."""
        found = [tensors[name] for name in self.theirs]
        if self.op in ("transpose", "columns3") and found[0].ndim == 2:
            found[0] = found[0].t().contiguous()
        if self.op in ("split3", "columns3") and found[0].ndim and len(found[0]) % 3 == 0:
            # One that cannot be parted shows its size to whoever compares.
            found[0] = found[0].reshape(3, len(found[0]) // 3, *found[0].shape[1:])
        if self.op.startswith("heads"):
            found = [_joined(each, turned=self.op in _TURNED_HEADS) for each in found]
        if self.op == "vector" and found[0].shape[:2] == (1, 1):
            found[0] = found[0].flatten()
        if self.op not in _STACKED:
            return found[0]
        if len({tensor.shape for tensor in found}) > 1:
            sizes = ", ".join(f"{name} {tuple(tensors[name].shape)}" for name in self.theirs)
            what = "query, key and value" if self.op in ("stack3", "heads3") else "layers"
            raise CheckpointError(
                f"{what} differ in size: {sizes}",
                repair="the weights do not belong to this config.json; fetch or save the folder again",
            )
        return torch.stack(found)

    def write(self, tensor: Tensor) -> dict[str, Tensor]:
        """Our tensor -> theirs."""
        if self.op in _STACKED:
            parts = tensor.unbind()
            if self.op in _TURNED_HEADS:
                parts = tuple(_by_heads(part.t().contiguous(), self.heads) for part in parts)
            return dict(zip(self.theirs, parts, strict=True))
        if self.op == "heads":
            tensor = _by_heads(tensor, self.heads)
        if self.op == "vector":
            tensor = tensor.view(1, 1, -1)
        if self.op in ("split3", "columns3"):
            tensor = tensor.flatten(0, 1)
        if self.op in ("transpose", "columns3"):
            tensor = tensor.t().contiguous()
        return {self.theirs[0]: tensor}


def _by_heads(matrix: Tensor, heads: int) -> Tensor:
    """(D,H*K) -> (D,H,K)"""
    return matrix.reshape(len(matrix), heads, matrix.shape[1] // heads)


def _joined(tensor: Tensor, *, turned: bool) -> Tensor:
    """(D,H,K) -> a matrix; one of another size shows it to whoever compares."""
    if tensor.ndim != 3:
        return tensor
    return tensor.flatten(1).t().contiguous() if turned else tensor.flatten(1)


def same(ours: str, theirs: str) -> Rule:
    return Rule(ours, (theirs,))


def both(ours: str, theirs: str) -> tuple[Rule, Rule]:
    """A weight and its bias."""
    return same(f"{ours}.weight", f"{theirs}.weight"), same(f"{ours}.bias", f"{theirs}.bias")


def stacked(ours: str, theirs: tuple[str, str, str]) -> tuple[Rule, Rule]:
    """Query, key and value: weights and biases."""
    weight, bias = (tuple(f"{name}.{kind}" for name in theirs) for kind in ("weight", "bias"))
    return Rule(ours, weight, "stack3"), Rule(f"{ours}_bias", bias, "stack3")


def turned(ours: str, theirs: str) -> tuple[Rule, Rule]:
    """A weight that they multiply from the other side, and its bias."""
    return Rule(f"{ours}.weight", (f"{theirs}.weight",), "transpose"), same(f"{ours}.bias", f"{theirs}.bias")


def turned_stack(ours: str, theirs: str) -> tuple[Rule, Rule]:
    """Query, key and value in one such weight, and in one bias."""
    return Rule(ours, (f"{theirs}.weight",), "columns3"), Rule(f"{ours}_bias", (f"{theirs}.bias",), "split3")


def tied(ours: str, theirs: str) -> Rule:
    return Rule(ours, (theirs,), "tied")


def identity(theirs: str) -> tuple[Rule, Rule]:
    """A weight and its bias that change nothing, where the network has no such layer."""
    return Rule("", (f"{theirs}.weight",), "identity"), Rule("", (f"{theirs}.bias",), "identity")


def nothing(name: str, width: int) -> Tensor:
    """What an `identity` of this name holds."""
    return torch.eye(width) if name.endswith(".weight") else torch.zeros(width)


def ignore(theirs: str) -> Rule:
    return Rule("", (theirs,), "ignore")


def expand(rules: Iterable[Rule], shape: Shape) -> tuple[Rule, ...]:
    """One rule for each layer or group in place of a pattern; those for tensors that the shape has none of left out."""
    every: list[Rule] = []
    for rule in rules:
        if rule.op.startswith("heads"):
            rule = replace(rule, heads=shape.heads)
        if "{layer}" in rule.theirs[0]:
            every += [rule.at(layer) for layer in range(shape.layers)]
        elif "{decoder}" in rule.theirs[0]:
            every += [rule.at(layer) for layer in range(shape.decoder)]
        elif "{every}" in rule.theirs[0]:
            names = tuple(rule.theirs[0].replace("{every}", str(layer)) for layer in range(shape.layers))
            every.append(replace(rule, theirs=names))
        elif "{group}" in rule.theirs[0]:
            size = shape.layers // shape.groups
            every += [rule.at(group * size, group) for group in range(shape.groups)]
        elif rule.op == "identity":
            every += [rule] if shape.embedding == shape.width else []
        else:
            every.append(rule)
    absent, ends = _absent(shape), _absent_ends(shape)
    return tuple(rule for rule in every if not rule.ours.startswith(absent) and not rule.ours.endswith(ends))


def _absent(shape: Shape) -> tuple[str, ...]:
    """Beginnings of our names that a network of this shape has no tensors of."""
    projection = ("embeddings.projection.",) if shape.embedding == shape.width else ()
    bands = () if shape.cutoffs else ("heads.next_token.bands",)
    first = () if shape.first_norm else ("layers.0.attention_norm.",)
    segments = () if shape.segments else ("embeddings.segments",)
    return (*projection, *bands, *first, *segments, *(() if shape.tasks else ("embeddings.tasks",)))


def _absent_ends(shape: Shape) -> tuple[str, ...]:
    """Endings of the same: biases that it has not."""
    attention = () if shape.attention_bias else ("attention.inputs_bias", "attention.output.bias")
    forward = () if shape.feedforward_bias else ("up.bias", "down.bias")
    norms = () if shape.norm_bias else ("norm.bias",)
    heads = () if shape.head_bias else (".dense.bias",)
    return (*attention, *forward, *norms, *heads)


def modern(name: str) -> str:
    """The name of today for a name of the first releases."""
    for old, new in OLD_ENDINGS.items():
        if name.endswith(old):
            return name.removesuffix(old) + new
    return name
