"""`maskery inspect` on a terminal: the order of a row, who sees whom, what each layer knows, whether a question leaks.

Matrices stand beside each other where the terminal is wide enough. A line begins with the token, its slot, its turn
where there is an order, and the answer that is asked for.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.cells import cell_len, set_cell_size

from maskery.explain.flow_words import FlowWords, flow_words, verdict, why_two
from maskery.explain.panels import Panel, panels, walk_text
from maskery.explain.sights import REMEMBERED, Side
from maskery.language import phrases

if TYPE_CHECKING:
    from rich.console import Console

    from maskery.explain.flow import Flow

_SEEN, _UNSEEN, _WALL = "██", "· ", "│"
_WIDEST = 16
_BETWEEN = 3


def print_flow(flow: Flow, console: Console, *, layers: bool = True, lang: str = "en") -> None:
    """Without `layers`: who sees whom and what is asked, no more."""
    words, told = flow_words(lang), phrases(lang)
    console.print(
        told.phrase("a line for each position that reads, a column for each that is read; → what it is asked for")
    )
    memory = flow.drawn[0].memory
    if memory:
        console.print(
            told.phrase("before the {wall} what is remembered: {drawn} of {memory} slots").format(
                wall=_WALL,
                drawn=min(memory, REMEMBERED),
                memory=f"{memory:,}",
            )
        )
    for each in flow.drawn:
        if each.mode:
            console.print("\n" + told.phrase("a row that is read {mode}").format(mode=each.mode))
        for side in each.sides:
            _print_side(side, console, words, layers)
    leaking = {name: each for name, each in flow.readings.items() if each is not None and each.leak is not None}
    if layers:
        console.print("\n" + told.phrase("in {rows} rows like this one").format(rows=flow.rows))
    for name, reading in (flow.readings if layers else leaking).items():
        console.print(f"{name}: {verdict(reading, words)}", style="bold red" if name in leaking else "")
    if layers and flow.loss is not None:
        console.print(why_two(flow.loss, words))
    for refusal in flow.refusals if layers else ():
        console.print(f"refused: {refusal.piece}: {refusal.reason}\n  repair: {refusal.repair}")


def _print_side(side: Side, console: Console, words: FlowWords, layers: bool) -> None:
    if side.order is not None:
        console.print("\n" + words.order.format(walk=walk_text(side)), soft_wrap=True)
    labels = _labels(side, words.turn)
    for band in _bands(panels(side, words, layers=layers), cell_len(labels[0]), console.width):
        console.print()
        for line in _lines(labels, band):
            console.print(line.rstrip(), no_wrap=True, overflow="crop", soft_wrap=True)


def _labels(side: Side, turn: str) -> list[str]:
    """What stands before the lines of a matrix; the first is the heading."""
    columns = [["", *side.tokens], ["", *map(str, range(len(side.tokens)))]]
    if side.order is not None:
        columns.append([turn, *map(str, side.order)])
    shown = [_right(column) for column in columns]
    if any(side.asked):
        answers = ["", *(f"→ {answer}" if answer else "" for answer in side.asked)]
        width = min(_WIDEST, max(map(cell_len, answers)))
        shown.append([set_cell_size(answer, width) for answer in answers])
    return [" ".join(parts) for parts in zip(*shown, strict=True)]


def _right(column: list[str]) -> list[str]:
    width = min(_WIDEST, max(map(cell_len, column)))
    return [
        " " * (width - min(width, cell_len(each))) + set_cell_size(each, min(width, cell_len(each))) for each in column
    ]


def _bands(found: list[Panel], labels: int, width: int) -> Iterator[list[Panel]]:
    """Panels that fit beside each other."""
    band: list[Panel] = []
    taken = labels
    for panel in found:
        if band and taken + _BETWEEN + _width(panel) > width:
            yield band
            band, taken = [], labels
        band.append(panel)
        taken += _BETWEEN + _width(panel)
    if band:
        yield band


def _width(panel: Panel) -> int:
    return max(cell_len(panel.title), 2 * len(panel.sight.numbers) + bool(panel.sight.before))


def _lines(labels: list[str], band: list[Panel]) -> Iterator[str]:
    between = " " * _BETWEEN
    yield " " * cell_len(labels[0]) + "".join(between + set_cell_size(each.title, _width(each)) for each in band)
    yield labels[0] + "".join(between + set_cell_size(_heading(each), _width(each)) for each in band)
    for slot, label in enumerate(labels[1:]):
        yield label + "".join(between + set_cell_size(_cells(each, slot), _width(each)) for each in band)


def _heading(panel: Panel) -> str:
    """The last digit of each column; remembered ones count down to the row."""
    return _walled(panel, [f"{abs(number) % 10} " for number in panel.sight.numbers])


def _cells(panel: Panel, slot: int) -> str:
    if slot not in panel.lines:
        return ""
    return _walled(panel, [_SEEN if seen else _UNSEEN for seen in panel.matrix[slot].tolist()])


def _walled(panel: Panel, cells: list[str]) -> str:
    before = panel.sight.before
    return "".join(cells[:before]) + _WALL * bool(before) + "".join(cells[before:])
