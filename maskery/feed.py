"""The one function that makes batches: a pure function of (recipe, corpus, seed, step).

Nothing in a row depends on workers, ranks, micro-batches or the rows beside it. Rows come from the plan of the step's
phase, in the order of `rows/order.py`; rank r of w takes a contiguous slice of the step's rows, and micro-batches slice
again. Rows of several corpora are numbered through: `corpus_of` says whose a row is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from maskery import arguments, randomness
from maskery.arguments import checked
from maskery.batches import Batch
from maskery.corpus.mixture import AnyCorpora, Corpora, Mixture, corpus_of
from maskery.corpus.store import Corpus, CorpusFacts
from maskery.corruption.config import CorruptionConfig
from maskery.corruption.corrupt import corrupt
from maskery.corruption.permutation import in_order
from maskery.errors import ArgumentError, CorpusError, InputError
from maskery.knowledge.load import similar_words
from maskery.knowledge.similar import SimilarWords
from maskery.objectives.build import objectives_of
from maskery.objectives.config import ASKED_OF_DECODER, ASKED_OF_GENERATOR
from maskery.objectives.masked_token import DRAWS
from maskery.objectives.protocol import Comparing, Objective
from maskery.phases import Phase, phase_at, phases_of
from maskery.recipes.recipe import AnyRecipe, Recipe, recipe_of
from maskery.rows.config import CLOSED
from maskery.rows.modes import modes, with_segments_by_mode
from maskery.rows.order import Lanes, Order
from maskery.rows.plan import RowPlan, Specials, plan_rows
from maskery.rows.ragged import Rows, gather
from maskery.rows.written import ended_by, source, written

WALK = 16
"""Rows that a lane reads at least where a memory is evaluated, if there are as many: the first remembers nothing."""


@dataclass(frozen=True)
class Feed:
    """Batches of one recipe over a corpus or several. `split="heldout"` serves the part set aside."""

    recipe: Recipe
    corpus: Corpora
    seed: int
    split: str = "train"

    def __post_init__(self) -> None:
        require_words(self.recipe, self.corpus)
        require_pairs(self.recipe, self.corpus)
        require_one_text(self.recipe, self.corpus)

    @cached_property
    def phases(self) -> tuple[Phase, ...]:
        return phases_of(self.recipe.training)

    @cached_property
    def objectives(self) -> Mapping[str, Objective]:
        return objectives_of(self.recipe.objectives)

    @cached_property
    def similar(self) -> SimilarWords | None:
        """Words of like meaning, where the recipe names a file of them and puts them into rows. Read once: a file that
        changes while rows are made does not change the rows."""
        if not self.recipe.corruption.replace.similar:
            return None
        return similar_words(self.recipe.knowledge, self.corpus.tokenizer)

    def plan(self, phase: Phase) -> RowPlan:
        plan = plan_rows(self.recipe.rows, self.corpus, phase.length, self.seed, self.split)
        for part, rows in zip(self.parts, np.diff(plan.part_start), strict=True):
            if rows == 0:
                larger = " or with a larger --heldout" * (self.split != "train")
                raise InputError(
                    f"the {self.split} part of the corpus gives no row of kind {self.recipe.rows.kind}",
                    where=part.path,
                    repair="build the corpus from more text" + larger,
                )
        return plan

    @property
    def parts(self) -> tuple[Corpus, ...]:
        """The corpora that are read."""
        return self.corpus.parts if isinstance(self.corpus, Mixture) else (self.corpus,)

    @property
    def names(self) -> tuple[str, ...]:
        """Short names of the corpora."""
        return self.corpus.names if isinstance(self.corpus, Mixture) else (self.corpus.path.resolve().name,)

    def shares(self, phase: Phase) -> NDArray[np.float64]:
        """(C,) the part of all rows that each corpus has."""
        weights = self.corpus.weights if isinstance(self.corpus, Mixture) else None
        rows = np.asarray(np.diff(self.plan(phase).part_start) if weights is None else weights, dtype=np.float64)
        shares: NDArray[np.float64] = rows / rows.sum()
        return shares

    def corpus_of(self, phase: Phase, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The number of the corpus that each row of the plan belongs to, and the row's number within it."""
        start = self.plan(phase).part_start
        part = np.searchsorted(start, rows, side="right") - 1
        return part, rows - start[part]

    def numbers(self, step: int) -> tuple[Phase, NDArray[np.int64], NDArray[np.int64]]:
        """The step's phase, and the epoch and plan row of each of its rows."""
        phase = phase_at(self.phases, step)
        visits = np.arange(phase.batch, dtype=np.int64) + (step - phase.first) * phase.batch
        return phase, *self.order(phase).visit(visits)

    def first(self, phase: Phase, count: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The epochs and plan rows of the first visits: at most as many as there are rows. With a memory, those of
        `walk`."""
        if self.recipe.model.memory:
            lanes, turns = self.walk(phase, count)
            return lanes.visit(np.arange(lanes.lanes * turns, dtype=np.int64))
        return self.order(phase).visit(np.arange(min(count, len(self.plan(phase))), dtype=np.int64))

    def walk(self, phase: Phase, count: int) -> tuple[Lanes, int]:
        """Lanes that read at most `count` rows from the beginning of their text, and how many each reads: enough for a
        memory to fill, whatever the batch of training is."""
        count = min(count, len(self.plan(phase)))
        lanes = max(1, min(phase.batch, count // WALK))
        return self.lanes(phase, lanes), count // lanes

    def order(self, phase: Phase) -> Order | Lanes:
        """In which order a phase visits the rows of its plan."""
        if self.recipe.model.memory:
            return self.lanes(phase, phase.batch)
        plan, stream = self.plan(phase), f"{self.split} {phase.number}"
        if isinstance(self.corpus, Mixture) and self.corpus.weights is not None:
            return Order(self.seed, stream, tuple(np.diff(plan.part_start).tolist()), self.corpus.weights)
        return Order(self.seed, stream, (len(plan),))

    def lanes(self, phase: Phase, lanes: int) -> Lanes:
        """The order of rows that go on where the row before them in their lane ended."""
        plan = self.plan(phase)
        return Lanes(self.seed, f"{self.split} {phase.number}", len(plan), lanes, tuple(plan.begins.tolist()))

    def batch(self, step: int, rank: int = 0, world: int = 1) -> Batch:
        """All rows that one rank reads at one step."""
        phase = phase_at(self.phases, step)
        return self._part(step, share(phase.batch, rank, world))

    def micro_batches(self, step: int, rank: int, world: int, micro: int) -> list[Batch]:
        """The same rows in slices of `micro`."""
        mine = share(phase_at(self.phases, step).batch, rank, world)
        cuts = range(mine.start, mine.stop, micro)
        return [self._part(step, slice(start, min(start + micro, mine.stop))) for start in cuts]

    def _part(self, step: int, part: slice) -> Batch:
        """Some of the rows of a step."""
        phase = phase_at(self.phases, step)
        order = self.order(phase)
        visits = np.arange(part.start, part.stop, dtype=np.int64) + (step - phase.first) * phase.batch
        made = self.make(step, phase, *order.visit(visits))
        return self.in_lanes(made, phase, order, visits) if isinstance(order, Lanes) else made

    def in_lanes(self, made: Batch, phase: Phase, order: Lanes, visits: NDArray[np.int64]) -> Batch:
        """The rows of these visits, with the lane of each and whether it begins there."""
        lane, fresh = torch.from_numpy(visits % order.lanes), torch.from_numpy(order.fresh(visits))
        first_half = phase.length // 2 if self.recipe.rows.kind in CLOSED else 0
        return replace(made, lane=lane, fresh=fresh, remember=first_half)

    def make(
        self,
        step: int,
        phase: Phase,
        epochs: NDArray[np.int64],
        numbers: NDArray[np.int64],
        mode: NDArray[np.uint8] | None = None,
    ) -> Batch:
        """The batch of the given plan rows, corrupted and asked about; read in the given modes, or in those drawn."""
        rows, to_write = self.both(step, phase, epochs, numbers)
        if mode is not None:
            rows = replace(rows, mode=mode)
        if self.recipe.rows.segments == "mode":
            rows = with_segments_by_mode(rows)
        if self.recipe.visibility.plain_kind:
            rows = replace(rows, mode=None)
        pad, offset = self.corpus.specials.pad, self.recipe.model.position_offset
        made = padded(rows, step, self._asked_of(decoder=False), pad, offset)
        made = replace(made, remember=self.plan(phase).reuse)
        if to_write is not None:
            made = replace(made, decoder=padded(to_write, step, self._asked_of(decoder=True), pad, offset))
        if not self.recipe.model.generator.width:
            return made
        return with_draws(made, randomness.keys(self.seed, f"draw {self.split} {phase.number}", epochs, numbers))

    def corrupted(self, step: int, phase: Phase, epochs: NDArray[np.int64], numbers: NDArray[np.int64]) -> Rows:
        """The same rows before padding, with the store's flags."""
        return self.both(step, phase, epochs, numbers)[0]

    def both(
        self, step: int, phase: Phase, epochs: NDArray[np.int64], numbers: NDArray[np.int64]
    ) -> tuple[Rows, Rows | None]:
        """The same, and beside them what a decoder reads, where the recipe has one."""
        clean = replace(gather(self.plan(phase), numbers, self.corpus), mode=self.modes(phase, epochs, numbers))
        keys = self.mask_keys(phase, epochs, numbers)
        theirs = self.corpus.target_specials if self.recipe.rows.decoder == "target" else self.corpus.specials
        corruption, facts = self.corruption(step), self.corpus.facts
        return read_and_written(clean, self.recipe, corruption, keys, facts, theirs, self.similar)

    def _asked_of(self, *, decoder: bool) -> dict[str, Objective]:
        """The questions about what the decoder writes, or all others."""
        has_one = self.recipe.rows.decoder != "none"
        return {
            name: each for name, each in self.objectives.items() if (has_one and name in ASKED_OF_DECODER) == decoder
        }

    def modes(self, phase: Phase, epochs: NDArray[np.int64], numbers: NDArray[np.int64]) -> NDArray[np.uint8] | None:
        """(B,) how each row is read, drawn anew in every epoch; None where all are read as the network reads."""
        own = randomness.keys(self.seed, f"mode {self.split} {phase.number}", epochs, numbers)
        return modes(self.recipe.visibility, own)

    def corruption(self, step: int) -> CorruptionConfig:
        """How rows are corrupted at a step. What is held out always sees the last stage: a curve has one question."""
        done = step / self.recipe.training.steps if self.split == "train" else 1.0
        return self.recipe.corruption.at(done)

    def mask_keys(self, phase: Phase, epochs: NDArray[np.int64], numbers: NDArray[np.int64]) -> randomness.Keys:
        """(B,) the keys of the rows' corruption."""
        corruption = self.recipe.corruption
        turns = epochs if corruption.when == "dynamic" else epochs % corruption.masks
        counters = (numbers,) if corruption.when == "static" and corruption.masks == 1 else (turns, numbers)
        return randomness.keys(self.seed, f"mask {self.split} {phase.number}", *counters)


def read_and_written(
    clean: Rows,
    recipe: Recipe,
    corruption: CorruptionConfig,
    keys: randomness.Keys,
    facts: CorpusFacts,
    theirs: Specials,
    similar: SimilarWords | None = None,
) -> tuple[Rows, Rows | None]:
    """Rows of a plan -> what the network reads of them, corrupted and ordered, and what a decoder reads, if there is
    one; `theirs` are the specials of the targets, whose vocabulary may be their own."""
    config = recipe.rows
    rows = corrupt(source(clean, config), corruption, keys, facts, similar)
    if recipe.visibility.kind == "permuted":
        rows = in_order(rows, keys)
    if config.decoder == "none":
        return rows, None
    if config.decoder != "target":
        return rows, written(clean, rows, config, facts.specials)
    return rows, written(ended_by(clean, theirs.sep), rows, config, theirs)


def require_words(recipe: Recipe, corpus: Corpora) -> None:
    """Refuse a recipe that is about words on a corpus that has none."""
    if not (key := recipe.corruption.about_words):
        return
    for part in corpus.parts if isinstance(corpus, Mixture) else (corpus,):
        if part.manifest["options"]["words"] == "none":
            raise CorpusError(
                f"the corpus was built with --words none, so it has no words, but {recipe.name} has corruption.{key}",
                where=part.path,
                repair="maskery corpus build FILES --words auto --out DIR, or a recipe of single tokens, such as bert",
            )


def require_one_text(recipe: Recipe, corpus: Corpora) -> None:
    """Refuse a memory on corpora that are visited in turns: a row would remember another corpus."""
    if recipe.model.memory and isinstance(corpus, Mixture) and corpus.weights is not None and len(corpus.parts) > 1:
        raise InputError(
            f"model.memory = {recipe.model.memory} remembers the text before a row, but weights have corpora read in "
            "turns",
            where=f"recipe {recipe.name}",
            repair="leave out the weights: each corpus is then read from its beginning to its end; or model.memory = 0",
        )


def require_pairs(recipe: Recipe, corpus: Corpora) -> None:
    """Refuse targets in a vocabulary that the recipe would not read."""
    if corpus.target_vocabulary and (recipe.rows.kind != "source_target" or recipe.rows.decoder != "target"):
        raise CorpusError(
            "the targets of the corpus have a vocabulary of their own, which only a decoder that writes them can read",
            where=corpus.path,
            repair="--set rows.kind=source_target --set rows.decoder=target (the recipe transformer has both), or "
            "build the corpus without --target-tokenizer",
        )


def share(rows: int, rank: int, world: int) -> slice:
    """Rank's contiguous part of the step's rows; sizes differ by at most one."""
    return slice(rows * rank // world, rows * (rank + 1) // world)


def padded(rows: Rows, step: int, objectives: Mapping[str, Objective], pad: int, offset: int) -> Batch:
    """Ragged rows -> a padded batch with its targets."""
    lengths = np.diff(rows.start)
    slots = int(lengths.max()) if len(lengths) else 0
    flat = rows.row * slots + rows.slot

    def spread(values: NDArray[np.generic], fill: int, dtype: torch.dtype) -> Tensor:
        grid = np.full(len(lengths) * slots, fill, dtype=np.int64)
        grid[flat] = values
        return torch.from_numpy(grid.reshape(len(lengths), slots)).to(dtype)

    positions = torch.arange(offset, offset + slots).expand(len(lengths), slots)
    if rows.position is not None:
        positions = spread(rows.position + offset, offset, torch.long)
    facts = {"document": spread(rows.document, -1, torch.long)}
    if rows.mode is not None:
        facts["mode"] = spread(rows.mode[rows.row], -1, torch.long)
    if rows.order is not None:
        facts["order"] = spread(rows.order, -1, torch.long)
    views = {name: cast(Comparing, each).view(rows) for name, each in objectives.items() if each.whole_batch}
    asked = None if rows.asked is None else torch.from_numpy(flat[rows.asked])
    return Batch(
        step=step,
        asked=asked,
        rows=torch.from_numpy(rows.number.astype(np.int64)),
        ids=spread(rows.ids, pad, torch.long),
        length=torch.from_numpy(lengths.astype(np.int64)),
        segments=spread(rows.segment, 0, torch.long),
        positions=positions,
        original=spread(rows.original, pad, torch.long),
        edit=spread(rows.edit, 0, torch.uint8),
        slots=facts,
        targets={name: objective.ask(rows, slots) for name, objective in objectives.items()},
        views={name: padded(view, step, {}, pad, offset) for name, view in views.items()},
    )


def with_draws(made: Batch, row_keys: randomness.Keys) -> Batch:
    """The batch with a number in [0, 1) for each token that a generator will draw."""
    targets = made.targets[ASKED_OF_GENERATOR]
    row, slot = np.divmod(targets.index.numpy(), max(1, made.ids.shape[1]))
    numbers = torch.from_numpy(randomness.uniform(row_keys[row], DRAWS, slot))
    asked = replace(targets, extra={**targets.extra, DRAWS: numbers})
    return replace(made, targets={**made.targets, ASKED_OF_GENERATOR: asked})


@checked
def batch(
    recipe: AnyRecipe,
    corpus: AnyCorpora,
    step: int = 0,
    rank: int = 0,
    world: int = 1,
    seed: int | None = None,
    split: str = "train",
) -> Batch:
    """What training will read at `step`: `batch(step=0)` feeds update 1.

    maskery.batch("bert", "my-corpus", step=0).ids
    """
    read, opened = recipe_of(recipe), corpus_of(corpus)
    places = arguments.count("step", step, 0), arguments.count("rank", rank, 0), arguments.count("world", world)
    if places[1] >= places[2]:
        raise ArgumentError(f"rank {rank} of {world}: ranks count from 0", repair=f"rank 0 to {world - 1}")
    keyed = read.training.seed if seed is None else arguments.count("seed", seed, 0)
    return Feed(read, opened, keyed, split).batch(*places)
