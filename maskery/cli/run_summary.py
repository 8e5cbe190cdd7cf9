"""`maskery info RUN`: the lines about a run, and the table of several."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from maskery.cli.output import counted, duration

if TYPE_CHECKING:
    from rich.console import Console

    from maskery.explain.history import History


def run_lines(run: dict[str, Any], spark: str) -> list[tuple[str, str]]:
    """Name and value of each line."""
    steps, size = run["steps"], run["size"]
    lines = [
        ("recipe", f"{run['recipe']}: {size['layers']} layers, width {size['width']}, {size['heads']} heads"),
        ("steps", f"{steps['done']:,} of {steps['of']:,}, {_state(run)}"),
    ]
    if run["from"]:
        lines.append(("started from", run["from"]))
    if steps["done"]:
        speed = "" if run["tokens_per_second"] is None else f", {run['tokens_per_second']:,.0f} a second"
        lines.append(("tokens", f"{run['tokens']:,} in {duration(run['seconds'])} of updates{speed}"))
        parts = {name.removeprefix("loss/"): value for name, value in run["loss"].items() if name != "loss"}
        apart = f" ({', '.join(f'{name} {_number(value)}' for name, value in parts.items())})" if parts else ""
        lines.append(("last loss", _number(run["loss"].get("loss")) + apart))
        lines.append(("loss by step", spark))
        lines.append(("held out", _held_out(run["evaluation"])))
    saved = ", ".join(f"{step:,}" for step in run["checkpoints"])
    lines.append(("checkpoints", f"at step {saved}" if saved else "none yet"))
    if run["machine"]:
        lines.append(("machine", _machine(run["machine"])))
    return lines + [("note", note) for note in run["notes"]]


def _state(run: dict[str, Any]) -> str:
    return "finished" if run["finished"] else "not finished (going on, or waiting for --resume)"


def _held_out(found: dict[str, Any] | None) -> str:
    if found is None:
        return "no evaluation"
    best, last = found["best"], found["last"]
    parts = []
    for name, shown in (("loss", _number), ("accuracy", _percent)):
        if name in best:
            where = f"{shown(best[name]['value'])} at step {best[name]['step']:,}"
            parts.append(f"best {name} {where}, last {shown(last.get(name))}")
    return "; ".join(parts) or "not a number"


def _number(value: float | None) -> str:
    return "not a number" if value is None else f"{value:.4f}"


def _percent(value: float | None) -> str:
    return "not a number" if value is None else f"{100 * value:.2f} %"


def _machine(facts: dict[str, Any]) -> str:
    told = [f"{facts.get('device', '?')} ({facts.get('cpu', '?')}, {counted(facts.get('threads', 1), 'thread')})"]
    told += [f"{name} {facts[name]}" for name in ("maskery", "torch", "python") if name in facts]
    ranks = facts.get("world", 1)
    return ", ".join([*told, f"{ranks} ranks"] if ranks != 1 else told)


def print_comparison(runs: list[History], facts: list[dict[str, Any]], console: Console) -> None:
    """A line for each fact, a column for each run; below it the keys in which their recipes differ."""
    from rich import box
    from rich.table import Table

    from maskery.explain.history import sums_differ
    from maskery.explain.runs import COLUMNS, differences, sparkline, value_text
    from maskery.explain.words import words_of
    from maskery.language import phrases

    words = phrases()
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("", no_wrap=True)
    for run in runs:
        table.add_column(run.name, overflow="fold")
    for name, column in COLUMNS.items():
        table.add_row(words.name(name), *(words.line(column(each)) for each in facts))
    table.add_row(words.name("loss by step"), *(sparkline(run, width=20) for run in runs))
    for key, values in differences(runs).items():
        table.add_row(key, *map(value_text, values))
    console.print(table)
    if sums_differ(runs):
        console.print(words_of(words.lang).different_sums)
