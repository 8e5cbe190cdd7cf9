"""What a training of sentence vectors takes where nothing is given: the published settings of the loss, which are those
of BERT base on a large set, scaled to the model and to the number of units (pairs, triplets, lines).

    learning rate   the published one times the ratio of the rates of both sizes (maskery/tasks/defaults.py)
    batch           the published one, at most a tenth of the units, at least 16
    epochs          the published ones, more until there are enough updates, at most ten

Measured on STS-B, English and Chinese: docs/sentence-vectors.md and benchmarks/vectors_defaults.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from maskery.model.config import Architecture
from maskery.tasks.defaults import layer_parameters, rate_of
from maskery.vectors.learn.settings import LearnConfig

Say = Callable[[str], None]
_PUBLISHED_SIZE = 85_000_000
"""Layer parameters of BERT base."""
_UPDATES, _MOST_EPOCHS, _SMALLEST_BATCH = 100, 10.0, 16


def scaled(config: LearnConfig, given: Mapping[str, Any], shape: Architecture, units: int, say: Say) -> LearnConfig:
    """The settings with what is not `given` fitted to the model and the data."""
    own, size = given.get("training", {}), layer_parameters(shape)
    training, words = config.training, []
    if "lr" not in own:
        lr = float(f"{training.lr * rate_of(size) / rate_of(_PUBLISHED_SIZE):.1e}")
        training = training.model_copy(update={"lr": lr})
        words.append(f"learning rate {lr:g} ({size / 1e6:.3g} million layer parameters)")
    if "batch" not in own:
        batch = min(training.batch, max(_SMALLEST_BATCH, units // 10))
        training = training.model_copy(update={"batch": batch})
        words.append(f"batches of {batch} ({units:,} units)")
    epochs = config.epochs
    if "epochs" not in given:
        epochs = max(epochs, min(_MOST_EPOCHS, float(math.ceil(_UPDATES * training.batch / max(1, units)))))
        words.append(f"{epochs:g} epochs")
    if words:
        say(f"chosen for the loss {config.loss}: {', '.join(words)}")
    return config.model_copy(update={"training": training, "epochs": epochs})
