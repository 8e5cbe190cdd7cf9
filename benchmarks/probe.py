"""What frozen states know: a linear classifier over the mean of a text's last states.

The network stays as it is; only a logistic regression on top is fitted (scikit-learn's, on standardised vectors).
Beside trained networks belong the same network untrained, and a bag of characters that has never seen a network:
TF-IDF of single characters and pairs of them. Intervals (95 %) are a bootstrap over the texts of the test file.

A file has a text and a label a line, parted by a tab, under one line with the names of the columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from maskery.checkpoint.model import Model
from maskery.inspection.bootstrap import interval, resampled
from maskery.model.transformer import Hidden
from maskery.text.tokenizer import Tokenizer

TOKENS = 4096
"""Slots of a batch."""
LENGTH = 128


def read(path: Path) -> tuple[list[str], list[str]]:
    """Texts and labels."""
    lines = path.read_text(encoding="utf-8").splitlines()[1:]
    texts, labels = zip(*(line.rsplit("\t", 1) for line in lines if line.strip()), strict=True)
    return list(texts), list(labels)


def ids_of(
    tokenizer: Tokenizer, texts: Sequence[str], before: Sequence[str] = ("cls",), behind: Sequence[str] = ("sep",)
) -> list[list[int]]:
    """[CLS] text [SEP], or the text between other marks, cut to the longest that is read."""
    first, last = ([getattr(tokenizer.specials, name) for name in names] for names in (before, behind))
    room = LENGTH - len(first) - len(last)
    pieces = (ids.tolist() for ids, _ in tokenizer.encode_raw(texts))
    return [[*first, *each[:room], *last] for each in pieces]


@torch.no_grad()
def mean_states(model: Model, rows: Sequence[Sequence[int]]) -> NDArray[np.float32]:
    """(n,D) the mean of each row's last states; rows of like length are read together."""
    model.eval()
    order = np.argsort([len(row) for row in rows], kind="stable")
    out = np.zeros((len(rows), model.config.width), dtype=np.float32)
    start = 0
    while start < len(order):
        longest = len(rows[order[min(len(order), start + 256) - 1]])
        part = order[start : start + max(1, TOKENS // longest)]
        width = max(len(rows[at]) for at in part)
        ids = torch.zeros(len(part), width, dtype=torch.long)
        mask = torch.zeros(len(part), width, dtype=torch.bool)
        for place, at in enumerate(part):
            ids[place, : len(rows[at])] = torch.tensor(rows[at])
            mask[place, : len(rows[at])] = True
        hidden: Hidden = model(ids, mask)
        out[part] = (hidden.last.sum(1) / mask.sum(1, keepdim=True)).numpy()
        start += len(part)
    return out


def accuracy(train: Any, train_labels: Sequence[str], test: Any, labels: Sequence[str], scale: bool) -> dict[str, Any]:
    """Fit on one part, ask on the other."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    steps = [StandardScaler()] if scale else []
    fitted = make_pipeline(*steps, LogisticRegression(max_iter=500)).fit(train, train_labels)
    hits = (fitted.predict(test) == np.asarray(labels)).astype(np.float64)
    return {"accuracy": float(hits.mean()), "interval": interval(resampled(hits, np.ones_like(hits))), "n": len(hits)}


def characters(train: Sequence[str], train_labels: Sequence[str], test: Sequence[str], labels: Sequence[str]) -> Any:
    """The same classifier on TF-IDF of characters and pairs of characters."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    counted = TfidfVectorizer(analyzer="char", ngram_range=(1, 2), min_df=2, sublinear_tf=True)
    return accuracy(counted.fit_transform(train), train_labels, counted.transform(test), labels, scale=False)
