"""Floating-point operations of a network for one real position: what a machine's measured peak is compared with.

A product with a matrix of n numbers costs 2n; attention multiplies with every key twice, and twice more where positions
are told as vectors of the distance, or once more where these act on the scores alone. What is remembered of the rows
before is made into keys and values again. Norms, activations and softmax are left out: they are no matrix products, and
the peak is that of products. Training costs three times the forward pass. A layer whose weights others share costs as
much as any.
"""

from __future__ import annotations

from maskery.model.config import Shape

_MET = {"nezha": 8, "shaw": 8, "xl": 6, "xlnet": 6}
"""Operations for each number of a key that a query meets: 4, and more where it meets a vector of the distance too."""


def layer_flops(shape: Shape, length: float, computed: float = 1.0) -> float:
    """One layer in rows of `length` slots behind a full memory, of which the share `computed` asks and all are read as
    keys and values."""
    keys = length + shape.memory
    read = 4 * shape.width**2 * (1 + shape.memory / length if shape.memory else 1)
    met = _MET.get(shape.positions, 4)
    asking = 4 * shape.width**2 + 4 * shape.width * shape.feedforward + met * keys * shape.width
    return read + computed * asking


def look_flops(shape: Shape, length: float) -> float:
    """What a layer of a decoder does besides, for rows as long as those that it looks at."""
    return 8 * shape.width**2 + 4 * length * shape.width


def forward_flops(shape: Shape, length: float, asked: float = 0.0, tokens: float | None = None) -> float:
    """All layers, and a token head for the share `tokens` of the positions; `asked` is the share that some question
    reads, by default the same, and 0 means that every state is read.

    The last layer computes only what is asked for, where that is at most half (see `selection`). Of two streams the
    second has what is asked for, and the first ends before the last layer. Of a vocabulary in bands the first choice is
    counted: how often a later band is read, the text alone tells, so this is the least that it costs.
    """
    last, each = asked if 0 < asked <= 0.5 else 1.0, 1.0
    if shape.streams == 2 and asked:
        last, each = asked, 1.0 + asked
    layers = (shape.layers - 1) * layer_flops(shape, length, each) + layer_flops(shape, length, last)
    layers += shape.decoder * (layer_flops(shape, length) + look_flops(shape, length))
    projection = 2 * shape.embedding * shape.width if shape.embedding != shape.width else 0
    words = shape.cutoffs[0] + len(shape.cutoffs) if shape.cutoffs else shape.vocabulary
    head = 2 * shape.embedding * (words + shape.width)
    return layers + projection + (asked if tokens is None else tokens) * head
