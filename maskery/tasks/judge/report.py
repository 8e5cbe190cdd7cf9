"""One page about a model on a task: headline figures with intervals, confusions, calibration, errors, lengths, curves.

Whatever is not given is not there: only the judgement is needed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from maskery.picture import Markup, Picture, table
from maskery.picture import report as page
from maskery.picture.markup import joined, language, tag
from maskery.tasks.judge.calibration import Calibrated
from maskery.tasks.judge.confusion import Confusion
from maskery.tasks.judge.draw_confusion import confusion_picture
from maskery.tasks.judge.draw_plots import learning_picture, reliability_picture, training_picture
from maskery.tasks.judge.grouped import group_lines
from maskery.tasks.judge.marked import STYLE, Marks, marked
from maskery.tasks.judge.measure import Judgement
from maskery.tasks.judge.mistakes import Mistake
from maskery.tasks.judge.repeats import LearningCurve, Spread
from maskery.tasks.judge.words import JudgeWords, figure_text, judge_words, share_text

Section = tuple[str, Sequence[str], Picture | Sequence[Picture] | None]
LONGEST = 300
"""Characters of a text that are shown of an error."""
_PARTS = (0.5, 0.75, 0.9, 0.95, 0.99, 1.0)
_STYLE = Markup(
    "<style>.maskery-picture .mk-error{border-top:1px solid var(--mk-line);padding:8px 0 4px;max-width:120ch}"
    ".maskery-picture .mk-error p{margin:0 0 4px}.maskery-picture .mk-error .mk-said{font-weight:600}</style>"
)


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """What a page and a card can tell beside the figures."""

    confusion: Confusion | None = None
    calibration: Calibrated | None = None
    mistakes: Sequence[Mistake] | None = None
    lengths: Sequence[int] = ()
    """Tokens of each row before it was cut."""
    limit: int = 0
    """Slots of a row; 0: nothing was cut."""
    seeds: Mapping[str, Spread] = field(default_factory=dict)
    learning: LearningCurve | None = None
    training: Sequence[Mapping[str, object]] = ()
    """The log of the run, a line an update."""
    facts: Mapping[str, object] = field(default_factory=dict)
    """How it was made: model, data, settings."""


def report(judgement: Judgement, name: str, evidence: Evidence | None = None, lang: str = "en") -> Picture:
    """The page of a model called `name`."""
    words, found = judge_words(lang), evidence or Evidence()
    title = words.title.format(name=name, metric=judgement.headline, value=figure_text(judgement.value))
    sections = [
        _numbers(judgement, words),
        *_baselines(judgement, words),
        *_kinds(judgement, words),
        *_groups(judgement, words),
        *_seeds(found, words),
        *_confusion(found, words),
        *_calibration(found, words),
        *_mistakes(found, words),
        *_lengths(found, words),
        *_learning(judgement, found, words),
    ]
    sections += _training(judgement, found, words)
    if found.facts:
        sections.append((words.facts, [table(words.fact_heads, fact_lines(found.facts, words), words=(1,))], None))
    return page(title, sections, lang)


def fact_lines(facts: Mapping[str, object], words: JudgeWords) -> list[tuple[str, str]]:
    return [(words.name(name), words.line(str(value))) for name, value in facts.items()]


def number_lines(judgement: Judgement) -> list[list[str]]:
    """Metric, value, and the bounds of its interval; figures of single kinds are left to another table."""
    found = []
    for name, value in judgement.metrics.items():
        if "/" not in name:
            bounds = [figure_text(bound) for bound in judgement.intervals.get(name, ())] or ["", ""]
            found.append([name, figure_text(value), *bounds])
    return found


def _numbers(judgement: Judgement, words: JudgeWords) -> Section:
    unit = "questions" if judgement.task == "rank" else "examples"
    why = words.numbers_why[unit].format(n=f"{judgement.n:,}")
    told = [why, table(words.number_heads, number_lines(judgement))]
    return (
        words.numbers,
        [*told, *(tag("p", words.line(note), {"class": "mk-note"}) for note in judgement.notes)],
        None,
    )


def baseline_table(judgement: Judgement, words: JudgeWords) -> tuple[list[str], list[list[str]]]:
    """Headings and lines: the model first, then every baseline."""
    names = list(dict.fromkeys(name for each in judgement.baselines.values() for name in each))
    named = {words.name(name): each for name, each in judgement.baselines.items()}
    every = {words.baseline_model: judgement.metrics, **named}
    lines = [
        [name, *(figure_text(each[metric]) if metric in each else "" for metric in names)]
        for name, each in every.items()
    ]
    return ["", *names], lines


def _baselines(judgement: Judgement, words: JudgeWords) -> list[Section]:
    if not judgement.baselines:
        return []
    told = [tag("p", words.line(judgement.verdict))] if judgement.verdict else []
    shown = [words.baselines_why, table(*baseline_table(judgement, words)), *told]
    return [(words.baselines, shown, None)]


def kind_lines(judgement: Judgement) -> list[list[str]]:
    """Of tagging: span_f1 of each kind with its interval, precision and recall."""
    kinds = [name.partition("/")[2] for name in judgement.metrics if name.startswith("span_f1/")]
    return [
        [
            kind,
            figure_text(judgement.metrics[f"span_f1/{kind}"]),
            *([figure_text(each) for each in judgement.intervals.get(f"span_f1/{kind}", ())] or ["", ""]),
            figure_text(judgement.metrics[f"precision/{kind}"]),
            figure_text(judgement.metrics[f"recall/{kind}"]),
        ]
        for kind in kinds
    ]


def _kinds(judgement: Judgement, words: JudgeWords) -> list[Section]:
    lines = kind_lines(judgement)
    return [(words.by_kind, [table(words.kind_heads, lines)], None)] if lines else []


def _groups(judgement: Judgement, words: JudgeWords) -> list[Section]:
    sections: list[Section] = []
    for by in judgement.groups:
        heads, lines = group_lines(judgement, by)
        shown = [[each if isinstance(each, str) else figure_text(each) for each in line] for line in lines]
        told = [words.group_heads.get(head, head) for head in heads]
        sections.append((words.groups.format(by=by), [words.groups_why, table(told, shown)], None))
    return sections


def seed_lines(seeds: Mapping[str, Spread]) -> list[list[str]]:
    return [[name, *_spread(each)] for name, each in seeds.items() if "/" not in name]


def _spread(each: Spread) -> list[str]:
    """One figure has no deviation."""
    sd = figure_text(each.sd) if len(each.each) > 1 else ""
    return [figure_text(each.mean), sd, ", ".join(map(figure_text, each.each))]


def _seeds(found: Evidence, words: JudgeWords) -> list[Section]:
    if not found.seeds:
        return []
    runs = len(next(iter(found.seeds.values())).each)
    return [(words.seeds, [words.seeds_why.format(runs=runs), table(words.seed_heads, seed_lines(found.seeds))], None)]


def _confusion(found: Evidence, words: JudgeWords) -> list[Section]:
    if found.confusion is None:
        return []
    classes = [(label, f"{n:,}", *map(figure_text, figures)) for label, n, *figures in found.confusion.by_class()]
    sections: list[Section] = [
        (words.confusion, [], confusion_picture(found.confusion, words.lang)),
        ("", [table(words.class_heads, classes)], None),
    ]
    largest = [(one, other, f"{n:,}") for one, other, n in found.confusion.largest()]
    if largest and len(found.confusion.labels) > 2:
        sections.append((words.largest, [table(words.largest_heads, largest, words=(1,))], None))
    return sections


def _calibration(found: Evidence, words: JudgeWords) -> list[Section]:
    if found.calibration is None:
        return []
    each = found.calibration
    lines = [
        (words.before, figure_text(each.before.ece), figure_text(each.before.nll)),
        (words.after, figure_text(each.after.ece), figure_text(each.after.nll)),
    ]
    notes = [tag("p", words.line(note), {"class": "mk-note"}) for note in each.notes]
    drawn = reliability_picture(each, words.lang)
    return [(words.reliability, [table(words.calibration_heads, lines), *notes], drawn)]


def _mistakes(found: Evidence, words: JudgeWords) -> list[Section]:
    if found.mistakes is None:
        return []
    if not found.mistakes:
        return [(words.mistakes, [words.no_mistakes], None)]
    sure = found.mistakes[0].chance is not None
    told = [words.mistakes_why["sure" if sure else "bad"]]
    if any(len(text) > LONGEST for each in found.mistakes for text in each.example.texts):
        told.append(words.shortened.format(most=LONGEST))
    if any(each.marks for each in found.mistakes):
        told.append(words.marked)
    errors = joined([_STYLE, STYLE, *(_mistake(each, words) for each in found.mistakes)])
    return [(words.mistakes, [*told, errors], None)]


def _mistake(found: Mistake, words: JudgeWords) -> Markup:
    said = words.mistake_answers.format(gold=found.gold, predicted=found.predicted)
    if found.chance is not None:
        said += words.mistake_chance.format(chance=f"{found.chance:.4f}")
    lines = [
        tag("p", said, {"class": "mk-said"}),
        *(_text(text, found.marks if at == 0 else ()) for at, text in enumerate(found.example.texts)),
        tag("p", found.place, {"class": "mk-note"}),
    ]
    return tag("div", joined(lines), {"class": "mk-error"})


def _text(text: str, marks: Marks) -> Markup:
    shown = marked(text, marks, LONGEST) if marks else _cut(text)
    return tag("p", shown, {"lang": language(text)})


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else text[:LONGEST] + "…"


def _lengths(found: Evidence, words: JudgeWords) -> list[Section]:
    if not len(found.lengths):
        return []
    each = np.sort(np.asarray(found.lengths))
    told: list[str] = [words.lengths_why if found.limit else words.lengths_whole]
    over = int((each > found.limit).sum())
    if found.limit and over:
        numbers = {"over": f"{over:,}", "all": f"{len(each):,}", "limit": f"{found.limit:,}"}
        told.append(words.over.format(**numbers, share=share_text(over / len(each))))
    lines = [(share_text(part, 0), f"{int(each[max(0, int(np.ceil(part * len(each))) - 1)]):,}") for part in _PARTS]
    return [(words.lengths, [*told, table(words.length_heads, lines)], None)]


def _training(judgement: Judgement, found: Evidence, words: JudgeWords) -> list[Section]:
    """The loss of every update, and the metric that decides of every evaluation; one point is no curve."""
    named = {"loss": words.training_loss, f"eval/{judgement.headline}": words.training_metric}
    pictures = []
    for key, title in named.items():
        points = [(int(str(line["step"])), float(str(line[key]))) for line in found.training if key in line]
        points = [point for point in points if np.isfinite(point[1])]
        name = judgement.headline if key.startswith("eval/") else words.training_loss_axis
        if len(points) > 1:
            pictures.append(training_picture(points, name, title.format(metric=judgement.headline), words.lang))
    return [(words.training, [], pictures)] if pictures else []


def learning_table(curve: LearningCurve, metric: str, words: JudgeWords) -> tuple[Sequence[str], list[list[str]]]:
    """Headings and lines: size, figures of a metric over the seeds, and the bounds of its interval where sizes have one
    training each: there is no deviation then, and of several no interval."""
    bars = curve.intervals(metric)
    lines = [
        [f"{size:,}", *_spread(each), *([figure_text(bound) for bound in bars.get(size, ())] or ["", ""])]
        for size, each in curve.over_sizes(metric).items()
    ]
    there = [at for at in range(len(words.learning_heads)) if any(line[at] for line in lines)]
    return [words.learning_heads[at] for at in there], [[line[at] for at in there] for line in lines]


def _learning(judgement: Judgement, found: Evidence, words: JudgeWords) -> list[Section]:
    if found.learning is None:
        return []
    metric = judgement.headline
    drawn = learning_picture(found.learning, metric, words.lang)
    return [(words.learning, [table(*learning_table(found.learning, metric, words))], drawn)]
