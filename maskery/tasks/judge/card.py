"""A model's card: README.md in its folder, with a head that the Hugging Face hub reads and measured figures."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from maskery import files
from maskery.tasks.judge.measure import HEADLINES, Judgement
from maskery.tasks.judge.report import Evidence, baseline_table, kind_lines, learning_table, number_lines, seed_lines
from maskery.tasks.judge.words import figure_text, judge_words

PIPELINES = {
    "classify": "text-classification",
    "pair": "text-classification",
    "regress": "text-classification",
    "multilabel": "text-classification",
    "tag": "token-classification",
    "qa": "question-answering",
    "choice": "multiple-choice",
    "rank": "text-ranking",
    "seq2seq": "text2text-generation",
}
FILE = "README.md"
_SPECIAL = str.maketrans({sign: f"\\{sign}" for sign in "\\|`*<>[]#"} | {"\n": " ", "\r": " "})
_AT_AN_EDGE = re.compile(r"(?<![^\W_])_|_(?![^\W_])")
"""An underscore inside a word is no sign of Markdown."""


def model_card(
    judgement: Judgement,
    name: str,
    *,
    labels: Sequence[str] = (),
    language: str = "",
    use: Sequence[tuple[str, str]] = (),
    evidence: Evidence | None = None,
) -> str:
    """The text of the card. `use`: (language, code) that works with the folder. A language that nobody told is
    left out."""
    found, words = evidence or Evidence(), judge_words("en")
    unit = "questions" if judgement.task == "rank" else "examples"
    parts = [_front(judgement, language), f"# {_safe(name)}"]
    parts.append(f"A model for the task `{judgement.task}`" + (f": {_listed(labels)}." if labels else "."))
    parts += ["## " + words.numbers, words.numbers_why[unit].format(n=f"{judgement.n:,}")]
    parts.append(_table(words.number_heads, number_lines(judgement)))
    if judgement.baselines:
        parts += ["## " + words.baselines, _table(*baseline_table(judgement, words))]
        parts += [_safe(judgement.verdict)] if judgement.verdict else []
    kinds = kind_lines(judgement)
    parts += ["## " + words.by_kind, _table(words.kind_heads, kinds)] if kinds else []
    parts += ["\n".join(f"- {_safe(note)}" for note in judgement.notes)] if judgement.notes else []
    if found.seeds:
        runs = len(next(iter(found.seeds.values())).each)
        parts += ["## " + words.seeds, words.seeds_why.format(runs=runs)]
        parts.append(_table(words.seed_heads, seed_lines(found.seeds)))
    if found.learning is not None:
        parts += [f"## {words.learning_title} ({judgement.headline})"]
        parts.append(_table(*learning_table(found.learning, judgement.headline, words)))
    if found.calibration is not None:
        parts += ["## Calibration", _calibration(found)]
    if found.facts:
        parts += [
            "## " + words.facts,
            "\n".join(f"- {_safe(key)}: {_safe(value)}" for key, value in found.facts.items()),
        ]
    parts += ["## Use", *(f"```{told}\n{code}\n```" for told, code in use)] if use else []
    return "\n\n".join(parts) + "\n"


def write_card(folder: Path, card: str) -> Path:
    path = folder / FILE
    files.write_text(path, card)
    return path


def _front(judgement: Judgement, language: str) -> str:
    """YAML, as far as JSON's texts are YAML's."""
    lines = [f"language: {json.dumps(language)}"] if language else []
    lines += [f"pipeline_tag: {PIPELINES[judgement.task]}", "tags:", "- maskery"]
    lines += ["metrics:", *(f"- {name}" for name in HEADLINES[judgement.task])]
    return "\n".join(["---", *lines, "---"])


def _calibration(found: Evidence) -> str:
    each = found.calibration
    assert each is not None
    where = "these very examples" if each.fitted_here else "other examples"
    return (
        f"ECE (15 bins) {figure_text(each.before.ece)}; {figure_text(each.after.ece)} after scores are divided by the "
        f"temperature {each.temperature:.4g}, which was fitted on {where}."
    )


_MOST_LABELS = 20


def _listed(labels: Sequence[str]) -> str:
    shown = ", ".join(_safe(label) for label in labels[:_MOST_LABELS])
    return shown + (f" and {len(labels) - _MOST_LABELS} more" if len(labels) > _MOST_LABELS else "")


def _table(heads: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    rows = [heads, ["---", *["---:"] * (len(heads) - 1)], *([_safe(cell) for cell in line] for line in lines)]
    return "\n".join(f"| {' | '.join(line)} |" for line in rows)


def _safe(text: object) -> str:
    """Signs that Markdown would take for its own are written as themselves."""
    return _AT_AN_EDGE.sub(r"\\_", str(text).translate(_SPECIAL))
