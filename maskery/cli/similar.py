"""`maskery words similar`: vectors or a thesaurus in, a table of similar words for a recipe out; or a look into one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from maskery.cli.settings import JsonOption
from maskery.errors import InputError

if TYPE_CHECKING:
    from maskery.knowledge.synonyms import Group
    from maskery.knowledge.table import SimilarTable
    from maskery.text.tokenizer import Tokenizer
    from maskery.words.similar import Counts, Found, Rules
    from maskery.words.vectors import WordVectors

_SHOWN = 10


def similar(
    source: Annotated[
        Path, typer.Argument(metavar="SOURCE", help="Word vectors, a thesaurus, or a table to look into.")
    ],
    out: Annotated[Path | None, typer.Option("--out", metavar="FILE", help="The table to make.")] = None,
    corpus: Annotated[
        Path | None, typer.Option("--corpus", metavar="DIR", help="A corpus: its tokenizer, and how common words are.")
    ] = None,
    tokenizer: Annotated[
        Path | None, typer.Option("--tokenizer", metavar="DIR|FILE", help="A tokenizer, where there is no corpus yet.")
    ] = None,
    nearest: Annotated[
        int | None, typer.Option("--nearest", metavar="N", help="Similar words of a word at most: 10.")
    ] = None,
    floor: Annotated[
        int | None,
        typer.Option("--floor", metavar="COUNT", help="How often a word must stand in the corpus to be offered: 5."),
    ] = None,
    same_part_of_speech: Annotated[
        bool, typer.Option("--same-part-of-speech", help="Nouns for nouns, verbs for verbs, by jieba's tags.")
    ] = False,
    frequency_ratio: Annotated[
        float | None,
        typer.Option("--frequency-ratio", metavar="N", help="Offer words at most N times as frequent or as rare: any."),
    ] = None,
    frequency_from: Annotated[
        Path | None, typer.Option("--frequency-from", metavar="CORPUS", help="Count words in this corpus instead.")
    ] = None,
    word: Annotated[
        list[str] | None, typer.Option("--word", metavar="WORD", help="A word to show; may be repeated.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Make a table of similar words, or look into one."""
    from maskery.cli.output import say
    from maskery.knowledge.table import SimilarTable, is_table

    if source.is_file() and is_table(source):
        given: dict[str, Any] = {"--out": out, "--corpus": corpus, "--tokenizer": tokenizer, "--nearest": nearest}
        given |= {"--floor": floor, "--frequency-ratio": frequency_ratio, "--frequency-from": frequency_from}
        given["--same-part-of-speech"] = same_part_of_speech or None
        if unused := [name for name, value in given.items() if value is not None]:
            cause = f"is a table already; {', '.join(unused)} would make one"
            raise InputError(cause, where=source, repair=f"look into it: maskery words similar {source} --word WORD")
        table = SimilarTable.read(source)
        _show(source, table, word or list(table.entries)[:_SHOWN], as_json)
        return
    made = _free(source, out, word)
    writer = _tokenizer(corpus, tokenizer)
    read = _read(source)
    counts, told = _counts(read, frequency_from or corpus)
    rules = _rules(nearest, floor, same_part_of_speech, frequency_ratio, counts is not None)
    found = _found(source, read, writer, rules, counts, told)
    found.table.save(made)
    _print_made(made, found, as_json)
    say(f"use it: maskery inspect macbert --corpus {corpus or 'DIR'} --set knowledge.synonyms={made}")


def _rules(
    nearest: int | None, floor: int | None, same_part_of_speech: bool, frequency_ratio: float | None, counted: bool
) -> Rules:
    from maskery.cli.output import say
    from maskery.words.similar import FLOOR, NEAREST, Rules

    for name, value in (("--floor", floor), ("--frequency-ratio", frequency_ratio)):
        if not counted and value:
            raise InputError(
                f"{name} {value:g} needs to know how common words are, and nothing tells it",
                repair=f"--corpus DIR or --frequency-from CORPUS, or leave out {name}",
            )
    if not counted:
        say("how common words are is not known: rare ones are offered, too (--frequency-from CORPUS)")
    least = 0 if not counted else FLOOR if floor is None else floor
    many = NEAREST if nearest is None else nearest
    return Rules(
        nearest=many,
        floor=least,
        same_part_of_speech=same_part_of_speech,
        frequency_ratio=0.0 if frequency_ratio is None else frequency_ratio,
    )


def _found(
    source: Path,
    read: WordVectors | list[Group],
    tokenizer: Tokenizer,
    rules: Rules,
    counts: Counts | None,
    told: str,
) -> Found:
    from maskery.cli.output import progress, say
    from maskery.words.similar import similar_words

    facts = {"source": source.name, "counts": told}
    with progress("similar words") as update:
        found = similar_words(read, tokenizer, rules, counts=counts, made=facts, progress=update)
    for note in _remarks(found, rules.floor):
        say(note)
    if not found.table.entries:
        raise InputError(
            f"none of the {found.given:,} words has a similar one with as many tokens",
            where=source,
            repair="give a source in the language of the corpus"
            + (f", or a lower --floor than {rules.floor}" if rules.floor else "")
            + (", or leave out --same-part-of-speech" if rules.same_part_of_speech else "")
            + (f", or a higher --frequency-ratio than {rules.frequency_ratio:g}" if rules.frequency_ratio else ""),
        )
    return found


def _free(source: Path, out: Path | None, word: list[str] | None) -> Path:
    from maskery.files import require_new_file

    if not source.exists():
        raise InputError("no such file or folder", where=source, repair="give word vectors, a thesaurus or a table")
    if out is None:
        raise InputError("--out is missing: SOURCE is no table that could be shown", repair="--out similar.txt")
    if word:
        shown = f"maskery words similar {out} --word {word[0]}"
        raise InputError("--word shows a table that is made", repair=f"leave it out, and then: {shown}")
    require_new_file(out)
    return out


def _tokenizer(corpus: Path | None, tokenizer: Path | None) -> Tokenizer:
    from maskery.corpus.store import Corpus
    from maskery.text.tokenizer import Tokenizer

    if (corpus is None) == (tokenizer is None):
        cause = "--corpus and --tokenizer both give a tokenizer" if corpus else "words have no length yet"
        raise InputError(cause, repair="give one of --corpus DIR and --tokenizer DIR")
    return Corpus.open(corpus).tokenizer if corpus else Tokenizer.load(tokenizer or "")


def _read(source: Path) -> WordVectors | list[Group]:
    from maskery.cli.words import open_vectors
    from maskery.knowledge.synonyms import filled_lines, groups, looks_like_vectors

    if source.is_dir() or looks_like_vectors(source):
        return open_vectors(source)
    found = groups(filled_lines(source), source)
    if not found:
        raise InputError(
            "holds neither word vectors nor a line with two words of like meaning",
            where=source,
            repair="give the folder of maskery words train, word2vec vectors, a thesaurus, or a list of synonyms",
        )
    return found


def _counts(read: WordVectors | list[Group], corpus: Path | None) -> tuple[Counts | None, str]:
    """How common words are, and by what."""
    from maskery.cli.output import progress
    from maskery.corpus.store import Corpus
    from maskery.words.similar import Counts
    from maskery.words.vocabulary import read_words

    if corpus is not None:
        with progress("words of the corpus") as update:
            words = read_words(Corpus.open(corpus), min_count=1, progress=update)
        return Counts(words.words, words.counts), corpus.name
    if not isinstance(read, list) and read.counts.any():
        return Counts(read.words, read.counts), "those of the vectors"
    return None, ""


def _remarks(found: Found, floor: int) -> list[str]:
    """What was left out, one sentence each."""
    from maskery.cli.output import counted

    left = {
        "left out, with a token that the tokenizer does not know, or longer than any word": found.unknown,
        "counted once, as the tokenizer spells them like another": found.alike,
        "left out, as their vector is zero": found.undirected,
        f"never offered, as they are rarer than {floor} in the text (they may have similar words)": found.rare,
        "left out, as no word could stand for them": found.alone,
    }
    return [f"{why}: {counted(many, 'word')}" for why, many in left.items() if many]


def _chosen(table: SimilarTable, words: list[str]) -> dict[str, list[dict[str, Any]]]:
    return {word: [{"word": other, "score": score} for other, score in table.similar(word)] for word in words}


def _facts(table: SimilarTable) -> dict[str, Any]:
    return {"words": len(table.entries), "pairs": table.pairs, "tokenizer": table.tokenizer, **dict(table.made)}


def _show(path: Path, table: SimilarTable, words: list[str], as_json: bool) -> None:
    from maskery.cli.output import emit_json, results

    shown = _chosen(table, words)
    if as_json:
        emit_json({"path": str(path), **_facts(table), "similar": shown})
        return
    results().print(
        f"{path}: {len(table.entries):,} words, {table.pairs:,} pairs, from {table.made.get('source')}", soft_wrap=True
    )
    _print_words(shown)


def _print_made(path: Path, found: Found, as_json: bool) -> None:
    from maskery.cli.output import emit_json, results

    if as_json:
        left = {name: getattr(found, name) for name in ("given", "unknown", "alike", "undirected", "rare", "alone")}
        emit_json({"path": str(path), **_facts(found.table), **left})
        return
    console, words = results(), len(found.table.entries)
    console.print(f"{path}", soft_wrap=True)
    console.print(f"  words          {words:,} of {found.given:,}")
    console.print(f"  similar words  {found.table.pairs:,}, {found.table.pairs / words:.1f} a word")


def _print_words(shown: dict[str, list[dict[str, Any]]]) -> None:
    from maskery.cli.output import results

    console = results()
    for word, others in shown.items():
        console.print(f"{word}  " + "  ".join(f"{each['word']} {each['score']:.2f}" for each in others), soft_wrap=True)
