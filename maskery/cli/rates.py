"""Measured rates on a terminal: each with its interval, what the recipe asks for, and of how many it was counted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from maskery.cli.output import counted
from maskery.explain.rows import shown

if TYPE_CHECKING:
    from rich.console import Console

    from maskery.inspection import Rates


def print_rates(found: Rates, console: Console) -> None:
    measured = found.measured
    told = f"measured over {counted(measured.rows, 'row')}, {counted(measured.tokens, 'position')}{found.since}"
    console.print(told, soft_wrap=True)
    lines = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    lines.add_column("")
    for heading in ("measured", "95 % interval", "recipe"):
        lines.add_column(heading, justify="right", no_wrap=True)
    lines.add_column("of")
    for line in found.shown_lines:
        name = Text(f"  {line.name}{' !' if line.warning else ''}", style="bold yellow" if line.warning else "")
        lines.add_row(name, *shown(line), f"{line.cases:,} {line.of}")
    console.print(lines)
    _print_lengths(found, console)
    for warning in found.warnings:
        console.print(Text(f"warning: {warning}", style="bold yellow"), soft_wrap=True)


def _print_lengths(found: Rates, console: Console) -> None:
    headings, rows = found.lengths()
    if not rows:
        return
    lines = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    lines.add_column("  lengths, %", no_wrap=True)
    for heading in headings:
        lines.add_column(heading, justify="right", no_wrap=True)
    for name, row in rows.items():
        lines.add_row(f"    {name}", *(f"{100 * share:.2f}" for share in row))
    console.print(lines)
    if found.law_told:
        console.print(f"    {found.law_told}")
