"""A model that does a task: from examples to answers, into a folder and back.

config.json, model.safetensors, tokenizer.json    the model; with its family's head where the task has no other
task.toml                                         the task: what is read, how rows are made, the labels
task.safetensors                                  what stands on top, where it is not the family's own head
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import tomlkit
import torch
from numpy.typing import NDArray
from pydantic import ValidationError

from maskery import files
from maskery.checkpoint.load import load
from maskery.checkpoint.locate import CONFIG
from maskery.checkpoint.model import Model
from maskery.checkpoint.state import Origin
from maskery.checkpoint.tensors import read_safetensors, write_safetensors
from maskery.errors import CheckpointError
from maskery.model.initial import initialise
from maskery.model.linear import Linear
from maskery.tasks.examples import Examples
from maskery.tasks.feed import TaskFeed
from maskery.tasks.framing.frame import frame_of, tokenizer_of
from maskery.tasks.framing.make import make_rows
from maskery.tasks.framing.marks import take_marks
from maskery.tasks.framing.tokens import encode
from maskery.tasks.native import PROBLEMS, Native, is_native, native_head, take_head, told_task, written_head
from maskery.tasks.questions import OfPieces, Predicted, Question, question_of
from maskery.tasks.settings import TaskConfig
from maskery.tasks.system import TaskSystem, Top

TASK_FILE, TOP_FILE = "task.toml", "task.safetensors"
Say = Callable[[str], None]


class TaskModel:
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
        self.system.eval()

    def question(self, examples: Examples) -> Question:
        made = question_of(examples, self.config.labels)
        return OfPieces(examples, self.config.labels, self._best) if self.system.crf is not None else made

    def _best(self, scores: NDArray[np.float32] | NDArray[np.float64], sizes: NDArray[np.int64]) -> NDArray[np.int64]:
        assert self.system.crf is not None
        given = torch.from_numpy(np.asarray(scores)).to(self.device)
        found, _ = self.system.crf.decode(given, torch.from_numpy(sizes).to(self.device))
        best: NDArray[np.int64] = found.cpu().numpy()
        return best

    @property
    def device(self) -> torch.device:
        return self.system.head.answer.weight.device

    def feed(self, examples: Examples, say: Say) -> TaskFeed:
        """The rows of examples, ready to be read or to be trained on."""
        tokenizer, config = tokenizer_of(self.model), self.config
        encoded = encode(examples, tokenizer, self.marks.ids)
        rows, cut = make_rows(encoded, frame_of(self.model), config.rows, config.rows.length)
        meta = config.meta.arrays(examples) if config.meta.columns else None
        question = self.question(examples)
        for note in (*encoded.notes, *cut.notes, *(() if meta is None else meta.notes), *question.prepare(rows)):
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

    def predict(self, examples: Examples, say: Say) -> Predicted:
        return self.answers(self.feed(examples, say))

    def answers(self, feed: TaskFeed, told: Callable[[int], None] = lambda rows: None) -> Predicted:
        """The answers to all that a feed has; `told` of the rows that were read."""
        return feed.question.predicted(feed.rows, self.scores(feed, told))

    def scores(self, feed: TaskFeed, told: Callable[[int], None] = lambda rows: None) -> NDArray[np.float32]:
        """(R,C) of all rows, or (N,C) of all their slots."""
        was, rows = self.system.training, feed.rows
        self.system.eval()
        size = len(rows.ids) if feed.question.by_slot else len(rows)
        found = np.zeros((size, feed.question.classes), dtype=np.float32)
        for numbers, batch in feed.to_read():
            part = self.system.scores(batch.to(self.device))
            if feed.question.by_slot:
                places = [np.arange(rows.start[number], rows.start[number + 1]) for number in numbers]
                found[np.concatenate(places)] = part
            else:
                found[numbers] = part
            told(len(numbers))
        self.system.train(was)
        return found

    # -- folders

    def save(self, folder: Path, say: Say) -> None:
        native = is_native(self.config, self.native)
        heads = {self.native.name: written_head(self.native, self.model.config, self.system.head)} if native else {}
        if self.config.head.lm:
            heads |= {name: head for name, head in self.model.heads.items() if head is self.system.language}
        made = Model(self.model.network, heads, self.model.tokenizer, origin=self._origin())
        made.labels = () if self.config.task == "choice" else self.config.labels
        made.rows = self.model.rows
        for note in made.save(folder, replace=True).notes:
            say(note)
        if native:
            (folder / TOP_FILE).unlink(missing_ok=True)
        else:
            write_safetensors(folder / TOP_FILE, self.top_state())
        files.write_text(folder / TASK_FILE, tomlkit.dumps(self.config.model_dump(mode="json", exclude_none=True)))

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
        return {f"{name}.{key}": value for name, part in parts for key, value in part.state_dict().items()}

    @classmethod
    def load(cls, folder: str | Path) -> TaskModel:
        """A folder that a fine-tuning wrote, or one of Hugging Face's with the head of a task."""
        folder = Path(folder)
        model = load(folder) if (folder / CONFIG).is_file() else None
        told = None if model is None or (folder / TASK_FILE).is_file() else told_task(model)
        config = told or read_task(folder)
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
