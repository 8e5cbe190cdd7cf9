"""Pieces of different axes that contradict each other: each function looks at one contradiction and names the choices.

What one axis can tell alone is refused by its own config (rows of one segment with a pair, heads and width).
Whether a target can reach its own answer through the layers is another question, answered where visibility is known.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from maskery.knowledge.config import SYNONYM_FILES
from maskery.model.config import COUNTED
from maskery.objectives.config import ASKED_OF_GENERATOR, PAIR_OF, SMOOTHED
from maskery.recipes.decoders import (
    chosen_that_are_gone,
    decoder_without_question,
    decoder_without_text,
    target_out_of_sight,
    target_without_pairs,
    text_in_plain_sight,
    text_without_decoder,
    views_beside_decoder,
    writes,
)
from maskery.recipes.network import distances_without_positions, windows_without_layers
from maskery.recipes.ordered import (
    contrast_without_cls,
    memory_of_other_lengths,
    memory_of_strangers,
    memory_of_two,
    memory_out_of_sight,
    memory_that_saw_ahead,
    memory_without_distances,
    order_without_question,
    permuted_question_of_the_hidden,
    permuted_question_without_order,
    streams_without_order,
    third_segment_without_vector,
)
from maskery.recipes.refusal import Refusal, either
from maskery.recipes.sight import (
    contrast_out_of_sight,
    corruption_without_target,
    mixture_without_kind,
    modes_without_vectors,
    next_token_in_sight,
    pair_taken_apart,
    prefix_without_target,
    question_out_of_sight,
)
from maskery.rows.config import ONLY_PAIR

if TYPE_CHECKING:
    from maskery.recipes.recipe import Recipe


def _about_chosen(recipe: Recipe) -> list[str]:
    return [name for name in ("masked_token", "span_boundary") if name in recipe.objectives]


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


def question_without_pairs(recipe: Recipe) -> Refusal | None:
    wrong = [name for name in recipe.objectives if PAIR_OF.get(name, recipe.rows.pair) != recipe.rows.pair]
    if not wrong:
        return None
    name, pair = wrong[0], PAIR_OF[wrong[0]]
    kinds = [kind for kind, only in ONLY_PAIR.items() if only == pair] or ["segment_pair", "sentence_pair"]
    return Refusal(
        piece=f"objectives.{name}",
        reason=f'needs rows.pair = "{pair}", which is "{recipe.rows.pair}"',
        repair=f'rows.pair = "{pair}" with rows.kind = {either(kinds)}, '
        f"or without this objective: --set objectives.{name}=false",
    )


def segments_too_few(recipe: Recipe) -> Refusal | None:
    if not recipe.rows.two_segments or recipe.model.segments != 1:
        return None
    return Refusal(
        piece="model.segments",
        reason="there is one segment embedding and rows have two segments",
        repair="model.segments = 2, or 0 for no segment embedding",
    )


def chosen_without_corruption(recipe: Recipe) -> Refusal | None:
    asked = _about_chosen(recipe)
    if not asked or recipe.corruption.rate > 0:
        return None
    return Refusal(
        piece=f"objectives.{asked[0]}",
        reason="corruption.rate = 0 chooses no token, so nothing is asked",
        repair="corruption.rate = 0.15, or another objective",
    )


def chosen_in_plain_sight(recipe: Recipe) -> Refusal | None:
    asked = _about_chosen(recipe)
    if not asked or recipe.corruption.replace.keep < 1:
        return None
    return Refusal(
        piece="corruption.replace",
        reason=f"keep = 1 leaves every chosen token in the input: {asked[0]} would copy its answer",
        repair="corruption.replace = { mask = 0.8, random = 0.1, keep = 0.1 }",
    )


def word_order_without_shuffle(recipe: Recipe) -> Refusal | None:
    if "word_order" not in recipe.objectives or recipe.corruption.shuffle.rate > 0:
        return None
    return Refusal(
        piece="objectives.word_order",
        reason="corruption.shuffle.rate = 0 moves no token, so nothing is asked",
        repair="corruption.shuffle = { rate = 0.05, size = 3 }, or --set objectives.word_order=false",
    )


def contrast_without_ngram(recipe: Recipe) -> Refusal | None:
    if "contrast" not in recipe.objectives or recipe.corruption.ngram.longest > 0:
        return None
    return Refusal(
        piece="objectives.contrast",
        reason="corruption.ngram.longest = 0 hides no run of words, so nothing is asked",
        repair="corruption.ngram = { shortest = 2, longest = 10 }, or --set objectives.contrast=false",
    )


def ngram_without_contrast(recipe: Recipe) -> Refusal | None:
    if recipe.corruption.ngram.longest == 0 or "contrast" in recipe.objectives:
        return None
    return Refusal(
        piece="corruption.ngram",
        reason="hides a run of words in every row, and no objective asks for it",
        repair="objectives.contrast = { weight = 1.0 }, or --set corruption.ngram.longest=0",
    )


def similar_without_synonyms(recipe: Recipe) -> Refusal | None:
    if recipe.corruption.replace.similar == 0 or recipe.knowledge.synonyms:
        return None
    return Refusal(
        piece="corruption.replace.similar",
        reason="puts words of like meaning in place of others, but knowledge.synonyms names no file of them",
        repair=f"--set knowledge.synonyms=FILE, where FILE is {SYNONYM_FILES}",
    )


def answers_that_have_moved(recipe: Recipe) -> Refusal | None:
    """A mask for a whole span, or a token taken out, has no one answer at its place."""
    shares, asked = recipe.corruption.replace.plain(), _about_chosen(recipe)
    resized = [name for name in ("infill", "delete") if shares[name] > 0]
    rest = [name for name in shares if name not in ("infill", "delete") and shares[name] > 0]
    if not resized or not asked or rest:
        return None
    return Refusal(
        piece=f"objectives.{asked[0]}",
        reason=f"corruption.replace.{resized[0]} leaves no slot that holds the place of one token",
        repair="a share for corruption.replace.mask, or an objective that writes the text out",
    )


def next_token_with_corruption(recipe: Recipe) -> Refusal | None:
    corruption = recipe.corruption
    changes = {
        "corruption.rate": corruption.rate,
        "corruption.shuffle.rate": corruption.shuffle.rate,
        "corruption.ngram.longest": corruption.ngram.longest,
    }
    changing = [key for key, value in changes.items() if value > 0]
    if "next_token" not in recipe.objectives or writes(recipe) or not changing:
        return None
    return Refusal(
        piece="objectives.next_token",
        reason=f"reads the text as it is, but {changing[0]} = {changes[changing[0]]:g} changes it",
        repair=f"{changing[0]} = 0, or objectives.masked_token in its place",
    )


def replaced_without_generator(recipe: Recipe) -> Refusal | None:
    if "replaced_token" not in recipe.objectives or recipe.model.generator.width > 0:
        return None
    return Refusal(
        piece="objectives.replaced_token",
        reason="model.generator.width = 0: there is no generator, so no token is replaced",
        repair="model.generator.width = 0.25, or --set objectives.replaced_token=false",
    )


def generator_without_replaced(recipe: Recipe) -> Refusal | None:
    if recipe.model.generator.width == 0 or "replaced_token" in recipe.objectives:
        return None
    return Refusal(
        piece="model.generator",
        reason="fills the chosen slots, and nothing is asked about what it put there",
        repair="objectives.replaced_token = { weight = 50.0 }, or --set model.generator.width=0",
    )


def generator_without_masked(recipe: Recipe) -> Refusal | None:
    if recipe.model.generator.width == 0 or ASKED_OF_GENERATOR in recipe.objectives:
        return None
    if "next_token" in recipe.objectives and not writes(recipe):
        return Refusal(
            piece="objectives.next_token",
            reason="reads the text as it is, but the generator (model.generator.width > 0) replaces tokens of it",
            repair=f"objectives.{ASKED_OF_GENERATOR} in its place, or --set model.generator.width=0",
        )
    return Refusal(
        piece="model.generator",
        reason=f"{ASKED_OF_GENERATOR} is what a generator learns from, and it is not asked",
        repair=f"objectives.{ASKED_OF_GENERATOR} = {{ weight = 1.0 }}, or --set model.generator.width=0",
    )


def rows_longer_than_positions(recipe: Recipe) -> Refusal | None:
    if recipe.model.positions not in COUNTED:
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


def smoothing_of_others(recipe: Recipe) -> Refusal | None:
    for name, asked in recipe.objectives.items():
        if asked.smoothing and name not in SMOOTHED:
            return Refusal(
                piece=f"objectives.{name}.smoothing",
                reason=f"{asked.smoothing} is not read: only the answers of {either(list(SMOOTHED))} are smoothed",
                repair=f"leave it out of [objectives.{name}]",
            )
    return None


def bands_smoothed(recipe: Recipe) -> Refusal | None:
    smoothed = next((name for name, asked in recipe.objectives.items() if asked.smoothing), None)
    if not recipe.model.cutoffs or smoothed is None:
        return None
    return Refusal(
        piece="model.cutoffs",
        reason=f"in bands most tokens are never scored, and objectives.{smoothed}.smoothing wants all of them",
        repair=f"objectives.{smoothed}.smoothing = 0, or model.cutoffs = []",
    )


def bands_of_generator(recipe: Recipe) -> Refusal | None:
    if not recipe.model.cutoffs or not recipe.model.generator.width:
        return None
    return Refusal(
        piece="model.cutoffs",
        reason="a generator draws from the scores of all tokens, and in bands most are never made",
        repair="model.cutoffs = [], or model.generator.width = 0",
    )


CHECKS: tuple[Callable[[Recipe], Refusal | None], ...] = (
    no_objective,
    no_weight,
    segments_too_few,
    third_segment_without_vector,
    distances_without_positions,
    windows_without_layers,
    modes_without_vectors,
    mixture_without_kind,
    prefix_without_target,
    corruption_without_target,
    pair_taken_apart,
    question_without_pairs,
    question_out_of_sight,
    chosen_without_corruption,
    chosen_in_plain_sight,
    word_order_without_shuffle,
    contrast_without_ngram,
    ngram_without_contrast,
    contrast_out_of_sight,
    contrast_without_cls,
    similar_without_synonyms,
    answers_that_have_moved,
    smoothing_of_others,
    bands_smoothed,
    bands_of_generator,
    next_token_with_corruption,
    next_token_in_sight,
    permuted_question_without_order,
    permuted_question_of_the_hidden,
    order_without_question,
    streams_without_order,
    memory_of_strangers,
    memory_of_two,
    memory_without_distances,
    memory_out_of_sight,
    memory_that_saw_ahead,
    memory_of_other_lengths,
    decoder_without_text,
    text_without_decoder,
    decoder_without_question,
    text_in_plain_sight,
    chosen_that_are_gone,
    target_without_pairs,
    target_out_of_sight,
    views_beside_decoder,
    replaced_without_generator,
    generator_without_replaced,
    generator_without_masked,
    rows_longer_than_positions,
    warmup_without_end,
    betas_out_of_range,
)
