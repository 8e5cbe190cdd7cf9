"""Token after token, each chosen for good: greedy, or drawn."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor

from maskery.randomness import Keys
from maskery.writing import rules
from maskery.writing.drafts import Draft, keys_of
from maskery.writing.how import How
from maskery.writing.writer import Writer


def ruled(scores: Tensor, drafts: Sequence[Draft], how: How, end: int, never: Sequence[int]) -> tuple[Tensor, Tensor]:
    """(B,V) scores with the penalty for repetition, and the same without what is forbidden."""
    histories = [draft.history for draft in drafts]
    changed = rules.penalised(scores, histories, how.repetition)
    banned = [rules.repeating(history, how.no_repeat) for history in histories]
    for draft, mine in zip(drafts, banned, strict=True):
        mine.update(never)
        if len(draft.ids) < how.least:
            mine.add(end)
    return changed, rules.forbidden(changed, banned)


def write(writer: Writer, drafts: list[Draft], how: How, end: int, never: Sequence[int]) -> Iterator[Sequence[Draft]]:
    """Fill the drafts; after every token they are handed out as they are. Those of one prompt lie side by side."""
    firsts = [number for number, draft in enumerate(drafts) if draft.sample == 0]
    scores = writer.begin([drafts[number].prompt_ids for number in firsts])
    if len(firsts) < len(drafts):
        rows = torch.tensor(np.repeat(np.arange(len(firsts)), np.diff([*firsts, len(drafts)])))
        writer.select(rows)
        scores = scores[rows]
    keys = keys_of([draft.prompt_ids for draft in drafts], [draft.sample for draft in drafts], how.seed)
    active = list(range(len(drafts)))
    while True:
        mine = [drafts[number] for number in active]
        tokens = _choose(scores, mine, how, end, never, keys[active])
        yield drafts
        going = [row for row, draft in enumerate(mine) if not draft.ended]
        if not going:
            return
        if len(going) < len(active):
            rows = torch.tensor(going, device=scores.device)
            writer.select(rows)
            tokens, active = tokens[rows], [active[row] for row in going]
        scores = writer.step(tokens)


def _choose(scores: Tensor, drafts: list[Draft], how: How, end: int, never: Sequence[int], keys: Keys) -> Tensor:
    allowed = ruled(scores, drafts, how, end, never)[1]
    if how.how == "sample":
        assert how.temperature is not None
        assert how.top_k is not None
        assert how.top_p is not None
        warm = rules.nucleus(rules.most_probable(allowed / how.temperature, how.top_k), how.top_p)
        tokens = rules.drawn(warm, keys, len(drafts[0].ids))
    else:
        tokens = allowed.argmax(1)
    told = scores.log_softmax(1).gather(1, tokens.unsqueeze(1)).squeeze(1).tolist()
    possible = (allowed.amax(1) > rules.NONE).tolist()
    for draft, token, share, some in zip(drafts, tokens.tolist(), told, possible, strict=True):
        if some:
            draft.add(token, share, end)
        else:
            draft.ended = "rules"
    return tokens
