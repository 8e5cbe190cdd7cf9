"""`maskery recipes`: list the recipes, show one with nothing left to defaults, compare two."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from maskery.cli.settings import JsonOption, SetOption, SizeOption, new_app, parse_settings

if TYPE_CHECKING:
    from rich.console import Console

app = new_app("List, show and compare recipes.")
_NARROW = 100
"""Columns of a terminal below which a table is no longer easy to read."""
_WIDE = 170
"""The same for the table of improvements, which has thirteen."""

RecipeArgument = Annotated[str, typer.Argument(metavar="RECIPE", help="A name, or the path of a .toml file.")]


@app.callback(invoke_without_command=True)
def list_recipes(
    context: typer.Context,
    improvements: Annotated[
        bool,
        typer.Option("--table", help="What each does that bert does not, as a table; Markdown into a pipe."),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """List the recipes and their answers to the six questions."""
    if context.invoked_subcommand is not None:
        if improvements or as_json:
            raise typer.BadParameter(f"options go after the command: maskery recipes {context.invoked_subcommand} ...")
        return
    _list_improvements(as_json) if improvements else _list_answers(as_json)


def _list_answers(as_json: bool) -> None:
    from maskery.cli.output import emit_json, results
    from maskery.recipes.recipe import recipe, table

    rows = table()
    told = [recipe(row["name"]) for row in rows]
    if as_json:
        emit_json(
            [
                {**row, "problem": each.problem, "problem_zh": each.problem_zh, "paper": each.paper}
                for row, each in zip(rows, told, strict=True)
            ]
        )
        return
    console = results()
    _print_rows(console, rows)
    console.print()
    for each in told:
        console.print(f"{each.name} ({each.paper}): {each.problem}")


def _list_improvements(as_json: bool) -> None:
    from maskery.cli.output import emit_json, results
    from maskery.recipes.matrix import COLUMNS, matrix

    found, console = matrix(), results()
    names = {column.key: f"{column.en} {column.zh}" for column in COLUMNS}
    if as_json:
        columns = {column.key: {"en": column.en, "zh": column.zh} for column in COLUMNS}
        emit_json({"columns": columns, "recipes": found})
    elif not console.is_terminal:
        print(_markdown([{"name": name} | _ticked(names, has) for name, has in found.items()]))
    elif console.width >= _WIDE:
        heads = {key: name.replace(" ", "\n") for key, name in names.items()}
        _print_rows(console, [{"name": name} | _ticked(heads, has) for name, has in found.items()])
    else:
        _print_numbered(console, names, found)


def _print_numbered(console: Console, names: dict[str, str], found: dict[str, dict[str, bool]]) -> None:
    """The table on a narrow terminal: columns are numbers, and stand with their names below it."""
    from rich import box
    from rich.table import Table

    table = Table("name", box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for number in range(1, len(names) + 1):
        table.add_column(str(number), justify="center", no_wrap=True)
    for name, has in found.items():
        table.add_row(name, *("✔" if has[key] else "" for key in names))
    console.print(table)
    for number, name in enumerate(names.values(), 1):
        console.print(f"{number:>2}  {name}")


def _ticked(names: dict[str, str], has: dict[str, bool]) -> dict[str, str]:
    return {name: "✔" if has[key] else "" for key, name in names.items()}


@app.command()
def show(
    recipe: RecipeArgument,
    settings: SetOption = None,
    size: SizeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print a whole recipe as TOML: every key, after size and overrides."""
    from maskery.cli.output import emit_json, say
    from maskery.recipes.recipe import check
    from maskery.recipes.recipe import recipe as read

    shown = read(recipe, parse_settings(settings), size=size)
    emit_json(shown.plain()) if as_json else print(shown.toml(), end="")
    for refusal in check(shown):
        say(f"would be refused: {refusal.piece}: {refusal.reason}\n  repair: {refusal.repair}")


@app.command()
def diff(left: RecipeArgument, right: RecipeArgument, as_json: JsonOption = False) -> None:
    """Print the keys in which two recipes differ."""
    from maskery.cli.output import emit_json, results, say
    from maskery.recipes.layers import IDENTITY
    from maskery.recipes.recipe import diff as differences
    from maskery.recipes.recipe import recipe

    ours, theirs = recipe(left), recipe(right)
    found = {key: pair for key, pair in differences(ours, theirs).items() if key not in IDENTITY}
    if as_json:
        emit_json({"left": ours.name, "right": theirs.name, "differences": found})
    elif found:
        rows = [{"key": key, "left": _value(pair[0]), "right": _value(pair[1])} for key, pair in found.items()]
        _print_rows(results(), rows, {"left": left, "right": right})
    else:
        say(f"{left} and {right} give the same answers")


def _value(value: Any) -> str:
    return "-" if value is None else json.dumps(value, ensure_ascii=False)


def _print_rows(console: Console, rows: list[dict[str, str]], titles: dict[str, str] | None = None) -> None:
    """A table; on a narrow terminal each row is a few lines instead of thin columns."""
    from rich import box
    from rich.table import Table

    heads = [(titles or {}).get(key, key) for key in rows[0]]
    if console.width >= _NARROW:
        table = Table(*heads, box=box.SIMPLE_HEAD, pad_edge=False)
        for row in rows:
            table.add_row(*row.values())
        console.print(table)
        return
    for row in rows:
        first, *others = row.values()
        grid = Table.grid(padding=(0, 2, 0, 0))
        for head, value in zip(heads[1:], others, strict=True):
            grid.add_row(f"  {head}", value)
        console.print(first)
        console.print(grid)


def _markdown(rows: list[dict[str, str]]) -> str:
    head = list(rows[0])
    lines = [head, ["---"] * len(head), *(list(row.values()) for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
