"""Which pieces of a vocabulary are the special tokens, and what stands for one that is not there.

Tokenizers of the GPTs have a single mark. It ends every text, and whoever reads from left to right needs no other: the
mark that ended the last text begins the next, padding is read by nobody, and bytes leave nothing unknown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer as RustTokenizer
from tokenizers.models import BPE

from maskery.errors import InputError
from maskery.text.marks import CONTROL_MARK

ROLES: dict[str, tuple[str, ...]] = {
    "pad": ("[PAD]", "<pad>"),
    "unk": ("[UNK]", "<unk>"),
    "cls": ("[CLS]", "<cls>", "<s>"),
    "sep": ("[SEP]", "<sep>", "</s>"),
    "mask": ("[MASK]", "<mask>"),
}
END = "<|endoftext|>"
"""The one mark of GPT-2 and its like."""


@dataclass(frozen=True, kw_only=True)
class Specials:
    """The numbers of the special tokens."""

    pad: int
    unk: int
    cls: int
    sep: int
    mask: int | None

    @property
    def ids(self) -> tuple[int, ...]:
        return tuple(sorted({self.pad, self.unk, self.cls, self.sep, *([] if self.mask is None else [self.mask])}))

    @property
    def framed(self) -> bool:
        """Whether what begins a text is another token than what ends it."""
        return self.cls != self.sep


def find(
    rust: RustTokenizer, settings: Mapping[str, Any], where: str | Path = ""
) -> tuple[dict[str, str], Specials, str]:
    """The special tokens by their roles, their numbers, and what there is to say of it. `settings`
    (tokenizer_config.json) may name them."""
    stated = {role: name for role in ROLES if (name := _stated(settings, role)) is not None}
    for role, name in stated.items():
        _require_special(rust, role, name, where)
    names = {role: name for role in ROLES if (name := _name(rust, stated.get(role), ROLES[role])) is not None}
    notes = [
        f"{role}_token {name} is not in the vocabulary, and is passed over"
        for role, name in stated.items()
        if rust.token_to_id(name) is None
    ]
    if "cls" not in names and "sep" not in names and (mark := _one_mark(rust, names)):
        missing = [role for role in ROLES if role not in names and role != "mask"]
        names |= dict.fromkeys(missing, mark)
        notes.append(f"{mark} stands for {', '.join(missing)}, for which there is no other token")
    for role, candidates in ROLES.items():
        if role not in names and role != "mask":
            raise InputError(
                f"the tokenizer has no {role} token ({' or '.join(candidates)})",
                where=where or None,
                repair="use a tokenizer of the BERT or GPT family, or train one: --tokenizer train",
            )
    numbers: dict[str, Any] = {"mask": None, **{role: rust.token_to_id(name) for role, name in names.items()}}
    return names, Specials(**numbers), "; ".join(notes)


def _stated(settings: Mapping[str, Any], role: str) -> str | None:
    """What tokenizer_config.json names for a role."""
    stated = settings.get(f"{role}_token")
    name = stated.get("content") if isinstance(stated, dict) else stated
    return name if isinstance(name, str) else None


def _require_special(rust: RustTokenizer, role: str, name: str, where: str | Path) -> None:
    """A word that texts hold cannot stand for what no text holds."""
    if rust.token_to_id(name) is None or CONTROL_MARK.fullmatch(name) or name in _special(rust):
        return
    raise InputError(
        f"{role}_token is {name!r} in tokenizer_config.json, which is an ordinary piece of the vocabulary",
        where=where or None,
        repair=f"name the special token there ({' or '.join(ROLES[role])}), or leave {role}_token out",
    )


def _special(rust: RustTokenizer) -> set[str]:
    return {token.content for token in rust.get_added_tokens_decoder().values() if token.special}


def _name(rust: RustTokenizer, stated: str | None, candidates: Sequence[str]) -> str | None:
    """A vocabulary may hold several candidates: MPNet's has BERT's special tokens as well, which nobody uses. The one
    that the settings name is taken, else one that the tokenizer looks for in text, else the first."""
    known = [each for each in candidates if rust.token_to_id(each) is not None]
    if stated is not None and (
        stated in known or (not known and stated != END and rust.token_to_id(stated) is not None)
    ):
        return stated
    found = _special(rust)
    return next((each for each in known if each in found), known[0] if known else None)


def _one_mark(rust: RustTokenizer, names: dict[str, str]) -> str | None:
    """The mark that takes every role: the end of a text, or of the first GPT, which has none, the unknown."""
    if rust.token_to_id(END) is not None:
        return END
    return names.get("unk") if isinstance(rust.model, BPE) and rust.model.end_of_word_suffix else None


def told(names: dict[str, str]) -> dict[str, str]:
    """The roles as the files of Hugging Face name them."""
    if names["cls"] != names["sep"]:
        return {f"{role}_token": name for role, name in names.items()}
    ends = {} if names["sep"] == names["unk"] != END else {"bos_token": names["sep"], "eos_token": names["sep"]}
    return ends | {f"{role}_token": names[role] for role in ("unk", "pad", "mask") if role in names}
