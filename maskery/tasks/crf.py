"""A linear chain over tags: neighbours are scored together, and a row is answered as a whole (CRF).

score(tags) = start[first] + sum of emissions + sum of transitions[tag, next tag] + end[last]
loss        = log(sum over all allowed rows of tags of exp(score)) - score(the right tags)

Loss and gradient come from one walk forwards and one backwards: the gradient is what the model expects minus what is
there. What the rules forbid has -inf, not a large number, so its probability is exactly 0; since no gradient is taken
through a logarithm of 0, nothing becomes NaN. All rows are walked together; the only loop is over time.

Emissions come as rows end to end, (n,C) with lengths (B,), or padded, (B,T,C) with lengths.
Shapes: B rows, T pieces, n pieces of all rows, C tags.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from maskery.errors import InputError
from maskery.tasks.ragged import grid_of, items_of
from maskery.tasks.tags import Rules

_NEVER = float("-inf")
_SMALL = 1e-30
"""Below it a product of exponentials is not trusted: what was lost in it may have been most of it."""


class Scores(NamedTuple):
    """Forbidden places have -inf."""

    start: Tensor
    """(C,)"""
    moves: Tensor
    """(C,C) from the row's tag to the column's."""
    end: Tensor
    """(C,)"""


class _Likelihood(torch.autograd.Function):
    """Emissions (B,T,C), the three scores, lengths (B,), tags (B,T) -> the summed loss."""

    @staticmethod
    def forward(
        ctx: Any, emissions: Tensor, start: Tensor, moves: Tensor, end: Tensor, lengths: Tensor, tags: Tensor
    ) -> Tensor:
        scores = Scores(start, moves, end)
        there = _there(lengths, emissions.shape[1])
        walk = _forwards(emissions, scores, there)
        whole = _partition(walk, scores, lengths)
        right = _seen(tags, there, lengths, emissions)
        gold = (emissions * right[0]).sum(dtype=torch.float64)
        for weights, seen in zip(scores, right[1:], strict=True):
            gold = gold + (weights.masked_fill(seen == 0, 0.0) * seen).sum(dtype=torch.float64)
        if any(ctx.needs_input_grad):
            expected = _expected(emissions, scores, there, lengths, walk[0])
            ctx.save_for_backward(*(e - s for e, s in zip(expected, right, strict=True)))
        return (whole.sum() - gold).to(emissions.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        return *(saved * gradients[0] for saved in ctx.saved_tensors), None, None


def _there(lengths: Tensor, width: int) -> Tensor:
    """(B,T) where a row has a piece."""
    return torch.arange(width, device=lengths.device) < lengths.unsqueeze(1)


class _Moves(NamedTuple):
    """Moves as logs and, less the highest of them, as factors."""

    logs: Tensor
    top: Tensor
    factors: Tensor

    @staticmethod
    def of(logs: Tensor) -> _Moves:
        top = logs.amax().clamp_min(torch.finfo(logs.dtype).min)
        return _Moves(logs, top, (logs - top).exp())

    def onward(self, logs: Tensor, on: Tensor) -> Tensor:
        """(B,C) log(exp(logs) @ exp(moves)) of logs (B,C) whose highest is 0, for the rows where `on` (B,1) is true.

        As a product of matrices, unless a sum is so small that some of its parts may have vanished.
        """
        summed = logs.exp() @ self.factors
        if bool(((summed < _SMALL) & on).any()):
            return torch.logsumexp(logs.unsqueeze(2) + self.logs, 1)
        return summed.log_().add_(self.top)

    @property
    def turned(self) -> _Moves:
        return _Moves(self.logs.t(), self.top, self.factors.t())


def _levelled(logs: Tensor) -> tuple[Tensor, Tensor]:
    """Logs (...,C) less the highest of each row, which is told: so rows of any length keep all digits."""
    # Where nothing is possible all are -inf, and stay so: -inf less the lowest number.
    level = logs.amax(-1).clamp_min_(torch.finfo(logs.dtype).min)
    return logs - level.unsqueeze(-1), level


def _forwards(emissions: Tensor, scores: Scores, there: Tensor) -> tuple[Tensor, Tensor]:
    """(T,B,C) the log of the summed scores of all ways to each tag, levelled, and what was taken off by the end (B,);
    behind a row's end it stays as it was."""
    steps, moves = [], _Moves.of(scores.moves)
    alpha = emissions.new_zeros(emissions.shape[::2])
    taken = torch.zeros(len(there), dtype=torch.float64, device=emissions.device)
    for time in range(emissions.shape[1]):
        on = there[:, time, None]
        ways = moves.onward(alpha, on) if time else scores.start
        now, level = _levelled(ways + emissions[:, time])
        alpha = torch.where(on, now, alpha)
        taken += torch.where(on.squeeze(1), level, 0.0)
        steps.append(alpha)
    return torch.stack(steps) if steps else alpha.new_zeros(0, *alpha.shape), taken


def _partition(walk: tuple[Tensor, Tensor], scores: Scores, lengths: Tensor) -> Tensor:
    """(B,) the log of the summed scores of all allowed tags; 0 for a row without pieces."""
    alpha, taken = walk
    if not len(alpha):
        return taken
    whole = torch.logsumexp(alpha[-1] + scores.end, 1) + taken
    whole = whole.masked_fill(lengths == 0, 0.0)
    if bool((whole == _NEVER).any()):
        row = int((whole == _NEVER).nonzero()[0])
        raise InputError(
            f"row {row} with {int(lengths[row])} pieces: the rules allow no tags for it",
            repair="allow some tag at the beginning, at the end, and behind itself",
        )
    return whole


def _seen(tags: Tensor, there: Tensor, lengths: Tensor, emissions: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """What the right tags use of emissions (B,T,C), start (C,), moves (C,C) and end (C,), as counts."""
    classes = emissions.shape[2]
    hot = torch.zeros_like(emissions).scatter_(2, tags.unsqueeze(2), 1.0) * there.unsqueeze(2)
    filled = (lengths > 0).nonzero().squeeze(1)
    last = tags[filled, lengths[filled] - 1]
    pairs = (tags[:, :-1] * classes + tags[:, 1:])[there[:, 1:]]

    def counted(numbers: Tensor, size: int) -> Tensor:
        return torch.bincount(numbers, minlength=size).to(emissions.dtype)

    first = tags[filled, 0] if tags.shape[1] else last
    moves = counted(pairs, classes * classes).view(classes, classes)
    return hot, counted(first, classes), moves, counted(last, classes)


def _backwards(emissions: Tensor, scores: Scores, there: Tensor) -> list[Tensor]:
    """T entries (B,C): the log of the summed scores of all ways from each tag to the end, up to a number a row."""
    beta = scores.end.expand(emissions.shape[0], -1)
    steps, moves = [beta], _Moves.of(scores.moves).turned
    for time in range(emissions.shape[1] - 1, 0, -1):
        on = there[:, time, None]
        beta = torch.where(on, moves.onward(_levelled(emissions[:, time] + beta)[0], on), scores.end)
        steps.append(beta)
    return steps[::-1]


def _pairs(before: Tensor, moves: _Moves, behind: Tensor, on: Tensor) -> Tensor:
    """(C,C) how often two tags are expected beside each other, at all m places that are `on` (m,1) together; logs (m,C)
    of the ways to the first and from the second."""
    left, right = before.exp(), torch.where(on, behind.exp(), 0.0)
    whole = ((left @ moves.factors) * right).sum(1, keepdim=True)
    safe = whole >= _SMALL
    found = moves.factors * (torch.where(safe, left / whole, 0.0).t() @ right)
    rare = (on & ~safe).flatten().nonzero().squeeze(1)
    way = before[rare].unsqueeze(2) + moves.logs + behind[rare].unsqueeze(1)
    return found + way.flatten(1).softmax(1).view_as(way).sum(0)


def _expected(
    emissions: Tensor, scores: Scores, there: Tensor, lengths: Tensor, alpha: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """What the model expects to see of emissions, start, moves and end. Levels cancel out in every softmax."""
    if not len(alpha):
        start, moves, end = (torch.zeros_like(each) for each in scores)
        return torch.zeros_like(emissions), start, moves, end
    beta = torch.stack(_backwards(emissions, scores, there))
    onward, _ = _levelled(emissions.transpose(0, 1)[1:] + beta[1:])
    on = there.t()[1:].reshape(-1, 1)
    moves = _pairs(alpha[:-1].flatten(0, 1), _Moves.of(scores.moves), onward.flatten(0, 1), on)
    tags = torch.softmax(alpha + beta, 2).transpose(0, 1)
    tags = torch.where(there.unsqueeze(2), tags, 0.0)
    last = torch.where((lengths > 0).unsqueeze(1), torch.softmax(alpha[-1] + scores.end, 1), 0.0)
    return tags, tags[:, 0].sum(0), moves, last.sum(0)


def best_paths(emissions: Tensor, lengths: Tensor, scores: Scores) -> tuple[Tensor, Tensor]:
    """The best tags of each row in the form of the emissions, (n,) or (B,T) with 0 behind a row's end, and their
    scores (B,). Of equally good ones that with the lower tag, from the end backwards."""
    grid = _grid(emissions, lengths)
    there = _there(lengths, grid.shape[1])
    if not there.any():
        return emissions.new_zeros(emissions.shape[:-1], dtype=torch.long), emissions.new_zeros(len(lengths))
    best = scores.start + grid[:, 0]
    taken = torch.zeros(len(grid), dtype=torch.float64, device=grid.device)
    same = torch.arange(grid.shape[2], device=grid.device).expand_as(best)
    came = []
    for time in range(1, grid.shape[1]):
        level = best.amax(1).clamp_min(torch.finfo(best.dtype).min)
        taken += level
        best = best - level.unsqueeze(1)
        top, tag = (best.unsqueeze(2) + scores.moves).max(1)
        on = there[:, time, None]
        came.append(torch.where(on, tag, same))
        best = torch.where(on, top + grid[:, time], best)
    score, tag = (best + scores.end).max(1)
    path = [tag]
    for back in reversed(came):
        path.append(back.gather(1, path[-1].unsqueeze(1)).squeeze(1))
    paths = torch.stack(path[::-1], 1).masked_fill(~there, 0)
    whole = (score + taken).masked_fill(lengths == 0, 0.0).to(grid.dtype)
    return (paths if emissions.dim() == 3 else items_of(paths, lengths)), whole


def _grid(emissions: Tensor, lengths: Tensor) -> Tensor:
    return emissions if emissions.dim() == 3 else grid_of(emissions, lengths)


def rule_scores(rules: Rules, like: Tensor) -> Scores:
    """Rules alone: 0 for what is allowed. With these, `best_paths` gives the best well-formed tags of plain scores."""
    begins, follows, ends = (torch.from_numpy(each).to(like.device) for each in rules)

    def score(allowed: Tensor) -> Tensor:
        return like.new_zeros(allowed.shape).masked_fill(~allowed, _NEVER)

    return Scores(score(begins), score(follows), score(ends))


class CRF(nn.Module):
    def __init__(self, classes: int, rules: Rules | None = None) -> None:
        """Its numbers are not yet set: `initialise` gives small transitions and no preference for ends."""
        super().__init__()
        self.transitions = nn.Parameter(torch.empty(classes, classes))
        self.start_bias = nn.Parameter(torch.empty(classes))
        self.end_bias = nn.Parameter(torch.empty(classes))
        allowed = [torch.ones(classes, dtype=torch.bool), torch.ones(classes, classes, dtype=torch.bool)]
        begins, follows, ends = (*allowed, allowed[0]) if rules is None else map(torch.from_numpy, rules)
        for name, rule in (("begins", begins), ("follows", follows), ("ends", ends)):
            self.register_buffer(name, rule.clone(), persistent=False)

    @property
    def scores(self) -> Scores:
        rules: list[Tensor] = [self.get_buffer(name) for name in ("begins", "follows", "ends")]
        weights = (self.start_bias, self.transitions, self.end_bias)
        return Scores(*(weight.masked_fill(~rule, _NEVER) for weight, rule in zip(weights, rules, strict=True)))

    def total(self, emissions: Tensor, lengths: Tensor, tags: Tensor) -> Tensor:
        """The summed negative log-likelihood of the tags, which have the form of the emissions: (n,) or (B,T).
        A row without pieces adds nothing."""
        grid = _grid(emissions, lengths).to(self.transitions.dtype)
        asked = tags if emissions.dim() == 3 else grid_of(tags, lengths)
        asked = asked.masked_fill(~_there(lengths, grid.shape[1]), 0)
        self._refuse_forbidden(asked, lengths)
        summed: Tensor = _Likelihood.apply(grid, *self.scores, lengths, asked)  # type: ignore[no-untyped-call]
        return summed

    def _refuse_forbidden(self, tags: Tensor, lengths: Tensor) -> None:
        there = _there(lengths, tags.shape[1])
        follows = self.get_buffer("follows")[tags[:, :-1], tags[:, 1:]] | ~there[:, 1:]
        filled = (lengths > 0).nonzero().squeeze(1)
        good = follows.all(1)
        if len(filled):
            good[filled] &= self.get_buffer("begins")[tags[filled, 0]]
            good[filled] &= self.get_buffer("ends")[tags[filled, lengths[filled] - 1]]
        if not bool(good.all()):
            row = int((~good).nonzero()[0])
            raise InputError(
                f"row {row} of the batch is asked for tags that the rules forbid: {tags[row, : lengths[row]].tolist()}",
                repair="make the tags with Tags.encode, or repair them with Tags.repair",
            )

    @torch.no_grad()
    def decode(self, emissions: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """The best tags of each row, in the form of the emissions, and their scores (B,) (Viterbi)."""
        return best_paths(emissions.to(self.transitions.dtype), lengths, self.scores)

    @torch.no_grad()
    def marginals(self, emissions: Tensor, lengths: Tensor) -> Tensor:
        """The probability of each tag at each piece, in the form of the emissions; 0 behind a row's end."""
        grid, scores = _grid(emissions, lengths).to(self.transitions.dtype), self.scores
        there = _there(lengths, grid.shape[1])
        walk = _forwards(grid, scores, there)
        _partition(walk, scores, lengths)  # refuses rows that have no tags
        found = _expected(grid, scores, there, lengths, walk[0])[0]
        return found if emissions.dim() == 3 else items_of(found, lengths)
