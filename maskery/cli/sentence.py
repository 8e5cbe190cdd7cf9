"""One sentence under several recipes on a terminal: a column for each token, a line for each draw."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.text import Text

from maskery.cli.rows import STYLES, TIE, print_legend, print_row
from maskery.edit import Edit
from maskery.explain.chips import SIGNS
from maskery.explain.words import words_of
from maskery.inspection import word_numbers
from maskery.language import phrases

if TYPE_CHECKING:
    from rich.console import Console

    from maskery.explain.sentence import Sentence


@dataclass(frozen=True)
class _Line:
    name: str
    cells: list[str]
    styles: list[str]


def print_sentence(found: Sentence, console: Console, lang: str = "en") -> None:
    words = words_of(lang)
    for masking in found.maskings:
        console.print(Text.assemble((masking.name, "bold"), f": {masking.described(words)}"))
    console.print()
    if all((masking.rows.length == len(found.plain_rows.ids)).all() for masking in found.maskings):
        _print_columns(found, console)
    else:
        _print_one_by_one(found, console)
    print_legend(found.edits, console, phrases(lang))


def _print_columns(found: Sentence, console: Console) -> None:
    """As many tokens side by side as the terminal is wide, all lines of these, then the next."""
    lines = list(_lines(found))
    word = word_numbers(found.plain_rows)
    tied = [*((word[1:] == word[:-1]) & (word[1:] >= 0)).tolist(), False]
    margin = max(cell_len(line.name) for line in lines) + 2
    widths = [max(cell_len(line.cells[place]) for line in lines) + 1 for place in range(len(tied))]
    for block in _blocks(widths, tied, console.width - margin):
        for line in lines:
            text = Text.assemble((line.name + " " * (margin - cell_len(line.name)), "bold"))
            for place in block:
                cell, room = line.cells[place], widths[place] - cell_len(line.cells[place]) - 1
                text.append(cell, style=line.styles[place])
                text.append((TIE if tied[place] else " ") + " " * room, style="dim")
            text.rstrip()
            console.print(text, no_wrap=True, overflow="crop")
        console.print()


def _lines(found: Sentence) -> Iterator[_Line]:
    """The sentence itself, then every draw of every recipe, named where a recipe begins."""
    names = found.tokenizer.shown
    special = ["dim" if each else "" for each in found.plain_rows.special]
    yield _Line("", names(found.plain_rows.ids), special)
    for masking in found.maskings:
        rows = masking.rows
        for place in range(len(rows)):
            part = slice(rows.start[place], rows.start[place + 1])
            edits = [Edit(code) for code in rows.edit[part]]
            cells = [SIGNS.get(edit, "") + name for edit, name in zip(edits, names(rows.ids[part]), strict=True)]
            styles = [STYLES[edit] if edit else "dim" for edit in edits]
            yield _Line(masking.name if place == 0 else "", cells, styles)


def _blocks(widths: list[int], tied: list[bool], room: int) -> Iterator[range]:
    """Ranges of columns that fit; a word is parted only if it is wider than the terminal."""
    start = 0
    while start < len(widths):
        end, used = start, 0
        while end < len(widths) and (end == start or used + widths[end] <= room):
            used += widths[end]
            end += 1
        whole = end
        while end < len(widths) and whole > start and tied[whole - 1]:
            whole -= 1
        end = whole if whole > start else end
        yield range(start, end)
        start = end


def _print_one_by_one(found: Sentence, console: Console) -> None:
    """Where slots go or come, columns would not be of one token."""
    print_row(found.plain_rows, 0, found.tokenizer, console, name="text")
    for masking in found.maskings:
        for place in range(len(masking.rows)):
            print_row(masking.rows, place, found.tokenizer, console, name=f"{masking.name} {place + 1}")
    console.print()
