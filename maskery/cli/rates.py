"""Measured rates on a terminal: each with its interval, what the recipe asks for, and of how many it was counted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from maskery.cli.output import counted
from maskery.explain.rows import shown
from maskery.inspection.measured import shares

if TYPE_CHECKING:
    from rich.console import Console

    from maskery.inspection import Rates

COLUMNS = 10
"""Lengths of spans that have a column of their own."""


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
    if measured.drawn.keys() | measured.kept.keys() | measured.runs.keys() > {1}:
        _print_lengths(found, console)
    for warning in found.warnings:
        console.print(Text(f"warning: {warning}", style="bold yellow"), soft_wrap=True)


def _print_lengths(found: Rates, console: Console) -> None:
    """How long spans are, in per cent: as the law has it, as they were drawn, as the budget left them."""
    measured = found.measured
    asked = found.nominal.get("span_words", {}).get("drawn_histogram", {})
    rows = {"recipe": asked, "drawn": shares(measured.drawn), "kept": shares(measured.kept)}
    rows["runs, in words"] = shares(measured.runs)
    rows = {name: row for name, row in rows.items() if row.keys() - {"1"}}
    longest = max((int(length) for row in rows.values() for length in row), default=1)
    first = 0 if 0 in measured.drawn else 1
    lengths = range(first, min(longest, first + COLUMNS - 1) + 1)
    lines = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    lines.add_column("  lengths, %", no_wrap=True)
    for length in lengths:
        lines.add_column(str(length), justify="right", no_wrap=True)
    longer = longest > lengths[-1]
    if longer:
        lines.add_column("longer", justify="right", no_wrap=True)
    for name, row in rows.items():
        cells = [f"{100 * row.get(str(length), 0.0):.2f}" for length in lengths]
        rest = sum(share for length, share in row.items() if int(length) > lengths[-1])
        lines.add_row(f"    {name}", *cells, *([f"{100 * rest:.2f}"] if longer else []))
    console.print(lines)
    if found.law is not None:
        law = found.law
        console.print(
            f"    drawn against the recipe: chi-square {law.statistic:.1f}, {law.freedom} degrees of freedom, "
            f"p = {law.p:.2g}"
        )
