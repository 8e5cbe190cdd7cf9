"""Names of published models: which folder of the local Hugging Face cache holds one, and which name is whole.

A name is `bert-base-chinese` or `hfl/chinese-macbert-base`. It is looked up on this machine's disk alone, in the layout
that huggingface_hub and transformers share: models--OWNER--NAME/snapshots/COMMIT, the newest COMMIT in refs/main.
Nothing is fetched here: `maskery download NAME` does that.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path

from maskery.errors import InputError

OWNERS: Mapping[str, tuple[str, ...]] = {
    "albert": ("albert-base-v2", "albert-large-v2", "albert-xlarge-v2", "albert-xxlarge-v2"),
    "almanach": ("camembert-base", "camembert-large"),
    "answerdotai": ("ModernBERT-base", "ModernBERT-large"),
    "BAAI": (
        "bge-base-en-v1.5", "bge-base-zh-v1.5", "bge-large-en-v1.5", "bge-large-zh-v1.5", "bge-m3",
        "bge-small-en-v1.5", "bge-small-zh-v1.5",
    ),
    "distilbert": ("distilbert-base-multilingual-cased", "distilbert-base-uncased", "distilgpt2", "distilroberta-base"),
    "facebook": ("bart-base", "bart-large"),
    "FacebookAI": ("roberta-base", "roberta-large", "xlm-roberta-base", "xlm-roberta-large"),
    "google": (
        "electra-base-discriminator", "electra-base-generator", "electra-small-discriminator",
        "electra-small-generator",
    ),
    "google-bert": (
        "bert-base-cased", "bert-base-chinese", "bert-base-multilingual-cased", "bert-base-uncased",
        "bert-large-cased", "bert-large-uncased",
    ),
    "hfl": (
        "chinese-bert-wwm", "chinese-bert-wwm-ext", "chinese-electra-180g-base-discriminator",
        "chinese-electra-180g-small-discriminator", "chinese-macbert-base", "chinese-macbert-large",
        "chinese-roberta-wwm-ext", "chinese-roberta-wwm-ext-large", "chinese-xlnet-base", "rbt3", "rbtl3",
    ),
    "intfloat": ("e5-base-v2", "multilingual-e5-base", "multilingual-e5-large", "multilingual-e5-small"),
    "microsoft": ("deberta-v3-base", "deberta-v3-large", "deberta-v3-small", "mdeberta-v3-base"),
    "nghuyong": ("ernie-1.0-base-zh", "ernie-3.0-base-zh", "ernie-3.0-mini-zh", "ernie-3.0-nano-zh"),
    "openai-community": ("gpt2", "gpt2-large", "gpt2-medium", "openai-gpt"),
    "sentence-transformers": (
        "all-MiniLM-L12-v2", "all-MiniLM-L6-v2", "all-mpnet-base-v2", "paraphrase-multilingual-MiniLM-L12-v2",
    ),
    "shibing624": ("text2vec-base-chinese", "text2vec-base-multilingual"),
    "thenlper": ("gte-base", "gte-base-zh", "gte-large-zh", "gte-small", "gte-small-zh"),
    "uer": (
        "chinese_roberta_L-12_H-768", "chinese_roberta_L-2_H-128", "chinese_roberta_L-4_H-256",
        "chinese_roberta_L-8_H-512", "gpt2-chinese-cluecorpussmall",
    ),
    "voidful": ("albert_chinese_base", "albert_chinese_small", "albert_chinese_tiny"),
    "xlnet": ("xlnet-base-cased", "xlnet-large-cased"),
}  # fmt: skip
"""Owner -> published models of families that open here; docs/weights.md tells of each. By this table a bare name, as
papers and older programs write it, becomes the whole one."""
_NAME = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?")
WEIGHTS = ("*.safetensors", "pytorch_model*.bin")
TOKENIZERS = ("tokenizer.json", "vocab.txt", "vocab.json", "*.model")
"""Files of which a snapshot needs one: fetching may have been interrupted, or have been about something else."""


def is_name(given: str | os.PathLike[str]) -> bool:
    """Whether it can be the name of a published model: at most one slash, no signs of a path."""
    text = os.fspath(given)
    return _NAME.fullmatch(text) is not None and "--" not in text and ".." not in text


def whole_name(name: str) -> str:
    """With its owner, where the table has one: google-bert/bert-base-chinese of bert-base-chinese."""
    if "/" in name:
        return name
    return next((f"{owner}/{name}" for owner, models in OWNERS.items() if name in models), name)


def near(name: str) -> list[str]:
    """Names of the table that this one may have meant, itself first."""
    bare = name.rpartition("/")[2]
    names = [each for models in OWNERS.values() for each in models]
    return get_close_matches(bare, names, n=1, cutoff=0.85) if "/" not in name else [name]


def cache() -> Path:
    """The folder in which huggingface_hub keeps what it fetched, found as it finds it."""
    for variable, inside in (("HF_HUB_CACHE", ""), ("HUGGINGFACE_HUB_CACHE", ""), ("HF_HOME", "hub")):
        if os.environ.get(variable):
            return Path(os.environ[variable]).expanduser() / inside
    home = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(home).expanduser() / "huggingface" / "hub"


def in_cache(name: str, needed: Sequence[str] = WEIGHTS) -> Path | None:
    """The newest snapshot of a model in the cache; None where there is none.

    A bare name means the published owner's model if that is there, else the only one of that name, whoever owns it.
    """
    if not is_name(name):
        return None
    exact = [whole_name(name), name]
    found = next((folder for each in exact if (folder := _folder(each)).is_dir()), None)
    if found is None and "/" not in name:
        found = _only(name, sorted(cache().glob(f"models--*--{name}")))
    return None if found is None else _snapshot(found, name, needed)


def download_command(name: str) -> str:
    return f"maskery download {name}"


def _folder(name: str) -> Path:
    return cache() / f"models--{name.replace('/', '--')}"


def _only(name: str, folders: list[Path]) -> Path | None:
    if len(folders) < 2:
        return folders[0] if folders else None
    names = [each.name.removeprefix("models--").replace("--", "/") for each in folders]
    raise InputError(
        f"{name} is the name of {len(names)} models in {cache()}", repair=f"give one of {', '.join(names)}"
    )


def _snapshot(folder: Path, name: str, needed: Sequence[str]) -> Path:
    """What refs/main names; where nobody wrote it, the snapshot that was written last."""
    main = folder / "refs" / "main"
    commit = main.read_text(encoding="utf-8").strip() if main.is_file() else ""
    there = sorted((folder / "snapshots").glob("*"), key=lambda each: (each.name == commit, each.stat().st_mtime))
    if there and any(any(there[-1].glob(pattern)) for pattern in needed):
        return there[-1]
    raise InputError(
        f"{name} is not whole in the Hugging Face cache: there is no {' or '.join(needed)}",
        where=there[-1] if there else folder,
        repair=download_command(name),
    )
