"""`maskery words`: one vector a word, trained on a corpus, asked, examined and exported. `similar` is beside it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from maskery.cli.settings import JsonOption, new_app
from maskery.cli.similar import similar
from maskery.cli.word_map import word_map

if TYPE_CHECKING:
    from maskery.words.config import WordsConfig
    from maskery.words.evaluate import Analogies, Similarity
    from maskery.words.training import Training
    from maskery.words.vectors import WordVectors
    from maskery.words.vocabulary import Words

app = new_app("Train word vectors and ask them.")
VectorsArgument = Annotated[
    Path, typer.Argument(metavar="VECTORS", help="A folder made by maskery words train, or a file of word2vec.")
]
TopOption = Annotated[int, typer.Option("--top", metavar="N", min=1, help="Words to show.")]


@app.callback()
def words() -> None:
    """Train word vectors and ask them."""


@app.command()
def train(
    corpus: Annotated[Path, typer.Argument(metavar="CORPUS", help="A folder made by maskery corpus build.")],
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="The folder to make.")],
    method: Annotated[
        str, typer.Option("--method", metavar="cbow|skipgram|fasttext|glove", help="How to train.")
    ] = "cbow",
    width: Annotated[
        int | None, typer.Option("--width", metavar="N", help="Numbers of a vector: 100; glove 50.")
    ] = None,
    window: Annotated[
        int | None, typer.Option("--window", metavar="N", help="Words on each side at most: 5; glove 15.")
    ] = None,
    negative: Annotated[
        int | None, typer.Option("--negative", metavar="N", help="Wrong words drawn for a right one: 5; not for glove.")
    ] = None,
    epochs: Annotated[
        int | None, typer.Option("--epochs", metavar="N", help="Times the text is read: 5; glove 25.")
    ] = None,
    min_count: Annotated[
        int | None, typer.Option("--min-count", metavar="N", help="Occurrences of a word at least: 5.")
    ] = None,
    lr: Annotated[
        float | None, typer.Option("--lr", metavar="X", help="Rate of learning at the start: .05; skipgram .025.")
    ] = None,
    sample: Annotated[
        float | None,
        typer.Option("--sample", metavar="X", help="Commoner words are thinned out: .001; fasttext .0001; 0 for none."),
    ] = None,
    x_max: Annotated[
        float | None, typer.Option("--x-max", metavar="X", help="glove: a pair this frequent has full weight: 100.")
    ] = None,
    adagrad: Annotated[
        str | None,
        typer.Option("--adagrad", metavar="paper|code", help="glove: the steps of its paper or its code: paper."),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="Another seed, other vectors.")] = 0,
    workers: Annotated[
        int, typer.Option("--workers", metavar="N", help="Threads; more than one: faster, not reproducible.")
    ] = 1,
    resume: Annotated[bool, typer.Option("--resume", help="Go on behind the last epoch that is kept.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Train word vectors on a corpus."""
    from maskery.corpus.store import Corpus
    from maskery.train.lock import locked
    from maskery.words.config import words_config
    from maskery.words.training import Training

    given: dict[str, Any] = {"width": width, "window": window, "negative": negative, "epochs": epochs, "lr": lr}
    given |= {"min_count": min_count, "sample": sample, "x_max": x_max, "adagrad": adagrad}
    config = words_config(method, {**given, "seed": seed, "workers": workers})
    store = Corpus.open(corpus)
    if not resume:
        Training(store, config, out)  # a folder that is in the way is told before it is held
    with locked(out):
        made, seconds = _trained(Training(store, config, out, resume=resume))
    _print_trained(out, made, seconds, as_json)


def _trained(training: Training) -> tuple[WordVectors, float]:
    import time

    from maskery.cli.output import progress, say
    from maskery.train.stop import stop_requests

    config, done = training.config, training.state.number if training.state else 0
    say(_told(config) + (f"; goes on behind epoch {done}" if done else ""))
    for note in training.notes:
        say(note)
    with stop_requests() as request:
        with progress("words") as update:
            found = training.read(update, lambda: request.signal_number)
        for line in _left_out(found, config):
            say(line)
        begun = time.monotonic()
        with progress(config.method) as update:

            def tell(done: float, total: float) -> None:
                epoch = min(config.epochs, 1 + int(config.epochs * done / max(1, total)))
                update(done, total, note=f"epoch {epoch}/{config.epochs}")

            made = training.run(found, tell, lambda: request.signal_number, _say_loss)
    return made, time.monotonic() - begun


def _say_loss(epoch: Any) -> None:
    from maskery.cli.output import say

    if epoch.loss is not None:
        say(f"epoch {epoch.number}: loss {epoch.loss:.5f}")


def _told(config: WordsConfig) -> str:
    """The numbers that the method reads."""
    used = {name: f"{value:g}" if isinstance(value, float) else str(value) for name, value in config.used().items()}
    return f"{used.pop('method')}: " + ", ".join(f"{name} {value}" for name, value in used.items())


def _left_out(found: Words, config: WordsConfig) -> list[str]:
    from maskery.cli.output import counted

    many = counted(found.total, "occurrence")
    lines = [f"{counted(len(found.words), 'word')}, {many} in {counted(len(found.sentence_start) - 1, 'sentence')}"]
    if found.rare:
        rare = f"{found.rare:,} occurrences of {found.rare_words:,} words"
        lines.append(f"left out, with fewer than {config.min_count} occurrences: {rare}")
    if found.unknown:
        why = "with a token that the tokenizer does not know, half a character, or longer than any word"
        lines.append(f"left out, {why}: {found.unknown:,} occurrences")
    if config.workers > 1 and config.method == "glove":
        lines.append("glove works in one thread: --workers changes nothing")
    elif config.workers > 1:
        lines.append(f"{config.workers} threads write into the same vectors: another run gives slightly other numbers")
    return lines


def _print_trained(out: Path, made: WordVectors, seconds: float, as_json: bool) -> None:
    from maskery.cli.output import emit_json, results, say

    facts = {"path": str(out), "words": len(made), "width": made.width, "seconds": round(seconds, 2), **made.facts}
    if as_json:
        emit_json(facts)
    else:
        console = results()
        console.print(f"{out}", soft_wrap=True)
        console.print(f"  words    {len(made):,}")
        console.print(f"  width    {made.width:,}")
        if made.subwords is not None:
            console.print(f"  n-grams  {len(made.subwords.bucket):,}")
        console.print(f"  seconds  {seconds:.1f}")
    say(f"ask them: maskery words neighbours {out} {_telling(made.words)}")


def _telling(words: list[str]) -> str:
    """The commonest word that is no sign, number or function word, and longer than one."""
    from maskery.words.function_words import FUNCTION_WORDS

    told = (word for word in words if len(word) > 1 and word.isalpha() and word.lower() not in FUNCTION_WORDS)
    return next(told, words[0])


def open_vectors(path: Path) -> WordVectors:
    """The vectors, with a bar for a large file, and what is to be told of them."""
    from maskery.cli.output import late_progress, say
    from maskery.words.vectors import WordVectors

    with late_progress("reading", 1.0) as tell:
        found = WordVectors.load(path, lambda done, total: tell(done / max(1, total)))
    for note in found.notes:
        say(note)
    return found


@app.command()
def neighbours(
    vectors: VectorsArgument,
    word: Annotated[list[str], typer.Argument(metavar="WORD...", help="One word or several.")],
    top: TopOption = 10,
    as_json: JsonOption = False,
) -> None:
    """Show the words with the nearest vectors, by cosine."""
    from maskery.cli.output import emit_json, results, say

    found = open_vectors(vectors)
    near = {each: found.neighbours(each, top) for each in word}
    unseen = [each for each in near if each not in found]
    if unseen:
        say(f"not seen in training, made of their n-grams: {', '.join(unseen)}")
    if as_json:
        emit_json({each: _plain(listed) for each, listed in near.items()})
        return
    console = results()
    for each, listed in near.items():
        if len(near) > 1:
            console.print(each, soft_wrap=True)
        _print_near(listed, "  " if len(near) > 1 else "")


@app.command()
def analogy(
    vectors: VectorsArgument,
    a: Annotated[str, typer.Argument(metavar="A", help="A is to B ...")],
    b: Annotated[str, typer.Argument(metavar="B", help="... B ...")],
    c: Annotated[str, typer.Argument(metavar="C", help="... as C is to what?")],
    top: TopOption = 10,
    as_json: JsonOption = False,
) -> None:
    """A is to B as C is to what? The words nearest to B - A + C."""
    from maskery.cli.output import emit_json

    listed = open_vectors(vectors).analogy(a, b, c, top)
    emit_json(_plain(listed)) if as_json else _print_near(listed, "")


def _plain(listed: list[tuple[str, float]]) -> list[dict[str, Any]]:
    return [{"word": word, "cosine": round(cosine, 6)} for word, cosine in listed]


def _print_near(listed: list[tuple[str, float]], indent: str) -> None:
    from maskery.cli.output import results

    console = results()
    for word, cosine in listed:
        console.print(f"{indent}{cosine:6.3f}  {word}", soft_wrap=True)


@app.command()
def evaluate(
    vectors: VectorsArgument,
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Similarity or analogy files.")],
    as_json: JsonOption = False,
) -> None:
    """Examine vectors by similarity and analogy files."""
    from maskery.cli.output import emit_json, late_progress
    from maskery.words.evaluate import evaluate as examine

    found = open_vectors(vectors)
    answers = []
    for file in files:
        with late_progress(file.name, 1.0) as tell:
            answers.append(examine(found, file, lambda done, total, tell=tell: tell(done / total)))  # type: ignore[misc]
    if as_json:
        emit_json([_plain_answer(answer) for answer in answers])
    else:
        for answer in answers:
            _print_answer(answer)


def _plain_answer(answer: Similarity | Analogies) -> dict[str, Any]:
    from dataclasses import asdict

    from maskery.words.evaluate import Similarity

    if isinstance(answer, Similarity):
        return {"kind": "similarity", **asdict(answer), "coverage": answer.coverage}
    every = [*answer.sections, answer.total]
    sections = [{**asdict(each), "accuracy": each.accuracy, "coverage": each.coverage} for each in every]
    return {"kind": "analogies", "file": answer.file, "sections": sections}


def _print_answer(answer: Similarity | Analogies) -> None:
    from rich.table import Table

    from maskery.cli.output import results
    from maskery.words.evaluate import Similarity

    console = results()
    if isinstance(answer, Similarity):
        known = f"{answer.known:,} of {answer.pairs:,} pairs ({100 * answer.coverage:.1f} %)"
        console.print(
            f"{answer.file}: Spearman {_number(answer.spearman)}, Pearson {_number(answer.pearson)}; {known}",
            soft_wrap=True,
        )
        return
    console.print(answer.file, soft_wrap=True)
    table = Table(box=None, pad_edge=False)
    for head in ("section", "right", "asked", "accuracy", "coverage"):
        table.add_column(head, justify="left" if head == "section" else "right")
    for each in [*answer.sections, answer.total]:
        share = "-" if each.accuracy is None else f"{100 * each.accuracy:.1f} %"
        table.add_row(each.name, f"{each.right:,}", f"{each.known:,}", share, f"{100 * each.coverage:.1f} %")
    console.print(table)


def _number(value: float | None) -> str:
    return "not defined" if value is None else f"{value:.4f}"


@app.command()
def export(
    vectors: VectorsArgument,
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="The file to write.")],
    binary: Annotated[bool, typer.Option("--binary", help="word2vec's binary form in place of text.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Write the vectors as one file of word2vec."""
    from maskery.cli.output import counted, emit_json, late_progress, results, say
    from maskery.files import require_new_file

    require_new_file(out)
    found = open_vectors(vectors)
    with late_progress("writing", 1.0) as tell:
        found.export(out, binary=binary, progress=lambda done, total: tell(done / total))
    if found.subwords is not None:
        say("the file holds the words that training saw; n-grams for other words stay behind in the folder")
    form = "binary" if binary else "text"
    if as_json:
        emit_json({"path": str(out), "words": len(found), "width": found.width, "form": form})
    else:
        results().print(f"{out}: {counted(len(found), 'word')}, {found.width} numbers each, {form}", soft_wrap=True)


app.command("map")(word_map)
app.command()(similar)
