"""Files of tags: CoNLL (a token and its tag on a line), sentences of tokens and tags, and texts with spans.

EU B-ORG                                                    CoNLL; a blank line ends a sentence
EU rejects<TAB>B-ORG O                                      a sentence on each line
{"tokens": ["EU", "rejects"], "tags": ["B-ORG", "O"]}       the same in JSON
{"text": "EU rejects", "label": {"ORG": {"EU": [[0, 1]]}}}  CLUENER: both ends of a span belong to it
{"text": "EU rejects", "entities": [[0, 2, "ORG"]]}         or objects with start and end; the end is after the span
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from maskery.corpus.lines import Errors, Tally, raw_lines
from maskery.corpus.sources import Source
from maskery.errors import TextError, Unfit
from maskery.tasks.examples import Example, Examples
from maskery.tasks.read import spans
from maskery.tasks.read.columns import HOW_TO_SAY, column_of
from maskery.tasks.read.names import plain
from maskery.tasks.read.sources import TAG
from maskery.tasks.read.table import ABSENT, Row, Table
from maskery.tasks.read.tags import UnknownTag, is_unspaced, joined, parted, scheme_of, spans_of
from maskery.tasks.read.values import counted
from maskery.tasks.settings import ColumnsConfig

_SCHEMES = "tags are O, B-KIND, I-KIND (BIO), or B-, M-, E-, S- (BMES), or B-, I-, E-, S- (BIOES)"
_TOKENS = ("tokens", "words", "text", "text_a", "sentence", "chars")
_TAGS = ("tags", "ner_tags", "labels", "label", "ner", "entities", "spans", "annotations")


@dataclass(frozen=True)
class _Sentence:
    number: int
    line: int
    tokens: list[str]
    tags: list[str] | None
    stacked: bool = False
    """Each token has a line of its own."""
    by: tuple[str, ...] = ()


def of_lines(source: Source, split: str, columns: ColumnsConfig, labelled: bool | None, errors: Errors) -> Examples:
    """CoNLL: the token is the first column, the tag the last one, or what --text and --label say."""
    found, notes = _Tokens(source, columns, labelled, errors), []
    sentences = list(found.sentences())
    if not sentences:
        raise TextError("there is no sentence in the file", file=source.name, repair="put examples in it")
    if found.width > 2:
        notes.append(f"of {found.width} columns the tag is column {found.tag + 1}")
    if found.documents:
        notes.append(f"{counted(found.documents, '-DOCSTART- lines')} passed over")
    return _examples(source, sentences, split, notes)


@dataclass
class _Tokens:
    source: Source
    columns: ColumnsConfig
    labelled: bool | None
    errors: Errors
    width: int = 0
    token: int = 0
    tag: int = 0
    documents: int = 0
    held: list[tuple[str, str]] = field(default_factory=list)

    def sentences(self) -> Iterator[_Sentence]:
        number = first = 0
        for line, text in raw_lines(self.source, self.errors, Tally()):
            if text.startswith("-DOCSTART-"):
                self.documents += 1
            elif text.strip(" \t"):
                first = first if self.held else line
                self.held.append(self._cells(line, text))
            elif self.held:
                yield self._sentence(number, first)
                number += 1
        if self.held:
            yield self._sentence(number, first)

    def _sentence(self, number: int, line: int) -> _Sentence:
        tokens, tags = [token for token, _ in self.held], [tag for _, tag in self.held]
        self.held = []
        return _Sentence(number, line, tokens, tags if self.width > 1 and self.labelled is not False else None, True)

    def _cells(self, line: int, text: str) -> tuple[str, str]:
        """A space of its own may be a token: it then stands before the space that parts it from its tag."""
        cells = text.split("\t") if "\t" in text else re.split(" +", text.rstrip(" "))
        if not self.width:
            self._decide(len(cells), line)
        if len(cells) != self.width:
            cause = f"the line has {counted(len(cells), 'columns')}, the first has {self.width}"
            fix = "a token and its tag on each line, a blank line between sentences"
            raise TextError(cause, file=self.source.name, line=line, repair=fix)
        return cells[self.token] or " ", cells[self.tag].strip()

    def _decide(self, width: int, line: int) -> None:
        if width < 2 and self.labelled is True:
            fix = "a token and its tag on each line, with a space or a tab between them"
            raise TextError("the line has a token but no tag", file=self.source.name, line=line, repair=fix)
        self.width, self.tag = width, width - 1
        for name in (*self.columns.text, self.columns.label):
            if name and not (name.isdecimal() and 1 <= int(name) <= width):
                cause, fix = f"there is no column {name!r}", f"--text 1 --label {width}: columns are counted from 1"
                raise TextError(cause, file=self.source.name, line=line, repair=fix)
        self.token = int(self.columns.text[0]) - 1 if self.columns.text else 0
        self.tag = int(self.columns.label) - 1 if self.columns.label else self.tag


def of_table(table: Table, split: str, columns: ColumnsConfig, labelled: bool | None) -> Examples:
    """A sentence, or a text with its spans, in each row."""
    text = _column(table, columns.text[0] if columns.text else "", _TOKENS, "text")
    label = None
    if labelled is not False:
        label = _column(table, columns.label, _TAGS, "label", besides=text, required=labelled is True)
    if text is None:
        cause = f"which column is the text? There are {', '.join(table.names)}"
        raise table.wrong(cause, f"--text A --label B; {HOW_TO_SAY}")
    named = [f"text = {table.called(text)}", *([f"tags = {table.called(label)}"] if label is not None else [])]
    notes = [*table.notes, ", ".join(named)]
    first = next((cell for cell in (table.column(label) if label is not None else []) if cell), None)
    marks = isinstance(first, dict) or (isinstance(first, list) and isinstance(first[0], list | dict))
    unmarked = label is not None or labelled is not True  # text that nobody has tagged is read as it stands
    if marks or (isinstance(table.rows[0].cells[text], str) and first is None and unmarked):
        return _with_spans(table, split, text, label, notes)
    sentences = [_row_sentence(table, row, text, label, labelled) for row in table.rows]
    return _examples(table.source, sentences, split, notes)


def _column(
    table: Table, asked: str, names: Iterable[str], what: str, besides: int | None = None, required: bool = False
) -> int | None:
    if asked:
        return column_of(table, asked, f"--{what}")
    there = {plain(name): at for at, name in enumerate(table.names)} if table.header else {}
    found = [there[name] for name in names if name in there and there[name] != besides]
    if found:
        return found[0]
    rest = [at for at in range(len(table.names)) if at != besides]
    tags = [at for at in rest if _are_tags(table.column(at))]
    if what == "text":
        left = [at for at in rest if at not in tags]
        return left[0] if len(left) == 1 else None
    if required and len(tags) != 1:
        cause = f"which column has the tags? There are {', '.join(table.names)}; {_SCHEMES}"
        raise table.wrong(cause, f"--text A --label B; {HOW_TO_SAY}")
    return tags[0] if len(tags) == 1 else None


def _are_tags(cells: Sequence[Any]) -> bool:
    some = [cell for cell in cells[:200] if isinstance(cell, str)]
    fit = sum(all(TAG.fullmatch(part) for part in cell.split(" ")) for cell in some)
    return bool(some) and fit > 0.5 * len(some)


def _row_sentence(table: Table, row: Row, text: int, label: int | None, labelled: bool | None) -> _Sentence:
    tokens = _parts(table, row, text)
    cell = row.cells[label] if label is not None else None
    if cell is None or cell is ABSENT:
        if labelled is True:
            raise table.wrong("there are no tags", "give the sentence its tags, or leave it out", row)
        return _Sentence(row.number, row.line, tokens, None, by=table.groups_of(row))
    tags = _parts(table, row, label or 0)
    if len(tokens) != len(tags):
        cause = f"there are {len(tokens)} tokens and {len(tags)} tags"
        raise table.wrong(cause, "one tag for each token, with one space between two", row)
    return _Sentence(row.number, row.line, tokens, tags, by=table.groups_of(row))


def _parts(table: Table, row: Row, at: int) -> list[str]:
    cell = row.cells[at]
    if isinstance(cell, str):
        return [part for part in cell.split(" ") if part]
    if isinstance(cell, list) and all(isinstance(part, str) for part in cell):
        return list(cell)
    cause = f"{table.called(at)} holds {str(cell)[:40]}, and not words or their tags"
    raise table.wrong(cause, f"texts with spaces, or lists of texts; {_SCHEMES}", row)


def _examples(source: Source, sentences: Sequence[_Sentence], split: str, notes: list[str]) -> Examples:
    unspaced = is_unspaced([sentence.tokens for sentence in sentences])
    counts: Counter[str] = Counter()
    prefixes: set[str] = set()
    items = []
    for sentence in sentences:
        text, words = joined(sentence.tokens, unspaced)
        found = None
        if sentence.tags is not None:
            prefixes |= _prefixes(source, sentence)
            found = spans_of(sentence.tags, words, counts)
        guid = f"{split}-{sentence.number}"
        place: dict[str, Any] = {"file": source.name, "line": sentence.line, "by": sentence.by}
        items.append(Example(guid=guid, texts=(text,), spans=found, words=words, **place))
    notes.append(f"tokens are joined {'without spaces, being Chinese or Japanese' if unspaced else 'by spaces'}")
    if prefixes:
        notes.append(f"the tags are {scheme_of(prefixes)}")
    if counts["unopened"]:
        notes.append(f"{counted(counts['unopened'], 'spans that no B- opens')}: read as if one did")
    if counts["unclosed"]:
        notes.append(f"{counted(counts['unclosed'], 'spans that no E- closes')}: read as ending with the last tag")
    return Examples(task="tag", fields=("text",), items=tuple(items), notes=(*notes, *spans.told(items)))


def _prefixes(source: Source, sentence: _Sentence) -> set[str]:
    found = set()
    for place, tag in enumerate(sentence.tags or ()):
        try:
            found.add(parted(tag)[0])
        except UnknownTag:
            line = sentence.line + place * sentence.stacked
            cause = f"the tag {tag!r} is of no scheme"
            raise TextError(cause, file=source.name, line=line or None, repair=_SCHEMES) from None
    return found


def _with_spans(table: Table, split: str, text: int, label: int | None, notes: list[str]) -> Examples:
    counts: Counter[str] = Counter()
    items = []
    for row in table.rows:
        written, cell = row.cells[text], None if label is None else row.cells[label]
        if not isinstance(written, str):
            raise table.wrong(f"{table.called(text)} holds {str(written)[:40]}, and not text", "--text NAME", row)
        try:
            found = None if cell is None or cell is ABSENT else spans.of_marks(written, cell, counts)
        except Unfit as error:
            raise table.wrong(error.cause, error.repair, row) from None
        guid, file = f"{split}-{row.number}", table.source.name
        by = table.groups_of(row)
        items.append(Example(guid=guid, texts=(written,), spans=found, by=by, file=file, line=row.line))
    notes += [counted(count, what) for what, count in counts.items()]
    return Examples(task="tag", fields=("text",), items=tuple(items), notes=(*notes, *spans.told(items)))
