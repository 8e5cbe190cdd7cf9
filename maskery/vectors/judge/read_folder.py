"""Retrieval from a folder: queries, documents, and which are relevant, each a table with ids; the form of BEIR.

    corpus.jsonl (or documents.*)    {"_id": "...", "title": "...", "text": "..."}; title and text are joined
    queries.jsonl                    {"_id": "...", "text": "..."}
    qrels/test.tsv (or relevance.*)  query-id, corpus-id, score; or four columns as TREC has them

Without a header the columns are id and text, and query, document, relevance.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from maskery.corpus.lines import Errors
from maskery.errors import TextError, Unfit
from maskery.tasks.read.names import plain
from maskery.tasks.read.sources import format_of, source_of
from maskery.tasks.read.table import ABSENT, Row, Table, load
from maskery.tasks.read.values import counted, score
from maskery.vectors.judge.examples import Searches, searches

_IDS = ("_id", "id", "qid", "pid", "docid", "did", "query_id", "corpus_id", "doc_id", "document_id")
_QUERY_IDS = ("query_id", "qid", "query")
_DOCUMENT_IDS = ("corpus_id", "doc_id", "document_id", "docid", "did", "pid", "document", "corpus")
_GRADES = ("score", "relevance", "rel", "label", "grade")
_SPLITS = ("test", "dev", "validation", "valid", "train")
_FORM = "a folder with queries.jsonl, corpus.jsonl and qrels/test.tsv"


def read_searches(folder: Path, errors: Errors = "strict") -> Searches:
    notes: list[str] = []
    queries, query_table = _texts(_file(folder, ("queries", "query")), errors, notes)
    documents, _ = _texts(_file(folder, ("corpus", "documents", "docs")), errors, notes)
    where = _relevance_file(folder, notes)
    relevance = _relevance(_table(where, errors), queries, query_table, notes)
    return searches(queries, documents, relevance, notes=notes, place=str(folder))


def _file(folder: Path, names: Sequence[str]) -> Path:
    """The one file whose name begins so."""
    found = [
        path
        for path in sorted(folder.iterdir())
        if path.is_file() and path.name.partition(".")[0].lower() in names and format_of(path) is not None
    ]
    if len(found) == 1:
        return found[0]
    if found:
        cause = f"two files could be the {names[0]}: {found[0].name} and {found[1].name}"
        raise TextError(cause, file=folder, repair="leave one in the folder")
    there = ", ".join(path.name for path in sorted(folder.iterdir())[:12]) or "nothing"
    raise TextError(f"there are no {names[0]} in the folder; it holds {there}", file=folder, repair=_FORM)


def _relevance_file(folder: Path, notes: list[str]) -> Path:
    inner = folder / "qrels"
    if not inner.is_dir():
        return _file(folder, ("relevance", "qrels"))
    names = {path.name.partition(".")[0].lower(): path for path in sorted(inner.iterdir()) if path.is_file()}
    split = next((split for split in _SPLITS if split in names), None)
    if split is None:
        raise TextError("there is no test.tsv and no dev.tsv in the folder", file=inner, repair=_FORM)
    if len(names) > 1:
        notes.append(f"qrels/{names[split].name} is read, of {', '.join(sorted(names))}")
    return names[split]


def _table(path: Path, errors: Errors) -> Table:
    return load(source_of(path, ""), "auto", (), (), errors)


def _texts(path: Path, errors: Errors, notes: list[str]) -> tuple[dict[str, str], Table]:
    """Id -> text, of a title and a text joined."""
    table = _table(path, errors)
    names = [plain(name) for name in table.names]
    at = _column(table, _IDS, 0)
    fields = [names.index(name) for name in ("title", "text") if name in names] if table.header else [1]
    if not fields or len(names) < 2 or (fields == [names.index("title")] if "title" in names else False):
        raise table.wrong("there is no column 'text'", "columns _id and text; without a header, id and text")
    found: dict[str, str] = {}
    empty = 0
    for row in table.rows:
        name = _id(table, row, at)
        if name in found:
            raise table.wrong(f"the id {name!r} is there twice", "give every text an id of its own", row)
        parts = [row.cells[each] for each in fields]
        found[name] = " ".join(part.strip() for part in parts if isinstance(part, str) and part.strip())
        empty += not found[name]
    notes += [
        f"{path.name}: {counted(len(found), 'texts')}",
        *([f"{path.name}: {empty:,} of them empty"] if empty else []),
    ]
    return found, table


def _relevance(table: Table, queries: dict[str, str], asked: Table, notes: list[str]) -> dict[str, dict[str, float]]:
    trec = not table.header and len(table.names) == 4
    query, document = _column(table, _QUERY_IDS, 0), _column(table, _DOCUMENT_IDS, 2 if trec else 1)
    grade = _column(table, _GRADES, 3 if trec else 2)
    found: dict[str, dict[str, float]] = {}
    for row in table.rows:
        name = _id(table, row, query)
        if name not in queries:
            raise table.wrong(f"there is no query {name!r} in {asked.source.path.name}", "put it there", row)
        try:
            found.setdefault(name, {})[_id(table, row, document)] = score(row.cells[grade])
        except Unfit as error:
            raise table.wrong(error.cause, "a number: 0 is not relevant", row) from None
    notes.append(
        f"{table.source.path.name}: {counted(len(table.rows), 'judgements')} of {counted(len(found), 'queries')}"
    )
    return found


def _column(table: Table, names: Sequence[str], otherwise: int) -> int:
    """By its name; without a header by its place."""
    if table.header:
        known = [plain(name) for name in table.names]
        found = next((known.index(name) for name in names if name in known), None)
        if found is not None:
            return found
        raise table.wrong(
            f"there is no column {names[0]!r}; there are {', '.join(table.names)}", f"name one {names[0]}"
        )
    if otherwise >= len(table.names):
        cause = f"the line has {counted(len(table.names), 'columns')}, at least {otherwise + 1} are wanted"
        raise table.wrong(cause, _FORM, table.rows[0])
    return otherwise


def _id(table: Table, row: Row, at: int) -> str:
    cell = row.cells[at]
    if cell is ABSENT or cell is None or isinstance(cell, list | dict) or not str(cell).strip():
        raise table.wrong(f"there is no id in {table.called(at)}", "give every row an id", row)
    return str(cell).strip()
