"""Measured rates on a terminal: each with its interval, what the recipe asks for, and of how many it was counted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from maskery.cli.output import counted
from maskery.explain.rows import shown

if TYPE_CHECKING:
    from rich.console import Console

    from maskery.inspection import Rates
    from maskery.inspection.report import Line


def print_rates(found: Rates, console: Console) -> None:
    measured = found.measured
    told = f"measured over {counted(measured.rows, 'row')}, {counted(measured.tokens, 'position')}{found.since}"
    console.print(told, soft_wrap=True)
    lines = _table("", "measured", "95 % interval", "recipe", "of")
    for line in found.shown_lines:
        lines.add_row(_name(line), *shown(line), f"{line.cases:,} {line.of}")
    if _fits(lines, console):
        console.print(lines)
    else:
        _print_narrow(found, console)
    _print_lengths(found, console)
    for warning in found.warnings:
        console.print(Text(f"warning: {warning}", style="bold yellow"), soft_wrap=True)


def _print_narrow(found: Rates, console: Console) -> None:
    """Each name on a line of its own, so that no value is broken."""
    for line in found.shown_lines:
        value, interval, recipe = shown(line)
        asked = f"; recipe {recipe}" if recipe else ""
        console.print(_name(line))
        console.print(f"      {value} ({interval}){asked}", soft_wrap=True)
        console.print(f"      of {line.cases:,} {line.of}", style="dim", soft_wrap=True)


def _print_lengths(found: Rates, console: Console) -> None:
    """A column for each length; on a narrow terminal a line for each."""
    headings, rows = found.lengths()
    if not rows:
        return
    shares = {name: [f"{100 * share:.2f}" for share in row] for name, row in rows.items()}
    lines = _table("  lengths, %", *headings)
    for name, row in shares.items():
        lines.add_row(f"    {name}", *row)
    if not _fits(lines, console):
        lines = _table("  lengths, %", *shares)
        for heading, *row in zip(headings, *shares.values(), strict=True):
            lines.add_row(f"    {heading}", *row)
    console.print(lines)
    if found.law_told:
        console.print(f"    {found.law_told}", soft_wrap=True)


def _table(first: str, *headings: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    table.add_column(first, no_wrap=True)
    for heading in headings:
        table.add_column(heading, justify="left" if heading == "of" else "right", no_wrap=True)
    return table


def _fits(table: Table, console: Console) -> bool:
    return Measurement.get(console, console.options.update(max_width=1000), table).maximum <= console.width


def _name(line: Line) -> Text:
    return Text(f"  {line.name}{' !' if line.warning else ''}", style="bold yellow" if line.warning else "")
