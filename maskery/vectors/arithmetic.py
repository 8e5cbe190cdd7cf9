"""In which numbers an encoder multiplies: names, and what they need.

float32  the usual: weights are laid out once for the processor (maskery.model.products)
int8     whole numbers of eight bits: several times as quick where the processor has them, and nearly the same vectors
plain    the network's own weights, as in training
"""

from __future__ import annotations

from typing import Literal, get_args

from maskery.errors import ArgumentError, UnknownName
from maskery.model import int8, products
from maskery.model.products import BATCH, Products, float_product, products_of
from maskery.model.stack import Stack

Arithmetic = Literal["float32", "int8", "plain"]
ARITHMETICS: tuple[Arithmetic, ...] = get_args(Arithmetic)
TOKENS: dict[Arithmetic, int] = {"float32": BATCH, "int8": 1024, "plain": BATCH}
"""Slots of a batch: enough for quick products, and of whole numbers, whose time goes into passes between the products,
no more than stays in a processor's cache."""


def check_arithmetic(name: str) -> Arithmetic:
    for known in ARITHMETICS:
        if known == name:
            return known
    raise UnknownName("arithmetic", name, ARITHMETICS)


def products_in(network: Stack, name: Arithmetic) -> Products | None:
    """What the layers multiply with; None: with their own weights. What cannot be had in float32 is left as it is,
    since the numbers are the same; int8 that cannot be had is refused."""
    check_arithmetic(name)
    reason = products.why_not(network)
    if name == "int8":
        reason = reason or int8.why_not()
        if reason is not None:
            raise ArgumentError(f"int8 is not to be had: {reason}", repair="arithmetic = float32")
        return products_of(network, int8.BytesProduct)
    return None if name == "plain" or reason is not None else products_of(network, float_product())
