"""How much room sources and targets have, settled by model and training data, and told.

With a decoder each side has rows of its own: `rows.length` slots of a source, `write.longest` tokens of a target.
Without, both stand in one row of `rows.length` slots, and a source has what the longest target leaves, whatever its own
target is: when the model writes, nobody knows how long that will be.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from maskery.checkpoint.model import Model
from maskery.errors import InputError
from maskery.tasks.examples import Examples
from maskery.tasks.framing.cut import Counts
from maskery.tasks.framing.lengths import length_report, row_length
from maskery.tasks.framing.make import row_lengths
from maskery.tasks.framing.marks import take_marks
from maskery.tasks.framing.tokens import encode
from maskery.tasks.native import USUAL
from maskery.tasks.seq2seq.form import source_frame, writing_form
from maskery.tasks.seq2seq.pairs import TargetTokens, target_tokens
from maskery.tasks.settings import HeadConfig, ReadConfig, TaskConfig
from maskery.writing.forms import Form, target_tokenizer_of, tokenizer_of

Say = Callable[[str], None]
_COVERED, _MULTIPLE = 99, 8


class Room(NamedTuple):
    length: int
    """Slots of a row that the network reads: of a source, or of both together."""
    longest: int
    """Tokens of a target, without its end."""


def source_room(form: Form, length: int, longest: int) -> int:
    """Slots of a framed source at most."""
    return length if form.start else length - longest - (form.probe is not None)


def with_room(config: TaskConfig, model: Model, train: Examples, dev: Examples | None, say: Say) -> TaskConfig:
    """The task with the room of sources and targets."""
    _require_plain(config)
    form = writing_form(model, say)
    tokenizer = target_tokenizer_of(model)
    targets = target_tokens(train, tokenizer)
    _require_targets(train, targets)
    if dev is not None:
        _require_targets(dev, target_tokens(dev, tokenizer))
        _tell_dev(config, len(dev), say)
    marks = take_marks(tokenizer_of(model), config.rows.marks)
    for note in marks.notes:
        say(note)
    frame = source_frame(model, form)
    sources = row_lengths(encode(train, marks.tokenizer, marks.ids), frame)
    for line in length_report({"source": sources, "target": targets.lengths + 1}).lines:
        say(line)
    fewest = frame.marks(len(train.fields)) + len(train.fields)
    room = (_apart if form.start else _together)(config, form, sources, targets.lengths, fewest, say)
    rows = config.rows.model_copy(update={"length": room.length})
    write = config.write.model_copy(update={"longest": room.longest})
    return config.model_copy(update={"rows": rows, "write": write})


def _require_plain(config: TaskConfig) -> None:
    """Refuse what belongs to tasks that are read off a text."""
    usual, head = HeadConfig(), config.head
    given = {
        "read": config.read != ReadConfig(),
        "rows.windows": bool(config.rows.windows),
        "rows.towers": config.rows.towers != "one_row",
        "columns.meta": bool(config.columns.meta),
        **{f"head.{key}": getattr(head, key) != getattr(usual, key) for key in ("layers", "samples", "crf", "lm")},
        "head.loss": head.loss not in ("auto", "cross_entropy"),
    }
    wrong = next((key for key, set_ in given.items() if set_), None)
    if wrong is not None:
        raise InputError(
            f"seq2seq has no {wrong}: the model's own head writes, and it is trained as a whole",
            where=wrong,
            repair="leave it out; head.smoothing, rows.length, rows.truncate and write.* are what seq2seq has",
        )


def _require_targets(examples: Examples, targets: TargetTokens) -> None:
    for number in np.flatnonzero(targets.lengths == 0).tolist():
        example = examples[number]
        what = "there is no target" if example.label is None else "the target is empty"
        if example.label is not None and str(example.label).strip():
            what = f"the target {str(example.label)[:40]!r} has no token"
        raise example.wrong(what, "give the example a text to be written, or leave it out")


def _tell_dev(config: TaskConfig, many: int, say: Say) -> None:
    if config.write.dev and many > config.write.dev:
        say(
            f"dev: texts are written for {config.write.dev:,} of {many:,} examples at every evaluation, and for all at "
            "the end (write.dev); the loss is always that of all"
        )


def _enough(lengths: Counts) -> int:
    """For 99 of 100, and a little more: what is to be written may be longer."""
    enough = int(np.percentile(lengths, _COVERED, method="inverted_cdf"))
    return -(-enough // _MULTIPLE) * _MULTIPLE


def _apart(config: TaskConfig, form: Form, sources: Counts, targets: Counts, fewest: int, say: Say) -> Room:
    chosen = row_length(config.rows.length, sources, form.limit, USUAL)
    say(f"sources: {chosen.note}")
    most = (form.limit or USUAL) - len(form.start)
    longest = config.write.longest or min(_enough(targets), most)
    if form.limit is not None and longest > most:
        raise _too_long(longest, f"the model's decoder reads {most} tokens of a target at most", most)
    say(f"targets of at most {longest} tokens{_told(longest, targets)}")
    return Room(chosen.length, longest)


def _together(config: TaskConfig, form: Form, sources: Counts, targets: Counts, fewest: int, say: Say) -> Room:
    probe = int(form.probe is not None)
    most = row_length(config.rows.length or form.limit or USUAL, sources, form.limit, USUAL).length
    both = most - probe
    half = max(both - _enough(sources), (both - fewest) // 2, 1)
    longest = config.write.longest or min(_enough(targets), half)
    if both - longest < fewest:
        cause = f"rows of {most} slots have no room for a source beside a target of {longest} tokens"
        raise _too_long(longest, cause, max(1, both - fewest))
    length = config.rows.length or min(most, max(_enough(sources), fewest) + longest + probe)
    room = source_room(form, length, longest)
    over = int((sources > room).sum())
    say(
        f"rows of {length} slots: sources of at most {room}, marks counted ({over:,} of {len(sources):,} are longer), "
        f"and targets of at most {longest} tokens{_told(longest, targets)}"
    )
    return Room(length, longest)


def _told(longest: int, targets: Counts) -> str:
    over = int((targets > longest).sum())
    return f"; {over:,} of {len(targets):,} are longer, the longest has {int(targets.max())}" if over else ""


def _too_long(longest: int, cause: str, most: int) -> InputError:
    return InputError(
        f"targets of {longest} tokens: {cause}",
        where="write.longest",
        repair=f"set it to {most} or less; longer targets are cut, and counted",
    )
