"""What the demo found, as it is printed, written as JSON and shown in the report."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from maskery.cli.called import program
from maskery.cli.demo.baselines import Score
from maskery.cli.demo.blanks import Blank
from maskery.cli.demo.words import Words

CLEARLY = 0.2
"""Nats below token frequencies from which a model is said to read the context."""


@dataclass(frozen=True, kw_only=True)
class Found:
    words: Words
    folder: Path
    parameters: int
    steps: int
    tokens: int
    """Read in training, over all passes."""
    training_seconds: float
    questions: int
    """Hidden tokens of the exam."""
    scores: dict[str, Score]
    """The trained model's first, then the baselines'."""
    blanks: list[Blank]
    sentence: str
    """Held out; shown under several maskings and under attention."""
    seconds: dict[str, float] = field(default_factory=dict)
    """By step."""

    @property
    def run(self) -> Path:
        return self.folder / "run"

    @property
    def report(self) -> Path:
        return self.folder / "report.html"

    @property
    def tiny(self) -> str:
        time = self.words.span(self.training_seconds)
        return self.words.tiny.format(parameters=self.parameters, time=time, tokens=self.tokens)

    @property
    def verdict(self) -> str:
        """Whether the model reads the context, in plain words."""
        model, frequent, unigram = (self.scores[name] for name in ("trained", "most frequent token", "unigram"))
        assert model.loss is not None
        assert unigram.loss is not None
        if model.loss >= unigram.loss or model.accuracy <= frequent.accuracy:
            return self.words.verdict_same
        times = model.accuracy / max(frequent.accuracy, 1e-9)
        nats = unigram.loss - model.loss
        verdict = self.words.verdict_better if nats >= CLEARLY else self.words.verdict_slight
        return verdict.format(times=times, nats=nats, wrong=100 * (1 - model.accuracy))

    @property
    def tally(self) -> str:
        if not self.blanks:
            return self.words.blanks_none
        ranks = [blank.rank for blank in self.blanks]
        return self.words.tally.format(
            first=ranks.count(1), all=len(ranks), three=sum(rank is not None for rank in ranks)
        )

    @property
    def lines_to_load(self) -> list[str]:
        return [
            f"maskery.load({json.dumps(str(self.run), ensure_ascii=False)})",
            f"transformers.AutoModelForMaskedLM.from_pretrained({json.dumps(str(self.run), ensure_ascii=False)})",
        ]

    @property
    def next_command(self) -> str | None:
        """A command to go on with, as a shell takes it."""
        if not self.blanks:
            return None
        return f"{program()} fill {shlex.quote(str(self.run))} {shlex.quote(self.blanks[0].text)}"

    def score_lines(self) -> list[tuple[str, str, str, str]]:
        names = self.words.names()
        return [
            (
                names[name],
                f"{100 * score.accuracy:.1f} %",
                "—" if score.loss is None else f"{score.loss:.2f}",
                "—" if score.perplexity is None else f"{score.perplexity:,.0f}",
            )
            for name, score in self.scores.items()
        ]

    def blank_lines(self) -> list[tuple[str, str, str, str]]:
        return [(blank.text, guesses_text(blank), blank.truth, self.mark(blank)) for blank in self.blanks]

    def mark(self, blank: Blank) -> str:
        return {1: self.words.hit, None: self.words.miss}.get(blank.rank, self.words.near)

    def plain(self) -> dict[str, Any]:
        return {
            "folder": str(self.folder),
            "run": str(self.run),
            "report": str(self.report),
            "parameters": self.parameters,
            "steps": self.steps,
            "tokens": self.tokens,
            "questions": self.questions,
            "scores": {name: score.plain() for name, score in self.scores.items()},
            "blanks": [blank.plain() for blank in self.blanks],
            "training_seconds": self.training_seconds,
            "seconds": self.seconds,
        }


def guesses_text(blank: Blank) -> str:
    """With spaces that do not break; commas between them would look like guesses."""
    return "  ·  ".join(
        f"{token}\N{NO-BREAK SPACE}{100 * share:.0f}\N{NO-BREAK SPACE}%" for token, share in blank.guesses
    )
