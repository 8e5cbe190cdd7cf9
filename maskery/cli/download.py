"""`maskery download`: fetch a published model, by its name, from the Hugging Face hub or a server like it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from maskery.cli.settings import JsonOption


def download(
    name: Annotated[str, typer.Argument(metavar="NAME", help="bert-base-chinese, or OWNER/NAME as on the hub.")],
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Write a folder; without it, the Hugging Face cache.")
    ] = None,
    revision: Annotated[
        str | None, typer.Option("--revision", metavar="R", help="A branch, tag or commit in place of the newest.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Fetch config, tokenizer and weights of a published model. HF_ENDPOINT names another server."""
    from maskery.checkpoint.download import download as fetch
    from maskery.checkpoint.download import is_pickled
    from maskery.cli.output import emit_json, results, say

    folder = fetch(name, out, revision=revision, say=say)
    names = [each.name for each in folder.iterdir()]
    given = str(folder) if out is not None or revision is not None else name
    if is_pickled(names):
        say("its weights are a pickle: give --allow-pickle where it is opened, if you trust its owner")
    elif any(each.endswith(".index") for each in names):
        say(f"its weights are TensorFlow's: maskery import {folder} --out DIR")
    emit_json({"name": name, "folder": str(folder)}) if as_json else results().print(
        f"{folder}\nmaskery info {given}", soft_wrap=True, highlight=False
    )
