"""A tiny encoder whose texts are of a few words, and texts for it: the word at the end says what a text is about."""

from __future__ import annotations

import numpy as np

from maskery.checkpoint.model import Model
from maskery.model.config import ModelConfig
from maskery.model.heads import TokenHead
from maskery.model.initial import initialise
from maskery.model.transformer import Network
from maskery.text.tokenizer import Tokenizer
from maskery.vectors.learn.data import text_set
from maskery.vectors.model import VectorModel
from maskery.vectors.settings import VectorsConfig

TOPICS = ("cat", "dog", "tree", "sea", "bread", "moon")
FILLERS = ("the", "a", "small", "old", "sees", "finds", "and", "here", "now", "then")
PIECES = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *TOPICS, *FILLERS)


def quiet(_text):
    pass


def small_encoder(pool="mean", *, dropout=0.1, seed=0, std=0.3, length=16, pooler=True, **changes):
    shape = ModelConfig(
        **{"layers": 2, "width": 16, "heads": 2, "max_length": 40, "dropout": dropout, "attention_dropout": dropout}
        | changes
    ).shape(len(PIECES), "full")
    network, head = Network(shape, pooler=pooler), TokenHead(shape)
    model = Model(network, {"masked_token": head}, Tokenizer.from_pieces(list(PIECES)))
    initialise(model, std, seed)
    return VectorModel(model, VectorsConfig(pool=(pool,), length=length))


def text(number, topic, seed=0):
    draw = np.random.default_rng((seed, number))
    words = [FILLERS[each] for each in draw.integers(0, len(FILLERS), draw.integers(2, 7))]
    return " ".join([*words, TOPICS[topic % len(TOPICS)]])


def lines(many=24, seed=0):
    return text_set("lines", ((text(number, number, seed),) for number in range(many)))


def pairs(many=24, seed=0):
    return text_set("pairs", ((text(n, n, seed), text(n, n, seed + 1)) for n in range(many)))


def triplets(many=24, seed=0):
    units = ((text(n, n, seed), text(n, n, seed + 1), text(n, n + 1, seed + 2)) for n in range(many))
    return text_set("triplets", units)


def scored(many=24, seed=0):
    units = [(text(n, n, seed), text(n, n + n % 3, seed + 1)) for n in range(many)]
    return text_set("scored", units, [5.0 - 2 * (n % 3) for n in range(many)])


def labelled(many=24, seed=0):
    found = scored(many, seed)
    names = ["same" if score == 5 else "other" for score in found.label]
    return text_set("labelled", zip(found.column(0), found.column(1), strict=True), names)


DATA = {
    "softmax": labelled,
    "cosine": scored,
    "triplet": triplets,
    "multiple_negatives": pairs,
    "cosent": scored,
    "simcse": lines,
    "simcse_supervised": triplets,
    "simbert": pairs,
}
