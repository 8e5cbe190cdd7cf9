"""`maskery inspect --flow` on a terminal: who sees whom, what each layer knows, and whether a question leaks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import Tensor

from maskery.cli.output import counted
from maskery.explain.flow import Drawn, Flow, equal_layers, verdict

if TYPE_CHECKING:
    from rich.console import Console

_SEEN, _UNSEEN = "██", "· "


def print_flow(flow: Flow, console: Console) -> None:
    console.print("who sees whom: a line for each position that reads, a column for each that is read")
    for number, each in enumerate(flow.drawn):
        if each.mode:
            console.print("\n" * (number > 0) + f"a row that is read {each.mode}")
        _print_drawn(each, console)
    console.print(f"\nin {counted(flow.rows, 'row')} like this one")
    for name, reading in flow.readings.items():
        console.print(f"{name}: {verdict(reading)}")
    for refusal in flow.refusals:
        console.print(f"refused: {refusal.piece}: {refusal.reason}\n  repair: {refusal.repair}")


def _print_drawn(drawn: Drawn, console: Console) -> None:
    _print_matrix(drawn.visible, drawn.tokens, console)
    for first, last in equal_layers(drawn.layers):
        name = f"layer {first}" if first == last else f"layers {first} to {last}"
        console.print(f"\nwhat each position knows after {name}")
        _print_matrix(drawn.layers[last], drawn.tokens, console)


def _print_matrix(matrix: Tensor, tokens: list[str], console: Console) -> None:
    width = min(16, max(map(len, tokens)))
    console.print(f"{'':{width}}    " + " ".join(str(column % 10) for column in range(len(tokens))))
    for number, (token, line) in enumerate(zip(tokens, matrix.tolist(), strict=True)):
        cells = "".join(_SEEN if seen else _UNSEEN for seen in line)
        console.print(f"{token[:width]:>{width}} {number:>2} {cells}", no_wrap=True, overflow="crop")
