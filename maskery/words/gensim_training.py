"""CBOW, skip-gram and fastText, trained by gensim one epoch at a time from arrays of ours.

gensim gets its words, counts and initial vectors from here, and for every epoch a generator seeded by (seed, epoch). So
an epoch is a function of the arrays before it, and with one worker the same numbers come out every time. With more
workers threads write into the same rows without a lock, as word2vec.c does: the result differs a little every time.

Departures from gensim's defaults, to follow the origins: vectors begin in (-.5, .5) / width for word2vec (gensim: twice
that); cbow starts at a rate of .05; the rate falls to 1e-4 of its start; fastText draws negatives by the square root
of the count and has sample 1e-4. Only n-grams that occur get a row: no number changes, and most
of 2,000,000 rows are saved.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maskery.extras import optional
from maskery.randomness import key
from maskery.words.config import WordsConfig
from maskery.words.protocol import Arrays, Epoch, Method, Stopped, Trained
from maskery.words.subwords import Subwords, initial_ngrams, initial_rows, ngrams
from maskery.words.vocabulary import Told, Words

_LAST_RATE = 1e-4
_LONGEST = 10_000
"""Words that gensim takes of one sentence; a longer one is cut into several."""
_PURPOSE = "training word vectors"


def train_gensim(
    words: Words,
    config: WordsConfig,
    progress: Told | None = None,
    state: Epoch | None = None,
    stopped: Stopped | None = None,
) -> Iterator[Epoch]:
    model = _model(words, config, state.arrays if state else _begin(words, config))
    text = _Text(words, config.epochs, progress, stopped or (lambda: False))
    for epoch in range(state.number if state else 0, config.epochs):
        model.random = np.random.RandomState(key(config.seed, "words.epoch", epoch) % 2**32)
        text.epoch = epoch
        model.train(
            text,
            total_words=text.kept,
            epochs=1,
            start_alpha=_rate(config, epoch),
            end_alpha=_rate(config, epoch + 1),
        )
        if text.stopped():
            return
        yield Epoch(epoch + 1, _arrays(model, config))


def vectors_gensim(words: Words, config: WordsConfig, arrays: Arrays) -> Trained:
    """For fasttext the mean of the word's own row and those of its n-grams."""
    if config.method != "fasttext":
        return Trained(arrays["words"])
    hashed, many = _ngrams(words, config)
    bucket, row = np.unique(hashed, return_inverse=True)
    matrix = arrays["words"].astype(np.float32)
    owner = np.repeat(np.arange(len(many)), many)
    for start in range(0, row.size, 1 << 18):
        block = slice(start, start + (1 << 18))
        np.add.at(matrix, owner[block], arrays["ngrams"][row[block]])
    matrix /= (many + 1).astype(np.float32)[:, None]
    numbers = {"shortest": config.shortest, "longest": config.longest, "buckets": config.buckets, "seed": config.seed}
    return Trained(matrix, Subwords(bucket=bucket, matrix=arrays["ngrams"], **numbers))


def check_gensim() -> None:
    optional("gensim.models", _PURPOSE)


GENSIM = Method(train_gensim, vectors_gensim, check_gensim)


class _Text:
    """The sentences as lists of words, once for every epoch; ends early when a stop is asked for.

    gensim reads it in a thread, where an exception would never be seen.
    """

    def __init__(self, words: Words, epochs: int, progress: Told | None, stopped: Stopped) -> None:
        self._name = np.array(words.words, dtype=object)
        self._number, self._epochs, self._progress = words.number, epochs, progress
        self.stopped = stopped
        known = words.number >= 0
        self.kept = int(known.sum())
        before = np.concatenate(([0], np.cumsum(known)))[words.sentence_start]
        self._cuts = _short(before, _LONGEST)
        self._kept_number = words.number[known]
        self.epoch = 0

    def __iter__(self) -> Iterator[list[str]]:
        cuts, told = self._cuts.tolist(), 0
        for start, end in pairwise(cuts):
            if end - told >= _LONGEST:
                told = end
                if self._progress is not None:
                    self._progress(self.epoch * self.kept + end, self._epochs * self.kept)
                if self.stopped():
                    return
            yield self._name[self._kept_number[start:end]].tolist()
        if self._progress is not None:
            self._progress((self.epoch + 1) * self.kept, self._epochs * self.kept)


def _short(starts: NDArray[np.int64], longest: int) -> NDArray[np.int64]:
    """The starts with more in between, so that nothing between two is longer; what is empty is gone."""
    starts = np.unique(starts)
    length = np.diff(starts)
    pieces = -(-length // longest)
    first = np.repeat(starts[:-1], pieces)
    place = np.arange(first.size) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    return np.append(first + place * longest, starts[-1])


def _rate(config: WordsConfig, epoch: int) -> float:
    return config.lr * max(_LAST_RATE, 1 - epoch / config.epochs)


def _ngrams(words: Words, config: WordsConfig) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    return ngrams(words.words, config.shortest, config.longest, config.buckets)


def _begin(words: Words, config: WordsConfig) -> Arrays:
    shape, row = (len(words.words), config.width), np.arange(len(words.words))
    subwords = config.method == "fasttext"
    reach = (1.0 if subwords else 0.5) / config.width
    arrays = {
        "words": initial_rows(config.seed, "words.vectors", row, config.width, reach),
        "contexts": np.zeros(shape, dtype=np.float32),
    }
    if subwords:
        bucket = np.unique(_ngrams(words, config)[0])
        arrays["ngrams"] = initial_ngrams(config.seed, bucket, config.width)
    return arrays


def _model(words: Words, config: WordsConfig, arrays: Arrays) -> Any:
    """A model of gensim's around the arrays, which training changes in place."""
    subwords = config.method == "fasttext"
    models = optional("gensim.models", _PURPOSE)
    settings: dict[str, Any] = {
        "vector_size": config.width,
        "alpha": config.lr,
        "window": config.window,
        "negative": config.negative,
        "ns_exponent": config.power,
        "sample": config.sample,
        "min_count": 1,
        "sg": int(config.method != "cbow"),
        "workers": config.workers,
        "sorted_vocab": 0,
    }
    # Without buckets gensim makes no table of its own; ours, with a row for each n-gram that occurs, is put in below.
    model = models.FastText(bucket=0, **settings) if subwords else models.Word2Vec(**settings)
    model.build_vocab_from_freq(dict(zip(words.words, words.counts.tolist(), strict=True)))
    model.syn1neg = arrays["contexts"]
    if not subwords:
        model.wv.vectors = arrays["words"]
        return model
    model.wv.vectors_vocab, model.wv.vectors_ngrams = arrays["words"], arrays["ngrams"]
    hashed, many = _ngrams(words, config)
    row = np.unique(hashed, return_inverse=True)[1].astype(np.uint32)
    model.wv.bucket = len(arrays["ngrams"])
    model.wv.buckets_word = np.split(row, np.cumsum(many)[:-1])
    return model


def _arrays(model: Any, config: WordsConfig) -> Arrays:
    if config.method == "fasttext":
        return {"words": model.wv.vectors_vocab, "contexts": model.syn1neg, "ngrams": model.wv.vectors_ngrams}
    return {"words": model.wv.vectors, "contexts": model.syn1neg}
