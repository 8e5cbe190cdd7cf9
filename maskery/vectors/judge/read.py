"""Files and rows to judge vectors on. They go through the reader of fine-tuning, which finds columns and tells.

sts, pairs     two texts and a score (pairs: 0 or 1)
retrieval      query, document and relevance, a row each (without relevance: every row is relevant);
               or a folder of queries, documents (corpus) and relevance (qrels), as BEIR has it
clustering     a text and a label
geometry       any of these, or texts alone
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np

from maskery.errors import UnknownName
from maskery.records import Records
from maskery.tasks.examples import Examples
from maskery.tasks.read.files import read_examples
from maskery.tasks.settings import ColumnsConfig
from maskery.vectors.judge.examples import (
    KINDS,
    LabelledTexts,
    PlainTexts,
    Searches,
    TextPairs,
    VectorExamples,
    searches_of_pairs,
)
from maskery.vectors.judge.read_folder import read_searches


def read_vector_examples(path: str | Path | Records, kind: str, columns: ColumnsConfig | None = None) -> VectorExamples:
    """The examples of a file, of rows, or of a folder for retrieval."""
    if kind not in KINDS:
        raise UnknownName("kind of judgement", kind, KINDS)
    path, columns = path if isinstance(path, Records) else Path(path), columns or ColumnsConfig()
    if kind == "retrieval" and isinstance(path, Path) and path.is_dir():
        return read_searches(path, columns.errors)
    if kind == "retrieval":
        return _searches(path, columns)
    if kind == "clustering":
        return _labelled(read_examples(path, "classify", "test", columns, labelled=True), path)
    if kind == "geometry":
        return _any(path, columns)
    found = read_examples(path, "rank", "test", columns, labelled=True)
    if kind == "pairs":
        for item in found:
            if item.label not in (0.0, 1.0):
                raise item.wrong(f"the label is {item.label:g}, not 0 or 1", "--task sts, for scores on a scale")
    return _pairs(found, path)


def _pairs(found: Examples, path: Path | Records) -> TextPairs:
    return TextPairs(
        first=tuple(item.texts[0] for item in found),
        second=tuple(item.texts[1] for item in found),
        score=np.array([item.label for item in found], dtype=np.float64),
        notes=found.notes,
        place=str(path),
    )


def _searches(path: Path | Records, columns: ColumnsConfig) -> Searches:
    found = read_examples(path, "rank", "test", columns)
    unlabelled = all(item.label is None for item in found)
    notes = [*found.notes]
    if unlabelled:
        notes.append(f"{path.name}: no relevance is given: the document of every row is relevant to its query")
    rows = []
    for item in found:
        if item.label is None and not unlabelled:
            raise item.wrong("the row has no relevance, and others have", "give it one: 0 is not relevant")
        rows.append((item.texts[0], item.texts[1], 1.0 if unlabelled else float(str(item.label))))
    many, distinct = len(rows), len({row[:2] for row in rows})
    if distinct < many:
        notes.append(
            f"{path.name}: {many - distinct:,} rows repeat a query and a document: the highest relevance counts"
        )
    return searches_of_pairs(rows, notes, str(path))


def _labelled(found: Examples, path: Path | Records) -> LabelledTexts:
    notes = list(found.notes)
    if len(found.fields) > 1:
        notes.append(f"{path.name}: {', '.join(found.fields)} are joined by a space to one text")
    labels = tuple(str(item.label) for item in found)
    once = sum(many == 1 for many in Counter(labels).values())
    if once:
        notes.append(f"{path.name}: {once:,} labels have one text only")
    texts = tuple(" ".join(filter(None, item.texts)) for item in found)
    return LabelledTexts(texts=texts, labels=labels, notes=tuple(notes), place=str(path))


def read_shown(path: str | Path, columns: ColumnsConfig | None = None) -> LabelledTexts | PlainTexts:
    """Texts to be drawn: those of a column with the labels beside them, or all texts of a file, every one once."""
    path, columns = Path(path), columns or ColumnsConfig()
    if columns.label:
        return _labelled(read_examples(path, "classify", "test", columns, labelled=True), path)
    found = read_examples(path, None, "test", columns)
    if len(found.fields) == 1 and all(isinstance(item.label, str) for item in found):
        return _labelled(replace(found, notes=_without_task(found.notes)), path)
    every = [text for item in found for text in item.texts]
    texts, notes = tuple(dict.fromkeys(text for text in every if text.strip())), _without_task(found.notes)
    if len(texts) < len(every):
        notes = (*notes, f"{path.name}: {len(every):,} texts, {len(texts):,} of them distinct and not empty")
    return PlainTexts(texts=texts, notes=notes, place=str(path))


def _without_task(notes: tuple[str, ...]) -> tuple[str, ...]:
    """What is told of a task that nobody asked for is left out."""
    return tuple(note for note in notes if ": task = " not in note)


def _any(path: Path | Records, columns: ColumnsConfig) -> TextPairs | PlainTexts:
    found = read_examples(path, None, "test", columns)
    if len(found.fields) == 2 and all(isinstance(item.label, float | str) for item in found):
        scored = read_examples(path, "rank", "test", columns)
        if all(isinstance(item.label, float) for item in scored):
            return _pairs(scored, path)
    texts = tuple(dict.fromkeys(text for item in found for text in item.texts))
    return PlainTexts(texts=texts, notes=_without_task(found.notes), place=str(path))
