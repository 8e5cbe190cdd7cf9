"""What all variants can be asked in common, found before anything is trained."""

from __future__ import annotations

from dataclasses import replace

from maskery.compare.ask import MASKED, NEXT, Examination
from maskery.compare.plan import Plan
from maskery.errors import InputError
from maskery.recipes.recipe import Recipe

_NAMES = {MASKED: "masked tokens", NEXT: "the next token"}
_SUCH_AS = {MASKED: "bert roberta", NEXT: "gpt2 transformer-xl"}


def kind_of(recipe: Recipe) -> str | None:
    """What a model that is trained so can be asked for; None: neither masked tokens nor the next token of a text."""
    if MASKED in recipe.objectives:
        return MASKED
    in_order = NEXT in recipe.objectives and recipe.rows.decoder == "none" and recipe.visibility.kind == "causal"
    return NEXT if in_order else None


def examined(examination: Examination, plan: Plan) -> Examination:
    """The examination that all variants can sit; refused where there is none, unless questions about pairs are asked
    that all can answer."""
    kinds = {each.label: kind_of(each.recipe) for each in plan.contestants}
    different = set(kinds.values())
    if len(different) == 1 and (only := next(iter(different))) is not None:
        return replace(examination, main=only)
    able = [
        question
        for question in examination.questions
        if all(examination.impossible(question, each.recipe) is None for each in plan.contestants)
    ]
    if able:
        return examination
    raise InputError(_why(kinds), repair=_repair(kinds))


def _why(kinds: dict[str, str | None]) -> str:
    """Who has nothing in common with whom."""
    none = [label for label, kind in kinds.items() if kind is None]
    if none:
        return (
            f"variant {none[0]} is trained for neither masked tokens nor the next token of a text, so there is no "
            "examination that it could sit with others"
        )
    groups = {kind: [label for label, mine in kinds.items() if mine == kind] for kind in (MASKED, NEXT)}
    told = "; ".join(f"{', '.join(labels)}: {_NAMES[kind]}" for kind, labels in groups.items())
    return f"the variants can be asked for nothing in common ({told})"


def _repair(kinds: dict[str, str | None]) -> str:
    groups = {kind: [label for label, mine in kinds.items() if mine == kind] for kind in (MASKED, NEXT)}
    some = [f"compare {' '.join(labels)}" for labels in groups.values() if len(labels) > 1]
    if not some:
        some = [f"compare {names}" for names in _SUCH_AS.values()]
    return f"{' or '.join(some)}, each with an --out of its own; or fine-tune each on a task: maskery finetune"
