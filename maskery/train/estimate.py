"""What a model needs: memory for training and for reading some rows, how many rows fit, and operations a token.

Everything is known from shapes and from the names of what is asked; no weight is made and no text is read.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from maskery.checkpoint.heads import EVERY
from maskery.checkpoint.whole import Whole
from maskery.model.config import Shape
from maskery.model.cost import forward_flops
from maskery.recipes.recipe import Recipe
from maskery.train.memory import lane_bytes, most_rows, peak_bytes, reading_bytes

ASKED_EVERYWHERE = ("next_token", "replaced_token", *EVERY)
"""Heads that are asked at every slot."""
RATE = 0.15
"""Of chosen tokens, for a model whose recipe is not known."""
_TOKENS_A_WORD = 1.5
"""Between those of English (1.1) and Chinese (1.7) text, as InfoWord's runs of words were counted."""


@dataclass(frozen=True)
class Load:
    """A network and the parts of the slots that questions read, and that are asked for a token of the vocabulary."""

    shape: Shape
    reads: float
    tokens: float


def load_of(shape: Shape, asked: Iterable[str], rate: float = RATE, moved: float = 0.0) -> Load:
    """`rate` of the slots are chosen, and `moved` are in another order. Questions about rows read the pooler alone."""
    shares = {
        "masked_token": rate,
        "span_boundary": rate,
        "word_order": moved,
        "next_token": 1.0,
        "permuted_token": rate,
    }
    asked = list(asked)
    tokens = sum(shares.get(name, 0.0) for name in asked)
    reads = 1.0 if any(name in ASKED_EVERYWHERE for name in asked) else min(1.0, tokens)
    return Load(shape, reads, tokens)


@dataclass(frozen=True, kw_only=True)
class Needs:
    model: Load
    generator: Load | None = None
    parameters: int
    """Distinct numbers that are trained, those of a generator too."""
    read: int
    """Numbers of the model alone."""
    besides: int = 0
    """Slots that are read below each row in training: what a question has made of it."""

    def training(self, rows: int, length: int) -> int:
        """Bytes at the peak of a training step with micro-batches of `rows`."""
        second = None if self.generator is None else (self.generator.shape, self.generator.reads)
        slots = length + self.besides
        return peak_bytes(self.model.shape, self.parameters, slots, rows, self.model.reads, second)

    def reading(self, rows: int, length: int) -> int:
        return reading_bytes(self.model.shape, self.read, length, rows)

    def memory(self, rows: int, length: int, available: int | None) -> dict[str, Any]:
        """Bytes in float32: the weights; with gradients and the optimiser's averages; at the peak of a step, and of
        reading; what a lane remembers; and the most rows at once that `available` holds."""
        found: dict[str, Any] = {
            "weights_bytes": 4 * self.read,
            "training_bytes": 16 * self.parameters,
            "rows": rows,
            "length": length,
            "training_peak_bytes": self.training(rows, length),
            "inference_peak_bytes": self.reading(rows, length),
        }
        if self.model.shape.memory:
            found["lane_bytes"] = lane_bytes(self.model.shape)
        if available is not None:
            found |= {
                "available_bytes": available,
                "largest_training_rows": most_rows(lambda many: self.training(many, length), available),
                "largest_inference_rows": most_rows(lambda many: self.reading(many, length), available),
            }
        return found

    def operations(self, length: int) -> dict[str, Any]:
        """Multiplications and additions a token in rows of `length`: reading without a head; training with heads over
        the vocabulary where they are asked, with the generator, and with what is read below each row."""
        every = [self.model, *([self.generator] if self.generator else [])]
        forward = sum(forward_flops(each.shape, length, each.reads, each.tokens) for each in every)
        if self.besides:
            forward += self.besides / length * forward_flops(self.model.shape, self.besides)
        return {
            "length": length,
            "forward_per_token": round(forward_flops(self.model.shape, length)),
            "training_per_token": round(3 * forward),
        }


def needs_of(whole: Whole, recipe: Recipe | None = None) -> Needs:
    """As the recipe trains it; a model without one as if 15 % of the tokens were chosen."""
    rate = RATE if recipe is None else recipe.corruption.rate
    moved = 0.0 if recipe is None else recipe.corruption.shuffle.rate
    small = whole.generator
    return Needs(
        model=load_of(whole.network.shape, whole.heads, rate, moved),
        generator=None if small is None else load_of(small.network.shape, small.heads, rate, moved),
        parameters=whole.parameters()["total"],
        read=whole.own,
        besides=0 if recipe is None else _besides(recipe),
    )


def _besides(recipe: Recipe) -> int:
    """Slots of the two rows that a contrast makes of each row's hidden run of words, [CLS] and [SEP] with them."""
    runs = recipe.corruption.ngram
    if "contrast" not in recipe.objectives or not runs.longest:
        return 0
    return round(2 * (2 + _TOKENS_A_WORD * (runs.shortest + runs.longest) / 2))
