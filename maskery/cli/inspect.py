"""`maskery inspect`: the rows that training will see, what was done to them, measured rates beside the recipe's; or one
sentence under several recipes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from maskery.cli.corpora import corpus_option, open_corpora
from maskery.cli.settings import HtmlOption, JsonOption, LangOption, SetOption, SizeOption, parse_settings
from maskery.errors import InputError
from maskery.language import Phrases, phrases

if TYPE_CHECKING:
    from maskery.corpus.mixture import Corpora
    from maskery.explain.flow import Flow
    from maskery.feed import Feed
    from maskery.inspection import Rates
    from maskery.recipes.recipe import Recipe
    from maskery.text.tokenizer import Tokenizer

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
    "left_out_sentences": (
        "sentence without a second one for its pair, left out",
        "sentences without a second one for their pairs, left out",
    ),
    "segments_from_elsewhere": (
        "second segment from elsewhere in the text",
        "second segments from elsewhere in the text",
    ),
    "empty_sentences": ("sentence without a token, left out", "sentences without a token, left out"),
    "empty_documents": ("document without a token, left out", "documents without a token, left out"),
    "long_sentences": ("sentence that no row can hold whole", "sentences that no row can hold whole"),
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
    text: Annotated[str | None, typer.Option("--text", metavar="TEXT", help="Corrupt this text instead.")] = None,
    pair: Annotated[str | None, typer.Option("--pair", metavar="TEXT", help="A second text, read as a pair.")] = None,
    order: Annotated[
        str | None, typer.Option("--order", metavar="N,N", help="Predict the tokens of --text in this order (xlnet).")
    ] = None,
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
    lang: LangOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the rows that training will see, and measure what corruption did to many of them."""
    from maskery.picture import require_place
    from maskery.recipes.recipe import recipe as read

    names = _names(recipe, compare)
    given: dict[str, int | str | None] = {"--rows": rows, "--step": step, "--draws": draws, "--compare": compare}
    _require_one_view(flow, text, given | {"--model": model, "--pair": pair, "--order": order})
    if html is not None:
        require_place(html)
    out = Out(html, as_json, phrases(lang))
    changes = parse_settings(settings)
    asked = {name: read(name, changes, size=size) for name in names}
    first = next(iter(asked.values()))
    _require_step(step, asked)
    seed = first.training.seed if seed is None else seed
    store = open_corpora(corpus) if corpus else None
    if text is not None:
        _show_text(asked, store, TextView(text, pair, _turns(order), draws, seed, step, flow), out)
    elif flow or store is None:
        _require_corpus(store, flow, {"--rows": rows, "--step": step})
        _show_flow(first, store, seed, out, layers=flow)
    else:
        _show_rows(first, store, MEASURED if rows is None else rows, step or 0, seed, out, model)
        _say_chosen(names[0], size, changes)


@dataclass(frozen=True)
class Out:
    """Where results go, and in which language."""

    html: Path | None
    as_json: bool
    words: Phrases


@dataclass(frozen=True)
class TextView:
    """A text of the user's, and how it is looked at."""

    text: str
    pair: str | None
    order: tuple[int, ...] | None
    draws: int | None
    seed: int
    step: int | None
    flow: bool


def _turns(order: str | None) -> tuple[int, ...] | None:
    """ "3,1,2" or "3 1 2" -> (3, 1, 2)"""
    if order is None:
        return None
    parts = order.replace(",", " ").replace("→", " ").split()
    if not parts or not all(part.isdecimal() for part in parts):
        raise InputError(f"--order {order!r} is no list of numbers", repair="--order 3,2,4,1: tokens, counted from 1")
    return tuple(map(int, parts))


def _require_corpus(store: Corpora | None, flow: bool, given: dict[str, int | None]) -> None:
    """Without a corpus a made-up row is drawn; whatever asks for rows is refused."""
    if store is not None or flow:
        return
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
    if text is None:
        for name in ("--compare", "--draws", "--pair", "--order"):
            if given[name] is not None and not (flow and name in ("--compare", "--draws")):
                raise InputError(f"{name} is about a text, and there is none", repair='add --text "a sentence"')
    unused: list[str] = []
    if flow:
        unused = [name for name in ("--compare", "--draws", "--model") if given[name] is not None]
        unused += ["--step"] * (given["--step"] is not None and text is None)
    elif text is not None:
        unused += [name for name in ("--rows", "--model") if given[name] is not None]
    if given["--order"] is not None and (given["--compare"] is not None or given["--draws"] is not None):
        raise InputError(
            "--order draws one recipe once, in the order that is given", repair="leave out --compare and --draws"
        )
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


def _show_flow(asked: Recipe, store: Corpora | None, seed: int, out: Out, *, layers: bool) -> None:
    from maskery.cli.output import say
    from maskery.explain.flow import flow_of, short_feed

    if store is not None:
        _plan(short_feed(asked, store, seed), 0)
    drawn = flow_of(asked, store, seed)
    _print_drawn(drawn, out, layers=layers)
    if not layers:
        say(
            "a made-up row; --text shows a text of yours, --corpus DIR rows of text and measures them, "
            "--flow what every layer knows"
        )
    drawn.require_no_leak()


def _print_drawn(drawn: Flow, out: Out, *, layers: bool) -> None:
    from maskery.cli.flow import print_flow
    from maskery.cli.output import emit_json, results, save_picture
    from maskery.explain.matrices import flow_picture

    if out.html is not None:
        save_picture(flow_picture(drawn, layers=layers, lang=out.words.lang), out.html)
    if out.as_json:
        emit_json({"recipe": drawn.recipe, "flow": drawn.plain()})
    else:
        print_flow(drawn, results(), layers=layers, lang=out.words.lang)


def _show_text(asked: dict[str, Recipe], store: Corpora | None, view: TextView, out: Out) -> None:
    """A text of the user's: its draws, and below them its order and targets where there is more to see than that
    everybody sees everybody; or the flow alone."""
    from maskery.cli.knowledge import prepare
    from maskery.cli.output import say
    from maskery.explain.own_flow import MOST, Own, flow_of_text
    from maskery.explain.own_row import own_vocabulary, read_texts

    source = own_vocabulary(*filter(None, (view.text, view.pair))) if store is None else store
    if store is None:
        say("no --corpus: the vocabulary is the words of the text, Chinese by characters")
    else:
        for recipe in asked.values():
            prepare(recipe, store)
    first = next(iter(asked.values()))
    short = read_texts(view.text, view.pair, source).size <= MOST
    drawn = None
    if view.flow or view.order is not None or (len(asked) == 1 and short):
        own = Own(text=view.text, pair=view.pair, order=view.order)
        drawn = flow_of_text(first, source, own, view.seed, view.step)
    if view.flow or view.order is not None:
        assert drawn is not None
        _print_drawn(drawn, out, layers=view.flow)
        drawn.require_no_leak()
    else:
        _show_draws(asked, source, view, drawn, out)


def _show_draws(
    asked: dict[str, Recipe], source: Corpora | Tokenizer, view: TextView, drawn: Flow | None, out: Out
) -> None:
    from maskery.cli.flow import print_flow
    from maskery.cli.output import emit_json, results, save_picture, say
    from maskery.cli.sentence import print_sentence
    from maskery.explain.flow import flow_of, reads_in_order
    from maskery.explain.matrices import flow_picture
    from maskery.explain.sentence import masked_sentence
    from maskery.feed import Feed
    from maskery.picture import report
    from maskery.text.tokenizer import Tokenizer
    from maskery.train import knowledge

    for recipe in asked.values():
        if recipe.corruption.replace.similar and recipe.knowledge.synonyms and not isinstance(source, Tokenizer):
            for remark in knowledge.tell(Feed(recipe, source, view.seed)):
                say(remark)
    many = DRAWS if view.draws is None else view.draws
    found = masked_sentence(asked, source, view.text, many, view.seed, view.step, view.pair)
    ordered = drawn if drawn is not None and reads_in_order(next(iter(asked.values()))) else None
    if out.html is not None:
        lang = out.words.lang
        pictures = [found.picture(lang)] + ([] if ordered is None else [flow_picture(ordered, layers=False, lang=lang)])
        page = pictures[0] if len(pictures) == 1 else report(pictures[0].title, [("", [], pictures)], lang)
        save_picture(page, out.html)
    if out.as_json:
        emit_json(found.plain() | ({} if ordered is None else {"flow": ordered.plain()}))
    else:
        print_sentence(found, results(), out.words.lang)
        if ordered is not None:
            print_flow(ordered, results(), layers=False, lang=out.words.lang)
    for recipe in asked.values():
        (drawn or flow_of(recipe, None, view.seed)).require_no_leak()


def _show_rows(asked: Recipe, store: Corpora, count: int, step: int, seed: int, out: Out, model: str | None) -> None:
    from maskery.cli.flow import print_flow
    from maskery.cli.knowledge import prepare
    from maskery.cli.output import emit_json, late_progress, results, save_picture, say
    from maskery.cli.rates import print_rates
    from maskery.cli.rows import SHOWN, print_rows
    from maskery.explain.drawn import generator_of
    from maskery.explain.flow import flow_of, reads_in_order, short_feed
    from maskery.explain.rows import rows_picture
    from maskery.feed import Feed
    from maskery.inspection import rates
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
    _plan(short_feed(asked, store, seed), 0)
    sight = flow_of(asked, store, seed)
    if out.html is not None:
        save_picture(rows_picture(feed, found, generator=generator, lang=out.words.lang), out.html)
    if out.as_json:
        emit_json(found.plain() | drawn | {"leaks": sight.leaks})
    else:
        console = results()
        print_rows(feed, step, console, min(SHOWN, count), generator, out.words)
        if reads_in_order(asked):
            print_flow(sight, console, layers=False, lang=out.words.lang)
            console.print()
        print_rates(found, console, out.words)
    _say_measured(found, feed, count, step, drawn)
    sight.require_no_leak()


def _say_chosen(recipe: str, size: str | None, changes: Mapping[str, Any]) -> None:
    """Rows are measured as the recipe has them; where `pretrain` would choose others on this machine, say so."""
    from maskery.cli.output import say
    from maskery.train.options import Options, dotted
    from maskery.train.settle import chosen_rows

    for choice in chosen_rows(Options(recipe=recipe, size=size, settings=dotted(changes))):
        if "training.length" in choice.keys:
            say(f"these are the recipe's own rows; pretrain would choose {choice.reason}")


def _say_measured(found: Rates, feed: Feed, count: int, step: int, drawn: dict[str, Any]) -> None:
    """What there is to remark about the rows that were measured."""
    from maskery.cli.output import counted, say
    from maskery.phases import phase_at
    from maskery.recipes.recipe import check

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
    for refusal in check(feed.recipe):
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
