"""The base of every config: frozen, keyword-only, closed against unknown keys, read and written as plain values."""

from __future__ import annotations

import math
from typing import Any

from pydantic import BaseModel, ConfigDict


class Config(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, protected_namespaces=())

    def plain(self) -> dict[str, Any]:
        """Nested dicts of numbers, strings and lists, as TOML or JSON hold them."""
        return self.model_dump(mode="json")


def divisor(whole: int, near: int) -> int:
    """The largest divisor that is no larger than `near`."""
    small = [each for each in range(1, math.isqrt(whole) + 1) if whole % each == 0]
    return max(each for one in small for each in (one, whole // one) if each <= near)
