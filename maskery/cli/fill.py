"""`maskery fill`: what a masked language model would put in the place of each [MASK]."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from maskery.cli.settings import JsonOption, PickleOption
from maskery.errors import InputError

if TYPE_CHECKING:
    from maskery.checkpoint.model import Model
    from maskery.text.tokenizer import Tokenizer


def fill(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A model or run folder.")],
    text: Annotated[str, typer.Argument(help="A text with [MASK] in it.")],
    top: Annotated[int, typer.Option("--top", min=1, help="How many candidates to show.")] = 5,
    allow_pickle: PickleOption = False,
    as_json: JsonOption = False,
) -> None:
    """Print the most probable tokens for each [MASK]."""
    from maskery.checkpoint.load import load
    from maskery.cli.output import counted, emit_json, say, say_found

    loaded = load(model, allow_pickle=allow_pickle)
    say_found(loaded)
    answering = loaded.answering("masked_token")
    if answering is not loaded:
        say("filled by the model's generator, which learnt to; the model itself tells which tokens were replaced")
    found = candidates(answering, text, top)
    if len(found["masks"]) > 1:
        say(f"{len(found['masks'])} masks, each filled by itself: none sees what another was filled with")
    if found["unknown"]:
        told = counted(found["unknown"], "token")
        say(f"{told} of the text {'is' if found['unknown'] == 1 else 'are'} not in the vocabulary")
    emit_json(found) if as_json else _print(found)


def candidates(model: Model, text: str, top: int) -> dict[str, Any]:
    """The `top` most probable tokens at each mask of `text`, and the text with the first of them put in."""
    import torch

    tokenizer = _tokenizer(model)
    ids, segments = tokenizer.encode(text)
    mask = tokenizer.specials.mask
    slots = [slot for slot, number in enumerate(ids) if number == mask]
    if not slots:
        name = tokenizer.names["mask"]
        raise InputError(f"the text has no {name}", repair=f'maskery fill MODEL "Paris is the {name} of France."')
    with torch.inference_mode():
        hidden = model(torch.tensor([ids]), segments=_segments(model, segments))
        states = hidden.select(torch.tensor(slots))
        scores = model.heads["masked_token"](states, model.network.embeddings.tokens)
        best = scores.softmax(-1).topk(min(top, scores.shape[-1]))
    filled = list(ids)
    masks = []
    for slot, shares, numbers in zip(slots, best.values.tolist(), best.indices.tolist(), strict=True):
        filled[slot] = numbers[0]
        pieces = zip(tokenizer.shown(numbers), numbers, shares, strict=True)
        masks.append({"slot": slot, "candidates": [{"token": t, "id": n, "probability": p} for t, n, p in pieces]})
    unknown = sum(number == tokenizer.specials.unk for number in ids)
    return {"text": text, "filled": tokenizer.decode(filled), "masks": masks, "unknown": unknown}


def _tokenizer(model: Model) -> Tokenizer:
    if "masked_token" not in model.heads:
        held = ", ".join(model.heads) or "none"
        raise InputError(
            f"this model has no masked_token head (its heads: {held})",
            repair="give a model that was pretrained to fill masks",
        )
    if model.tokenizer is None:
        raise InputError(
            "the folder holds no tokenizer", repair="put its tokenizer.json or vocab.txt beside the weights"
        )
    if model.tokenizer.specials.mask is None:
        raise InputError("the tokenizer has no mask token", repair="give a model that was pretrained to fill masks")
    return model.tokenizer


def _segments(model: Model, segments: list[int]) -> Any:
    """One text is one segment: all zeros, also where a tokenizer says otherwise and the model knows none."""
    import torch

    return torch.tensor([segments]) if model.config.segments > max(segments) else None


def _print(found: dict[str, Any]) -> None:
    from rich import box
    from rich.table import Table

    from maskery.cli.output import results

    console = results()
    for number, mask in enumerate(found["masks"], 1):
        head = f"mask {number}" if len(found["masks"]) > 1 else "token"
        table = Table(head, "probability", box=box.SIMPLE_HEAD, pad_edge=False)
        for each in mask["candidates"]:
            table.add_row(each["token"], f"{each['probability']:.4f}")
        console.print(table)
    console.print(found["filled"])
