"""How many tokens a recipe's rows hold, and how many steps a number of tokens makes. Read off the plans: no row is
made."""

from __future__ import annotations

import math

import numpy as np

from maskery.corpus.mixture import Corpora, Mixture
from maskery.feed import Feed
from maskery.phases import Phase, phases_of
from maskery.recipes.recipe import Recipe


def shares(recipe: Recipe) -> list[tuple[Phase, float]]:
    """The phases of a recipe and the part of all steps that each takes."""
    phases = phases_of(recipe.training)
    return [(phase, (phase.stop - phase.first) / recipe.training.steps) for phase in phases]


def slots_per_row(feed: Feed, phase: Phase) -> float:
    """Mean number of real positions: the tokens, [CLS], and a [SEP] behind each piece; by the shares of the corpora."""
    plan = feed.plan(phase)
    pieces = np.concatenate(([0], np.cumsum(plan.piece_end - plan.piece_start + 1)))
    slots = np.diff(pieces[plan.row_start[plan.part_start]])
    rows = np.diff(plan.part_start)
    return float(feed.shares(phase) @ (slots / rows + 1))


def steps_for_tokens(tokens: int, recipe: Recipe, corpus: Corpora) -> tuple[int, float]:
    """The number of steps that read so many real positions, and how many one step reads in the mean."""
    feed = Feed(recipe, corpus, recipe.training.seed)
    each = sum(share * phase.batch * slots_per_row(feed, phase) for phase, share in shares(recipe))
    return max(1, math.ceil(tokens / each)), each


def tokens_read(recipe: Recipe, corpus: Corpora) -> float:
    """Real positions that a run of the recipe reads, in the mean."""
    return recipe.training.steps * steps_for_tokens(1, recipe, corpus)[1]


def tokens_in(corpus: Corpora, split: str = "train") -> int:
    """Tokens of the documents of a split."""
    parts = corpus.parts if isinstance(corpus, Mixture) else (corpus,)
    edges = [part.sentence_start[part.document_start] for part in parts]
    return sum(int(np.diff(edge)[part.documents(split)].sum()) for edge, part in zip(edges, parts, strict=True))
