"""Which token stood here? Asked at every chosen slot, whatever was put there (Devlin et al. 2018).

Slots that were only shuffled, and masks that stand for a whole span, have no one answer and are not asked.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import torch

from maskery.batches import Batch, Targets
from maskery.edit import Edit
from maskery.objectives.protocol import Answers
from maskery.objectives.tokens import TokenObjective, flat_slots
from maskery.rows.ragged import Rows

ASKED = (Edit.MASK, Edit.RANDOM, Edit.KEEP, Edit.SIMILAR, Edit.UNMATCHED)


class MaskedToken(TokenObjective):
    name: ClassVar[str] = "masked_token"

    def ask(self, rows: Rows, slots: int) -> Targets:
        chosen = np.flatnonzero(np.isin(rows.edit, ASKED))
        label = torch.from_numpy(rows.original[chosen].astype(np.int64))
        return Targets(index=flat_slots(rows, slots, chosen), label=label)

    def answers(self, batch: Batch) -> Answers:
        index = self.targets(batch).index
        return Answers(asked=index, answer=index)
