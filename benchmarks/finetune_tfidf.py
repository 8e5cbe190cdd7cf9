"""TF-IDF with logistic regression, as a side of `benchmarks.finetune_chinese`: characters, pairs of them, and words.

Two texts are described by the vectors of both, by what they share (the product) and by what parts them (the absolute
difference): a bag of both together could not know which words the texts have in common.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import rjieba
from scipy.sparse import hstack

from maskery.tasks.examples import Examples

TASKS = ("classify", "pair")
"""What it can answer: one class of several. Spans, answers and choices it cannot."""


def units(text: str) -> list[str]:
    """Characters and pairs of neighbours, and the words that are longer than those."""
    plain = "".join(text.split())
    pairs = [plain[place : place + 2] for place in range(len(plain) - 1)]
    return [*plain, *pairs, *(word for word in rjieba.cut(text) if len(word) > 2)]


def tfidf_answers(train: Examples, dev: Examples) -> list[str]:
    """Fit on one part, answer the other."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression

    counted = TfidfVectorizer(analyzer=units, min_df=2, sublinear_tf=True)
    counted.fit([text for each in train for text in each.texts])
    fitted = LogisticRegression(max_iter=500).fit(_described(counted, train), [str(each.label) for each in train])
    return [str(name) for name in fitted.predict(_described(counted, dev))]


def _described(counted: Any, examples: Sequence[Any]) -> Any:
    fields = [counted.transform([each.texts[place] for each in examples]) for place in range(len(examples[0].texts))]
    if len(fields) == 1:
        return fields[0]
    one, other = fields
    return hstack([one, other, one.multiply(other), abs(one - other)]).tocsr()
