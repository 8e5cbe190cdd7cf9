"""Rows as chips: one for each token, those of a word held together, what was done to it above what is read."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from pathlib import Path

import numpy as np

from maskery.edit import Edit
from maskery.explain.words import Words
from maskery.inspection import word_numbers
from maskery.picture.markup import Markup, joined, language, tag
from maskery.rows.ragged import Rows
from maskery.text.tokenizer import Tokenizer

STYLE = tag("style", Markup(Path(__file__).with_name("chips.css").read_text(encoding="utf-8")))


def chips(rows: Rows, place: int, tokenizer: Tokenizer, words: Words, name: str = "") -> Markup:
    """All segments of one row, a line each; `name` stands before a row that has but one."""
    slots = np.arange(rows.start[place], rows.start[place + 1])
    word = word_numbers(rows)
    before, after = tokenizer.shown(rows.original[slots]), tokenizer.shown(rows.ids[slots])
    lang = language("".join(before))
    lines = []
    for segment, members in groupby(range(len(slots)), key=lambda slot: int(rows.segment[slots[slot]])):
        groups = groupby(members, key=lambda slot: int(word[slots[slot]]))
        held = [
            tag(
                "span",
                joined(_chip(rows, int(slots[n]), before[n], after[n], words) for n in part),
                {"class": "mk-word"},
            )
            for _, part in groups
        ]
        before_it = tag("span", name or ("AB"[segment] if segment < 2 else segment), {"class": "mk-segment"})
        lines.append(tag("div", joined([before_it, *held], " "), {"class": "mk-row", "lang": lang}))
    return joined(lines)


def _chip(rows: Rows, slot: int, old: str, new: str, words: Words) -> Markup:
    edit = Edit(rows.edit[slot])
    if edit is Edit.NONE:
        return tag("span", tag("bdi", old), {"class": "mk-chip mk-special" if rows.special[slot] else "mk-chip"})
    above = tag("small", words.kept) if edit is Edit.KEEP else tag("s", tag("bdi", old))
    kind = f"mk-chip mk-{edit.name.lower()}"
    return tag("span", joined([above, tag("bdi", new)]), {"class": kind, "title": f"{old}: {words.edits[edit]}"})


def legend(edits: Iterable[Edit], words: Words) -> Markup:
    """A sample of each kind that is shown, with its meaning in words."""
    entries = []
    for edit in sorted(set(edits) - {Edit.NONE}):
        above = tag("small", words.kept) if edit is Edit.KEEP else tag("s", words.was)
        sample = tag("span", joined([above, words.now]), {"class": f"mk-chip mk-{edit.name.lower()}"})
        entries.append(tag("li", joined([sample, " ", words.edits[edit]])))
    return tag("ul", joined(entries), {"class": "mk-legend"}) if entries else Markup()
