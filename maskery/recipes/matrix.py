"""The surveys' matrix of improvements: what each recipe does that BERT does not, worked out from the files.

`maskery recipes --table` prints it. A column is a name in two languages and a small function over a recipe and bert;
nothing here knows a recipe by its name. A key that no model has yet (`model.share`) counts as soon as it exists.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from maskery.model.config import BUCKETED, RELATIVE
from maskery.objectives.config import PAIR_OF
from maskery.recipes.layers import names
from maskery.recipes.recipe import Recipe, recipe
from maskery.rows.config import PAIRS
from maskery.train.config import PhaseConfig, TrainingConfig

REFERENCE = "bert"


@dataclass(frozen=True, kw_only=True)
class Column:
    key: str
    en: str
    zh: str
    holds: Callable[[Recipe, Recipe], bool]
    """Of a recipe, given bert."""


def _whole_words(recipe: Recipe, bert: Recipe) -> bool:
    corruption = recipe.corruption
    return corruption.rate > 0 and any(unit != "token" for unit in corruption.units)


def _ngrams(recipe: Recipe, bert: Recipe) -> bool:
    """Several words at once: by a law of spans, as one phrase or entity, or as the run that a contrast is about."""
    corruption = recipe.corruption
    together = corruption.span.law != "single" or not {"phrase", "entity"}.isdisjoint(corruption.units)
    return corruption.ngram.longest > 0 or (corruption.rate > 0 and together)


def _dynamic(recipe: Recipe, bert: Recipe) -> bool:
    return recipe.corruption.rate > 0 and recipe.corruption.when == "dynamic"


def _phases(training: TrainingConfig) -> tuple[PhaseConfig, ...]:
    return training.phases or (PhaseConfig(steps=training.steps, length=training.length),)


def largest_batch(training: TrainingConfig) -> int:
    """Rows of one update, in the phase that has the most."""
    return max(phase.batch or training.batch for phase in _phases(training))


def positions(training: TrainingConfig) -> int:
    """What a whole run reads: updates x rows x length, over all phases."""
    phases = _phases(training)
    read = sum(phase.steps * (phase.batch or training.batch) * phase.length for phase in phases)
    return training.steps * read // sum(phase.steps for phase in phases)


def _larger_batch(recipe: Recipe, bert: Recipe) -> bool:
    return largest_batch(recipe.training) > largest_batch(bert.training)


def _longer_training(recipe: Recipe, bert: Recipe) -> bool:
    return positions(recipe.training) > positions(bert.training)


def _more_data(recipe: Recipe, bert: Recipe) -> bool:
    return recipe.data > bert.data


def _permutation(recipe: Recipe, bert: Recipe) -> bool:
    return "permuted" in recipe.visibility.kind or "permuted_token" in recipe.objectives


def _relative_positions(recipe: Recipe, bert: Recipe) -> bool:
    return recipe.model.positions in (*RELATIVE, *BUCKETED)


def _shared_layers(recipe: Recipe, bert: Recipe) -> bool:
    return recipe.model.plain().get("share", "none") not in ("none", "", False)


def _factorised(recipe: Recipe, bert: Recipe) -> bool:
    return 0 < recipe.model.embedding < recipe.model.width


def _no_next_sentence(recipe: Recipe, bert: Recipe) -> bool:
    """No question has "next" among its answers; a wider one that has (StructBERT's) is another task, not a dropped
    one."""
    asked = (PAIR_OF[name] for name in recipe.objectives if name in PAIR_OF)
    return not any("next" in PAIRS.get(pair).labels for pair in asked)


def _other_tasks(recipe: Recipe, bert: Recipe) -> bool:
    """Another question, or the same of rows that are read in another way (UniLM's three kinds of language model)."""
    asked = recipe.objectives.keys() <= bert.objectives.keys()
    return not (asked and recipe.visibility.shares.keys() <= bert.visibility.shares.keys())


COLUMNS = (
    Column(key="whole_words", en="whole words", zh="全词掩盖", holds=_whole_words),
    Column(key="ngrams", en="n-grams", zh="n-gram掩盖", holds=_ngrams),
    Column(key="dynamic", en="dynamic masks", zh="动态掩盖", holds=_dynamic),
    Column(key="larger_batch", en="larger batch", zh="更大的batch", holds=_larger_batch),
    Column(key="longer_training", en="longer training", zh="更长训练", holds=_longer_training),
    Column(key="more_data", en="more data", zh="更多数据", holds=_more_data),
    Column(key="permutation", en="permutation", zh="全排列", holds=_permutation),
    Column(key="relative_positions", en="relative positions", zh="相对位置", holds=_relative_positions),
    Column(key="shared_layers", en="shared layers", zh="层间共享", holds=_shared_layers),
    Column(key="factorised", en="factorised embedding", zh="因式分解", holds=_factorised),
    Column(key="no_next_sentence", en="no next sentence", zh="去掉下一句判断", holds=_no_next_sentence),
    Column(key="other_tasks", en="other tasks", zh="其他任务", holds=_other_tasks),
)


def improvements(recipe: Recipe, bert: Recipe) -> dict[str, bool]:
    """Column -> whether the recipe has it."""
    return {column.key: column.holds(recipe, bert) for column in COLUMNS}


def matrix(recipes: Iterable[Recipe] | None = None) -> dict[str, dict[str, bool]]:
    """Recipe -> column -> whether it has it; of all recipes of the package if none are given."""
    bert = recipe(REFERENCE)
    return {each.name: improvements(each, bert) for each in recipes or map(recipe, names())}
