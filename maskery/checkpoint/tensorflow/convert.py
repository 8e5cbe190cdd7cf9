"""A TensorFlow checkpoint -> configs and tensors as Hugging Face has them, and the count of what was left aside."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torch import Tensor

from maskery.checkpoint.tensorflow import names
from maskery.checkpoint.tensorflow.bundle import Bundle
from maskery.checkpoint.tensorflow.names import Naming, Rename, renamed
from maskery.checkpoint.tensorflow.sizes import factored, measured
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
    given = None if config is None else read_json(config)
    naming = _naming(bundle, given, config)
    state = tuple(name for name in held if names.is_state(name))
    weights = [name for name in held if name not in set(state)]
    notes: list[str] = []
    variables = _renamed(weights, naming.renames)
    model = Part(variables, _config(bundle, naming, variables, given, config, notes))
    generator = _generator(bundle, weights, model, notes) if naming.model_type == "electra" else None
    used = {*variables, *(generator.variables if generator else ())}
    unused = tuple(name for name in weights if name not in used)
    return Conversion(model=model, generator=generator, unused=unused, state=state, notes=notes)


def tensors(bundle: Bundle, part: Part, tell: Callable[[int], None] | None = None) -> dict[str, Tensor]:
    """The tensors of a part under Hugging Face's names, each checked against its checksum."""
    found: dict[str, Tensor] = {}
    for variable, tensor in part.variables.items():
        values = bundle.tensor(variable, tell)
        if names.EVERY in tensor:
            layers = values.unbind() if values.ndim else ()
            found |= {tensor.replace(names.EVERY, str(layer)): each.clone() for layer, each in enumerate(layers)}
            continue
        found[tensor] = values.t().contiguous() if names.is_turned(variable) and values.ndim == 2 else values
    factor = next((name for name in found if name.endswith(names.FACTOR)), None)
    if factor is not None:
        whole = factor.removesuffix(names.FACTOR) + "word_embeddings.weight"
        found[whole] = found[whole] @ found.pop(factor)
    return found


def _naming(bundle: Bundle, given: Mapping[str, Any] | None, config: Path | None) -> Naming:
    naming = names.naming_of(bundle.entries)
    if naming is not None and naming.model_type == "bert":
        return _bert_or_nezha(naming, bundle, given, config)
    if naming is not None:
        return naming
    if names.OBJECTS in bundle.entries:
        raise CheckpointError(
            "names its tensors by Python objects (tf.train.Checkpoint of TensorFlow 2), not by Google's variables",
            where=bundle.index,
            repair="use the checkpoint of the model's first release, with names such as bert/encoder/layer_0/...",
        )
    shown = ", ".join(sorted(bundle.entries)[:3]) or "none"
    known = dict.fromkeys([*(each.model_type for each in names.NAMINGS), names.NEZHA.model_type])
    raise CheckpointError(
        f"has names of no family that we know; the first: {shown}",
        where=bundle.index,
        repair=f"supported: {', '.join(known)}, as their authors' code names them",
    )


def _bert_or_nezha(naming: Naming, bundle: Bundle, given: Mapping[str, Any] | None, config: Path | None) -> Naming:
    """The two have the same names. NEZHA has no table of positions, and its config says use_relative_position."""
    relative = bool((given or {}).get("use_relative_position"))
    if relative:
        return names.NEZHA
    if names.POSITIONS not in bundle.entries and given is not None:
        raise CheckpointError(
            f"has no {names.POSITIONS}, as a NEZHA has none, but {config} does not say use_relative_position: true",
            where=bundle.index,
            repair="if it is a NEZHA, give its own config (--config FILE) or add that key; if not, fetch it again",
        )
    return naming


def _renamed(variables: Iterable[str], renames: Iterable[Rename]) -> dict[str, str]:
    rules = tuple(renames)
    return {name: tensor for name in variables if (tensor := renamed(name, rules)) is not None}


def _config(
    bundle: Bundle,
    naming: Naming,
    variables: Mapping[str, str],
    given: dict[str, Any] | None,
    path: Path | None,
    notes: list[str],
) -> dict[str, Any]:
    """The config as Hugging Face has it: what was published, compared with the tensors, or what the tensors tell."""
    found = {tensor: bundle.entries[name].shape for name, tensor in variables.items()}
    sizes = measured(naming.model_type, found)
    if given is None or path is None:
        if naming.model_type == "electra":
            return _without_config(sizes, bundle, notes)
        if naming.model_type == "xlnet":
            notes.append("no xlnet_config.json here: sizes and heads as the tensors have them, the rest as published")
            return {**sizes, "model_type": "xlnet", "mem_len": None, "tie_weight": True}
        raise CheckpointError(
            f"no {naming.config or f'{naming.model_type}_config.json'} here, which says how many attention heads "
            "there are",
            where=bundle.prefix.parent,
            repair=_NEEDS_CONFIG,
        )
    given = _plain_keys(given, naming)
    _require_fitting(given, sizes, path, bundle)
    if factored(found):
        _require_post_norm(given, path)
        notes.append(
            f"the word embeddings are a product ({sizes['embedding_size']} numbers a word times a matrix), to which "
            "positions are added: the product is written, as one table of the layers' width"
        )
        sizes["embedding_size"] = sizes["hidden_size"]
    activation = given.get("hidden_act")
    meant = naming.activation.get(activation) if isinstance(activation, str) else None
    if meant is not None:
        notes.append(
            f"hidden_act is {meant}: what {path.name} calls {activation}, as {naming.model_type}'s code has it"
        )
        given["hidden_act"] = meant
    return {**given, **sizes, "model_type": naming.model_type}


def _plain_keys(given: Mapping[str, Any], naming: Naming) -> dict[str, Any]:
    """XLNet's config has its own name of the vocabulary's size, and no memory: that is an option of its programs."""
    if naming.model_type != "xlnet":
        return dict(given)
    plain = {("vocab_size" if key == "n_token" else key): value for key, value in given.items()}
    return {"mem_len": None, **plain}


def _require_post_norm(given: Mapping[str, Any], path: Path) -> None:
    if given.get("ln_type", "postln") != "postln":
        raise CheckpointError(
            f"ln_type = {given['ln_type']!r}: this size of albert_zh normalises before each half of a layer, "
            "which is not supported with its names",
            where=path,
            repair="use one with ln_type = 'postln' (tiny, small, base, large), or Google's ALBERT of this size",
        )


def _require_fitting(given: Mapping[str, Any], sizes: Mapping[str, int], path: Path, bundle: Bundle) -> None:
    wrong = [
        f"{key} is {given[key]!r} there and {size} in the checkpoint"
        for key, size in sizes.items()
        if key in given and given[key] != size
    ]
    if wrong:
        raise CheckpointError(
            f"is the config of another model than {bundle.prefix.name}: {'; '.join(wrong)}",
            where=path,
            repair=_NEEDS_CONFIG,
        )


def _without_config(sizes: dict[str, int], bundle: Bundle, notes: list[str]) -> dict[str, Any]:
    width = sizes.get("hidden_size", 0)
    if width % _HEAD:
        raise CheckpointError(
            f"the width {width} is no multiple of {_HEAD}, so that the number of heads cannot be told without a config",
            where=bundle.prefix,
            repair=_NEEDS_CONFIG,
        )
    heads = max(1, width // _HEAD)
    notes.append(f"no config here: sizes as the tensors have them, {heads} heads of {_HEAD} as in every released one")
    return {**sizes, "num_attention_heads": heads, "model_type": "electra"}


def _generator(bundle: Bundle, weights: list[str], model: Part, notes: list[str]) -> Part | None:
    """The generator of an ELECTRA checkpoint, where it is there whole."""
    if not any(name.startswith("generator/encoder/") for name in weights):
        return None
    variables = _renamed(weights, names.GENERATOR)
    sizes = {tensor: bundle.entries[name].shape for name, tensor in variables.items()}
    measured_here = measured("electra", sizes)
    width = measured_here.get("hidden_size", 0)
    heads = max(1, width // _HEAD)
    own = any(name.startswith("generator/embeddings/") for name in weights)
    if own or width % heads:
        why = "it has embeddings of its own" if own else f"its width {width} does not part into heads of {_HEAD}"
        notes.append(f"the generator is left aside: {why}")
        return None
    return Part(variables, {**model.config, **measured_here, "num_attention_heads": heads})
