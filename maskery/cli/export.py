"""`maskery export`: a model or a run's model as a folder that Hugging Face's tools open."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from maskery.cli.settings import JsonOption, PickleOption


def export(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A model or run folder.")],
    out: Annotated[Path, typer.Option("--out", metavar="FOLDER", help="The new folder.")],
    family: Annotated[
        str | None,
        typer.Option("--family", metavar="NAME", help="The model_type to write; if not given, one that fits."),
    ] = None,
    allow_pickle: PickleOption = False,
    as_json: JsonOption = False,
) -> None:
    """Write a model in the layout of Hugging Face, without what only a run needs. What it cannot hold is refused."""
    from maskery.checkpoint.exporting import export_model
    from maskery.checkpoint.load import load
    from maskery.cli.output import emit_json, say, say_found

    loaded = load(model, allow_pickle=allow_pickle)
    say_found(loaded)
    saved = export_model(loaded, out, family)
    for note in saved.notes:
        say(note)
    facts = {"source": model, "family": saved.family, "files": list(saved.files), "out": str(out)}
    emit_json(facts) if as_json else _print(facts)


def _print(facts: dict[str, Any]) -> None:
    from maskery.cli.output import results

    results().print(f"{facts['out']}: {facts['family']}, {', '.join(facts['files'])}", soft_wrap=True)
