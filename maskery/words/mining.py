"""A corpus in, a lexicon out: `maskery lexicon mine CORPUS --out FILE`, which `maskery corpus mark` reads.

Only the training split is looked at. The file has comments that say what was asked for, then a line an entry:
phrase, count, mutual information, entropy; or entity, count, tag.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import floor
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from maskery.errors import CorpusError, InputError, UnknownName
from maskery.files import require_new_file
from maskery.knowledge.entries import write_entries
from maskery.words.entities import TAGS, listed_entities, tagged_entities, tags_of
from maskery.words.phrases import Limits, Phrases, find_phrases
from maskery.words.texts import run_texts
from maskery.words.vocabulary import Told, Words, read_words

if TYPE_CHECKING:
    from maskery.corpus.store import Corpus

Row = tuple[str, ...]
KINDS = ("phrases", "entities")
_READING, _FINDING = 0.8, 0.2
"""Work of reading the words and of finding runs among them."""


@dataclass(frozen=True, kw_only=True)
class Asked:
    kind: Literal["phrases", "entities"] = "phrases"
    limits: Limits = field(default_factory=Limits)
    top: int | None = None
    """Entries that are written at most."""
    list_file: Path | None = None
    """Entities to look for, instead of asking the tagger."""

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise UnknownName("kind of lexicon", self.kind, KINDS)
        if self.limits.count < 1:
            raise InputError(f"--min-count {self.limits.count} is no count", repair="--min-count 20")
        if not 2 <= self.limits.words <= 16:
            raise InputError(f"--longest {self.limits.words} is not in 2 to 16, in words", repair="--longest 5")
        if self.top is not None and self.top < 1:
            raise InputError(f"--top {self.top} would write nothing", repair="--top 1000, or leave it out")
        if self.list_file is not None and self.kind != "entities":
            raise InputError("--list goes with entities: phrases are found in the text", repair="--kind entities")


@dataclass(frozen=True, kw_only=True)
class Mined:
    rows: list[Row]
    """The entries with their columns, as they are written."""
    left_out: dict[str, int]
    """Why -> how many were left out."""


def mine(corpus: Corpus, out: str | Path, asked: Asked | None = None, progress: Told | None = None) -> Mined:
    """Write the lexicon of a corpus to `out`, which must not exist; nothing to write is refused."""
    asked, out = asked or Asked(), Path(out)
    require_new_file(out)
    if asked.list_file is not None:
        found = _of_list(corpus, asked, asked.list_file, progress)
    else:
        words = read_words(corpus, min_count=1, progress=_part(progress, 0, _READING))
        tell = _part(progress, _READING, _FINDING)
        found = (_phrases if asked.kind == "phrases" else _entities)(corpus, words, asked, tell)
    rows = found.rows[: asked.top]
    left_out = {**found.left_out, "top": len(found.rows) - len(rows)}
    write_entries(out, _notes(corpus, asked), rows)
    return Mined(rows=rows, left_out={why: many for why, many in left_out.items() if many})


def _phrases(corpus: Corpus, words: Words, asked: Asked, progress: Told) -> Mined:
    found = find_phrases(words, asked.limits, progress)
    if not len(found.count):
        raise _no_phrase(corpus, asked.limits, found)
    texts = run_texts(corpus, found.place, found.length)
    columns = zip(found.count.tolist(), found.pmi.tolist(), found.entropy.tolist(), strict=True)
    rows = [(f"{count}", f"{pmi:.2f}", f"{entropy:.2f}") for count, pmi, entropy in columns]
    return _once(texts, rows, found.left_out)


def _entities(corpus: Corpus, words: Words, asked: Asked, progress: Told) -> Mined:
    found = tagged_entities(words, min_count=asked.limits.count, longest=asked.limits.words, progress=progress)
    if not len(found.count):
        raise _no_name(corpus, words, asked.limits.count)
    texts = run_texts(corpus, found.place, found.length)
    rows = [(f"{count}", TAGS[tag]) for count, tag in zip(found.count.tolist(), found.tag.tolist(), strict=True)]
    once = _once(texts, rows, {})
    once.rows.sort(key=lambda row: -int(row[1]))  # those counted together may have come up
    return once


def _no_name(corpus: Corpus, words: Words, least: int) -> CorpusError:
    most = int(words.counts[tags_of(words.words) > 0].max(initial=0))
    if not most:
        cause = "no word is a name to the tagger, which knows Chinese"
        return CorpusError(cause, where=corpus.path, repair="give your own names: --list FILE")
    least_and_most = f"stands {least:,} times or more: the most frequent stands {most:,} times"
    cause = f"no name that the tagger finds (it knows Chinese) {least_and_most}"
    return CorpusError(cause, where=corpus.path, repair=f"--min-count {most}, or your own names: --list FILE")


def _of_list(corpus: Corpus, asked: Asked, file: Path, progress: Told | None) -> Mined:
    found = listed_entities(corpus, file, min_count=asked.limits.count, progress=progress)
    listed = found.lexicon
    if not found.entities:
        many = f"the most frequent stands {found.most:,} times" if found.most else "none is in the text at all"
        raise InputError(
            f"no entry stands {asked.limits.count} times or more: {many}",
            where=file,
            repair=f"--min-count {found.most}" if found.most else "give a list in the language of the corpus",
        )
    rows = [(text, f"{count}", *([tag] if tag else [])) for text, count, tag in found.entities]
    left_out = {
        "repeated": listed.repeated,
        "unknown": listed.unknown,
        "too_long": listed.too_long,
        "rare": listed.distinct - len(rows),
    }
    return Mined(rows=rows, left_out=left_out)


def _once(texts: Sequence[str], columns: Sequence[Row], left_out: dict[str, int]) -> Mined:
    """Runs that are cut in words otherwise but read the same are one entry; it has the columns of the first."""
    total: dict[str, int] = {}
    kept: dict[str, Row] = {}
    for text, row in zip(texts, columns, strict=True):
        if text:
            total[text] = total.get(text, 0) + int(row[0])
            kept.setdefault(text, row[1:])
    rows = [(text, f"{total[text]}", *row) for text, row in kept.items()]
    unwritten = sum(not text for text in texts)
    return Mined(rows=rows, left_out={**left_out, "alike": len(texts) - unwritten - len(rows), "unwritten": unwritten})


def _no_phrase(corpus: Corpus, limits: Limits, found: Phrases) -> CorpusError:
    """Which limit is to be lowered, and to what."""
    if found.left_out["entropy"]:
        low = floor(10 * found.best_entropy) / 10
        cause, repair = f"an entropy of {limits.entropy:g}: the freest has {low:.1f}", f"--min-entropy {low:.1f}"
    elif found.left_out["pmi"]:
        low = floor(10 * found.best_pmi) / 10
        cause, repair = f"a mutual information of {limits.pmi:g}: the closest has {low:.1f}", f"--min-pmi {low:.1f}"
    else:
        cause = f"{limits.count} occurrences and ends that are no function words, numbers or signs"
        repair = f"--min-count {max(1, limits.count // 4)}, or a corpus of more text"
    return CorpusError(f"no run of words has {cause}", where=corpus.path, repair=repair)


def _notes(corpus: Corpus, asked: Asked) -> list[str]:
    """What the file says of itself."""
    limits = asked.limits
    source = f"of the corpus {corpus.path.name}, {corpus.fingerprint[:12]}"
    if asked.kind == "phrases":
        asks = f"pmi at least {limits.pmi:g}, entropy at least {limits.entropy:g}, best pmi x entropy first"
        return [
            f"phrases {source}: 2 to {limits.words} words, at least {limits.count} times, {asks}",
            "phrase\tcount\tpmi\tentropy",
        ]
    how = "by the tagger" if asked.list_file is None else f"of the list {asked.list_file.name}"
    return [f"entities {source}: {how}, at least {limits.count} times, most frequent first", "entity\tcount\ttag"]


def _part(progress: Told | None, begin: float, work: float) -> Told:
    """Progress of one part of the work as progress of the whole."""

    def tell(done: float, total: float) -> None:
        if progress is not None:
            progress(begin + work * done / max(1e-9, total), 1.0)

    return tell
