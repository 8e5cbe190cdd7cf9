"""Writing with a model that fills masks ("BERT has a mouth", Wang & Cho 2019): a row of masks, and again and again one
place is masked and filled with a draw from what the model thinks belongs there.

The first draws (`burn_in`) are among all tokens, the others among the `top_k` most probable. Such a chain need not have
the distribution of any language model: the authors have withdrawn that claim.

Shapes: B rows, T slots, N tokens that are written.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch

from maskery.checkpoint.calls import prepare
from maskery.checkpoint.model import Model
from maskery.errors import InputError
from maskery.model.transformer import Hidden
from maskery.randomness import below
from maskery.writing import rules
from maskery.writing.drafts import Draft, keys_of
from maskery.writing.forms import tokenizer_of
from maskery.writing.how import STEPS_PER_TOKEN, How


def filler_of(model: Model) -> Model:
    """The network that fills masks; refused where there is none."""
    answering = model.answering("masked_token")
    tokenizer = tokenizer_of(model)
    if "masked_token" not in answering.heads or tokenizer.specials.mask is None:
        held = ", ".join(model.heads) or "none"
        raise InputError(
            f"this model fills no masks (its heads: {held})", repair="how greedy, beam or sample, where it can write"
        )
    if answering.config.visibility != "full":
        raise InputError(
            f"this model reads with {answering.config.visibility} visibility: a mask does not see both sides",
            repair="leave the way gibbs out",
        )
    return answering


@torch.inference_mode()
def chain(model: Model, drafts: list[Draft], how: How, never: Sequence[int]) -> Iterator[list[Draft]]:
    """Fill the drafts; after every draw they are handed out as they are. `never` are tokens that are not drawn."""
    specials = tokenizer_of(model).specials
    assert specials.mask is not None
    head, network, size = model.heads["masked_token"], model.network, how.new
    rows = [[specials.cls, *draft.prompt_ids, *[specials.mask] * size, specials.sep] for draft in drafts]
    width = max(map(len, rows))
    ids = torch.tensor([[*row, *[specials.pad] * (width - len(row))] for row in rows])
    real = torch.arange(width) < torch.tensor([len(row) for row in rows]).unsqueeze(1)
    first = torch.tensor([1 + len(draft.prompt_ids) for draft in drafts])
    keys = keys_of([draft.prompt_ids for draft in drafts], [draft.sample for draft in drafts], how.seed)
    each = torch.arange(len(drafts))
    steps = how.steps or STEPS_PER_TOKEN * size
    for step in range(steps):
        drawn = below(keys, "place", size, step)
        place = first + torch.from_numpy(np.full(len(drafts), step % size) if how.order == "sequential" else drawn)
        ids[each, place] = specials.mask
        flat = each * width + place
        hidden: Hidden = network(prepare(network, ids, real, None, None), reads=flat)
        scores = head(hidden.select(flat), network.embeddings.tokens).float()
        scores[:, list(never)] = rules.NONE
        scores = scores / how.temperature
        if step >= how.burn_in * steps:
            scores = rules.most_probable(scores, how.top_k)
        ids[each, place] = rules.drawn(scores, keys, step)
        for row, draft in enumerate(drafts):
            draft.ids = ids[row, first[row] : first[row] + size].tolist()
        if step == steps - 1:
            for draft in drafts:
                draft.ended = "length"
        yield drafts
