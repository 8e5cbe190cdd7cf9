"""`maskery export`: a model or a run's model as a folder that Hugging Face's tools open, or as a file of ONNX."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from maskery.cli.settings import JsonOption, PickleOption
from maskery.errors import CheckpointError, InputError


def export(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A model or run folder.")],
    out: Annotated[Path, typer.Option("--out", metavar="FOLDER|F.onnx", help="The new folder, or the new file.")],
    family: Annotated[
        str | None,
        typer.Option("--family", metavar="NAME", help="The model_type to write; if not given, one that fits."),
    ] = None,
    head: Annotated[
        str | None,
        typer.Option(
            "--head", metavar="NAME", help="ONNX: write this head, such as masked_token; none: the encoder alone."
        ),
    ] = None,
    allow_pickle: PickleOption = False,
    as_json: JsonOption = False,
) -> None:
    """Write a model in the layout of Hugging Face, without what only a run needs, or as ONNX. What cannot be held is
    refused."""
    if out.suffix == ".onnx":
        _onnx(model, out, family, head, allow_pickle, as_json)
        return
    if head not in (None, "none"):
        raise InputError("--head chooses what a file of ONNX says", repair="give --out NAME.onnx, or leave --head out")
    from maskery.checkpoint.exporting import export_model
    from maskery.checkpoint.load import load
    from maskery.cli.output import emit_json, say, say_found

    if head is None:
        _refuse_without_its_head(Path(model))
    loaded = load(model, allow_pickle=allow_pickle)
    say_found(loaded)
    if head is not None:
        loaded.head_modules.clear()
    saved = export_model(loaded, out, family)
    for note in saved.notes:
        say(note)
    facts = {"source": model, "family": saved.family, "files": list(saved.files), "out": str(out)}
    emit_json(facts) if as_json else _print(facts)


def _refuse_without_its_head(model: Path) -> None:
    """A head of a task that is not the family's own has no place in a folder of Hugging Face."""
    from maskery.checkpoint.locate import locate
    from maskery.tasks.model import TOP_FILE

    if (locate(model)[0] / TOP_FILE).is_file():
        raise CheckpointError(
            f"the head of the task is in {TOP_FILE}: it is not the family's own head, which alone has a place in a "
            "folder of Hugging Face",
            where=model,
            repair="--out NAME.onnx writes the model with its head, --head none the encoder alone; "
            "maskery predict uses the folder as it is",
        )


def _onnx(model: str, out: Path, family: str | None, head: str | None, allow_pickle: bool, as_json: bool) -> None:
    from maskery.cli.output import emit_json, results, say
    from maskery.compress.onnx_heads import write_onnx

    if family is not None:
        raise InputError("--family names a layout of folders, and ONNX is a file", repair="leave --family out")
    made = write_onnx(model, out, head=head, allow_pickle=allow_pickle, say=say)
    facts: dict[str, Any] = {"source": model, "out": str(out), "inputs": made.inputs, "outputs": made.outputs}
    facts["difference"] = made.difference
    if as_json:
        emit_json(facts)
        return
    results().print(f"{out}: {', '.join(made.inputs)} -> {', '.join(made.outputs)}", soft_wrap=True)
    if made.difference is not None:
        results().print(
            f"onnxruntime says the same on three shapes of rows: {made.difference:.1e} at most", soft_wrap=True
        )


def _print(facts: dict[str, Any]) -> None:
    from maskery.cli.output import results

    results().print(f"{facts['out']}: {facts['family']}, {', '.join(facts['files'])}", soft_wrap=True)
