"""Which token stood here before its neighbours were shuffled? Asked at every slot of a shuffled run (StructBERT)."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import torch

from maskery.batches import Batch, Targets
from maskery.edit import Edit
from maskery.objectives.protocol import Answers
from maskery.objectives.tokens import TokenObjective, flat_slots
from maskery.rows.ragged import Rows


class WordOrder(TokenObjective):
    """Every answer stands in the input, at one of the run's slots: that is the question, so no leak is looked for."""

    name: ClassVar[str] = "word_order"

    def ask(self, rows: Rows, slots: int) -> Targets:
        chosen = np.flatnonzero(rows.edit == Edit.SHUFFLED)
        label = torch.from_numpy(rows.original[chosen].astype(np.int64))
        return Targets(index=flat_slots(rows, slots, chosen), label=label)

    def answers(self, batch: Batch) -> Answers | None:
        return None
