"""What verbs share on the way in: the typer app, common options, and `--set axis.key=value`."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from maskery.errors import InputError
from maskery.language import speak

SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Override a key of the recipe, e.g. model.layers=4."),
]
SizeOption = Annotated[
    str | None, typer.Option("--size", metavar="S", help="tiny, mini, small, medium, base or large.")
]
PickleOption = Annotated[bool, typer.Option("--allow-pickle", help="Read pytorch_model.bin.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
HtmlOption = Annotated[
    Path | None, typer.Option("--html", metavar="FILE", help="Write a picture: one offline page, .html.")
]

LangOption = Annotated[
    str | None,
    typer.Option(
        "--lang",
        metavar="en|zh",
        callback=speak,
        help="Language of results and pages; else MASKERY_LANG, or that of the system.",
    ),
]


def new_app(help: str | None = None) -> typer.Typer:
    """Plain help (square brackets are text, not markup) and plain tracebacks."""
    return typer.Typer(
        help=help,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["--help", "-h"]},
    )


def parse_settings(settings: Iterable[str] | None, such_as: str = "model.layers=4") -> dict[str, Any]:
    """["model.layers=4", "rows.kind=stream"] -> overrides; a value is read as TOML, or else taken as a text."""
    parsed: dict[str, Any] = {}
    for setting in settings or ():
        key, equals, value = setting.partition("=")
        key = key.strip()
        if not equals or not key:
            raise InputError(f"--set {setting!r} is not KEY=VALUE", repair=f"--set {such_as}")
        if key in parsed:
            raise InputError(f"--set gives {key} twice", repair=f"keep one --set {key}=...")
        parsed[key] = parse_value(value.strip())
    return parsed


def parse_value(text: str) -> Any:
    try:
        document = tomllib.loads(f"value = {text}")
    except (tomllib.TOMLDecodeError, RecursionError):
        return text
    except ValueError as error:  # a number of more digits than Python reads
        raise InputError(f"--set ...={text[:20]}...: {error}".split(";")[0], repair="give a smaller number") from None
    return document["value"] if len(document) == 1 else text


_MEMORY = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?", re.IGNORECASE)


def parse_memory(text: str) -> int:
    """16G, 512M, 1.5GiB -> bytes; each letter is 1024 of the one before."""
    found = _MEMORY.fullmatch(text.strip())
    amount = int(float(found[1]) * 1024 ** " KMGT".index(found[2].upper() or " ")) if found else 0
    if not amount:
        raise InputError(f"--memory {text!r} is no amount of memory", repair="--memory 16G")
    return amount
