"""The families we read and write, and which of them a network fits.

A Hugging Face type is written only if it expresses every field of our shape; otherwise the folder is of our own type,
which Hugging Face cannot open, and saving says why.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from maskery.checkpoint import (
    albert,
    bart,
    bert,
    camembert,
    deberta_v2,
    distilbert,
    electra,
    ernie,
    gpt2,
    modernbert,
    mpnet,
    nezha,
    openai_gpt,
    roberta,
    transfo_xl,
    xlm_roberta,
    xlnet,
)
from maskery.checkpoint.family import FIXED, Family
from maskery.checkpoint.state import fitting_class
from maskery.model.config import Shape

OWN = "maskery"
"""The type of a folder with our own config and our own tensor names."""

_MODULES = (
    bert, roberta, albert, electra, distilbert, nezha, ernie, gpt2, openai_gpt, transfo_xl, xlnet, bart, xlm_roberta,
    camembert, mpnet, deberta_v2, modernbert,
)  # fmt: skip
FAMILIES: dict[str, Family] = {module.FAMILY.model_type: module.FAMILY for module in _MODULES}
"""In the order in which they are preferred where several will do."""


@dataclass(frozen=True)
class Choice:
    family: Family | None
    """None = our own type."""
    reasons: tuple[str, ...] = ()
    """Why no Hugging Face type will do."""

    @property
    def name(self) -> str:
        return OWN if self.family is None else self.family.model_type


def choose(shape: Shape, names: Iterable[str], pad: int | None, prefer: str | None = None) -> Choice:
    """The family for a network of this shape with tensors of these (our) names: `prefer` if it will do, otherwise the
    one whose class leaves the fewest tensors over."""
    held = set(names)
    against = {name: family.objections(shape, held, pad) for name, family in FAMILIES.items()}
    able = [family for name, family in FAMILIES.items() if not against[name]]
    if able:
        return Choice(min(able, key=lambda each: (each.model_type != prefer, _left_over(each, held, shape))))
    nearest = min(
        against,
        key=lambda name: (
            _of_another_kind(FAMILIES[name], shape), len(against[name]), -_own_ways(FAMILIES[name], shape)
        ),
    )  # fmt: skip
    return Choice(None, tuple(f"{nearest} cannot express: {reason}" for reason in against[nearest]))


def _of_another_kind(family: Family, shape: Shape) -> int:
    """Encoder, decoder or both, and who attends to whom: nobody means BERT who gives a model a decoder, however many
    other answers are BERT's."""
    other_stacks = ("decoder" in family.fields) != (shape.decoder > 0)
    other_visibility: bool = family.fixed.get("visibility", "full") != shape.visibility
    return other_stacks + other_visibility


def _own_ways(family: Family, shape: Shape) -> int:
    """In how many ways the shape is as this family's is and others' are not."""
    own = {name: only for name, only in family.fixed.items() if name in FIXED and only != FIXED[name]}
    return sum(getattr(shape, name) == only for name, only in own.items())


def _left_over(family: Family, held: set[str], shape: Shape) -> int:
    return len(held - fitting_class(family, held, shape, {}).ours(shape))
