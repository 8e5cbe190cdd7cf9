"""What training reads: the first rows of a feed with what was done to them, beside what was measured over many."""

from __future__ import annotations

import numpy as np

from maskery.corpus.mixture import Corpora
from maskery.edit import Edit
from maskery.explain.chips import STYLE, chips, legend
from maskery.explain.drawn import SIGN, Generator
from maskery.explain.words import words_of
from maskery.feed import Feed
from maskery.inspection import Line, Rates, rates, visits
from maskery.inspection.measured import CHOSEN
from maskery.model.config import Mode
from maskery.phases import Phase
from maskery.picture import Picture, table
from maskery.picture.markup import Markup, joined, tag
from maskery.recipes.recipe import Recipe
from maskery.rows.config import PAIRS
from maskery.rows.modes import in_full
from maskery.rows.ragged import Rows

SHOWN, MEASURED = 8, 1000


def row_title(feed: Feed, phase: Phase, rows: Rows, place: int) -> str:
    """Which row it is, whose where several corpora are read, how long, how it is read where that differs, how much was
    chosen, and its pair label."""
    number, label = int(rows.number[place]), int(rows.label[place])
    whose = ""
    if len(feed.names) > 1:
        part, row = feed.corpus_of(phase, np.array([number]))
        whose = f", {feed.names[int(part[0])]} row {int(row[0])}"
    edit = rows.edit[rows.start[place] : rows.start[place + 1]]
    counts = {"chosen": np.isin(edit, CHOSEN), "shuffled": edit == Edit.SHUFFLED, "in the n-gram": edit == Edit.NGRAM}
    done = ", ".join(f"{int(each.sum())} {name}" for name, each in counts.items() if name == "chosen" or each.any())
    told = f", pair: {PAIRS.get(feed.recipe.rows.pair).labels[label]}" if label >= 0 else ""
    told += " (not asked)" * (label >= 0 and feed.recipe.visibility.mixed and not in_full(rows)[place])
    read = "" if rows.mode is None else f", read {Mode(int(rows.mode[place])).kind}"
    size = f"{int(rows.length[place])} of {phase.length} slots"
    return f"row {number} of the plan{whose}: {size}{read}, {done}{told}"


def corrupted_rows(
    recipe: Recipe, corpus: Corpora, rows: int = SHOWN, seed: int | None = None, step: int = 0
) -> Picture:
    """The first rows that training will read from a step on, and rates measured over the first thousand."""
    feed = Feed(recipe, corpus, recipe.training.seed if seed is None else seed)
    return rows_picture(feed, rates(feed, MEASURED, step), rows)


def rows_picture(feed: Feed, found: Rates, rows: int = SHOWN, generator: Generator | None = None) -> Picture:
    """The first rows of a feed, with what a generator puts into them, beside what was measured."""
    words = words_of("en")
    parts: list[Markup] = []
    edits: set[Edit] = set()
    for visit in visits(feed, rows, found.step):
        held = feed.corrupted(*visit)
        drawn = None if generator is None else generator.read(feed, visit, held)
        edits |= {Edit(code) for code in np.unique(held.edit)}
        for place in range(len(held)):
            parts.append(tag("p", row_title(feed, visit[1], held, place), {"class": "mk-about"}))
            parts.append(chips(held, place, feed.corpus.tokenizer, words, drawn=drawn))
    warned = [tag("p", f"warning: {warning}") for warning in found.warnings]
    body = joined([STYLE, legend(edits, words), *parts, _rate_table(found), *_length_table(found), *warned])
    over = f"{found.measured.rows:,} rows, {found.measured.tokens:,} positions{found.since}"
    note = f"Measured over {over}. A line below tokens holds a word together."
    if generator is not None:
        note += f" Behind {SIGN} stands what the generator of {generator.run} drew: the model reads this."
    return Picture(f"Rows of {found.recipe} as training reads them", body, note=note)


def _rate_table(found: Rates) -> Markup:
    lines = [
        (line.name + " !" * bool(line.warning), *shown(line), f"{line.cases:,} {line.of}") for line in found.shown_lines
    ]
    return table(("", "measured", "95 % interval", "recipe", "of"), lines)


def _length_table(found: Rates) -> list[Markup]:
    headings, rows = found.lengths()
    if not rows:
        return []
    lines = [(name, *(f"{100 * share:.2f}" for share in row)) for name, row in rows.items()]
    return [table(("lengths, %", *headings), lines), tag("p", found.law_told, {"class": "mk-about"})]


def shown(line: Line) -> tuple[str, str, str]:
    """Value, interval and what was asked for, to be read."""
    low, high = line.interval
    scale, end = (100, " %") if line.share else (1, "")
    asked = "" if line.asked is None else f"{scale * line.asked:.2f}{end}"
    return f"{scale * line.value:.2f}{end}", f"{scale * low:.2f} to {scale * high:.2f}{end}", asked
