"""Tensors of a Hugging Face class <-> our tensors, by the rules of a family. Leftovers on either side are reported."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from maskery.checkpoint.family import Family, HuggingFaceClass
from maskery.checkpoint.rules import Rule, expand, modern, nothing
from maskery.errors import CheckpointError
from maskery.model.config import Shape


@dataclass(frozen=True, kw_only=True)
class LoadReport:
    """What a folder held and what became of it. Missing and ignored names are given without the family's prefix."""

    missing: tuple[str, ...] = ()
    """Tensors of the class that config.json names which are not there."""
    unused: tuple[str, ...] = ()
    """Tensors that no part of the model takes."""
    ignored: tuple[str, ...] = ()
    """Buffers without information."""
    notes: tuple[str, ...] = ()

    def lines(self) -> list[str]:
        """What is worth telling, one line each."""
        found = told({kind: getattr(self, kind) for kind in KINDS})
        return [*(f"{kind}: {names}" for kind, names in found.items()), *self.notes]


KINDS = ("missing", "unused", "ignored")


def told(found: Mapping[str, Sequence[str]], shown: int = 5) -> dict[str, str]:
    """{"missing": [name, ...]} -> {"missing tensors": "2: name, name"}; what is empty is left out."""
    return {
        f"{kind} tensors": f"{len(names)}: {', '.join(names[:shown])}"
        + (f" and {len(names) - shown} more" if len(names) > shown else "")
        for kind, names in found.items()
        if names
    }


@dataclass(frozen=True, kw_only=True)
class Origin:
    """What an imported folder said beyond the tensors' numbers; written back on export."""

    model_type: str
    config: Mapping[str, Any]
    dtypes: Mapping[str, torch.dtype] = field(default_factory=dict)
    """By their names without prefix, and by ours."""
    buffers: Mapping[str, Tensor] = field(default_factory=dict)
    tied: frozenset[str] = frozenset()
    """Second copies that the file held."""
    bare: bool = False
    """Whether its names carried no prefix, whatever the class."""


@dataclass
class Imported:
    state: dict[str, Tensor] = field(default_factory=dict)
    """Our names."""
    dtypes: dict[str, torch.dtype] = field(default_factory=dict)
    buffers: dict[str, Tensor] = field(default_factory=dict)
    tied: set[str] = field(default_factory=set)
    unused: list[str] = field(default_factory=list)
    missing: dict[str, str] = field(default_factory=dict)
    """Names to be told -> our names; one that has turned up under our name is not missing."""
    notes: list[str] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=dict)
    """Our names -> those in the file, to be told."""


def import_state(
    family: Family, named: HuggingFaceClass | None, tensors: Mapping[str, Tensor], shape: Shape
) -> Imported:
    """Their tensors -> ours. `named` is the class that config.json names."""
    result = Imported()
    found, source = _canonical(family, tensors, result)
    classes = [*([named] if named else []), *(each for each in family.classes if not each.ambiguous)]
    rules = list(dict.fromkeys(rule for each in classes for rule in expand(each.rules, shape)))
    used: set[str] = set()
    for rule in rules:
        if not all(name in found for name in rule.theirs) or used.intersection(rule.theirs):
            continue
        if rule.op == "ignore":
            result.buffers[rule.theirs[0]] = _without_numbers(family, rule.theirs[0], found[rule.theirs[0]])
        elif rule.op == "identity":
            _require_nothing(rule.theirs[0], found[rule.theirs[0]], shape.width, result)
        elif rule.op != "tied" and rule.ours not in result.state:
            _take(rule, found, result)
        else:
            continue
        used.update(rule.theirs)
    used |= _import_tied(rules, found, result)
    for rule in rules:
        if rule.ours in result.state and used.issuperset(rule.theirs):
            result.names.setdefault(rule.ours, ", ".join(source[name] for name in rule.theirs))
    result.unused += [source[name] for name in found if name not in used]
    wanted = expand((named or family.classes[-1]).rules, shape)
    result.missing = {
        name: rule.ours for rule in wanted if rule.carries and rule.ours not in result.state
        for name in rule.theirs if name not in found
    }  # fmt: skip
    return result


def _without_numbers(family: Family, name: str, buffer: Tensor) -> Tensor:
    """A buffer that may be left aside."""
    if name in family.zeros and bool(buffer.any()):
        raise CheckpointError(
            f"{name} is not all 0: what it would add to the scores is not supported",
            repair="use the model as it was published",
        )
    return buffer


def _require_nothing(name: str, tensor: Tensor, width: int, result: Imported) -> None:
    """A layer that we have none of must change nothing."""
    unit = nothing(name, width)
    if tensor.shape != unit.shape or not torch.equal(float32(name, tensor, result), unit):
        raise CheckpointError(
            f"{name} changes embeddings that have the width of the layers ({width}); such a layer is not supported",
            repair="use a model whose embeddings are narrower than its layers, or one whose matrix is the unit matrix",
        )


def _canonical(
    family: Family, tensors: Mapping[str, Tensor], result: Imported
) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Tensors under modern names without prefix, and the name that each has in the file."""
    found: dict[str, Tensor] = {}
    source: dict[str, str] = {}
    renamed = 0
    for name in sorted(tensors):
        plain = modern(name.removeprefix(family.prefix))
        renamed += modern(name) != name
        if plain in found:
            result.unused.append(name)
            continue
        found[plain], source[plain] = tensors[name], name
    if renamed:
        tensors_had = "tensor has an old name" if renamed == 1 else "tensors have old names"
        result.notes.append(f"{renamed} {tensors_had}, gamma or beta; saving writes weight and bias")
    return found, source


def _take(rule: Rule, found: Mapping[str, Tensor], result: Imported) -> None:
    single = {name: float32(name, found[name], result) for name in rule.theirs}
    result.state[rule.ours] = rule.read(single)
    result.dtypes[rule.ours] = result.dtypes[rule.theirs[0]]


def float32(name: str, tensor: Tensor, result: Imported) -> Tensor:
    """The tensor in float32; its own dtype is noted in `result`, to be written back."""
    if tensor.dtype == torch.float64:
        result.notes.append(f"{name} was float64 and is rounded to float32")
        result.dtypes[name] = torch.float32
    elif tensor.dtype in (torch.float32, torch.float16, torch.bfloat16):
        result.dtypes[name] = tensor.dtype
    else:
        raise CheckpointError(
            f"tensor {name} holds {str(tensor.dtype).removeprefix('torch.')}, not floating-point weights",
            repair="use the unquantised weights of this model",
        )
    return tensor.to(torch.float32)


def _import_tied(rules: Iterable[Rule], found: Mapping[str, Tensor], result: Imported) -> set[str]:
    """Check second copies; one whose first is absent stands in for it."""
    used: set[str] = set()
    for rule in rules:
        name = rule.theirs[0]
        if rule.op != "tied" or name not in found:
            continue
        used.add(name)
        if rule.ours not in result.state:
            _take(rule, found, result)
            result.notes.append(f"{name} stands in for the tensor it is a copy of, which is not there")
            continue
        copy = float32(name, found[name], result)
        if not same_bits(copy, result.state[rule.ours]):
            raise CheckpointError(
                f"{name} differs from the tensor that it should be a copy of; "
                "an output matrix of its own is not supported",
                repair="use a model with tie_word_embeddings = true, or remove this tensor from the file",
            )
        result.tied.add(name)
    return used


def same_bits(left: Tensor, right: Tensor) -> bool:
    return left.shape == right.shape and torch.equal(
        left.contiguous().view(torch.int32), right.contiguous().view(torch.int32)
    )


def fitting_class(family: Family, names: set[str], shape: Shape, config: Mapping[str, Any]) -> HuggingFaceClass:
    """The class to write for tensors of these names: the one they came from if it holds them all, else the first
    whose tensors are all there, else the bare encoder."""
    origin = family.named(config)
    if origin is not None and origin.ours(shape) == names:
        return origin
    return next((each for each in family.classes if each.ours(shape) <= names), family.classes[-1])


def export_state(
    family: Family, chosen: HuggingFaceClass, state: Mapping[str, Tensor], shape: Shape, origin: Origin | None
) -> tuple[dict[str, Tensor], dict[str, Tensor], dict[str, torch.dtype]]:
    """Our tensors -> those of the class under its names, the rest under ours, and the original dtypes of those that
    no longer fit into them and stay in float32."""
    dtypes = origin.dtypes if origin else {}
    theirs: dict[str, Tensor] = {}
    covered: set[str] = set()
    for rule in expand(chosen.rules, shape):
        name = rule.theirs[0]
        if rule.op == "ignore":
            theirs |= {name: origin.buffers[name]} if origin and name in origin.buffers else {}
        elif rule.op == "identity":
            theirs[name] = nothing(name, shape.width)
        elif rule.op == "tied":
            theirs |= {name: state[rule.ours].clone()} if origin and name in origin.tied else {}
        elif rule.ours in state:
            theirs |= rule.write(state[rule.ours])
            covered.add(rule.ours)
    prefix = "" if chosen.bare or (origin and origin.bare and family.named(origin.config) is chosen) else family.prefix
    widened: dict[str, torch.dtype] = {}
    written = {
        (prefix + name if name.startswith(family.parts) else name): _narrowed(name, tensor, dtypes, widened)
        for name, tensor in theirs.items()
    }
    rest = {name: _narrowed(name, tensor, dtypes, widened) for name, tensor in state.items() if name not in covered}
    return written, rest, widened


def _narrowed(name: str, tensor: Tensor, dtypes: Mapping[str, torch.dtype], widened: dict[str, torch.dtype]) -> Tensor:
    """The tensor in the dtype that it was loaded from, unless that would change its numbers."""
    dtype = dtypes.get(name, tensor.dtype)
    narrow = tensor.to(dtype)
    if dtype == tensor.dtype or torch.equal(narrow.to(tensor.dtype), tensor):
        return narrow
    widened[name] = dtype
    return tensor
