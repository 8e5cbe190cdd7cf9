"""An encoder as one file of ONNX, and the proof that it says the same.

Beside `last_hidden_state` an encoder's file has `sentence_embedding` (B,dimensions): its pooling and the steps behind.
After writing, the file is opened by onnxruntime, where that is installed, fed by the names of its inputs, and compared
with the model on rows of three shapes: what differs by more than 1e-5 is not left on the disk.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from maskery import files, randomness
from maskery.compress.onnx_graph import END, IDS, MASK, SEGMENTS, START, STATES, NetworkGraph
from maskery.compress.onnx_pools import mean, pooled
from maskery.errors import InputError
from maskery.extras import optional
from maskery.model.config import Shape
from maskery.model.layout import layout_of
from maskery.model.stack import Inputs
from maskery.vectors.model import VectorModel
from maskery.vectors.opening import Say
from maskery.vectors.pooling import LAYERS
from maskery.vectors.steps import Dense, Normalize

Fed = dict[str, NDArray[np.int64]]
"""Input -> its numbers."""
Said = Callable[[Fed], list[NDArray[Any]]]
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


def write_encoder(target: Path, made: VectorModel, *, pools: bool, say: Say) -> Written:
    """Write an encoder as ONNX, with its vectors where the folder says how slots are pooled (`pools`)."""
    data = onnx_of(made, pools=pools)
    inputs, outputs = input_names(made), (STATES, VECTORS) if pools else (STATES,)
    return proved(target, data, inputs, outputs, lambda: compared(data, made, inputs, pools=pools), say)


def proved(
    target: Path,
    data: bytes,
    inputs: tuple[str, ...],
    outputs: tuple[str, ...],
    compare: Callable[[], float],
    say: Say,
) -> Written:
    """Compare the file with the model, where onnxruntime is installed, and only then write it."""
    difference = None
    if find_spec("onnxruntime") is None:
        say('not compared with the model: pip install "maskery[onnx]" installs onnxruntime')
    else:
        difference = compare()
    files.write_bytes(target, data)
    return Written(target, inputs, outputs, difference)


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
    """(B,D) by the name of a pooling of vectors."""
    if name in LAYERS:
        one, other = (graph.states[layer] for layer in LAYERS[name](made.model.config.layers))
        return mean(graph, graph.run("Mul", graph.run("Add", one, other), graph.number(0.5)))
    return pooled(graph, name)


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
    outputs = (STATES, VECTORS) if pools else (STATES,)
    return largest_difference(
        data, made.model.config, inputs, outputs, made.config.length, lambda fed: _said(made, fed, pools)
    )


def largest_difference(
    data: bytes, shape: Shape, inputs: Sequence[str], outputs: Sequence[str], longest: int, said: Said
) -> float:
    """Between the file's outputs and what the model has `said` of the same rows, relative to the largest number. What
    has a number for each slot is compared where slots are real."""
    session = session_of(data)
    known = {each.name for each in session.get_inputs()}
    assert known == set(inputs), f"the file asks for {sorted(known)}"
    largest = 0.0
    for rows, slots in SHAPES:
        fed = _rows(shape, rows, min(slots, longest))
        found = session.run(list(outputs), {name: fed[name] for name in inputs})
        for name, ours, theirs in zip(outputs, said(fed), found, strict=True):
            assert ours.shape == theirs.shape, f"{name}: {theirs.shape}, not {ours.shape}"
            if theirs.ndim == 3 or name in (START, END):  # padding means nothing
                theirs = theirs * fed[MASK].reshape(*fed[MASK].shape, *[1] * (theirs.ndim - 2))
            largest = max(largest, float(np.abs(ours - theirs).max() / max(1.0, float(np.abs(ours).max()))))
    if not largest <= MOST:
        raise InputError(
            f"what onnxruntime makes of the file differs from the model by {largest:.1e}",
            repair="report it with the model's config.json; nothing was written",
        )
    return largest


def _rows(shape: Shape, rows: int, slots: int) -> dict[str, NDArray[np.int64]]:
    """Rows of different lengths, the first of them whole; tokens and segments by key."""
    draw = randomness.generator(randomness.key(0, "onnx", rows, slots))
    length = np.concatenate(([slots], draw.integers(2, slots + 1, size=rows - 1)))
    mask = (np.arange(slots) < length[:, None]).astype(np.int64)
    ids = draw.integers(0, shape.vocabulary, size=(rows, slots))
    segments = draw.integers(0, max(1, shape.segments), size=(rows, slots))
    return {IDS: ids * mask, MASK: mask, SEGMENTS: segments * mask}


@torch.inference_mode()
def _said(made: VectorModel, fed: Fed, pools: bool) -> list[NDArray[Any]]:
    inputs = inputs_of(made.model.config, fed)
    found = [made.model.network(inputs).last.numpy()]
    return [*found, made(inputs).numpy()] if pools else found


def inputs_of(shape: Shape, fed: Fed) -> Inputs:
    """What the file is fed, for the network."""
    ids, mask, segments = (torch.from_numpy(fed[name]) for name in (IDS, MASK, SEGMENTS))
    positions = torch.arange(shape.position_offset, shape.position_offset + ids.shape[1]).expand_as(ids)
    return Inputs(ids=ids, layout=layout_of(mask.bool()), segments=segments, positions=positions)
