"""`maskery explain`: where the attention heads of a model look in a text, as a page to play with or as a table."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from maskery.cli.settings import HtmlOption, JsonOption, LangOption, PickleOption
from maskery.errors import InputError
from maskery.language import phrases

if TYPE_CHECKING:
    from maskery.explain.attention import Attention

_COLUMNS = ("layer", "head", "entropy", "self", "previous", "next", "first", "separator", "strongest links")
_MEANING = (
    "entropy in nats and shares, means over the tokens that read: shares that go to the token itself, the one before, "
    "the next one, the first of the row ({first}) and the ends of texts ({ends})"
)
_RANGE = re.compile(r"(\d+)(?:-(\d+))?")


def explain(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A model or run folder.")],
    text: Annotated[str, typer.Argument(help="What the model reads.")],
    pair: Annotated[str | None, typer.Option("--pair", metavar="TEXT", help="A second text, read as a pair.")] = None,
    layers: Annotated[
        str | None, typer.Option("--layers", metavar="N,N-N", help="Only these layers, counted from 1.")
    ] = None,
    allow_pickle: PickleOption = False,
    html: HtmlOption = None,
    lang: LangOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print where each attention head looks; with --html write the head view instead."""
    from maskery.checkpoint.load import load
    from maskery.cli.output import counted, emit_json, save_picture, say, say_found, say_unknown
    from maskery.explain.attention import attend
    from maskery.explain.heads import head_picture
    from maskery.picture import require_place

    if html is not None:
        require_place(html)
    chosen = None if layers is None else parse_layers(layers)
    loaded = load(model, allow_pickle=allow_pickle)
    say_found(loaded)
    attention = attend(loaded, text, pair, chosen)
    if attention.unknown:
        told = counted(attention.unknown, "token")
        say(f"{told} of the text {'is' if attention.unknown == 1 else 'are'} not in the vocabulary")
        say_unknown(loaded, [text] if pair is None else [text, pair])
    if html is not None:
        save_picture(head_picture(attention, phrases(lang).lang, Path(model).name), html)
    if as_json:
        emit_json(plain(attention))
    elif html is None:
        _print(attention)


def parse_layers(text: str) -> list[int]:
    """1,3-5 -> [1, 3, 4, 5]"""
    found: list[int] = []
    for part in text.split(","):
        match = _RANGE.fullmatch(part.strip())
        first = int(match[1]) if match else 0
        last = int(match[2] or first) if match else 0
        if not match or last < first or last > 10_000:
            raise InputError(f"--layers {text!r} is no list of layers", repair="--layers 1,3-5")
        found += range(first, last + 1)
    return found


def plain(attention: Attention) -> dict[str, Any]:
    return {
        "tokens": attention.tokens,
        "segments": attention.segments,
        "unknown": attention.unknown,
        "heads": attention.heads(),
    }


def _print(attention: Attention) -> None:
    from rich import box
    from rich.table import Table

    from maskery.cli.output import results

    console = results()
    console.print(" ".join(attention.tokens))
    words = phrases()
    table = Table(*map(words.name, _COLUMNS), box=box.SIMPLE_HEAD)
    for column in table.columns[:8]:
        column.justify = "right"
    for head in attention.heads():
        shares = (f"{head[name]:.2f}" for name in ("entropy", "self", "previous", "next", "first", "separator"))
        links = ", ".join(
            f"{attention.tokens[link['from']]}→{attention.tokens[link['to']]} {link['weight']:.2f}"
            for link in head["strongest"]
        )
        table.add_row(str(head["layer"]), str(head["head"]), *shares, links)
    console.print(table)
    console.print(words.phrase(_MEANING).format(first=attention.tokens[0], ends=_ends(attention)), soft_wrap=True)


def _ends(attention: Attention) -> str:
    return attention.tokens[attention.separators[0]] if attention.separators else phrases().phrase("none here")
