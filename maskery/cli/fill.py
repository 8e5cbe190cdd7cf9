"""`maskery fill`: what a masked language model would put in the place of each [MASK], and of all of them together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from maskery.cli.settings import JsonOption, PickleOption

if TYPE_CHECKING:
    from maskery.writing.fill import Filled


def fill(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A model or run folder, or a downloaded model's name.")],
    text: Annotated[str, typer.Argument(help="A text with [MASK] in it.")],
    top: Annotated[int, typer.Option("--top", min=1, help="Number of candidates to show.")] = 5,
    order: Annotated[
        str, typer.Option("--order", metavar="O", help="Fill several masks from the left, or in any order: left, any.")
    ] = "left",
    beams: Annotated[int, typer.Option("--beams", min=1, help="Partial texts that the search keeps.")] = 8,
    allow_pickle: PickleOption = False,
    as_json: JsonOption = False,
) -> None:
    """Print the most probable tokens for each [MASK], and the most probable texts for all of them."""
    from maskery.checkpoint.load import load
    from maskery.cli.output import counted, emit_json, say, say_found, say_unknown
    from maskery.writing.fill import MOST_JOINT
    from maskery.writing.fill import fill as filled

    loaded = load(model, allow_pickle=allow_pickle)
    say_found(loaded)
    answering = loaded.answering("masked_token")
    if answering is not loaded:
        say("filled by the model's generator, which learnt to; the model itself tells which tokens were replaced")
    found = filled(loaded, text, top=top, order=order, beams=beams)
    if len(found.masks) > MOST_JOINT:
        say(f"{len(found.masks)} masks, each filled alone: at most {MOST_JOINT} are filled together")
    if found.unknown:
        told = counted(found.unknown, "token")
        say(f"{told} of the text {'is' if found.unknown == 1 else 'are'} not in the vocabulary")
        say_unknown(answering, [text.replace(answering.tokenizer.names["mask"], " ")] if answering.tokenizer else [])
    emit_json(found.plain()) if as_json else _print(found)


def _print(found: Filled) -> None:
    from rich import box
    from rich.table import Table

    from maskery.cli.output import results

    console = results()
    for number, mask in enumerate(found.masks, 1):
        head = f"mask {number} alone" if len(found.masks) > 1 else "token"
        table = Table(head, "probability", box=box.SIMPLE_HEAD, pad_edge=False)
        for each in mask.candidates:
            table.add_row(each.token, f"{each.probability:.4f}")
        console.print(table)
    if found.joint:
        table = Table("all masks together", "probability", box=box.SIMPLE_HEAD, pad_edge=False)
        for whole in found.joint:
            table.add_row(whole.text, f"{whole.probability:.3g}")
        console.print(table)
    console.print(found.filled)
