"""The common examination: every model answers the same questions about the same held-out rows under the same masks.

Masked tokens are asked for with the model's own head; so is the next token, where models read in order (`ordered`). A
question about pairs is answered by the head that learnt it; a
model without one gets a linear head, fitted on the [CLS] states of training rows while the network stays as it is.

Shapes: R rows, n answers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from maskery.batches import Batch
from maskery.checkpoint.model import Model
from maskery.compare.linear import LinearHead, fit
from maskery.compare.variants import COMMON_TRAINING, Settings
from maskery.corpus.mixture import Corpora, Mixture
from maskery.errors import InputError
from maskery.feed import Feed
from maskery.model.config import GeneratorConfig, VisibilityConfig
from maskery.model.heads import TokenHead
from maskery.model.transformer import Hidden, inputs_of
from maskery.objectives.answers import token_losses_and_hits
from maskery.objectives.config import PAIR_OF
from maskery.recipes.recipe import Recipe, check, recipe
from maskery.rows.config import ONLY_PAIR, PAIRS
from maskery.train import machine
from maskery.train.build import first_rows

SEED = 0
"""Of held-out rows and masks, whatever seed a model was trained with."""
FRESH_ROWS = 4096
"""Training rows on which a missing head is fitted."""
_MICRO = 64
MASKED, NEXT = "masked_token", "next_token"
OWN, FRESH = "own", "fresh"

Tell = Callable[[int, int], None]
"""Rows done, of so many."""


@dataclass(frozen=True)
class Answers:
    """What a model got right, row by row."""

    hits: NDArray[np.float64]
    asked: NDArray[np.float64]
    loss: NDArray[np.float64]
    head: str = OWN

    def plain(self) -> dict[str, Any]:
        return {"head": self.head} | {name: getattr(self, name).tolist() for name in ("hits", "asked", "loss")}

    @staticmethod
    def of(plain: dict[str, Any]) -> Answers:
        arrays = {name: np.array(plain[name], dtype=np.float64) for name in ("hits", "asked", "loss")}
        return Answers(**arrays, head=plain["head"])


@dataclass(frozen=True)
class Examination:
    """What is asked, and on which rows."""

    common: Recipe
    corpus: Corpora
    rows: int
    questions: tuple[str, ...] = ()
    main: str = MASKED
    """What every model is asked for: masked tokens, or the next token of running text."""

    @staticmethod
    def of(name: str, corpus: Corpora, rows: int, questions: tuple[str, ...], settings: Settings) -> Examination:
        """`name` is the recipe whose rows and corruption are common to all; its length is that of training, and so
        are the similar words where it reads any."""
        shared = {key: value for key, value in settings.items() if key == "training.length"}
        common = recipe(name, {**COMMON_TRAINING, **shared, "rows.copies": 1, "training.steps": 1})
        if MASKED not in common.objectives:
            raise InputError(f"--common {name}: this recipe asks for no masked tokens", repair="--common roberta")
        changes: dict[str, Any] = {f"objectives.{each}": False for each in common.objectives if each != MASKED}
        if common.model.generator.width:
            changes["model.generator"] = GeneratorConfig().plain()
        if common.corruption.replace.similar:
            changes |= {key: value for key, value in settings.items() if key.startswith("knowledge.")}
        return Examination(common.changed(changes), corpus, rows, questions)

    def require(self) -> None:
        """Refuse a corpus on which the examination cannot be held, and a recipe that cannot be common to all; found
        before anything is trained."""
        if (why := _refusal(self.common)) is not None:
            raise InputError(f"--common {self.common.name}: {why}", repair="--common roberta")
        for part in self.corpus.parts if isinstance(self.corpus, Mixture) else (self.corpus,):
            if not len(part.documents("heldout")):
                raise InputError(
                    "this corpus has no held-out part, so there is nothing to examine the models on",
                    where=part.path,
                    repair="build it with a part set aside: maskery corpus build FILES --out DIR --heldout 0.01",
                )
        heldout = Feed(self.common if self.main == MASKED else self.running(), self.corpus, SEED, "heldout")
        first_rows(heldout, 2)
        for question in self.questions:
            for split in ("heldout", "train"):
                feed = Feed(self.pairs(question, self.common), self.corpus, SEED, split)
                if (feed.plan(feed.phases[0]).label < 0).all():
                    raise InputError(
                        f"the {split} part of the corpus holds no pair to ask {question} about",
                        repair=f"build the corpus from longer documents, or leave {question} out of --ask",
                    )

    def require_fit(self, label: str, trained: Recipe) -> None:
        """Refuse a model that cannot read the common rows; found before it is trained."""
        if self.main not in trained.objectives:
            return
        rows = self.masked(trained) if self.main == MASKED else self.next(trained)
        if (why := _refusal(rows)) is not None:
            name = f"those of {self.common.name}" if self.main == MASKED else "running text"
            other = "choose other rows with --common RECIPE, or change the variant"
            raise InputError(
                f"variant {label} cannot read the rows it would be examined on, {name}: {why}",
                repair=other if self.main == MASKED else "change the variant",
            )

    def plain(self) -> dict[str, Any]:
        """What must be equal for answers to be comparable."""
        common = self.common if self.main == MASKED else self.running()
        return {"recipe": common.toml(), "rows": self.rows, "fresh_rows": FRESH_ROWS, "seed": SEED}

    def masked(self, trained: Recipe) -> Recipe:
        return _read_by(trained, self.common)

    def running(self) -> Recipe:
        """Rows of running text as long as those of training, asked for the next token."""
        changes = {"training.length": self.common.training.length, "training.phases": [], "training.steps": 1}
        return recipe("gpt2", {**COMMON_TRAINING, **changes, "rows.copies": 1})

    def next(self, trained: Recipe) -> Recipe:
        """The same as a model reads them: with the memory that it has."""
        return self.running().model_copy(update={"model": trained.model, "visibility": trained.visibility})

    def pairs(self, question: str, trained: Recipe) -> Recipe:
        """Rows of the pairs that a question is about, corrupted as all are."""
        pair = PAIR_OF[question]
        kind = next((kind for kind, only in ONLY_PAIR.items() if only == pair), "segment_pair")
        asked = {"rows.kind": kind, "rows.pair": pair, "rows.short": 0.1}
        made = self.common.changed({**asked, f"objectives.{MASKED}": False, f"objectives.{question}.weight": 1.0})
        return _read_by(trained, made)

    @cached_property
    def commonest(self) -> dict[str, float]:
        """The share of pairs that have the commonest label of each question: what is right without any reading."""
        return {question: self._commonest(question) for question in self.questions}

    def _commonest(self, question: str) -> float:
        feed = Feed(self.pairs(question, self.common), self.corpus, SEED, "heldout")
        phase = feed.phases[0]
        label = feed.plan(phase).label[feed.first(phase, self.rows)[1]]
        counts = np.bincount(label[label >= 0])
        return float(counts.max(initial=0) / max(1, counts.sum()))

    def impossible(self, question: str, trained: Recipe) -> str | None:
        """Why a model cannot be asked a question; None if it can."""
        return _refusal(self.pairs(question, trained))


def _read_by(trained: Recipe, asked: Recipe) -> Recipe:
    """The rows as a model reads them when nothing else is said: one that was trained in several modes, in its own."""
    rows = asked.rows.model_copy(update={"segments": trained.rows.segments})
    visibility = VisibilityConfig(kind=trained.visibility.kind)
    # Nobody rewrites what is asked here: a generator is asked itself. Rows stand alone, so nothing is remembered.
    model = trained.model.model_copy(update={"generator": GeneratorConfig(), "memory": 0})
    return asked.model_copy(update={"model": model, "visibility": visibility, "rows": rows})


def _refusal(asked: Recipe) -> str | None:
    refusals = check(asked)
    return f"{refusals[0].piece}: {refusals[0].reason}" if refusals else None


@torch.no_grad()
def ask_masked(model: Model, trained: Recipe, examination: Examination, tell: Tell) -> Answers:
    """Masked tokens of the common rows; those of a model with a generator are the generator's to find."""
    model = model.answering(MASKED)
    feed = Feed(examination.masked(trained), examination.corpus, SEED, "heldout")
    head = cast(TokenHead, model.heads[MASKED])
    found = []
    for batch in _batches(feed, examination.rows, tell):
        targets = batch.targets[MASKED]
        hidden = _states(model, batch, targets.index)
        states = head.transform(hidden.select(targets.index))
        losses, hits = token_losses_and_hits(head, states, model.network.embeddings.tokens, targets.label)
        owner = (targets.index // batch.ids.shape[1]).cpu().numpy()
        each = (hits.cpu().numpy(), np.ones(len(owner)), losses.double().cpu().numpy())
        found.append(np.stack([np.bincount(owner, values, minlength=batch.size) for values in each]))
    hits, asked, loss = np.concatenate(found, axis=1)
    return Answers(hits, asked, loss)


@torch.no_grad()
def ask_pairs(model: Model, trained: Recipe, examination: Examination, question: str, tell: Tell) -> Answers:
    """A question about held-out pairs: one answer a row; rows that are no pair are not asked."""
    asked = examination.pairs(question, trained)
    heldout = Feed(asked, examination.corpus, SEED, "heldout")
    head = model.heads.get(question)
    fresh = None
    if head is None:
        training = Feed(asked, examination.corpus, SEED)
        vectors, labels = _read_pairs(model, training, question, FRESH_ROWS, tell)
        fresh = fit(vectors, labels, len(PAIRS.get(PAIR_OF[question]).labels))
    scores, label = [], []
    for batch in _batches(heldout, examination.rows, tell):
        targets = batch.targets[question]
        scores.append(_pair_scores(model, batch, question, fresh).cpu().double())
        label.append(targets.label.cpu())
    said, labels = torch.cat(scores), torch.cat(label)
    loss = torch.nn.functional.cross_entropy(said, labels, reduction="none")
    hits = (said.argmax(1) == labels).double()
    return Answers(hits.numpy(), np.ones(len(labels)), loss.numpy(), OWN if fresh is None else FRESH)


def _pair_scores(model: Model, batch: Batch, question: str, fresh: LinearHead | None) -> Tensor:
    targets = batch.targets[question]
    if fresh is not None:
        return fresh.scores(_cls(model, batch).index_select(0, targets.index).cpu())
    pooled = _states(model, batch, batch.rows.new_empty(0)).pooled
    assert pooled is not None, "a head for pairs was trained on a pooler"
    scores: Tensor = model.heads[question](pooled.index_select(0, targets.index))
    return scores


def _read_pairs(model: Model, feed: Feed, question: str, rows: int, tell: Tell) -> tuple[Tensor, Tensor]:
    vectors, labels = [], []
    for batch in _batches(feed, rows, tell):
        targets = batch.targets[question]
        vectors.append(_cls(model, batch).index_select(0, targets.index).cpu())
        labels.append(targets.label.cpu())
    return torch.cat(vectors), torch.cat(labels)


def _cls(model: Model, batch: Batch) -> Tensor:
    """(R,D) the last state of each row's first slot."""
    first = torch.arange(batch.size, device=batch.ids.device) * batch.ids.shape[1]
    return _states(model, batch, first).select(first)


def _states(model: Model, batch: Batch, reads: Tensor) -> Hidden:
    hidden: Hidden = model.network(inputs_of(batch), reads=reads)
    return hidden


def _batches(feed: Feed, rows: int, tell: Tell) -> Iterator[Batch]:
    phase, device = feed.phases[0], machine.device()
    epochs, numbers = feed.first(phase, rows)
    for start in range(0, len(numbers), _MICRO):
        part = slice(start, start + _MICRO)
        yield feed.make(0, phase, epochs[part], numbers[part]).to(device)
        tell(min(start + _MICRO, len(numbers)), len(numbers))
