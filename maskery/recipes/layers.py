"""Where a recipe's answers come from: files, what they extend, a size, overrides; later layers win.

Tables are merged key by key, except the few that answer a question as a whole (`WHOLE`): who gives one of those as a
table, in a file or as an override, replaces what stood there. An override of a single key (`corruption.span.p=0.3`)
changes this key alone. A layer that gives `training.length` without phases drops the
phases of the layers below it; one that gives `training.batch` or `training.lr` clears the phases' own.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from maskery.errors import RecipeError, UnknownName
from maskery.files import NotAFile, require_regular
from maskery.model.config import SIZES

FOLDER = Path(__file__).parent
WHOLE = frozenset({"objectives", "visibility", "corruption.span", "corruption.replace"})
_LONGEST_KEY = 1000
_MOST_DIGITS = 4300
"""Python reads no integer of more."""
_DEEPEST = 16
IDENTITY = ("name", "problem", "problem_zh", "paper")
"""What a file says of itself; never inherited."""

Tables = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Layer:
    """One source of answers; `text` is there when the source is a file, so that a line can be named."""

    where: str
    data: Tables
    text: str | None = None
    shipped: bool = False
    """Whether it is a file that comes with the package."""
    whole: frozenset[str] = frozenset()
    """Dotted keys of tables that replace the one below them."""

    def place(self, key: tuple[str, ...]) -> str:
        line = None if self.text is None else line_of(self.text, key)
        return self.where if line is None else f"{self.where}:{line}"


def names() -> list[str]:
    """The recipes that come with the package."""
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


def file_layers(source: str | PathLike[str]) -> list[Layer]:
    """A recipe file and everything it extends, the furthest ancestor first."""
    layers: list[Layer] = []
    chain: list[Path] = []
    path, where = _locate(source, Path())
    while True:
        text = _read(path, where)
        key = path.resolve()
        if key in chain:
            circle = " -> ".join(each.stem for each in [*chain[chain.index(key) :], key])
            raise RecipeError(
                f"recipes extend each other in a circle: {circle}",
                where=where,
                repair="remove one of these extends lines",
            )
        chain.append(key)
        data = parse(text, where)
        parent = data.pop("extends", None)
        data.setdefault("name", path.stem)
        shipped = key.parent == FOLDER.resolve()
        layers.insert(0, Layer(where=where, data=data, text=text, shipped=shipped, whole=WHOLE))
        if parent is None:
            return layers
        if not isinstance(parent, str):
            raise RecipeError(
                f"extends = {parent!r} is not a text",
                where=layers[0].place(("extends",)),
                repair='extends = "bert"',
            )
        path, where = _locate(parent, path.parent, layers[0].place(("extends",)))


def size_layer(size: str, below: Sequence[Layer] = ()) -> Layer:
    """A size; where the layers below it have a decoder, each of the two has half of its layers, as BART has."""
    if size not in SIZES:
        raise UnknownName("size", size, SIZES)
    model = {**SIZES[size], "feedforward": 0}
    if merged(list(below)).get("model", {}).get("decoder", 0):
        model["layers"] = model["decoder"] = model["layers"] // 2
    return Layer(where=f"size {size}", data={"model": model})


def override_layer(overrides: Mapping[str, Any]) -> Layer:
    """Dotted keys as nested tables: {"model.layers": 4} -> {"model": {"layers": 4}}."""
    data: Tables = {}
    whole: set[str] = set()
    for dotted, value in overrides.items():
        if str(dotted).count(".") > _DEEPEST:
            raise _too_deep("override")
        _shallow({str(dotted): value}, "override")
        nested: Any = dict(value) if isinstance(value, Mapping) else value
        whole |= _replaced(str(dotted), nested)
        for part in reversed(str(dotted).split(".")):
            nested = {part: nested}
        _refuse_clash(data, nested, ())
        data = _merge(data, nested)
    return Layer(where="override", data=data, whole=frozenset(whole))


def _replaced(dotted: str, value: Any) -> set[str]:
    """The tables of an override that replace what stands below: the same ones as in a file."""
    if not isinstance(value, dict):
        return set()
    if any(f"{dotted}.".startswith(f"{table}.") for table in WHOLE):
        return {dotted}
    return set().union(*(_replaced(f"{dotted}.{key}", each) for key, each in value.items()))


def merged(layers: list[Layer]) -> Tables:
    result: Tables = {}
    for layer in layers:
        if layer.text is not None:
            result = {key: value for key, value in result.items() if key not in IDENTITY}
        result = _merge(_settle_phases(result, layer.data), layer.data, layer.whole)
    return _without_dropped(result)


def _without_dropped(data: Tables) -> Tables:
    """`objectives.NAME = false` leaves an objective out, `visibility.mixture = false` the mixture: an override cannot
    take a table away otherwise."""
    kept = dict(data)
    for axis, dropped in (("objectives", None), ("visibility", "mixture")):
        table = data.get(axis)
        if isinstance(table, dict):
            gone = [name for name, value in table.items() if value is False and dropped in (None, name)]
            kept[axis] = {name: value for name, value in table.items() if name not in gone}
    return kept


def parse(text: str, where: str) -> Tables:
    for number, line in enumerate(text.split("\n"), 1):
        # The reader keeps every front part of a dotted key, so a long one would take memory by its square.
        if line.partition("=")[0].count(".") > _LONGEST_KEY:
            raise _too_deep(f"{where}:{number}")
    try:
        return _shallow(tomllib.loads(text), where)
    except RecursionError:
        raise _too_deep(where) from None
    except tomllib.TOMLDecodeError as error:
        message = str(error)
        found = re.search(r" \(at line (\d+), column (\d+)\)$", message)
        place = f"{where}:{found[1]}" if found else where
        cause = f"{message[: found.start()]} (column {found[2]})" if found else message
        raise RecipeError(f"not valid TOML: {cause}", where=place, repair="correct this line") from None
    except ValueError:  # a number of more digits than Python reads; its message names no line
        long = (n for n, line in enumerate(text.split("\n"), 1) if re.search(rf"\d{{{_MOST_DIGITS},}}", line))
        cause = "a number has too many digits"
        repair = f"write a number below 1e{_MOST_DIGITS}"
        raise RecipeError(cause, where=f"{where}:{next(long, 1)}", repair=repair) from None


def _shallow(data: Tables, where: str) -> Tables:
    """The tables, none of which lies deeper than any recipe needs: what walks over them calls itself."""
    level: list[Any] = [data]
    for _ in range(_DEEPEST):
        level = [inner for each in level for inner in (each.values() if isinstance(each, dict) else each)]
        level = [each for each in level if isinstance(each, dict | list)]
    if level:
        raise _too_deep(where)
    return data


def _too_deep(where: str) -> RecipeError:
    return RecipeError(
        f"tables inside tables, more than {_DEEPEST} deep", where=where, repair="`maskery recipes show bert` shows how"
    )


def line_of(text: str, key: tuple[str, ...]) -> int | None:
    """The line where a file gives `key` or the nearest table around it that is written out."""
    wanted = ".".join(key)
    table = ""
    for number, line in enumerate(text.splitlines(), 1):
        plain, name = line.strip(), line.partition("=")[0].strip()
        if header := re.match(r"\[+([^\[\]]+)\]+\s*(#.*)?$", plain):
            table = _bare(header[1])
            given = table
        elif name != plain and re.fullmatch(r"[\w.\"' -]+", name):
            given = f"{table}.{_bare(name)}" if table else _bare(name)
            if wanted.startswith(f"{given}."):
                return number
        else:
            continue
        if given == wanted:
            return number
    return None


def _bare(key: str) -> str:
    return re.sub(r"[\"'\s]", "", key)


def is_path(source: str) -> bool:
    return source.endswith(".toml") or "/" in source or "\\" in source


def _locate(source: str | PathLike[str], folder: Path, asked_by: str | None = None) -> tuple[Path, str]:
    """The file of a name or path, and what to call it in messages."""
    if not isinstance(source, str) or is_path(source):
        path = folder / source
        return path, str(path)
    if source not in names():
        raise UnknownName("recipe", source, names(), where=asked_by)
    return FOLDER / f"{source}.toml", f"recipe {source}"


def _read(path: Path, where: str) -> str:
    try:
        require_regular(path)
        return path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise RecipeError(
            f"byte {error.start} is not UTF-8", where=f"{where}:{line}", repair="save the file as UTF-8"
        ) from None
    except NotAFile as error:
        raise RecipeError(error.cause, where=where, repair="name a .toml file") from None
    except IsADirectoryError:
        raise RecipeError(
            "is a folder, not a recipe", where=where, repair=f"name the file: {path / 'recipe.toml'}"
        ) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise RecipeError(
            f"cannot be read: {reason}",
            where=where,
            repair=f"give a .toml file that exists, or one of the names {', '.join(names())}",
        ) from None


def _merge(base: Tables, over: Tables, whole: frozenset[str] = frozenset(), prefix: str = "") -> Tables:
    result = dict(base)
    for key, value in over.items():
        dotted = prefix + key
        below = result.get(key)
        if isinstance(value, dict) and dotted not in whole:
            value = _merge(below if isinstance(below, dict) else {}, value, whole, f"{dotted}.")
        result[key] = value
    return result


def _refuse_clash(base: Any, over: Any, key: tuple[str, ...]) -> None:
    """Two overrides of one key: a dict would keep one of them and nobody would know."""
    if isinstance(base, dict) and isinstance(over, dict):
        for part in base.keys() & over.keys():
            _refuse_clash(base[part], over[part], (*key, part))
    else:
        raise RecipeError(
            f"{'.'.join(key)} is overridden twice: {base!r} and {over!r}", where="override", repair="keep one of them"
        )


def _settle_phases(base: Tables, over: Tables) -> Tables:
    given = over.get("training")
    training = base.get("training")
    if not isinstance(given, dict) or not isinstance(training, dict) or "phases" in given:
        return base
    phases = training.get("phases", [])
    if "length" in given:
        phases = []
    elif isinstance(phases, list):
        cleared = {"batch", "lr"} & given.keys()
        phases = [
            {key: value for key, value in phase.items() if key not in cleared} if isinstance(phase, dict) else phase
            for phase in phases
        ]
    return {**base, "training": {**training, "phases": phases}}
