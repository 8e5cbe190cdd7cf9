"""Are the laws of corruption what the papers say? Chi-square tests of what was drawn, on real text.

    python -m benchmarks.masking_laws --zh CORPUS --en CORPUS [--synonyms FILE] [--rows 20000] [--seeds 0,1,2]

For each corpus and seed: the first 20,000 rows of a run at length 128, through the code that training uses. Tested are

    lengths        how many units each candidate span was drawn with (every candidate once)
    replacements   mask, random, keep, similar: one count for each draw, be it for a token, a word or a span
    random ids     where random tokens come from, in 64 parts of equal weight
    orders         the six orders of three shuffled tokens
    labels         what pairs of segments were drawn; rows without a choice are counted apart

Where the unit is a word, the words that were hidden in part are counted, too: there must be none.

The expected shares stand here, as the papers give them; they are not read from the code under test. Beside the drawn
lengths stand the kept ones, after the end of the text, other spans and the budget have shortened some, and the runs
that neighbouring spans merge into; the last number holds all that is longer. Those follow no law and are reported, not
tested. It fails (exit 1) if some p is 1e-4 or less, or a word is split.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from math import exp, factorial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import draws
from benchmarks.pretrain import RESULTS
from maskery.corpus.store import Corpus
from maskery.errors import InputError, MaskeryError
from maskery.inspection.statistics import chi_square
from maskery.recipes.recipe import Recipe, recipe

LIMIT = 1e-4
LENGTH = 128
BINS = 64
LANGUAGES = ("zh", "en")
SIMILAR = 0.8
"""The share of MacBERT's words that become similar ones."""


@dataclass(frozen=True)
class Study:
    """A law, as its paper gives it, and the recipe that follows it."""

    shares: tuple[float, ...]
    """By length from 0 on, by outcome, by label."""
    recipe: str = "bert"
    changes: dict[str, Any] = field(default_factory=dict)
    names: tuple[str, ...] = ()
    """What the shares are of, where it is not a length."""


def _shares(*weights: float) -> tuple[float, ...]:
    return tuple(weight / sum(weights) for weight in weights)


def _words(*weights: float) -> dict[str, Any]:
    return {"corruption.unit": "word", "corruption.span": {"law": "weights", "weights": list(weights)}}


_INFILL = {
    "corruption.unit": "word",
    "corruption.rate": 0.3,
    "corruption.decide": "span",
    "corruption.span": {"law": "poisson", "mean": 3.0},
    "corruption.replace": {"mask": 0.0, "random": 0.0, "keep": 0.0, "infill": 1.0},
}
_POISSON = [exp(-3) * 3**n / factorial(n) for n in range(11)]

LENGTHS = {
    "spanbert": Study(_shares(0, *(0.2 * 0.8**n for n in range(10))), "spanbert"),
    "macbert": Study(_shares(0, 0.4, 0.3, 0.2, 0.1), "macbert"),
    "albert": Study(_shares(0, 1, 1 / 2, 1 / 3), changes=_words(1.0, 0.5, 1 / 3)),
    "unilm": Study(_shares(0, 0.8, 0.1, 0.1), changes=_words(0.8, 0.1, 0.1) | {"corruption.unit": "token"}),
    "bart": Study((*_POISSON, 1 - sum(_POISSON)), changes=_INFILL),
}
REPLACEMENTS = {
    "bert": Study((0.8, 0.1, 0.1, 0.0)),
    "bert-wwm": Study((0.8, 0.1, 0.1, 0.0), "bert-wwm"),
    "bert-wwm, by word": Study((0.8, 0.1, 0.1, 0.0), "bert-wwm", {"corruption.decide": "word"}),
    "spanbert": Study((0.8, 0.1, 0.1, 0.0), "spanbert"),
    "macbert": Study((0.0, 0.1, 0.1, SIMILAR), "macbert"),
    "electra": Study((0.85, 0.0, 0.15, 0.0), changes={"corruption.replace": {"mask": 0.85, "random": 0, "keep": 0.15}}),
}
SOURCES = {name: Study((), changes={"corruption.random_from": name}) for name in ("vocabulary", "ordinary", "corpus")}
LABELS = {
    "next": Study((1 / 2, 1 / 2), names=("next", "other")),
    "order": Study((1 / 2, 1 / 2), names=("order", "swapped")),
    "three": Study((1 / 3,) * 3, names=("next", "previous", "other")),
    "distance": Study((1 / 3,) * 3, names=("adjacent", "same document", "other")),
}
SEGMENTS = {2: (1 / 2, 1 / 4, 1 / 4), 3: (1 / 3, 1 / 6, 1 / 6, *(1 / 18,) * 6)}
"""permuted: how many segments evenly, then every order evenly; by how many segments the row can have."""


@dataclass(frozen=True)
class Test:
    kind: str
    law: str
    language: str
    seed: int
    draws: int
    expected: list[float]
    counts: list[int]
    chi_square: float
    freedom: int
    p: float
    names: list[str] = field(default_factory=list)
    beside: dict[str, Any] = field(default_factory=dict)
    """What is reported and not tested."""


@dataclass(frozen=True)
class Place:
    """A corpus under a seed."""

    language: str
    corpus: Corpus
    synonyms: Path
    seed: int
    rows: int

    def sample(self, study: Study, changes: dict[str, Any] | None = None) -> draws.Sample:
        made = laid(study.recipe, {"knowledge.synonyms": str(self.synonyms), **study.changes, **(changes or {})})
        return draws.sample(made, self.corpus, self.seed, self.rows)

    def test(self, kind: str, law: str, counts: NDArray[np.int64], shares: Any, names: Any = (), **beside: Any) -> Test:
        expected, seen = [float(share) for share in shares], [int(count) for count in counts]
        if not sum(seen):
            raise InputError(f"no draw of {kind}, {law}, in {self.rows} rows", repair="give more --rows")
        found = chi_square(seen, expected)
        numbers = found.statistic, found.freedom, found.p
        return Test(kind, law, self.language, self.seed, sum(seen), expected, seen, *numbers, list(names), beside)


def laid(name: str, changes: dict[str, Any]) -> Recipe:
    """A recipe in one pass over the text with rows of 128 slots, new masks each time and no short documents."""
    steady = {"training.phases": [], "training.length": LENGTH, "rows.copies": 1, "rows.short": 0.0}
    return recipe(name, steady | changes)


def tests(place: Place) -> Iterator[Test]:
    for law, study in LENGTHS.items():
        yield of_lengths(place, law, study)
    for law, study in REPLACEMENTS.items():
        yield of_replacements(place, law, study)
    for law, study in SOURCES.items():
        yield of_source(place, law, study)
    orders = draws.shuffled_orders(place.sample(Study((), "structbert")))
    yield place.test("orders", "structbert", orders, [1 / 6] * 6, ["".join(map(str, each)) for each in draws.ORDERS])
    for law, study in LABELS.items():
        yield of_labels(place, law, study)
    yield from of_segments(place)


def of_lengths(place: Place, law: str, study: Study) -> Test:
    found = draws.lengths(place.sample(study), len(study.shares))
    mean = float(np.average(np.arange(len(study.shares)), weights=found.drawn))
    beside = {"kept": found.kept.tolist(), "merged": found.merged.tolist(), "mean": mean}
    return place.test("lengths", law, found.drawn, study.shares, **beside)


def of_replacements(place: Place, law: str, study: Study) -> Test:
    of = place.sample(study)
    found = draws.replacements(of)
    beside = {"unmatched": found.unmatched} if study.shares[-1] else {}
    if of.config.unit == "word":
        beside |= {"words": found.words, "split_words": found.split}
    return place.test("replacements", law, found.draws, study.shares, draws.OUTCOMES, **beside)


def of_source(place: Place, law: str, study: Study) -> Test:
    """Ids in parts of as equal weight as whole ids allow; an id without weight must never come."""
    corpus = place.corpus
    weight = np.zeros(corpus.vocabulary)
    weight[np.arange(corpus.vocabulary) if law == "vocabulary" else corpus.tokenizer.ordinary] = 1
    if law == "corpus":
        weight *= np.bincount(np.asarray(corpus.tokens), minlength=corpus.vocabulary)
    before = (np.cumsum(weight) - weight) / weight.sum()
    part = np.where(weight > 0, np.minimum((before * BINS).astype(np.int64), BINS - 1), BINS)
    counts = np.bincount(part[draws.random_ids(place.sample(study))], minlength=BINS + 1)
    return place.test("random ids", law, counts, np.bincount(part, weight, minlength=BINS + 1) / weight.sum())


def of_labels(place: Place, law: str, study: Study) -> Test:
    of = place.sample(study, {"rows.pair": law, "objectives.next_sentence": False})
    label = of.rows.label
    # Where a chunk is one sentence, nothing follows it: BERT takes another document, without a draw.
    forced = draws.one_sentence_rows(of) if law == "next" else np.zeros(len(label), dtype=bool)
    free = label[~forced & (label >= 0)]
    beside = {"forced": int(forced.sum()), "no_pair": int((label < 0).sum())}
    return place.test("labels", law, draws.tally(free, len(study.shares)), study.shares, study.names, **beside)


def of_segments(place: Place) -> Iterator[Test]:
    changes = {"rows.kind": "permuted_segments", "rows.pair": "permuted", "objectives.next_sentence": False}
    of = place.sample(Study(()), changes)
    # Beside [CLS] there may be three [SEP].
    possible = np.minimum(draws.sentences_of(of, LENGTH - 4), max(SEGMENTS))
    for many, shares in SEGMENTS.items():
        label = of.rows.label[possible == many]
        beside = {"forced": int((possible == 1).sum())}
        yield place.test("labels", f"permuted, up to {many}", draws.tally(label, len(shares)), shares, **beside)


def stand_in(corpus: Corpus, folder: Path) -> Path:
    """Where no file of synonyms is given: neighbours in the vocabulary. What is drawn does not depend on them."""
    pieces = [corpus.tokenizer.pieces[place] for place in corpus.tokenizer.ordinary]
    words = [piece for piece in pieces if piece.isalpha()]
    path = folder / "stand-in.txt"
    path.write_text("\n".join(map(" ".join, zip(words[::2], words[1::2], strict=False))) + "\n", encoding="utf-8")
    return path


def shown(test: Test) -> str:
    seen = " ".join(f"{count / test.draws:.4f}" for count in test.counts[: len(test.expected)])
    seen = seen if len(test.counts) <= 12 else f"{len(test.counts)} parts"
    head = f"{test.kind:13}{test.law:20}{test.language:4}{test.seed:3}{test.draws:10,}{test.p:9.2g}  {seen}"
    for name in ("kept", "merged"):
        if name in test.beside:
            counts = np.array(test.beside[name])
            head += f"\n{'':50}{name:>9}  " + " ".join(f"{share:.4f}" for share in counts / counts.sum())
    rest = {name: value for name, value in test.beside.items() if isinstance(value, int)}
    return head + "".join(f"  ({name.replace('_', ' ')} {value:,})" for name, value in rest.items())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--zh", type=Path, required=True, help="a corpus of Chinese text")
    parser.add_argument("--en", type=Path, required=True, help="a corpus of English text")
    parser.add_argument("--synonyms", type=Path, help="Chinese words of like meaning")
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--json", type=Path, default=RESULTS / "masking_laws.json")
    options = parser.parse_args()
    try:
        seeds = [int(seed) for seed in options.seeds.split(",")]
    except ValueError:
        parser.error(f"--seeds {options.seeds}: whole numbers with commas between them, such as 0,1,2")
    try:
        found = measured(options, seeds)
    except MaskeryError as error:
        parser.error(str(error))
    worst = min(found, key=lambda test: test.p)
    split, words = (sum(test.beside.get(name, 0) for test in found) for name in ("split_words", "words"))
    print(f"{len(found)} tests, the smallest p {worst.p:.2g} ({worst.kind}, {worst.law}); the limit is {LIMIT:g}")
    print(f"{words:,} words hidden by units of words, {split:,} of them in part")
    report = {
        "rows": options.rows,
        "seeds": seeds,
        "length": LENGTH,
        "limit": LIMIT,
        "tests": [asdict(t) for t in found],
    }
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps(report, ensure_ascii=False) + "\n", encoding="utf-8")
    sys.exit(worst.p <= LIMIT or split > 0)


def measured(options: argparse.Namespace, seeds: list[int]) -> list[Test]:
    corpora = {language: Corpus.open(getattr(options, language)) for language in LANGUAGES}
    found = []
    print(f"{'kind':13}{'law':20}{'':4}{'':3}{'draws':>10}{'p':>9}  shares")
    with tempfile.TemporaryDirectory() as folder:
        for language, corpus in corpora.items():
            given = options.synonyms if language == "zh" else None
            if given is None:
                print(f"{language}: no file of synonyms; neighbours in the vocabulary stand in for them")
            synonyms = given or stand_in(corpus, Path(folder))
            for seed in seeds:
                for test in tests(Place(language, corpus, synonyms, seed, options.rows)):
                    found.append(test)
                    print(shown(test), flush=True)
    return found


if __name__ == "__main__":
    main()
