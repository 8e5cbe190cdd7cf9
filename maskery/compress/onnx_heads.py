"""A model with a head as one file of ONNX: what a fine-tuned model or a pretrained one answers, not its states alone.

    write_onnx("run", "classifier.onnx")                       # logits (B,C)
    write_onnx("model", "model.onnx", head="masked_token")     # logits (B,T,V)

Outputs are named as in Hugging Face's exports: `logits` (B,C) of a classifier, a regression or a ranking, `logits`
(B,T,C) of a tagger, `start_logits` and `end_logits` (B,T) of question answering. They are scores before softmax; the
task, its labels in the order of the scores, and its threshold are in the file's metadata.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from maskery import files
from maskery.batches import Batch
from maskery.checkpoint.load import load
from maskery.checkpoint.locate import locate
from maskery.checkpoint.model import Model
from maskery.compress.onnx_encoder import Fed, Said, Written, inputs_of, largest_difference, proved, write_encoder
from maskery.compress.onnx_graph import END, IDS, LOGITS, MASK, SEGMENTS, START, NetworkGraph
from maskery.compress.onnx_pools import read_off
from maskery.errors import InputError
from maskery.model.config import Shape
from maskery.model.heads import TokenHead
from maskery.tasks.batches import TASK, no_targets
from maskery.tasks.heads import Layer
from maskery.tasks.model import TASK_FILE, TaskModel
from maskery.tasks.native import told_task
from maskery.tasks.questions import SURE
from maskery.tasks.together import Together, opened
from maskery.vectors.encoder import Encoder
from maskery.vectors.folder import is_encoder
from maskery.vectors.opening import Say

NONE = "none"
"""The word for a file of states alone."""
FUNCTIONS = {"classify": "softmax", "pair": "softmax", "tag": "softmax", "multilabel": "sigmoid"}
"""Task -> what makes probabilities of the scores of a row or of a slot."""
Output = tuple[str, str, tuple[int | str, ...]]
"""Its name, the operation that makes it, its shape."""


def write_onnx(
    model: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    head: str | None = None,
    allow_pickle: bool = False,
    say: Say = print,
) -> Written:
    """Write a folder's model as ONNX: a fine-tuned one with its head, an encoder of sentences with its vectors, any
    other with its states. `head` names another head to write, or "none" for the states alone."""
    target, path = Path(out), Path(model)
    files.require_new_file(target)
    if head not in (None, NONE):
        return _write_token_head(target, load(path, allow_pickle=allow_pickle), str(head), say)
    folder = path if is_encoder(path) or (path / TASK_FILE).is_file() else locate(path)[0]
    pools = is_encoder(folder)
    made = None if pools or head == NONE else _task(folder, allow_pickle)
    if made is not None:
        return _write_task(target, made, say)
    encoder = Encoder(model, pool=None if pools else "mean", device="cpu", allow_pickle=allow_pickle, say=say).made
    pools = pools and head is None
    if head is None and not pools:
        _tell_what_is_left(encoder.model, say)
    return write_encoder(target, encoder, pools=pools, say=say)


def _tell_what_is_left(model: Model, say: Say) -> None:
    for name, each in model.heads.items():
        repair = f": --head {name} writes its logits" if isinstance(each, TokenHead) else ""
        say(f"the file holds the states, not the head {name}{repair}")


# -- tasks


def _task(folder: Path, allow_pickle: bool) -> TaskModel | None:
    """The fine-tuned model of a folder, ours or Hugging Face's; None where it has no head of a task."""
    if not (folder / TASK_FILE).is_file():
        loaded = load(folder, allow_pickle=allow_pickle)
        told = told_task(loaded)
        if told is None:
            return None
        native = TaskModel(loaded, told)
        if not native.take_native():
            raise _refused(f"{native.native.name} is not what {loaded.family} puts on top")
        return native
    made = opened(folder)
    if isinstance(made, Together):
        raise InputError(
            f"{len(made.models)} models answer together, and a file of ONNX holds one",
            where=folder,
            repair=f"write one of them: maskery export {folder / made.config.fused[0]} --out {folder.name}.onnx",
        )
    if not isinstance(made, TaskModel):
        raise _refused("it writes text token by token, which is a search and no product")
    return made


def _refused(reason: str) -> InputError:
    return InputError(
        f"the head of this model cannot be written as ONNX: {reason}",
        repair="--head none writes the states alone; maskery predict uses the folder as it is",
    )


def _write_task(target: Path, made: TaskModel, say: Say) -> Written:
    graph, scores = _with_task(made)
    outputs = _outputs(graph, scores, made)
    data: bytes = graph.model(outputs, _about(made)).SerializeToString()
    names, longest = tuple(name for name, _, _ in outputs), made.config.rows.length
    return _compared(target, data, made.model.config, names, longest, lambda fed: _answered(made, fed), say)


def _with_task(made: TaskModel) -> tuple[NetworkGraph, str]:
    """The graph, and the name of the scores (B,C) or (B,T,C) in it."""
    system, config = made.system, made.config
    if system.crf is not None:
        raise _refused("a CRF chooses its tags, which is a search and no product")
    if system.join is not None:
        raise _refused(f"it reads columns beside the text ({', '.join(config.columns.meta)})")
    if system.sides is not None:
        raise _refused("an example is several rows, whose vectors become one before the head")
    graph = NetworkGraph(made.model.network)
    x = graph.states[-1] if system.pool is None else read_off(graph, config.read.pool, system.pool)
    for layer, told in zip(system.head.layers, config.head.layers, strict=True):
        assert isinstance(layer, Layer)
        x = graph.layer(x, layer.dense)
        bend = "identity" if told.activation == "none" else told.activation
        if layer.norm is None:
            x = graph.bend(x, bend)
        elif layer.after:
            x = graph.norm(graph.bend(x, bend), layer.norm)
        else:
            x = graph.bend(graph.norm(x, layer.norm), bend)
    return graph, graph.layer(x, system.head.answer)


def _outputs(graph: NetworkGraph, scores: str, made: TaskModel) -> list[Output]:
    if made.config.task == "qa":
        parts = [graph.run("Gather", scores, graph.whole(number), has={"axis": 2}) for number in (0, 1)]
        flat = [graph.run("Squeeze", each, graph.whole(2)) for each in parts]
        return [(name, each, ("batch", "sequence")) for name, each in zip((START, END), flat, strict=True)]
    slots = ("sequence",) if made.system.by_slot else ()
    return [(LOGITS, scores, ("batch", *slots, made.system.top.classes))]


def _about(made: TaskModel) -> dict[str, str]:
    """The file's metadata: what `predict` knows beside the weights."""
    config = made.config
    found = {
        "task": config.task,
        "labels": json.dumps(list(config.labels), ensure_ascii=False),
        "max_length": str(config.rows.length),
        "function_to_apply": FUNCTIONS.get(config.task, "none"),
    }
    threshold = SURE if config.task == "multilabel" else config.threshold
    return found if threshold is None else {**found, "threshold": repr(float(threshold))}


def _answered(made: TaskModel, fed: Fed) -> list[NDArray[Any]]:
    """What `predict` reads off the same rows."""
    scores = made.system.scores(_batch(made.model.config, fed))
    if not made.system.by_slot:
        return [scores]
    grid = np.zeros((*fed[MASK].shape, scores.shape[1]), dtype=np.float32)
    grid[fed[MASK].astype(bool)] = scores
    return [grid[:, :, 0], grid[:, :, 1]] if made.config.task == "qa" else [grid]


def _batch(shape: Shape, fed: Fed) -> Batch:
    ids, mask, segments = (torch.from_numpy(fed[name]) for name in (IDS, MASK, SEGMENTS))
    return Batch(
        step=0,
        rows=torch.arange(len(ids)),
        ids=ids,
        length=mask.sum(1),
        segments=segments,
        positions=torch.arange(ids.shape[1]).expand_as(ids) + shape.position_offset,
        original=ids,
        edit=torch.zeros(ids.shape, dtype=torch.uint8),
        slots={"document": torch.zeros_like(ids)},
        targets={TASK: no_targets()},
    )


# -- a head over the vocabulary


def _write_token_head(target: Path, model: Model, name: str, say: Say) -> Written:
    """The scores over the vocabulary at every slot."""
    head, tokens = _token_head(model, name), model.network.embeddings.tokens
    graph = NetworkGraph(model.network)
    x = graph.states[-1]
    if head.dense is not None and head.norm is not None:
        x = graph.norm(graph.bend(graph.layer(x, head.dense), model.config.activation), head.norm)
    outputs: list[Output] = [
        (LOGITS, graph.linear(x, tokens, head.bias), ("batch", "sequence", model.config.vocabulary))
    ]
    data: bytes = graph.model(outputs, {"task": name}).SerializeToString()

    @torch.inference_mode()
    def said(fed: Fed) -> list[NDArray[Any]]:
        hidden = model.network(inputs_of(model.config, fed))
        return [hidden.layout.unpack(head(hidden.packed, tokens)).numpy()]

    return _compared(target, data, model.config, (LOGITS,), model.config.max_length, said, say)


def _token_head(model: Model, name: str) -> TokenHead:
    heads = {key: each for key, each in model.heads.items() if isinstance(each, TokenHead)}
    if name not in heads:
        raise InputError(
            f"this model has no head {name!r} over the vocabulary",
            repair=f"its heads of that kind: {', '.join(heads) or NONE}; "
            "a fine-tuned model's own head is written without --head",
        )
    if heads[name].bands is not None:
        raise _refused("its vocabulary is in bands (model.cutoffs)")
    return heads[name]


def _compared(
    target: Path, data: bytes, shape: Shape, outputs: Sequence[str], longest: int, said: Said, say: Say
) -> Written:
    inputs = (IDS, MASK, SEGMENTS) if shape.segments else (IDS, MASK)
    longest = min(longest, shape.max_length) if shape.positions == "learned" else longest
    return proved(
        target,
        data,
        inputs,
        tuple(outputs),
        lambda: largest_difference(data, shape, inputs, outputs, longest, said),
        say,
    )
