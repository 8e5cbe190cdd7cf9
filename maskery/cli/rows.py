"""Corrupted rows on a terminal. Between a token and what is read in its place stands a sign, so that nothing is told by
colour alone; tokens of one word are tied together.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.text import Text

from maskery.edit import Edit
from maskery.explain.chips import SIGNS, segment_name
from maskery.explain.rows import row_title
from maskery.explain.words import words_of
from maskery.inspection import visits, word_numbers

if TYPE_CHECKING:
    from rich.console import Console

    from maskery.feed import Feed
    from maskery.rows.ragged import Rows
    from maskery.text.tokenizer import Tokenizer

SHOWN = 3
TIE = "‿"
STYLES = {
    Edit.NONE: "",
    Edit.MASK: "bold red",
    Edit.RANDOM: "bold yellow",
    Edit.KEEP: "bold green",
    Edit.SIMILAR: "bold cyan",
    Edit.UNMATCHED: "bold magenta",
    Edit.SHUFFLED: "bold blue",
    Edit.INFILLED: "bold color(208)",
    Edit.NGRAM: "bold color(141)",
}


def print_rows(feed: Feed, step: int, console: Console) -> None:
    """The first rows from a step on, and what their signs mean."""
    edits: set[Edit] = set()
    for at, phase, epochs, numbers in visits(feed, SHOWN, step):
        rows, to_write = feed.both(at, phase, epochs, numbers)
        edits |= {Edit(code) for code in rows.edit.tolist()}
        for place in range(len(rows)):
            console.print(row_title(feed, phase, rows, place), soft_wrap=True)
            print_row(rows, place, feed.corpus.tokenizer, console)
            if to_write is not None:
                print_written(to_write, place, feed.corpus.tokenizer, console)
            console.print()
    print_legend(edits, console)


def print_written(rows: Rows, place: int, tokenizer: Tokenizer, console: Console) -> None:
    """What the decoder reads of a row, and under it what it is asked to write."""
    slots = slice(int(rows.start[place]), int(rows.start[place + 1]))
    assert rows.next is not None
    for name, ids in (("decoder reads ", rows.ids[slots]), ("is asked for  ", rows.next[slots])):
        print_hanging(f"  {name}", Text(" ".join(tokenizer.shown(ids))), console)


def print_row(rows: Rows, place: int, tokenizer: Tokenizer, console: Console, name: str = "") -> None:
    """Its segments, each beginning a new line; `name` stands before a row that has but one."""
    slots = range(int(rows.start[place]), int(rows.start[place + 1]))
    for segment in range(int(rows.segment[slots.start : slots.stop].max(initial=0)) + 1):
        mine = [slot for slot in slots if rows.segment[slot] == segment]
        print_hanging(f"  {name or segment_name(segment)} ", row_text(rows, mine, tokenizer), console)


def print_hanging(name: str, text: Text, console: Console) -> None:
    """As wide as the terminal; what does not fit goes on below, not under the name."""
    margin = cell_len(name)
    for number, line in enumerate(text.wrap(console, max(20, console.width - margin), overflow="fold")):
        line.rstrip()
        console.print(Text(" " * margin if number else name) + line, soft_wrap=True)


def row_text(rows: Rows, slots: list[int], tokenizer: Tokenizer) -> Text:
    """Some slots of a row: words apart, the tokens of a word tied, the chosen marked and coloured."""
    word = word_numbers(rows)
    before, after = tokenizer.shown(rows.original[slots]), tokenizer.shown(rows.ids[slots])
    text, last = Text(), None
    for slot, old, new in zip(slots, before, after, strict=True):
        edit = Edit(rows.edit[slot])
        if last is not None:
            tied = word[slot] >= 0 and word[slot] == word[last]
            text.append(TIE if tied else " ", style="dim" if tied else "")
        text.append(slot_text(edit, old, new), style="dim" if rows.special[slot] else STYLES[edit])
        last = slot
    return text


def slot_text(edit: Edit, old: str, new: str) -> str:
    if edit is Edit.NONE:
        return old
    return f"{old}{SIGNS[edit]}" + ("" if edit is Edit.KEEP else new)


def print_legend(edits: Iterable[Edit], console: Console) -> None:
    meanings = words_of("en").edits
    for edit in sorted(set(edits) - {Edit.NONE}):
        console.print(Text.assemble("  ", (SIGNS[edit], STYLES[edit]), f" {meanings[edit]}"))
    console.print(Text.assemble("  ", (TIE, "dim"), " ties the tokens of a word"))
    console.print()
