"""The examination of models that read in order: the next token of the same held-out text.

All read the same rows of running text in the same order: lanes that walk through the text. A model that remembers is
given what it remembers of the rows before, as in training; to one that does not, each row stands alone. That is a
difference between the models, and belongs to what is compared.
"""

from __future__ import annotations

from typing import cast

import numpy as np
import torch
from numpy.typing import NDArray

from maskery.checkpoint.model import Model
from maskery.compare.ask import NEXT, SEED, Answers, Examination, Tell
from maskery.feed import Feed
from maskery.model.heads import TokenHead
from maskery.model.transformer import Hidden, inputs_of
from maskery.objectives.answers import token_losses_and_hits
from maskery.recipes.recipe import Recipe
from maskery.train import machine
from maskery.train.lanes import LaneMemory

_AT_ONCE = 32
"""Lanes that are read in one pass."""


@torch.no_grad()
def ask_next(model: Model, trained: Recipe, examination: Examination, tell: Tell) -> Answers:
    """The next token at every slot of the rows but the last; answers stand in the order of the rows."""
    model = model.answering(NEXT)
    head = cast(TokenHead, model.heads[NEXT])
    feed = Feed(examination.next(trained), examination.corpus, SEED, "heldout")
    phase, device = feed.phases[0], machine.device()
    order, turns = feed.walk(phase, examination.rows)
    found: list[NDArray[np.float64]] = []
    numbers: list[NDArray[np.int64]] = []
    for start in range(0, order.lanes, _AT_ONCE):
        lanes = np.arange(start, min(start + _AT_ONCE, order.lanes), dtype=np.int64)
        memory = LaneMemory()
        for turn in range(turns):
            visits = turn * order.lanes + lanes
            epochs, rows = order.visit(visits)
            batch = memory.give(feed.in_lanes(feed.make(0, phase, epochs, rows), phase, order, visits)).to(device)
            targets = batch.targets[NEXT]
            hidden: Hidden = model.network(inputs_of(batch), reads=targets.index)
            memory.take(batch, hidden.memory)
            memory.commit()
            states = head.transform(hidden.select(targets.index))
            losses, hits = token_losses_and_hits(head, states, model.network.embeddings.tokens, targets.label)
            owner = (targets.index // batch.ids.shape[1]).cpu().numpy()
            each = (hits.cpu().numpy(), np.ones(len(owner)), losses.double().cpu().numpy())
            found.append(np.stack([np.bincount(owner, values, minlength=batch.size) for values in each]))
            numbers.append(rows)
            tell(turns * start + (turn + 1) * len(lanes), turns * order.lanes)
    hits, asked, loss = np.concatenate(found, axis=1)[:, np.argsort(np.concatenate(numbers), kind="stable")]
    return Answers(hits, asked, loss)
