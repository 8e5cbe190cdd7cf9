"""Word vectors: kept in a folder of numbers and text, asked for neighbours and analogies. W words, D numbers a vector.

```
my-vectors/
  manifest.json          what they are, how they were made, checksums
  words.txt              one word a line, the commonest first
  counts.bin             how often each stands in the corpus, int64; all 0 where nobody knows
  vectors.safetensors    vectors (W,D) float32; for fasttext ngrams (G,D) and their numbers ngram_buckets (G,)
```
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from difflib import SequenceMatcher
from functools import cached_property
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maskery import arguments
from maskery.arguments import checked
from maskery.errors import InputError
from maskery.words.subwords import Subwords

Told = Callable[[int, int], None]
"""Work done, work in all."""
_COMPARED = 20_000
"""Words among which a near spelling is looked for."""
_ALIKE = 0.5


class WordVectors:
    """Vectors of words: neighbours, analogies; `facts` says how they were made, `notes` what was left out when read.

    vectors = maskery.WordVectors.load("my-vectors")      # a folder of ours, or a file of word2vec
    vectors.neighbours("cat", n=5), vectors.analogy("man", "king", "woman")
    """

    @checked
    def __init__(
        self,
        words: Sequence[str],
        counts: NDArray[np.int64],
        matrix: NDArray[np.float32],
        facts: dict[str, Any] | None = None,
        *,
        subwords: Subwords | None = None,
        notes: Sequence[str] = (),
    ) -> None:
        self.words = list(words)
        self.counts = arguments.array("counts", counts, "an array of whole numbers").astype(np.int64, copy=False)
        rows = arguments.array("matrix", matrix, "an array of numbers, one row a word")
        self.matrix = np.ascontiguousarray(rows, dtype=np.float32)
        self.facts = dict(facts or {})
        self.subwords = subwords
        self.notes = list(notes)
        if self.matrix.ndim != 2 or {len(self.words), len(self.counts)} != {len(self.matrix)}:
            shapes = f"{len(self.words)} words, {len(self.counts)} counts, vectors {self.matrix.shape}"
            raise InputError(
                f"words, counts and vectors (matrix) do not agree: {shapes}", repair="give one of each for a word"
            )
        bad = np.flatnonzero(~np.isfinite(self.matrix).all(axis=1))
        if bad.size:
            raise InputError(
                f"{bad.size:,} vectors hold a value that is no number (nan or inf), the first that of "
                f"{self.words[int(bad[0])]!r}",
                repair="train them anew, with a smaller --lr if they came out so",
            )

    @classmethod
    @checked
    def load(cls, path: str | Path, progress: Told | None = None) -> WordVectors:
        """A folder of ours, or a file of word2vec, text or binary."""
        from maskery.words import folder, formats

        path = arguments.path("path", path, "the path of a folder or file of word vectors")
        if path.is_file():
            return formats.read(path, progress)
        return folder.read(path)

    @checked
    def save(self, path: str | Path, *, replace: bool = False) -> Path:
        """Write the folder, whole or not at all. One that is there is an error, unless it may be replaced."""
        from maskery.words import folder

        return folder.write(self, Path(path), replace=replace)

    @checked
    def export(self, path: str | Path, *, binary: bool = False, progress: Told | None = None) -> Path:
        """Write one file of word2vec, text or binary."""
        from maskery.words import formats

        return formats.write(self, Path(path), binary=binary, progress=progress)

    def __len__(self) -> int:
        return len(self.words)

    def __contains__(self, word: str) -> bool:
        return word in self.index

    @property
    def width(self) -> int:
        """D, the numbers in a vector."""
        return int(self.matrix.shape[1])

    @cached_property
    def index(self) -> dict[str, int]:
        """Word -> its row; of equal words the first."""
        return {word: row for row, word in reversed(list(enumerate(self.words)))}

    @cached_property
    def unit(self) -> NDArray[np.float32]:
        """(W,D) vectors of length 1; one of length 0 stays so."""
        # In double precision: the square of 1e20 or of 1e-25 is no single one.
        length = np.sqrt(np.einsum("wd,wd->w", self.matrix, self.matrix, dtype=np.float64))[:, None]
        length[length == 0] = 1
        made: NDArray[np.float32] = np.divide(self.matrix, length, out=np.empty_like(self.matrix), casting="same_kind")
        return made

    @checked
    def vector(self, word: str) -> NDArray[np.float32]:
        """(D,); with n-grams (fasttext) for words that training never saw, too."""
        row = self.index.get(arguments.text("word", word))
        if row is not None:
            found: NDArray[np.float32] = self.matrix[row]
            return found
        made = self.subwords.vector(word) if self.subwords is not None and word else None
        if made is None:
            raise self._unknown(word)
        return made

    @checked
    def neighbours(self, word: str, n: int = 10) -> list[tuple[str, float]]:
        """The n words with the highest cosine, the word itself left out."""
        arguments.count("n", n, 0)
        return self._nearest(_unit(self.vector(word)), n, [word])

    @checked
    def analogy(self, a: str, b: str, c: str, n: int = 10) -> list[tuple[str, float]]:
        """`a` is to `b` as `c` is to what? Those nearest to b - a + c (unit vectors, 3CosAdd), the three left out."""
        arguments.count("n", n, 0)
        first, second, third = (_unit(self.vector(word)) for word in (a, b, c))
        return self._nearest(_unit(second - first + third), n, [a, b, c])

    def _nearest(self, target: NDArray[np.float32], n: int, without: list[str]) -> list[tuple[str, float]]:
        cosine = self.unit @ target
        cosine[[self.index[word] for word in without if word in self.index]] = -np.inf
        many = min(max(0, n), int(np.isfinite(cosine).sum()))
        best = np.argpartition(-cosine, max(0, many - 1))[:many]
        order = best[np.lexsort((best, -cosine[best]))]
        return [(self.words[row], float(cosine[row])) for row in order.tolist()]

    def _unknown(self, word: str) -> InputError:
        near = [each for each in (word.lower(), word.upper(), word.capitalize()) if each in self.index and each != word]
        signs = set(word)
        alike = (each for each in self.words if abs(len(each) - len(word)) <= 2 and signs & set(each))
        near += _closest(word, list(islice(alike, _COMPARED)))
        hint = f"did you mean {' or '.join(dict.fromkeys(near))}? " if near else ""
        least = self.facts.get("training", {}).get("min_count")
        rule = f" (they stand {least} times or more in the corpus)" if least else ""
        return InputError(f"there is no vector of {word!r}", repair=f"{hint}give one of the {len(self):,} words{rule}")


AnyVectors = WordVectors | str | PathLike[str]
"""Word vectors, or the path of their folder or file."""


def vectors_of(given: AnyVectors, name: str = "vectors") -> WordVectors:
    """What a Python call was given for its argument `name`, opened."""
    form = "WordVectors, or the path of a folder or file of word vectors"
    return arguments.opened(name, given, WordVectors, WordVectors.load, form)


def _unit(vector: NDArray[np.float32]) -> NDArray[np.float32]:
    length = float(np.linalg.norm(vector.astype(np.float64)))
    return (vector / np.float64(length)).astype(np.float32) if length else vector


def _closest(word: str, others: list[str]) -> list[str]:
    """Three that are spelt most like it; of those as near as each other the commonest, which comes first."""
    matcher = SequenceMatcher(b=word)
    near = []
    for place, other in enumerate(others):
        matcher.set_seq1(other)
        if matcher.quick_ratio() >= _ALIKE and (ratio := matcher.ratio()) >= _ALIKE:
            near.append((-ratio, place))
    return [others[place] for _, place in sorted(near)[:3]]
