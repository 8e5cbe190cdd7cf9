"""`maskery lexicon mine`: a corpus in, the phrases or entities that stand in it out, as a file for `corpus mark`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from maskery.cli.settings import JsonOption, new_app
from maskery.errors import InputError

if TYPE_CHECKING:
    from maskery.words.mining import Asked, Mined

app = new_app("Find the phrases and entities of a corpus.")

SHOWN = 10
_WHY = {
    "ends": "frequent runs begin or end with a function word, a number or a sign",
    "pmi": "do not keep together: mutual information below --min-pmi {pmi:g}",
    "entropy": "do not stand freely: entropy below --min-entropy {entropy:g}",
    "alike": "are spelt like another that is cut in other words: counted together",
    "unwritten": "cannot be written so that the tokenizer reads them back",
    "repeated": "given again in the list, or spelt alike to the tokenizer: they count once",
    "unknown": "of the list hold a token that the tokenizer does not know",
    "too_long": "of the list have more than {tokens} tokens",
    "rare": "of the list stand fewer than {count} times in the text",
    "top": "not written, because of --top",
}


@app.callback()
def lexicon() -> None:
    """Find the phrases and entities of a corpus."""


@app.command()
def mine(
    corpus: Annotated[Path, typer.Argument(metavar="CORPUS", help="A folder made by maskery corpus build.")],
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="The file to write.")],
    kind: Annotated[
        str, typer.Option("--kind", metavar="phrases|entities", help="What to look for: phrases or entities.")
    ] = "phrases",
    min_count: Annotated[int, typer.Option("--min-count", metavar="N", help="Occurrences of an entry at least.")] = 20,
    longest: Annotated[int | None, typer.Option("--longest", metavar="N", help="Words of an entry at most: 5.")] = None,
    min_pmi: Annotated[
        float | None, typer.Option("--min-pmi", metavar="X", help="Phrases: mutual information at least, in bits: 6.")
    ] = None,
    min_entropy: Annotated[
        float | None,
        typer.Option("--min-entropy", metavar="X", help="Phrases: entropy of the neighbours at least, in bits: 1.5."),
    ] = None,
    top: Annotated[
        int | None, typer.Option("--top", metavar="N", help="Write the best N only (entities: the most frequent).")
    ] = None,
    list_file: Annotated[
        Path | None,
        typer.Option("--list", metavar="FILE", help="Entities: look for those of a list, without the tagger."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Write the phrases of a corpus, or its names, to a file that maskery corpus mark reads."""
    from maskery.cli.output import emit_json, progress, say
    from maskery.corpus.store import Corpus
    from maskery.words import mining
    from maskery.words.phrases import Limits

    given: dict[str, Any] = {"words": longest, "pmi": min_pmi, "entropy": min_entropy}
    limits = replace(Limits(count=min_count), **{name: each for name, each in given.items() if each is not None})
    asked = mining.Asked(kind=cast(Any, kind), limits=limits, top=top, list_file=list_file)
    _refuse_unread(asked, longest, {"--min-pmi": min_pmi, "--min-entropy": min_entropy})
    store = Corpus.open(corpus)
    with progress(kind, 1.0) as update:
        made = mining.mine(store, out, asked, update)
    for remark in remarks(made, asked):
        say(remark)
    emit_json(summary(made, asked, out)) if as_json else print_entries(made, asked, out)
    say(f"mark them: maskery corpus mark {corpus} --{kind} {out} --out DIR")


def _refuse_unread(asked: Asked, longest: int | None, of_phrases: dict[str, float | None]) -> None:
    """Limits that what is asked for does not read."""
    unread = [name for name, value in of_phrases.items() if value is not None]
    if unread and asked.kind != "phrases":
        raise InputError(f"{unread[0]} goes with phrases", repair="leave it out, or --kind phrases")
    if longest is not None and asked.list_file is not None:
        raise InputError(
            "--longest has no meaning for the entries of a list", repair="leave it out, or leave out --list"
        )


def remarks(made: Mined, asked: Asked) -> list[str]:
    """What was left out, one sentence each."""
    from maskery.knowledge.spelling import LONGEST

    limits = asked.limits
    values = {"pmi": limits.pmi, "entropy": limits.entropy, "count": limits.count, "tokens": LONGEST}
    return [f"left out: {many:,} {_WHY[why].format(**values)}" for why, many in made.left_out.items()]


def summary(made: Mined, asked: Asked, out: Path) -> dict[str, Any]:
    """What a script wants to know."""
    return {"path": str(out), "kind": asked.kind, "entries": len(made.rows), "left_out": made.left_out}


def print_entries(made: Mined, asked: Asked, out: Path) -> None:
    from maskery.cli.output import results

    console = results()
    name = asked.kind if len(made.rows) != 1 else {"phrases": "phrase", "entities": "entity"}[asked.kind]
    console.print(f"{out}: {len(made.rows):,} {name}", soft_wrap=True)
    for text, *columns in made.rows[:SHOWN]:
        console.print(f"  {' '.join(f'{column:>7}' for column in columns)}  {text}", soft_wrap=True)
    if len(made.rows) > SHOWN:
        console.print("  ...")
