"""A model that does a task: from examples to answers, into a folder and back.

config.json, model.safetensors, tokenizer.json    the model; with its family's head where the task has no other
task.toml                                         the task: what is read, how rows are made, the labels
task.safetensors                                  what stands on top, where it is not the family's own head; and the
                                                  encoders of all fields but the first, where each has its own
"""

from __future__ import annotations

import time
import tomllib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import tomlkit
import torch
from numpy.typing import NDArray
from pydantic import ValidationError

from maskery import files
from maskery.checkpoint.finite import guard, place_of
from maskery.checkpoint.load import load
from maskery.checkpoint.locate import CONFIG
from maskery.checkpoint.model import Model
from maskery.checkpoint.state import Origin
from maskery.checkpoint.tensors import read_safetensors, write_safetensors
from maskery.errors import CheckpointError
from maskery.model.initial import initialise
from maskery.model.linear import Linear
from maskery.tasks.base import AnyTaskModel, DoesTask, Evaluation, Say, nobody
from maskery.tasks.examples import Examples
from maskery.tasks.feed import TaskFeed
from maskery.tasks.folder import put_weights, weights_of
from maskery.tasks.framing.frame import frame_of, in_frame, tokenizer_of
from maskery.tasks.framing.marks import take_marks
from maskery.tasks.framing.sides import make_sides, side_lengths
from maskery.tasks.framing.tokens import encode
from maskery.tasks.joins import orders_of, sides_of
from maskery.tasks.judge.measure import measure
from maskery.tasks.native import PROBLEMS, Native, is_native, native_head, take_head, told_task, written_head
from maskery.tasks.no_answer import fitted
from maskery.tasks.questions import Floats, OfPieces, OfSpans, Predicted, Question, question_of
from maskery.tasks.settings import TaskConfig
from maskery.tasks.system import TaskSystem, Top
from maskery.tasks.tags import Tags
from maskery.text.tokenizer import Tokenizer

TASK_FILE, TOP_FILE = "task.toml", "task.safetensors"
_TOWERS = "towers."
_AT_ONCE = 256
"""Units whose loss is computed at once, and rows whose tags are."""


class TaskModel(DoesTask[TaskFeed]):
    system: TaskSystem

    def __init__(self, model: Model, config: TaskConfig) -> None:
        """`config` is resolved: labels, length and what is read are known."""
        self.model, self.config = model, config
        self.marks = take_marks(tokenizer_of(model), config.rows.marks)
        model.tokenizer = self.marks.tokenizer
        self.native: Native = native_head(model, config.task, config.head.dropout)
        if config.read.pool == "pooler" and model.network.pooler is None:
            model.network.pooler = Linear(model.config.width, model.config.width)
            initialise(model.network.pooler, model.config.init_std, config.training.seed, prefix="pooler")
        bias = self.native.bias or not is_native(config, self.native)
        language = model.token_head() if config.head.lm else None
        self.system = TaskSystem(model.network, Top(config, classes_of(config), config.meta, bias), language)
        self.system.initialise(config.training.seed)
        guard([self.system.head], place_of(model.network))
        self.system.eval()

    def question(self, examples: Examples) -> Question:
        made = question_of(examples, self.config.labels, sides_of(self.config))
        return OfPieces(examples, self.config.labels, self._best) if self.system.crf is not None else made

    def gold(self, examples: Examples) -> list[Any]:
        return self.question(examples).gold

    def _best(self, scores: Floats, sizes: NDArray[np.int64]) -> tuple[NDArray[np.int64], Floats]:
        """The best tags of all rows and the marginal probabilities of all tags, some rows at a time."""
        assert self.system.crf is not None
        paths, shares, ends = [np.zeros(0, dtype=np.int64)], [np.zeros((0, scores.shape[1]))], np.cumsum([0, *sizes])
        for first in range(0, len(sizes), _AT_ONCE):
            some = torch.from_numpy(sizes[first : first + _AT_ONCE]).to(self.device)
            part = scores[ends[first] : ends[min(first + _AT_ONCE, len(sizes))]]
            given = torch.from_numpy(np.ascontiguousarray(part)).to(self.device)
            paths.append(self.system.crf.decode(given, some)[0].cpu().numpy())
            shares.append(self.system.crf.marginals(given, some).cpu().numpy())
        return np.concatenate(paths), np.concatenate(shares)

    def feed(self, examples: Examples, say: Say) -> TaskFeed:
        """The rows of examples, ready to be read or to be trained on."""
        tokenizer, config = tokenizer_of(self.model), self.config
        encoded = encode(examples, tokenizer, self.marks.ids)
        rows, cut = make_sides(encoded, frame_of(self.model), config.rows, config.rows.length, orders_of(config))
        meta = config.meta.arrays(examples) if config.meta.columns else None
        question = self.question(examples)
        for note in (*encoded.notes, *cut, *(() if meta is None else meta.notes), *question.prepare(rows)):
            say(note)
        return TaskFeed(
            rows=rows,
            question=question,
            training=config.training,
            pad=tokenizer.specials.pad,
            offset=self.model.config.position_offset,
            meta=meta,
            language=config.head.lm > 0,
            decoder_start=None if self.model.network.decoder is None else self.model.decoder_start(),
        )

    def uncut(self, examples: Examples) -> list[int]:
        """Slots of all rows of examples if nothing were cut."""
        encoded = encode(examples, tokenizer_of(self.model), self.marks.ids)
        lengths: list[int] = side_lengths(encoded, frame_of(self.model), orders_of(self.config)).tolist()
        return lengths

    def answers(self, feed: TaskFeed, told: Callable[[int], None] = nobody) -> Predicted:
        return self._answered(feed, self.scores(feed, told))

    def _answered(self, feed: TaskFeed, scores: NDArray[np.float32]) -> Predicted:
        """With the threshold of now, which training may have moved since the feed was made."""
        asked = feed.question
        if isinstance(asked, OfSpans):
            asked = replace(asked, threshold=self.config.threshold)
        return asked.predicted(feed.rows, scores)

    def evaluated(self, feed: TaskFeed) -> Evaluation:
        scores = self.scores(feed)
        if self.fits_threshold and isinstance(feed.question, OfSpans):
            best = fitted(feed.question, feed.question.found(feed.rows, scores))
            self.config = self.config.model_copy(update={"threshold": best.value})
        found = self._answered(feed, scores)
        metrics = measure(
            self.config.task,
            feed.question.gold,
            found.answers,
            labels=self.config.labels,
            probabilities=found.of_classes,
            groups=found.groups,
        )
        return Evaluation(metrics=metrics, loss=self._loss_of(feed, scores), predicted=found)

    @torch.no_grad()
    def _loss_of(self, feed: TaskFeed, scores: NDArray[np.float32]) -> float:
        """The mean loss by scores that are there already: what `loss` computes with a second reading."""
        total, count, sides = 0.0, 0, feed.question.sides
        for start in range(0, feed.units, _AT_ONCE):
            numbers = feed.rows_of(np.arange(start, min(start + _AT_ONCE, feed.units)))
            rows = feed.rows.take(numbers)
            targets = feed.question.targets(rows)
            index = targets.index.numpy()
            if feed.question.by_slot:
                width = int(rows.length.max(initial=1))
                places = feed.rows.start[numbers[index // width]] + index % width
            else:
                places = (numbers[::sides] // sides)[index]
            each = torch.from_numpy(scores[places]).to(self.device)
            total += float(self.system.total_of(each, targets.to(self.device)))
            count += self.system.count_of(targets)
        return total / max(1, count)

    def seconds(self, feed: TaskFeed, most: float) -> float:
        """The longest rows are read first, so tokens are counted."""
        began, read = time.perf_counter(), 0
        for numbers, batch in feed.to_read():
            self.system.scores(batch.to(self.device))
            read += int(feed.rows.length[numbers].sum())
            if time.perf_counter() - began > most:
                break
        return (time.perf_counter() - began) * float(feed.rows.length.sum()) / max(1, read)

    def scores(self, feed: TaskFeed, told: Callable[[int], None] = nobody) -> NDArray[np.float32]:
        """(R,C) of all rows, (E,C) of examples of several rows, or (N,C) of all slots."""
        was, rows, sides = self.system.training, feed.rows, feed.question.sides
        self.system.eval()
        size = len(rows.ids) if feed.question.by_slot else len(rows) // sides
        found = np.zeros((size, feed.question.classes), dtype=np.float32)
        for numbers, batch in feed.to_read():
            part = self.system.scores(batch.to(self.device))
            if feed.question.by_slot:
                places = [np.arange(rows.start[number], rows.start[number + 1]) for number in numbers]
                found[np.concatenate(places)] = part
            else:
                found[numbers[::sides] // sides] = part
            told(len(numbers))
        self.system.train(was)
        return found

    # -- folders

    def save(self, folder: Path, say: Say) -> None:
        native = is_native(self.config, self.native)
        heads = {self.native.name: written_head(self.native, self.model.config, self.system.head)} if native else {}
        if self.config.head.lm:
            heads |= {name: head for name, head in self.model.heads.items() if head is self.system.language}
        made = Model(self.model.network, heads, self._tokenizer(), origin=self._origin())
        made.labels = () if self.config.task == "choice" else self.config.labels
        made.rows = self.model.rows
        for note in made.save(folder, replace=True).notes:
            say(note)
        if native:
            (folder / TOP_FILE).unlink(missing_ok=True)
        else:
            write_safetensors(folder / TOP_FILE, self.top_state())
        write_task(folder, self.config)

    def _tokenizer(self) -> Tokenizer:
        """With the marks of the task's rows around a text, which a pretrained folder's own may not put there."""
        tells = self.model.config.segments > 1 or self.model.network.embeddings.positions.tells_segments
        return in_frame(tokenizer_of(self.model), frame_of(self.model), segments=tells)

    def _origin(self) -> Origin | None:
        """What the model's folder said, with the kind of answer that its new head gives."""
        if self.model.origin is None:
            return None
        kept = {key: value for key, value in self.model.origin.config.items() if key != "problem_type"}
        problem = PROBLEMS.get(self.config.task)
        return replace(self.model.origin, config=kept | ({"problem_type": problem} if problem else {}))

    def take_native(self) -> bool:
        """Go on from the model's own head, where it has that of the task, for as many answers; whether it had."""
        head = self.model.heads.get(self.native.name)
        if head is None or not is_native(self.config, self.native):
            return False
        fresh = written_head(self.native, self.model.config, self.system.head)
        sizes = [{name: each.shape for name, each in part.named_parameters()} for part in (head, fresh)]
        if sizes[0] != sizes[1]:
            return False
        take_head(head, self.system.head)
        return True

    def top_state(self) -> dict[str, torch.Tensor]:
        parts = self.system.on_top.items()
        found = {f"{name}.{key}": value for name, part in parts for key, value in part.state_dict().items()}
        return found | weights_of(self.system.towers, _TOWERS)

    @classmethod
    def load(cls, folder: str | Path) -> AnyTaskModel:
        """A folder that a fine-tuning wrote, or one of Hugging Face's with the head of a task."""
        folder = Path(folder)
        model = load(folder) if (folder / CONFIG).is_file() else None
        told = None if model is None or (folder / TASK_FILE).is_file() else told_task(model)
        if told is not None and told.task == "tag":
            Tags.of_names(told.labels, folder / CONFIG)
        config = told or read_task(folder)
        if config.task == "seq2seq":
            from maskery.tasks.seq2seq.model import WritingModel  # it is made of this module

            return WritingModel(model or load(folder), config)
        made = cls(model or load(folder), config)
        if (folder / TOP_FILE).is_file():
            _fill(made, read_safetensors(folder / TOP_FILE), folder / TOP_FILE)
        elif not made.take_native():
            raise CheckpointError(
                f"has neither the head {made.native.name} nor {TOP_FILE}",
                where=folder,
                repair="take the folder that maskery finetune has written",
            )
        return made


def _fill(made: TaskModel, tensors: dict[str, torch.Tensor], where: Path) -> None:
    wanted = made.top_state()
    wrong = [name for name in {*wanted, *tensors} if name not in tensors or name not in wanted]
    wrong += [name for name in wanted if name in tensors and tensors[name].shape != wanted[name].shape]
    if wrong:
        raise CheckpointError(
            f"{sorted(wrong)[0]} does not fit {TASK_FILE}",
            where=where,
            repair="put both files back as they were written together",
        )
    for name, part in made.system.on_top.items():
        start = f"{name}."
        part.load_state_dict({key.removeprefix(start): tensors[key] for key in tensors if key.startswith(start)})
    towers = {key.removeprefix(_TOWERS): tensors[key] for key in tensors if key.startswith(_TOWERS)}
    put_weights(made.system.towers, towers, where)


def write_task(folder: Path, config: TaskConfig) -> None:
    files.write_text(folder / TASK_FILE, tomlkit.dumps(config.model_dump(mode="json", exclude_none=True)))


def read_task(folder: Path) -> TaskConfig:
    path = folder / TASK_FILE
    if not path.is_file():
        raise CheckpointError(
            f"has no {TASK_FILE}: it is not what a fine-tuning wrote",
            where=folder,
            repair="maskery finetune MODEL --task TASK --train FILE --dev FILE --out RUN makes such a folder",
        )
    try:
        return TaskConfig(**tomllib.loads(path.read_text(encoding="utf-8")))
    except (ValidationError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise CheckpointError(
            f"cannot be read: {str(error).splitlines()[0]}", where=path, repair="put the file back as it was written"
        ) from None


def classes_of(config: TaskConfig) -> int:
    return {"regress": 1, "rank": 1, "choice": 1, "qa": 2}.get(config.task, len(config.labels))
