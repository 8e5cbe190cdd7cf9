"""Any order of any tokens as XLNet reads it: what content and query see at every depth, and what one stream forgets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch

from maskery import arguments
from maskery.arguments import checked
from maskery.batches import Batch
from maskery.errors import InputError
from maskery.explain.flow_words import flow_words, why_two
from maskery.explain.matrices import picture_of
from maskery.explain.sights import Drawn, Side, loss_of, two_streams
from maskery.model.config import Architecture
from maskery.model.visibility import Permuted
from maskery.picture import Picture
from maskery.picture.markup import tag


def order_of(tokens: Sequence[str], order: Sequence[int], layers: int = 3) -> Side:
    """`order` names the tokens, counted from 1, as they become known; every one of them is asked for."""
    if sorted(order) != list(range(1, len(tokens) + 1)):
        counted = " ".join(str(slot) for slot in range(1, len(tokens) + 1))
        raise InputError(
            f"the order {' '.join(map(str, order))} does not name each of the {len(tokens)} tokens once",
            repair=f"any order of {counted}",
        )
    if not tokens or layers < 1:
        raise InputError(
            f"{len(tokens)} tokens and {layers} layers: nothing is read", repair="at least one token and one layer"
        )
    turns = [list(order).index(slot) + 1 for slot in range(1, len(tokens) + 1)]
    one = _row(turns)
    every = torch.arange(len(tokens))
    sights = two_streams(Permuted(), one, tokens, every, Architecture(layers=layers))
    return Side("", tuple(tokens), asked=tuple(tokens), order=tuple(turns), sights=sights, first=1)


@checked
def order(tokens: Sequence[str], order: Sequence[int], *, layers: int = 3, lang: str = "en") -> Picture:
    """Who sees whom when tokens are predicted in an order of their own: `order(["a", "b", "c"], [3, 1, 2])`."""
    tokens = arguments.items("tokens", tokens, 'a list of tokens: ["a", "b", "c"]')
    order = [
        arguments.count(f"order[{number}]", each, 0)
        for number, each in enumerate(arguments.items("order", order, "a list of places: [3, 1, 2]"))
    ]
    arguments.count("layers", layers)
    words, side = flow_words(lang), order_of([arguments.text("a token", each) for each in tokens], order, layers)
    loss = loss_of(side)
    told = [] if loss is None else [tag("p", why_two(loss, words))]
    title = words.order_title.format(order=" → ".join(map(str, order)))
    made = picture_of(title, (Drawn("", (side,)),), told, words.columns, words, layers=True)
    return replace(made, lang=lang)


def _row(turns: list[int]) -> Batch:
    places = torch.arange(len(turns)).unsqueeze(0)
    return Batch(
        step=0,
        rows=torch.zeros(1, dtype=torch.long),
        ids=places,
        length=torch.tensor([len(turns)]),
        segments=torch.zeros_like(places),
        positions=places,
        original=places,
        edit=torch.zeros_like(places, dtype=torch.uint8),
        slots={"order": torch.tensor([turns])},
    )
