"""`maskery inspect`: the rows that training will see, what was done to them, measured rates beside the recipe's.

A masked slot is shown as `word→[MASK]`, a replaced one as `word→other`, one that was chosen and kept as `word=`.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from maskery.cli.corpora import corpus_option, open_corpora
from maskery.cli.settings import HtmlOption, JsonOption, SetOption, SizeOption, parse_settings
from maskery.errors import InputError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from maskery.corpus.mixture import Corpora
    from maskery.feed import Feed
    from maskery.recipes.recipe import Recipe
    from maskery.rows.ragged import Rows

SHOWN = 3
STYLES = {"mask": "bold red", "random": "bold yellow", "keep": "bold green", "similar": "bold cyan"}


def inspect(
    recipe: Annotated[str, typer.Argument(metavar="RECIPE", help="A name, or the path of a .toml file.")],
    corpus: Annotated[list[str] | None, corpus_option(" --flow needs none.")] = None,
    rows: Annotated[int, typer.Option("--rows", metavar="N", help="Rows to measure.")] = 1000,
    flow: Annotated[bool, typer.Option("--flow", help="Draw who sees whom, and look for leaks.")] = False,
    size: SizeOption = None,
    settings: SetOption = None,
    seed: Annotated[int | None, typer.Option("--seed", metavar="N", help="Overrides training.seed.")] = None,
    html: HtmlOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the first rows that training will see, and measure what corruption did to many of them."""
    from maskery.cli.output import emit_json, results, save_picture, say
    from maskery.explain.rows import rates, rows_picture
    from maskery.feed import Feed
    from maskery.picture import require_place
    from maskery.recipes.recipe import check
    from maskery.recipes.recipe import recipe as read

    if rows < 1:
        raise InputError(f"--rows {rows}: there is nothing to measure", repair="--rows 1000")
    if html is not None:
        require_place(html)
    asked = read(recipe, parse_settings(settings), size=size)
    seed = asked.training.seed if seed is None else seed
    store = open_corpora(corpus) if corpus else None
    if flow:
        _show_flow(asked, store, seed, html, as_json)
        return
    if store is None:
        raise InputError(
            "there are no rows without a corpus", repair="add --corpus DIR, or --flow to draw a made-up row"
        )
    feed = Feed(asked, store, seed)
    found = rates(feed, rows)
    if html is not None:
        save_picture(rows_picture(feed, found), html)
    if as_json:
        emit_json(found)
        return
    console = results()
    print_rows(feed, console)
    print_rates(found, console)
    for name, number in feed.plan(feed.phases[0]).counts.items():
        if number and name not in ("rows", "tokens"):
            say(f"when rows of {feed.phases[0].length} slots were planned: {name.replace('_', ' ')} {number:,}")
    for refusal in check(asked):
        say(f"pretrain would refuse this: {refusal.piece}: {refusal.reason}\n  repair: {refusal.repair}")


def _show_flow(asked: Recipe, store: Corpora | None, seed: int, html: Path | None, as_json: bool) -> None:
    from maskery.cli.flow import print_flow
    from maskery.cli.output import emit_json, results, save_picture
    from maskery.explain.flow import flow_of, flow_picture

    drawn = flow_of(asked, store, seed)
    if html is not None:
        save_picture(flow_picture(drawn), html)
    emit_json({"recipe": asked.name, "flow": drawn.plain()}) if as_json else print_flow(drawn, results())


def print_rows(feed: Feed, console: Console) -> None:
    from maskery.explain.rows import row_title
    from maskery.inspection import visits

    step, phase, epochs, numbers = next(visits(feed, SHOWN))
    rows = feed.corrupted(step, phase, epochs, numbers)
    for place in range(len(rows)):
        console.print(row_title(feed, phase, rows, place), soft_wrap=True)
        for segment in range(int(rows.segment[rows.start[place] : rows.start[place + 1]].max()) + 1):
            console.print(row_text(rows, place, segment, feed))
        console.print()


def row_text(rows: Rows, place: int, segment: int, feed: Feed) -> Text:
    """One segment of one row, its chosen slots marked and coloured."""
    from rich.text import Text

    from maskery.edit import Edit

    slots = range(int(rows.start[place]), int(rows.start[place + 1]))
    mine = [slot for slot in slots if rows.segment[slot] == segment]
    before = feed.corpus.tokenizer.shown(rows.original[mine])
    after = feed.corpus.tokenizer.shown(rows.ids[mine])
    text = Text(f"  {'AB'[segment] if segment < 2 else segment}")
    for slot, old, new in zip(mine, before, after, strict=True):
        edit = Edit(rows.edit[slot])
        text.append(" ")
        if edit is Edit.NONE:
            text.append(old, style="dim" if rows.special[slot] else "")
        else:
            text.append(f"{old}=" if edit is Edit.KEEP else f"{old}→{new}", style=STYLES.get(edit.name.lower(), "bold"))
    return text


def print_rates(found: dict[str, Any], console: Console) -> None:
    from maskery.cli.output import counted

    asked = found["nominal"]
    told = f"measured over {counted(found['rows'], 'row')}, {counted(found['tokens'], 'position')}"
    console.print(f"{told} (recipe's own figure behind)")
    lines = {"chosen": f"{_percent(found['chosen_rate'])} of ordinary positions  ({_percent(asked['chosen_rate'])})"}
    for name in {**asked["replaced"], **found["replaced"]}:
        share = f"{_percent(found['replaced'].get(name, 0.0))} of the chosen"
        lines[f"  {name}"] = f"{share}  ({_percent(asked['replaced'].get(name, 0.0))})"
    for name, share in found["pair"].items():
        lines[f"pair {name}"] = f"{_percent(share)} of pairs"
    if found["replaced"]:
        spans = found["span_words"]
        lines["unit"] = str(found["unit"])
        lines["runs of chosen"] = f"{spans['mean']:.2f} words in the mean: {_histogram(spans['histogram'])}"
        lines["spans as drawn"] = f"{spans['drawn_mean']:.2f} words in the mean: {_histogram(spans['drawn_histogram'])}"
        lines["words split"] = f"{_percent(found['words_split'])} of the words touched"
    if len(found["corpora"]) > 1:
        for name, share in asked["corpora"].items():
            lines[f"corpus {name}"] = f"{_percent(found['corpora'][name])} of rows  ({_percent(share)})"
    width = max(map(len, lines))
    for name, value in lines.items():
        console.print(f"  {name:{width}}  {value}")


def _percent(share: float) -> str:
    return f"{100 * share:.2f} %"


def _histogram(shares: dict[str, float]) -> str:
    ordered = sorted(shares.items(), key=lambda item: int(item[0]))
    shown = ", ".join(f"{length}: {_percent(share)}" for length, share in ordered[:10])
    return shown + (f", longer: {_percent(sum(share for _, share in ordered[10:]))}" if len(ordered) > 10 else "")
