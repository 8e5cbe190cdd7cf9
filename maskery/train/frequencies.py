"""Whether a model has learnt more than how frequent each token is.

The simplest model of a text gives every token the probability of its frequency in the training text (one added to every
count) and reads no context. A trained model is compared with it on the same held-out tokens. Tokens of one row are not
independent of each other, so the interval is that of a ratio over groups of rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from maskery.batches import Batch
from maskery.corpus.mixture import Corpora, Mixture
from maskery.corpus.store import Corpus
from maskery.feed import Feed
from maskery.objectives.tokens import TokenObjective
from maskery.phases import phase_at
from maskery.system import System
from maskery.train.evaluate import heldout_batches
from maskery.train.ranks import Ranks

_ROWS_AT_ONCE, _GROUPS = 8, 16
"""Rows that are read together, fewer where there would be too few groups for an interval."""
_QUANTILE = 1.96
"""Of the normal distribution, for an interval that holds in 95 of 100 cases."""


@dataclass(frozen=True)
class Against:
    """The held-out loss of one objective beside that of frequencies, in nats a token."""

    objective: str
    loss: float
    frequencies: float
    low: float | None
    """Of loss - frequencies: the interval's ends; None where there are too few rows for one."""
    high: float | None
    tokens: int

    @property
    def ahead(self) -> bool:
        """Whether the model is better than frequencies, and not by chance."""
        return self.high is not None and self.high < 0

    def sentence(self) -> str:
        interval = "" if self.low is None else f" [{self.low:+.2f}, {self.high:+.2f}]"
        gap = f"{self.loss - self.frequencies:+.2f}{interval}"
        facts = f"held-out loss {self.loss:.2f}; token frequencies alone {self.frequencies:.2f} ({gap})"
        if self.ahead:
            return facts
        worse = self.loss > self.frequencies if self.low is None else self.low > 0
        learnt = "not even token frequencies yet" if worse else "token frequencies, no context"
        return (
            f"warning: {facts}: the model has learnt {learnt}; "
            "train longer (--budget, --steps), on more text, or with a smaller --size"
        )

    def plain(self) -> dict[str, Any]:
        return {**asdict(self), "ahead": self.ahead}


def training_counts(corpus: Corpora) -> NDArray[np.int64]:
    """(V,) how often each id stands in the documents that are trained on."""
    parts = corpus.parts if isinstance(corpus, Mixture) else (corpus,)
    total = np.zeros(corpus.vocabulary, dtype=np.int64)
    for part in parts:
        total += _counts(part)
    return total


def _counts(corpus: Corpus) -> NDArray[np.int64]:
    edges = corpus.sentence_start[corpus.document_start]
    total = np.zeros(corpus.vocabulary, dtype=np.int64)
    documents = corpus.documents("train")
    breaks = np.flatnonzero(np.diff(documents) != 1) + 1
    for run in np.split(documents, breaks):  # neighbouring documents are read as one stretch
        if len(run):
            stretch = corpus.tokens[edges[run[0]] : edges[run[-1] + 1]]
            total += np.bincount(stretch, minlength=corpus.vocabulary)
    return total


def log_probabilities(counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """(V,) of each id by its frequency, one added to every count."""
    found: NDArray[np.float64] = np.log(counts + 1.0) - math.log(counts.sum() + len(counts))
    return found


def unigram_loss(counts: NDArray[np.int64], labels: NDArray[np.int64]) -> float:
    """Mean cross-entropy of the labels under their frequencies."""
    return float(-log_probabilities(counts)[labels].mean())


def _with_specials(
    log_probability: NDArray[np.float64], labels: NDArray[np.int64], specials: NDArray[np.int64]
) -> NDArray[np.float64]:
    """A corpus holds no special tokens, rows do: they get their share of the labels, the others what is left."""
    share = np.bincount(labels, minlength=len(log_probability))[specials] / max(1, len(labels))
    if not share.sum():
        return log_probability
    left = max(1e-12, 1.0 - float(share.sum()))
    found = log_probability + math.log(left)
    found[specials] = np.log(np.maximum(share, 1e-12))
    return found


def against_frequencies(
    system: System, heldout: Feed, train_corpus: Corpora, step: int, rows: int, device: torch.device
) -> list[Against]:
    """One comparison for every objective whose answer is a token of the corpus's own vocabulary."""
    names = [name for name, each in system.objectives.items() if isinstance(each, TokenObjective)]
    if not names or system.comparisons or train_corpus.target_vocabulary:
        return []
    phase = phase_at(heldout.phases, max(0, step - 1))
    was_training = system.training
    system.eval()
    try:
        batches = heldout_batches(
            system, heldout, step, phase, rows, max(1, min(_ROWS_AT_ONCE, rows // _GROUPS)), Ranks()
        )
        groups = _groups(system, batches, names, device)
    finally:
        system.train(was_training)
    log_probability = log_probabilities(training_counts(train_corpus))
    specials = np.array(sorted(train_corpus.specials.ids), dtype=np.int64)
    return [_compared(name, found, log_probability, specials) for name, found in groups.items() if found]


_Group = tuple[float, NDArray[np.int64]]
"""Of some rows: the sum of the model's losses, and the right answers."""


def _groups(
    system: System, batches: Iterable[Batch], names: list[str], device: torch.device
) -> dict[str, list[_Group]]:
    found: dict[str, list[_Group]] = {name: [] for name in names}
    for batch in batches:
        measured = system.measure(batch.to(device))
        for name in names:
            objective, value = system.objectives[name], measured.get(name, {}).get("loss")
            if isinstance(objective, TokenObjective) and isinstance(value, tuple) and value[1]:
                labels = objective.targets(system.rows_of(name, batch)).label.cpu().numpy()
                found[name].append((value[0], labels))
    return found


def _compared(
    name: str, groups: list[_Group], log_probability: NDArray[np.float64], specials: NDArray[np.int64]
) -> Against:
    """The difference of two ratios over groups, with the error of such a ratio (its linear approximation)."""
    table = _with_specials(log_probability, np.concatenate([labels for _, labels in groups]), specials)
    model = np.array([loss for loss, _ in groups])
    frequencies = np.array([-table[labels].sum() for _, labels in groups])
    tokens = np.array([len(labels) for _, labels in groups], dtype=np.float64)
    total, many = tokens.sum(), len(groups)
    difference = (model - frequencies).sum() / total
    residual = model - frequencies - difference * tokens
    error = math.sqrt(many / (many - 1) * float(residual @ residual)) / total if many > 1 else None
    return Against(
        objective=name,
        loss=float(model.sum() / total),
        frequencies=float(frequencies.sum() / total),
        low=None if error is None else float(difference - _QUANTILE * error),
        high=None if error is None else float(difference + _QUANTILE * error),
        tokens=int(total),
    )
