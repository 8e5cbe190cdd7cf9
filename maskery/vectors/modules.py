"""The steps of a folder of sentence-transformers, as ours and back. Keys are written as releases before 6 have them:
those, 6 and text-embeddings-inference all read them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from maskery.checkpoint.pooling import MODES as MODES
from maskery.checkpoint.pooling import MODULES as MODULES
from maskery.checkpoint.pooling import modes_of
from maskery.checkpoint.tensors import require_finite
from maskery.errors import ArgumentError, CheckpointError
from maskery.vectors.after.base import After
from maskery.vectors.after.flow import Flow
from maskery.vectors.model import VectorModel
from maskery.vectors.pooling import LAYERS
from maskery.vectors.steps import Bend, Dense, FlowStep, Normalize

OURS = {"AttentionPooling": "learned attention", "Flow": "flow"}
"""Steps that sentence-transformers does not have, and what they are."""
FLOW = "flow.safetensors"
BENDS: dict[Bend, str] = {
    "tanh": "torch.nn.modules.activation.Tanh",
    "relu": "torch.nn.modules.activation.ReLU",
    "gelu": "torch.nn.modules.activation.GELU",
    "identity": "torch.nn.modules.linear.Identity",
}
ANEW = "make the encoder anew: maskery.Encoder(MODEL, pool=...)"


class Module(NamedTuple):
    """One step as a folder holds it."""

    kind: str
    config: Mapping[str, Any]
    tensors: Mapping[str, Tensor]
    place: Path = Path()
    flow: Flow | None = None


@dataclass
class Steps:
    """What a folder says."""

    pool: tuple[str, ...] = ()
    pool_prompt: bool = True
    attention: Mapping[str, Tensor] | None = None
    steps: list[nn.Module] = field(default_factory=list)


def wrong(where: Path, cause: str, repair: str = ANEW) -> CheckpointError:
    return CheckpointError(cause, where=where, repair=repair)


# -- in


def steps_of(modules: Sequence[Module], layers: int, where: Path) -> Steps:
    """`layers`: those of the network; `where`: modules.json."""
    found, weighs = Steps(), ""
    for each in modules:
        require_finite(each.tensors, each.place)
        if each.kind == "WeightedLayerPooling":
            weighs = _two_layers(each, layers)
        elif each.kind == "Pooling":
            found.pool, found.pool_prompt = _modes(each), bool(each.config.get("include_prompt", True))
        elif each.kind == "AttentionPooling":
            found.pool, found.attention = ("attention",), each.tensors
            found.pool_prompt = bool(each.config.get("include_prompt", True))
        elif each.kind == "Dense":
            found.steps.append(_dense(each))
        elif each.kind == "Normalize":
            found.steps.append(Normalize())
        elif each.kind == "Flow":
            found.steps.append(FlowStep(_flow(each.place / FLOW)))
        else:
            raise wrong(where, f"has a step {each.kind or 'without a type'}, which is unknown here")
    if not found.pool:
        raise wrong(where, "does not say how slots are pooled")
    if weighs and found.pool != ("mean",):
        raise wrong(where, f"weighs layers and then pools {', '.join(found.pool)}: only the mean is known here")
    found.pool = (weighs,) if weighs else found.pool
    return found


def _modes(module: Module) -> tuple[str, ...]:
    found, unknown = modes_of(module.config)
    if unknown:
        raise wrong(module.place, f"pools {unknown[0]}, which is unknown here")
    return found


def _two_layers(module: Module, layers: int) -> str:
    weights = module.tensors["layer_weights"].tolist() if "layer_weights" in module.tensors else []
    start = module.config.get("layer_start", 4)
    whole = [0.0] * (start if isinstance(start, int) else 0) + weights
    for name, which in LAYERS.items():
        wanted = [float(layer in which(layers)) for layer in range(layers + 1)]
        if len(whole) == len(wanted) and all(
            abs(a * 2 - b * sum(whole)) < 1e-6 for a, b in zip(whole, wanted, strict=True)
        ):
            return name
    raise wrong(module.place, "weighs layers in a way that is unknown here")


def _dense(module: Module) -> Dense:
    config, tensors = module.config, dict(module.tensors)
    name = str(config.get("activation_function", BENDS["tanh"]))
    bend = next((ours for ours, theirs in BENDS.items() if theirs == name), None)
    if bend is None:
        raise wrong(module.place, f"has a layer with {name}, which is unknown here")
    if config.get("use_residual"):
        raise wrong(module.place, "has a layer with a residual, which is unknown here")
    read = {"module_input_name", "module_output_name"}
    if any(config.get(key) not in (None, "sentence_embedding") for key in read):
        raise wrong(module.place, "has a layer that reads or writes something else than the vectors of texts")
    weight = tensors.get("linear.weight")
    sizes = None if weight is None or weight.dim() != 2 else (weight.shape[1], weight.shape[0])
    if sizes is None or sizes != (config.get("in_features"), config.get("out_features")):
        raise wrong(module.place, "its weights are not those of which config.json tells", "fetch or save it again")
    bias = bool(config.get("bias", True))
    if set(tensors) != {"linear.weight", "linear.bias"} - (set() if bias else {"linear.bias"}):
        raise wrong(module.place, f"has the tensors {', '.join(sorted(tensors))}", "fetch or save it again")
    step = Dense(*sizes, bias=bias, bend=bend)
    step.load_state_dict(tensors)
    return step


def _flow(path: Path) -> Flow:
    found = After.load(path)
    if not isinstance(found, Flow):
        raise wrong(path, f"holds {found.kind}, not a flow", "fetch or save it again")
    return found


# -- out


def modules_of(made: VectorModel) -> list[Module]:
    """All but the network itself, which is the first."""
    pool, width = made.config.pool, made.model.config.width
    modules: list[Module] = []
    if len(pool) == 1 and pool[0] in LAYERS:
        modules.append(_layers(pool[0], made))
        pool = ("mean",)
    if pool == ("attention",):
        assert made.pooling.attention is not None
        kept = {"include_prompt": made.config.pool_prompt}
        modules.append(Module("AttentionPooling", kept, made.pooling.attention.state_dict()))
    else:
        modules.append(Module("Pooling", _pooling(made, pool), {}))
    if pool == ("pooler",):
        assert made.model.network.pooler is not None
        state = {f"linear.{name}": each for name, each in made.model.network.pooler.state_dict().items()}
        modules.append(Module("Dense", _dense_config(width, width, True, "tanh"), state))
    return [*modules, *map(_module, made.steps)]


def _pooling(made: VectorModel, pool: tuple[str, ...]) -> dict[str, Any]:
    theirs = ["first" if name == "pooler" else name for name in pool]
    if theirs != [name for name in MODES if name in theirs] or ("pooler" in pool and len(pool) > 1):
        raise ArgumentError(
            f"{' and '.join(pool)} side by side cannot be written",
            repair=f"pool one, or several of {', '.join(MODES)} in this order",
        )
    config: dict[str, Any] = {"word_embedding_dimension": made.model.config.width}
    config |= {key: name in theirs for name, key in MODES.items()}
    return config | {"include_prompt": made.config.pool_prompt or pool == ("pooler",)}


def _module(step: nn.Module) -> Module:
    if isinstance(step, Dense):
        config = _dense_config(step.inputs, step.outputs, step.linear.bias is not None, step.bend)
        return Module("Dense", config, step.state_dict())
    if isinstance(step, FlowStep):
        return Module("Flow", {"dimensions": step.outputs}, {}, flow=step.flow)
    if isinstance(step, Normalize):
        return Module("Normalize", {}, {})
    raise ArgumentError(f"a step {type(step).__name__} cannot be written", repair="steps: Dense, Normalize, FlowStep")


def _layers(name: str, made: VectorModel) -> Module:
    layers = made.model.config.layers
    which = LAYERS[name](layers)
    weights = torch.tensor([float(layer in which) for layer in range(1, layers + 1)])
    config = {"word_embedding_dimension": made.model.config.width, "layer_start": 1, "num_hidden_layers": layers}
    return Module("WeightedLayerPooling", config, {"layer_weights": weights})


def _dense_config(inputs: int, outputs: int, bias: bool, bend: Bend) -> dict[str, Any]:
    return {"in_features": inputs, "out_features": outputs, "bias": bias, "activation_function": BENDS[bend]}
