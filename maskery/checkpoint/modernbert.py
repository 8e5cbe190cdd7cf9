"""ModernBERT as Hugging Face names it: pre-norm layers with rotary positions and gated feed-forward, windows in two
layers of three, and no biases.

Its heads all begin with a layer of the model's width, its activation and a norm; classifiers read the first token or
the mean of all, as `classifier_pooling` says.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from maskery.checkpoint.family import FIXED, Allowed, Family, HuggingFaceClass
from maskery.checkpoint.rules import Rule, both, same, tied
from maskery.errors import CheckpointError
from maskery.model.config import Shape

_LAYER = "layers.{layer}"
_POOLING = "classifier_pooling"

ENCODER: tuple[Rule, ...] = (
    same("embeddings.tokens", "embeddings.tok_embeddings.weight"),
    *both("embeddings.norm", "embeddings.norm"),
    Rule(f"{_LAYER}.attention.inputs", (f"{_LAYER}.attn.Wqkv.weight",), "split3"),
    Rule(f"{_LAYER}.attention.inputs_bias", (f"{_LAYER}.attn.Wqkv.bias",), "split3"),
    *both(f"{_LAYER}.attention.output", f"{_LAYER}.attn.Wo"),
    *both(f"{_LAYER}.attention_norm", f"{_LAYER}.attn_norm"),
    *both(f"{_LAYER}.up", f"{_LAYER}.mlp.Wi"),
    *both(f"{_LAYER}.down", f"{_LAYER}.mlp.Wo"),
    *both(f"{_LAYER}.feedforward_norm", f"{_LAYER}.mlp_norm"),
    *both("norm", "final_norm"),
)
MASKED_TOKEN: tuple[Rule, ...] = (
    *both("heads.masked_token.dense", "head.dense"),
    *both("heads.masked_token.norm", "head.norm"),
    same("heads.masked_token.bias", "decoder.bias"),
    tied("embeddings.tokens", "decoder.weight"),
)


def _classifier(name: str, head: str, pooling: str = "", classes: bool = True) -> HuggingFaceClass:
    rules = (
        *both(f"heads.{head}.dense", "head.dense"),
        *both(f"heads.{head}.norm", "head.norm"),
        *both(f"heads.{head}.answer", "classifier"),
    )
    allowed: Allowed = {_POOLING: (pooling,)} if pooling else {}
    return HuggingFaceClass(
        f"ModernBertFor{name}",
        (*ENCODER, *rules),
        classes=head if classes else "",
        ambiguous=True,
        allowed=allowed,
        says={_POOLING: pooling} if pooling else {},
    )


@dataclass(frozen=True)
class ModernBert(Family):
    """A family whose config.json names the kind of each layer, and the base of the waves by kind."""

    def named(self, config: Mapping[str, Any]) -> HuggingFaceClass | None:
        """Classes of one name differ in what they read."""
        found = super().named(config)
        pooling = config.get(_POOLING, "cls")
        same_name = [each for each in self.classes if found is not None and each.name == found.name]
        return next((each for each in same_name if pooling in each.allowed.get(_POOLING, (pooling,))), found)

    def shape_of(self, config: Mapping[str, Any]) -> Shape:
        told = {key: value for key, value in config.items() if value is not None}
        bases = _bases(told)
        if isinstance(half := told.get("sliding_window"), int):
            told["local_attention"] = 2 * half  # which it is another name for, and overrules
        told.setdefault("global_attn_every_n_layers", _every(told))
        shape = super().shape_of({**told, "global_rope_theta": bases[0], "local_rope_theta": bases[1]})
        _require_layers(told, shape)
        # A window that no layer has is none, and neither has it a base of its own.
        return shape if shape.windowed else _without_windows(shape)

    def config_of(self, shape: Shape, pad: int | None) -> dict[str, Any]:
        config = super().config_of(shape, pad)
        bases = (shape.theta, shape.local_theta or shape.theta)
        config["layer_types"] = _kinds(shape)
        config["rope_parameters"] = {
            kind: {"rope_type": "default", "rope_theta": float(base)}
            for kind, base in zip(("full_attention", "sliding_attention"), bases, strict=True)
        }
        # Versions before 5 read these in place of the two above.
        config |= {"global_rope_theta": float(bases[0]), "local_rope_theta": float(bases[1])}
        if not shape.local:
            config |= {"local_attention": self.defaults["local_attention"], "global_attn_every_n_layers": 1}
        if config["pad_token_id"] >= shape.vocabulary:
            config["pad_token_id"] = None
        ends = dict.fromkeys(("bos_token_id", "eos_token_id", "cls_token_id", "sep_token_id"))
        return config | ends | {"classifier_activation": config["hidden_activation"], "tie_word_embeddings": True}

    def objections(self, shape: Shape, names: Any, pad: int | None) -> list[str]:
        found = super().objections(shape, names, pad)
        if shape.local % 2:
            found.append(f"local = {shape.local} is odd, and its windows are as wide on either side")
        if shape.local and not shape.windowed:
            found.append(f"local = {shape.local}, and no layer is local")
        return found


def _bases(told: Mapping[str, Any]) -> tuple[Any, Any]:
    """The bases of the waves in layers that see everything, and in layers of windows."""
    parameters = told.get("rope_parameters")
    found = []
    for kind, key, usual in (
        ("full_attention", "global_rope_theta", 160_000.0),
        ("sliding_attention", "local_rope_theta", 10_000.0),
    ):
        told_here = parameters.get(kind) if isinstance(parameters, Mapping) else None
        told_here = told_here if isinstance(told_here, Mapping) else {}
        if told_here.get("rope_type", "default") != "default" or told.get("rope_scaling"):
            raise CheckpointError(
                "rope_parameters of another rope_type than default are not supported",
                repair="use a model whose rotary positions are not scaled",
            )
        base = told_here.get("rope_theta", told.get(key, usual))
        found.append(float(base) if isinstance(base, int) and not isinstance(base, bool) else base)
    return found[0], found[1]


def _every(told: Mapping[str, Any]) -> Any:
    """Every how many layers one sees everything, from the kinds of layers where these are named."""
    kinds = told.get("layer_types")
    if not isinstance(kinds, list) or not kinds:
        return 3
    whole = [number for number, kind in enumerate(kinds) if kind == "full_attention"]
    return whole[1] if len(whole) > 1 else len(kinds)


def _kinds(shape: Shape) -> list[str]:
    return ["sliding_attention" if shape.is_local(layer) else "full_attention" for layer in range(shape.layers)]


def _require_layers(told: Mapping[str, Any], shape: Shape) -> None:
    kinds = told.get("layer_types")
    if isinstance(kinds, list) and len(kinds) != shape.layers:
        raise CheckpointError(
            f"layer_types names {len(kinds)} layers, and num_hidden_layers is {shape.layers}",
            repair="fetch or save config.json again",
        )
    if kinds is not None and (not isinstance(kinds, list) or kinds != _kinds(shape)):
        raise CheckpointError(
            f"layer_types {kinds} are not every n-th layer, from the first on, in full",
            repair="use a model with such layers, as the published ones have",
        )
    if told.get("classifier_activation", "gelu") != told.get("hidden_activation", "gelu"):
        raise CheckpointError(
            f"classifier_activation = {told.get('classifier_activation')!r} differs from hidden_activation",
            repair="use a model with one activation",
        )


def _without_windows(shape: Shape) -> Shape:
    plain = {name: type(shape).model_fields[name].default for name in ("local", "global_every", "local_theta")}
    return shape.model_copy(update=plain)


_FREE = (
    "attention_bias", "feedforward_bias", "norm_bias", "head_bias", "theta", "local", "global_every", "local_theta",
)  # fmt: skip
FAMILY = ModernBert(
    model_type="modernbert",
    prefix="model.",
    fields={
        "vocabulary": "vocab_size",
        "width": "hidden_size",
        "layers": "num_hidden_layers",
        "heads": "num_attention_heads",
        "feedforward": "intermediate_size",
        "eps": "norm_eps",
        "init_std": "initializer_range",
        "dropout": "mlp_dropout",
        "attention_dropout": "attention_dropout",
        "attention_bias": "attention_bias",
        "feedforward_bias": "mlp_bias",
        "norm_bias": "norm_bias",
        "head_bias": "classifier_bias",
        "local": "local_attention",
        "global_every": "global_attn_every_n_layers",
        "theta": "global_rope_theta",
        "local_theta": "local_rope_theta",
    },
    defaults={
        "vocab_size": 50368,
        "hidden_size": 768,
        "num_hidden_layers": 22,
        "num_attention_heads": 12,
        "intermediate_size": 1152,
        "norm_eps": 1e-5,
        "initializer_range": 0.02,
        "mlp_dropout": 0.0,
        "attention_dropout": 0.0,
        "attention_bias": False,
        "mlp_bias": False,
        "norm_bias": False,
        "classifier_bias": False,
        "local_attention": 128,
        "global_attn_every_n_layers": 3,
        "global_rope_theta": 160_000.0,
        "local_rope_theta": 10_000.0,
        "max_position_embeddings": 8192,
        "hidden_activation": "gelu",
        "pad_token_id": 50283,
    },
    fixed={name: value for name, value in FIXED.items() if name not in _FREE}
    | {"positions": "rotary", "norm": "pre", "first_norm": False, "gated": True, "segments": 0},
    allowed={"decoder_bias": (True, None)},
    parts=("embeddings.", "layers.", "final_norm."),
    activation_key="hidden_activation",
    repeated={"embedding_dropout": "mlp_dropout"},
    classes=(
        HuggingFaceClass("ModernBertForMaskedLM", (*ENCODER, *MASKED_TOKEN)),
        _classifier("SequenceClassification", "sequence_class_normed", "cls"),
        _classifier("SequenceClassification", "sequence_class_mean", "mean"),
        _classifier("TokenClassification", "token_class_normed"),
        _classifier("QuestionAnswering", "answer_span_normed"),
        _classifier("MultipleChoice", "choice_normed", "cls", classes=False),
        _classifier("MultipleChoice", "choice_mean", "mean", classes=False),
        HuggingFaceClass("ModernBertModel", ENCODER, bare=True),
    ),
)
