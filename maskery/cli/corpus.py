"""`maskery corpus build`: text files in, a corpus folder out, and what was counted on the way. `mark` is beside it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from maskery.cli.mark import mark
from maskery.cli.settings import JsonOption, new_app

if TYPE_CHECKING:
    from maskery.cli.output import Update
    from maskery.corpus.sources import Progress
    from maskery.corpus.store import Corpus

app = new_app("Turn text files into a corpus.")

FormatOption = Annotated[
    str | None,
    typer.Option("--format", metavar="text|jsonl|csv|tsv|parquet", help="What the files hold; else by their names."),
]
FieldOption = Annotated[
    str,
    typer.Option("--field", metavar="NAME|N", help="Field or column that is the text; N: a table without header."),
]
PairsOption = Annotated[
    str | None,
    typer.Option("--pairs", metavar="SOURCE,TARGET", help="Columns of a text and of what is to be written for it."),
]
TargetOption = Annotated[
    str | None,
    typer.Option("--target-tokenizer", metavar="DIR|FILE|train", help="With --pairs: another one for the targets."),
]
DictionaryOption = Annotated[
    list[Path] | None,
    typer.Option("--dictionary", metavar="FILE", help="Words to keep together, one a line; may be repeated."),
]
KeepOption = Annotated[
    bool, typer.Option("--keep-duplicates", help="Keep documents that are exact copies of earlier ones.")
]


@app.callback()
def corpus() -> None:
    """Turn text files into a corpus."""


class Early(list[str]):
    """What was printed before the work, which the notes of the corpus repeat."""

    def __call__(self, note: str) -> None:
        from maskery.cli.output import say

        self.append(note)
        say(note)

    def rest(self, notes: Iterable[str]) -> None:
        for note in notes:
            if note not in self:
                self(note)


@app.command()
def build(
    files: Annotated[list[Path], typer.Argument(metavar="FILES", help="Files, folders, or - for stdin.")],
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="The folder to make.")],
    format: FormatOption = None,
    field: FieldOption = "text",
    pairs: PairsOption = None,
    tokenizer: Annotated[
        str, typer.Option("--tokenizer", metavar="DIR|FILE|train", help="A tokenizer to use, or train for a new one.")
    ] = "train",
    target_tokenizer: TargetOption = None,
    kind: Annotated[
        str, typer.Option("--kind", metavar="wordpiece|bpe|unigram|char", help="What to train.")
    ] = "wordpiece",
    vocab: Annotated[
        int | None, typer.Option("--vocab", metavar="N", help="Pieces to train; by default more for longer text.")
    ] = None,
    words: Annotated[
        str, typer.Option("--words", metavar="auto|none", help="How words are found: auto or none.")
    ] = "auto",
    dictionary: DictionaryOption = None,
    keep_duplicates: KeepOption = False,
    heldout: Annotated[float, typer.Option("--heldout", help="Share of the documents set aside.")] = 0.01,
    workers: Annotated[
        int | None, typer.Option("--workers", metavar="N", help="Processes; by default one for each core.")
    ] = None,
    errors: Annotated[
        str, typer.Option("--errors", metavar="strict|replace", help="What to do with bytes that are no UTF-8.")
    ] = "strict",
    as_json: JsonOption = False,
) -> None:
    """Read text files, split them into sentences, words and tokens, and write a corpus folder."""
    from maskery.cli.output import emit_json, progress, say
    from maskery.corpus.store import Corpus
    from maskery.files import remove_abandoned

    if left := remove_abandoned(out):
        say(f"removed what an interrupted write left behind: {', '.join(left)}")
    with progress("corpus") as update:
        made = Corpus.build(
            files,
            out,
            format=format,
            field=field,
            pairs=_columns(pairs),
            tokenizer=tokenizer,
            target_tokenizer=target_tokenizer,
            kind=kind,
            vocab=vocab,
            words=words,
            dictionary=dictionary or None,
            duplicates="keep" if keep_duplicates else "drop",
            heldout=heldout,
            workers=workers,
            errors=errors,
            progress=_told(update),
            say=(early := Early()),
        )
    early.rest(remarks(made))
    emit_json(summary(made)) if as_json else print_counts(made)
    say(f"look at its rows: maskery inspect {_recipe_for(made)} --corpus {out}")


app.command()(mark)


def _columns(pairs: str | None) -> tuple[str, str] | None:
    if pairs is None:
        return None
    source, comma, target = pairs.partition(",")
    if not comma or "," in target:
        from maskery.errors import InputError

        raise InputError(f"--pairs {pairs}: two columns are needed", repair="--pairs SOURCE,TARGET, such as 1,2")
    return source.strip(), target.strip()


def _recipe_for(made: Corpus) -> str:
    """One that can read the corpus: pairs of sentences need a second document."""
    if made.pairs:
        return "transformer"
    return "bert" if len(made.documents("train")) > 1 else "roberta"


def _told(update: Update) -> Progress:
    """How far the build is. Without a total stdin is still coming, or, once there was one, the vocabulary is learnt."""
    sized = False

    def tell(done: int, total: int | None) -> None:
        nonlocal sized
        sized = sized or total is not None
        if total is None:
            update(done, math.inf, "learning the vocabulary" if sized else f"reading stdin: {done >> 20:,} MiB")
        else:
            update(done, total)

    return tell


def summary(made: Corpus) -> dict[str, Any]:
    """What a script wants to know of a corpus."""
    return {
        "path": str(made.path),
        "fingerprint": made.fingerprint,
        "vocabulary": made.vocabulary,
        "tokenizer": made.manifest["tokenizer"],
        "counts": made.counts,
        "bytes": stored_bytes(made),
        "bytes_per_token": stored_bytes(made) / made.counts["tokens"],
        "notes": made.manifest["notes"],
    }


def stored_bytes(made: Corpus) -> int:
    """What tokens, flags and offsets take on the disk."""
    from maskery.corpus.store import DATA

    return sum(int(made.manifest["files"][name]["bytes"]) for name in DATA)


def remarks(made: Corpus) -> list[str]:
    """What was decided, replaced, cut or left out, one sentence each."""
    from maskery.cli.output import counted

    counts, found = made.counts, [f"tokenizer: {made.manifest['tokenizer']['note']}", *made.manifest["notes"]]
    terms = made.manifest["options"].get("dictionary")
    if terms is not None:
        twice = f" ({terms['repeated']:,} given again: the last frequency holds)" if terms["repeated"] else ""
        found.append(f"dictionary: {counted(terms['words'], 'word')}{twice}")
    if counts["unknown"]:
        found.append(f"{counts['unknown']:,} tokens are unknown to the tokenizer ({_share(made, 'unknown')})")
    if counts["straddling"]:
        found.append(f"{counts['straddling']:,} tokens reach over two words, which they join")
    if counts["replaced"]:
        found.append(f"{counts['replaced']:,} places that are no UTF-8 were replaced")
    if counts["cut_lines"]:
        found.append(f"{counts['cut_lines']:,} very long lines were cut in pieces")
    if counts["empty_documents"]:
        found.append(f"left out, as they have no token: {counted(counts['empty_documents'], 'document')}")
    if counts["duplicate_documents"]:
        copies = counted(counts["duplicate_documents"], "document")
        found.append(f"left out, as they are exact copies of earlier ones (--keep-duplicates keeps them): {copies}")
    if counts["folded_records"]:
        found.append(f"within quotes, over several lines: {counted(counts['folded_records'], 'record')} of tables")
    if counts["empty_files"]:
        found.append(f"passed over, as they hold no text: {counted(counts['empty_files'], 'file')} of folders")
    return found


def print_counts(made: Corpus) -> None:
    from maskery.cli.output import counted, results

    counts, console = made.counts, results()
    no_words = made.manifest["options"].get("words") == "none"
    rows = {
        "documents": f"{counts['documents']:,}",
        "held out": f"{counted(counts['heldout_documents'], 'document')}",
        "sentences": f"{counts['sentences']:,}",
        "words": "not looked for (--words none)" if no_words else f"{counts['words']:,}",
        "tokens": f"{counts['tokens']:,}",
        "unknown": f"{counted(counts['unknown'], 'token')} ({_share(made, 'unknown')})",
        "vocabulary": f"{made.vocabulary:,}",
        **({} if no_words else {"tokens a word": f"{counts['tokens'] / max(1, counts['words']):.2f}"}),
        "characters a token": f"{counts['characters'] / counts['tokens']:.2f}",
        "bytes a token, disk": f"{stored_bytes(made) / counts['tokens']:.2f}",
    }
    width = max(map(len, rows))
    console.print(f"{made.path}")
    for name, value in rows.items():
        console.print(f"  {name:{width}}  {value}")


def _share(made: Corpus, name: str) -> str:
    return f"{100 * made.counts[name] / made.counts['tokens']:.2f} %"
