"""`maskery inspect`: the rows that training will see, what was done to them, measured rates beside the recipe's; or one
sentence under several recipes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from maskery.cli.corpora import corpus_option, open_corpora
from maskery.cli.settings import HtmlOption, JsonOption, SetOption, SizeOption, parse_settings
from maskery.errors import InputError

if TYPE_CHECKING:
    from maskery.corpus.mixture import Corpora
    from maskery.feed import Feed
    from maskery.recipes.recipe import Recipe

MEASURED, DRAWS = 1000, 3
MANY_ROWS = 400_000
"""Planning as many takes about two seconds."""
_PLANNED = {
    "cut_tokens": ("token cut off, because its row was too long", "tokens cut off, because their rows were too long"),
    "cut_rows": ("row of which something was cut off", "rows of which something was cut off"),
    "one_sentence_chunks": ("chunk of a single sentence", "chunks of a single sentence"),
    "short_documents": (
        "document cut into shorter rows on purpose (rows.short)",
        "documents cut into shorter rows on purpose (rows.short)",
    ),
    "short_rows": ("row made shorter on purpose (rows.short)", "rows made shorter on purpose (rows.short)"),
    "tail_slots": ("slot left at the end, which fills no row", "slots left at the end, which fill no row"),
    "rows_without_pair": ("row too short for a pair", "rows too short for a pair"),
}
"""Counts of a plan, one and several."""


def inspect(
    recipe: Annotated[
        str | None,
        typer.Argument(metavar="RECIPE", help="A name, or the path of a .toml file. --compare names several."),
    ] = None,
    corpus: Annotated[list[str] | None, corpus_option(" Without one a made-up row is drawn.")] = None,
    rows: Annotated[int | None, typer.Option("--rows", metavar="N", help="Rows to measure: 1000.")] = None,
    step: Annotated[
        int | None, typer.Option("--step", metavar="N", help="Begin with the rows of this step: 0.")
    ] = None,
    text: Annotated[str | None, typer.Option("--text", metavar="TEXT", help="Corrupt this sentence instead.")] = None,
    compare: Annotated[
        str | None, typer.Option("--compare", metavar="A,B,...", help="Show --text under each of these recipes.")
    ] = None,
    draws: Annotated[int | None, typer.Option("--draws", metavar="N", help="How often --text is drawn: 3.")] = None,
    model: Annotated[
        str | None,
        typer.Option("--model", metavar="RUN", help="Show what this run's generator draws in the rows (electra)."),
    ] = None,
    flow: Annotated[bool, typer.Option("--flow", help="Draw who sees whom, and look for leaks.")] = False,
    size: SizeOption = None,
    settings: SetOption = None,
    seed: Annotated[int | None, typer.Option("--seed", metavar="N", help="Overrides training.seed.")] = None,
    html: HtmlOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the rows that training will see, and measure what corruption did to many of them."""
    from maskery.picture import require_place
    from maskery.recipes.recipe import recipe as read

    names = _names(recipe, compare)
    _require_one_view(
        flow, text, {"--rows": rows, "--step": step, "--draws": draws, "--compare": compare, "--model": model}
    )
    if html is not None:
        require_place(html)
    changes = parse_settings(settings)
    asked = {name: read(name, changes, size=size) for name in names}
    first = next(iter(asked.values()))
    _require_step(step, asked)
    seed = first.training.seed if seed is None else seed
    store = open_corpora(corpus) if corpus else None
    if store is None and not flow:
        _require_corpus(text, {"--rows": rows, "--step": step})
    if flow or store is None:
        _show_flow(first, store, seed, html, as_json, layers=flow)
    elif text is not None:
        _show_sentence(asked, store, text, DRAWS if draws is None else draws, seed, step, html, as_json)
    else:
        _show_rows(first, store, MEASURED if rows is None else rows, step or 0, seed, html, as_json, model)


def _require_corpus(text: str | None, given: dict[str, int | None]) -> None:
    """Without a corpus a made-up row is drawn; whatever asks for text is refused."""
    if text is not None:
        raise InputError(
            "a text is cut into tokens and words as a corpus was, and there is none", repair="--corpus DIR"
        )
    for name, value in given.items():
        if value is not None:
            raise InputError(
                f"{name} {value}: there are no rows without a corpus",
                repair=f"add --corpus DIR, or leave out {name} to draw a made-up row",
            )


def _names(recipe: str | None, compare: str | None) -> list[str]:
    """The recipes that are asked for, each once."""
    if compare is None:
        if recipe is None:
            raise InputError("no recipe is named", repair="maskery inspect bert --corpus DIR")
        return [recipe]
    names = [name.strip() for name in compare.split(",") if name.strip()]
    if recipe is not None:
        raise InputError(
            "a recipe stands before the options and others behind --compare",
            repair=f"name all of them behind --compare: --compare {','.join(dict.fromkeys([recipe, *names]))}",
        )
    if not names:
        raise InputError("--compare names no recipe", repair="--compare bert,bert-wwm")
    twice = next((name for place, name in enumerate(names) if name in names[:place]), None)
    if twice is not None:
        raise InputError(f"--compare names {twice} twice", repair=f"--compare {','.join(dict.fromkeys(names))}")
    return names


def _require_one_view(flow: bool, text: str | None, given: dict[str, int | str | None]) -> None:
    """Rows, one sentence and the flow are three views; an option of another one is refused, not passed over."""
    if given["--rows"] is not None and int(given["--rows"]) < 1:
        raise InputError(f"--rows {given['--rows']}: there is nothing to measure", repair=f"--rows {MEASURED}")
    unused = []
    if flow:
        unused = [name for name in ("--compare", "--draws", "--step", "--model") if given[name] is not None]
        unused += ["--text"] * (text is not None)
    elif text is not None:
        unused = [name for name in ("--rows", "--model") if given[name] is not None]
    else:
        for name in ("--compare", "--draws"):
            if given[name] is not None:
                raise InputError(f"{name} shows one sentence, and there is none", repair='add --text "a sentence"')
    if unused:
        view = "--flow" if flow else "--text"
        raise InputError(f"{unused[0]} has no meaning with {view}", repair=f"leave out {unused[0]} or {view}")


def _require_step(step: int | None, asked: dict[str, Recipe]) -> None:
    if step is None:
        return
    for name, recipe in asked.items():
        if not 0 <= step < recipe.training.steps:
            last = recipe.training.steps - 1
            raise InputError(
                f"--step {step}: training by {name} has the steps 0 to {last:,}",
                repair=f"--step {min(max(step, 0), last)}, or more steps: --set training.steps=N",
            )


def _show_flow(
    asked: Recipe, store: Corpora | None, seed: int, html: Path | None, as_json: bool, *, layers: bool
) -> None:
    from maskery.cli.flow import print_flow
    from maskery.cli.output import emit_json, results, save_picture, say
    from maskery.explain.flow import flow_of, short_feed
    from maskery.explain.matrices import flow_picture

    if store is not None:
        _plan(short_feed(asked, store, seed), 0)
    drawn = flow_of(asked, store, seed)
    if html is not None:
        save_picture(flow_picture(drawn, layers=layers), html)
    emit_json({"recipe": asked.name, "flow": drawn.plain()}) if as_json else print_flow(drawn, results(), layers=layers)
    if not layers:
        say("a made-up row; --corpus DIR shows rows of text and measures them, --flow what every layer knows")


def _show_sentence(
    asked: dict[str, Recipe],
    store: Corpora,
    text: str,
    draws: int,
    seed: int,
    step: int | None,
    html: Path | None,
    as_json: bool,
) -> None:
    from maskery.cli.knowledge import prepare
    from maskery.cli.output import emit_json, results, save_picture, say
    from maskery.cli.sentence import print_sentence
    from maskery.explain.sentence import masked_sentence
    from maskery.feed import Feed
    from maskery.train import knowledge

    for recipe in asked.values():
        prepare(recipe, store)
        if recipe.corruption.replace.similar and recipe.knowledge.synonyms:
            for remark in knowledge.tell(Feed(recipe, store, seed)):
                say(remark)
    found = masked_sentence(asked, store, text, draws, seed, step)
    if html is not None:
        save_picture(found.picture(), html)
    emit_json(found.plain()) if as_json else print_sentence(found, results())


def _show_rows(
    asked: Recipe,
    store: Corpora,
    count: int,
    step: int,
    seed: int,
    html: Path | None,
    as_json: bool,
    model: str | None,
) -> None:
    from maskery.cli.flow import print_flow
    from maskery.cli.knowledge import prepare
    from maskery.cli.output import counted, emit_json, late_progress, results, save_picture, say
    from maskery.cli.rates import print_rates
    from maskery.cli.rows import SHOWN, print_rows
    from maskery.explain.drawn import generator_of
    from maskery.explain.flow import flow_of, reads_in_order, short_feed
    from maskery.explain.rows import rows_picture
    from maskery.feed import Feed
    from maskery.inspection import rates
    from maskery.phases import phase_at
    from maskery.recipes.recipe import check
    from maskery.train import knowledge

    prepare(asked, store)
    feed = Feed(asked, store, seed)
    generator = None if model is None else generator_of(model, feed)
    for remark in knowledge.tell(feed):
        say(remark)
    _plan(feed, step)
    with late_progress("rows measured", count) as told:
        found = rates(feed, count, step, told)
    drawn = {} if generator is None else {"generator": generator.counts(feed, min(SHOWN, count), step)}
    if html is not None:
        save_picture(rows_picture(feed, found, generator=generator), html)
    if as_json:
        emit_json(found.plain() | drawn)
    else:
        console = results()
        print_rows(feed, step, console, min(SHOWN, count), generator)
        if reads_in_order(asked):
            _plan(short_feed(asked, store, seed), 0)
            print_flow(flow_of(asked, store, seed), console, layers=False)
            console.print()
        print_rates(found, console)
    for numbers in drawn.values():
        where = f"{counted(numbers['drawn'], 'token')} drawn in {counted(numbers['rows'], 'row')}"
        say(f"{where}, {numbers['original']} of them the original")
    if found.measured.rows < count:
        say(f"{counted(found.measured.rows, 'row')} measured, not {count:,}: then another stage begins")
    again = found.measured.rows - len(found.measured.plan_rows)
    if again:
        say(f"{again:,} of the rows came again: there are {len(found.measured.plan_rows):,} different ones in the plan")
    phase = phase_at(feed.phases, step)
    for remark in _planned(feed.plan(phase).counts):
        say(f"rows of {phase.length} slots, over the whole plan: {remark}")
    for refusal in check(asked):
        say(f"pretrain would refuse this: {refusal.piece}: {refusal.reason}\n  repair: {refusal.repair}")


def _planned(counts: Mapping[str, int]) -> Iterator[str]:
    """What had to be done to cut the text into rows."""
    for name, number in counts.items():
        if number and name not in ("rows", "tokens"):
            one, many = _PLANNED.get(name, (name.replace("_", " "),) * 2)
            yield f"{number:,} {one if number == 1 else many}"


def _plan(feed: Feed, step: int) -> None:
    """Plan the rows, with a sign of life where there are many."""
    from maskery.cli.output import progress
    from maskery.phases import phase_at

    phase = phase_at(feed.phases, step)
    tokens = sum(part.tokens.size for part in feed.parts) * feed.recipe.rows.copies
    if tokens / phase.length < MANY_ROWS:
        return
    with progress("planning rows") as update:
        update(0, math.inf, "cutting documents into rows")
        feed.plan(phase)
