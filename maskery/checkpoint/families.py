"""The families we read and write, and which of them a network fits.

A Hugging Face type is written only if it expresses every field of our shape; otherwise the folder is of our own type,
which Hugging Face cannot open, and saving says why.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from maskery.checkpoint import bert, roberta
from maskery.checkpoint.family import Family
from maskery.model.config import Shape

OWN = "maskery"
"""The type of a folder with our own config and our own tensor names."""

FAMILIES: dict[str, Family] = {family.model_type: family for family in (bert.FAMILY, roberta.FAMILY)}


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
    """The family for a network of this shape with tensors of these (our) names; `prefer` is tried first."""
    held = list(names)
    order = sorted(FAMILIES.values(), key=lambda family: family.model_type != prefer)
    against = {family.model_type: family.objections(shape, held, pad) for family in order}
    for family in order:
        if not against[family.model_type]:
            return Choice(family)
    fewest = min(against, key=lambda name: len(against[name]))
    return Choice(None, tuple(f"{fewest} cannot express: {reason}" for reason in against[fewest]))
