"""`Corpus.build` of documents in Python: the corpus is that of a file with the same documents, byte for byte."""

from __future__ import annotations

import json
from pathlib import Path

import datasets
import numpy as np
import pandas as pd
import polars as pl
import pytest

import maskery
from maskery.errors import MaskeryError

DOCUMENTS = [f"The cat number {number} sleeps.\nIt purrs {number * 7} times.\n\nThe end." for number in range(60)]
DOCUMENTS += ["", DOCUMENTS[3], "语言模型从上下文里学习。\u2028It reads on.\r\nAnd on."]
HOW = {"vocab": 300, "heldout": 0.1}


def write_lines(path, field="text"):
    path.write_text("".join(json.dumps({field: text}) + "\n" for text in DOCUMENTS), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("given")
    maskery.Corpus.build(write_lines(folder / "documents.jsonl"), folder / "of-file", **HOW)
    return folder


FORMS = {
    "generator": lambda: (text for text in DOCUMENTS),
    "iterator": lambda: iter(DOCUMENTS),
    "series": lambda: pd.Series(DOCUMENTS),
    "array": lambda: np.array(DOCUMENTS, dtype=object),
    "column of a dataset": lambda: datasets.Dataset.from_dict({"text": DOCUMENTS})["text"],
    "dicts": lambda: [{"text": text, "id": number} for number, text in enumerate(DOCUMENTS)],
    "generator of dicts": lambda: ({"text": text} for text in DOCUMENTS),
    "frame": lambda: pd.DataFrame({"id": range(len(DOCUMENTS)), "text": DOCUMENTS}),
    "polars": lambda: pl.DataFrame({"id": range(len(DOCUMENTS)), "text": DOCUMENTS}),
    "dataset": lambda: datasets.Dataset.from_dict({"text": DOCUMENTS, "title": DOCUMENTS}),
    "iterable dataset": lambda: datasets.Dataset.from_dict({"text": DOCUMENTS}).to_iterable_dataset(),
}


@pytest.mark.parametrize("form", FORMS)
def test_documents_give_the_corpus_of_their_file(place, tmp_path, form):
    found = maskery.Corpus.build(FORMS[form](), tmp_path / "deeper" / "corpus", **HOW)
    expected = maskery.Corpus.open(place / "of-file")
    assert found.fingerprint == expected.fingerprint
    assert found.counts == expected.counts
    assert found.counts["documents"] == 61, "the empty one and the copy are left out"
    assert found.manifest["files"] == expected.manifest["files"], "the checksums of all"
    assert [each.name for each in (tmp_path / "deeper").iterdir()] == ["corpus"], "nothing is left beside it"


def test_the_only_column_with_texts_is_found_and_noted(place, tmp_path):
    frame = pd.DataFrame({"id": range(len(DOCUMENTS)), "body": DOCUMENTS, "score": 0.5})
    found = maskery.Corpus.build(frame, tmp_path / "corpus", **HOW)
    assert found.fingerprint == maskery.Corpus.open(place / "of-file").fingerprint
    assert "text = 'body' (the only column with texts)" in found.manifest["notes"]


def test_a_field_names_the_column(place, tmp_path):
    frame = pd.DataFrame({"title": "a title", "body": DOCUMENTS})
    found = maskery.Corpus.build(frame, tmp_path / "corpus", field="body", **HOW)
    assert found.fingerprint == maskery.Corpus.open(place / "of-file").fingerprint


def test_pairs_are_two_columns(tmp_path):
    rows = [{"de": f"die Katze {number}", "en": f"the cat {number}"} for number in range(40)]
    (tmp_path / "pairs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    how = {"vocab": 300, "pairs": ("de", "en")}
    expected = maskery.Corpus.build(tmp_path / "pairs.jsonl", tmp_path / "of-file", **how)
    for name, given in {"frame": pd.DataFrame(rows), "rows": iter(rows)}.items():
        assert maskery.Corpus.build(given, tmp_path / name, **how).fingerprint == expected.fingerprint


def test_paths_are_files_however_they_come(place, tmp_path):
    file = place / "documents.jsonl"
    expected = maskery.Corpus.open(place / "of-file").fingerprint
    given = {"str": str(file), "path": file, "list": [str(file)], "iterator": iter([file]), "names": iter([str(file)])}
    for name, each in given.items():
        assert maskery.Corpus.build(each, tmp_path / name, **HOW).fingerprint == expected, name


def test_a_missing_text_is_a_document_without_text(tmp_path):
    found = maskery.Corpus.build(pd.DataFrame({"text": ["a cat", None, "a dog"]}), tmp_path / "c", **HOW)
    assert found.counts["empty_documents"] == 1


def test_halves_of_characters_are_replaced_when_asked(tmp_path):
    found = maskery.Corpus.build(iter(["a cat\ud800", "a dog"]), tmp_path / "c", errors="replace", **HOW)
    assert found.counts["replaced"] == 1


def test_a_generator_that_fails_leaves_nothing(tmp_path):
    def texts():
        yield "a text"
        raise RuntimeError("the source broke")

    with pytest.raises(RuntimeError, match="the source broke"):
        maskery.Corpus.build(texts(), tmp_path / "corpus")
    assert not list(tmp_path.iterdir())


def test_what_a_killed_build_left_is_removed(tmp_path):
    left = tmp_path / ".partial-4194305-corpus-rows"
    left.mkdir()
    maskery.Corpus.build(iter(DOCUMENTS), tmp_path / "corpus", **HOW)
    assert not left.exists()


WRONG = {
    "texts in a list": (lambda: ["One line of text."], "files[0] is 'One line of text.' (str)", "iter(texts)"),
    "two columns": (
        lambda: pd.DataFrame({"a": ["x"], "b": ["y"]}), "which column of files is the text?", 'field="a" or field="b"',
    ),
    "no texts": (lambda: pd.DataFrame({"a": [1]}), "files has no column with texts; there are 'a'", "field="),
    "empty frame": (lambda: pd.DataFrame({"text": []}), "files is empty", "at least one"),
    "a row without the column": (
        lambda: [{"text": "a"}, {"body": "b"}], "files[1]: the object has no field 'text'; it has body", 'field="NAME"',
    ),
    "a number": (lambda: [{"text": "a"}, {"text": 3}], "files[1]: the field 'text' holds a number", "field="),
    "dicts and texts": (lambda: [{"text": "a"}, "b"], "files[1] is 'b' (str)", "as a dict"),
    "texts and None": (lambda: iter(["a text", None]), "files[1] is None", "a string"),
    "bytes": (lambda: iter(["a text", b"x"]), "files[1] is b'x' (bytes)", "decode"),
    "bytes in rows": (lambda: [{"text": b"x"}], "files[0]['text'] is b'x' (bytes)", "decode"),
    "half a character": (lambda: iter(["a\ud800"]), "files[0]: half a character", 'errors="replace"'),
    "tuples": (lambda: [("a", "b")], "files[0] is of type tuple", "a pandas DataFrame"),
    "a dict": (lambda: {"text": ["a"]}, "files is of type dict", "a pandas DataFrame"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_wrong_documents_are_refused_with_their_place(tmp_path, name):
    given, words, repair = WRONG[name]
    with pytest.raises(MaskeryError) as caught:
        maskery.Corpus.build(given(), tmp_path / "corpus")
    assert words in caught.value.text()
    assert repair in caught.value.repair
    assert "--" not in caught.value.text()
    assert not list(tmp_path.iterdir())


def test_a_format_belongs_to_files(tmp_path):
    with pytest.raises(MaskeryError, match="format is 'jsonl', and files holds no file"):
        maskery.Corpus.build(iter(["a text"]), tmp_path / "corpus", format="jsonl")


def test_a_name_that_is_no_file_is_still_a_name(tmp_path):
    with pytest.raises(MaskeryError, match="no such file"):
        maskery.Corpus.build([str(Path("my texts.txt"))], tmp_path / "corpus")
