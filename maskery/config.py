"""The base of every config: frozen, keyword-only, closed against unknown keys, read and written as plain values."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict


class Config(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, protected_namespaces=())

    def plain(self) -> dict[str, Any]:
        """Nested dicts of numbers, strings and lists, as TOML or JSON hold them."""
        return self.model_dump(mode="json")
