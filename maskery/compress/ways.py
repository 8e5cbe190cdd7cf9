"""Which way to make vectors is the quickest on this machine, and what it costs in exactness.

    for way in measured(encoder, texts): print(way.name, way.texts_per_second, way.cosine)

All ways read the same rows in the same batches. They take turns, round by round, and the best round of each counts.
What a way cannot do here is told with the reason, not left out.

plain             the network's own weights
float32           weights laid out once, bias and activation inside of the products
int8              products of whole numbers
onnxruntime       the model as a graph of ONNX
onnxruntime int8  the same with weights of eight bits, one step for each output

Shapes: n texts, B rows, T slots, D dimensions.
"""

from __future__ import annotations

import logging
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray

from maskery.compress.onnx_encoder import VECTORS, input_names, onnx_of, session_of
from maskery.compress.onnx_graph import IDS, MASK, SEGMENTS
from maskery.errors import MaskeryError
from maskery.extras import optional
from maskery.model.int8 import BytesProduct
from maskery.model.int8 import levels as int8_levels
from maskery.model.products import BATCH, Product, float_product, has_kernels
from maskery.vectors.arithmetic import ARITHMETICS, TOKENS, Arithmetic
from maskery.vectors.encoder import Encoder
from maskery.vectors.model import VectorModel
from maskery.vectors.rows import TextRows, batches, grid_of_rows
from maskery.vectors.similarity import unit

Encode = Callable[[Sequence[str]], NDArray[np.float32]]
RUNTIME, RUNTIME_INT8 = "onnxruntime", "onnxruntime int8"
WAYS = ("plain", "float32", "int8", RUNTIME, RUNTIME_INT8)
EXACT = 1e-5
"""Vectors that differ by no more are the same for all purposes."""


@dataclass
class Way:
    name: str
    seconds: list[float] = field(default_factory=list)
    reason: str = ""
    """Why it cannot be had; empty: it can."""
    cosine: float = 1.0
    """With plain's vectors, the mean over texts."""
    least: float = 1.0
    texts: int = 0
    tokens: int = 0

    @property
    def best(self) -> float:
        return min(self.seconds)

    @property
    def exact(self) -> bool:
        return 1 - self.least < EXACT


def measured(
    made: VectorModel, texts: Sequence[str], rounds: int = 3, told: Callable[[int, int], None] = lambda done, all: None
) -> list[Way]:
    """All ways, in the order of `WAYS`; `told` is called with how many of all readings are done."""
    ways, encodes = [], {}
    for name in WAYS:
        way = Way(name)
        try:
            encodes[name] = encode_of(name, made)
        except MaskeryError as error:
            way.reason = error.cause
        ways.append(way)
    able = [way for way in ways if not way.reason]
    rows = made.rows(texts)
    right = unit(encodes["plain"](texts))
    for way in able:
        way.texts, way.tokens = len(texts), int(rows.start[-1])
        cosines = (unit(encodes[way.name](texts)) * right).sum(1)
        way.cosine, way.least = float(cosines.mean()), float(cosines.min())
    for number in range(rounds):
        for place, way in enumerate(able):
            begun = time.perf_counter()
            encodes[way.name](texts)
            way.seconds.append(time.perf_counter() - begun)
            told(number * len(able) + place + 1, rounds * len(able))
    return ways


def encode_of(name: str, made: VectorModel) -> Encode:
    """A way by its name, ready to be timed; what cannot be had here is refused with the reason."""
    arithmetic: Arithmetic | None = next((each for each in ARITHMETICS if each == name), None)
    if arithmetic is not None:
        encoder = Encoder(made, arithmetic=arithmetic, say=lambda text: None)
        _ = encoder.products  # refused here, or made before time is taken
        return encoder.encode
    data = onnx_of(made, pools=True)
    session = session_of(_with_bytes(data) if name == RUNTIME_INT8 else data)
    names = input_names(made)

    def encode(texts: Sequence[str]) -> NDArray[np.float32]:
        rows = made.rows(texts)
        found = np.empty((len(rows), made.dimensions), dtype=np.float32)
        for numbers, fed in _padded(rows, made.tokenizer.specials.pad):
            found[numbers] = session.run([VECTORS], {each: fed[each] for each in names})[0]
        return found

    return encode


def _with_bytes(data: bytes) -> bytes:
    """The same graph with its products in eight bits, as onnxruntime's own tool makes it."""
    tool = optional("onnxruntime.quantization", "products of eight bits in onnxruntime")
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "model.onnx", Path(folder) / "bytes.onnx"
        source.write_bytes(data)
        before = logging.root.manager.disable
        logging.disable(logging.WARNING)  # it recommends another tool, on the root logger
        try:
            tool.quantize_dynamic(source, target, per_channel=True, extra_options={"DefaultTensorType": 1})
        finally:
            logging.disable(before)
        return target.read_bytes()


def _padded(rows: TextRows, pad: int) -> Iterator[tuple[NDArray[np.int64], dict[str, NDArray[np.int64]]]]:
    """The batches of an encoder as grids, padded to their longest row."""
    for numbers in batches(rows, TOKENS["plain"]):
        grid = grid_of_rows(rows, numbers, pad)
        yield numbers, {IDS: grid.ids, MASK: grid.real.astype(np.int64), SEGMENTS: grid.segments}


@torch.inference_mode()
def product_speeds(width: int, feedforward: int, rows: int = BATCH, rounds: int = 7) -> dict[str, float]:
    """Multiplications and additions a second of a feed-forward product, by arithmetic: why one way is the quickest."""
    weight, x = (
        torch.full((feedforward, width), 0.02),
        torch.ones(rows, width),
    )  # products take as long with any numbers
    ways: dict[str, Product] = {"plain": lambda x: F.linear(x, weight)}
    if has_kernels():
        ways["float32"] = float_product()(weight, None, "none")
        if int8_levels():
            ways["int8"] = BytesProduct(weight, None, "none")
    found = dict.fromkeys(ways, 0.0)
    for _ in range(rounds):
        for name, product in ways.items():
            begun = time.perf_counter()
            product(x)
            found[name] = max(found[name], 2 * rows * width * feedforward / (time.perf_counter() - begun))
    return found
