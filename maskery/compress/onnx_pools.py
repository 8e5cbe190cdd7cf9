"""What is read off the states of a row, in a graph of ONNX: the poolings of vectors and those of tasks.

Shapes: B rows, T slots, D width.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from torch import Tensor

from maskery.compress.onnx_graph import NetworkGraph
from maskery.errors import InputError
from maskery.tasks.pools import AttentionPool, LastFour, Mix, Pool


def pooled(graph: NetworkGraph, name: str) -> str:
    """(B,D) of the last states by the name of a pooling."""
    last = graph.states[-1]
    ways: dict[str, Callable[[], str]] = {
        "first": lambda: _first(graph, last),
        "pooler": lambda: graph.run("Tanh", graph.layer(_first(graph, last), _pooler(graph))),
        "mean": lambda: mean(graph, last),
        "sqrt_mean": lambda: graph.run("Div", _total(graph, last), graph.run("Sqrt", _count(graph))),
        "max": lambda: graph.run(
            "ReduceMax", graph.run("Add", last, _low(graph)), graph.whole(1), has={"keepdims": 0}
        ),
        "last": lambda: _last(graph, last),
        "weighted": lambda: _weighted(graph, last),
    }  # fmt: skip
    if name not in ways:
        raise InputError(f"pooling by {name} cannot be written as ONNX", repair=f"pool by one of {', '.join(ways)}")
    return ways[name]()


def read_off(graph: NetworkGraph, name: str, pool: Pool) -> str:
    """(B,width) by what a task reads, with the weights that it has learned."""
    if isinstance(pool, AttentionPool):
        return _attended(graph, graph.states[-1], pool)
    if isinstance(pool, LastFour | Mix):
        read = mean if name in ("mean_last_four", "mix") else _first
        return _summed(graph, read, pool.weights * (pool.scale if isinstance(pool, Mix) else 1.0))
    if pool.needs_layers:
        many = pool.width // graph.network.shape.width
        parts = [_first(graph, each) for each in graph.states[-many:]]
        return graph.run("Concat", *parts, has={"axis": -1})
    return pooled(graph, name)


def mean(graph: NetworkGraph, x: str) -> str:
    """(B,T,D) -> (B,D)"""
    return graph.run("Div", _total(graph, x), _count(graph))


def _total(graph: NetworkGraph, x: str) -> str:
    return graph.run("ReduceSum", graph.run("Mul", x, _real(graph)), graph.whole(1), has={"keepdims": 0})


def _count(graph: NetworkGraph) -> str:
    """(B,1) real slots."""
    return graph.run("ReduceSum", graph.real, graph.whole(1), has={"keepdims": 1})


def _real(graph: NetworkGraph) -> str:
    """(B,T,1)"""
    return graph.run("Unsqueeze", graph.real, graph.whole(2))


def _low(graph: NetworkGraph) -> str:
    """(B,T,1) so little where a slot is padding that it is never the largest and weighs nothing."""
    turned = graph.run("Transpose", graph.bars, has={"perm": [0, 1, 3, 2]})
    return graph.run("Squeeze", turned, graph.whole(1))


def _first(graph: NetworkGraph, x: str) -> str:
    return graph.run("Squeeze", graph.run("Gather", x, graph.whole(0), has={"axis": 1}), graph.whole(1))


def _pooler(graph: NetworkGraph) -> Any:
    assert graph.network.pooler is not None
    return graph.network.pooler


def _last(graph: NetworkGraph, x: str) -> str:
    place = graph.run("Sub", _count(graph), graph.number(1.0))
    at = graph.run("Cast", place, has={"to": graph.onnx.TensorProto.INT64})
    return graph.run("GatherND", x, at, has={"batch_dims": 1})


def _weighted(graph: NetworkGraph, x: str) -> str:
    real = _real(graph)
    numbers = graph.run("CumSum", real, graph.hold(np.array(1, dtype=np.int64)))
    weights = graph.run("Mul", numbers, real)
    every = graph.run("ReduceSum", graph.run("Mul", x, weights), graph.whole(1), has={"keepdims": 0})
    return graph.run("Div", every, graph.run("ReduceSum", weights, graph.whole(1), has={"keepdims": 0}))


def _summed(graph: NetworkGraph, read: Callable[[NetworkGraph, str], str], weights: Tensor) -> str:
    """The last layers, each read and weighed; the embeddings are the lowest."""
    numbers = weights.detach().tolist()
    layers = graph.states[-len(numbers) :]
    parts = [
        graph.run("Mul", read(graph, x), graph.number(each)) for x, each in zip(layers, numbers, strict=True)
    ]  # fmt: skip
    return graph.run("Sum", *parts)


def _attended(graph: NetworkGraph, x: str, pool: AttentionPool) -> str:
    query = pool.query[:, None] / math.sqrt(pool.width)
    scores = graph.run("Add", graph.run("MatMul", x, graph.hold(query)), _low(graph))
    weights = graph.run("Softmax", scores, has={"axis": 1})
    return graph.run("ReduceSum", graph.run("Mul", x, weights), graph.whole(1), has={"keepdims": 0})
