"""A recipe in a few words, one phrase an axis, worked out from its values: what `maskery recipes` prints."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from maskery.config import Config
from maskery.corruption.config import CorruptionConfig, ReplaceConfig
from maskery.model.config import GeneratorConfig, ModelConfig, VisibilityConfig
from maskery.objectives.config import ASKED_OF_DECODER, ObjectiveConfig
from maskery.rows.config import RowsConfig

if TYPE_CHECKING:
    from maskery.recipes.recipe import Recipe

_SIZE = {"layers", "width", "heads", "feedforward", "max_length", "position_offset"}
_MEASURES = _SIZE | {"eps", "init_std", "position_std", "residual_init", "dropout", "attention_dropout"}
"""Numbers of the model that say how large or how careful, not of what kind."""
_TOLD = {"rate", "of", "unit", "when", "decide", "span", "replace", "shuffle", "order", "ngram", "stages"}
_SHARED = {"all": "layers", "attention": "attention", "feedforward": "feed-forward"}
_GRAMS = {2: "bigrams", 3: "trigrams"}


def summary(recipe: Recipe) -> dict[str, str]:
    return {
        "name": recipe.name,
        "rows": _rows(recipe.rows),
        "corruption": _corruption(recipe.corruption, recipe.rows.copies),
        "visibility": _visibility(recipe.visibility) + " -> causal" * bool(recipe.model.decoder),
        "model": _model(recipe.model),
        "objectives": " + ".join(_objective(*each, recipe.rows) for each in recipe.objectives.items()) or "none",
    }


def _rows(rows: RowsConfig) -> str:
    kind = _spaced(rows.kind)
    if rows.pair == "none" and kind.endswith(" pair") and not rows.two_segments:
        kind = f"one {kind.removesuffix(' pair')}"
    return f"{kind}, both ways" if rows.both_ways else kind


def _visibility(visibility: VisibilityConfig) -> str:
    """The kind, or the shares of a mixture as fractions where they are such."""
    if not visibility.mixed:
        return ", ".join([_spaced(visibility.kind), *_unusual(visibility, {"kind", "mixture"})])
    return ", ".join(f"{_part(share)} {_spaced(kind)}" for kind, share in visibility.shares.items())


def _part(share: float) -> str:
    near = Fraction(share).limit_denominator(12)
    return str(near) if abs(near - share) < 1e-4 else f"{100 * share:.3g} %"


def _corruption(corruption: CorruptionConfig, copies: int) -> str:
    moved = _moved(corruption)
    if corruption.rate == 0:
        return ", ".join(moved) or "none"
    words = [_units(corruption)]
    if corruption.rate != CorruptionConfig().rate or corruption.of == "words":
        words.append(f"{100 * corruption.rate:g} %" + " of words" * (corruption.of == "words"))
    words.append(_shares(corruption.replace) + ("" if corruption.decide == "token" else f" per {corruption.decide}"))
    words += moved
    words.append(f"static x{copies}" if corruption.when == "static" else corruption.when)
    return ", ".join(words + _unusual(corruption, _TOLD))


def _units(corruption: CorruptionConfig) -> str:
    """What is taken whole, and how many at once."""
    span, units = corruption.span, list(corruption.units)
    if len({stage.share for stage in corruption.stages}) > 1:
        units = [f"{stage.unit} x{stage.share:g}" for stage in corruption.stages]
    if span.law == "single":
        return ", then ".join(units)
    if span.law == "weights":
        shares = "/".join(f"{100 * weight / sum(span.weights):.3g}" for weight in span.weights)
        return f"{', then '.join(units)} n-grams {shares}" + " apart" * (span.place == "apart")
    if span.law == "fragment":
        return f"one fragment of {', then '.join(units)}s"
    many = ["entities" if unit == "entity" else f"{unit}s" for unit in units]
    return " ".join([f"{span.law} spans of {', then '.join(many)}", *_unusual(span, {"law"})])


def _moved(corruption: CorruptionConfig) -> list[str]:
    """What changes besides the chosen: order of tokens and sentences, the run of a contrast."""
    shuffle, order, ngram = corruption.shuffle, corruption.order, corruption.ngram
    words = []
    if shuffle.rate > 0:
        runs = _GRAMS.get(shuffle.size, f"runs of {shuffle.size}")
        words.append(f"{100 * shuffle.rate:g} % of {runs} shuffled")
    if order.sentences:
        words.append("sentences permuted")
    if order.rotate > 0:
        words.append(f"{100 * order.rotate:g} % rotated")
    if ngram.longest > 0:
        words.append(f"one run of {ngram.shortest} to {ngram.longest} words")
    return words


def _shares(replace: ReplaceConfig) -> str:
    """80/10/10 where the three of BERT are all there is, otherwise each share with its name, the largest first."""
    shares = {name: 100 * share for name, share in replace.plain().items() if share > 0}
    if list(shares) == ["mask", "random", "keep"]:
        return "/".join(f"{share:g}" for share in shares.values())
    falling = sorted(shares.items(), key=lambda share: -share[1])
    return " / ".join(f"{share:g} {_spaced(name)}" for name, share in falling)


def _model(model: ModelConfig) -> str:
    words = [f"{_spaced(model.positions)} positions", f"{model.norm}-norm"]
    words += ["encoder-decoder"] if model.decoder else []
    told = {"positions", "norm", "share", "groups", "generator", "decoder", *_MEASURES}
    return ", ".join([*words, *_shared(model), *_unusual(model, told), *_beside(model.generator)])


def _beside(generator: GeneratorConfig) -> list[str]:
    if not generator.width:
        return []
    wide = "as wide" if generator.width == 1 else f"{_part(generator.width)} as wide"
    return [" ".join(["generator", wide, *_unusual(generator, {"width"})])]


def _shared(model: ModelConfig) -> list[str]:
    if model.share == "none":
        return []
    groups = f" in {model.groups} groups" if model.groups > 1 else ""
    return [f"{_SHARED[model.share]} shared{groups}"]


def _objective(name: str, objective: ObjectiveConfig, rows: RowsConfig) -> str:
    weight = "" if objective.weight == 1 else f"{objective.weight:g} x "
    written = f" of the {rows.decoder}" if rows.decoder != "none" and name in ASKED_OF_DECODER else ""
    return f"{weight}{_spaced(name)}{written}"


def _unusual(config: Config, told: set[str]) -> list[str]:
    """Every other key that differs from its default, so that a new key shows itself without a line here."""
    usual = {name: field.get_default(call_default_factory=True) for name, field in type(config).model_fields.items()}
    return [
        _said(_spaced(name), value)
        for name, value in config
        if name not in told and value != usual[name] and value is not None
    ]


def _said(name: str, value: object) -> str:
    """A switch by its name alone, or with a no before it."""
    if isinstance(value, bool) or value in ("yes", "no"):
        return f"no {name}" if value in (False, "no") else name
    return f"{name} {value}"


def _spaced(name: str) -> str:
    return name.replace("_", " ")
