"""`maskery generate`: text from a model, for a prompt or many; token by token where one text is written."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from maskery.cli.settings import JsonOption, PickleOption
from maskery.errors import InputError
from maskery.files import require_regular

if TYPE_CHECKING:
    from maskery.checkpoint.model import Model
    from maskery.writing.drafts import Draft
    from maskery.writing.how import How


def generate(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A model or run folder.")],
    prompts: Annotated[list[str] | None, typer.Argument(metavar="[PROMPT]...", help="Texts to go on from.")] = None,
    file: Annotated[Path | None, typer.Option("--file", metavar="F", help="A prompt a line; - for stdin.")] = None,
    how: Annotated[str | None, typer.Option("--how", help="greedy, beam, sample or gibbs.")] = None,
    new: Annotated[int | None, typer.Option("--new", help="Most new tokens.")] = None,
    length: Annotated[int | None, typer.Option("--length", help="gibbs: the number of new tokens.")] = None,
    least: Annotated[int | None, typer.Option("--least", help="No end before so many tokens.")] = None,
    samples: Annotated[int | None, typer.Option("--samples", help="Texts for each prompt.")] = None,
    seed: Annotated[int, typer.Option("--seed", help="Draws are the same for the same seed.")] = 0,
    temperature: Annotated[float | None, typer.Option("--temperature", help="Below 1: safer draws.")] = None,
    top_k: Annotated[int | None, typer.Option("--top-k", help="Draw among the K most probable.")] = None,
    top_p: Annotated[float | None, typer.Option("--top-p", help="Draw among the likeliest that sum to P.")] = None,
    repetition: Annotated[float | None, typer.Option("--repetition", help="Above 1: tokens come again less.")] = None,
    no_repeat: Annotated[int | None, typer.Option("--no-repeat", help="No N tokens in a row come twice.")] = None,
    stop: Annotated[list[str] | None, typer.Option("--stop", help="End before this text; may be repeated.")] = None,
    beams: Annotated[int | None, typer.Option("--beams", help="Texts in hand.")] = None,
    length_penalty: Annotated[float | None, typer.Option("--length-penalty", help="Above 1: longer texts.")] = None,
    early: Annotated[bool | None, typer.Option("--early/--late", help="End a search when beams are full.")] = None,
    steps: Annotated[int | None, typer.Option("--steps", help="gibbs: draws in all.")] = None,
    burn_in: Annotated[float | None, typer.Option("--burn-in", help="gibbs: share of draws without --top-k.")] = None,
    order: Annotated[str | None, typer.Option("--order", help="gibbs: random or sequential.")] = None,
    role: Annotated[str | None, typer.Option("--role", help="What the prompt is: source or beginning.")] = None,
    memory: Annotated[int | None, typer.Option("--memory", help="How many tokens back, with a memory.")] = None,
    batch: Annotated[int, typer.Option("--batch", help="Prompts at once.")] = 16,
    stream: Annotated[bool | None, typer.Option("--stream/--no-stream", help="Show tokens as they come.")] = None,
    allow_pickle: PickleOption = False,
    as_json: JsonOption = False,
) -> None:
    """Write text."""
    from maskery.cli.output import say
    from maskery.writing.how import how_of

    if new is not None and length is not None:
        raise InputError("--new and --length both say how much to write", repair="keep one of them")
    if length is not None and how != "gibbs":
        raise InputError("--length is for --how gibbs", repair=f"--new {length}, or --how gibbs")
    settings = {
        "new": new if length is None else length, "least": least,
        "samples": samples, "seed": seed, "temperature": temperature, "top_k": top_k,
        "top_p": top_p, "repetition": repetition, "no_repeat": no_repeat, "stop": tuple(stop) if stop else None,
        "beams": beams, "length_penalty": length_penalty, "early": early, "steps": steps, "burn_in": burn_in,
        "order": order,
    }  # fmt: skip
    asked = how_of(how, settings)
    if how is None and asked.how != "greedy":
        say(f"--how {asked.how}: the other options mean it")
    given = read_prompts(prompts, file, empty=asked.how == "gibbs")
    streams = _streams(stream, asked, len(given), as_json)
    loaded = _open(model, allow_pickle, given)
    _run(loaded, given, asked, {"role": role, "memory": memory, "batch": batch}, streams, as_json)


def read_prompts(prompts: Sequence[str] | None, file: Path | None, *, empty: bool = False) -> list[str]:
    """From the command line, from a file, or from stdin where neither is given."""
    if prompts and file is not None:
        raise InputError("prompts are given on the command line and in a file", repair="keep one of them")
    if prompts:
        return list(prompts)
    if file is None and empty:
        return [""]
    if file is None and sys.stdin.isatty():
        raise InputError("there is no prompt", repair='maskery generate MODEL "Once upon a time"')
    lines = read_lines(file)
    if not any(line.strip() for line in lines):
        raise InputError("there is no prompt", where=file or "stdin", repair="write one a line")
    found = [line for line in lines if line.strip()]
    if len(found) < len(lines):
        from maskery.cli.output import counted, say

        say(f"{counted(len(lines) - len(found), 'empty line')} left out")
    return found


def read_lines(file: Path | None) -> list[str]:
    """The lines of a UTF-8 file, or of stdin; a line feed ends a line, with or without a carriage return before it."""
    where = "stdin" if file is None or str(file) == "-" else str(file)
    fix = "give the path of a text file"
    try:
        if file is None or where == "stdin":
            text = sys.stdin.read()
        else:
            require_regular(file)
            text = file.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        raise InputError("no such file", where=where, repair=fix) from None
    except IsADirectoryError:
        raise InputError("is a folder", where=where, repair=fix) from None
    except OSError as error:
        raise InputError(f"cannot be read ({error.strerror or error})", where=where, repair=fix) from None
    except UnicodeDecodeError as error:
        raise InputError(f"not UTF-8 at byte {error.start}", where=where, repair="save it as UTF-8") from None
    return [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")] if text else []


def _streams(stream: bool | None, how: How, prompts: int, as_json: bool) -> bool:
    possible = prompts == 1 and how.samples == 1 and how.how in ("greedy", "sample") and not as_json
    if stream and not possible:
        raise InputError(
            "only one text that is written token after token can be shown as it comes",
            repair="one prompt, greedy or sample, without --json; or leave --stream out",
        )
    return possible if stream is None else stream


def _open(model: str, allow_pickle: bool, prompts: Sequence[str]) -> Model:
    from maskery.checkpoint.load import load
    from maskery.cli.output import counted, say, say_found, say_unknown
    from maskery.vectors.learn.folder import WRITER

    loaded = load(model, allow_pickle=allow_pickle)
    say_found(loaded)
    if (Path(model) / WRITER).is_dir():
        say(f"{model} makes vectors; the same network as a model that writes: {Path(model) / WRITER}")
    if loaded.tokenizer is not None:
        unk = loaded.tokenizer.specials.unk
        unknown = sum(loaded.tokenizer.encode_marked(prompt).count(unk) for prompt in prompts)
        if unknown and unk not in (loaded.tokenizer.specials.sep,):
            say(f"{counted(unknown, 'token')} of the prompts {'is' if unknown == 1 else 'are'} not in the vocabulary")
            say_unknown(loaded, prompts)
    return loaded


def _run(model: Model, prompts: list[str], how: How, options: dict[str, Any], streams: bool, as_json: bool) -> None:
    from maskery.writing.generate import batches

    parts = batches(model, prompts, how, **options)
    latest: deque[Sequence[Draft]] = deque(maxlen=1)
    try:
        latest.extend(_shown(next(parts), prompts[0]) if streams else _counted(parts, len(prompts), how, options))
    finally:  # also after Ctrl-C: what was written stays
        _hand_out(latest[0] if latest else (), model, how, streams, as_json)


def _counted(
    parts: Iterator[Iterator[Sequence[Draft]]], prompts: int, how: How, options: dict[str, Any]
) -> Iterator[Sequence[Draft]]:
    """All drafts so far after each token, with a bar where it takes long."""
    from maskery.cli.output import late_progress
    from maskery.writing.how import STEPS_PER_TOKEN

    steps = how.new if how.how != "gibbs" else how.steps or STEPS_PER_TOKEN * how.new
    finished: list[Draft] = []
    with late_progress("writing", -(-prompts // options["batch"]) * steps) as told:
        for number, part in enumerate(parts):
            latest: Sequence[Draft] = ()
            for step, latest in enumerate(part, 1):
                told(number * steps + step)
                yield [*finished, *latest]
            finished += latest
            told((number + 1) * steps)


def _shown(drafts: Iterator[Sequence[Draft]], prompt: str) -> Iterator[Sequence[Draft]]:
    """The same while the one text is printed as it grows: whole characters only."""
    began = False
    for latest in drafts:
        draft = latest[0]
        if not began and draft.before:
            sys.stdout.write(prompt)
        began = True
        sys.stdout.write(draft.speller.news(draft.ids, ended=bool(draft.ended)))
        sys.stdout.flush()
        yield latest


def _hand_out(drafts: Sequence[Draft], model: Model, how: How, streams: bool, as_json: bool) -> None:
    from maskery.cli.output import emit_json, results, say

    if not drafts:
        return
    texts = [draft.written() for draft in drafts]
    if as_json:
        emit_json({"how": how.how, "seed": how.seed, "texts": [text.plain() for text in texts]})
    elif streams:
        if texts[0].ended == "open":
            sys.stdout.write(drafts[0].speller.news(drafts[0].ids, ended=True))
        sys.stdout.write("\n")
        sys.stdout.flush()
    else:
        for draft, text in zip(drafts, texts, strict=True):
            continues = bool(draft.speller.before)
            results().print(text.prompt + text.text if continues else text.text, soft_wrap=True)
    short = sum(text.ended == "room" for text in texts)
    if short:
        limit = model.config.max_length
        told = "the text ends" if len(texts) == 1 else f"{short} of {len(texts)} texts end"
        say(f"{told} because the model has {limit} positions and no more")
    if any(text.ended == "open" for text in texts):
        say("interrupted: this is what was written")
    if any(text.ended == "rules" for text in texts):
        say("a text ends because every token was forbidden: loosen --no-repeat or --least")
