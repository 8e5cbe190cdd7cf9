"""Text files to a corpus folder: `maskery corpus build FILES... --out DIR`.

The text is walked over first to see that all of it can be read and which documents are copies (`survey`). Then lines
are read in order, cut into chunks at any line, encoded by workers and written in order. The result is the same, byte
for byte, for any number of workers and any size of chunk.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from maskery import arguments
from maskery.arguments import checked
from maskery.corpus.encode import Pairs
from maskery.corpus.given import documents
from maskery.corpus.lines import Errors, Tally, check_errors
from maskery.corpus.reader import lines
from maskery.corpus.sources import Progress, Source
from maskery.corpus.survey import Survey, survey
from maskery.corpus.workers import encode_all
from maskery.corpus.writer import DATA, DICTIONARY, FORMAT, StoreWriter, fingerprint
from maskery.errors import ExistsError, InputError, TextError, UnknownName
from maskery.files import MANIFEST, describe, new_folder, require_writable_around, sealed, write_json, write_text
from maskery.text.dictionary import Dictionary
from maskery.text.tokenizer import Tokenizer
from maskery.text.training import KINDS, check_size, default_size
from maskery.text.unknown import about_unknown
from maskery.text.words import segmenter

if TYPE_CHECKING:
    from maskery.corpus.store import Corpus

_CHUNK = 1 << 17
"""Characters of one chunk: about 0.1 s of work."""
_SMALL = 2_000_000
"""Bytes below which starting processes costs more than it saves."""
_SURVEY, _TRAIN, _ENCODE = 0.05, 1.0, 1.0
"""Work of the walks over the text, for the progress."""
LEARNT_FROM = 100_000_000
"""Characters that a vocabulary is learnt from at most: more change it little, and trainers hold all words in memory."""
_STRETCH = 100_000
"""Characters of a stretch of text that is learnt from, or passed over, as a whole."""
_ONE_DOCUMENT = 1_000_000
"""Characters from which on a text of a single document is likely one whose documents nothing tells apart."""
DUPLICATES = ("drop", "keep")
_OTHER_FRAME = (
    "the tokenizer writes a pair as {theirs}; training reads pairs as {cls} a {sep} b {sep}, segments 0 and 1. "
    "Give pairs in the second form to a model trained on them"
)


@dataclass(frozen=True)
class _Text:
    """What is read, and how: enough to walk over it again."""

    sources: list[Source]
    errors: Errors
    found: Survey

    def lines(self, tally: Tally) -> Iterator[str]:
        return lines(self.sources, errors=self.errors, tally=tally, skip=self.found.skip)

    @property
    def pairs(self) -> bool:
        """Whether documents are pairs, a line each."""
        return bool(self.sources[0].target)


@dataclass(frozen=True)
class _Chunk:
    text: str
    """Lines of documents; an empty line parts two documents."""
    continues: bool
    """Its first line belongs to the last document of the chunk before."""
    done: int


@checked
def build(
    files: Iterable[str | Path | Mapping[str, Any]] | str | Path,
    out: str | Path,
    *,
    format: str | None = None,
    field: str = "text",
    pairs: tuple[str, str] | None = None,
    tokenizer: str | Path | Tokenizer = "train",
    target_tokenizer: str | Path | Tokenizer | None = None,
    kind: str = "wordpiece",
    vocab: int | None = None,
    lowercase: bool | None = None,
    words: str = "auto",
    dictionary: str | Path | Sequence[str | Path] | None = None,
    duplicates: str = "drop",
    heldout: float = 0.01,
    workers: int | None = None,
    errors: str = "strict",
    progress: Progress | None = None,
    say: Callable[[str], None] | None = None,
) -> Corpus:
    """Build a corpus folder at `out` and open it: maskery.Corpus.build(frame, "my-corpus", field="body").

    files: files, folders, or "-" for stdin, of a format by their names or by `format` (text, jsonl, csv, tsv, parquet);
        or documents: a DataFrame, a `datasets.Dataset`, dicts, or an iterator or column of texts, `iter(texts)`.
    field: the field or column that holds the text.
    pairs: the fields of a source and its target, for a model that writes the second when it reads the first;
        `target_tokenizer` gives targets a vocabulary of their own.
    kind, vocab, lowercase: of tokenizer="train"; vocab=None goes by the length of the text, lowercase=None by the kind.
    dictionary: a file of words that are kept together; or a list of words (strings) and files (`Path`).
    duplicates: "drop" leaves out documents that are exact copies of earlier ones, "keep" keeps them.
    workers: processes; 0 = none, None = one for each core.
    say: called with what is known of the text before the long work; it is also among the notes of the manifest.
    """
    from maskery.corpus.store import Corpus

    out = arguments.path("out", out, "the path of the folder to write")
    how = check_errors(errors)
    terms = None if dictionary is None else Dictionary.read(dictionary)
    segmenter(words, terms)
    given, theirs = _given("tokenizer", tokenizer), _given("target_tokenizer", target_tokenizer)
    _check_options(out, tokenizer, kind, vocab, heldout, workers, duplicates)
    require_writable_around(out)
    field, target = _fields(field, pairs, target_tokenizer)
    options: dict[str, Any] = {"format": format, "field": field, "duplicates": duplicates, "pairs": pairs}
    options |= {"tokenizer": "given" if given else "train", "kind": None if given else kind, "vocab": vocab}
    options |= {"words": words, "dictionary": _described(terms), "heldout": heldout, "errors": how}
    with documents(files, format, field, progress or _silent, target, out) as (sources, notes):
        total = sum(source.size for source in sources)
        walks = _Walks(progress, total, trains=(given is None) + (target_tokenizer == "train"))
        text = _Text(sources, how, survey(sources, how, walks.next(_SURVEY), drop=duplicates == "drop"))
        notes += _early(text, walks.trains, say)
        trained = partial(_train, text, kind, vocab, lowercase, walks)
        made = given or trained(_BOTH if target_tokenizer is None else _FIRST)
        theirs = trained(_SECOND) if target_tokenizer == "train" else theirs
        notes += _about_frame(made)
        count = (_cores() if total > _SMALL else 0) if workers is None else workers
        with new_folder(out) as folder:
            _fill(folder, text, made, theirs, terms, options, notes, count, walks.next(_ENCODE))
    return Corpus.open(out)


def _early(text: _Text, trains: int, say: Callable[[str], None] | None) -> list[str]:
    """What is known of the text before the long work."""
    found = [*_about_documents(text), *(_about_learning(text) if trains else [])]
    for note in found:
        if say is not None:
            say(note)
    return found


def _about_documents(text: _Text) -> list[str]:
    """A text without an empty line is one document, and learning from pairs and holding out need several."""
    found = text.found
    if len(found.hashes) > 1 or found.characters < _ONE_DOCUMENT or text.pairs:
        return []
    name, size = text.sources[0].name, f"{found.characters:,} characters"
    if any(source.format != "text" for source in text.sources):
        return [f"{name}: the text is one document of {size}"]
    return [
        f"{name}: the text is one document of {size}: there is no empty line, and an empty line ends a document. "
        f"If each line is a document: {_with_empty_lines(text.sources[0])} > NEW"
    ]


def _with_empty_lines(source: Source) -> str:
    plain = source.packing == "none"
    return f"sed G {source.name}" if plain else f"{source.packing} -dc {source.name} | sed G"


def _about_learning(text: _Text) -> list[str]:
    part = _part(text.found.characters)
    if part == 1:
        return []
    much = text.found.characters
    return [f"the vocabulary is learnt from one part in {part} of the text's {much:,} characters, spread over it"]


def _part(characters: int) -> int:
    return -(-characters // LEARNT_FROM)


def _about_frame(made: Tokenizer) -> list[str]:
    """What is said of a tokenizer that frames text otherwise than rows are framed."""
    if made.frames_as_rows:
        return []
    return [_OTHER_FRAME.format(theirs=" ".join(made.shown(made.encode("a", "b")[0])), **made.names)]


def _fields(field: str, pairs: tuple[str, str] | None, target_tokenizer: object) -> tuple[str, str]:
    """The fields of the text, or of a source and its target."""
    if pairs is None:
        if target_tokenizer is not None:
            raise InputError("a tokenizer for targets, but no pairs", repair="--pairs SOURCE,TARGET names the columns")
        return field, ""
    if field != "text":
        raise InputError("--field and --pairs both say where the text is", repair="leave out --field")
    if len(pairs) != 2 or not all(pairs):
        raise InputError(f"--pairs {','.join(pairs)}: two columns are needed", repair="--pairs SOURCE,TARGET")
    return pairs


def _given(name: str, tokenizer: str | Path | Tokenizer | None) -> Tokenizer | None:
    if tokenizer is None or isinstance(tokenizer, Tokenizer):
        return tokenizer
    path = arguments.path(name, tokenizer, "a Tokenizer, its path, or train")
    return None if tokenizer == "train" else Tokenizer.load(path)


def _check_options(
    out: Path,
    tokenizer: object,
    kind: str,
    vocab: int | None,
    heldout: float,
    workers: int | None,
    duplicates: str,
) -> None:
    if out.exists():
        remove = f", or remove it: rm -r {out}" if (out / MANIFEST).is_file() else ""
        raise ExistsError("is already there", where=out, repair=f"give another --out{remove}")
    if not 0 <= heldout < 1:
        raise InputError(f"the held-out share is {heldout}", repair="--heldout takes a number from 0 to below 1")
    if workers is not None and workers < 0:
        raise InputError(f"{workers} workers", repair="--workers takes 0 or more")
    arguments.processes("workers", workers or 0)
    if duplicates not in DUPLICATES:
        raise UnknownName("way with duplicates", duplicates, DUPLICATES)
    if tokenizer == "train":
        KINDS.check(kind)
        if vocab is not None:
            check_size(kind, vocab)
    elif vocab is not None:
        raise InputError("the size of a given tokenizer is fixed", repair="leave out --vocab, or use --tokenizer train")
    elif kind != "wordpiece":
        raise InputError("the kind of a given tokenizer is fixed", repair="leave out --kind, or use --tokenizer train")


def _fill(
    folder: Path,
    text: _Text,
    tokenizer: Tokenizer,
    target: Tokenizer | None,
    dictionary: Dictionary | None,
    options: dict[str, Any],
    notes: list[str],
    workers: int,
    told: Progress,
) -> None:
    """Write every file of the corpus, the manifest last."""
    tally, total = Tally(), sum(source.size for source in text.sources)
    writer = StoreWriter(folder, max(tokenizer.vocabulary, target.vocabulary if target else 0))
    pairs = Pairs(target) if text.pairs else None
    for chunk, piece in encode_all(_chunks(text, tally), tokenizer, options["words"], workers, dictionary, pairs):
        writer.add(piece, continues=chunk.continues)
        told(chunk.done, total)
    if tally.characters != text.found.characters:
        raise InputError("the text changed while it was read", repair="build again when nothing writes to the files")
    notes = [*notes, *writer.finish(text.found.hashes, options["heldout"])]
    notes += filter(None, [about_unknown(writer.strange, training=True)])
    told(total, total)
    if not writer.counts["tokens"]:
        raise TextError("the text gives no token", file=text.sources[0].name, repair="give files with text")
    tokenizer.target = target
    written = [*DATA, *tokenizer.save(folder)]
    if dictionary is not None:
        write_text(folder / DICTIONARY, dictionary.text)
        written.append(DICTIONARY)
    described = describe(folder, written)
    manifest = {
        "maskery": "corpus",
        "format": FORMAT,
        "fingerprint": fingerprint(described, tokenizer.fingerprint + (target.fingerprint if target else "")),
        "vocabulary": tokenizer.vocabulary,
        "specials": asdict(tokenizer.specials),
        "tokenizer": {"fingerprint": tokenizer.fingerprint, "note": tokenizer.note},
        "target": None if target is None else _described_target(target),
        "counts": _counts(writer, tally, text.found),
        "notes": notes,
        "options": options,
        "sources": [{"file": source.name, "bytes": source.size} for source in text.sources],
        "files": described,
    }
    write_json(folder / MANIFEST, sealed(manifest))


def _described_target(target: Tokenizer) -> dict[str, Any]:
    return {
        "vocabulary": target.vocabulary,
        "specials": asdict(target.specials),
        "tokenizer": {"fingerprint": target.fingerprint, "note": target.note},
    }


def _described(dictionary: Dictionary | None) -> dict[str, Any] | None:
    if dictionary is None:
        return None
    return {"words": len(dictionary), "repeated": dictionary.repeated, "fingerprint": dictionary.fingerprint}


def _counts(writer: StoreWriter, tally: Tally, found: Survey) -> dict[str, int]:
    counts = {**writer.counts, "lines": tally.lines, "characters": tally.characters}
    counts["empty_documents"] += tally.empty_records
    counts |= {"duplicate_documents": found.duplicates, "replaced": tally.replaced, "cut_lines": tally.cut_lines}
    return counts | {"folded_records": tally.folded_records, "empty_files": tally.empty_files}


def _chunks(text: _Text, tally: Tally) -> Iterator[_Chunk]:
    """The text of all files in chunks of whole lines."""
    held: list[str] = []
    size = 0
    begun = continues = False
    for line in text.lines(tally):
        if not line:
            begun = False
            continue
        if size >= _CHUNK and not (text.pairs and begun):
            yield _Chunk("\n".join(held), continues, tally.bytes_done)
            held, size, continues = [], 0, begun
        if not begun and (held or continues):
            held.append("")
        begun = True
        held.append(line)
        size += len(line) + 1
    if held:
        yield _Chunk("\n".join(held), continues, tally.bytes_done)


class _Lines:
    """The lines of a text, to be walked more than once; the end of the first walk is told by `learning`."""

    def __init__(self, text: _Text, told: Progress, learning: Callable[[], None], wanted: Sequence[int]) -> None:
        """`wanted` are the places in a document, 0 or 1, of the lines that are walked over in a text of pairs."""
        self._text, self._told, self._learning, self._wanted = text, told, learning, wanted
        self._walked = False

    def __iter__(self) -> Iterator[str]:
        tally, place, pairs = Tally(), 0, self._text.pairs
        part, read = _part(self._text.found.characters), 0
        for count, line in enumerate(self._text.lines(tally)):
            if line and (not pairs or place in self._wanted) and read // _STRETCH % part == 0:
                yield line
            read += len(line)
            place = place + 1 if line else 0
            if count % 1000 == 0 and not self._walked:
                self._told(tally.bytes_done, None)
        self._walked = True
        self._learning()


_BOTH, _FIRST, _SECOND = (0, 1), (0,), (1,)


def _train(
    text: _Text, kind: str, vocab: int | None, lowercase: bool | None, walks: _Walks, wanted: Sequence[int]
) -> Tokenizer:
    size = default_size(kind, text.found.characters) if vocab is None else vocab
    made = KINDS.get(kind)(_Lines(text, walks.next(_TRAIN), walks.unknown, wanted), size, lowercase)
    if vocab is None:
        made.note += f"; at most {size} pieces, for a text of {text.found.characters} characters"
    return made


class _Walks:
    """Progress of one walk over the text after another, as one number of bytes that never runs back."""

    def __init__(self, progress: Progress | None, total: int, *, trains: int) -> None:
        """`trains`: how many vocabularies are learnt."""
        self._progress, self._total, self.trains = progress, total, trains
        self._work = _SURVEY + _ENCODE + _TRAIN * trains
        self._before = self._best = 0.0

    def next(self, work: float) -> Progress:
        before, part = self._before, work / self._work
        self._before += part

        def tell(done: int, _: int | None) -> None:
            self._best = max(self._best, before * self._total + part * done)
            if self._progress is not None:
                self._progress(min(round(self._best), self._total), self._total)

        return tell

    def unknown(self) -> None:
        """Work has begun of which no part can be told: there is no total until the next walk."""
        if self._progress is not None:
            self._progress(round(self._best), None)


def _silent(done: int, total: int | None) -> None:
    pass


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
