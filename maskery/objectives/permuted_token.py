"""Which token stands here, when the tokens that come before it in a drawn order are known? (XLNet, Yang et al. 2019)

The slots that are asked and the order are drawn with the rows; the second stream answers, which knows the place that it
is asked for and not the token.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import torch

from maskery.batches import Batch, Targets
from maskery.objectives.protocol import Answers
from maskery.objectives.tokens import TokenObjective, flat_slots
from maskery.rows.ragged import Rows


class PermutedToken(TokenObjective):
    name: ClassVar[str] = "permuted_token"

    def ask(self, rows: Rows, slots: int) -> Targets:
        asked = rows.asked if rows.asked is not None else np.zeros(len(rows.ids), dtype=bool)
        chosen = np.flatnonzero(asked)
        label = torch.from_numpy(rows.original[chosen].astype(np.int64))
        return Targets(index=flat_slots(rows, slots, chosen), label=label)

    def answers(self, batch: Batch) -> Answers:
        index = self.targets(batch).index
        return Answers(asked=index, answer=index)
