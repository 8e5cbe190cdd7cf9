"""A family of Hugging Face models: its classes as tables of rules, its config.json as a table of fields."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError

from maskery.checkpoint.rules import Rule, expand
from maskery.errors import CheckpointError
from maskery.model.config import Shape

ACTIVATIONS = {
    "gelu": "gelu",
    "gelu_python": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "gelu_python_tanh": "gelu_tanh",
    "gelu_fast": "gelu_tanh",
    "gelu_accurate": "gelu_tanh",
    "relu": "relu",
}
"""Their name -> ours; the first name of each is the one written."""

FIXED: dict[str, Any] = {
    "positions": "learned",
    "theta": 10_000.0,
    "local": 0,
    "global_every": 3,
    "local_theta": 0.0,
    "gated": False,
    "norm": "post",
    "first_norm": True,
    "norm_bias": True,
    "visibility": "full",
    "share": "none",
    "groups": 1,
    "clip": 64,
    "buckets": 32,
    "tasks": 0,
    "decoder": 0,
    "target_vocabulary": 0,
    "memory": 0,
    "streams": 1,
    "embedding_norm": "yes",
    "embedding_scale": False,
    "attention_bias": True,
    "feedforward_bias": True,
    "token_head": "transform",
    "head_bias": True,
    "cutoffs": (),
}
"""Fields of our shape for which BERT and its like know one value only."""

AT_THE_START = ("position_std", "residual_init")
"""Fields that tell how weights begin: they change no trained network, and no config.json needs them."""

Allowed = Mapping[str, tuple[Any, ...]]
"""Keys of config.json that change the network -> the values under which it is the one we have; the first is usual."""

ALLOWED: Allowed = {
    "is_decoder": (False, None),
    "add_cross_attention": (False, None),
    "pruned_heads": ({}, None),
    "position_embedding_type": ("absolute", None),
}


@dataclass(frozen=True)
class HuggingFaceClass:
    name: str
    rules: tuple[Rule, ...]
    bare: bool = False
    """The encoder itself: its names carry no prefix."""
    classes: str = ""
    """The head whose number of classes config.json tells."""
    ambiguous: bool = False
    """Its head has the name of another class's head, so that it is only read when config.json names the class."""
    allowed: Allowed = field(default_factory=dict)
    """What it asks of config.json beyond what its family asks."""
    says: Mapping[str, Any] = field(default_factory=dict)
    """What config.json has to say for it to be this class and no other of its name."""
    tensorless: tuple[str, ...] = ()
    """Heads of it that are nothing but the network's own tensors again."""

    def ours(self, shape: Shape) -> set[str]:
        """Our names of all that it holds; a head without a tensor by its own."""
        held = {rule.ours for rule in expand(self.rules, shape) if rule.carries}
        return held | {f"heads.{head}" for head in self.tensorless}


@dataclass(frozen=True)
class Family:
    model_type: str
    prefix: str
    fields: Mapping[str, str]
    """Field of our shape -> key of config.json."""
    defaults: Mapping[str, Any]
    classes: tuple[HuggingFaceClass, ...]
    """In the order in which a set of tensors is tried on them; the bare class is the last."""
    fixed: Mapping[str, Any] = field(default_factory=lambda: FIXED)
    """Field of our shape -> the one value that the family has."""
    allowed: Allowed = field(default_factory=lambda: ALLOWED)
    parts: tuple[str, ...] = ("embeddings.", "encoder.", "pooler.")
    """What their names of the encoder begin with, after the prefix."""
    activation_key: str = "hidden_act"
    activations: Mapping[str, str] = field(default_factory=lambda: ACTIVATIONS)
    length_key: str = "max_position_embeddings"
    repeated: Mapping[str, str] = field(default_factory=dict)
    """Key of config.json -> the key whose number it repeats when it is written, and for which it is not read."""
    ends: bool = False
    """Whether config.json tells which token begins and ends a text."""
    switches: Mapping[str, str] = field(default_factory=dict)
    """Field of our shape -> key of config.json that says whether its number counts, or is 0 in truth."""
    aliases: Mapping[str, str] = field(default_factory=dict)
    """Other names of keys, understood on the way in."""
    offset_from_pad: bool = False
    """Positions are counted from the padding id + 1 instead of 0."""
    offset: int = 0
    """The number of the first position, which config.json does not count."""
    equal: Mapping[str, str] = field(default_factory=dict)
    """Key of config.json -> the key whose value it must repeat: two stacks of one width."""
    zeros: tuple[str, ...] = ()
    """Buffers that we have no place for, and that are all 0 in every published model."""
    masked_activation: str = ""
    """The activation that its masked token head uses whatever the config says."""
    remark: str = ""
    """What to say of a folder that is written as this family."""

    def named(self, config: Mapping[str, Any]) -> HuggingFaceClass | None:
        """The class that config.json names, if it is one of ours."""
        names = config.get("architectures")
        first = names[0] if isinstance(names, list) and names else None
        return next((each for each in self.classes if each.name == first), None)

    def shape_of(self, config: Mapping[str, Any]) -> Shape:
        """config.json -> our shape."""
        named = self.named(config)
        told = {**self.defaults, **config}
        for key, allowed in {**self.allowed, **(named.allowed if named else {})}.items():
            if key in told and told[key] not in allowed:
                raise CheckpointError(
                    f"{key} = {told[key]!r} is not supported", repair=f"use a model with {key} = {allowed[0]!r}"
                )
        given = {self.aliases.get(key, key): value for key, value in config.items() if value is not None}
        values = {**self.defaults, **given}
        for key, other in self.equal.items():
            if values[key] != values[other]:
                raise CheckpointError(
                    f"{key} = {values[key]!r} differs from {other} = {values[other]!r}, which is not supported",
                    repair="use a model whose encoder and decoder are of one size",
                )
        activation = values[self.activation_key]
        if not isinstance(activation, str) or activation not in self.activations:
            raise CheckpointError(
                f"{self.activation_key} = {activation!r} is not supported",
                repair=f"supported: {', '.join(self.activations)}",
            )
        try:
            return Shape.model_validate(self._plain(values, activation), strict=True)
        except ValidationError as error:
            raise CheckpointError(
                f"values that make no model: {self._problems(error)}", repair="fetch or save config.json again"
            ) from None

    def _plain(self, values: Mapping[str, Any], activation: str) -> dict[str, Any]:
        rows, offset = values[self.length_key], self._offset(values)
        plain = dict(self.fixed) | {ours: values[theirs] for ours, theirs in self.fields.items()}
        plain |= {ours: 0 for ours, switch in self.switches.items() if not values[switch]}
        plain |= {"activation": self.activations[activation], "position_offset": offset}
        plain.setdefault("embedding", plain["width"])
        if plain.get("feedforward") is None and isinstance(plain["width"], int):
            plain["feedforward"] = 4 * plain["width"]
        return plain | {"max_length": rows - offset if isinstance(rows, int) and self.offset_from_pad else rows}

    def _offset(self, values: Mapping[str, Any]) -> int:
        if not self.offset_from_pad:
            return self.offset
        pad = values["pad_token_id"]
        if not isinstance(pad, int) or pad < 0:
            raise CheckpointError(
                f"pad_token_id = {pad!r}: positions are counted from it", repair="set it to the id of <pad>"
            )
        return pad + 1

    def _problems(self, error: ValidationError) -> str:
        """Pydantic's complaints in the words of config.json."""
        keys = {"max_length": self.length_key, "activation": self.activation_key, **self.fields}
        lines = []
        for each in error.errors():
            place = str(each["loc"][0]) if each["loc"] else ""
            given = f" = {each['input']!r}" if place else ""
            lines.append(f"{keys.get(place, place)}{given}: {each['msg']}".lstrip(": "))
        return "; ".join(lines)

    def config_of(self, shape: Shape, pad: int | None) -> dict[str, Any]:
        """Our shape -> config.json; only for a shape without objections."""
        names = {ours: theirs for theirs, ours in reversed(list(self.activations.items()))}
        config: dict[str, Any] = {theirs: getattr(shape, ours) for ours, theirs in self.fields.items()}
        for ours, switch in self.switches.items():
            config[switch] = bool(getattr(shape, ours))
            if not config[switch]:
                config[self.fields[ours]] = self.defaults[self.fields[ours]]
        config[self.activation_key] = names[shape.activation]
        config[self.length_key] = shape.max_length + (shape.position_offset if self.offset_from_pad else 0)
        config |= {key: config[other] for key, other in {**self.repeated, **self.equal}.items()}
        if self.offset_from_pad:
            config["pad_token_id"] = shape.position_offset - 1
        else:
            config["pad_token_id"] = self.defaults["pad_token_id"] if pad is None else pad
        return config

    def objections(self, shape: Shape, names: Iterable[str], pad: int | None) -> list[str]:
        """Why this family cannot express a network of this shape with tensors of these (our) names."""
        found = [
            f"{name} = {getattr(shape, name)!r}" for name, only in self.fixed.items() if getattr(shape, name) != only
        ]
        found += [f"{name} is unknown to it" for name in sorted(self._unknown(shape))]
        if "embedding" not in self.fields and shape.embedding != shape.width:
            found.append(f"embedding {shape.embedding} differs from width {shape.width}")
        if "feedforward" not in self.fields and shape.feedforward != 4 * shape.width:
            found.append(f"feedforward {shape.feedforward} is not four times the width {shape.width}")
        if shape.activation not in self.activations.values():
            found.append(f"activation = {shape.activation!r}")
        if "segments" in self.fields and shape.segments == 0:
            found.append("segments = 0")
        if "decoder" in self.fields and shape.decoder == 0:
            found.append("decoder = 0")
        found += self._offset_objections(shape, pad)
        has_head = any(name.startswith("heads.masked_token.") for name in names)
        if has_head and self.masked_activation not in ("", shape.activation):
            found.append(f"activation = {shape.activation!r} in the masked token head")
        return list(dict.fromkeys(found))

    def _offset_objections(self, shape: Shape, pad: int | None) -> list[str]:
        if not self.offset_from_pad:
            return [f"position_offset = {shape.position_offset}"] if shape.position_offset != self.offset else []
        if shape.position_offset == 0:
            return ["position_offset = 0"]
        if pad is not None and pad + 1 != shape.position_offset:
            return [f"position_offset = {shape.position_offset} is not the padding id {pad} + 1"]
        return []

    def told(self) -> set[str]:
        """The fields of our shape that some table of the family speaks of."""
        settled = ("activation", "embedding", "feedforward", "max_length", "position_offset")
        return {*self.fields, *self.fixed, *AT_THE_START, *settled}

    def _unknown(self, shape: Shape) -> set[str]:
        """Fields of the shape that no table mentions, and that are not at their default."""
        others = set(type(shape).model_fields) - self.told()
        return {name for name in others if getattr(shape, name) != type(shape).model_fields[name].default}
