"""Contradictions of what reads in an order: questions about what comes next or is asked in another order, a memory of
rows that do not continue each other, a second stream without an order, a decoder that is given nothing to write.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from maskery.model.config import RELATIVE
from maskery.recipes.refusal import Refusal, either
from maskery.rows.config import CLOSED, CONTINUED, UNFRAMED

if TYPE_CHECKING:
    from maskery.recipes.recipe import Recipe


def permuted_question_without_order(recipe: Recipe) -> Refusal | None:
    if "permuted_token" not in recipe.objectives:
        return None
    if recipe.visibility.kind != "permuted":
        return Refusal(
            piece="objectives.permuted_token",
            reason=f'asks in an order of its own, but visibility.kind = "{recipe.visibility.kind}" has none',
            repair='visibility.kind = "permuted", or another objective, such as masked_token',
        )
    if recipe.model.streams != 2:
        return Refusal(
            piece="objectives.permuted_token",
            reason="a state that knows its own token cannot be asked for it, and model.streams = 1 has no other",
            repair="model.streams = 2",
        )
    return None


def order_without_question(recipe: Recipe) -> Refusal | None:
    if recipe.visibility.kind != "permuted" or "permuted_token" in recipe.objectives:
        return None
    return Refusal(
        piece="visibility.kind",
        reason='"permuted" reads in the order in which permuted_token asks, and it is not asked',
        repair='objectives.permuted_token = { weight = 1.0 }, or visibility.kind = "full"',
    )


def streams_without_order(recipe: Recipe) -> Refusal | None:
    if recipe.model.streams == 1 or recipe.visibility.kind == "permuted":
        return None
    return Refusal(
        piece="model.streams",
        reason=f'a second stream answers for slots in an order, and visibility.kind = "{recipe.visibility.kind}"',
        repair='visibility.kind = "permuted", or model.streams = 1',
    )


def contrast_without_cls(recipe: Recipe) -> Refusal | None:
    if "contrast" not in recipe.objectives or recipe.rows.kind not in UNFRAMED:
        return None
    return Refusal(
        piece="objectives.contrast",
        reason=f'compares the state of [CLS] at the beginning, and rows of kind "{recipe.rows.kind}" have none there',
        repair='rows.kind = "full_sentences", or --set objectives.contrast=false --set corruption.ngram.longest=0',
    )


def memory_of_strangers(recipe: Recipe) -> Refusal | None:
    if not recipe.model.memory or recipe.rows.kind in CONTINUED:
        return None
    return Refusal(
        piece="model.memory",
        reason=f'rows.kind = "{recipe.rows.kind}" does not go on where the row before ended: its memory would be of '
        "other text",
        repair=f"rows.kind = {either(list(CONTINUED))}, or model.memory = 0",
    )


def memory_without_distances(recipe: Recipe) -> Refusal | None:
    positions = recipe.model.positions
    if not recipe.model.memory or positions in RELATIVE:
        return None
    return Refusal(
        piece="model.memory",
        reason=f'what is remembered stands before the row, and model.positions = "{positions}" cannot tell how far',
        repair=f"model.positions = {either(list(RELATIVE))}, or model.memory = 0",
    )


def memory_out_of_sight(recipe: Recipe) -> Refusal | None:
    kind = recipe.visibility.kind
    if not recipe.model.memory or (kind in ("full", "causal", "permuted") and not recipe.visibility.mixed):
        return None
    shown = "visibility.mixture" if recipe.visibility.mixed else f'visibility.kind = "{kind}"'
    return Refusal(
        piece="model.memory",
        reason=f"{shown} does not look at what stands before the row",
        repair='visibility.kind = "causal", or model.memory = 0',
    )


def permuted_question_of_the_hidden(recipe: Recipe) -> Refusal | None:
    """A target must see the true tokens of the targets before it: that is what makes the order one of reading."""
    if "permuted_token" not in recipe.objectives:
        return None
    if recipe.corruption.rate == 0:
        return Refusal(
            piece="objectives.permuted_token",
            reason="corruption.rate = 0 chooses no token, so nothing is asked",
            repair="corruption.rate = 0.1666667, or another objective",
        )
    if recipe.corruption.replace.keep == 1:
        return None
    return Refusal(
        piece="objectives.permuted_token",
        reason="a token is asked for in the sight of the true tokens before it in the order, and corruption.replace "
        f"leaves only {recipe.corruption.replace.keep:g} of them in the text",
        repair="corruption.replace = { mask = 0.0, random = 0.0, keep = 1.0 }",
    )


def memory_that_saw_ahead(recipe: Recipe) -> Refusal | None:
    """The second half of such a row is the first half of the next: who remembers states that saw it knows answers."""
    if not recipe.model.memory or recipe.rows.kind not in CLOSED or recipe.visibility.kind != "full":
        return None
    return Refusal(
        piece="model.memory",
        reason=f'the first half of a row of kind "{recipe.rows.kind}" sees the second when visibility.kind = "full", '
        "and the next row, which asks about that text, would remember it",
        repair='visibility.kind = "permuted" or "causal", or model.memory = 0',
    )


def memory_of_other_lengths(recipe: Recipe) -> Refusal | None:
    shares = recipe.corruption.replace
    changing = [name for name in ("infill", "delete") if getattr(shares, name) > 0 and recipe.corruption.rate > 0]
    if not recipe.model.memory or recipe.rows.kind not in CLOSED or not changing:
        return None
    return Refusal(
        piece="model.memory",
        reason=f"holds the first half of every row, and corruption.replace.{changing[0]} moves where that ends",
        repair=f"corruption.replace.{changing[0]} = 0, or model.memory = 0",
    )


def third_segment_without_vector(recipe: Recipe) -> Refusal | None:
    if recipe.rows.kind not in CLOSED or recipe.rows.segments == "mode" or recipe.model.segments not in (1, 2):
        return None
    return Refusal(
        piece="model.segments",
        reason=f'rows of kind "{recipe.rows.kind}" have three segments, the last for [CLS], and there are '
        f"{recipe.model.segments}",
        repair="model.segments = 3, or 0 for no segment embedding",
    )


def memory_of_two(recipe: Recipe) -> Refusal | None:
    """What a generator and the rows of a contrast read is not the text that a lane remembers."""
    asked = ["model.generator"] * (recipe.model.generator.width > 0)
    asked += ["objectives.contrast"] * ("contrast" in recipe.objectives)
    if not recipe.model.memory or not asked:
        return None
    return Refusal(
        piece="model.memory",
        reason=f"one network remembers the rows of a batch, and {asked[0]} has others beside them",
        repair=f"model.memory = 0, or a recipe without {asked[0]}",
    )
