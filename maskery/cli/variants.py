"""Variants on a command line: `RECIPE`, `RECIPE:KEY=VALUE,...`, `LABEL=RECIPE:KEY=VALUE,...`; and numbers like 2M."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from maskery.cli.settings import parse_value
from maskery.compare.variants import Variant
from maskery.errors import InputError
from maskery.train.options import dotted

_SCALES = {"": 1, "k": 1000, "m": 1_000_000, "b": 1_000_000_000}
_EXAMPLE = "static=bert:rows.copies=1,corruption.when=static"
_OPENING, _CLOSING = "[{", "]}"


def parse_variant(text: str) -> Variant:
    """A label is what stands before the first `=`, unless a `:` comes earlier."""
    head, colon, tail = text.partition(":")
    label, equals, name = head.partition("=")
    if not equals:
        label, name = "", head
    if not name or (equals and not label):
        raise InputError(f"{text!r} names no recipe", repair=f"maskery compare bert {_EXAMPLE}")
    changes = _changes(tail, text) if colon else {}
    return Variant(_label(label or _default(name, tail), text), name, changes)


def _default(name: str, changes: str) -> str:
    stem = Path(name).stem if name.endswith(".toml") else name
    return re.sub(r"[^\w.=+-]+", "-", f"{stem}-{changes}").strip("-") if changes else stem


def _label(label: str, text: str) -> str:
    """A label is the name of a folder, too."""
    if not re.fullmatch(r"[\w.=+-]+", label) or label.startswith("."):
        raise InputError(
            f"{text!r}: {label!r} cannot be the name of a folder",
            repair="name it with letters, digits, - and _: my-variant=RECIPE:KEY=VALUE",
        )
    return label


def _changes(tail: str, text: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for part in _parts(tail):
        key, equals, value = part.partition("=")
        key = key.strip()
        if not equals or not key:
            raise InputError(f"{text!r}: {part!r} is not KEY=VALUE", repair=f"maskery compare bert {_EXAMPLE}")
        if key in found:
            raise InputError(f"{text!r} gives {key} twice", repair=f"keep one {key}=...")
        found[key] = parse_value(value.strip())
    return dotted(found)


def _parts(tail: str) -> list[str]:
    """Cut at commas that stand outside brackets and quotes."""
    parts, depth, quote = [""], 0, ""
    for sign in tail:
        if quote:
            quote = "" if sign == quote else quote
        elif sign in "\"'":
            quote = sign
        elif sign in _OPENING:
            depth += 1
        elif sign in _CLOSING:
            depth -= 1
        elif sign == "," and depth == 0:
            parts.append("")
            continue
        parts[-1] += sign
    return parts


def parse_count(text: str, option: str) -> int:
    """2M, 500k, 2_000_000"""
    found = re.fullmatch(r"(\d[\d_]*(?:\.\d+)?)([kmb]?)", text.strip().lower())
    count = round(float(found[1].replace("_", "")) * _SCALES[found[2]]) if found else 0
    if count < 1:
        raise InputError(f"{option} {text!r} is no number of tokens", repair=f"{option} 2M, {option} 500k")
    return count


def parse_seeds(text: str) -> list[int]:
    """0,1,2"""
    parts = [part.strip() for part in text.split(",")]
    seeds = [int(part) for part in parts if part.isdecimal()]
    if len(set(seeds)) < len(parts):
        raise InputError(f"--seeds {text!r} is no list of different numbers", repair="--seeds 0,1,2")
    return seeds
