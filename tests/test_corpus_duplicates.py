"""Exact copies of documents are left out once and for all: from the vocabulary, the tokens and the held-out part."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from vocabularies import mixed_tokenizer

from maskery.corpus import builder
from maskery.corpus import survey as module
from maskery.corpus.reader import lines
from maskery.corpus.sources import gathered
from maskery.corpus.store import DATA, Corpus
from maskery.corpus.survey import survey
from maskery.errors import InputError, UnknownName

TOKENIZER = mixed_tokenizer()


def surveyed(path, drop=True):
    with gathered(path) as (sources, _):
        return survey(sources, "strict", lambda done, total: None, drop=drop)


def contents(folder):
    return {name: (folder / name).read_bytes() for name in DATA}


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    documents=st.lists(st.lists(st.sampled_from("abc"), min_size=1, max_size=3), min_size=1, max_size=12),
    block=st.integers(0, 4),
)
def test_the_first_of_equal_documents_is_kept(tmp_path, monkeypatch, documents, block):
    path = tmp_path / "text.txt"
    path.write_text("\n\n".join("\n".join(each) for each in documents), encoding="utf-8")
    with monkeypatch.context() as patch:
        patch.setattr(module, "_BLOCK", block)
        found, kept = surveyed(path), surveyed(path, drop=False)
    first = [documents.index(each) == place for place, each in enumerate(documents)]
    assert [not mark for mark in found.skip] == first
    assert found.duplicates == first.count(False)
    assert found.characters == sum(len(each) for each, new in zip(documents, first, strict=True) if new)
    assert not any(kept.skip)
    assert np.array_equal(kept.hashes[np.array(first)], found.hashes)
    assert len(set(found.hashes.tolist())) == len(found.hashes)
    with gathered(path) as (sources, _):
        wanted = [line for each, new in zip(documents, first, strict=True) if new for line in [*each, ""]]
        assert list(lines(sources, skip=found.skip)) == wanted


def test_line_breaks_are_part_of_a_document(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("a b\n\na\nb\n\na b\r\n\nab\n", encoding="utf-8")
    assert list(surveyed(path).skip) == [0, 0, 1, 0]


@pytest.fixture
def sources(tmp_path):
    """Copies within a file, across files and across formats; one copy is longer than a chunk."""
    texts = ["the dog", "我们去北京。", "the dog\nis here", "hello " * 40]
    (tmp_path / "a.txt").write_text("\n\n".join([*texts, "the dog"]), encoding="utf-8")
    records = [{"text": text} for text in (texts[3], texts[1], "third one")]
    (tmp_path / "b.jsonl").write_text("\n".join(map(json.dumps, records)), encoding="utf-8")
    return [tmp_path / "a.txt", tmp_path / "b.jsonl"]


@pytest.mark.parametrize("workers", [0, 2])
def test_the_corpus_is_that_of_the_text_without_copies(tmp_path, sources, monkeypatch, workers):
    clean = tmp_path / "clean.txt"
    clean.write_text(
        "the dog\n\n我们去北京。\n\nthe dog\nis here\n\n" + "hello " * 40 + "\n\nthird one\n", encoding="utf-8"
    )
    wanted = Corpus.build(clean, tmp_path / "wanted", tokenizer=TOKENIZER, heldout=0.3, workers=0)
    monkeypatch.setattr(builder, "_CHUNK", 30)
    found = Corpus.build(sources, tmp_path / "found", tokenizer=TOKENIZER, heldout=0.3, workers=workers)
    assert contents(found.path) == contents(wanted.path)
    assert found.fingerprint == wanted.fingerprint
    assert found.counts == wanted.counts | {"duplicate_documents": 3}
    assert found.counts["documents"] == 5


def test_copies_do_not_count_for_the_vocabulary(tmp_path, sources):
    once = Corpus.build(sources, tmp_path / "once")
    again = Corpus.build([*sources, *sources], tmp_path / "again")
    assert again.fingerprint == once.fingerprint
    assert again.manifest["tokenizer"] == once.manifest["tokenizer"]


def test_copies_can_be_kept(tmp_path, sources):
    kept = Corpus.build(sources, tmp_path / "kept", tokenizer=TOKENIZER, heldout=0.3, duplicates="keep")
    assert kept.counts["documents"] == 8
    assert kept.counts["duplicate_documents"] == 0
    with pytest.raises(UnknownName):
        Corpus.build(sources, tmp_path / "other", tokenizer=TOKENIZER, duplicates="ask")


def test_text_that_changes_while_it_is_read_is_refused(tmp_path, sources):
    def change(done, total):
        sources[0].write_text("another text", encoding="utf-8")

    with pytest.raises(InputError, match="changed while it was read"):
        Corpus.build(sources, tmp_path / "out", tokenizer=TOKENIZER, progress=change)
    assert not (tmp_path / "out").exists()
