"""The verb: its options, and a folder that is left whole or not at all. The steps are in `steps`.

Heavy imports stay inside the functions, so that a wrong option is refused at once.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from maskery.cli.settings import JsonOption, LangOption
from maskery.errors import ExistsError, InputError, Stopped
from maskery.language import chosen


def demo(
    text: Annotated[
        Path | None, typer.Option("--text", metavar="FILE", help="Your own text: whatever corpus build reads.")
    ] = None,
    lang: LangOption = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="A new folder; by default a temporary one.")
    ] = None,
    budget: Annotated[
        str | None, typer.Option("--budget", metavar="TIME", help="For training; 140s, or less on a slow machine.")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", metavar="N", min=0, help="Of everything that is drawn.")] = 0,
    as_json: JsonOption = False,
) -> None:
    """Pretrain a small model on text that is already there, examine it and write a report."""
    from maskery.cli.demo.words import WORDS

    if text is not None and not text.exists():
        raise InputError("no such file", where=text, repair="check the name, or leave --text out")
    from maskery.cli.demo.show import show
    from maskery.cli.demo.steps import walk
    from maskery.cli.demo.story import Story
    from maskery.cli.output import emit_json
    from maskery.train.budget import parse_budget

    seconds = None if budget is None else parse_budget(budget)
    with _folder(out) as folder:
        found = walk(Story(WORDS[chosen(lang)]), folder, text, seconds, seed)
    emit_json(found.plain()) if as_json else show(found)


@contextmanager
def _folder(out: Path | None) -> Iterator[Path]:
    """A folder of our own; whatever goes wrong, it is taken away again, so that the same command can be given anew."""
    from maskery.files import require_writable

    if out is not None:
        if out.exists() and not (out.is_dir() and not any(out.iterdir())):
            raise ExistsError("is already there", where=out, repair=f"choose another --out, or remove it: rm -r {out}")
        require_writable(out)
    folder = Path(tempfile.mkdtemp(prefix="maskery-demo-")) if out is None else out
    folder.mkdir(parents=True, exist_ok=True)
    try:
        yield folder
    except BaseException as error:
        shutil.rmtree(folder, ignore_errors=True)
        if isinstance(error, Stopped):
            raise Stopped(
                f"stopped; {folder} is removed", signal_number=error.exit_code - 128, repair="start it again"
            ) from None
        raise
