"""A crash at every effect on the file system while a corpus is built: there is a whole corpus, or none."""

import pytest
from crash import contents, crashes_of
from small_run import text_of, word_tokenizer

from maskery import files
from maskery.cli import main
from maskery.corpus import builder
from maskery.corpus.store import Corpus
from maskery.errors import CorpusError


@pytest.fixture
def start(tmp_path, monkeypatch):
    """Text that makes several chunks, so that files are appended to."""
    monkeypatch.setattr(builder, "_CHUNK", 500)
    (tmp_path / "start").mkdir()
    (tmp_path / "start/text.txt").write_text(text_of(12), encoding="utf-8")
    return tmp_path / "start"


def build(place):
    return Corpus.build(
        place / "text.txt", place / "corpus", tokenizer=word_tokenizer(), heldout=0.1, workers=0, words="none"
    )


def test_a_corpus_is_there_whole_or_not_at_all(start, tmp_path):
    effects, crashes = crashes_of(build, start, tmp_path)
    assert len(effects) >= 60
    assert len(crashes) >= 40
    assert {crash.way for crash in crashes} >= {"killed", "torn", "power"}
    written = {effect.split()[1] for effect in effects if effect.startswith("write")}
    assert written >= {"tokens.bin", "flags.bin", "sentences.bin", "documents.bin", "heldout.bin"}
    whole = contents(tmp_path / "under-way/corpus")
    there = []
    for crash in crashes:
        corpus = crash.left / "corpus"
        there.append(corpus.exists())
        if corpus.exists():
            Corpus.open(corpus).verify()
            assert contents(corpus) == whole
        else:
            with pytest.raises(CorpusError, match="no such folder"):
                Corpus.open(corpus)
    assert there == sorted(there)
    assert set(there) == {False, True}


def test_building_again_cleans_up_and_ends_in_the_same_bytes(start, tmp_path):
    """A sample of the points."""
    _, crashes = crashes_of(build, start, tmp_path)
    whole = contents(tmp_path / "under-way/corpus", hidden=True)
    tried = [crash for crash in crashes if not (crash.left / "corpus").exists()][::8]
    assert len(tried) >= 5
    for crash in tried:
        build(crash.left)
        # The manifest holds the path of the text, which differs.
        made = contents(crash.left / "corpus", hidden=True)
        assert [each for each in made if each[0] != "manifest.json"] == [
            each for each in whole if each[0] != "manifest.json"
        ]
        assert sorted(path.name for path in crash.left.iterdir()) == ["corpus", "text.txt"]


def test_leftovers_of_a_build_that_was_killed_are_told(start, capsys):
    """The number in the name is that of a process that is gone; one that still works is left alone."""
    gone, alive, other = (
        start / ".partial-999999999-corpus",
        start / ".partial-1-corpus",
        start / ".partial-999999999-b",
    )
    for folder in (gone, alive, other):
        folder.mkdir()
        (folder / "tokens.bin").write_bytes(b"half")
    command = ["corpus", "build", str(start / "text.txt"), "--out", str(start / "corpus"), "--vocab", "200"]
    assert main(command) == 0
    assert "removed what an interrupted write left behind: .partial-999999999-corpus" in capsys.readouterr().err
    assert not gone.exists()
    assert alive.exists()
    assert other.exists()
    assert files.is_leftover(alive)
