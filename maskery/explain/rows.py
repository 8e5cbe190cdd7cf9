"""What training reads: the first rows of a feed with what was done to them, beside what was measured over many."""

from __future__ import annotations

import numpy as np

from maskery import arguments
from maskery.arguments import checked
from maskery.corpus.mixture import AnyCorpora, corpus_of
from maskery.edit import Edit
from maskery.explain.chips import STYLE, chips, legend
from maskery.explain.drawn import SIGN, Generator
from maskery.explain.words import words_of
from maskery.feed import Feed
from maskery.inspection import Line, Rates, rates, visits
from maskery.inspection.measured import CHOSEN
from maskery.language import ENGLISH, Phrases, phrases
from maskery.model.config import Mode
from maskery.phases import Phase
from maskery.picture import Picture, table
from maskery.picture.markup import Markup, joined, tag
from maskery.recipes.recipe import AnyRecipe, recipe_of
from maskery.rows.config import PAIRS
from maskery.rows.modes import in_full
from maskery.rows.ragged import Rows

SHOWN, MEASURED = 8, 1000


def row_title(feed: Feed, phase: Phase, rows: Rows, place: int, words: Phrases = ENGLISH) -> str:
    """Which row it is, whose where several corpora are read, how long, how it is read where that differs, how much was
    chosen, and its pair label."""
    number, label = int(rows.number[place]), int(rows.label[place])
    parts = [words.phrase("{size} of {length} slots").format(size=int(rows.length[place]), length=phase.length)]
    if len(feed.names) > 1:
        part, row = feed.corpus_of(phase, np.array([number]))
        parts.insert(0, words.phrase("{corpus} row {row}").format(corpus=feed.names[int(part[0])], row=int(row[0])))
    if rows.mode is not None:
        parts.append(words.phrase("read {mode}").format(mode=Mode(int(rows.mode[place])).kind))
    edit = rows.edit[rows.start[place] : rows.start[place + 1]]
    parts.append(words.phrase("{n} chosen").format(n=int(np.isin(edit, CHOSEN).sum())))
    if moved := int((edit == Edit.SHUFFLED).sum()):
        parts.append(words.phrase("{n} shuffled").format(n=moved))
    if hidden := int((edit == Edit.NGRAM).sum()):
        parts.append(words.phrase("{n} in the n-gram").format(n=hidden))
    if label >= 0:
        parts.append(words.phrase("pair: {label}").format(label=PAIRS.get(feed.recipe.rows.pair).labels[label]))
        if feed.recipe.visibility.mixed and not in_full(rows)[place]:
            parts[-1] += words.phrase(" (not asked)")
    head = words.phrase("row {number} of the plan").format(number=number)
    if len(feed.names) > 1:
        head += words.phrase(", ") + parts.pop(0)
    return head + words.phrase(": ") + words.phrase(", ").join(parts)


@checked
def corrupted_rows(
    recipe: AnyRecipe,
    corpus: AnyCorpora,
    rows: int = SHOWN,
    seed: int | None = None,
    step: int = 0,
    lang: str = "en",
) -> Picture:
    """The first rows that training will read from a step on, and rates measured over the first thousand."""
    read = recipe_of(recipe)
    arguments.count("rows", rows)
    feed = Feed(read, corpus_of(corpus), read.training.seed if seed is None else arguments.count("seed", seed, 0))
    return rows_picture(feed, rates(feed, MEASURED, arguments.count("step", step, 0)), rows, lang=lang)


def rows_picture(
    feed: Feed, found: Rates, rows: int = SHOWN, generator: Generator | None = None, lang: str = "en"
) -> Picture:
    """The first rows of a feed, with what a generator puts into them, beside what was measured."""
    words, told = words_of(lang), phrases(lang)
    parts: list[Markup] = []
    edits: set[Edit] = set()
    for visit in visits(feed, rows, found.step):
        held = feed.corrupted(*visit)
        drawn = None if generator is None else generator.read(feed, visit, held)
        edits |= {Edit(code) for code in np.unique(held.edit)}
        for place in range(len(held)):
            parts.append(tag("p", row_title(feed, visit[1], held, place, told), {"class": "mk-about"}))
            parts.append(chips(held, place, feed.corpus.tokenizer, words, drawn=drawn))
    warned = [tag("p", f"{told.phrase('warning: ')}{told.line(warning)}") for warning in found.warnings]
    body = joined([STYLE, legend(edits, words), *parts, _rate_table(found, told), *_length_table(found, told), *warned])
    note = [measured_over(found, told) + words.full_stop, told.phrase("A line below tokens holds a word together.")]
    if generator is not None:
        behind = "After {sign} stands what the generator of {run} drew: the model reads this."
        note.append(told.phrase(behind).format(sign=SIGN, run=generator.run))
    title = told.phrase("Rows of {recipe} as training reads them").format(recipe=found.recipe)
    return Picture(title, body, note=words.stop.join(note), lang=lang)


def measured_over(found: Rates, words: Phrases) -> str:
    """How much was measured, and since which step where that is worth a word."""
    over = words.phrase("Measured over {rows} rows, {tokens} positions").format(
        rows=f"{found.measured.rows:,}",
        tokens=f"{found.measured.tokens:,}",
    )
    if found.step or found.stage:
        over += words.phrase(", from step {step} on").format(step=f"{found.step:,}")
    if found.stage:
        number, of = found.stage
        over += words.phrase(" (stage {number} of {of}: {unit})").format(number=number, of=of, unit=found.unit)
    return over


def rate_name(name: str, words: Phrases) -> str:
    """The name of a measured value: whole, or its first word where a name of the recipe follows."""
    bare = name.lstrip()
    first, _, rest = bare.partition(" ")
    told = words.name(bare)
    if told == bare and rest:
        told = f"{words.name(first)} {rest}"
    return name[: len(name) - len(bare)] + told


RATE_HEADS = ("measured", "95 % interval", "recipe", "of")


def _rate_table(found: Rates, words: Phrases) -> Markup:
    lines = [
        (rate_name(line.name, words) + " !" * bool(line.warning), *shown(line), f"{line.cases:,} {words.name(line.of)}")
        for line in found.shown_lines
    ]
    return table(("", *map(words.name, RATE_HEADS)), lines)


def _length_table(found: Rates, words: Phrases) -> list[Markup]:
    headings, rows = found.lengths()
    if not rows:
        return []
    lines = [(words.name(name), *(f"{100 * share:.2f}" for share in row)) for name, row in rows.items()]
    heads = (words.phrase("lengths, %"), *map(words.name, headings))
    return [table(heads, lines), tag("p", found.law_told, {"class": "mk-about"})]


def shown(line: Line) -> tuple[str, str, str]:
    """Value, interval and what was asked for, to be read."""
    low, high = line.interval
    scale, end = (100, " %") if line.share else (1, "")
    asked = "" if line.asked is None else f"{scale * line.asked:.2f}{end}"
    return f"{scale * line.value:.2f}{end}", f"{scale * low:.2f} to {scale * high:.2f}{end}", asked
