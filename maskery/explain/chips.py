"""Rows as chips: one for each token, those of a word held together, what was done to it above what is read."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from maskery.edit import ASKED, Edit
from maskery.explain.drawn import SIGN
from maskery.explain.words import Words
from maskery.inspection.words import word_numbers
from maskery.picture.markup import Markup, joined, language, tag
from maskery.rows.ragged import Rows
from maskery.text.tokenizer import Tokenizer

SIGNS = {
    Edit.MASK: "→",
    Edit.RANDOM: "≠",
    Edit.KEEP: "=",
    Edit.SIMILAR: "≈",
    Edit.UNMATCHED: "≈?",
    Edit.SHUFFLED: "⇄",
    Edit.INFILLED: "⇒",
    Edit.NGRAM: "»",
}
"""What stands between a token and what is read in its place: a second sign beside the colour."""
STYLE = tag("style", Markup(Path(__file__).with_name("chips.css").read_text(encoding="utf-8")))


def chips(
    rows: Rows,
    place: int,
    tokenizer: Tokenizer,
    words: Words,
    name: str = "",
    drawn: NDArray[np.int64] | None = None,
) -> Markup:
    """All segments of one row, a line each; `name` stands before a row that has but one. `drawn` is what the model
    reads of a generator, told behind what the generator read."""
    slots = np.arange(rows.start[place], rows.start[place + 1])
    word = word_numbers(rows)
    before, after = tokenizer.shown(rows.original[slots]), tokenizer.shown(rows.ids[slots])
    if drawn is not None:
        now = tokenizer.shown(drawn[slots])
        asked = np.isin(rows.edit[slots], ASKED).tolist()
        after = [f"{new} {SIGN} {read}" if each else new for new, read, each in zip(after, now, asked, strict=True)]
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
        before_it = tag("span", name or segment_name(segment), {"class": "mk-segment"})
        lines.append(tag("div", joined([before_it, *held], " "), {"class": "mk-row", "lang": lang}))
    return joined(lines)


def _chip(rows: Rows, slot: int, old: str, new: str, words: Words) -> Markup:
    edit = Edit(rows.edit[slot])
    if edit is Edit.NONE:
        return tag("span", tag("bdi", old), {"class": "mk-chip mk-special" if rows.special[slot] else "mk-chip"})
    was = tag("small", words.kept) if edit is Edit.KEEP else tag("s", tag("bdi", old))
    told = {"class": f"mk-chip mk-{edit.name.lower()}", "title": f"{old} {SIGNS[edit]} {new}: {words.edits[edit]}"}
    return tag("span", joined([_above(edit, was), tag("bdi", new)]), told)


def _above(edit: Edit, was: Markup) -> Markup:
    """What was there, and the sign of what happened to it."""
    return tag("span", joined([was, tag("i", SIGNS[edit], {"class": "mk-sign"})]), {"class": "mk-was"})


def segment_name(segment: int) -> str:
    """A, B, C, ..."""
    return chr(ord("A") + segment) if segment < 26 else str(segment)


def legend(edits: Iterable[Edit], words: Words) -> Markup:
    """A sample of each kind that is shown, with its meaning in words."""
    entries = []
    for edit in sorted(set(edits) - {Edit.NONE}):
        was = tag("small", words.kept) if edit is Edit.KEEP else tag("s", words.was)
        sample = tag("span", joined([_above(edit, was), words.now]), {"class": f"mk-chip mk-{edit.name.lower()}"})
        entries.append(tag("li", joined([sample, " ", words.edits[edit]])))
    return tag("ul", joined(entries), {"class": "mk-legend"}) if entries else Markup()
