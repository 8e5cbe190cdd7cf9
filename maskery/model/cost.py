"""Floating-point operations of a network for one real position: what a machine's measured peak is compared with.

A product with a matrix of n numbers costs 2n; attention multiplies with every key twice, and twice more where positions
are told as vectors of the distance, or once more where these act on the scores alone. Local attention meets the keys of
its window. What is remembered of the rows
before is made into keys and values again. Norms, activations and softmax are left out: they are no matrix products, and
the peak is that of products. Training costs three times the forward pass. A layer whose weights others share costs as
much as any.
"""

from __future__ import annotations

from maskery.model.config import Shape

_MET = {"nezha": 8, "shaw": 8, "xl": 6, "xlnet": 6, "disentangled": 8}
"""Operations for each number of a key that a query meets: 4, and more where it meets a vector of the distance too."""


def layer_flops(shape: Shape, length: float, computed: float = 1.0, *, local: bool = False) -> float:
    """One layer in rows of `length` slots behind a full memory, of which the share `computed` asks and all are read as
    keys and values; `local`: it attends to a window."""
    keys = length + shape.memory
    if local:
        keys = min(keys, 2 * shape.reach + 1)
    read = 4 * shape.width**2 * (1 + shape.memory / length if shape.memory else 1)
    met = _MET.get(shape.positions, 4)
    inner = (6 if shape.gated else 4) * shape.width * shape.feedforward
    asking = 4 * shape.width**2 + inner + met * keys * shape.width
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
    kinds = [shape.is_local(layer) for layer in range(shape.layers)]
    layers = sum(layer_flops(shape, length, each, local=kind) for kind in kinds[:-1])
    layers += layer_flops(shape, length, last, local=kinds[-1])
    written = (layer_flops(shape, length, local=shape.is_local(layer)) for layer in range(shape.decoder))
    layers += sum(written) + shape.decoder * look_flops(shape, length)
    projection = 2 * shape.embedding * shape.width if shape.embedding != shape.width else 0
    words = shape.cutoffs[0] + len(shape.cutoffs) if shape.cutoffs else shape.vocabulary
    head = 2 * shape.embedding * (words + shape.width)
    return layers + projection + (asked if tokens is None else tokens) * head
