"""How a folder of sentence-transformers pools: the modes of its Pooling step, under our names.

Encoders read it to make vectors, fine-tuning to read what the model was trained to put there."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

MODULES = "modules.json"
MODES = {
    "first": "pooling_mode_cls_token",
    "max": "pooling_mode_max_tokens",
    "mean": "pooling_mode_mean_tokens",
    "sqrt_mean": "pooling_mode_mean_sqrt_len_tokens",
    "weighted": "pooling_mode_weightedmean_tokens",
    "last": "pooling_mode_lasttoken",
}
"""In the order in which several are concatenated."""
SINCE_6 = {
    "cls": "first", "max": "max", "mean": "mean", "mean_sqrt_len_tokens": "sqrt_mean", "weightedmean": "weighted",
    "lasttoken": "last",
}  # fmt: skip


def modes_of(config: Mapping[str, Any]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The modes that the config of a Pooling step names, under our names, and those that are unknown here."""
    named = config.get("pooling_mode")
    if named is not None:
        every = [named] if isinstance(named, str) else list(named) if isinstance(named, list) else [str(named)]
        unknown = [str(name) for name in every if name not in SINCE_6]
        return tuple(SINCE_6[name] for name in every if name in SINCE_6), tuple(unknown)
    modes = set(MODES.values())
    unknown = [key for key, on in config.items() if key.startswith("pooling_mode_") and on and key not in modes]
    return tuple(name for name, key in MODES.items() if config.get(key)) or ("mean",), tuple(unknown)


def folder_pooling(folder: Path) -> str | None:
    """The one mode by which a folder pools; None: it has no such step, or more than one mode. Fine-tuning goes on
    without it, so a file that cannot be read is no error here: opening the folder as an encoder names it."""
    try:
        modules = json.loads((folder / MODULES).read_text(encoding="utf-8"))
        steps = [each for each in modules if str(each["type"]).rpartition(".")[2] == "Pooling"]
        if len(steps) != 1:
            return None
        config = json.loads((folder / str(steps[0]["path"]) / "config.json").read_text(encoding="utf-8"))
        found, unknown = modes_of(config)
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    return found[0] if len(found) == 1 and not unknown else None
