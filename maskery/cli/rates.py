"""Measured rates on a terminal: each with its interval, what the recipe asks for, and of how many it was counted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from maskery.explain.rows import RATE_HEADS, measured_over, rate_name, shown
from maskery.language import ENGLISH, Phrases

if TYPE_CHECKING:
    from rich.console import Console

    from maskery.inspection import Rates
    from maskery.inspection.report import Line

_LEFT = ("of", Phrases("zh").name("of"))
"""The heading of the one column of words."""


def print_rates(found: Rates, console: Console, words: Phrases = ENGLISH) -> None:
    console.print(measured_over(found, words), soft_wrap=True)
    lines = _table("", *map(words.name, RATE_HEADS))
    for line in found.shown_lines:
        lines.add_row(_name(line, words), *shown(line), f"{line.cases:,} {words.name(line.of)}")
    if _fits(lines, console):
        console.print(lines)
    else:
        _print_narrow(found, console, words)
    _print_lengths(found, console, words)
    for warning in found.warnings:
        console.print(Text(f"{words.phrase('warning: ')}{words.line(warning)}", style="bold yellow"), soft_wrap=True)


def _print_narrow(found: Rates, console: Console, words: Phrases) -> None:
    """Each name on a line of its own, so that no value is broken."""
    for line in found.shown_lines:
        value, interval, recipe = shown(line)
        asked = words.phrase("; recipe {value}").format(value=recipe) if recipe else ""
        console.print(_name(line, words))
        console.print(f"      {value} ({interval}){asked}", soft_wrap=True)
        of = words.phrase("of {cases} {what}").format(cases=f"{line.cases:,}", what=words.name(line.of))
        console.print(f"      {of}", style="dim", soft_wrap=True)


def _print_lengths(found: Rates, console: Console, words: Phrases) -> None:
    """A column for each length; on a narrow terminal a line for each."""
    headings, rows = found.lengths()
    if not rows:
        return
    headings = [*map(words.name, headings)]
    shares = {words.name(name): [f"{100 * share:.2f}" for share in row] for name, row in rows.items()}
    first = "  " + words.phrase("lengths, %")
    lines = _table(first, *headings)
    for name, row in shares.items():
        lines.add_row(f"    {name}", *row)
    if not _fits(lines, console):
        lines = _table(first, *shares)
        for heading, *row in zip(headings, *shares.values(), strict=True):
            lines.add_row(f"    {heading}", *row)
    console.print(lines)
    if found.law_told:
        console.print(f"    {found.law_told}", soft_wrap=True)


def _table(first: str, *headings: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    table.add_column(first, no_wrap=True)
    for heading in headings:
        table.add_column(heading, justify="left" if heading in _LEFT else "right", no_wrap=True)
    return table


def _fits(table: Table, console: Console) -> bool:
    return Measurement.get(console, console.options.update(max_width=1000), table).maximum <= console.width


def _name(line: Line, words: Phrases) -> Text:
    return Text(
        f"  {rate_name(line.name, words)}{' !' if line.warning else ''}", style="bold yellow" if line.warning else ""
    )
