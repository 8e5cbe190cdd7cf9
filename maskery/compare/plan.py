"""Variants -> recipes that can be compared: one way of training, one size, as many tokens in a step and in all.

Rows of different kinds hold different numbers of tokens. So the first variant's batch sets the tokens of a step, and
the others get the batch that comes nearest to them; a variant that names its own batch keeps it. The number of steps
follows from the tokens to be read. Whatever is wrong with any variant is found here, before anything is trained.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from maskery.compare.variants import Settings, Variant
from maskery.corpus.mixture import Corpora
from maskery.errors import InputError, RecipeError, UnknownName
from maskery.feed import Feed
from maskery.model.config import SIZES
from maskery.recipes.recipe import Recipe, diff, recipe
from maskery.train.build import first_rows
from maskery.train.defaults import CPU_BATCH, CPU_LENGTH, compared
from maskery.train.tokens import slots_per_row, tokens_in

_NAMES = ("name", "problem", "problem_zh", "paper", "data")
"""Keys that no training reads."""


@dataclass(frozen=True)
class Contestant:
    variant: Variant
    recipe: Recipe
    """Ready to be trained, but for the seed."""
    slots: float
    """Real positions of a row in the mean."""
    rows: int
    """Of the plan."""
    same_as: str | None = None
    """The label of one before that is trained in the same way: it is not trained twice."""

    @property
    def label(self) -> str:
        return self.variant.label

    @property
    def visits(self) -> float:
        """How often each row is read."""
        return self.recipe.training.steps * self.recipe.training.batch / self.rows

    def seeded(self, seed: int) -> Recipe:
        return self.recipe.changed({"training.seed": seed})


@dataclass(frozen=True)
class Length:
    """How long each model is trained: tokens, or the first variant's steps."""

    tokens: int | None = None
    steps: int | None = None

    def tokens_for(self, per_step: float) -> float:
        return self.tokens if self.tokens is not None else (self.steps or 1) * per_step


@dataclass(frozen=True)
class Plan:
    contestants: list[Contestant]
    tokens: float
    """To be read by each."""
    tokens_per_step: float
    left_out: dict[str, str]
    """Label -> why it cannot take part."""


def plan(
    variants: Sequence[Variant],
    corpus: Corpora,
    length: Length,
    size: str,
    settings: Settings,
    seed: int = 0,
    optional: frozenset[str] = frozenset(),
) -> Plan:
    """The contestants; those whose labels are `optional` are left out where they do not fit."""
    if size not in SIZES:
        raise UnknownName("size", size, SIZES)
    _require_labels(variants)
    expected = length.tokens_for(CPU_BATCH * CPU_LENGTH)
    settings = {**compared(size, expected, tokens_in(corpus)), **settings}
    left_out: dict[str, str] = {}
    drafts: list[tuple[Variant, Recipe, float, int]] = []
    for variant in variants:
        try:
            drafts.append((variant, *_draft(variant, corpus, size, settings, seed)))
        except InputError as error:
            if variant.label not in optional:
                raise
            left_out[variant.label] = f"{error.cause}; {error.repair}" if error.repair else error.cause
    _require_several(drafts, left_out)
    per_step = drafts[0][1].training.batch * drafts[0][2]
    tokens = length.tokens_for(per_step)
    contestants: list[Contestant] = []
    for variant, resolved, slots, rows in drafts:
        ready = _with_length(variant, resolved, slots, per_step, tokens)
        twin = next((each.label for each in contestants if not each.same_as and _same(each.recipe, ready)), None)
        contestants.append(Contestant(variant, ready, slots, rows, twin))
    return Plan(contestants, tokens, per_step, left_out)


def _require_labels(variants: Sequence[Variant]) -> None:
    labels = [variant.label for variant in variants]
    twice = next((label for label in labels if labels.count(label) > 1), None)
    if twice is not None:
        raise InputError(f"two variants are called {twice!r}", repair=f"give one a name of its own: other={twice}:...")


def _require_several(drafts: Sequence[object], left_out: dict[str, str]) -> None:
    if len(drafts) > 1:
        return
    why = "".join(f"\n  {label} is left out: {reason}" for label, reason in left_out.items())
    raise InputError(
        f"{'one variant alone' if drafts else 'no variant'} cannot be compared{why}",
        repair="give at least two: maskery compare bert roberta ..., or --preset masks",
    )


def _draft(variant: Variant, corpus: Corpora, size: str, settings: Settings, seed: int) -> tuple[Recipe, float, int]:
    """The recipe with the common answers, the mean length of its rows, and their number; refused if it cannot run."""
    try:
        resolved = recipe(variant.recipe, {**settings, **variant.changes}, size=size).require()
        if resolved.training.phases:
            raise RecipeError("a comparison has one length of rows", where="training.phases", repair="training.length")
        feed = Feed(resolved.changed({"training.steps": 1}), corpus, seed)
        first_rows(feed, 2)
    except InputError as error:
        place = f"variant {variant.label}" + (f" ({error.where})" if error.where else "")
        raise InputError(error.cause, where=place, repair=error.repair) from None
    phase = feed.phases[0]
    return resolved, slots_per_row(feed, phase), len(feed.plan(phase))


def _with_length(variant: Variant, resolved: Recipe, slots: float, per_step: float, tokens: float) -> Recipe:
    own = "training.batch" in variant.changes
    batch = resolved.training.batch if own else max(1, round(per_step / slots))
    steps = max(1, round(tokens / (batch * slots)))
    quarter = max(1, steps // 4)
    return resolved.changed(
        {
            "training.batch": batch,
            "training.steps": steps,
            "training.save_every": quarter,
            "training.keep": 1,
            "training.eval_every": quarter,
        }
    )


def _same(left: Recipe, right: Recipe) -> bool:
    return not diff(left, right).keys() - set(_NAMES)
