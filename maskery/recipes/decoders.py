"""Contradictions about a decoder: one that is given nothing to write or is not asked, text that it would only copy,
tokens that are no longer there, questions about what it alone reads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from maskery.objectives.config import ASKED_OF_DECODER, PAIR_OF
from maskery.recipes.refusal import Refusal, either

if TYPE_CHECKING:
    from maskery.recipes.recipe import Recipe

_NO_DECODER = '--set model.decoder=0 --set rows.decoder="none"'


def writes(recipe: Recipe) -> bool:
    """Whether a decoder is given something to write, which is then what next_token asks for."""
    return recipe.rows.decoder != "none"


def decoder_without_text(recipe: Recipe) -> Refusal | None:
    if not recipe.model.decoder or writes(recipe):
        return None
    return Refusal(
        piece="model.decoder",
        reason='has nothing to write: rows.decoder = "none"',
        repair='rows.decoder = "text", "chosen" or "target", or model.decoder = 0',
    )


def text_without_decoder(recipe: Recipe) -> Refusal | None:
    if recipe.model.decoder or not writes(recipe):
        return None
    return Refusal(
        piece="rows.decoder",
        reason=f'"{recipe.rows.decoder}" is for a decoder to write, and model.decoder = 0',
        repair=f'model.decoder = {recipe.model.layers}, or rows.decoder = "none"',
    )


def decoder_without_question(recipe: Recipe) -> Refusal | None:
    if not recipe.model.decoder or any(name in recipe.objectives for name in ASKED_OF_DECODER):
        return None
    return Refusal(
        piece="model.decoder",
        reason=f"nothing is asked of what it writes: {either(list(ASKED_OF_DECODER))} is no objective",
        repair=f"objectives.{ASKED_OF_DECODER[0]} = {{ weight = 1.0 }}, or {_NO_DECODER}",
    )


def text_in_plain_sight(recipe: Recipe) -> Refusal | None:
    corruption = recipe.corruption
    if recipe.rows.decoder != "text":
        return None
    replaced = corruption.rate > 0 and corruption.replace.keep < 1
    moved = corruption.shuffle.rate > 0 or corruption.order.sentences or corruption.order.rotate > 0
    if replaced or moved or corruption.ngram.longest:
        return None
    return Refusal(
        piece="rows.decoder",
        reason='"text" is what the encoder reads: nothing is corrupted, so the decoder would copy it',
        repair='corruption.rate = 0.3, or corruption.order = { sentences = true }, or rows.decoder = "none"',
    )


def chosen_that_are_gone(recipe: Recipe) -> Refusal | None:
    corruption = recipe.corruption
    if recipe.rows.decoder != "chosen":
        return None
    if corruption.rate == 0:
        reason, repair = "corruption.rate = 0 chooses none", "corruption.rate = 0.5"
    elif corruption.replace.keep == 1:
        reason = "corruption.replace.keep = 1 leaves them all for the encoder to read"
        repair = "corruption.replace = { mask = 0.8, random = 0.1, keep = 0.1 }"
    elif corruption.replace.infill or corruption.replace.delete:
        gone = "infill" if corruption.replace.infill else "delete"
        reason, repair = f"corruption.replace.{gone} takes slots out, and their positions", "that share = 0"
    else:
        return None
    return Refusal(
        piece="rows.decoder",
        reason=f'"chosen" has the chosen tokens written, but {reason}',
        repair=f'{repair}, or rows.decoder = "text"',
    )


def target_without_pairs(recipe: Recipe) -> Refusal | None:
    rows = recipe.rows
    if rows.decoder != "target":
        return None
    if rows.kind == "one_or_two_segments":
        lacking = f'which some rows of kind "{rows.kind}" lack'
    elif rows.two_segments:
        return None
    else:
        lacking = f'and rows.kind = "{rows.kind}" with rows.pair = "{rows.pair}" has none'
    return Refusal(
        piece="rows.decoder",
        reason=f'"target" is the second segment, {lacking}',
        repair='rows.kind = "source_target", or rows.decoder = "text"',
    )


def target_out_of_sight(recipe: Recipe) -> Refusal | None:
    """With a target the encoder reads the source alone."""
    if recipe.rows.decoder != "target":
        return None
    about = {
        **{f"objectives.{name}": f"--set objectives.{name}=false" for name in recipe.objectives if name in PAIR_OF},
        **({'visibility "prefix"': 'visibility.kind = "full"'} if "prefix" in recipe.visibility.shares else {}),
        **({"corruption.segment": 'corruption.segment = "all"'} if recipe.corruption.segment == "second" else {}),
    }
    if not about:
        return None
    piece, repair = next(iter(about.items()))
    return Refusal(
        piece=piece,
        reason='is about the second segment, which the decoder alone reads: rows.decoder = "target"',
        repair=f'{repair}, or rows.decoder = "text"',
    )


def views_beside_decoder(recipe: Recipe) -> Refusal | None:
    if "contrast" not in recipe.objectives or not recipe.model.decoder:
        return None
    return Refusal(
        piece="objectives.contrast",
        reason="has the encoder read rows of its own, for which the decoder has nothing to write",
        repair=f"--set objectives.contrast=false --set corruption.ngram.longest=0, or {_NO_DECODER}",
    )
