"""`maskery score`: log-probability and perplexity of the lines of a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from maskery.cli.settings import JsonOption, PickleOption
from maskery.errors import InputError

if TYPE_CHECKING:
    from maskery.checkpoint.model import Model
    from maskery.writing.score import Scores

_SHOWN = 20
"""Lines of a table; the rest is summed up, and --json has them all."""
_TOLD = 10


def score(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A model or run folder.")],
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A text a line; - for stdin.")],
    pairs: Annotated[bool, typer.Option("--pairs", help="Lines are source, tab, target; the target counts.")] = False,
    masks: Annotated[int, typer.Option("--masks", help="Tokens masked at once, where masks are filled.")] = 1,
    begin: Annotated[bool, typer.Option("--begin/--bare", help="Put the end of a text in front of a line.")] = True,
    length: Annotated[int | None, typer.Option("--length", help="Read in rows of so many tokens.")] = None,
    memory: Annotated[int | None, typer.Option("--memory", help="Tokens before a row that it sees.")] = None,
    same_length: Annotated[bool, typer.Option("--same-length", help="All tokens see equally far.")] = False,
    clamp: Annotated[int | None, typer.Option("--clamp", help="Distances beyond it count as it.")] = None,
    allow_pickle: PickleOption = False,
    as_json: JsonOption = False,
) -> None:
    """Print how probable each line is, and all of them together."""
    from maskery.checkpoint.load import load
    from maskery.cli.generate import read_lines
    from maskery.cli.output import emit_json, late_progress, say_found
    from maskery.writing.score import score as scored

    lines = read_lines(file)
    if not any(line.strip() for line in lines):
        raise InputError("there is no text", where=file, repair="write one a line")
    loaded = load(model, allow_pickle=allow_pickle)
    say_found(loaded)
    texts = _pairs(lines, file) if pairs else lines
    with late_progress("scoring", _tokens(loaded, lines)) as told:
        found = scored(
            loaded, texts, masks=masks, begin=begin, length=length, memory=memory, same_length=same_length,
            clamp=clamp, progress=told,
        )  # fmt: skip
    _tell(found, file, loaded, lines)
    if not found.lines:
        raise InputError("no line could be scored", where=file, repair="see what is told of each above")
    emit_json(found.plain()) if as_json else _print(found)


def _pairs(lines: list[str], file: Path) -> list[tuple[str, str]]:
    found = []
    for number, line in enumerate(lines, 1):
        source, tab, target = line.partition("\t")
        if line.strip() and not tab:
            raise InputError("no tab between source and target", where=f"{file}:{number}", repair="source, tab, target")
        found.append((source, target))
    return found


def _tokens(model: Model, lines: list[str]) -> int:
    return 1 if model.tokenizer is None else max(1, int(model.tokenizer.encode_ids(lines)[1].sum()))


def _tell(found: Scores, file: Path, model: Model, lines: list[str]) -> None:
    from maskery.cli.output import counted, say, say_unknown

    for line, why in found.skipped[:_TOLD]:
        say(f"{file}:{line}: left out: {why}")
    if len(found.skipped) > _TOLD:
        say(f"{counted(len(found.skipped) - _TOLD, 'more line')} left out; --json tells which")
    if found.unknown:
        is_are = "is" if found.unknown == 1 else "are"
        say(f"{counted(found.unknown, 'token')} {is_are} not in the vocabulary: bits per character come out too small")
        say_unknown(model, lines)
    if found.masks:
        together = "one by one" if found.masks == 1 else f"{found.masks} at a time, which hides more"
        say(f"pseudo-perplexity: tokens were masked {together}, and seen from both sides; no probability of the text")


def _print(found: Scores) -> None:
    from rich import box
    from rich.table import Table

    from maskery.cli.output import results

    table = Table("line", "tokens", "log-probability", "perplexity", "bits/character", "text", box=box.SIMPLE_HEAD,
                  pad_edge=False)  # fmt: skip
    for each in found.lines[:_SHOWN]:
        shown = each.text if len(each.text) <= 40 else each.text[:39] + "…"
        table.add_row(f"{each.line}", f"{each.tokens:,}", f"{each.log_probability:.4f}", f"{each.perplexity:.4g}",
                      f"{each.bits_per_character:.4f}", shown)  # fmt: skip
    console, total = results(), found.total
    console.print(table)
    if len(found.lines) > _SHOWN:
        console.print(f"and {len(found.lines) - _SHOWN:,} more lines (--json has them all)")
    console.print(
        f"all {len(found.lines):,}: {total.tokens:,} tokens, log-probability {total.log_probability:.4f}, perplexity "
        f"{total.perplexity:.6g}, bits per character {total.bits_per_character:.4f}, bits per byte "
        f"{total.bits_per_byte:.4f}",
        soft_wrap=True,
    )
