"""Everything wrong with a recipe's keys and values, as sentences: the place, the key, the value, what is allowed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from maskery.errors import RecipeError, Unfit
from maskery.recipes.layers import Layer, Tables

Location = tuple[str | int, ...]
SHOW = "`maskery recipes show bert` prints every key with a value that works"
_LONGEST_VALUE, _LONGEST_KEY = 60, 200
_MOST = 20
"""Problems that a message lists: nobody reads more, and each is looked for in the files."""
_MISSING = object()


def recipe_error(error: ValidationError, top: type[BaseModel], layers: Sequence[Layer], data: Tables) -> RecipeError:
    """All problems in one message."""
    details = error.errors(include_url=False, include_input=False)
    repair = SHOW
    found = []
    for detail in details[:_MOST]:
        location = tuple(part for part in detail["loc"] if part != "[key]")
        message, ours = detail["msg"], detail.get("ctx", {}).get("error")
        if isinstance(ours, Unfit) and len(details) == 1:
            message, repair = ours.cause, ours.repair
        found.append((_place(location, layers), _sentence(detail["type"], message, location, top, data)))
    if len(found) == 1:
        return RecipeError(found[0][1], where=found[0][0], repair=repair)
    lines = "".join(f"\n  {place}: {sentence}" for place, sentence in found)
    more = f"\n  and {len(details) - _MOST:,} more" if len(details) > _MOST else ""
    return RecipeError(f"{len(details):,} problems in the recipe{lines}{more}", repair=repair)


def _sentence(kind: str, message: str, location: Location, top: type[BaseModel], data: Tables) -> str:
    key = dotted(location)
    if kind == "extra_forbidden":
        return _unknown_key(key, location, top)
    if kind == "missing":
        return f"{key} is missing"
    message = (
        message.removeprefix("Value error, ").replace("Input should be", "must be").replace("an object", "a table")
    )
    value = _value(data, location)
    if isinstance(value, dict) or value is _MISSING:
        return f"{key}: {message}" if key else message
    shown = json.dumps(value, ensure_ascii=False, default=str)
    if len(shown) > _LONGEST_VALUE:
        shown = f"{shown[:_LONGEST_VALUE]}..."
    return f"{key} = {shown}: {message}"


def _unknown_key(key: str, location: Location, top: type[BaseModel]) -> str:
    table = _config_at(top, location[:-1])
    known = list(table.model_fields) if table else []
    name = str(location[-1])
    near = get_close_matches(name, known, n=3, cutoff=0.5) if len(name) <= _LONGEST_KEY else []
    key = key if len(key) <= _LONGEST_KEY else f"{key[:_LONGEST_KEY]}..."
    hint = f"did you mean {' or '.join(dotted((*location[:-1], name)) for name in near)}? " if near else ""
    return f"{key} is not a key of a recipe; {hint}keys here: {', '.join(known)}"


def dotted(location: Location) -> str:
    """("training", "phases", 0, "length") -> training.phases[0].length"""
    text = ""
    for part in location:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def _place(location: Location, layers: Sequence[Layer]) -> str:
    """The last layer that gives this key, or else the nearest table around it. A list belongs to one layer whole."""
    inside_list = next((depth for depth, part in enumerate(location) if isinstance(part, int)), len(location))
    location = location[:inside_list]
    for depth in range(len(location), -1, -1):
        for layer in reversed(layers):
            if depth == 0 or _value(layer.data, location[:depth]) is not _MISSING:
                return layer.place(tuple(str(part) for part in location[:depth]))
    return "recipe"


def _value(data: Any, location: Location) -> Any:
    for part in location:
        try:
            data = data[part]
        except (KeyError, IndexError, TypeError):
            return _MISSING
    return data


def _config_at(top: type[BaseModel], location: Location) -> type[BaseModel] | None:
    """The config class of a table, found through the annotations of the fields on the way."""
    here: type[BaseModel] | None = top
    inside_mapping = False
    for part in location:
        if isinstance(part, int) or inside_mapping or here is None:
            inside_mapping = False
            continue
        annotation = here.model_fields[part].annotation if part in here.model_fields else None
        inside_mapping = getattr(annotation, "__origin__", None) is dict
        here = _config_inside(annotation)
    return here


def _config_inside(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for each in get_args(annotation) if (found := _config_inside(each))), None)
