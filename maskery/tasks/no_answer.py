"""qa: from when on a question has no answer. The threshold with the best F1 on dev, as SQuAD 2's own script finds it.

Training data without such questions leaves no doubt: there is always an answer (no threshold). A threshold that the
user gave is left alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from maskery.errors import InputError
from maskery.tasks.examples import Examples
from maskery.tasks.judge.answers import answer_scores, found_language
from maskery.tasks.questions import OfSpans
from maskery.tasks.settings import TaskConfig
from maskery.tasks.spans import Found, Threshold, fit_threshold

Say = Callable[[str], None]
EVEN = 0.0
"""Where nothing tells a better one: "no answer" has to score better than the best answer."""


def unanswered(examples: Examples | None) -> int:
    """Questions of which it is known that they have no answer."""
    return sum(each.answers == () for each in examples or ())


def with_threshold(config: TaskConfig, train: Examples, dev: Examples | None, say: Say) -> TaskConfig:
    """The task as `resolve` leaves it: open (None) where dev will tell the threshold, or where none is needed."""
    if config.task != "qa":
        if config.threshold is not None:
            cause = f"a threshold is for questions without an answer (qa); this is {config.task}"
            raise InputError(cause, where="threshold", repair="leave it out, or --task qa")
        return config
    none = unanswered(train)
    if config.threshold is not None:
        say(f'"no answer" has to score better by more than {config.threshold:g}, as asked for')
        return config
    if not none:
        say("every question of the training data has an answer, so there will always be one")
        return config
    have = f"{none:,} of {len(train):,} questions {'has' if none == 1 else 'have'} no answer"
    if unanswered(dev):
        say(f"{have}: from when on none is given, dev will tell (--set threshold=X settles it)")
        return config
    why = "there is no dev set" if dev is None else "all of dev have one"
    say(f"{have}, and {why}, which could tell from when on none is given: the threshold is {EVEN:g}")
    return config.model_copy(update={"threshold": EVEN})


def is_open(config: TaskConfig, train: Examples) -> bool:
    """Whether a resolved task waits for dev to tell its threshold."""
    return config.task == "qa" and config.threshold is None and unanswered(train) > 0


def fitted(question: OfSpans, found: Sequence[Found]) -> Threshold:
    """The best for what was found to questions whose right answers are known; a text that was not read leaves no
    choice."""
    used = found_language(question.gold)
    asked = [
        (each.difference, answer_scores(gold, each.guesses[0].text, used)[1], answer_scores(gold, "", used)[1])
        for example, gold, each in zip(question.examples, question.gold, found, strict=True)
        if example.answers is not None and each.difference is not None
    ]
    return fit_threshold(*zip(*asked, strict=True)) if asked else Threshold(EVEN, 0.0)
