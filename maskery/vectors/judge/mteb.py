"""An encoder as MTEB wants a model: `mteb.evaluate(MtebModel(encoder, "me/my-model"), tasks)`.

Nothing of MTEB is imported. It calls `encode` with lists of texts (version 1) or with a loader of batches that have
their texts under "text" (version 2); both are answered. Queries and documents are encoded each in their own way where
the encoder has one. Vectors are compared by the measure of the encoder's folder, or else by cosine; what is compared is
told as tensors, as MTEB's protocol has it: its tasks make a number of a matrix of one, which arrays refuse.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from maskery.errors import ArgumentError, InputError
from maskery.vectors.judge.encodes import Encodes, Vectors, vectors_of
from maskery.vectors.judge.similarity import similarities
from maskery.vectors.settings import SIMILARITIES, Similarity
from maskery.vectors.similarity import similarity

ROLES = {"query": "query", "document": "document", "passage": "document"}
"""MTEB's kinds of prompts, passage being version 1's word for document."""
_METAS = ("mteb.models.model_meta", "mteb.model_meta")
"""Where its table of a model's facts is: version 2, version 1."""


class MtebModel:
    def __init__(
        self,
        encoder: Encodes,
        name: str = "maskery/encoder",
        revision: str = "local",
        languages: list[str] | None = None,
    ) -> None:
        """`name` is organisation/model, under which MTEB keeps results; `languages` are like zho-Hans and eng-Latn."""
        if name.count("/") != 1 or not all(name.split("/")):
            raise ArgumentError(f"the name is {name!r}", repair='"organisation/model", as MTEB keeps results by')
        self.encoder, self.name, self.revision, self.languages = encoder, name, revision, languages

    def encode(
        self,
        inputs: Iterable[Any],
        *,
        task_metadata: Any = None,
        task_name: str | None = None,
        hf_split: str | None = None,
        hf_subset: str | None = None,
        prompt_type: Any = None,
        prompt_name: str | None = None,
        batch_size: int | None = None,
        show_progress_bar: bool | None = None,
        convert_to_tensor: bool = False,
        convert_to_numpy: bool = True,
        precision: str = "float32",
        num_workers: int | None = None,
    ) -> Vectors:
        """(n, D). What only says how or for which task is accepted and changes nothing: vectors do not depend on it."""
        if precision != "float32":
            raise InputError(f"precision {precision}: vectors are float32 here", repair="leave precision out")
        kind = str(getattr(prompt_type, "value", prompt_type or ""))
        if kind and kind not in ROLES:
            raise InputError(f"a prompt of the type {kind!r} is not known", repair=f"one of {', '.join(ROLES)}")
        return vectors_of(self.encoder, texts_of(inputs), role=ROLES.get(kind, ""))

    @property
    def measure(self) -> Similarity:
        """How vectors are compared."""
        said = getattr(getattr(self.encoder, "config", None), "similarity", None)
        return next((each for each in SIMILARITIES if each == said), "cosine")

    def similarity(self, embeddings1: Any, embeddings2: Any) -> Tensor:
        """(n, D), (m, D) -> (n, m)"""
        return torch.from_numpy(similarity(_rows(embeddings1), _rows(embeddings2), self.measure))

    def similarity_pairwise(self, embeddings1: Any, embeddings2: Any) -> Tensor:
        """(n, D), (n, D) -> (n,)"""
        found = similarities(_rows(embeddings1), _rows(embeddings2))[self.measure]
        return torch.from_numpy(found.astype(np.float32))

    @property
    def mteb_model_meta(self) -> Any:
        """MTEB's own table, if MTEB was imported: its fields differ by version, and only those it has are filled."""
        meta = next((sys.modules[name].ModelMeta for name in _METAS if name in sys.modules), None)
        if meta is None:
            return None
        known = {
            "name": self.name, "revision": self.revision, "languages": self.languages, "framework": ["PyTorch"],
            "similarity_fn_name": self.measure if self.measure in ("cosine", "dot") else None,
            "open_weights": True, "use_instructions": False, "modalities": ["text"], **self._sizes(),
        }  # fmt: skip
        fields = meta.model_fields
        needed = {name: None for name, each in fields.items() if each.is_required()}
        return meta(**needed | {name: value for name, value in known.items() if name in fields})

    def _sizes(self) -> dict[str, int]:
        """What an encoder of ours knows of itself."""
        config = getattr(self.encoder, "config", None)
        told = {"embed_dim": getattr(self.encoder, "dimensions", None), "max_tokens": getattr(config, "length", None)}
        return {name: value for name, value in told.items() if isinstance(value, int)}


def texts_of(inputs: Iterable[Any]) -> list[str]:
    """Of a list of texts, of documents as version 1 has them (title and text), or of batches of either."""
    texts: list[str] = []
    for place, each in enumerate(inputs):
        if isinstance(each, str):
            texts.append(each)
        elif isinstance(each, Mapping) and isinstance(each.get("text"), str):
            title = each.get("title") or ""
            texts.append(f"{title} {each['text']}".strip())
        elif isinstance(each, Mapping) and isinstance(each.get("text"), list | tuple):
            texts.extend(each["text"])
        else:
            cause = f"input {place} has no text: {type(each).__name__}"
            if isinstance(each, Mapping):
                cause = f"batch {place} has no text; it has {', '.join(map(str, each)) or 'nothing'}"
            raise InputError(cause, repair="take tasks of text: images and sound are not encoded")
    return texts


def _rows(found: Any) -> Vectors:
    """Arrays and tensors; one vector is a matrix of one row."""
    plain = found.detach().cpu().float().numpy() if hasattr(found, "detach") else found
    return np.atleast_2d(np.asarray(plain, dtype=np.float32))
