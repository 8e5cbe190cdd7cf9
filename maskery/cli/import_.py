"""`maskery import`: a published model, from Google's TensorFlow files or from Hugging Face, as a folder of ours."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from maskery.cli.settings import JsonOption, PickleOption
from maskery.errors import UnknownName

if TYPE_CHECKING:
    from maskery.checkpoint.importing import Case, ImportReport

_CASES = ("cased", "uncased")


def import_(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="DIR",
            help="A folder of TensorFlow or Hugging Face files, one checkpoint in it, or a name in the cache.",
        ),
    ],
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FOLDER", help="The new folder; DIR-maskery if not given.")
    ] = None,
    config: Annotated[
        Path | None, typer.Option("--config", metavar="FILE", help="The config, where it is not beside the checkpoint.")
    ] = None,
    vocab: Annotated[
        Path | None,
        typer.Option("--vocab", metavar="FILE", help="The vocab.txt, where it is not beside the checkpoint."),
    ] = None,
    case: Annotated[
        str | None, typer.Option("--case", metavar="CASE", help="cased or uncased, where the vocabulary misleads.")
    ] = None,
    allow_pickle: PickleOption = False,
    as_json: JsonOption = False,
) -> None:
    """Read a published model, check it, and write it as a folder that every command opens."""
    if case is not None and case not in _CASES:
        raise UnknownName("case", case, _CASES)
    from maskery.checkpoint.importing import import_model
    from maskery.cli.output import emit_json, late_progress

    target = out or _beside(source)
    with late_progress("import", 1.0) as told:
        report = import_model(
            source,
            target,
            config=config,
            vocabulary=vocab,
            case=cast("Case | None", case),
            allow_pickle=allow_pickle,
            tell=lambda done, total, what: told(done / max(1, total)),
        )
    facts = _facts(report)
    emit_json(facts) if as_json else _print(facts)


def _beside(source: Path) -> Path:
    named = source if source.name not in ("", "..") else source.resolve()
    return named.with_name(named.name.removesuffix(".index") + "-maskery")


def _facts(report: ImportReport) -> dict[str, Any]:
    model = report.model
    tokenizer = model.tokenizer
    return {
        "source": report.source,
        "format": report.format,
        "family": model.family,
        "tensors": {"used": report.used, "unused": list(report.unused), "skipped": len(report.state)},
        "parameters": model.parameters_by_part(),
        "heads": list(model.heads),
        "generator": None if model.generator is None else list(model.generator.heads),
        "tokenizer": None if tokenizer is None else {"kind": tokenizer.kind, "vocabulary": tokenizer.vocabulary},
        "notes": list(report.notes),
        "out": report.out,
    }


def _print(facts: dict[str, Any]) -> None:

    from maskery.cli.output import results

    lines, console = _lines(facts), results()
    width = max(len(key) for key, _ in lines)
    for key, value in lines:
        console.print(f"{key:{width}}  {value}", soft_wrap=True)


def _lines(facts: dict[str, Any]) -> list[tuple[str, str]]:
    from maskery.checkpoint.state import told
    from maskery.cli.output import counted

    found, tokenizer = facts["tensors"], facts["tokenizer"]
    lines = [
        ("read", facts["source"]),
        ("format", facts["format"]),
        ("family", facts["family"]),
        ("tensors used", f"{found['used']:,}"),
        *told({"unused": found["unused"]}).items(),
    ]
    if found["skipped"]:
        lines.append(("skipped", f"{counted(found['skipped'], 'variable')} of the optimiser and its counters"))
    lines.append(("heads", ", ".join(facts["heads"]) or "none"))
    if facts["generator"] is not None:
        lines.append(("generator", f"in generator/, heads: {', '.join(facts['generator']) or 'none'}"))
    if tokenizer:
        lines.append(("tokenizer", f"{tokenizer['kind']}, {tokenizer['vocabulary']:,} pieces"))
    lines += [(f"parameters, {part}", f"{number:,}") for part, number in facts["parameters"].items()]
    lines += [("note", note) for note in facts["notes"]]
    return [*lines, ("written", facts["out"])]
