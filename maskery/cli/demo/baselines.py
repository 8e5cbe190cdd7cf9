"""What a trained model is held against, on the same hidden tokens of the same held-out rows.

Most frequent token: always the same guess. Unigram: how often each token stands in the training text, one added to
every count; it reads no context either, but gives every token a probability. Untrained: the same network before its
first update.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from maskery.corpus.store import Corpus
from maskery.feed import Feed
from maskery.recipes.recipe import Recipe
from maskery.system import System
from maskery.train.evaluate import evaluate
from maskery.train.frequencies import training_counts, unigram_loss

_ROWS_AT_ONCE = 32


@dataclass(frozen=True)
class Score:
    accuracy: float
    """Share of the hidden tokens that are guessed right."""
    loss: float | None
    """Cross-entropy in nats; None where a guess has no probability."""

    @property
    def perplexity(self) -> float | None:
        return None if self.loss is None else math.exp(min(self.loss, 700.0))

    def plain(self) -> dict[str, Any]:
        return {**asdict(self), "perplexity": self.perplexity}


def baselines(recipe: Recipe, corpus: Corpus) -> tuple[dict[str, Score], int]:
    """Scores by name, the weakest kind of guess first, and the number of tokens asked for."""
    heldout = Feed(recipe, corpus, recipe.training.seed, "heldout")
    labels, counts = hidden_tokens(heldout), training_counts(corpus)
    share = float((labels == counts.argmax()).mean())
    scores = {
        "most frequent token": Score(share, None),
        "unigram": Score(share, unigram_loss(counts, labels)),
        "untrained": untrained(heldout),
    }
    return scores, len(labels)


def hidden_tokens(heldout: Feed) -> NDArray[np.int64]:
    """The right answers of the rows that an evaluation reads."""
    phase = heldout.phases[-1]
    epochs, numbers = heldout.first(phase, heldout.recipe.training.eval_rows)
    targets = heldout.make(0, phase, epochs, numbers).targets["masked_token"]
    return targets.label.numpy()


def untrained(heldout: Feed) -> Score:
    training = heldout.recipe.training
    system = System(heldout.recipe, heldout.corpus.vocabulary)
    system.initialise(training.seed)
    found = evaluate(system, heldout, training.steps, training.eval_rows, _ROWS_AT_ONCE, torch.device("cpu"))
    return trained(found)


def trained(metrics: dict[str, Any]) -> Score:
    """The score in a line of metrics with an evaluation."""
    return Score(metrics["eval/masked_token/accuracy"], metrics["eval/masked_token/loss"])
