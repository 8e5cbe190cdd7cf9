"""Corrupted rows on a terminal. Between a token and what is read in its place stands a sign, so that nothing is told by
colour alone; tokens of one word are tied together.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from maskery.edit import ASKED, Edit
from maskery.explain.chips import SIGNS, segment_name
from maskery.explain.drawn import SIGN
from maskery.explain.rows import row_title
from maskery.explain.words import words_of
from maskery.inspection import visits, word_numbers
from maskery.language import ENGLISH, Phrases

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from rich.console import Console

    from maskery.explain.drawn import Generator
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


def print_rows(
    feed: Feed, step: int, console: Console, count: int, generator: Generator | None = None, words: Phrases = ENGLISH
) -> None:
    """The first `count` rows from a step on, with what a generator puts into them, and what their signs mean."""
    edits: set[Edit] = set()
    for visit in visits(feed, count, step):
        rows, to_write = feed.both(*visit)
        drawn = None if generator is None else generator.read(feed, visit, rows)
        edits |= {Edit(code) for code in rows.edit.tolist()}
        for place in range(len(rows)):
            console.print(row_title(feed, visit[1], rows, place, words), soft_wrap=True)
            print_row(rows, place, feed.corpus.tokenizer, console, drawn=drawn)
            if to_write is not None:
                print_written(to_write, place, feed.corpus.target_tokenizer, console, words)
            console.print()
    print_legend(edits, console, words, "" if generator is None else generator.run)


def print_written(rows: Rows, place: int, tokenizer: Tokenizer, console: Console, words: Phrases = ENGLISH) -> None:
    """What the decoder reads of a row, and under it what it is asked to write."""
    slots = slice(int(rows.start[place]), int(rows.start[place + 1]))
    assert rows.next is not None
    reads, targets = words.phrase("decoder reads"), words.phrase("is asked for")
    wide = max(cell_len(reads), cell_len(targets)) + 1
    for name, ids in ((reads, rows.ids[slots]), (targets, rows.next[slots])):
        print_hanging(f"  {set_cell_size(name, wide)}", Text(" ".join(tokenizer.shown(ids))), console)


def print_row(
    rows: Rows,
    place: int,
    tokenizer: Tokenizer,
    console: Console,
    name: str = "",
    drawn: NDArray[np.int64] | None = None,
) -> None:
    """Its segments, each beginning a new line; `name` stands before a row that has but one."""
    slots = range(int(rows.start[place]), int(rows.start[place + 1]))
    for segment in range(int(rows.segment[slots.start : slots.stop].max(initial=0)) + 1):
        mine = [slot for slot in slots if rows.segment[slot] == segment]
        print_hanging(f"  {name or segment_name(segment)} ", row_text(rows, mine, tokenizer, drawn), console)


def print_hanging(name: str, text: Text, console: Console) -> None:
    """As wide as the terminal; what does not fit goes on below, not under the name."""
    margin = cell_len(name)
    for number, line in enumerate(text.wrap(console, max(20, console.width - margin), overflow="fold")):
        line.rstrip()
        console.print(Text(" " * margin if number else name) + line, soft_wrap=True)


def row_text(rows: Rows, slots: list[int], tokenizer: Tokenizer, drawn: NDArray[np.int64] | None = None) -> Text:
    """Some slots of a row: words apart, the tokens of a word tied, the chosen marked and coloured; and what a generator
    has drawn in their place."""
    word = word_numbers(rows)
    before, after = tokenizer.shown(rows.original[slots]), tokenizer.shown(rows.ids[slots])
    last_read = after if drawn is None else tokenizer.shown(drawn[slots])
    text, last = Text(), None
    for slot, old, new, read in zip(slots, before, after, last_read, strict=True):
        edit = Edit(rows.edit[slot])
        if last is not None:
            tied = word[slot] >= 0 and word[slot] == word[last]
            text.append(TIE if tied else " ", style="dim" if tied else "")
        text.append(slot_text(edit, old, new), style="dim" if rows.special[slot] else STYLES[edit])
        if drawn is not None and edit in ASKED:
            text.append(f"{SIGN}{read}", style="bold underline")
        last = slot
    return text


def slot_text(edit: Edit, old: str, new: str) -> str:
    if edit is Edit.NONE:
        return old
    return f"{old}{SIGNS[edit]}" + ("" if edit is Edit.KEEP else new)


def print_legend(edits: Iterable[Edit], console: Console, words: Phrases = ENGLISH, generator: str = "") -> None:
    meanings = words_of(words.lang).edits
    for edit in sorted(set(edits) - {Edit.NONE}):
        console.print(Text.assemble("  ", (SIGNS[edit], STYLES[edit]), f" {meanings[edit]}"))
    if generator:
        told = words.phrase("drawn by the generator of {run}: what the model reads").format(run=generator)
        console.print(Text.assemble("  ", (SIGN, "bold underline"), f" {told}"), soft_wrap=True)
    console.print(Text.assemble("  ", (TIE, "dim"), " " + words.phrase("ties the tokens of a word")))
    console.print()
