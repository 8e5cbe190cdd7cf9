"""`maskery info`: what a model, a run or a recipe is made of and what it costs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from maskery.cli.settings import HtmlOption, JsonOption, PickleOption, SetOption, SizeOption, parse_settings
from maskery.errors import InputError, UnknownName

if TYPE_CHECKING:
    from maskery.checkpoint.model import Model
    from maskery.model.config import Shape

VOCABULARY = 30522
"""Pieces of the vocabulary when a recipe is described and none is given: BERT's own in English."""


def info(
    sources: Annotated[
        list[str], typer.Argument(metavar="PATH|RECIPE", help="A model or run folder, or a recipe; or several runs.")
    ],
    size: SizeOption = None,
    vocab: Annotated[
        int | None, typer.Option("--vocab", min=1, help=f"Size of a recipe's vocabulary; {VOCABULARY:,} if not given.")
    ] = None,
    settings: SetOption = None,
    allow_pickle: PickleOption = False,
    html: HtmlOption = None,
    as_json: JsonOption = False,
) -> None:
    """Describe a model, a recipe or a run: shape, parameters, cost, how far a run came. Several runs are compared."""
    from maskery.cli.output import emit_json

    folders = [source for source in sources if _is_folder(source)]
    if folders and (size is not None or vocab is not None or settings):
        raise InputError(
            f"{folders[0]} is a folder: its size and vocabulary are fixed",
            repair="leave out --size, --vocab and --set, or give a recipe",
        )
    if len(sources) > 1 or html is not None:
        _draw(sources, html)
    if len(sources) > 1:
        _compare(sources, as_json)
        return
    if folders:
        facts = _of_folder(folders[0], allow_pickle)
    else:
        try:
            facts = _of_recipe(sources[0], size, vocab or VOCABULARY, parse_settings(settings))
        except UnknownName as error:
            if error.kind != "recipe":
                raise
            cause = "no such folder, and no recipe of this name"
            raise InputError(cause, where=sources[0], repair=error.repair) from None
    emit_json(facts) if as_json else _print(facts)


def _draw(sources: list[str], html: Path | None) -> None:
    """Write the page of the runs, if one is wanted; anything but runs is refused."""
    from maskery.cli.output import save_picture
    from maskery.explain.runs import comparison
    from maskery.picture import require_place

    for source in sources:
        if not is_run(source):
            raise InputError(
                "is no run folder: only runs have curves and can be compared",
                where=source,
                repair="give folders that maskery pretrain wrote, or one model or recipe without --html",
            )
    if html is not None:
        require_place(html)
        save_picture(comparison(sources), html)


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
    """A folder wins over a recipe of the same name; what looks like a path and is no recipe file is one, too."""
    path = Path(source)
    return path.is_dir() or (path.suffix != ".toml" and (path.is_file() or len(path.parts) > 1))


def _of_folder(source: str, allow_pickle: bool) -> dict[str, Any]:
    """A model; of a run its summary first, and its model if one is saved."""
    from maskery.checkpoint.load import load

    if not is_run(source):
        return _of_model(source, load(source, allow_pickle=allow_pickle))
    from maskery.checkpoint.locate import saved_steps
    from maskery.explain.history import histories
    from maskery.explain.runs import sparkline, summary
    from maskery.files import MANIFEST

    run = histories(source)[0]
    told = {"source": source, "kind": "run", "run": {**summary(run), "sparkline": sparkline(run)}}
    if not saved_steps(Path(source)) and not (Path(source) / MANIFEST).is_file():
        return told
    return {**_of_model(source, load(source, allow_pickle=allow_pickle)), **told}


def _of_model(source: str, model: Model) -> dict[str, Any]:
    tokenizer, report = model.tokenizer, model.report
    facts = _cost(model.config, model.parameters_by_part(), model.config.max_length)
    return {
        "source": source,
        "kind": "model",
        "family": model.family,
        "heads": list(model.heads),
        **facts,
        "tokenizer": None if tokenizer is None else {"kind": tokenizer.kind, "vocabulary": tokenizer.vocabulary},
        "notes": [*([model.note] if model.note else []), *report.notes],
        "missing": list(report.missing),
        "unused": list(report.unused),
        "ignored": list(report.ignored),
    }


def _of_recipe(source: str, size: str | None, vocabulary: int, overrides: dict[str, Any]) -> dict[str, Any]:
    """No weight is made: modules of the meta device have sizes only."""
    from maskery.recipes.recipe import recipe

    resolved = recipe(source, overrides, size=size)
    import torch

    from maskery.checkpoint.families import choose
    from maskery.checkpoint.folder import state_of
    from maskery.checkpoint.parts import parameters_by_part
    from maskery.system import System

    with torch.device("meta"):
        system = System(resolved, vocabulary)
    network, heads = system.network, dict(system.heads.items())
    choice = choose(network.shape, state_of(network, heads), None)
    return {
        "source": source,
        "kind": "recipe",
        "family": choice.name,
        "heads": list(heads),
        **_cost(network.shape, parameters_by_part(network, heads), resolved.training.length),
        "notes": list(choice.reasons),
    }


def _cost(shape: Shape, parameters: dict[str, int], length: int) -> dict[str, Any]:
    from maskery.checkpoint.parts import embedding_arithmetic, memory, operations

    return {
        "parameters": parameters,
        "embedding": embedding_arithmetic(shape),
        "memory": memory(parameters["total"]),
        "operations": operations(shape, length),
        "shape": shape.plain(),
    }


def _print(facts: dict[str, Any]) -> None:
    from rich.table import Table

    from maskery.cli.output import results

    grid = Table.grid(padding=(0, 2, 0, 0))
    for key, value in _lines(facts):
        grid.add_row(key, value)
    results().print(grid)


def _lines(facts: dict[str, Any]) -> list[tuple[str, str]]:
    from maskery.checkpoint.state import KINDS, told
    from maskery.cli.run_summary import run_lines

    lines = [(facts["kind"], facts["source"])]
    if "run" in facts:
        lines += run_lines(facts["run"], facts["run"]["sparkline"])
    if "family" not in facts:
        return lines
    shape, cost, work = facts["shape"], facts["memory"], facts["operations"]
    lines += [
        ("family", facts["family"]),
        ("shape", f"{shape['layers']} layers, width {shape['width']}, {shape['heads']} heads, "
                  f"feed-forward {shape['feedforward']}, {shape['norm']}-norm, {shape['activation']}"),
        ("positions", f"{shape['positions']}, rows up to {shape['max_length']} slots"),
        ("vocabulary", f"{shape['vocabulary']:,}"),
        ("heads", ", ".join(facts["heads"]) or "none"),
    ]  # fmt: skip
    if facts.get("tokenizer"):
        lines.append(("tokenizer", f"{facts['tokenizer']['kind']}, {facts['tokenizer']['vocabulary']:,} pieces"))
    lines += [(f"parameters, {part}", f"{number:,}") for part, number in facts["parameters"].items()]
    lines += [
        ("word embedding", facts["embedding"]["line"]),
        ("memory", f"{_mebibytes(cost['weights_bytes'])} of weights; {_mebibytes(cost['training_bytes'])} in training "
                   "with gradients and the optimiser's averages, activations on top"),
        ("operations", f"{work['forward_per_token'] / 1e6:,.1f} million a token in rows of {work['length']}; "
                       f"{work['training_per_token'] / 1e6:,.1f} in training"),
    ]  # fmt: skip
    lines += told({kind: facts.get(kind, ()) for kind in KINDS}).items()
    return lines + [("note", note) for note in facts["notes"]]


def _mebibytes(number: int) -> str:
    return f"{number / 2**20:,.1f} MiB"
