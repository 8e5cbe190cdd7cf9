"""Beam search: several beginnings are kept in hand, and the finished text with the best score per length wins.

score = log-probability / length ** length_penalty, the end counted. At every step the best 2 K continuations of K
beginnings are looked at: those of the first K that end are finished, and the best K that do not end go on.

Rules that forbid tokens leave the other log-probabilities as they are. Shapes: P prompts, K beams, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from maskery.writing.drafts import Draft
from maskery.writing.how import How
from maskery.writing.rules import NONE
from maskery.writing.straight import ruled
from maskery.writing.writer import Writer


@dataclass
class _Search:
    """One prompt."""

    draft: Draft
    going: list[Draft]
    """K beginnings, the best first."""
    total: list[float]
    """Their log-probabilities."""
    finished: list[tuple[float, Draft]] = field(default_factory=list)
    """The best of the finished, at most K, the best first."""
    done: bool = False

    def finish(self, score: float, draft: Draft, most: int) -> None:
        self.finished.append((score, draft))
        self.finished.sort(key=lambda pair: -pair[0])
        del self.finished[most:]

    def best(self, samples: int) -> list[Draft]:
        """The finished texts, or the beginnings where the search was broken off."""
        found = [draft for _, draft in self.finished] or self.going
        return [replace(draft, sample=number) for number, draft in enumerate(found[:samples])]


def search(writer: Writer, drafts: list[Draft], how: How, end: int, never: Sequence[int]) -> Iterator[list[Draft]]:
    """After every step the best texts of every prompt so far; in the end the best."""
    beams = how.beams
    scores = writer.begin([draft.prompt_ids for draft in drafts])
    searches = [_Search(draft, [_copy(draft)] * beams, [0.0] + [NONE] * (beams - 1)) for draft in drafts]
    rows = torch.arange(len(drafts)).repeat_interleave(beams)
    writer.select(rows)
    scores = scores[rows]
    active = searches
    while True:
        rows, tokens = _step(active, scores, how, end, never)
        yield [draft for each in searches for draft in each.best(how.samples)]
        kept = [number for number, each in enumerate(active) if not each.done]
        if not kept:
            return
        mine = torch.tensor(kept)
        rows, tokens = rows.view(-1, beams)[mine].flatten(), tokens.view(-1, beams)[mine].flatten()
        active = [active[number] for number in kept]
        writer.select(rows)
        scores = writer.step(tokens)


def _copy(draft: Draft) -> Draft:
    return replace(draft, ids=list(draft.ids))


def _step(active: Sequence[_Search], scores: Tensor, how: How, end: int, never: Sequence[int]) -> tuple[Tensor, Tensor]:
    """One token more for every search. (P*K,) from which row each beginning comes, and its token."""
    beams, vocabulary = how.beams, scores.shape[1]
    going = [draft for each in active for draft in each.going]
    changed, allowed = ruled(scores, going, how, end, never)
    share = changed.log_softmax(1).masked_fill(allowed == NONE, NONE)
    told = scores.log_softmax(1) if how.repetition != 1.0 else share
    totals = torch.tensor([each.total for each in active], dtype=share.dtype).view(-1, 1)
    sums = (share + totals).view(len(active), beams * vocabulary)
    best = sums.topk(min(2 * beams, sums.shape[1]))
    rows, tokens = [], []
    for number, each in enumerate(active):
        mine = told[number * beams : (number + 1) * beams]
        found = _continued(each, best.values[number].tolist(), best.indices[number].tolist(), mine, how, end)
        rows += [number * beams + beam for beam, _ in found]
        tokens += [token for _, token in found]
    return torch.tensor(rows), torch.tensor(tokens)


def _continued(
    each: _Search, sums: list[float], places: list[int], told: Tensor, how: How, end: int
) -> list[tuple[int, int]]:
    """Take the best continuations of one prompt; (K,) of which beginning, and with which token, it goes on."""
    vocabulary, length = told.shape[1], len(each.going[0].ids) + 1
    going: list[tuple[int, int, float, Draft]] = []
    for rank, (total, place) in enumerate(zip(sums, places, strict=True)):
        beam, token = divmod(place, vocabulary)
        if total == NONE:
            break
        draft = _copy(each.going[beam])
        draft.add(token, float(told[beam, token]), end)
        if draft.ended:
            if rank < how.beams:
                each.finish(total / length**how.length_penalty, draft, how.beams)
        elif len(going) < how.beams:
            going.append((beam, token, total, draft))
    if not going:
        each.done = True
        each.going = [replace(draft, ended="rules") for draft in each.going]
        return [(0, end)] * how.beams
    # Where there are fewer than K, the last stands there again with no chance.
    spare = how.beams - len(going)
    each.going = [draft for *_, draft in going] + [going[-1][3]] * spare
    each.total = [total for _, _, total, _ in going] + [NONE] * spare
    each.done = _settled(each, length, how)
    return [(beam, token) for beam, token, *_ in going + [going[-1]] * spare]


def _settled(each: _Search, length: int, how: How) -> bool:
    """Whether no better text can come, or none is looked for."""
    if len(each.finished) < how.beams:
        return False
    if how.early:
        return True
    longest = each.draft.most if how.length_penalty > 0 else length
    return bool(each.total[0] / longest**how.length_penalty <= each.finished[-1][0])
