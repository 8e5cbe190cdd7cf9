"""The simplest answers, beside which a model has to show its worth; all on the very examples that it answers.

    majority     the commonest class, or set of classes, of the training data; of scores their mean
    tfidf        TF-IDF of the texts with logistic regression (scores: ridge regression); Chinese by characters and
                 pairs of them, other writing by words and pairs of words
    cosine       scored pairs, ranking, choices: the cosine of the texts' TF-IDF
    seen_spans   tagging: what was tagged in the training data is tagged wherever it stands
    overlap      qa: the sentence of the context that shares most with the question
    copy         seq2seq: the source itself

TF-IDF needs scikit-learn (the extra `sklearn`); without it the rest is there, and a note says so.
"""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maskery.errors import InputError
from maskery.extras import optional
from maskery.randomness import keys, uniform
from maskery.tasks.examples import Example, Examples, Span
from maskery.tasks.judge.common import is_chinese, units

MOST_ROWS = 20_000
"""Training examples that TF-IDF is fitted on at most: a random sample of more, so that it takes seconds."""
_FEATURES, _CELLS = 100_000, 3_000_000
_MISSING = 'the TF-IDF baseline needs scikit-learn, which is not installed: pip install "maskery[sklearn]"'
_SENTENCE = re.compile(r"[^。！？!?.\n]+[。！？!?.]?")


@dataclass(frozen=True)
class Baseline:
    name: str
    answers: list[Any]
    """One for each example, in the form of `Predicted.answers`."""


@dataclass(frozen=True)
class Baselines:
    each: tuple[Baseline, ...] = ()
    notes: tuple[str, ...] = ()

    def at(self, dev: Examples, some: Examples) -> Baselines:
        """The answers to `some` examples of `dev`, in their order."""
        if some is dev:
            return self
        place = {id(example): at for at, example in enumerate(dev)}
        at = [place[id(example)] for example in some]
        chosen = tuple(Baseline(each.name, [each.answers[number] for number in at]) for each in self.each)
        return Baselines(chosen, self.notes)


def baselines_of(train: Examples, dev: Examples, seed: int = 0, most: int = MOST_ROWS) -> Baselines:
    """All baselines of the task. `most`: training examples that are counted."""
    some = _sampled(train, seed, most)
    makers = _MAKERS[train.task]
    found: list[Baseline] = []
    notes: list[str] = []
    for name, make in makers.items():
        try:
            answers = make(some, dev)
        except InputError:  # the extra is missing
            notes.append(_MISSING)
            continue
        if answers is not None:
            found.append(Baseline(name, answers))
    if len(some) < len(train) and any(each.name == "tfidf" for each in found):
        notes.append(f"the TF-IDF baseline is fitted on {len(some):,} of {len(train):,} training examples")
    return Baselines(tuple(found), tuple(notes))


def _sampled(train: Examples, seed: int, most: int) -> list[Example]:
    if len(train) <= most:
        return list(train.items)
    order = np.argsort(uniform(keys(seed, "baseline", np.arange(len(train))), "order"), kind="stable")
    return [train.items[at] for at in np.sort(order[:most]).tolist()]


# -- without texts


def _majority(train: Sequence[Example], dev: Examples) -> list[Any]:
    (label, _), *_ = Counter(each.label for each in train).most_common(1)
    return [label] * len(dev)


def _mean(train: Sequence[Example], dev: Examples) -> list[Any]:
    return [float(np.mean([_number(each) for each in train]))] * len(dev)


def _number(example: Example) -> float:
    assert isinstance(example.label, int | float)
    return float(example.label)


# -- TF-IDF


def _counter(texts: Sequence[str], classes: int = 1) -> Any:
    """A fitted TfidfVectorizer; None: the texts hold nothing to count."""
    made = optional("sklearn.feature_extraction.text", "the TF-IDF baseline").TfidfVectorizer
    most = max(2000, min(_FEATURES, _CELLS // classes))
    chinese = sum(map(is_chinese, texts[:1000])) > len(texts[:1000]) / 2
    how: dict[str, Any] = {"analyzer": "char"} if chinese else {"token_pattern": r"(?u)\b\w+\b"}
    try:
        return made(**how, ngram_range=(1, 2), sublinear_tf=True, max_features=most).fit(texts)
    except ValueError:
        return None


def _features(counter: Any, examples: Sequence[Example]) -> Any:
    """One text as it is; of two also what they share and what parts them; more are joined."""
    many = len(examples[0].texts)
    if many != 2:
        return counter.transform([" ".join(each.texts) for each in examples])
    one, other = (counter.transform([each.texts[at] for each in examples]) for at in (0, 1))
    return (
        optional("scipy.sparse", "the TF-IDF baseline")
        .hstack([one, other, one.multiply(other), abs(one - other)])
        .tocsr()
    )


def tfidf_classes(train: Sequence[Example], dev: Examples) -> list[Any] | None:
    labels = [each.label for each in train]
    names = sorted({name for label in labels for name in (label if isinstance(label, frozenset) else {str(label)})})
    counter = _counter([text for each in train for text in each.texts], max(1, len(names)))
    if counter is None or len(names) < 2:
        return None
    linear = optional("sklearn.linear_model", "the TF-IDF baseline")
    made = linear.LogisticRegression(max_iter=200)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it may stop before it has converged: it is a baseline
        if train[0].label.__class__ is not frozenset:
            fitted = made.fit(_features(counter, train), [str(label) for label in labels])
            return [str(each) for each in fitted.predict(_features(counter, dev.items))]
        return _label_sets(made, names, _features(counter, train), labels, _features(counter, dev.items))


def _label_sets(made: Any, names: list[str], x: Any, labels: Sequence[Any], dev: Any) -> list[frozenset[str]]:
    several = optional("sklearn.multiclass", "the TF-IDF baseline").OneVsRestClassifier(made)
    marks = np.array([[name in label for name in names] for label in labels], dtype=np.int64)
    found: NDArray[np.int64] = several.fit(x, marks).predict(dev)
    return [frozenset(names[at] for at in np.flatnonzero(line)) for line in found]


def tfidf_scores(train: Sequence[Example], dev: Examples) -> list[float] | None:
    counter = _counter([text for each in train for text in each.texts])
    if counter is None:
        return None
    made = optional("sklearn.linear_model", "the TF-IDF baseline").Ridge()
    fitted = made.fit(_features(counter, train), [_number(each) for each in train])
    return [float(each) for each in fitted.predict(_features(counter, dev.items))]


def cosine_scores(train: Sequence[Example], dev: Examples) -> list[float] | None:
    """Of the first text with the second."""
    if len(dev.fields) != 2:
        return None
    counter = _counter([text for each in train for text in each.texts])
    if counter is None:
        return None
    one, other = (counter.transform([each.texts[at] for each in dev]) for at in (0, 1))
    return [float(each) for each in np.asarray(one.multiply(other).sum(1)).ravel()]


def _nearest_choice(train: Sequence[Example], dev: Examples) -> list[str] | None:
    """The choice that is most like context and question."""
    counter = _counter([text for each in train for text in (*each.texts, *each.choices)])
    if counter is None:
        return None
    asked = counter.transform([" ".join(each.texts) for each in dev])
    choices = counter.transform([text for each in dev for text in each.choices])
    ends = np.cumsum([0, *(len(each.choices) for each in dev)])
    found = [(choices[ends[at] : ends[at + 1]] @ asked[at].T).toarray().ravel() for at in range(len(dev))]
    return [str(int(each.argmax())) if each.size else "0" for each in found]


# -- other tasks


def _seen_spans(train: Sequence[Example], dev: Examples) -> list[Any]:
    """The longest first, from left to right; of several kinds the commonest."""
    counts: dict[str, Counter[str]] = {}
    for each in train:
        for span in each.spans or ():
            counts.setdefault(each.texts[0][span.start : span.stop], Counter())[span.kind] += 1
    kinds = {text: found.most_common(1)[0][0] for text, found in counts.items() if text.strip()}
    if not kinds:
        return [() for _ in dev]
    pattern = re.compile("|".join(re.escape(text) for text in sorted(kinds, key=len, reverse=True)))
    return [
        tuple(Span(found.start(), found.end(), kinds[found[0]]) for found in pattern.finditer(each.texts[0]))
        for each in dev
    ]


def _overlap(train: Sequence[Example], dev: Examples) -> list[str]:
    found = []
    for each in dev:
        asked = set(units(each.texts[1]))
        sentences = [text.strip() for text in _SENTENCE.findall(each.texts[0])] or [each.texts[0]]
        found.append(max(sentences, key=lambda text: len(asked & set(units(text)))))
    return found


def _copy(train: Sequence[Example], dev: Examples) -> list[str]:
    return [each.texts[0] for each in dev]


_MAKERS: dict[str, dict[str, Callable[[Sequence[Example], Examples], list[Any] | None]]] = {
    "classify": {"majority": _majority, "tfidf": tfidf_classes},
    "pair": {"majority": _majority, "tfidf": tfidf_classes},
    "multilabel": {"majority": _majority, "tfidf": tfidf_classes},
    "regress": {"mean": _mean, "tfidf": tfidf_scores, "cosine": cosine_scores},
    "choice": {"majority": _majority, "cosine": _nearest_choice},
    "rank": {"cosine": cosine_scores},
    "tag": {"seen_spans": _seen_spans},
    "qa": {"overlap": _overlap},
    "seq2seq": {"copy": _copy},
}
