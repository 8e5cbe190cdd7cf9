"""A recipe: the six answers that make one model of the family, in a TOML file of differences from another.

`maskery.recipe("bert", {"model.layers": 4})` reads a recipe by name or path. Precedence: what it extends, the file,
the size, the overrides. No torch is imported here: a recipe is only numbers and names.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from os import PathLike
from typing import Annotated, Any

import tomlkit
from pydantic import AfterValidator, Field, ValidationError
from tomlkit.items import Array, InlineTable, Table

from maskery import arguments
from maskery.arguments import checked
from maskery.config import Config
from maskery.corruption.config import CorruptionConfig
from maskery.errors import RecipeError, RefusedError
from maskery.knowledge.config import KnowledgeConfig
from maskery.model.config import ModelConfig, VisibilityConfig
from maskery.objectives.config import OBJECTIVES, ObjectiveConfig
from maskery.recipes.checks import CHECKS
from maskery.recipes.layers import Layer, file_layers, merged, names, override_layer, parse, size_layer
from maskery.recipes.problems import SHOW, recipe_error
from maskery.recipes.refusal import Refusal
from maskery.recipes.table import summary
from maskery.rows.config import RowsConfig
from maskery.train.config import TrainingConfig

__all__ = ["Recipe", "Refusal", "check", "diff", "loads", "names", "recipe", "table"]

ObjectiveName = Annotated[str, AfterValidator(OBJECTIVES.validator())]


class Recipe(Config):
    """The six answers that make one model of the family; read-only, `changed` gives another.

    bert = maskery.recipe("bert", {"training.steps": 1000}, size="tiny")
    bert.corruption.rate, bert.changed({"model.norm": "pre"})
    print(bert.toml())
    """

    name: str = Field(min_length=1)
    problem: str = ""
    """What the model set out to solve."""
    problem_zh: str = ""
    paper: str = ""
    data: float = Field(1.0, gt=0)
    """How much text the published model read, as a multiple of what the BERT of its language did."""
    rows: RowsConfig = RowsConfig()
    corruption: CorruptionConfig = CorruptionConfig()
    visibility: VisibilityConfig = VisibilityConfig()
    model: ModelConfig = ModelConfig()
    objectives: dict[ObjectiveName, ObjectiveConfig] = Field(default_factory=dict)
    """In the order of the file; the first gives `eval/accuracy`."""
    training: TrainingConfig = TrainingConfig()
    knowledge: KnowledgeConfig = KnowledgeConfig()

    def toml(self) -> str:
        """The whole recipe with nothing left to defaults: `loads(recipe.toml()) == recipe`."""
        document = tomlkit.document()
        _fill(document, self.plain())
        return tomlkit.dumps(document)

    @checked
    def changed(self, overrides: Mapping[str, Any]) -> Recipe:
        """This recipe with other answers to some dotted keys; they win over everything that made it."""
        return _build([Layer(where=f"recipe {self.name}", data=self.plain()), override_layer(overrides)])

    def require(self) -> Recipe:
        """This recipe, or a RefusedError with every contradiction in it."""
        refusals = check(self)
        if not refusals:
            return self
        if len(refusals) == 1:
            only = refusals[0]
            raise RefusedError(f"{only.piece}: {only.reason}", where=f"recipe {self.name}", repair=only.repair)
        lines = "".join(f"\n  {each.piece}: {each.reason}\n    repair: {each.repair}" for each in refusals)
        raise RefusedError(f"refused for {len(refusals)} reasons{lines}", where=f"recipe {self.name}")


@checked
def recipe(
    name_or_path: str | PathLike[str], overrides: Mapping[str, Any] | None = None, *, size: str | None = None
) -> Recipe:
    """Read a recipe: a name that `names()` lists, or the path of a TOML file.

        maskery.recipe("bert", {"model.layers": 4})

    Overrides are dotted keys, e.g. {"model.layers": 4, "objectives.masked_token.weight": 2}.
    """
    layers = file_layers(_named(name_or_path))
    if size is not None:
        layers.append(size_layer(arguments.text("size", size), layers))
    if overrides is not None and not isinstance(overrides, Mapping):
        raise arguments.wrong("overrides", overrides, 'a mapping from dotted keys: {"model.layers": 4}')
    if overrides:
        layers.append(override_layer(overrides))
    return _build(layers)


AnyRecipe = Recipe | str | PathLike[str]
"""A recipe, its name, or the path of its TOML file."""
_FORM = "a Recipe, the name of one, or the path of a .toml file"


def recipe_of(given: AnyRecipe, name: str = "recipe") -> Recipe:
    """What a Python call was given for its argument `name`, read."""
    return given if isinstance(given, Recipe) else recipe(_named(given, name))


def _named(given: object, name: str = "name_or_path") -> str | PathLike[str]:
    """A name stays a string: only a string can be one, and a `Path` is always a path."""
    path = arguments.path(name, given, _FORM)
    return given if isinstance(given, str) else path


def loads(text: str, where: str = "recipe.toml") -> Recipe:
    """A recipe from the text that `Recipe.toml` made: complete, extending nothing."""
    return _build([Layer(where=where, data=parse(text, where), text=text)])


def check(recipe: Recipe) -> list[Refusal]:
    """What contradicts what; empty when the pieces fit together."""
    return [refusal for each in CHECKS if (refusal := each(recipe)) is not None]


def diff(left: Recipe, right: Recipe) -> dict[str, tuple[Any, Any]]:
    """The dotted keys whose values differ; None where a recipe has no such key."""
    ours, theirs = _flat(left.plain()), _flat(right.plain())
    return {key: (ours.get(key), theirs.get(key)) for key in {**ours, **theirs} if ours.get(key) != theirs.get(key)}


def table() -> list[dict[str, str]]:
    """One row of short words for every recipe of the package, worked out from the files."""
    rows = [summary(recipe(name)) for name in names()]
    reference = next((row["model"] for row in rows if row["name"] == "bert"), None)
    for row in rows:
        if row["model"] == reference and row["name"] != "bert":
            row["model"] = "= bert"
    return rows


def _build(layers: list[Layer]) -> Recipe:
    data = merged(layers)
    try:
        # By way of JSON, because there the strict mode still takes a list for a tuple.
        return Recipe.model_validate_json(json.dumps(data, default=_foreign), strict=True)
    except ValidationError as error:
        raise recipe_error(error, Recipe, layers, data) from None
    except ValueError as error:  # a number of more digits than Python writes
        raise RecipeError(f"a value cannot be written: {error}", where=layers[-1].where, repair=SHOW) from None


def _foreign(value: Any) -> Any:
    """A date or an object: put as something that no field takes, so that the key is named."""
    return [[str(value)]]


def _flat(plain: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in plain.items():
        flat.update(_flat(value, f"{prefix}{key}.") if isinstance(value, dict) else {prefix + key: value})
    return flat


def _fill(made: Table | tomlkit.TOMLDocument | InlineTable, plain: Mapping[str, Any]) -> None:
    """TOML has no null: a key that is None is left out, which is also its default."""
    for key, value in plain.items():
        if isinstance(value, dict):
            table = tomlkit.table()
            _fill(table, value)
            made.append(key, table)
        elif value is not None:
            made.append(key, _array(value) if isinstance(value, list) else value)


def _array(values: list[Any]) -> Array:
    """Tables in a list become inline tables, one a line: `[[...]]` would swallow the keys that follow."""
    array = tomlkit.array()
    for value in values:
        if isinstance(value, dict):
            inline = tomlkit.inline_table()
            _fill(inline, value)
            value = inline
        array.append(value)
    return array.multiline(any(isinstance(value, dict) for value in values))
