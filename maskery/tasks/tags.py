"""Spans of characters as one tag for each piece of text, and back.

    BIO     B-LOC I-LOC I-LOC  O        begins, goes on
    BMES    B-LOC M-LOC E-LOC  S-LOC    begins, goes on, ends; alone

What carries a tag is a `Piece`: a token, or a word of the file, whose first token carries it. Tokens that have parts of
one character between them (bytes, combining marks, joined emoji) are one piece too, so no span ends within a character.
Other slots are not asked. Spans are read off the pieces' own places, so they are exact in the original text, whatever
the tokenizer made of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Literal, NamedTuple
from unicodedata import category

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maskery.errors import InputError, UnknownName
from maskery.tasks.examples import Span
from maskery.tasks.framing.offsets import goes_with_the_one_before

Scheme = Literal["BIO", "BMES"]
PARTS: dict[Scheme, str] = {"BIO": "BI", "BMES": "BMES"}
_OPENS, _CLOSES = frozenset("BS"), frozenset("ES")
_JOINER = "\u200d"


class Rules(NamedTuple):
    """Which tags may stand where; C tags."""

    begins: NDArray[np.bool_]
    """(C,) as the first."""
    follows: NDArray[np.bool_]
    """(C,C) behind the tag of the row."""
    ends: NDArray[np.bool_]
    """(C,) as the last."""


@dataclass(frozen=True)
class Pieces:
    """What carries a tag, in the order of the text; n pieces."""

    slot: NDArray[np.int64]
    """(n,) the slot that is asked: the first token."""
    last: NDArray[np.int64]
    """(n,) the slot of the last token."""
    start: NDArray[np.int64]
    """(n,) characters start..stop-1 of the text."""
    stop: NDArray[np.int64]
    gap: NDArray[np.bool_]
    """(n,) whether text that was not read stands before it, as where the middle was cut out: no span goes across."""
    unread: int = 0
    """Words of the file that no token was read of: cut off, or nothing but signs that the tokenizer drops."""
    shared: int = 0
    """Words that have no token of their own: one token reads several. They have one tag between them."""

    def __len__(self) -> int:
        return len(self.slot)

    def overlapping(self, start: ArrayLike, stop: ArrayLike) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The numbers lo..hi-1 of the pieces that have characters of start..stop-1."""
        lo = np.searchsorted(self.stop, start, "right").astype(np.int64)
        return lo, np.searchsorted(self.start, stop, "left").astype(np.int64)


class Encoded(NamedTuple):
    tags: NDArray[np.int64]
    """(n,) of each piece."""
    straddled: int
    """Pieces that stand across the border of a span; they were counted into it."""
    lost: int
    """Spans without a piece of their own."""
    changed: int
    """Spans that come back with other borders."""


def places_in(offsets: ArrayLike, field: ArrayLike, number: int) -> NDArray[np.int64]:
    """The places (T,2) of a row's slots in one of its texts; -1 for marks and for slots that are of another `field`."""
    return np.where(np.asarray(field)[:, None] == number, np.asarray(offsets, dtype=np.int64), -1)


def whole_places(offsets: ArrayLike, text: str) -> NDArray[np.int64]:
    """Where tokens stand, white space around them taken off, marks that belong to their last character put on.

    (T,2) in and out; a slot that is no text has -1, and a token of white space alone is empty.
    """
    places = np.array(offsets, dtype=np.int64).reshape(-1, 2)
    found = places.tolist()
    for token in found:
        start, stop = token
        if start < 0:
            continue
        while start < stop and text[start].isspace():
            start += 1
        while start < stop and text[stop - 1].isspace():
            stop -= 1
        token[:] = start, (_character_end(text, stop) if stop > start else stop)
    return np.array(found, dtype=np.int64).reshape(-1, 2)


def _character_end(text: str, stop: int) -> int:
    while stop < len(text) and not text[stop].isascii() and _belongs(text[stop]):
        stop += 1
        if text[stop - 1] == _JOINER and stop < len(text) and not text[stop].isspace():
            stop += 1
    return stop


_belongs = lru_cache(4096)(goes_with_the_one_before)


def unread(text: str) -> bool:
    """Whether there is more in it than tokenizers drop: spaces, control characters and stray marks."""
    return any(category(character)[0] not in "CMZ" for character in text.strip())


def pieces_of(offsets: ArrayLike, text: str, words: Sequence[tuple[int, int]] = (), *, every: bool = False) -> Pieces:
    """The pieces of a row from its tokens' places (T,2) in the text, -1 for slots that are none of it.

    With `words`, those of the file, a word is a piece; with `every` its tokens are nevertheless asked one by one.
    """
    places = whole_places(offsets, text)
    slots = np.flatnonzero(places[:, 1] > places[:, 0])
    start, stop = places[slots, 0], places[slots, 1]
    if not len(slots):
        return Pieces(slots, slots, start, stop, np.zeros(0, dtype=bool), unread=len(words))
    reach = np.maximum.accumulate(stop)
    first = np.concatenate(([0], 1 + np.flatnonzero(start[1:] >= reach[:-1])))
    last = np.append(first[1:], len(slots)) - 1
    begin, end = start[first], reach[last]
    gap = _gaps(text, begin, end)
    if every or not len(words):
        return Pieces(slots[first], slots[last], begin, end, gap)
    return _by_words(Pieces(slots[first], slots[last], begin, end, gap), words)


def _gaps(text: str, start: NDArray[np.int64], stop: NDArray[np.int64]) -> NDArray[np.bool_]:
    gap = np.zeros(len(start), dtype=bool)
    for at in (1 + np.flatnonzero(start[1:] > stop[:-1])).tolist():
        gap[at] = unread(text[int(stop[at - 1]) : int(start[at])])
    return gap


def _by_words(tokens: Pieces, words: Sequence[tuple[int, int]]) -> Pieces:
    where = np.array(words, dtype=np.int64).reshape(-1, 2)
    lo, hi = tokens.overlapping(where[:, 0], where[:, 1])
    read = hi > lo
    where, lo, hi = where[read], lo[read], hi[read]
    at, first = np.unique(lo, return_index=True)
    last = np.append(first[1:], len(lo)) - 1
    return Pieces(
        tokens.slot[at],
        tokens.last[hi[last] - 1],
        where[first, 0],
        where[last, 1],
        tokens.gap[at],
        unread=len(words) - len(where),
        shared=len(where) - len(at),
    )


class Tags:
    """The tags of some kinds of spans: O, then those of each kind in turn."""

    def __init__(self, kinds: Sequence[str], scheme: Scheme = "BIO") -> None:
        if scheme not in PARTS:
            raise UnknownName("tagging scheme", scheme, PARTS)
        twice = sorted({kind for kind in kinds if list(kinds).count(kind) > 1})
        if twice:
            raise InputError(f"kinds are named twice: {', '.join(twice)}", repair="name each kind of span once")
        self.kinds, self.scheme = tuple(kinds), scheme
        self.parts = PARTS[scheme]
        self.names = ("O", *(f"{part}-{kind}" for kind in kinds for part in self.parts))
        self._number = {kind: number for number, kind in enumerate(kinds)}

    @classmethod
    def of_names(cls, names: Sequence[str], where: str | Path | None = None) -> Tags:
        """From the names of all tags in their order, as a model's folder has them."""
        kinds = list(dict.fromkeys(name.partition("-")[2] for name in names if name != "O"))
        for scheme in PARTS:
            made = cls(kinds, scheme)
            if made.names == tuple(names):
                return made
        raise InputError(
            f"the tags {', '.join(names)} are not those of a scheme",
            where=where,
            repair="name them in config.json's id2label: O first, then for each kind B- and I-, or B-, M-, E- and S-",
        )

    def __len__(self) -> int:
        return len(self.names)

    @cached_property
    def rules(self) -> Rules:
        size = len(self.parts)
        part = np.array(["O", *self.parts * len(self.kinds)])
        kind = np.concatenate(([-1], np.repeat(np.arange(len(self.kinds)), size)))
        opens = np.isin(part, ["O", "B", "S"])
        # A span that must be closed by a tag of its own is open behind B and M; of BIO none must be.
        unfinished = np.isin(part, ["B", "M"]) & (self.scheme == "BMES")
        goes_on = (kind[:, None] == kind) & ~opens[None, :] & np.isin(part, ["B", "I", "M"])[:, None]
        follows = goes_on | (opens[None, :] & ~unfinished[:, None])
        return Rules(begins=opens, follows=follows, ends=~unfinished)

    def encode(self, spans: Sequence[Span], pieces: Pieces) -> Encoded:
        """The tags of the pieces. `spans` are ascending and apart."""
        where = np.array([(span.start, span.stop) for span in spans], dtype=np.int64).reshape(-1, 2)
        self._refuse_overlaps(spans, where)
        for span in spans:
            if span.kind not in self._number:
                raise UnknownName("kind of span", span.kind, self.kinds)
        kind = np.array([self._number[span.kind] for span in spans], dtype=np.int64)
        owner = _owners(where, pieces)
        mine = owner >= 0
        own = where[owner[mine]]
        straddled = int(((pieces.start[mine] < own[:, 0]) | (pieces.stop[mine] > own[:, 1])).sum())
        first, last = _edges(owner)
        held = owner[mine & first]
        changed = np.zeros(len(spans), dtype=bool)
        changed[held] |= pieces.start[mine & first] != where[held, 0]
        changed[held] |= pieces.stop[mine & last] != where[held, 1]
        changed[owner[mine & ~first & pieces.gap]] = True
        return Encoded(self._tagged(owner, kind), straddled, len(spans) - len(held), int(changed.sum()))

    def _refuse_overlaps(self, spans: Sequence[Span], where: NDArray[np.int64]) -> None:
        wrong = np.flatnonzero(where[1:, 0] < where[:-1, 1])
        if len(wrong):
            one, two = spans[wrong[0]], spans[wrong[0] + 1]
            raise InputError(
                f"two spans overlap or are out of order: {one.kind} at {one.start}-{one.stop} and {two.kind} at "
                f"{two.start}-{two.stop}",
                repair="give one tag a character: leave out the inner span, and sort by the start",
            )

    def decode(self, path: ArrayLike, pieces: Pieces) -> tuple[Span, ...]:
        """The spans of well-formed tags, one for each piece; others are refused (see `repair`)."""
        tags = np.asarray(path, dtype=np.int64)
        if len(tags) != len(pieces):
            raise InputError(f"{len(tags)} tags for {len(pieces)} pieces", repair="give one tag for each piece")
        if not self.well_formed(tags):
            named = " ".join(self.names[tag] for tag in tags[:20].tolist())
            raise InputError(
                f"the tags form no spans: {named}{' ...' if len(tags) > 20 else ''}", repair="call Tags.repair first"
            )
        first, last = self._runs(tags, pieces.gap)
        size = len(self.parts)
        return tuple(
            Span(int(pieces.start[a]), int(pieces.stop[b]), self.kinds[(int(tags[a]) - 1) // size])
            for a, b in zip(first, last, strict=True)
        )

    def certainty(self, path: ArrayLike, pieces: Pieces, shares: NDArray[Any]) -> tuple[float, ...]:
        """Of each span of well-formed tags: the mean probability of its tags, by the `shares` (n,C) of all."""
        tags = np.asarray(path, dtype=np.int64)
        mine = shares[np.arange(len(tags)), tags]
        return tuple(float(mine[a : b + 1].mean()) for a, b in zip(*self._runs(tags, pieces.gap), strict=True))

    def well_formed(self, path: ArrayLike) -> bool:
        tags = np.asarray(path, dtype=np.int64)
        if not len(tags):
            return True
        begins, follows, ends = self.rules
        return bool(begins[tags[0]] and follows[tags[:-1], tags[1:]].all() and ends[tags[-1]])

    def repair(self, path: ArrayLike) -> tuple[NDArray[np.int64], int]:
        """The nearest well-formed tags, and how many had to be changed: neighbours of one kind stay one span, a span
        that goes on without having begun begins, one that is left open ends."""
        tags = np.asarray(path, dtype=np.int64)
        first, last = self._runs(tags)
        owner = np.full(len(tags), -1, dtype=np.int64)
        for number, (a, b) in enumerate(zip(first, last, strict=True)):
            owner[a : b + 1] = number
        repaired = self._tagged(owner, (tags[first] - 1) // len(self.parts))
        return repaired, int((repaired != tags).sum())

    def _runs(
        self, tags: NDArray[np.int64], gap: NDArray[np.bool_] | bool = False
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The first and the last piece of each span, whether or not it is well formed; spans end at gaps."""
        kind, part = (tags - 1) // len(self.parts), (tags - 1) % len(self.parts)
        opens = np.array([letter in _OPENS for letter in self.parts])[part]
        closes = np.array([letter in _CLOSES for letter in self.parts])[part]
        inside = tags > 0
        before = np.concatenate(([False], inside[:-1] & (kind[1:] == kind[:-1]) & ~closes[:-1]))[: len(tags)]
        begins = inside & (opens | ~before | gap)
        after = np.append(begins[1:] | ~inside[1:], True)[: len(tags)]
        return np.flatnonzero(begins), np.flatnonzero(inside & after)

    def _tagged(self, owner: NDArray[np.int64], kind: NDArray[np.int64]) -> NDArray[np.int64]:
        """(n,) tags from the number of the span that each piece belongs to, -1 for none, and the kinds of the spans."""
        first, last = _edges(owner)
        b, i, m, e, s = (self.parts.find(letter) for letter in "BIMES")
        part = np.where(first, b, i)
        if self.scheme == "BMES":
            part = np.where(first, np.where(last, s, b), np.where(last, e, m))
        tags = np.zeros(len(owner), dtype=np.int64)
        mine = owner >= 0
        tags[mine] = 1 + kind[owner[mine]] * len(self.parts) + part[mine]
        return tags


def _edges(owner: NDArray[np.int64]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """(n,) whether a piece is the first, and whether the last, of those that belong together."""
    edge = np.concatenate(([True], owner[1:] != owner[:-1], [True]))
    return edge[: len(owner)], edge[1 : len(owner) + 1]


def _owners(where: NDArray[np.int64], pieces: Pieces) -> NDArray[np.int64]:
    """(n,) the span that has most of a piece's characters, of equal ones the first; -1: none has any."""
    lo = np.searchsorted(where[:, 1], pieces.start, "right")
    hi = np.searchsorted(where[:, 0], pieces.stop, "left")
    owner = np.where(hi > lo, lo, -1).astype(np.int64)
    for at in np.flatnonzero(hi > lo + 1):
        several = where[lo[at] : hi[at]]
        shared = np.minimum(several[:, 1], pieces.stop[at]) - np.maximum(several[:, 0], pieces.start[at])
        owner[at] = lo[at] + int(shared.argmax())
    return owner
