"""Fetching the weights of a published model, by huggingface_hub: only when a user says so, and only the files in use.

HF_ENDPOINT names another server, HF_TOKEN a token for models that their owners give to few: both are the
library's own variables, and so is HF_HUB_OFFLINE=1, which forbids the network.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from fnmatch import fnmatch
from pathlib import Path

from maskery import files, hub
from maskery.errors import ExistsError, InputError
from maskery.extras import optional

_TEXTS = (
    "config.json", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json",
    "vocab.txt", "vocab.json", "merges.txt", "spiece.model", "spm.model", "sentencepiece.bpe.model",
    "generation_config.json", "modules.json", "sentence_bert_config.json", "config_sentence_transformers.json",
    "README.md", "LICENSE*",
)  # fmt: skip
"""What is read of a model besides its weights, and what its owner says of it."""
_STEPS = ("[0-9]*_*/config.json", "[0-9]*_*/model.safetensors")
"""The steps of an encoder of sentences: 1_Pooling, 2_Dense."""
_WEIGHTS = (
    ("model.safetensors",),
    ("model.safetensors.index.json", "model-*.safetensors"),
    ("pytorch_model.bin",),
    ("pytorch_model.bin.index.json", "pytorch_model-*.bin"),
    ("*.ckpt*", "*.ckpt.*", "bert_config.json", "albert_config*.json"),
)
"""Forms of weights, the first that is there is taken: one without code before those with, one file before parts."""
Say = Callable[[str], None]


def needed(there: Sequence[str]) -> list[str]:
    """Of the files of a repository those that a model is opened with."""
    form = next((each for each in _WEIGHTS if any(fnmatch(name, each[0]) for name in there)), ())
    patterns = (*_TEXTS, *_STEPS, *form)
    return [name for name in there if any(_fits(name, pattern) for pattern in patterns)]


def is_pickled(names: Sequence[str]) -> bool:
    return any(name.startswith("pytorch_model") for name in names)


def download(name: str, out: Path | None = None, *, revision: str | None = None, say: Say) -> Path:
    """Fetch a published model into the Hugging Face cache, or into the folder `out`; its folder is returned."""
    library = optional("huggingface_hub", "fetching published models")
    _require_name(name)
    if out is not None:
        begun = (out / ".cache" / "huggingface").is_dir()  # the library's mark: an interrupted download goes on
        if out.exists() and not begun and (not out.is_dir() or any(out.iterdir())):
            raise ExistsError("is already there", where=out, repair="choose another --out, or leave it out")
        files.require_writable(out)
    whole = hub.whole_name(name)
    if whole != name:
        say(f"{name}: {whole} on the hub")
    with _explained(whole, revision):
        info = library.HfApi().model_info(whole, revision=revision, files_metadata=True)
    sizes = {each.rfilename: each.size or 0 for each in info.siblings or ()}
    taken = needed(list(sizes))
    _require_model(whole, taken, list(sizes))
    say(f"{whole}: {len(taken)} of {len(sizes)} files, {sum(sizes[each] for each in taken) / 1e6:,.1f} MB")
    with _explained(whole, revision):
        found = library.snapshot_download(whole, revision=revision, allow_patterns=taken, local_dir=out)
    return Path(found)


def _fits(name: str, pattern: str) -> bool:
    """`*` stays within a folder."""
    return name.count("/") == pattern.count("/") and fnmatch(name, pattern)


def _require_name(name: str) -> None:
    if not hub.is_name(name):
        raise InputError(
            f"{name!r} is no name of a published model", repair="maskery download bert-base-chinese, or OWNER/NAME"
        )


def _require_model(name: str, taken: Sequence[str], there: Sequence[str]) -> None:
    forms = [pattern for form in _WEIGHTS for pattern in form[:1]]
    if any(fnmatch(each, pattern) for each in taken for pattern in forms):
        return
    raise InputError(
        f"holds no weights that can be opened, but {', '.join(sorted(there)[:8]) or 'nothing'}",
        where=name,
        repair="choose a repository with model.safetensors or pytorch_model.bin: docs/weights.md lists some",
    )


@contextmanager
def _explained(name: str, revision: str | None) -> Iterator[None]:
    """What the library raises, as an error with a repair. Its classes are known by their names: they moved between
    versions, and some are those of the library that it sends requests with."""
    try:
        yield
    except Exception as error:
        kinds = {each.__name__ for each in type(error).__mro__}
        told = next((line for kind, line in _told(name, revision).items() if kind in kinds), None)
        if told is None:
            raise
        raise InputError(told[0], where=name, repair=told[1]) from None


def _told(name: str, revision: str | None) -> dict[str, tuple[str, str]]:
    server = os.environ.get("HF_ENDPOINT") or "the Hugging Face hub"
    unreachable = (
        f"{server} cannot be reached",
        "check the network; HF_ENDPOINT=https://... names another server; or fetch the files on another machine and "
        "give their folder",
    )
    return {
        "OfflineModeIsEnabled": ("HF_HUB_OFFLINE=1 forbids the network", "unset HF_HUB_OFFLINE, then the same again"),
        "GatedRepoError": (
            f"{server} gives it only to those who agreed to its terms",
            "agree on its page, make a token there, and set HF_TOKEN",
        ),
        "RevisionNotFoundError": (f"has no revision {revision}", "leave out --revision, or give a branch or commit"),
        "RepositoryNotFoundError": (
            f"{server} has no such model",
            f"write it as on its page, OWNER/NAME{_meant(name)}; docs/weights.md lists models that open",
        ),
        "LocalEntryNotFoundError": unreachable,
        "HfHubHTTPError": (
            f"{server} refused the request",
            "try again later; HF_ENDPOINT=https://... names another server",
        ),
        "HTTPError": unreachable,
        "TransportError": unreachable,
        "ConnectionError": unreachable,
        "TimeoutError": unreachable,
    }


def _meant(name: str) -> str:
    near = hub.near(name.rpartition("/")[2])
    return f" (did you mean {hub.whole_name(near[0])}?)" if near and hub.whole_name(near[0]) != name else ""
