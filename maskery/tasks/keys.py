"""The keys of task.toml by name: what settings in Python and `--set` may hold, as tables or with dots."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from maskery import arguments
from maskery.tasks.settings import TaskConfig
from maskery.train.options import flat, nested

WHOLE = ("columns.map",)
"""Tables whose keys are the user's own."""


def known_keys() -> dict[str, Any]:
    """Every key with a dot for each table, and its default; `threshold`, which has none, is not among them."""
    return flat(TaskConfig(task="classify").model_dump(), whole=WHOLE)


def as_tables(settings: object) -> dict[str, Any]:
    """Settings of a Python call as tables: {"rows.length": 64} is the same as {"rows": {"length": 64}}."""
    form = 'a dict: {"epochs": 2, "training": {"lr": 2e-5}}'
    if not isinstance(settings, Mapping):
        raise arguments.wrong("settings", settings, form)
    for key in settings:
        if not isinstance(key, str):
            raise arguments.wrong("a key of settings", key, "a string", f"give settings as {form}")
    return nested(flat(settings, whole=WHOLE))
