"""Contradictions between who sees whom and the rest of a recipe: questions whose answer is in sight or whose matter is
out of it, sources without a target, segment ids without a vector.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from maskery.objectives.config import PAIR_OF
from maskery.recipes.refusal import Refusal, either
from maskery.rows.config import MODE_SEGMENTS

if TYPE_CHECKING:
    from maskery.recipes.recipe import Recipe

BLIND_TO_SECOND_SEGMENT = ("causal", "prefix", "packed", "packed_causal", "permuted")
"""Where [CLS], the first slot and part of the first piece, cannot see the second segment, or not all of it."""
HIDES_THE_NEXT = ("causal", "prefix", "packed_causal")
"""Where a slot that is asked for the next token cannot see it."""
PACKED = ("packed", "packed_causal")
_PAIRS = 'rows.pair = "next" with rows.kind = "segment_pair" or "sentence_pair"'


def _asked_for(recipe: Recipe, kind: str) -> str:
    """The key that has rows read in a way."""
    if not recipe.visibility.mixed:
        return f'visibility.kind = "{kind}"'
    return f"visibility.mixture.{kind} = {recipe.visibility.shares[kind]:.3g}"


def question_out_of_sight(recipe: Recipe) -> Refusal | None:
    """In a mixture the rows that are read in full are asked, so there must be some."""
    asked = [name for name in recipe.objectives if name in PAIR_OF]
    visibility = recipe.visibility
    if not asked or "full" in visibility.shares:
        return None
    repair = "a share for visibility.mixture.full" if visibility.mixed else 'visibility.kind = "full"'
    if not visibility.mixed and visibility.kind in BLIND_TO_SECOND_SEGMENT:
        reason = f'[CLS] cannot see the second segment when visibility.kind = "{visibility.kind}"'
    else:
        first = next(iter(visibility.shares))
        reason = f"is asked of rows that are read in full, and there are none: {_asked_for(recipe, first)}"
    return Refusal(
        piece=f"objectives.{asked[0]}", reason=reason, repair=f"{repair}, or --set objectives.{asked[0]}=false"
    )


def contrast_out_of_sight(recipe: Recipe) -> Refusal | None:
    blind = [kind for kind in recipe.visibility.shares if kind in BLIND_TO_SECOND_SEGMENT]
    if "contrast" not in recipe.objectives or not blind:
        return None
    return Refusal(
        piece="objectives.contrast",
        reason=f"[CLS] cannot see the whole row when {_asked_for(recipe, blind[0])}",
        repair='visibility.kind = "full", or --set objectives.contrast=false --set corruption.ngram.longest=0',
    )


def next_token_in_sight(recipe: Recipe) -> Refusal | None:
    seen = [kind for kind in recipe.visibility.shares if kind not in HIDES_THE_NEXT]
    if "next_token" not in recipe.objectives or recipe.rows.decoder != "none" or not seen:
        return None
    without = f"no share for visibility.mixture.{seen[0]}" if recipe.visibility.mixed else 'visibility.kind = "causal"'
    return Refusal(
        piece="objectives.next_token",
        reason=f"a position sees the token that it is asked for when {_asked_for(recipe, seen[0])}",
        repair=f"{without}, or another objective; `maskery inspect RECIPE --flow` draws it",
    )


def pair_taken_apart(recipe: Recipe) -> Refusal | None:
    rows, visibility = recipe.rows, recipe.visibility
    in_two = rows.two_segments or rows.pair != "none"
    if not in_two or visibility.mixed or visibility.kind not in PACKED:
        return None
    apart = (
        'rows.kind = "doc_sentences"' if rows.pair == "none" else 'rows.pair = "none" without the question about pairs'
    )
    return Refusal(
        piece="visibility.kind",
        reason=f'"{visibility.kind}" hides the second segment of a pair from the first',
        repair=f'{apart}, or visibility.kind = "full"',
    )


def mixture_without_kind(recipe: Recipe) -> Refusal | None:
    visibility = recipe.visibility
    if visibility.kind in visibility.shares:
        return None
    return Refusal(
        piece="visibility.kind",
        reason=f'"{visibility.kind}" is how the trained model reads, and no row of visibility.mixture is read so',
        repair=f"visibility.kind = {either(list(visibility.shares))}",
    )


def prefix_without_target(recipe: Recipe) -> Refusal | None:
    if "prefix" not in recipe.visibility.shares or recipe.rows.two_segments:
        return None
    return Refusal(
        piece="visibility.mixture.prefix" if recipe.visibility.mixed else "visibility.kind",
        reason=f'"prefix" reads a source and its target, and {_rows_of_one(recipe)}',
        repair=f"{_PAIRS}, or another visibility",
    )


def corruption_without_target(recipe: Recipe) -> Refusal | None:
    if recipe.corruption.segment == "all" or recipe.rows.two_segments:
        return None
    return Refusal(
        piece="corruption.segment",
        reason=f'"second" chooses in the second segment, and {_rows_of_one(recipe)}',
        repair=f'corruption.segment = "all", or {_PAIRS}',
    )


def _rows_of_one(recipe: Recipe) -> str:
    rows = recipe.rows
    return f'rows have no second segment: rows.kind = "{rows.kind}", rows.pair = "{rows.pair}"'


def modes_without_vectors(recipe: Recipe) -> Refusal | None:
    if recipe.rows.segments == "pair" or recipe.model.segments >= MODE_SEGMENTS:
        return None
    return Refusal(
        piece="rows.segments",
        reason=f'"mode" has {MODE_SEGMENTS} segment ids, but model.segments = {recipe.model.segments}',
        repair=f'model.segments = {MODE_SEGMENTS}, or rows.segments = "pair"',
    )
