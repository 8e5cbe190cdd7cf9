"""The demo's results on stdout."""

from __future__ import annotations

from rich import box
from rich.table import Table

from maskery.cli.demo.results import Found
from maskery.cli.output import duration, results


def show(found: Found) -> None:
    words, console = found.words, results()
    console.print(f"\n{found.tiny}", soft_wrap=True)
    console.print(_table(words.scores, found.score_lines()))
    console.print(found.verdict, soft_wrap=True)
    if found.blanks:
        console.print(_table(words.blank_columns, found.blank_lines(), left=True))
    console.print(found.tally, soft_wrap=True)
    console.print()
    for line in found.lines_to_load:
        console.print(f"  {line}", soft_wrap=True)
    console.print(
        words.everything.format(time=duration(sum(found.seconds.values())), report=found.report), soft_wrap=True
    )
    if found.next_command:
        console.print(f"{words.go_on} {found.next_command}", soft_wrap=True)


def _table(headings: tuple[str, ...], lines: list[tuple[str, str, str, str]], left: bool = False) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for place, heading in enumerate(headings):
        table.add_column(heading, justify="left" if left or place == 0 else "right")
    for line in lines:
        table.add_row(*line)
    return table
