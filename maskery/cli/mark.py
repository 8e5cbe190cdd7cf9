"""`maskery corpus mark`: a corpus and word lists in, the same corpus with phrases and entities marked out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from maskery.cli.settings import JsonOption

if TYPE_CHECKING:
    from maskery.corpus.store import Corpus

_LISTS = "one entry a line, perhaps a tab and a count; may be repeated."


def mark(
    corpus: Annotated[Path, typer.Argument(metavar="CORPUS", help="A folder made by maskery corpus build.")],
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="The folder to make.")],
    phrases: Annotated[
        list[Path] | None, typer.Option("--phrases", metavar="FILE", help=f"Phrases to mark: {_LISTS}")
    ] = None,
    entities: Annotated[
        list[Path] | None, typer.Option("--entities", metavar="FILE", help=f"Entities to mark: {_LISTS}")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Mark the phrases and entities of word lists in a corpus; tokens, words and sentences stay as they are."""
    from maskery.cli.output import emit_json, progress, say
    from maskery.corpus.store import Corpus
    from maskery.files import remove_abandoned

    store = Corpus.open(corpus)
    if left := remove_abandoned(out):
        say(f"removed what an interrupted write left behind: {', '.join(left)}")
    with progress("marks") as update:
        made = store.mark(out, phrases=phrases or None, entities=entities or None, progress=update)
    asked = {name: files for name, files in (("phrases", phrases), ("entities", entities)) if files}
    for name, files in asked.items():
        for note in _remarks(made, name, files):
            say(note)
    emit_json(summary(made, list(asked))) if as_json else print_marks(made, list(asked))
    if any(marks(made)[name]["matches"] for name in asked):
        say(f"look at its rows: maskery inspect ernie --corpus {out}")


def summary(made: Corpus, asked: list[str]) -> dict[str, Any]:
    """What a script wants to know of the marks."""
    return {
        "path": str(made.path),
        "fingerprint": made.fingerprint,
        **{name: {**marks(made)[name], "share": _share(made, name)} for name in asked},
    }


def marks(made: Corpus) -> dict[str, Any]:
    found: dict[str, Any] = made.manifest["options"]["marks"]
    return found


def _share(made: Corpus, name: str) -> float:
    share: float = marks(made)[name]["tokens"] / made.counts["tokens"]
    return share


def _remarks(made: Corpus, name: str, files: list[Path]) -> list[str]:
    """What was left out, one sentence each, and a warning where nothing was found."""
    from maskery.cli.output import counted
    from maskery.knowledge.spelling import LONGEST

    counts, told = marks(made)[name], []
    if counts["repeated"]:
        told.append(f"{name}: {counts['repeated']:,} given again, or spelt alike to the tokenizer: they count once")
    if counts["unknown"]:
        told.append(f"{name}: {counts['unknown']:,} left out: they hold a token that the tokenizer does not know")
    if counts["too_long"]:
        told.append(f"{name}: {counts['too_long']:,} left out: they have more than {LONGEST} tokens")
    if counts["single"]:
        many = counted(counts["single"], "place")
        told.append(f"{name}: not marked at {many}, where the entry is one word: a word is taken whole anyway")
    if not counts["matches"]:
        listed = ", ".join(map(str, files))
        told.append(
            f"warning: nothing of {listed} is in the text as a run of whole words: no {name} are marked; "
            "check its language and spelling"
        )
    return told


def print_marks(made: Corpus, asked: list[str]) -> None:
    from maskery.cli.output import results

    console = results()
    console.print(f"{made.path}")
    for name in asked:
        counts = marks(made)[name]
        entries = "1 entry" if counts["entries"] == 1 else f"{counts['entries']:,} entries"
        rows = {
            name: f"{entries}, {counts['found']:,} of them in the text",
            "  places": f"{counts['matches']:,}",
            "  tokens": f"{counts['tokens']:,} ({100 * _share(made, name):.2f} % of all)",
        }
        for label, value in rows.items():
            console.print(f"  {label:10}  {value}")
