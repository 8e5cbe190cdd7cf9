"""tokenizer_config.json: what a folder tells of its tokenizer beside the tokenizer itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from maskery.errors import InputError

SETTINGS = "tokenizer_config.json"
_NOT_OURS = (
    "auto_map",
    "added_tokens_decoder",
    "name_or_path",
    "tokenizer_file",
    "vocab_file",
    "special_tokens_map_file",
)


def read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"not UTF-8 at byte {error.start}", where=path, repair="fetch the file anew") from None


def read_settings(folder: Path) -> dict[str, Any]:
    """The folder's tokenizer_config.json without what names code or repeats tokenizer.json."""
    path = folder / SETTINGS
    if not path.is_file():
        return {}
    try:
        settings = json.loads(read_text(path))
    except (ValueError, RecursionError) as error:
        raise InputError(f"not JSON: {error}", where=path, repair="fetch the file anew, or remove it") from None
    if not isinstance(settings, dict):
        raise InputError("not a JSON object", where=path, repair="fetch the file anew, or remove it")
    return {key: value for key, value in settings.items() if key not in _NOT_OURS}
