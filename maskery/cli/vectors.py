"""`maskery vectors`: encoders of sentences trained, hard negatives mined, vectors whitened, centred, bent or drawn."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from maskery.cli.settings import JsonOption, LangOption, new_app, parse_settings
from maskery.cli.task_files import (
    ErrorsOption,
    FormatOption,
    HeaderOption,
    LabelOption,
    TextOption,
    column_flags,
)
from maskery.cli.vectors_draw import ModelArgument, heat, vectors_map
from maskery.errors import InputError

if TYPE_CHECKING:
    from maskery.tasks.settings import ColumnsConfig
    from maskery.vectors.encoder import Encoder
    from maskery.vectors.learn.mining import Mined

app = new_app("Train encoders of sentences, mine hard negatives, whiten vectors, draw them.")
SeedOption = Annotated[int | None, typer.Option("--seed", metavar="N", help="Of everything that is drawn.")]


@app.callback()
def vectors() -> None:
    """Train encoders of sentences, mine hard negatives, whiten vectors, draw them."""


@app.command()
def train(
    model: ModelArgument,
    loss: Annotated[
        str,
        typer.Option(
            "--loss",
            metavar="NAME",
            help="softmax, cosine, triplet, multiple_negatives, cosent, simcse, simcse_supervised or simbert.",
        ),
    ],
    train: Annotated[Path, typer.Option("--train", metavar="F", help="Lines, pairs, triplets, or pairs with labels.")],
    out: Annotated[Path, typer.Option("--out", metavar="RUN", help="The run's folder.")],
    dev: Annotated[
        Path | None, typer.Option("--dev", metavar="F", help="Scored pairs, or triplets: tells the best encoder.")
    ] = None,
    pool: Annotated[
        str | None, typer.Option("--pool", metavar="P", help="first, mean, max, ...; as the folder says if left out.")
    ] = None,
    length: Annotated[int | None, typer.Option("--length", metavar="N", help="Slots of a text in training.")] = None,
    epochs: Annotated[float | None, typer.Option("--epochs", metavar="N", help="Times that all is read.")] = None,
    batch: Annotated[
        int | None, typer.Option("--batch", metavar="N", help="Units of one update, compared with each other.")
    ] = None,
    micro: Annotated[
        int | None,
        typer.Option("--micro", metavar="N", help="Units that are read at once: less memory, same gradient."),
    ] = None,
    lr: Annotated[float | None, typer.Option("--lr", metavar="RATE", help="The highest rate.")] = None,
    eval_every: Annotated[
        int | None, typer.Option("--eval-every", metavar="N", help="Updates between two evaluations.")
    ] = None,
    patience: Annotated[
        int | None, typer.Option("--patience", metavar="N", help="End after N evaluations without a better one.")
    ] = None,
    positive: Annotated[
        float | None, typer.Option("--positive", metavar="X", help="Scored pairs from X on belong together.")
    ] = None,
    text: TextOption = None,
    label: LabelOption = None,
    header: HeaderOption = None,
    format: FormatOption = None,
    errors: ErrorsOption = None,
    seed: SeedOption = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Of the loss or training, e.g. scale=30.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a run that was stopped.")] = False,
    lang: LangOption = None,
    as_json: JsonOption = False,
) -> None:
    """Train an encoder of sentences. Usual settings come with the loss; the best on dev is kept."""
    named = {
        "length": length, "epochs": epochs, "eval_every": eval_every, "patience": patience, "positive": positive,
        "pool": None if pool is None else tuple(name.strip() for name in pool.split(",")),
        "training.batch": batch, "training.micro": micro, "training.lr": lr, "training.seed": seed,
    }  # fmt: skip
    named |= column_flags(text, label, None, header, format, errors)
    keys = {**parse_settings(settings), **{key: value for key, value in named.items() if value is not None}}
    _train(model, loss, train, dev, out, keys, resume, as_json)


def _train(
    model: str, loss: str, train: Path, dev: Path | None, out: Path, keys: dict[str, Any], resume: bool, as_json: bool
) -> None:
    from maskery.cli.live_task import watching_encoder
    from maskery.cli.output import emit_json, say, tell
    from maskery.files import require_writable
    from maskery.tasks.folder import TaskFolder
    from maskery.train.options import nested
    from maskery.vectors.learn.folder import WRITER
    from maskery.vectors.learn.run import train_encoder
    from maskery.vectors.learn.settings import learn_config

    given = nested(keys)
    if learn_config(loss, given).patience and dev is None:
        raise InputError("--patience needs a development set", repair="--dev FILE, or leave out --patience")
    require_writable(out)
    if dev is None:
        say("there is no development set: the last encoder is kept, and nothing is measured (--dev FILE)")
    with watching_encoder(out) as watch:
        encoder = train_encoder(
            model, loss=loss, train=train, dev=dev, out=out, settings=given, resume=resume, say=say, watch=watch
        )
    writes = f"        maskery generate {out / WRITER} TEXT" if (out / WRITER).is_dir() else ""
    say(f"next: maskery embed {out} FILE --out V.npy        maskery evaluate {out} --task sts --data FILE{writes}")
    state = TaskFolder(out).state
    best = state["best"]
    if best and not math.isfinite(best["value"]):
        best = None
        say("the development set told nothing: all similarities or all scores are equal")
    if as_json:
        emit_json({"out": str(out), "steps": state["step"], "best": best, "dimensions": encoder.dimensions})
        return
    told = f"; best at step {best['step']:,}: {best['value']:.4f}" if best else ""
    if best and not best["step"]:
        told = f"; worse than before training ({best['value']:.4f}): the start is kept"
    tell(f"{out}: {state['step']:,} updates{told}; {encoder.dimensions} dimensions")


@app.command()
def mine(
    model: ModelArgument,
    pairs: Annotated[Path, typer.Option("--pairs", metavar="F", help="Anchors and their positives.")],
    out: Annotated[Path, typer.Option("--out", metavar="F", help="Triplets: .tsv or .jsonl, new.")],
    candidates: Annotated[
        Path | None, typer.Option("--candidates", metavar="F", help="More texts to search, one a line.")
    ] = None,
    negatives: Annotated[int, typer.Option("--negatives", metavar="N", help="For every pair.")] = 1,
    first: Annotated[int, typer.Option("--first", metavar="N", help="The nearest wrong text is rank 1.")] = 1,
    last: Annotated[int, typer.Option("--last", metavar="N", help="The last rank that is looked at.")] = 50,
    margin: Annotated[
        float, typer.Option("--margin", metavar="X", help="Below the positive's cosine by at least this.")
    ] = 0.0,
    relative: Annotated[
        float, typer.Option("--relative", metavar="X", help="At most this part of the positive's cosine.")
    ] = 1.0,
    highest: Annotated[float, typer.Option("--highest", metavar="X", help="No cosine above this.")] = 1.0,
    draw: Annotated[bool, typer.Option("--draw", help="By chance among the ranks, not the nearest.")] = False,
    positive: Annotated[
        float | None, typer.Option("--positive", metavar="X", help="Scored pairs from X on belong together.")
    ] = None,
    text: TextOption = None,
    header: HeaderOption = None,
    format: FormatOption = None,
    errors: ErrorsOption = None,
    seed: SeedOption = None,
    lang: LangOption = None,
    as_json: JsonOption = False,
) -> None:
    """Find hard negatives: texts that the encoder takes for near and that are not the positives of a pair."""
    from maskery.cli.output import emit_json, say, say_all, tell
    from maskery.files import require_new_file, write_text
    from maskery.vectors.encoder import Encoder
    from maskery.vectors.learn.data import fitted
    from maskery.vectors.learn.mining import MiningSettings
    from maskery.vectors.learn.mining import mine as search
    from maskery.vectors.learn.read import read_texts

    how = MiningSettings(
        negatives=negatives, first=first, last=last, margin=margin, relative=relative, highest=highest, draw=draw,
        seed=seed or 0,
    )  # fmt: skip
    require_new_file(out)
    _require_table(out)
    columns = _columns(text, header, format, errors)
    read = read_texts(pairs, "simbert", columns)
    if read.kind == "lines":
        repair = "a table with two columns of texts: anchor and positive"
        raise InputError("these are lines, not pairs of texts that belong together", where=pairs, repair=repair)
    found = fitted(read, "simbert", positive=positive)
    more = () if candidates is None else read_texts(candidates, "simcse").texts
    say_all(found.notes)
    with _counting("encoding") as told:
        mined = search(Encoder(model, say=say), found, how, candidates=more, told=told)
    write_text(out, _table(mined, out))
    if as_json:
        emit_json({"out": str(out), "pairs": len(found), "triplets": len(mined.triplets), "notes": list(mined.notes)})
        return
    for note in mined.notes:
        tell(note)


def _columns(text: str | None, header: str | None, format: str | None, errors: str | None) -> ColumnsConfig:
    from maskery.cli.task_settings import checked

    return checked(column_flags(text, None, None, header, format, errors)).columns


def _require_table(out: Path) -> None:
    if out.suffix not in (".tsv", ".jsonl"):
        raise InputError("the end of the name tells no format", where=out, repair="call it .tsv or .jsonl")


def _table(mined: Mined, out: Path) -> str:
    texts = mined.triplets.texts
    many = mined.triplets.units.shape[1] - 2
    names = ["anchor", "positive", *(["negative"] if many == 1 else [f"negative_{at + 1}" for at in range(many)])]
    rows = [[texts[number] for number in unit] for unit in mined.triplets.units.tolist()]
    if out.suffix == ".jsonl":
        return "".join(json.dumps(dict(zip(names, row, strict=True)), ensure_ascii=False) + "\n" for row in rows)
    for row in rows:
        if any(sign in cell for cell in row for sign in "\t\n\r"):
            raise InputError(f"a text holds a tab or a new line: {row[0][:40]!r}", where=out, repair="call it .jsonl")
    return "".join("\t".join(row) + "\n" for row in [names, *rows])


@contextmanager
def _counting(label: str) -> Iterator[Any]:
    """Told how many texts were encoded since it was called before."""
    from maskery.cli.output import progress

    done = 0
    with progress(label) as update:

        def told(texts: int) -> None:
            nonlocal done
            done += texts
            update(done, math.inf, f"{done:,} texts")

        yield told


@app.command()
def after(
    model: ModelArgument,
    kind: Annotated[str, typer.Option("--kind", metavar="K", help="whitening, centring or flow.")],
    text: Annotated[Path, typer.Option("--text", metavar="F", help="Texts to fit on, one a line.")],
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="The new encoder's folder.")],
    dimensions: Annotated[
        int | None, typer.Option("--dimensions", metavar="K", help="whitening: how many are kept.")
    ] = None,
    directions: Annotated[
        int | None, typer.Option("--directions", metavar="K", help="centring: how many are taken out.")
    ] = None,
    epochs: Annotated[int | None, typer.Option("--epochs", metavar="N", help="flow: times that all is read.")] = None,
    seed: SeedOption = None,
    pool: Annotated[
        str | None, typer.Option("--pool", metavar="P", help="Instead of the folder's pooling, e.g. first_last.")
    ] = None,
    lang: LangOption = None,
    as_json: JsonOption = False,
) -> None:
    """Fit whitening, centring or a flow on texts and write the encoder with it."""
    from maskery.cli.output import emit_json, say, tell
    from maskery.errors import ExistsError
    from maskery.files import require_writable
    from maskery.vectors.after.base import AFTER
    from maskery.vectors.encoder import Encoder
    from maskery.vectors.learn.read import read_texts

    AFTER.check(kind)
    require_writable(out)
    if out.exists():
        raise ExistsError("is already there", where=out, repair="choose another --out")
    found = read_texts(text, "simcse")
    for note in found.notes:
        say(note)
    names = None if pool is None else tuple(name.strip() for name in pool.split(","))
    with _counting("encoding") as told:
        made: Encoder = Encoder(model, pool=names, say=say).fit_after(
            kind, found.texts, dimensions=dimensions, directions=directions, epochs=epochs, seed=seed, progress=told
        )
    made.save(out)
    if as_json:
        emit_json({"out": str(out), "kind": kind, "texts": len(found.texts), "dimensions": made.dimensions})
        return
    tell(f"{out}: {kind} of {len(found.texts):,} texts, {made.dimensions} dimensions")


app.command()(heat)
app.command("map")(vectors_map)
