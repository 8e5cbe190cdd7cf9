"""A run made longer: resumed with more steps than it was started with.

Every step after the newest checkpoint is that of a run of the new length: learning rate, phases, and whatever else is a
share of all steps. Only the learning rate goes over to the new schedule in a few steps (`schedules.rate`), because a
run that was finished has often come down to a rate of 0. Where this happened stands in state.json, so that resuming the
longer run later is bitwise again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict
from typing import Any

from maskery import files
from maskery.errors import CheckpointError
from maskery.recipes.recipe import Recipe
from maskery.train.folder import STATE, RunFolder
from maskery.train.schedules import Longer, rate

KEY = "training.steps"
_FACT = "longer"


def facts(longer: Sequence[Longer]) -> dict[str, Any]:
    """For state.json; nothing of a run that was never made longer."""
    return {_FACT: [asdict(each) for each in longer]} if longer else {}


def repair(changed: Collection[str]) -> str:
    if KEY in changed:
        return "a run can be made longer, not shorter: give as many steps or more, or choose another --out"
    return "resume with the same recipe, or choose another --out"


def lengthened(folder: RunFolder, recipe: Recipe, say: Callable[[str], None]) -> tuple[Longer, ...]:
    """Where the run was made longer, now included; its folder is then that of an unfinished run of the new length.

    The state is written before the recipe: a run that is stopped between the two has the old length, and a note of a
    longer one that is not read.
    """
    old = folder.recipe.training
    before = tuple(each for each in _read(folder) if each.after <= old.steps)
    if recipe.training.steps == old.steps:
        return before
    points = folder.checkpoints()
    step = points[-1][0] if points else 0
    lr = rate(old, step, before) if step else 0.0
    new = Longer(step=step, before=old.steps, after=recipe.training.steps, lr=lr)
    found = (*before, new)
    folder.write_state({**folder.state, **facts(found), "finished": False})
    (folder.path / files.MANIFEST).unlink(missing_ok=True)  # the model at the top is no longer the newest
    files.write_text(folder.path / "recipe.toml", recipe.toml())
    within = new.within(recipe.training)
    first, reached = step + 1, min(step + max(1, within), new.after)
    say(
        f"made longer after step {step}: {new.before:,} steps become {new.after:,}; learning rate {lr:.3g} at step "
        f"{step}, {rate(recipe.training, first, found):.3g} at step {first}"
        + (f", {rate(recipe.training, reached, found):.3g} at step {reached}" if reached > first else "")
        + f", from there on as in a run of {new.after:,} steps"
    )
    return found


def _read(folder: RunFolder) -> list[Longer]:
    try:
        return [Longer(**each) for each in folder.state.get(_FACT, [])]
    except TypeError:
        raise CheckpointError(
            f"{_FACT} is not what a run writes",
            where=folder.path / STATE,
            repair="put the file back as it was, or start anew with another --out",
        ) from None
