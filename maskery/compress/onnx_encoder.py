"""A model or an encoder as one file of ONNX, and the proof that it says the same.

    write_onnx("folder", "model.onnx")

Beside `last_hidden_state` an encoder's file has `sentence_embedding` (B,dimensions): its pooling and the steps behind.
After writing, the file is opened by onnxruntime, where that is installed, fed by the names of its inputs, and compared
with the model on rows of three shapes: what differs by more than 1e-5 is not left on the disk.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from maskery import files, randomness
from maskery.compress.onnx_graph import IDS, MASK, SEGMENTS, STATES, NetworkGraph
from maskery.errors import InputError
from maskery.extras import optional
from maskery.model.layout import layout_of
from maskery.model.stack import Inputs
from maskery.vectors.encoder import Encoder
from maskery.vectors.folder import is_encoder
from maskery.vectors.model import VectorModel
from maskery.vectors.opening import Say
from maskery.vectors.pooling import LAYERS
from maskery.vectors.steps import Dense, Normalize

VECTORS = "sentence_embedding"
SHAPES = ((1, 7), (3, 33), (8, 64))
"""Rows and slots that are compared."""
MOST = 1e-5
"""A difference by more is an error; of vectors and states, by the largest of each."""


@dataclass(frozen=True)
class Written:
    path: Path
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    difference: float | None
    """The largest in all shapes, or None where it could not be measured."""


def write_onnx(
    model: str | os.PathLike[str], out: str | os.PathLike[str], *, allow_pickle: bool = False, say: Say = print
) -> Written:
    """Write a folder's model as ONNX, with its vectors where the folder says how slots are pooled."""
    target = Path(out)
    files.require_new_file(target)
    pools = is_encoder(Path(model))
    pool = None if pools else "mean"
    made = Encoder(model, pool=pool, device="cpu", allow_pickle=allow_pickle, say=say).made
    data = onnx_of(made, pools=pools)
    inputs = input_names(made)
    difference = None
    if find_spec("onnxruntime") is None:
        say('not compared with the model: pip install "maskery[onnx]" installs onnxruntime')
    else:
        difference = compared(data, made, inputs, pools=pools)
    files.write_bytes(target, data)
    return Written(target, inputs, (STATES, VECTORS) if pools else (STATES,), difference)


def input_names(made: VectorModel) -> tuple[str, ...]:
    return (IDS, MASK, SEGMENTS) if made.model.config.segments else (IDS, MASK)


def onnx_of(made: VectorModel, *, pools: bool) -> bytes:
    """The file's content; `pools`: with the vectors of texts."""
    graph = NetworkGraph(made.model.network)
    states = (STATES, graph.states[-1], ("batch", "sequence", made.model.config.width))
    outputs = [states, (VECTORS, _vectors(graph, made), ("batch", made.dimensions))] if pools else [states]
    data: bytes = graph.model(outputs).SerializeToString()
    return data


def _vectors(graph: NetworkGraph, made: VectorModel) -> str:
    if not made.config.pool_prompt:
        raise InputError(
            "the slots of a prompt are not pooled, and a graph does not know which they are",
            repair="make an encoder that pools them: include_prompt in 1_Pooling/config.json",
        )
    parts = [_pooled(graph, made, name) for name in made.config.pool]
    x = parts[0] if len(parts) == 1 else graph.run("Concat", *parts, has={"axis": -1})
    for step in made.steps:
        if isinstance(step, Normalize):
            x = graph.run("LpNormalization", x, has={"axis": -1, "p": 2})
        elif isinstance(step, Dense):
            x = graph.bend(graph.layer(x, step.linear), step.bend)
        else:
            raise InputError(
                f"a step {type(step).__name__} cannot be written as ONNX",
                repair="leave the flow out, or whiten instead",
            )
    return x


def _pooled(graph: NetworkGraph, made: VectorModel, name: str) -> str:
    """(B,D) by the name of a pooling."""
    last = graph.states[-1]
    real = graph.run("Unsqueeze", graph.real, graph.whole(2))

    def total(x: str) -> str:
        return graph.run("ReduceSum", graph.run("Mul", x, real), graph.whole(1), has={"keepdims": 0})

    count = graph.run("ReduceSum", graph.real, graph.whole(1), has={"keepdims": 1})
    ways: dict[str, Callable[[], str]] = {
        "first": lambda: _slot(graph, last, graph.whole(0)),
        "pooler": lambda: graph.run("Tanh", graph.layer(_slot(graph, last, graph.whole(0)), _pooler(made))),
        "mean": lambda: graph.run("Div", total(last), count),
        "sqrt_mean": lambda: graph.run("Div", total(last), graph.run("Sqrt", count)),
        "max": lambda: graph.run(
            "ReduceMax", graph.run("Add", last, graph.run("Squeeze", _low(graph), graph.whole(1))), graph.whole(1),
            has={"keepdims": 0},
        ),
        "last": lambda: _last(graph, last, count),
        "weighted": lambda: _weighted(graph, last, real),
    }  # fmt: skip
    if name in LAYERS:
        one, other = (graph.states[layer] for layer in LAYERS[name](made.model.config.layers))
        both = graph.run("Mul", graph.run("Add", one, other), graph.number(0.5))
        return graph.run("Div", total(both), count)
    if name not in ways:
        raise InputError(f"pooling by {name} cannot be written as ONNX", repair=f"pool by one of {', '.join(ways)}")
    return ways[name]()


def _pooler(made: VectorModel) -> Any:
    assert made.model.network.pooler is not None
    return made.model.network.pooler


def _slot(graph: NetworkGraph, x: str, at: str) -> str:
    return graph.run("Squeeze", graph.run("Gather", x, at, has={"axis": 1}), graph.whole(1))


def _low(graph: NetworkGraph) -> str:
    """(B,1,T,1) so little where a slot is padding that it is never the largest."""
    return graph.run("Transpose", graph.bars, has={"perm": [0, 1, 3, 2]})


def _last(graph: NetworkGraph, x: str, count: str) -> str:
    at = graph.run("Cast", graph.run("Sub", count, graph.number(1.0)), has={"to": graph.onnx.TensorProto.INT64})
    return graph.run("GatherND", x, at, has={"batch_dims": 1})


def _weighted(graph: NetworkGraph, x: str, real: str) -> str:
    numbers = graph.run("CumSum", real, graph.hold(np.array(1, dtype=np.int64)))
    weights = graph.run("Mul", numbers, real)
    every = graph.run("ReduceSum", graph.run("Mul", x, weights), graph.whole(1), has={"keepdims": 0})
    return graph.run("Div", every, graph.run("ReduceSum", weights, graph.whole(1), has={"keepdims": 0}))


# -- the proof


def session_of(data: bytes, threads: int | None = None) -> Any:
    """An onnxruntime session on the processor."""
    runtime = optional("onnxruntime", "running ONNX")
    options = runtime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = threads or torch.get_num_threads()
    return runtime.InferenceSession(data, options, providers=["CPUExecutionProvider"])


def compared(data: bytes, made: VectorModel, inputs: tuple[str, ...], *, pools: bool) -> float:
    """The largest difference from the model on rows of three shapes, fed by name; too large a one is refused."""
    session = session_of(data)
    known = {each.name for each in session.get_inputs()}
    assert known == set(inputs), f"the file asks for {sorted(known)}"
    largest = 0.0
    for rows, slots in SHAPES:
        fed = _rows(made, rows, min(slots, made.config.length))
        states, *vectors = session.run([STATES, *([VECTORS] if pools else [])], {name: fed[name] for name in inputs})
        for ours, theirs in zip(_said(made, fed, pools), [states * fed[MASK][:, :, None], *vectors], strict=True):
            largest = max(largest, float(np.abs(ours - theirs).max() / max(1.0, float(np.abs(ours).max()))))
    if not largest <= MOST:
        raise InputError(
            f"what onnxruntime makes of the file differs from the model by {largest:.1e}",
            repair="report it with the model's config.json; nothing was written",
        )
    return largest


def _rows(made: VectorModel, rows: int, slots: int) -> dict[str, NDArray[np.int64]]:
    """Rows of different lengths, the first of them whole; tokens and segments by key."""
    draw = randomness.generator(randomness.key(0, "onnx", rows, slots))
    length = np.concatenate(([slots], draw.integers(2, slots + 1, size=rows - 1)))
    mask = (np.arange(slots) < length[:, None]).astype(np.int64)
    ids = draw.integers(0, made.model.config.vocabulary, size=(rows, slots))
    segments = draw.integers(0, max(1, made.model.config.segments), size=(rows, slots))
    return {IDS: ids * mask, MASK: mask, SEGMENTS: segments * mask}


@torch.inference_mode()
def _said(made: VectorModel, fed: dict[str, NDArray[np.int64]], pools: bool) -> list[NDArray[Any]]:
    ids, mask, segments = (torch.from_numpy(fed[name]) for name in (IDS, MASK, SEGMENTS))
    offset = made.model.config.position_offset
    positions = torch.arange(offset, offset + ids.shape[1]).expand_as(ids)
    inputs = Inputs(ids=ids, layout=layout_of(mask.bool()), segments=segments, positions=positions)
    found = [made.model.network(inputs).last.numpy()]
    return [*found, made(inputs).numpy()] if pools else found
