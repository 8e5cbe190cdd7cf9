"""Answers that stand in a text: from scores of beginnings and ends to characters of the context, and back to targets.

A row holds a question and a window of the context. A span begins at the first token of a piece (`tags.Pieces`: never
within a character) and ends at the last of one, not before; only slots of the context lie between. Its score is the sum
of both. The best of all windows is the answer, unless the first slot, which stands for "no answer", scores better by
more than a threshold (SQuAD 2): of several windows the lowest such score counts, since one that is sure that the
answer is not in it knows nothing of the others.

Of equal scores the earlier beginning comes first, then the shorter span, then the earlier window.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import ArrayLike, NDArray

from maskery.errors import InputError, NonFiniteError
from maskery.tasks.examples import Answer
from maskery.tasks.tags import Pieces, pieces_of, unread

T = TypeVar("T", np.int64, np.float64)


@dataclass(frozen=True)
class Window:
    """What a row shows of the context; T slots."""

    pieces: Pieces
    run: NDArray[np.int64]
    """(T,) the same number for slots of the context with no other slot and no unread text between them."""
    null: int
    """The slot that stands for "no answer"."""

    @property
    def slots(self) -> int:
        return len(self.run)


def window_of(offsets: ArrayLike, context: str, null: int = 0) -> Window:
    """From where each slot's token stands in the context, (T,2); -1 for questions and marks."""
    places = np.asarray(offsets, dtype=np.int64).reshape(-1, 2)
    pieces = pieces_of(places, context)
    breaks = places[:, 0] < 0
    breaks[pieces.slot[pieces.gap]] = True
    return Window(pieces, np.cumsum(breaks).astype(np.int64), null)


@dataclass(frozen=True)
class Guess:
    """Characters start..stop-1 of the context."""

    start: int
    stop: int
    text: str
    score: float
    window: int
    probability: float
    """Among the guesses, and "no answer" where that is one."""


@dataclass(frozen=True)
class Found:
    best: Guess | None
    """None: the context has no answer."""
    guesses: tuple[Guess, ...]
    """The best first, each span of characters once; "no answer" is none of them."""
    difference: float | None
    """By how much "no answer" scores better than the best guess; None where there is no guess."""

    @property
    def probability(self) -> float:
        """Of the answer, or of "no answer"; NaN where there is no guess."""
        if self.best is not None:
            return self.best.probability
        return 1 - sum(each.probability for each in self.guesses) if self.guesses else math.nan


class _Spans(NamedTuple):
    """n spans of one window or of several."""

    score: NDArray[np.float64]
    start: NDArray[np.int64]
    stop: NDArray[np.int64]
    window: NDArray[np.int64]

    def of(self, which: NDArray[np.int64] | NDArray[np.bool_]) -> _Spans:
        return _Spans(self.score[which], self.start[which], self.stop[which], self.window[which])

    def ordered(self) -> _Spans:
        return self.of(np.lexsort((self.window, self.stop, self.start, -self.score)))


def find_answer(
    context: str,
    windows: Sequence[Window],
    starts: Sequence[ArrayLike],
    ends: Sequence[ArrayLike],
    *,
    longest: int = 30,
    guesses: int = 20,
    threshold: float | None = None,
) -> Found:
    """The answer to a question from the scores (T,) of each window's slots.

    `longest` is the number of tokens that an answer may have. Without a `threshold` some span is always the answer.
    """
    if longest < 1 or guesses < 1:
        raise InputError(f"answers of at most {longest} tokens, {guesses} of them", repair="ask for at least 1 of each")
    found, null = [], math.inf
    for number, (window, start, end) in enumerate(zip(windows, starts, ends, strict=True)):
        begin, close = _numbers(start, window, number), _numbers(end, window, number)
        null = min(null, float(begin[window.null] + close[window.null]))
        found.append(_top(window, begin, close, longest, number, guesses))
    best = _once(_Spans(*map(np.concatenate, zip(*found, strict=True)))) if found else None
    if best is None or not len(best.score):
        return Found(None, (), None)
    listed = _guesses(context, best.of(np.arange(min(guesses, len(best.score)))), None if threshold is None else null)
    difference = null - listed[0].score
    none = threshold is not None and difference > threshold
    return Found(None if none else listed[0], listed, difference)


def _numbers(scores: ArrayLike, window: Window, number: int) -> NDArray[np.float64]:
    found = np.asarray(scores, dtype=np.float64)
    if found.shape != (window.slots,):
        raise InputError(
            f"window {number} has {window.slots} slots, and scores of the shape {found.shape}",
            repair="give one score for each slot, without padding",
        )
    if not np.isfinite(found).all():
        raise NonFiniteError(
            f"window {number}: a score that is not a finite number", repair="train with a lower rate, or in float32"
        )
    return found


def _top(
    window: Window, begin: NDArray[np.float64], close: NDArray[np.float64], longest: int, number: int, many: int
) -> _Spans:
    """The best `many` spans of a window, in no order."""
    pieces = window.pieces
    wide = min(longest, len(pieces))
    if not wide:
        nothing = pieces.start[:0]
        return _Spans(nothing.astype(np.float64), nothing, nothing, nothing)
    slot, end = pieces.slot[:, None], _following(pieces.last, wide, 0)
    # (P,wide) from the piece of the row to that and those behind it; -inf where there is none.
    scores = begin[slot] + _following(close[pieces.last], wide, -math.inf)
    scores[(end - slot >= longest) | (window.run[slot] != window.run[end])] = -math.inf
    flat = scores.ravel()
    least = np.partition(flat, flat.size - many)[flat.size - many] if flat.size > many else -math.inf
    above = np.flatnonzero(flat > least)
    # Of those that score as the last one does, the first by beginning, then by end: as they lie.
    equal = np.flatnonzero(flat == least)[: many - len(above)] if least > -math.inf else above[:0]
    kept = np.concatenate((above, equal))
    first, last = kept // wide, kept // wide + kept % wide
    return _Spans(flat[kept], pieces.start[first], pieces.stop[last], np.full(len(kept), number, dtype=np.int64))


def _following(values: NDArray[T], wide: int, fill: float) -> NDArray[T]:
    """(P,) -> (P,wide): each value and those behind it."""
    return sliding_window_view(np.append(values, np.full(wide - 1, fill, dtype=values.dtype)), wide)


def _once(spans: _Spans) -> _Spans:
    """In order, and of windows that overlap each span of characters once."""
    ordered = spans.ordered()
    places = np.stack((ordered.start, ordered.stop), 1)
    _, first = np.unique(places, axis=0, return_index=True)
    return ordered.of(np.sort(first))


def _guesses(context: str, spans: _Spans, null: float | None) -> tuple[Guess, ...]:
    scores = spans.score if null is None else np.append(spans.score, null)
    weights = np.exp(scores - scores.max())
    share = (weights / weights.sum()).tolist()
    rows = zip(*(each.tolist() for each in spans), strict=True)
    return tuple(
        Guess(start, stop, context[start:stop], score, window, share[number])
        for number, (score, start, stop, window) in enumerate(rows)
    )


class Threshold(NamedTuple):
    value: float
    score: float
    """The mean that it reaches."""


def fit_threshold(differences: ArrayLike, answered: ArrayLike, unanswered: ArrayLike) -> Threshold:
    """The threshold of "no answer" that scores best on n questions; of equally good ones that nearest to 0.

    `answered` is what each question scores if its best guess is given (F1, or 1 for right), `unanswered` if none is.
    Between two differences 0 or the middle is taken, beyond them one more. Questions without any guess do not belong
    here.
    """
    difference, gain = (np.asarray(each, dtype=np.float64) for each in (differences, answered))
    other = np.asarray(unanswered, dtype=np.float64)
    if not len(difference):
        raise InputError("no question to fit a threshold on", repair="give some of the dev split")
    order = np.argsort(difference, kind="stable")
    levels, first = np.unique(difference[order], return_index=True)
    given, kept = np.cumsum(gain[order]), np.cumsum(other[order])
    last = np.append(first[1:], len(order)) - 1
    # Up to and with level k-1 guesses are given: none of them, those of the first level, ..., all.
    scores = np.concatenate(([kept[-1]], given[last] + kept[-1] - kept[last])) / len(order)
    low, high = np.append(levels[0] - 2, levels), np.append(levels, levels[-1] + 2)
    middle = (low + high) / 2
    middle[int((levels <= 0).sum())] = 0.0  # 0 itself, where nothing speaks against it
    best = np.flatnonzero(scores >= scores.max() - 1e-12)
    chosen = best[np.argmin(np.abs(middle[best]))]
    return Threshold(float(middle[chosen]), float(scores[chosen]))


@dataclass(frozen=True)
class Aims:
    """What the windows of a question are asked for; W windows."""

    start: NDArray[np.int64]
    """(W,) the slot at which the answer begins; the slot of "no answer" where it is not wholly in the window."""
    end: NDArray[np.int64]
    widened: bool
    """Whether an answer that is asked for begins or ends within a piece, which was taken as a whole."""
    held: int
    """How many windows hold an answer; 0 for a question that has one: it is asked as if it had none."""


def aims_of(context: str, answers: Sequence[Answer], windows: Sequence[Window]) -> Aims:
    """Each window is asked for the first of the answers that it wholly holds."""
    start = np.array([window.null for window in windows], dtype=np.int64)
    end = start.copy()
    widened, held = False, 0
    for number, window in enumerate(windows):
        for answer in answers:
            place = _place(context, answer, window.pieces)
            if place is not None:
                start[number], end[number] = window.pieces.slot[place.first], window.pieces.last[place.last]
                widened |= place.widened
                held += 1
                break
    return Aims(start, end, widened, held)


class _Place(NamedTuple):
    first: int
    last: int
    widened: bool


def _place(context: str, answer: Answer, pieces: Pieces) -> _Place | None:
    """The pieces of an answer, where all of it was read."""
    start, stop = answer.start, answer.stop
    while start < stop and context[start].isspace():
        start += 1
    while start < stop and context[stop - 1].isspace():
        stop -= 1
    lo, hi = (int(each) for each in pieces.overlapping(start, stop))
    if start == stop or hi <= lo:
        return None
    first, last = int(pieces.start[lo]), int(pieces.stop[hi - 1])
    if unread(context[start:first]) or unread(context[last:stop]) or pieces.gap[lo + 1 : hi].any():
        return None  # the rest stands in another window
    return _Place(lo, hi - 1, first < start or last > stop)
