"""`maskery words map`: chosen words and their neighbours on a plane, in the terminal or as a picture."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from maskery.cli.settings import JsonOption, LangOption
from maskery.language import phrases

if TYPE_CHECKING:
    from maskery.words.plane import Plane

_HIGH, _WIDEST = 24, 100


def word_map(
    vectors: Annotated[
        Path, typer.Argument(metavar="VECTORS", help="A folder made by maskery words train, or a file of word2vec.")
    ],
    word: Annotated[list[str], typer.Argument(metavar="WORD...", help="The words to look at.")],
    top: Annotated[int, typer.Option("--top", metavar="N", min=0, help="Neighbours of each word beside it.")] = 5,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Write a picture: an offline page, .html, or .svg.")
    ] = None,
    lang: LangOption = None,
    as_json: JsonOption = False,
) -> None:
    """Draw words and their neighbours in two dimensions."""
    from maskery.cli.output import emit_json, save_picture
    from maskery.cli.words import open_vectors
    from maskery.explain.word_map import map_picture
    from maskery.picture import require_place
    from maskery.words.plane import plane

    if html is not None:
        require_place(html)
    found = plane(open_vectors(vectors), word, top)
    if html is not None:
        save_picture(map_picture(found, phrases(lang).lang), html)
    if as_json:
        emit_json(plain(found))
    elif html is None:
        _print(found)


def plain(found: Plane) -> dict[str, Any]:
    listed = zip(found.words, found.group.tolist(), found.place.round(6).tolist(), strict=True)
    places = [{"word": word, "near": found.asked[group], "x": x, "y": y} for word, group, (x, y) in listed]
    return {"share": round(found.share, 6), "words": places}


def _print(found: Plane) -> None:
    from maskery.cli.output import counted, results, say, tell

    console = results()
    lines, hidden = grid(found, min(_WIDEST, console.width), _HIGH)
    for line in lines:
        console.print(line, soft_wrap=True)
    tell(f"the plane keeps {100 * found.share:.0f} % of the differences of these {len(found.words):,} vectors")
    if hidden:
        say(f"no room for {counted(hidden, 'word')}: a wider terminal, a smaller --top, or --html map.html")


def grid(found: Plane, width: int, high: int) -> tuple[list[str], int]:
    """The words as lines of text, those that were asked for in brackets; and how many found no room."""
    from rich.cells import cell_len

    low = found.place.min(axis=0)
    span = (found.place.max(axis=0) - low).clip(1e-12)
    rows: list[list[tuple[int, int, str]]] = [[] for _ in range(high)]
    hidden = 0
    for number, word in enumerate(found.words):
        text = f"[{word}]" if number < len(found.asked) else word
        size = cell_len(text)
        across, up = (found.place[number] - low) / span
        column = max(0, round(float(across) * (width - size)))
        row = round((1 - float(up)) * (high - 1))
        free = next((each for each in _near(row, high) if _fits(rows[each], column, size)), None)
        if free is None or size > width:
            hidden += 1
        else:
            rows[free].append((column, size, text))
    return [_line(sorted(row)) for row in rows], hidden


def _near(row: int, high: int) -> list[int]:
    """The row itself, then those beside it."""
    return [each for each in (row, row - 1, row + 1, row - 2, row + 2) if 0 <= each < high]


def _fits(row: list[tuple[int, int, str]], column: int, size: int) -> bool:
    return all(column + size < begin or begin + taken < column for begin, taken, _ in row)


def _line(row: list[tuple[int, int, str]]) -> str:
    line, at = "", 0
    for column, size, text in row:
        line += " " * (column - at) + text
        at = column + size
    return line
