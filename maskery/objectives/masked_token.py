"""Which token stood here? Asked at every chosen slot, whatever was put there (Devlin et al. 2018).

Slots that were only shuffled, and masks that stand for a whole span, have no one answer and are not asked.
"""

from __future__ import annotations

from typing import ClassVar, cast

import numpy as np
import torch
from torch import Tensor, nn

from maskery.batches import Batch, Targets
from maskery.edit import ASKED
from maskery.model.heads import TokenHead
from maskery.model.stack import Stack
from maskery.model.transformer import Hidden
from maskery.objectives.cross_entropy import tied_cross_entropy_and_draws
from maskery.objectives.protocol import Answers
from maskery.objectives.tokens import TokenObjective, flat_slots
from maskery.rows.ragged import Rows

DRAWS = "uniform"
"""Where the targets hold a number in [0, 1) for each, by which a generator draws a token."""


class MaskedToken(TokenObjective):
    name: ClassVar[str] = "masked_token"

    def ask(self, rows: Rows, slots: int) -> Targets:
        chosen = np.flatnonzero(np.isin(rows.edit, ASKED))
        label = torch.from_numpy(rows.original[chosen].astype(np.int64))
        return Targets(index=flat_slots(rows, slots, chosen), label=label)

    def total_and_draws(self, network: Stack, head: nn.Module, hidden: Hidden, batch: Batch) -> tuple[Tensor, Tensor]:
        """The summed loss, and for every target (n,) a token drawn by the number that the feed gave it."""
        token_head, targets = cast(TokenHead, head), self.targets(batch)
        states = token_head.transform(hidden.select(targets.index))
        matrix, draws = network.embeddings.tokens, targets.extra[DRAWS]
        return tied_cross_entropy_and_draws(states, matrix, token_head.bias, targets.label, draws)

    def answers(self, batch: Batch) -> Answers:
        index = self.targets(batch).index
        return Answers(asked=index, answer=index)
