"""A second network that rewrites what the model reads: the generator fills every chosen slot with a token it draws.

It reads the corrupted rows and is asked for the chosen tokens; the model reads the filled rows. All chosen slots are
filled, those too that showed their token (`keep`), as in ELECTRA's code, and any token of the vocabulary may be drawn.
Which one depends on the generator's scores and on a number that the feed has made for the target (`DRAWS`), so that
ranks, micro-batches and workers do not change it. Tokens are no numbers to be differentiated: nothing that the model
learns reaches the generator, but by the embeddings that both have in common.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from torch import Tensor, nn

from maskery.batches import Batch, Edit, Targets
from maskery.model.transformer import Hidden, Network, inputs_of
from maskery.objectives.masked_token import MaskedToken
from maskery.objectives.replaced_token import ReplacedToken


@dataclass(frozen=True)
class Rewritten:
    batch: Batch
    """What the model reads and is asked."""
    hidden: Hidden
    """The generator's states."""
    total: Tensor
    """The generator's summed loss."""


def rewrite(generator: Network, question: MaskedToken, head: nn.Module, batch: Batch) -> Rewritten:
    """`head` is the generator's for the masked tokens; it does not read the views of a batch."""
    own = replace(batch, views={})
    hidden: Hidden = generator(inputs_of(own), reads=question.reads(own))
    total, drawn = question.total_and_draws(generator, head, hidden, own)
    return Rewritten(filled(batch, question.targets(batch).index, drawn), hidden, total)


def filled(batch: Batch, index: Tensor, drawn: Tensor) -> Batch:
    """The batch with drawn tokens at flat slots, and what is replaced by them."""
    ids = batch.ids.flatten().index_copy(0, index, drawn)
    return replace(batch, ids=ids.view_as(batch.ids), targets=_labelled(batch, ids))


def hidden_again(batch: Batch) -> Batch:
    """The batch as the model reads it, as far as that is known without the generator: a chosen slot that showed its
    token does so no more, but for a token that happens to be drawn."""
    return replace(batch, edit=batch.edit.masked_fill(batch.edit == Edit.KEEP, int(Edit.RANDOM)))


def _labelled(batch: Batch, ids: Tensor) -> Mapping[str, Targets]:
    """A token is replaced if it is not the one that stood there."""
    targets = batch.targets[ReplacedToken.name]
    now, before = (each.index_select(0, targets.index) for each in (ids, batch.original.flatten()))
    return {**batch.targets, ReplacedToken.name: replace(targets, label=(now != before).long())}
