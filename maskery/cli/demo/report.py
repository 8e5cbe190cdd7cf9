"""The demo's report: one HTML page with figures, blanks, maskings, attention and the loss curve."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from maskery.checkpoint.model import Model
from maskery.cli.demo.results import Found
from maskery.cli.output import duration
from maskery.corpus.store import Corpus
from maskery.explain.curves import curves
from maskery.explain.heads import head_view
from maskery.explain.sentence import maskings
from maskery.picture import Markup, Picture, report, table
from maskery.picture.markup import tag
from maskery.recipes.recipe import Recipe, recipe

Section = tuple[str, Sequence[str], Picture | Sequence[Picture] | None]

MASKINGS: dict[str, dict[str, Any]] = {
    "bert": {},
    "roberta": {},
    "40 %": {"corruption.rate": 0.4},
    "[MASK]": {"corruption.replace": {"mask": 1.0, "random": 0.0, "keep": 0.0}},
}
"""Names and differences; where no recipe has the name, RoBERTa's is changed."""


def drawn(found: Found, model: Model, corpus: Corpus) -> dict[str, Picture]:
    """The pictures by the name of their section, titled and explained in the language of the report."""
    words = found.words
    masked = maskings(_variants(), corpus, found.sentence, draws=2, lang=words.lang)
    heads = head_view(model, found.sentence, lang=words.lang)
    curve = curves(found.run, metrics=("loss", "eval/loss"), lang=words.lang)
    return {
        "maskings": replace(masked, title=found.sentence, note=words.maskings_note, lang=words.lang),
        "attention": replace(heads, title=found.sentence, note=words.attention_note, lang=words.lang),
        "curve": replace(curve, title=words.curve_title, lang=words.lang),
    }


def _variants() -> dict[str, Recipe]:
    return {name: recipe(name if not changes else "roberta", changes) for name, changes in MASKINGS.items()}


def page(found: Found, pictures: dict[str, Picture]) -> Picture:
    words = found.words
    sections: list[Section] = [
        ("", [found.tiny, found.verdict], None),
        (words.numbers, [_exam(found), table(words.scores, found.score_lines()), found.tiny], None),
        (words.blanks, [*_blanks(found), found.tiny], None),
        (words.maskings, [words.maskings_why], pictures["maskings"]),
        (words.attention, [words.attention_why, found.tiny], pictures["attention"]),
        (words.curve, [words.curve_why], pictures["curve"]),
        (words.use, [words.use_why, _code(found.lines_to_load)], None),
        (words.steps_heading, [_times(found)], None),
    ]
    return report(words.title, sections, words.lang)


def _exam(found: Found) -> str:
    return found.words.numbers_why.format(questions=found.questions)


def _blanks(found: Found) -> list[str]:
    if not found.blanks:
        return [found.tally]
    return [found.words.blanks_rule, table(found.words.blank_columns, found.blank_lines()), found.tally]


def _code(lines: list[str]) -> Markup:
    return tag("pre", "\n".join(lines))


def _times(found: Found) -> Markup:
    lines = [(name, duration(seconds)) for name, seconds in found.seconds.items()]
    lines.append((found.words.total, duration(sum(found.seconds.values()))))
    return table(found.words.step_columns, lines)
