"""Optional libraries: imported where they are used, with a refusal that says what to install."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from maskery.errors import InputError

EXTRAS = {
    "pyarrow": "parquet",
    "zstandard": "zstd",
    "tensorboardX": "tensorboard",
    "gensim": "words",
    "sklearn": "sklearn",
    "scipy": "sklearn",
    "onnx": "onnx",
    "onnxruntime": "onnx",
    "huggingface_hub": "hub",
}
"""Module -> the extra of this package that installs it."""


def optional(module: str, purpose: str) -> Any:
    """The module (or a module inside it), or a refusal: `optional("pyarrow.parquet", "reading parquet files")`."""
    package = module.partition(".")[0]
    extra = EXTRAS[package]
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != package:
            raise
    raise InputError(
        f"{purpose} needs the library {package}, which is not installed",
        repair=f'pip install "maskery[{extra}]"',
    )
