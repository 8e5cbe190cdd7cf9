"""Which token comes next? Asked at every slot but a row's last (Radford et al. 2018)."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import torch

from maskery.batches import Batch, Targets
from maskery.objectives.protocol import Answers
from maskery.objectives.tokens import TokenObjective, flat_slots
from maskery.rows.ragged import Rows


class NextToken(TokenObjective):
    name: ClassVar[str] = "next_token"

    def ask(self, rows: Rows, slots: int) -> Targets:
        asked = np.ones(rows.ids.shape[0], dtype=bool)
        asked[rows.start[1:] - 1] = False
        chosen = np.flatnonzero(asked)
        label = torch.from_numpy(rows.original[chosen + 1].astype(np.int64))
        return Targets(index=flat_slots(rows, slots, chosen), label=label)

    def answers(self, batch: Batch) -> Answers:
        index = self.targets(batch).index
        return Answers(asked=index, answer=index + 1)
