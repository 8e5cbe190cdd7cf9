"""A model that writes a text for a text: from examples to texts, into a folder and back.

config.json, model.safetensors, tokenizer.json    the model with its head over the vocabulary, as `maskery generate` and
                                                  transformers' AutoModelForSeq2SeqLM or AutoModelForCausalLM open it
task.toml                                         the task: how rows are made, how long a target is, how it is written
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from maskery.batches import Batch
from maskery.checkpoint.model import Model
from maskery.model.heads import TokenHead
from maskery.tasks.base import DoesTask, Evaluation, Say, UnitFeed, nobody
from maskery.tasks.examples import Examples
from maskery.tasks.framing.make import make_rows, row_lengths
from maskery.tasks.framing.marks import take_marks
from maskery.tasks.framing.tokens import encode
from maskery.tasks.judge.measure import measure
from maskery.tasks.model import write_task
from maskery.tasks.questions import Predicted
from maskery.tasks.seq2seq.form import source_frame, writing_form
from maskery.tasks.seq2seq.pairs import Pairs, target_tokens
from maskery.tasks.seq2seq.rooms import source_room
from maskery.tasks.seq2seq.system import WritingSystem
from maskery.tasks.settings import TaskConfig
from maskery.train.config import TrainingConfig
from maskery.writing.drafts import Written
from maskery.writing.forms import target_tokenizer_of, tokenizer_of
from maskery.writing.generate import BATCH, written_for
from maskery.writing.how import How


@dataclass(frozen=True, kw_only=True)
class WritingFeed(UnitFeed):
    """A unit is an example."""

    examples: Examples
    pairs: Pairs
    training: TrainingConfig

    def __post_init__(self) -> None:
        object.__setattr__(self, "rows", self.pairs.source)

    @property
    def units(self) -> int:
        return len(self.examples)

    @property
    def longest(self) -> int:
        return self.pairs.longest

    def asked(self, units: NDArray[np.int64], step: int = 0) -> Batch:
        return self.pairs.batch(units, step)


class WritingModel(DoesTask[WritingFeed]):
    system: WritingSystem

    def __init__(self, model: Model, config: TaskConfig) -> None:
        """`config` is resolved: the room of sources and targets is known."""
        self.model, self.config = model, config
        self.marks = take_marks(tokenizer_of(model), config.rows.marks)
        model.tokenizer = self.marks.tokenizer
        self.form = writing_form(model, _quiet)
        head = cast(TokenHead, model.heads[self.form.head])
        self.system = WritingSystem(model.network, head, self.form, config.head.smoothing)
        self.system.eval()

    def feed(self, examples: Examples, say: Say) -> WritingFeed:
        tokenizer, config = tokenizer_of(self.model), self.config
        encoded = encode(examples, tokenizer, self.marks.ids)
        rows, cut = make_rows(encoded, source_frame(self.model, self.form), config.rows, self.room)
        target = target_tokens(examples, target_tokenizer_of(self.model)).cut(config.write.longest)
        for note in (*encoded.notes, *cut.notes, *target.notes):
            say(note)
        pairs = Pairs(
            form=self.form,
            source=rows,
            target=target,
            end=target_tokenizer_of(self.model).specials.sep,
            pad=tokenizer.specials.pad,
            offset=self.model.config.position_offset,
        )
        return WritingFeed(examples=examples, pairs=pairs, training=config.training)

    def gold(self, examples: Examples) -> list[Any]:
        return [each.label for each in examples]

    def uncut(self, examples: Examples) -> list[int]:
        """Slots of all sources if nothing were cut."""
        encoded = encode(examples, tokenizer_of(self.model), self.marks.ids)
        lengths: list[int] = row_lengths(encoded, source_frame(self.model, self.form)).tolist()
        return lengths

    @property
    def room(self) -> int:
        """Without a decoder a source has what the longest target leaves."""
        return source_room(self.form, self.config.rows.length, self.config.write.longest)

    @property
    def how(self) -> How:
        write = self.config.write
        if write.beams == 1:
            return How(new=write.longest)
        return How(how="beam", new=write.longest, beams=write.beams, length_penalty=write.length_penalty)

    def answers(self, feed: WritingFeed, told: Callable[[int], None] = nobody) -> Predicted:
        return self._predicted(self._write(feed, np.arange(feed.units), told))

    def _predicted(self, found: list[Written]) -> Predicted:
        full = sum(each.ended in ("length", "room") for each in found)
        longest = self.config.write.longest
        notes = (f"{full:,} of {len(found):,} texts were ended at {longest} tokens (write.longest)",) if full else ()
        return Predicted(answers=[each.text for each in found], notes=notes)

    def evaluated(self, feed: WritingFeed) -> Evaluation:
        """The loss of all examples, and how good the texts are that are written for some of them."""
        chosen = some_of(feed.units, self.config.write.dev)
        written = self._write(feed, chosen, nobody)
        gold, loss = self.gold(feed.examples), self.loss(feed)
        figures = measure("seq2seq", [gold[at] for at in chosen], [each.text for each in written])
        whole = self._predicted(written) if len(chosen) == feed.units else None
        return Evaluation(metrics={**figures, "loss": loss}, loss=loss, predicted=whole)

    def seconds(self, feed: WritingFeed, most: float) -> float:
        """Of two batches of texts, the shortest sources and the longest; the loss takes little beside them."""
        began, chosen = time.perf_counter(), some_of(feed.units, self.config.write.dev)
        order, done = np.argsort(feed.rows.length[chosen], kind="stable"), 0
        for part in (order[-BATCH:], order[: max(0, len(order) - BATCH)][:BATCH]):
            self._write(feed, chosen[part], nobody)
            done += len(part)
            if time.perf_counter() - began > most:
                break
        return (time.perf_counter() - began) * len(chosen) / max(1, done)

    def _write(self, feed: WritingFeed, numbers: NDArray[np.int64], told: Callable[[int], None]) -> list[Written]:
        """In the order of the numbers; sources of like length are read together."""
        was = self.system.training
        self.system.eval()
        order = numbers[np.argsort(feed.rows.length[numbers], kind="stable")]
        found: dict[int, Written] = {}
        for start in range(0, len(order), BATCH):
            part = order[start : start + BATCH].tolist()
            found |= zip(part, self._texts([feed.pairs.prompt(each) for each in part]), strict=True)
            told(len(part))
        self.system.train(was)
        return [found[each] for each in numbers.tolist()]

    def _texts(self, prompts: Sequence[list[int]]) -> list[Written]:
        (drafts,) = written_for(self.model, self.form, [""] * len(prompts), prompts, self.how, len(prompts))
        return [draft.written() for draft in deque(drafts, maxlen=1)[0]]

    # -- folders

    def save(self, folder: Path, say: Say) -> None:
        made = Model(
            self.model.network, {self.form.head: self.system.head}, self.model.tokenizer, origin=self.model.origin
        )
        made.rows = self.model.rows
        for note in made.save(folder, replace=True).notes:
            say(note)
        write_task(folder, self.config)


def some_of(every: int, most: int) -> NDArray[np.int64]:
    """Numbers from 0 to every-1: all, or at most so many that lie evenly apart."""
    if not most or every <= most:
        return np.arange(every)
    return np.arange(most) * every // most


def _quiet(note: str) -> None:
    """The note was told when the task was resolved."""
