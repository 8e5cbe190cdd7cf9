"""The log-probabilities of given tokens behind given prompts, each from what stands before it.

One pass tells them all where a row can be read at once; a model that writes in the place of a [MASK] reads token by
token, as it writes. Shapes: B rows, T slots, n tokens of all rows, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from maskery.checkpoint.model import Model
from maskery.model.layout import layout_of
from maskery.model.stack import Inputs, Stack
from maskery.model.transformer import Hidden
from maskery.writing.forms import Form
from maskery.writing.writer import inputs_of_places, writer_of


@torch.inference_mode()
def told(model: Model, form: Form, prompts: Sequence[Sequence[int]], texts: Sequence[Sequence[int]]) -> list[Tensor]:
    """For each text the log-probability of each of its tokens (float64). The prompts are framed already."""
    if form.start:
        return _by_decoder(model, form, prompts, texts)
    if form.probe is not None and not form.second:
        return _step_by_step(model, form, prompts, texts)
    return _at_once(model, form, prompts, texts)


def grid(rows: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
    """(B,T) ids, padded on the right, and (B,T) where they are real."""
    width = max(map(len, rows))
    ids = torch.tensor([[*row, *[0] * (width - len(row))] for row in rows], dtype=torch.long)
    return ids, torch.arange(width) < torch.tensor([len(row) for row in rows]).unsqueeze(1)


def chosen(model: Model, head: str, stack: Stack, states: Tensor, tokens: Tensor) -> Tensor:
    """(n,D) states and (n,) tokens -> (n,) log-probabilities (float64)."""
    scores = model.heads[head](states, stack.embeddings.tokens).float()
    found: Tensor = scores.gather(1, tokens.unsqueeze(1)).squeeze(1).double() - scores.logsumexp(1).double()
    return found


def _slots(prompts: Sequence[Sequence[int]], texts: Sequence[Sequence[int]], width: int, back: int) -> Tensor:
    """(n,) the flat slots of the texts' tokens, each `back` slots earlier."""
    pairs = enumerate(zip(prompts, texts, strict=True))
    return torch.tensor(
        [row * width + len(prompt) + place - back for row, (prompt, text) in pairs for place in range(len(text))]
    )


def _at_once(
    model: Model, form: Form, prompts: Sequence[Sequence[int]], texts: Sequence[Sequence[int]]
) -> list[Tensor]:
    network = model.network
    # Who is asked for the next token need not read the last.
    stop = None if form.second else -1
    ids, real = grid([[*prompt, *text][:stop] for prompt, text in zip(prompts, texts, strict=True)])
    place = torch.arange(ids.shape[1]).expand_as(ids)
    length = torch.tensor([len(prompt) for prompt in prompts])
    slots = _slots(prompts, texts, ids.shape[1], back=0 if form.second else 1)
    inputs = inputs_of_places(network, form, ids, real, place, length, asked=slots)
    hidden: Hidden = network(inputs, reads=slots.new_empty(0) if form.second else slots)
    if form.second:
        assert hidden.predicted is not None
        hidden = hidden.predicted
    tokens = torch.tensor([token for text in texts for token in text])
    found = chosen(model, form.head, network, hidden.select(slots), tokens)
    return list(torch.split(found, [len(text) for text in texts]))


def _by_decoder(
    model: Model, form: Form, prompts: Sequence[Sequence[int]], texts: Sequence[Sequence[int]]
) -> list[Tensor]:
    network = model.network
    assert network.decoder is not None
    source, written = (_plain(network.shape.position_offset, rows) for rows in (prompts, _shifted(form, texts)))
    hidden: Hidden = network(Inputs(**{**source.__dict__, "decoder": written}))
    assert hidden.decoder is not None
    starts = [form.start] * len(texts)
    slots = _slots(starts, texts, written.ids.shape[1], back=1)
    tokens = torch.tensor([token for text in texts for token in text])
    found = chosen(model, form.head, network.decoder, hidden.decoder.select(slots), tokens)
    return list(torch.split(found, [len(text) for text in texts]))


def _shifted(form: Form, texts: Sequence[Sequence[int]]) -> list[list[int]]:
    """What a decoder reads to be asked for the texts."""
    return [[*form.start, *text[:-1]] for text in texts]


def _plain(offset: int, rows: Sequence[Sequence[int]]) -> Inputs:
    ids, real = grid(rows)
    return Inputs(
        ids=ids,
        layout=layout_of(real),
        segments=torch.zeros_like(ids),
        positions=torch.arange(offset, offset + ids.shape[1]).expand_as(ids),
    )


def _step_by_step(
    model: Model, form: Form, prompts: Sequence[Sequence[int]], texts: Sequence[Sequence[int]]
) -> list[Tensor]:
    frame = len(form.front), len(form.back)
    writer = writer_of(model, form)
    scores = writer.begin([prompt[frame[0] : len(prompt) - frame[1]] for prompt in prompts])
    found: list[list[float]] = [[] for _ in texts]
    active = list(range(len(texts)))
    for step in range(max(map(len, texts))):
        tokens = torch.tensor([texts[row][step] for row in active])
        shares = scores.log_softmax(1).gather(1, tokens.unsqueeze(1)).squeeze(1).tolist()
        for row, share in zip(active, shares, strict=True):
            found[row].append(share)
        going = [place for place, row in enumerate(active) if step + 1 < len(texts[row])]
        if not going:
            break
        keep = torch.tensor(going)
        writer.select(keep)
        active = [active[place] for place in going]
        scores = writer.step(tokens[keep])
    return [torch.tensor(each, dtype=torch.float64) for each in found]
