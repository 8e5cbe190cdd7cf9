"""A checkpoint of Google's -> configs and tensors as Hugging Face has them, and the count of what was left aside."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torch import Tensor

from maskery.checkpoint.tensorflow import names
from maskery.checkpoint.tensorflow.bundle import Bundle
from maskery.checkpoint.tensorflow.names import Naming, Rename, renamed
from maskery.checkpoint.tensors import read_json
from maskery.errors import CheckpointError

_HEAD = 64
"""Numbers of one attention head in every model that Google released as ELECTRA."""
_NEEDS_CONFIG = "give the config that was published with the checkpoint: --config FILE"


@dataclass(frozen=True)
class Part:
    """One network: which variable is which tensor, and its config."""

    variables: Mapping[str, str]
    """Variable -> tensor."""
    config: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Conversion:
    model: Part
    generator: Part | None
    unused: tuple[str, ...]
    """Variables that no part of the model takes."""
    state: tuple[str, ...]
    """The optimiser's."""
    notes: list[str] = field(default_factory=list)

    def size(self, bundle: Bundle) -> int:
        """Bytes that will be read."""
        return sum(bundle.entries[name].size for part in self.parts() for name in part.variables)

    def parts(self) -> list[Part]:
        return [self.model, *([self.generator] if self.generator else [])]


def plan(bundle: Bundle, config: Path | None) -> Conversion:
    """What becomes of each variable, from the index alone; what does not fit together is refused."""
    held = list(bundle.entries)
    naming = _naming(bundle)
    state = tuple(name for name in held if names.is_state(name))
    weights = [name for name in held if name not in set(state)]
    notes: list[str] = []
    variables = _renamed(weights, naming.renames)
    model = Part(variables, _config(bundle, naming, variables, config, notes))
    generator = _generator(bundle, weights, model, notes) if naming.model_type == "electra" else None
    used = {*variables, *(generator.variables if generator else ())}
    unused = tuple(name for name in weights if name not in used)
    return Conversion(model=model, generator=generator, unused=unused, state=state, notes=notes)


def tensors(bundle: Bundle, part: Part, tell: Callable[[int], None] | None = None) -> dict[str, Tensor]:
    """The tensors of a part under Hugging Face's names, each checked against its checksum."""
    found = {}
    for variable, tensor in part.variables.items():
        values = bundle.tensor(variable, tell)
        found[tensor] = values.t().contiguous() if names.is_turned(variable) and values.ndim == 2 else values
    return found


def _naming(bundle: Bundle) -> Naming:
    naming = names.naming_of(bundle.entries)
    if naming is not None:
        return naming
    if names.OBJECTS in bundle.entries:
        raise CheckpointError(
            "names its tensors by Python objects (tf.train.Checkpoint of TensorFlow 2), not by Google's variables",
            where=bundle.index,
            repair="use the checkpoint of the model's first release, with names such as bert/encoder/layer_0/...",
        )
    if any(name.startswith("bert/encoder/layer_shared/") for name in bundle.entries):
        raise CheckpointError(
            "is an ALBERT of the albert_zh project, whose network differs from Google's",
            where=bundle.index,
            repair="use one of its models that were converted to Google's names (bert/encoder/transformer/group_0/...)",
        )
    shown = ", ".join(sorted(bundle.entries)[:3]) or "none"
    raise CheckpointError(
        f"has names of no family that we know; the first: {shown}",
        where=bundle.index,
        repair=f"supported: {', '.join(each.model_type for each in names.NAMINGS)}, as Google's code names them",
    )


def _renamed(variables: Iterable[str], renames: Iterable[Rename]) -> dict[str, str]:
    rules = tuple(renames)
    return {name: tensor for name in variables if (tensor := renamed(name, rules)) is not None}


def _config(
    bundle: Bundle, naming: Naming, variables: Mapping[str, str], path: Path | None, notes: list[str]
) -> dict[str, Any]:
    """The config as Hugging Face has it: what was published, compared with the tensors, or what the tensors tell."""
    measured = _measured(bundle, naming, variables)
    if path is None:
        if naming.model_type != "electra":
            raise CheckpointError(
                f"no {naming.model_type}_config.json here, which says how many attention heads there are",
                where=bundle.prefix.parent,
                repair=_NEEDS_CONFIG,
            )
        return _without_config(measured, bundle, notes)
    given = read_json(path)
    _require_fitting(given, measured, path, bundle)
    activation = given.get("hidden_act")
    meant = naming.activation.get(activation) if isinstance(activation, str) else None
    if meant is not None:
        notes.append(
            f"hidden_act is {meant}: what {path.name} calls {activation}, as {naming.model_type}'s code has it"
        )
        given["hidden_act"] = meant
    return {**given, **measured, "model_type": naming.model_type}


def _measured(bundle: Bundle, naming: Naming, variables: Mapping[str, str]) -> dict[str, int]:
    """What the sizes of the tensors say, under the keys of config.json."""
    shapes = {tensor: bundle.entries[name].shape for name, tensor in variables.items()}
    start = f"{naming.model_type}.embeddings"
    found = {
        "vocab_size": _size(shapes, f"{start}.word_embeddings.weight", 0),
        "max_position_embeddings": _size(shapes, f"{start}.position_embeddings.weight", 0),
        "type_vocab_size": _size(shapes, f"{start}.token_type_embeddings.weight", 0),
        "embedding_size": _size(shapes, f"{start}.word_embeddings.weight", 1),
    }
    if naming.model_type == "albert":
        inside = "albert.encoder.albert_layer_groups."
        found["num_hidden_groups"] = _count(shapes, inside)
        found["hidden_size"] = _size(shapes, f"{inside}0.albert_layers.0.attention.query.weight", 0)
        found["intermediate_size"] = _size(shapes, f"{inside}0.albert_layers.0.ffn.weight", 1)
    else:
        inside = f"{naming.model_type}.encoder.layer."
        found["num_hidden_layers"] = _count(shapes, inside)
        found["hidden_size"] = _size(shapes, f"{inside}0.attention.self.query.weight", 0)
        found["intermediate_size"] = _size(shapes, f"{inside}0.intermediate.dense.weight", 1)
    if naming.model_type == "bert":
        del found["embedding_size"]  # there is one width
    return {key: size for key, size in found.items() if size}


def _size(shapes: Mapping[str, tuple[int, ...]], tensor: str, axis: int) -> int:
    """0 where there is no such tensor: loading will say which are missing."""
    shape = shapes.get(tensor, ())
    return shape[axis] if axis < len(shape) else 0


def _count(shapes: Mapping[str, tuple[int, ...]], start: str) -> int:
    return len({tensor.removeprefix(start).partition(".")[0] for tensor in shapes if tensor.startswith(start)})


def _require_fitting(given: Mapping[str, Any], measured: Mapping[str, int], path: Path, bundle: Bundle) -> None:
    wrong = [
        f"{key} is {given[key]!r} there and {size} in the checkpoint"
        for key, size in measured.items()
        if key in given and given[key] != size
    ]
    if wrong:
        raise CheckpointError(
            f"is the config of another model than {bundle.prefix.name}: {'; '.join(wrong)}",
            where=path,
            repair=_NEEDS_CONFIG,
        )


def _without_config(measured: dict[str, int], bundle: Bundle, notes: list[str]) -> dict[str, Any]:
    width = measured.get("hidden_size", 0)
    if width % _HEAD:
        raise CheckpointError(
            f"the width {width} is no multiple of {_HEAD}, so that the number of heads cannot be told without a config",
            where=bundle.prefix,
            repair=_NEEDS_CONFIG,
        )
    heads = max(1, width // _HEAD)
    notes.append(f"no config here: sizes as the tensors have them, {heads} heads of {_HEAD} as in every released one")
    return {**measured, "num_attention_heads": heads, "model_type": "electra"}


def _generator(bundle: Bundle, weights: list[str], model: Part, notes: list[str]) -> Part | None:
    """The generator of an ELECTRA checkpoint, where it is there whole."""
    if not any(name.startswith("generator/encoder/") for name in weights):
        return None
    variables = _renamed(weights, names.GENERATOR)
    measured = _measured(bundle, _electra(), variables)
    width = measured.get("hidden_size", 0)
    heads = max(1, width // _HEAD)
    own = any(name.startswith("generator/embeddings/") for name in weights)
    if own or width % heads:
        why = "it has embeddings of its own" if own else f"its width {width} does not part into heads of {_HEAD}"
        notes.append(f"the generator is left aside: {why}")
        return None
    return Part(variables, {**model.config, **measured, "num_attention_heads": heads})


def _electra() -> Naming:
    return next(each for each in names.NAMINGS if each.model_type == "electra")
