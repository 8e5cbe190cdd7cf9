"""A network as a graph of ONNX, written operation by operation; nothing is traced.

Inputs are those of Hugging Face's exports, by name: `input_ids`, `attention_mask` and, where the model has segments,
`token_type_ids`, each (B,T) of int64 with B and T free and padding on the right. The first output is
`last_hidden_state` (B,T,D). What the graph cannot say is refused with the reason: positions that act in attention, rows
that are not read in full, a decoder.

Shapes: B rows, T slots, D width, H heads, K head width.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from maskery.errors import InputError
from maskery.extras import optional
from maskery.model.block import Block
from maskery.model.linear import Linear, Norm
from maskery.model.positions import sinusoids
from maskery.model.transformer import Network
from maskery.model.visibility import Full

OPSET, FORMAT = 20, 9
"""The operators of 2023 (Gelu is one of them), which every runtime of today knows."""
IDS, MASK, SEGMENTS, STATES = "input_ids", "attention_mask", "token_type_ids", "last_hidden_state"
LOGITS, START, END = "logits", "start_logits", "end_logits"


class Graph:
    """Operations and numbers in the order in which they are added."""

    def __init__(self) -> None:
        self.onnx = optional("onnx", "writing ONNX")
        self.nodes: list[Any] = []
        self.numbers: list[Any] = []
        self._known: dict[Any, str] = {}

    def run(self, operator: str, *given: str, has: Mapping[str, Any] | None = None) -> str:
        """Add an operation with one result; its name. `has`: its attributes."""
        name = f"{operator.lower()}_{len(self.nodes)}"
        self.nodes.append(self.onnx.helper.make_node(operator, list(given), [name], name=name, **(has or {})))
        return name

    def hold(self, value: NDArray[Any] | Tensor, owner: Any = None) -> str:
        """Numbers of the graph; those of one `owner` (a tensor that several layers share) are held once."""
        key = None if owner is None else (owner.data_ptr(), tuple(value.shape))
        if key is not None and key in self._known:
            return self._known[key]
        array = value.detach().cpu().numpy() if isinstance(value, Tensor) else value
        name = f"numbers_{len(self.numbers)}"
        self.numbers.append(self.onnx.numpy_helper.from_array(np.ascontiguousarray(array), name))
        if key is not None:
            self._known[key] = name
        return name

    def whole(self, *values: int) -> str:
        return self.hold(np.array(values, dtype=np.int64))

    def number(self, value: float) -> str:
        return self.hold(np.array(value, dtype=np.float32))

    def linear(self, x: str, weight: Tensor, bias: Tensor | None) -> str:
        """x W' + b; the weight lies transposed in the graph."""
        found = self.run("MatMul", x, self.hold(weight.detach().T, weight))
        return found if bias is None else self.run("Add", found, self.hold(bias, bias))

    def layer(self, x: str, linear: Linear) -> str:
        return self.linear(x, linear.weight, linear.bias)

    def norm(self, x: str, norm: Norm) -> str:
        bias = () if norm.bias is None else (self.hold(norm.bias, norm.bias),)
        weight = self.hold(norm.weight, norm.weight)
        return self.run("LayerNormalization", x, weight, *bias, has={"axis": -1, "epsilon": norm.eps})

    def bend(self, x: str, name: str) -> str:
        """An activation by our name."""
        if name in ("gelu", "gelu_tanh"):
            return self.run("Gelu", x, has={"approximate": "tanh" if name == "gelu_tanh" else "none"})
        return {"relu": lambda: self.run("Relu", x), "tanh": lambda: self.run("Tanh", x), "identity": lambda: x}[name]()


def require_expressible(network: Network) -> None:
    shape, reason = network.shape, None
    if network.embeddings.positions.in_attention:
        reason = f"positions {shape.positions} act inside of attention"
    elif not isinstance(network.visibility, Full):
        reason = f"rows are read with visibility {shape.visibility}, not in full"
    elif shape.decoder:
        reason = "the model has a decoder"
    elif shape.local:
        reason = f"layers attend to windows of {shape.local} slots"
    elif next(network.parameters()).dtype != torch.float32:
        reason = "the weights are not float32"
    if reason is not None:
        raise InputError(f"this model cannot be written as ONNX: {reason}", repair="maskery export MODEL --out FOLDER")


class NetworkGraph(Graph):
    """A network in the graph: `states` are the embeddings' result and each layer's, (B,T,D)."""

    def __init__(self, network: Network) -> None:
        super().__init__()
        require_expressible(network)
        self.network = network
        self.has_segments = network.embeddings.segments is not None
        self.real = self.run("Cast", MASK, has={"to": self.onnx.TensorProto.FLOAT})
        """(B,T) 1 where a slot is real"""
        self.bars = self._bars()
        self.states = [self._embeddings()]
        for block in network.blocks:
            self.states.append(self._block(self.states[-1], block))
        if network.norm is not None:
            self.states[-1] = self.norm(self.states[-1], network.norm)

    def _bars(self) -> str:
        """(B,1,1,T) what is added to the scores of keys: nothing, or so little that they weigh nothing."""
        absent = self.run("Sub", self.number(1.0), self.real)
        low = self.run("Mul", absent, self.number(float(np.finfo(np.float32).min)))
        return self.run("Unsqueeze", low, self.whole(1, 2))

    def _embeddings(self) -> str:
        parts, shape = self.network.embeddings, self.network.shape
        x = self.run("Gather", self.hold(parts.tokens, parts.tokens), IDS, has={"axis": 0})
        if parts.scale != 1.0:
            x = self.run("Mul", x, self.number(parts.scale))
        table = _places(self.network)
        if table is not None:
            last = self.run(
                "Add", self.run("Shape", IDS, has={"start": 1, "end": 2}), self.whole(shape.position_offset)
            )
            places = self.run("Slice", self.hold(table), self.whole(shape.position_offset), last, self.whole(0))
            x = self.run("Add", x, places)
        if parts.segments is not None:
            x = self.run("Add", x, self.run("Gather", self.hold(parts.segments), SEGMENTS, has={"axis": 0}))
        if parts.tasks is not None:
            x = self.run("Add", x, self.hold(parts.tasks[0]))
        if parts.norm is not None:
            x = self.norm(x, parts.norm)
        return x if parts.projection is None else self.layer(x, parts.projection)

    def _block(self, x: str, block: Block) -> str:
        mixing, turning = block.halves
        first = mixing.attention_norm
        read = self.norm(x, first) if block.before and first is not None else x
        x = self.run("Add", x, self._attention(read, mixing))
        if not block.before and first is not None:
            x = self.norm(x, first)
        read = self.norm(x, turning.feedforward_norm) if block.before else x
        x = self.run("Add", x, self.layer(self._bent(self.layer(read, turning.up)), turning.down))
        return x if block.before else self.norm(x, turning.feedforward_norm)

    def _bent(self, x: str) -> str:
        """The activation of the feed-forward layer; gated: of its first half, times the second."""
        shape = self.network.shape
        if not shape.gated:
            return self.bend(x, shape.activation)
        ends = (0, shape.feedforward, 2 * shape.feedforward)
        inner, gate = (
            self.run("Slice", x, self.whole(first), self.whole(last), self.whole(2)) for first, last in pairwise(ends)
        )
        return self.run("Mul", self.bend(inner, shape.activation), gate)

    def _attention(self, x: str, block: Block) -> str:
        attention = block.attention
        q, k, v = (self._heads(x, block, part) for part in range(3))
        keys = self.run("Transpose", k, has={"perm": [0, 1, 3, 2]})
        width = self.network.shape.width // attention.heads
        scores = self.run("Mul", self.run("MatMul", q, keys), self.number(width**-0.5))
        weights = self.run("Softmax", self.run("Add", scores, self.bars), has={"axis": -1})
        mixed = self.run("Transpose", self.run("MatMul", weights, v), has={"perm": [0, 2, 1, 3]})
        flat = self.run("Reshape", mixed, self.whole(0, 0, self.network.shape.width))
        return self.layer(flat, attention.output)

    def _heads(self, x: str, block: Block, part: int) -> str:
        """(B,H,T,K) queries (0), keys (1) or values (2)."""
        attention = block.attention
        bias = None if attention.inputs_bias is None else attention.inputs_bias[part]
        made = self.linear(x, attention.inputs[part], bias)
        split = self.run("Reshape", made, self.whole(0, 0, attention.heads, -1))
        return self.run("Transpose", split, has={"perm": [0, 2, 1, 3]})

    def model(
        self, outputs: Sequence[tuple[str, str, Sequence[int | str]]], about: Mapping[str, str] | None = None
    ) -> Any:
        """The whole, checked; `outputs`: the name of each, the operation that makes it, its shape. `about` goes into
        the file's metadata."""
        make, kinds = self.onnx.helper, self.onnx.TensorProto
        names = [IDS, MASK, *([SEGMENTS] if self.has_segments else [])]
        given = [make.make_tensor_value_info(name, kinds.INT64, ["batch", "sequence"]) for name in names]
        made = [make.make_tensor_value_info(name, kinds.FLOAT, list(shape)) for name, _, shape in outputs]
        ends = [make.make_node("Identity", [source], [name], name=name) for name, source, _ in outputs]
        graph = make.make_graph([*self.nodes, *ends], "maskery", given, made, self.numbers)
        model = make.make_model(graph, opset_imports=[make.make_opsetid("", OPSET)], producer_name="maskery")
        model.ir_version = FORMAT
        make.set_model_props(model, dict(about or {}))
        self.onnx.checker.check_model(model, full_check=True)
        return model


def _places(network: Network) -> Tensor | None:
    """(positions,E) what is added at the input by position; None: nothing."""
    shape, scheme = network.shape, network.embeddings.positions
    numbers = torch.arange(scheme.limit or shape.max_length + shape.position_offset)
    return sinusoids(numbers, shape.embedding) if shape.positions == "sinusoidal" else scheme.embed(numbers)
