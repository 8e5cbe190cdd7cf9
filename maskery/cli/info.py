"""`maskery info`: what a model, a run or a recipe is made of and what it costs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from maskery.cli.settings import (
    HtmlOption,
    JsonOption,
    LangOption,
    PickleOption,
    SetOption,
    SizeOption,
    parse_memory,
    parse_settings,
)
from maskery.errors import InputError, UnknownName
from maskery.language import phrases

if TYPE_CHECKING:
    from maskery.checkpoint.model import Model
    from maskery.checkpoint.whole import Whole
    from maskery.recipes.recipe import Recipe

VOCABULARY = 30522
"""Pieces of the vocabulary when a recipe is described and none is given: BERT's own in English."""
ROWS = 32


@dataclass(frozen=True)
class Asked:
    """At what size memory and operations are told."""

    rows: int
    length: int | None
    """None = of the recipe, or the longest that a folder's model reads."""
    memory: int | None
    draw: Path | None


def info(
    sources: Annotated[
        list[str], typer.Argument(metavar="PATH|RECIPE", help="A model or run folder, or a recipe; or several runs.")
    ],
    size: SizeOption = None,
    vocab: Annotated[
        int | None, typer.Option("--vocab", min=1, help=f"Size of a recipe's vocabulary; {VOCABULARY:,} if not given.")
    ] = None,
    settings: SetOption = None,
    batch: Annotated[int, typer.Option("--batch", min=1, metavar="ROWS", help="Rows at once, for the memory.")] = ROWS,
    length: Annotated[
        int | None, typer.Option("--length", min=1, metavar="T", help="Slots of a row; the recipe's if not given.")
    ] = None,
    memory: Annotated[
        str | None, typer.Option("--memory", metavar="16G", help="Tell how many rows fit into so much memory.")
    ] = None,
    allow_pickle: PickleOption = False,
    draw: Annotated[
        Path | None, typer.Option("--draw", metavar="FILE", help="Draw the network: .svg, or a page, .html.")
    ] = None,
    html: HtmlOption = None,
    lang: LangOption = None,
    as_json: JsonOption = False,
) -> None:
    """Describe a model, a recipe or a run: shape, parameters, cost, how far a run came. Several runs are compared."""
    from maskery.cli.info_lines import print_facts
    from maskery.cli.output import emit_json
    from maskery.picture import require_place

    folders = [source for source in sources if _is_folder(source)]
    if folders and (size is not None or vocab is not None or settings):
        raise InputError(
            f"{folders[0]} is a folder: its size and vocabulary are fixed",
            repair="leave out --size, --vocab and --set, or give a recipe",
        )
    if len(sources) > 1 and draw is not None:
        raise InputError(
            f"--draw draws one network, not {len(sources)}", repair=f"maskery info {sources[0]} --draw ..."
        )
    asked = Asked(batch, length, None if memory is None else parse_memory(memory), draw)
    if draw is not None:
        require_place(draw)
    if len(sources) > 1 or html is not None:
        _draw(sources, html)
    if len(sources) > 1:
        _compare(sources, as_json)
        return
    if folders:
        facts = _of_folder(folders[0], allow_pickle, asked)
    else:
        try:
            facts = _of_recipe(sources[0], size, vocab or VOCABULARY, parse_settings(settings), asked)
        except UnknownName as error:
            if error.kind != "recipe":
                raise
            cause = "no such folder, and no recipe of this name"
            raise InputError(cause, where=sources[0], repair=error.repair) from None
    emit_json(facts) if as_json else print_facts(facts)


def _draw(sources: list[str], html: Path | None) -> None:
    """Write the page of the runs, if one is wanted; anything but runs is refused."""
    from maskery.cli.output import save_picture
    from maskery.cli.trained import kind_of, page_of
    from maskery.explain.runs import comparison
    from maskery.picture import require_place

    if len(sources) == 1 and html is not None and kind_of(Path(sources[0])) is not None:
        require_place(html)
        save_picture(page_of(Path(sources[0]), phrases().lang), html)
        return
    for source in sources:
        if not is_run(source):
            raise InputError(
                "is no run folder: only runs have curves and can be compared",
                where=source,
                repair="give runs of maskery pretrain, one run of finetune or vectors train, or leave out --html",
            )
    if html is not None:
        require_place(html)
        save_picture(comparison(sources, lang=phrases().lang), html)


def _compare(sources: list[str], as_json: bool) -> None:
    from maskery.cli.output import emit_json, results
    from maskery.cli.run_summary import print_comparison
    from maskery.explain.history import histories
    from maskery.explain.runs import differences, summary

    runs = histories(sources)
    facts = [summary(run) for run in runs]
    if as_json:
        emit_json({"runs": facts, "differences": differences(runs)})
    else:
        print_comparison(runs, facts, results())


def is_run(source: str) -> bool:
    from maskery.train.folder import RunFolder

    return RunFolder(Path(source)).begun


def _is_folder(source: str) -> bool:
    """A folder wins over a recipe of the same name, a recipe over a downloaded model; what looks like a path and is no
    recipe file is a folder, too."""
    from maskery import hub
    from maskery.recipes.layers import names

    path = Path(source)
    if path.is_dir() or (path.suffix != ".toml" and (path.is_file() or len(path.parts) > 1)):
        return True
    return source not in names() and hub.in_cache(source) is not None


def _of_folder(source: str, allow_pickle: bool, asked: Asked) -> dict[str, Any]:
    """A model; of a run its summary first, and its model if one is saved."""
    from maskery.checkpoint.load import load
    from maskery.cli.info_vectors import model_and_vectors

    if not is_run(source):
        trained = _of_trained(source)
        if trained and not (Path(source) / "config.json").is_file():
            return trained  # nothing but checkpoints so far, or an ensemble
        model, vectors = model_and_vectors(source, allow_pickle)
        return _of_model(source, model, None, asked) | ({"vectors": vectors} if vectors else {}) | trained
    from maskery.checkpoint.locate import saved_steps
    from maskery.explain.history import histories
    from maskery.explain.runs import sparkline, summary
    from maskery.files import MANIFEST
    from maskery.train.folder import RunFolder

    run = histories(source)[0]
    told = {"source": source, "kind": "run", "run": {**summary(run), "sparkline": sparkline(run)}}
    if not saved_steps(Path(source)) and not (Path(source) / MANIFEST).is_file():
        if asked.draw is not None:
            raise InputError(
                "this run has saved no model yet",
                where=source,
                repair=f"draw its recipe: maskery info {Path(source) / 'recipe.toml'} --draw {asked.draw}",
            )
        return told
    recipe = RunFolder(Path(source)).recipe
    return {**_of_model(source, load(source, allow_pickle=allow_pickle), recipe, asked), **told}


def _of_trained(source: str) -> dict[str, Any]:
    """A run of `finetune` or `vectors train`; nothing where it is neither."""
    from maskery.cli.trained import facts_of, kind_of

    kind = kind_of(Path(source))
    return {} if kind is None else {"source": source, "kind": kind, "trained": facts_of(Path(source))}


def _of_model(source: str, model: Model, recipe: Recipe | None, asked: Asked) -> dict[str, Any]:
    from maskery.checkpoint.whole import whole_of

    tokenizer, report = model.tokenizer, model.report
    whole = whole_of(model, model.config.vocabulary)
    if asked.draw is not None:
        _draw_network(whole, model.config.visibility if recipe is None else recipe, source, asked.draw)
    return {
        "source": source,
        "kind": "model",
        "family": model.family,
        "heads": list(model.heads),
        **_cost(whole, recipe, asked),
        "tokenizer": None if tokenizer is None else {"kind": tokenizer.kind, "vocabulary": tokenizer.vocabulary},
        "notes": [*([model.note] if model.note else []), *model.reasons, *report.notes],
        "missing": list(report.missing),
        "unused": list(report.unused),
        "ignored": list(report.ignored),
    }


def _of_recipe(
    source: str, size: str | None, vocabulary: int, overrides: dict[str, Any], asked: Asked
) -> dict[str, Any]:
    from maskery.recipes.recipe import check, recipe

    resolved = recipe(source, overrides, size=size)
    from maskery.checkpoint.families import choose
    from maskery.checkpoint.folder import held_by
    from maskery.checkpoint.whole import whole_of

    whole = whole_of(resolved, vocabulary)
    choice = choose(whole.network.shape, held_by(whole.network, whole.heads), None)
    if asked.draw is not None:
        _draw_network(whole, resolved, resolved.name, asked.draw)
    return {
        "source": source,
        "kind": "recipe",
        "family": choice.name,
        "heads": list(whole.heads),
        **_cost(whole, resolved, asked),
        "notes": [*choice.reasons, *(f"pretrain refuses it: {each.piece}: {each.reason}" for each in check(resolved))],
    }


def _draw_network(whole: Whole, read: Recipe | str, title: str, path: Path) -> None:
    from maskery.cli.output import save_picture
    from maskery.explain.network import network_picture

    save_picture(network_picture(whole, read, title, phrases().lang), path)


def _cost(whole: Whole, recipe: Recipe | None, asked: Asked) -> dict[str, Any]:
    from maskery.checkpoint.parts import embedding_arithmetic
    from maskery.model.config import COUNTED
    from maskery.train.estimate import needs_of

    shape, small = whole.network.shape, whole.generator
    length = asked.length or (shape.max_length if recipe is None else recipe.training.length)
    if shape.positions in COUNTED and length > shape.max_length:
        raise InputError(
            f"rows of {length} slots, but the learned positions end at {shape.max_length}",
            repair=f"--length {shape.max_length}",
        )
    needs = needs_of(whole, recipe)
    return {
        "parameters": whole.parameters(),
        "parts": [part.plain() for part in whole.parts()],
        "generator": None if small is None else _beside(small),
        "embedding": embedding_arithmetic(shape),
        "memory": needs.memory(asked.rows, length, asked.memory),
        "operations": needs.operations(length),
        "shape": shape.plain(),
    }


def _beside(small: Whole) -> dict[str, Any]:
    return {
        "heads": list(small.heads),
        "parts": [part.plain() for part in small.parts()],
        "shape": small.network.shape.plain(),
    }
