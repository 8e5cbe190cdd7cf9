"""Which token comes next? Asked at every slot but a row's last (Radford et al. 2018).

A row whose first piece everybody sees (mode prefix) is asked for what comes behind that piece alone: from the [SEP]
that ends the source, which is asked for the first token of the target, to the last token, which is asked for the end.
A decoder is asked at every slot for what its rows say (`Rows.next`), at the last one for a token that it never reads.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import torch

from maskery.batches import Batch, Targets
from maskery.model.config import Mode
from maskery.objectives.protocol import Answers
from maskery.objectives.tokens import TokenObjective, flat_slots
from maskery.rows.ragged import Rows


class NextToken(TokenObjective):
    name: ClassVar[str] = "next_token"

    def ask(self, rows: Rows, slots: int) -> Targets:
        if rows.next is not None:
            every = np.arange(len(rows.ids))
            return Targets(index=flat_slots(rows, slots, every), label=torch.from_numpy(rows.next.astype(np.int64)))
        asked = np.ones(rows.ids.shape[0], dtype=bool)
        asked[rows.start[1:] - 1] = False
        if rows.mode is not None:
            source = (rows.mode[rows.row] == Mode.PREFIX) & (rows.document == 0)
            asked[:-1] &= ~source[1:]
        chosen = np.flatnonzero(asked)
        label = torch.from_numpy(rows.original[chosen + 1].astype(np.int64))
        return Targets(index=flat_slots(rows, slots, chosen), label=label)

    def answers(self, batch: Batch) -> Answers:
        """Of the last slot of a decoder's row none: its answer is read by nobody."""
        index = self.targets(batch).index
        slots = batch.ids.shape[1]
        shown = index[index % slots + 1 < batch.length[index // slots]]
        return Answers(asked=shown, answer=shown + 1)
