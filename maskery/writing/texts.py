"""Tokens as text while it is written: whole characters only, and never what may become a text to stop at."""

from __future__ import annotations

from collections.abc import Sequence

from maskery.text.tokenizer import Tokenizer

_HALF = "\ufffd"
"""What bytes are decoded to that are no character, or not yet."""


class Speller:
    """The text of the tokens behind one prompt."""

    def __init__(self, tokenizer: Tokenizer, before: Sequence[int], stop: Sequence[str] = ()) -> None:
        """`before` are the tokens that the text continues, without a break; none where it stands alone."""
        self.tokenizer, self.before, self.stop = tokenizer, list(before), tuple(stop)
        self.known = tokenizer.decode(self.before) if self.before else ""
        self.shown = ""

    def text(self, ids: Sequence[int]) -> str:
        """All of it, up to a text to stop at."""
        whole = self._decoded(ids)
        found = [place for each in self.stop if (place := whole.find(each)) >= 0]
        return whole[: min(found)] if found else whole

    def stops(self, ids: Sequence[int]) -> bool:
        return bool(self.stop) and any(each in self._decoded(ids) for each in self.stop)

    def news(self, ids: Sequence[int], *, ended: bool) -> str:
        """What can be shown now that was not shown before."""
        text = self.text(ids)
        if not ended:
            text = text.rstrip(_HALF)
            text = text[: len(text) - max((_begun(text, each) for each in self.stop), default=0)]
        if not text.startswith(self.shown):
            return ""
        new = text[len(self.shown) :]
        self.shown = text
        return new

    def _decoded(self, ids: Sequence[int]) -> str:
        if not self.before:
            return self.tokenizer.decode(list(ids))
        whole = self.tokenizer.decode([*self.before, *ids])
        return whole[len(self.known) :] if whole.startswith(self.known) else self.tokenizer.decode(list(ids))


def _begun(text: str, wanted: str) -> int:
    """How many characters at the end of the text may be the beginning of what is wanted."""
    return next((size for size in range(min(len(text), len(wanted) - 1), 0, -1) if text.endswith(wanted[:size])), 0)
