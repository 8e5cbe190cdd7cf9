"""Several corpora read as one. Weights are shares of rows; without weights every row is read equally often.

Tokens and flags of the parts lie end to end as if they were one array, and nothing is copied: what is asked for comes
from the part that has it. All parts must have been built with one tokenizer.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from functools import cached_property
from numbers import Real
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maskery import arguments
from maskery.arguments import checked
from maskery.corpus.store import Corpus, CorpusFacts
from maskery.corpus.weights import whole_weights
from maskery.errors import CorpusError, InputError
from maskery.text.tokenizer import Specials, Tokenizer

Part = Corpus | str | PathLike[str]
"""A corpus of a mixture, or its path."""


class Joined:
    """Arrays end to end, read by an array of places."""

    def __init__(self, parts: Sequence[NDArray[Any]]) -> None:
        self.parts = tuple(parts)
        self.start = np.concatenate(([0], np.cumsum([part.size for part in parts]))).astype(np.int64)

    @property
    def size(self) -> int:
        return int(self.start[-1])

    def __getitem__(self, places: NDArray[np.int64]) -> NDArray[Any]:
        owner = np.searchsorted(self.start, places, side="right") - 1
        found = np.empty(len(places), dtype=self.parts[0].dtype)
        for number, part in enumerate(self.parts):
            mine = owner == number
            found[mine] = part[places[mine] - self.start[number]]
        return found


class Mixture:
    """Several corpora as one. With weights they are shares of rows; without, all rows of all are read as of one corpus.

    maskery.Mixture([("wiki", 3), ("books", 1)])          # three rows of four from wiki
    maskery.Mixture([corpus, "books"])                    # corpora, or their paths
    """

    parts: tuple[Corpus, ...]
    weights: tuple[int, ...] | None
    """Rows of each part in a block of sum(weights); None: one epoch is all rows of all parts."""
    names: tuple[str, ...]
    """The end of each part's path that no other part shares."""

    def __init__(self, parts: Iterable[Part | tuple[Part, float | Fraction]]) -> None:
        given = arguments.items("parts", parts, "a list: Mixture([(corpus, 3), (another, 1)])")
        if not given:
            raise InputError("a mixture of no corpora", repair="Mixture([(corpus, 3), (another, 1)])")
        self.parts = tuple(_part(number, each) for number, each in enumerate(given))
        weights = [each[1] for each in given if isinstance(each, tuple)]
        if weights and len(weights) < len(given):
            bare = next(part for part, each in zip(self.parts, given, strict=True) if not isinstance(each, tuple))
            raise InputError(
                f"{bare.path} has no weight, others have one",
                where="--corpus",
                repair=f"give a weight to every corpus ({bare.path}=1) or to none",
            )
        _require_different(self.parts)
        _require_one_tokenizer(self.parts)
        self.names = unique_ends([part.path for part in self.parts])
        self.weights = whole_weights(weights, self.names) if weights else None

    def __repr__(self) -> str:
        return f"Mixture({self.path!r})"

    def __reduce__(self) -> tuple[Callable[..., Mixture], tuple[list[Any]]]:
        """Another process opens the folders itself."""
        if self.weights is None:
            return Mixture, (list(self.parts),)
        return Mixture, (list(zip(self.parts, self.weights, strict=True)),)

    @property
    def path(self) -> str:
        """The folders as a command line gives them: the place that an error names."""
        if self.weights is None:
            return ", ".join(str(part.path) for part in self.parts)
        return ", ".join(f"{part.path}={weight}" for part, weight in zip(self.parts, self.weights, strict=True))

    @cached_property
    def fingerprint(self) -> str:
        """Of parts, weights and order; a single part's own, because nothing else is read."""
        if len(self.parts) == 1:
            return self.parts[0].fingerprint
        said = json.dumps([[part.fingerprint for part in self.parts], self.weights])
        return hashlib.sha256(said.encode()).hexdigest()

    @property
    def vocabulary(self) -> int:
        """Pieces of the tokenizer that all parts share."""
        return self.parts[0].vocabulary

    @property
    def specials(self) -> Specials:
        """The special tokens' numbers."""
        return self.parts[0].specials

    @property
    def tokenizer(self) -> Tokenizer:
        """What made the tokens of all parts."""
        return self.parts[0].tokenizer

    @property
    def pairs(self) -> bool:
        """Whether documents are pairs, each of a source and its target."""
        return all(part.pairs for part in self.parts)

    @property
    def target_vocabulary(self) -> int:
        """Pieces of the second texts' own tokenizer; 0: they are written like the first, or there are none."""
        return self.parts[0].target_vocabulary

    @property
    def target_specials(self) -> Specials:
        """The special tokens' numbers in the second texts of pairs."""
        return self.parts[0].target_specials

    @property
    def target_tokenizer(self) -> Tokenizer:
        """What made the tokens of the second texts of pairs."""
        return self.parts[0].target_tokenizer

    @cached_property
    def tokens(self) -> Joined:
        """Token ids, the parts end to end."""
        return Joined([part.tokens for part in self.parts])

    @cached_property
    def flags(self) -> Joined:
        """A byte of flags for each token, the parts end to end."""
        return Joined([part.flags for part in self.parts])

    @cached_property
    def facts(self) -> CorpusFacts:
        """Vocabulary, special tokens and frequencies of all parts: what corruption draws random tokens by."""
        return CorpusFacts(self.vocabulary, self.specials, self._frequency, lambda: self.tokenizer.ordinary)

    @checked
    def documents(self, split: str = "train") -> NDArray[np.int64]:
        """The numbers of a split's documents, counted through all parts."""
        first = np.cumsum([0, *(part.heldout.size for part in self.parts)])
        return np.concatenate([part.documents(split) + start for part, start in zip(self.parts, first, strict=False)])

    def verify(self) -> None:
        """Read every file of every part and compare it with its checksum."""
        for part in self.parts:
            part.verify()

    @checked
    def holding(self, split: str) -> Corpus | Mixture | None:
        """The same without the parts that have nothing of the split; None if none has."""
        kept = [place for place, part in enumerate(self.parts) if len(part.documents(split))]
        if len(kept) < 2:
            return self.parts[kept[0]] if kept else None
        if self.weights is None:
            return Mixture([self.parts[place] for place in kept])
        return Mixture([(self.parts[place], self.weights[place]) for place in kept])

    def _frequency(self) -> NDArray[np.int64]:
        """Of as many tokens as the parts have, in the proportions of the weights."""
        counts = [part.facts.frequency for part in self.parts]
        if self.weights is None:
            total: NDArray[np.int64] = np.sum(counts, axis=0)
            return total
        whole, sizes = sum(self.weights), [part.tokens.size for part in self.parts]
        shares = [weight / whole * sum(sizes) / size for weight, size in zip(self.weights, sizes, strict=True)]
        mixed = np.sum([share * count for share, count in zip(shares, counts, strict=True)], axis=0)
        rounded: NDArray[np.int64] = np.rint(mixed).astype(np.int64)
        return rounded


Corpora = Corpus | Mixture
"""What can be trained on."""
AnyCorpora = Corpora | str | PathLike[str]
"""The same, or the path of a corpus folder."""
_FORM = "a Corpus, a Mixture, or the path of a corpus folder"


def corpus_of(given: AnyCorpora, name: str = "corpus") -> Corpora:
    """What a Python call was given for its argument `name`, opened."""
    if isinstance(given, list | tuple):
        raise arguments.wrong(name, given, _FORM, f"for several corpora: {name}=maskery.Mixture([...])")
    return given if isinstance(given, Mixture) else arguments.opened(name, given, Corpus, Corpus.open, _FORM)


def _part(number: int, given: Any) -> Corpus:
    """One corpus of a mixture, with or without a weight; opened."""
    name = f"parts[{number}]"
    if isinstance(given, tuple):
        if len(given) != 2 or isinstance(given[1], bool) or not isinstance(given[1], Real):
            raise arguments.wrong(name, given, "(corpus, weight), the weight a number")
        given = given[0]
    return arguments.opened(name, given, Corpus, Corpus.open, "a Corpus, or the path of a corpus folder")


def unique_ends(paths: Sequence[Path]) -> tuple[str, ...]:
    """The last folder names of the paths, as many as tell them apart."""
    whole = [path.resolve().parts for path in paths]
    for many in range(1, max(map(len, whole)) + 1):
        ends = ["/".join(parts[-many:]) for parts in whole]
        if len(set(ends)) == len(ends):
            return tuple(ends)
    return tuple(map(str, paths))


def _require_different(parts: Sequence[Corpus]) -> None:
    seen: dict[str, Path] = {}
    for part in parts:
        first = seen.get(part.fingerprint)
        if first is not None:
            same = "" if first == part.path else f", it has the same content as {first}"
            raise InputError(
                f"{part.path} is given twice{same}",
                where="--corpus",
                repair="give it once, with the sum of the weights",
            )
        seen[part.fingerprint] = part.path


def _require_one_tokenizer(parts: Sequence[Corpus]) -> None:
    first = parts[0]
    for part in parts[1:]:
        if part.tokenizer.fingerprint != first.tokenizer.fingerprint:
            raise CorpusError(
                f"{first.path} has the tokenizer {first.tokenizer.fingerprint[:12]}, "
                f"{part.path} has {part.tokenizer.fingerprint[:12]}: one run needs one tokenizer",
                where="--corpus",
                repair=f"maskery corpus build FILES... --tokenizer {first.path} --out DIR, and give that DIR "
                f"for {part.path}",
            )
        if part.target_tokenizer.fingerprint != first.target_tokenizer.fingerprint:
            raise CorpusError(
                f"the targets of {part.path} have another tokenizer than those of {first.path}",
                where="--corpus",
                repair=f"maskery corpus build FILES... --pairs SOURCE,TARGET --tokenizer {first.path} --out DIR",
            )
