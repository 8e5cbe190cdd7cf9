"""`maskery bench`: which way to make vectors is the quickest here, and why."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from maskery.cli.settings import JsonOption, PickleOption

if TYPE_CHECKING:
    from maskery.compress.ways import Way


def bench(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A model or run folder, or sentence-transformers'.")],
    text: Annotated[
        Path | None, typer.Option("--text", metavar="F", help="Texts of your kind, one a line; else those of the demo.")
    ] = None,
    texts: Annotated[int, typer.Option("--texts", metavar="N", min=1, max=1_000_000, help="How many are read.")] = 1000,
    rounds: Annotated[int, typer.Option("--rounds", metavar="N", min=1, help="The best of so many counts.")] = 3,
    allow_pickle: PickleOption = False,
    as_json: JsonOption = False,
) -> None:
    """Measure every way to make a model's vectors on this machine, side by side."""
    import torch

    from maskery.cli.output import emit_json, progress, say
    from maskery.compress.ways import measured, product_speeds
    from maskery.vectors.encoder import Encoder

    given = _texts(text, texts)
    made = Encoder(model, device="cpu", allow_pickle=allow_pickle, say=say).made
    with progress("measuring") as shown:
        ways = measured(made, given, rounds, lambda done, all: shown(done, all, ""))
    shape = made.model.config
    speeds = product_speeds(shape.width, shape.feedforward)
    facts = {"threads": torch.get_num_threads(), "texts": len(given), "tokens": ways[0].tokens}
    found = facts | {"ways": [_plain(way) for way in ways], "products_per_second": speeds, "said": _said(ways, speeds)}
    emit_json(found) if as_json else _print(found, ways)


def _texts(file: Path | None, most: int) -> list[str]:
    """So many lines of a file, or of the demo's, which are read again from the beginning where they are too few."""
    from itertools import chain, cycle, islice
    from pydoc_data.topics import topics

    from maskery.cli.demo.text import chinese_documents, paragraphs
    from maskery.corpus.lines import Tally
    from maskery.errors import InputError
    from maskery.vectors.texts import chunks, source_of

    if file is None:
        english = chain.from_iterable(paragraphs(topics[name]) for name in sorted(topics))
        pairs = zip(english, cycle(chinese_documents()), strict=False)
        return list(islice(cycle(chain.from_iterable(pairs)), most))
    with source_of(file) as source:
        lines = list(islice((line for chunk in chunks(source, "strict", Tally()) for line in chunk.texts), most))
    if not lines:
        raise InputError("there is no text", where=file, repair="give a file with texts")
    return lines


def _plain(way: Way) -> dict[str, Any]:
    if way.reason:
        return {"way": way.name, "reason": way.reason}
    return {
        "way": way.name,
        "seconds": round(way.best, 4),
        "texts_per_second": round(way.texts / way.best, 1),
        "cosine": way.cosine,
        "least_cosine": way.least,
    }


def _said(ways: list[Way], speeds: dict[str, float]) -> list[str]:
    """What to use, and why."""
    able = sorted((way for way in ways if not way.reason), key=lambda way: way.best)
    plain = next(way for way in able if way.name == "plain")
    first, exact = able[0], next(way for way in able if way.exact)
    found = [f"quickest with the same vectors: {exact.name}, {plain.best / exact.best:.2f} times as quick as plain"]
    if first is not exact:
        found.insert(
            0,
            f"quickest: {first.name}, {plain.best / first.best:.2f} times as quick as plain; "
            f"cosine with plain's vectors {first.cosine:.4f} in the mean, {first.least:.4f} at least",
        )
    told = ", ".join(f"{name} {speed / 1e9:.0f}" for name, speed in speeds.items())
    found.append(f"why: products of the feed-forward's shape, in billions of operations a second: {told}")
    return found


def _print(found: dict[str, Any], ways: list[Way]) -> None:
    from rich.table import Table

    from maskery.cli.output import results

    table = Table(box=None, pad_edge=False)
    for name in ("way", "texts/s", "to plain", "cosine, mean", "least"):
        table.add_column(name, justify="left" if name == "way" else "right")
    plain = next(way for way in ways if way.name == "plain")
    for way in ways:
        if way.reason:
            table.add_row(way.name, "-", "", "", "")
            continue
        table.add_row(
            way.name, f"{way.texts / way.best:,.0f}", f"{plain.best / way.best:.2f}", f"{way.cosine:.6f}",
            f"{way.least:.6f}",
        )  # fmt: skip
    results().print(table)
    for way in ways:
        if way.reason:
            told = way.reason if way.reason.startswith(way.name) else f"{way.name}: {way.reason}"
            results().print(told, soft_wrap=True)
    for line in found["said"]:
        results().print(line, soft_wrap=True)
