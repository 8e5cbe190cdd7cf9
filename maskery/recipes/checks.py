"""Pieces of different axes that contradict each other: each function looks at one contradiction and names the choices.

What one axis can tell alone is refused by its own config (rows of one segment with a pair, heads and width).
Whether a target can reach its own answer through the layers is another question, answered where visibility is known.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from maskery.recipes.recipe import Recipe

BLIND_TO_SECOND_SEGMENT = ("causal", "packed", "packed_causal")
"""Where [CLS], the first slot and part of the first piece, cannot see the second segment."""


@dataclass(frozen=True, kw_only=True)
class Refusal:
    piece: str
    reason: str
    repair: str


def no_objective(recipe: Recipe) -> Refusal | None:
    if recipe.objectives:
        return None
    return Refusal(
        piece="objectives",
        reason="nothing is asked of the model",
        repair="add a table such as [objectives.masked_token]",
    )


def no_weight(recipe: Recipe) -> Refusal | None:
    if not recipe.objectives or any(objective.weight > 0 for objective in recipe.objectives.values()):
        return None
    first = next(iter(recipe.objectives))
    return Refusal(
        piece="objectives",
        reason="every weight is 0, so the loss is always 0",
        repair=f"objectives.{first}.weight = 1.0",
    )


def next_sentence_without_pairs(recipe: Recipe) -> Refusal | None:
    if "next_sentence" not in recipe.objectives or recipe.rows.pair == "next":
        return None
    return Refusal(
        piece="objectives.next_sentence",
        reason=f'needs rows.pair = "next", which is "{recipe.rows.pair}"',
        repair='rows.pair = "next" with rows.kind = "segment_pair" or "sentence_pair", '
        "or without this objective: --set objectives.next_sentence=false",
    )


def next_sentence_out_of_sight(recipe: Recipe) -> Refusal | None:
    if "next_sentence" not in recipe.objectives or recipe.visibility.kind not in BLIND_TO_SECOND_SEGMENT:
        return None
    return Refusal(
        piece="objectives.next_sentence",
        reason=f'[CLS] cannot see the second segment when visibility.kind = "{recipe.visibility.kind}"',
        repair='visibility.kind = "full", or --set objectives.next_sentence=false',
    )


def pair_taken_apart(recipe: Recipe) -> Refusal | None:
    if recipe.rows.pair == "none" or recipe.visibility.kind not in ("packed", "packed_causal"):
        return None
    return Refusal(
        piece="visibility.kind",
        reason=f'"{recipe.visibility.kind}" hides the second segment of a pair from the first',
        repair='rows.pair = "none" with --set objectives.next_sentence=false, or visibility.kind = "full"',
    )


def segments_too_few(recipe: Recipe) -> Refusal | None:
    if recipe.rows.pair == "none" or recipe.model.segments != 1:
        return None
    return Refusal(
        piece="model.segments",
        reason="there is one segment embedding and rows have two segments",
        repair="model.segments = 2, or 0 for no segment embedding",
    )


def masked_token_without_corruption(recipe: Recipe) -> Refusal | None:
    if "masked_token" not in recipe.objectives or recipe.corruption.rate > 0:
        return None
    return Refusal(
        piece="objectives.masked_token",
        reason="corruption.rate = 0 chooses no token, so nothing is asked",
        repair="corruption.rate = 0.15, or another objective",
    )


def masked_token_in_plain_sight(recipe: Recipe) -> Refusal | None:
    if "masked_token" not in recipe.objectives or recipe.corruption.replace.keep < 1:
        return None
    return Refusal(
        piece="corruption.replace",
        reason="keep = 1 leaves every chosen token in the input: masked_token would copy its answer",
        repair="corruption.replace = { mask = 0.8, random = 0.1, keep = 0.1 }",
    )


def next_token_with_corruption(recipe: Recipe) -> Refusal | None:
    if "next_token" not in recipe.objectives or recipe.corruption.rate == 0:
        return None
    return Refusal(
        piece="objectives.next_token",
        reason=f"reads the text as it is, but corruption.rate = {recipe.corruption.rate:g} changes it",
        repair="corruption.rate = 0, or objectives.masked_token in its place",
    )


def rows_longer_than_positions(recipe: Recipe) -> Refusal | None:
    if recipe.model.positions != "learned":
        return None
    training = recipe.training
    lengths = (
        {f"training.phases[{number}].length": phase.length for number, phase in enumerate(training.phases)}
        if training.phases
        else {"training.length": training.length}
    )
    long = {key: length for key, length in lengths.items() if length > recipe.model.max_length}
    if not long:
        return None
    shown = ", ".join(f"{key} = {length}" for key, length in long.items())
    return Refusal(
        piece="model.positions",
        reason=f"learned positions end at model.max_length = {recipe.model.max_length}, but {shown}",
        repair=f"model.max_length = {max(long.values())}, shorter rows, or positions that are not learned",
    )


def warmup_without_end(recipe: Recipe) -> Refusal | None:
    training = recipe.training
    if training.warmup < 1 or training.warmup <= training.steps:
        return None
    return Refusal(
        piece="training.warmup",
        reason=f"{training.warmup:g} steps of warm-up are more than training.steps = {training.steps}",
        repair="training.warmup = 0.01, which is a share of all steps",
    )


def betas_out_of_range(recipe: Recipe) -> Refusal | None:
    if all(0 <= beta < 1 for beta in recipe.training.betas):
        return None
    return Refusal(
        piece="training.betas",
        reason=f"{list(recipe.training.betas)} is not within 0 <= beta < 1",
        repair="training.betas = [0.9, 0.999]",
    )


CHECKS: tuple[Callable[[Recipe], Refusal | None], ...] = (
    no_objective,
    no_weight,
    segments_too_few,
    pair_taken_apart,
    next_sentence_without_pairs,
    next_sentence_out_of_sight,
    masked_token_without_corruption,
    masked_token_in_plain_sight,
    next_token_with_corruption,
    rows_longer_than_positions,
    warmup_without_end,
    betas_out_of_range,
)
