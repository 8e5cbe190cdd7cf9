"""What a contradiction between pieces of a recipe says: the piece, the reason and the choices."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Refusal:
    piece: str
    reason: str
    repair: str


def either(names: list[str]) -> str:
    return " or ".join(f'"{name}"' for name in names)
