"""Measured rates beside what the recipe asks for, with intervals, and a warning where they cannot both be right.

Chance alone makes a share wander; a warning is given where it is further from the recipe's than four standard
deviations, which chance does once in sixteen thousand looks. How many positions are chosen depends on whole words and
on rows too short for a share of them, so there a difference must also be 2 % of the rate to be worth a word.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from maskery.feed import Feed
from maskery.inspection.asked import law_table, nominal
from maskery.inspection.measured import Measured, mean, shares
from maskery.inspection.statistics import ChiSquare, Interval, Ratio, chi_square, mean_interval
from maskery.inspection.walk import measure

SURPRISING = 4.0
RAREST = 1e-4
"""A chi-square test with a smaller p is warned of."""
WORTH_A_WORD = 0.02
COLUMNS = 10
"""Lengths of spans that are told apart; the rest are longer."""


@dataclass(frozen=True, kw_only=True)
class Line:
    """One measured value. Shares go from 0 to 1; what is no share is a mean."""

    key: tuple[str, ...]
    """Where it stands in the JSON."""
    name: str
    value: float
    interval: Interval
    cases: int
    of: str
    """What the cases are."""
    asked: float | None = None
    warning: str = ""
    share: bool = True


@dataclass(frozen=True, kw_only=True)
class Rates:
    recipe: str
    unit: str
    step: int
    stage: tuple[int, int] | None
    """Number of the stage, from 1, and how many there are."""
    measured: Measured
    nominal: dict[str, Any]
    lines: tuple[Line, ...]
    law: ChiSquare | None
    """The drawn lengths against the law's, where it has more than one."""

    @property
    def since(self) -> str:
        """Where the rows begin, if that is worth a word, and the stage that they belong to."""
        stage = f" (stage {self.stage[0]} of {self.stage[1]}: {self.unit})" if self.stage else ""
        return f", from step {self.step:,} on{stage}" if self.step or stage else ""

    @property
    def shown_lines(self) -> list[Line]:
        """Without the shares of corpora where there is one."""
        return [line for line in self.lines if line.key[0] != "corpora" or len(self.nominal["corpora"]) > 1]

    def lengths(self) -> tuple[list[str], dict[str, list[float]]]:
        """How long spans are: by the law, as drawn, as the budget left them, as runs of chosen slots.

        Headings and shares; nothing where all are of one unit.
        """
        found = self.measured
        asked = self.nominal.get("span_words", {}).get("drawn_histogram", {})
        rows = {"recipe": asked, "drawn": shares(found.drawn), "kept": shares(found.kept)}
        rows["runs, in words"] = shares(found.runs)
        rows = {name: {int(length): share for length, share in row.items()} for name, row in rows.items()}
        rows = {name: row for name, row in rows.items() if row.keys() - {1}}
        if not rows:
            return [], {}
        longest = max(length for row in rows.values() for length in row)
        first = 0 if found.drawn[0] else 1
        columns = range(first, min(longest, first + COLUMNS - 1) + 1)
        longer = [[sum(share for length, share in row.items() if length > columns[-1])] for row in rows.values()]
        told = {
            name: [row.get(length, 0.0) for length in columns] + rest * (longest > columns[-1])
            for (name, row), rest in zip(rows.items(), longer, strict=True)
        }
        return [*map(str, columns)] + ["longer"] * (longest > columns[-1]), told

    @property
    def law_told(self) -> str:
        law = self.law
        if law is None:
            return ""
        test = f"chi-square {law.statistic:.1f}, {law.freedom} degrees of freedom, p = {law.p:.2g}"
        return f"drawn against the recipe: {test}"

    @property
    def warnings(self) -> list[str]:
        return list(dict.fromkeys(line.warning for line in self.lines if line.warning))

    def plain(self) -> dict[str, Any]:
        """As JSON."""
        found = self.measured
        values: dict[str, Any] = {"recipe": self.recipe, "unit": self.unit, "step": self.step}
        if self.stage:
            values["stage"] = {"number": self.stage[0], "of": self.stage[1]}
        values |= {"rows": found.rows, "tokens": found.tokens, "replaced": {}, "pair": {}, "words_split": 0.0}
        if found.written:
            values["decoder"] = {"tokens": found.written, "per_row": found.written / found.rows}
        intervals: dict[str, Any] = {}
        for line in self.lines:
            _put(values, line.key, line.value)
            _put(intervals, line.key, list(line.interval))
        values["span_words"] = {
            "mean": mean(found.runs),
            "histogram": shares(found.runs),
            "drawn_mean": mean(found.drawn),
            "drawn_histogram": shares(found.drawn),
        }
        values["spans_kept"] = {"mean": mean(found.kept), "histogram": shares(found.kept)}
        values |= {"counts": self._counts(), "nominal": self.nominal, "intervals": intervals}
        return values | {"span_law": self.law.plain() if self.law else None, "warnings": self.warnings}

    def _counts(self) -> dict[str, int]:
        """The denominators."""
        found = self.measured
        return {
            "ordinary": found.chosen.cases,
            "chosen": found.chosen.hits,
            "words": found.words.cases,
            "words_touched": found.split.cases,
            "runs": found.runs.total(),
            "drawn": found.drawn.total(),
            "kept": found.kept.total(),
            "pairs": found.labels.total(),
            "rows_without_pair": found.unpaired,
            "different_rows": len(found.plan_rows),
        }


def rates(feed: Feed, count: int, step: int = 0, told: Callable[[float], None] | None = None) -> Rates:
    """What corruption did to the first `count` rows of training from a step on, beside what the recipe asks for."""
    recipe, config = feed.recipe, feed.corruption(step)
    measured, asked = measure(feed, count, step, told), nominal(feed, step)
    table, law = law_table(config), None
    if measured.drawn and np.count_nonzero(table) > 1:
        found = [measured.drawn[length] for length in range(max(len(table), max(measured.drawn) + 1))]
        law = chi_square(found, np.pad(table, (0, len(found) - len(table))), measured.fresh_masks)
    stages = recipe.corruption.stages
    number = recipe.corruption.stage_at(step / recipe.training.steps) + 1 if stages else 0
    lines = [
        *_chosen(measured, asked),
        *_replaced(measured, asked),
        *_moved(measured, asked, config.shuffle.size),
        *_modes(measured, asked),
        *_pairs(measured, asked, _why_uneven(feed, step)),
        *_spans(measured, asked, law, config.unit),
        *_corpora(measured, asked),
    ]
    return Rates(
        recipe=recipe.name,
        unit=config.unit,
        step=step,
        stage=(number, len(stages)) if stages else None,
        measured=measured,
        nominal=asked,
        lines=tuple(lines),
        law=law,
    )


def _chosen(found: Measured, asked: dict[str, Any]) -> Iterator[Line]:
    """Chosen positions, and whatever else the recipe's rate counts."""
    for key, name, ratio, of in (
        ("chosen_rate", "chosen", found.chosen, "ordinary positions"),
        ("chosen_outside_ngram_rate", "chosen, beside the n-gram", found.open, "ordinary positions outside it"),
        ("chosen_in_reach_rate", "chosen, of what may be", found.open, "positions in reach"),
        ("chosen_words_rate", "chosen words", found.words, "words"),
    ):
        if key in asked or key == "chosen_rate":
            rate = asked.get(key)
            yield _share((key,), name, ratio, of, rate, found.fresh_masks, WORTH_A_WORD * (rate or 0.0))


def _replaced(found: Measured, asked: dict[str, Any]) -> Iterator[Line]:
    wanted = asked["replaced"]
    if not found.chosen.hits:
        return
    for name, ratio in found.edits.items():
        if not ratio.hits and name not in wanted:
            continue
        told = None if "similar" in wanted and name in ("similar", "unmatched") else wanted.get(name, 0.0)
        yield _share(("replaced", name), f"  {name}", ratio, "chosen", told, found.fresh_masks)
    if "similar" in wanted:
        name = "  similar or unmatched"
        told = wanted["similar"]
        yield _share(("similar_or_unmatched",), name, found.similar, "chosen", told, found.fresh_masks)


def _moved(found: Measured, asked: dict[str, Any], size: int) -> Iterator[Line]:
    if "shuffled_runs_rate" in asked:
        told, fresh = asked["shuffled_runs_rate"], found.fresh_masks
        yield _share(("shuffled_rate",), "shuffled", found.shuffled, "ordinary positions", None, fresh)
        key, name, of = ("shuffled_runs_rate",), "  runs shuffled", f"runs of {size} not chosen"
        yield _share(key, name, found.shuffled_runs, of, told, fresh, WORTH_A_WORD * told)
    if "ngram" in asked:
        yield _share(("ngram_rate",), "in the n-gram", found.ngram, "ordinary positions", None, found.fresh_masks)
        many = _each(found.ngram_words.total(), found.rows)
        yield _share(("ngram", "rows"), "  rows that have one", many, "rows", None, found.fresh_masks)
        lengths, wanted = found.ngram_words, asked["ngram"]["mean"]
        yield _mean(("ngram", "mean"), "  its words, mean", lengths, "n-grams", found.fresh_masks, wanted)


def _modes(found: Measured, asked: dict[str, Any]) -> Iterator[Line]:
    for kind, share in asked.get("modes", {}).items():
        yield _share(("modes", kind), f"read {kind}", _each(found.modes[kind], found.rows), "rows", share)


def _pairs(found: Measured, asked: dict[str, Any], why: str) -> Iterator[Line]:
    pairs, fresh = found.labels.total(), found.fresh_rows
    of = "pairs read in full" if "modes" in asked else "pairs"
    lines = [
        _share(("pair", label), f"pair {label}", _each(found.labels[label], pairs), of, share, fresh)
        for label, share in asked["pair"].items()
        if pairs
    ]
    told = ", ".join(f"{line.key[1]} {percent(line.value)}" for line in lines)
    for line in lines:
        warning = f"pair labels of {pairs:,} pairs: {told}; the recipe asks for {percent(line.asked or 0.0)} each{why}"
        yield replace(line, warning=warning if line.warning else "")
    if asked["pair"] and found.unpaired:
        rows = pairs + found.unpaired
        yield _share(("rows_without_pair",), "without a pair", _each(found.unpaired, rows), "rows", None, fresh)


def _why_uneven(feed: Feed, step: int) -> str:
    counts = feed.plan(feed.numbers(step)[0]).counts
    alone = counts.get("one_sentence_chunks", 0) if feed.recipe.rows.pair == "next" else 0
    if not alone:
        return ""
    share = f"{alone:,} of the {counts['rows']:,} rows of the plan"
    return f". {share} begin with a chunk of one sentence, whose second segment always comes from another document"


def _spans(found: Measured, asked: dict[str, Any], law: ChiSquare | None, unit: str) -> Iterator[Line]:
    if not found.chosen.hits:
        return
    wanted, fresh = asked.get("span_words", {}).get("drawn_mean"), found.fresh_masks
    told = ""
    if law is not None and law.p < RAREST:
        told = f"lengths of spans as drawn do not follow the law of the recipe: chi-square p = {law.p:.1e}"
    unit = {"entity": "entities"}.get(unit, f"{unit}s")
    yield _mean(("span_words", "drawn_mean"), f"span as drawn, mean {unit}", found.drawn, "spans", fresh, wanted, told)
    yield _mean(("spans_kept", "mean"), f"span as kept, mean {unit}", found.kept, "spans", fresh)
    yield _mean(("span_words", "mean"), "run of chosen, mean words", found.runs, "runs", fresh)
    none = asked.get("words_split")
    yield _share(("words_split",), "words split", found.split, "words touched", none, fresh)


def _corpora(found: Measured, asked: dict[str, Any]) -> Iterator[Line]:
    for name, share in asked["corpora"].items():
        ratio = _each(found.corpora[name], found.rows)
        yield _share(("corpora", name), f"corpus {name}", ratio, "rows", share)


def _share(
    key: tuple[str, ...],
    name: str,
    ratio: Ratio,
    of: str,
    asked: float | None,
    fresh: float = 1.0,
    least: float = 0.0,
) -> Line:
    value, warning = ratio.value, ""
    if asked is not None and abs(value - asked) > least and abs(ratio.surprise(asked, fresh)) > SURPRISING:
        told = f"{percent(value)} of {ratio.cases:,} {of}"
        warning = f"{name.strip()}: {told}; the recipe asks for {percent(asked)}"
    interval = ratio.interval(fresh)
    return Line(
        key=key, name=name, value=value, interval=interval, cases=ratio.cases, of=of, asked=asked, warning=warning
    )


def _mean(
    key: tuple[str, ...],
    name: str,
    found: Counter[int],
    of: str,
    fresh: float,
    asked: float | None = None,
    warning: str = "",
) -> Line:
    return Line(
        key=key,
        name=name,
        value=mean(found),
        interval=mean_interval(found, fresh),
        cases=found.total(),
        of=of,
        asked=asked,
        warning=warning,
        share=False,
    )


def _each(hits: int, cases: int) -> Ratio:
    """One case a row."""
    ratio = Ratio()
    ratio.add(np.arange(cases) < hits, np.ones(cases, dtype=np.int64))
    return ratio


def percent(share: float) -> str:
    return f"{100 * share:.2f} %"


def _put(into: dict[str, Any], key: tuple[str, ...], value: Any) -> None:
    for part in key[:-1]:
        into = into.setdefault(part, {})
    into[key[-1]] = value
