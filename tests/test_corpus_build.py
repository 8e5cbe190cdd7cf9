from __future__ import annotations

import gzip
import os
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer as RustTokenizer
from tokenizers.processors import RobertaProcessing
from vocabularies import TEXT, mixed_tokenizer

from maskery import files
from maskery.corpus import builder, workers
from maskery.corpus.store import DATA, Corpus, Flag
from maskery.corpus.writer import hold_out
from maskery.errors import CorpusError, ExistsError, InputError, TextError, UnknownName
from maskery.text.tokenizer import Tokenizer

TOKENIZER = mixed_tokenizer()


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("\n\n".join(f"{TEXT}\nnumber {n}." for n in range(20)), encoding="utf-8")
    return path


def contents(folder):
    return {name: (folder / name).read_bytes() for name in DATA}


def test_counts_and_files(tmp_path, source):
    corpus = Corpus.build(source, tmp_path / "out", tokenizer=TOKENIZER, heldout=0.2, duplicates="keep")
    counts = corpus.counts
    assert counts["documents"] == 60
    assert counts["lines"] == 20 * 6
    assert counts["tokens"] == corpus.tokens.size == corpus.flags.size == corpus.sentence_start[-1]
    assert counts["sentences"] == np.count_nonzero(corpus.flags & Flag.SENTENCE) == corpus.document_start[-1]
    assert counts["documents"] == np.count_nonzero(corpus.flags & Flag.DOCUMENT)
    assert counts["words"] == np.count_nonzero(corpus.flags & Flag.WORD)
    assert counts["unknown"] == np.count_nonzero(corpus.tokens == corpus.specials.unk) > 0
    assert (corpus.flags[corpus.sentence_start[:-1]] & Flag.SENTENCE).all()
    assert (corpus.flags[corpus.sentence_start[corpus.document_start[:-1]]] & Flag.DOCUMENT).all()
    assert corpus.tokens.dtype == np.uint16
    assert {path.name for path in corpus.path.iterdir()} == {*corpus.manifest["files"], files.MANIFEST}
    corpus.verify()


def test_tokens_are_the_text(tmp_path, source):
    corpus = Corpus.build(source, tmp_path / "out", tokenizer=TOKENIZER, duplicates="keep")
    lines = [line for line in source.read_text(encoding="utf-8").split("\n") if line]
    expected = np.concatenate([ids for ids, _ in TOKENIZER.encode_raw(lines)])
    assert np.array_equal(corpus.tokens, expected)


def test_any_number_of_workers_and_any_chunk_gives_the_same_bytes(tmp_path, source, monkeypatch):
    plain = Corpus.build(source, tmp_path / "plain", tokenizer=TOKENIZER, workers=0)
    monkeypatch.setattr(builder, "_CHUNK", 200)
    for count in (1, 2, 3):
        other = Corpus.build(source, tmp_path / f"workers-{count}", tokenizer=TOKENIZER, workers=count)
        assert contents(other.path) == contents(plain.path)
        assert other.manifest == plain.manifest


@settings(deadline=None, max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    lines=st.lists(
        st.sampled_from(["", " ", "我们去北京。好！", "The dog. It ran", "\u200b", "x"]), min_size=1, max_size=25
    ),
    size=st.integers(1, 40),
)
def test_chunks_of_any_size_keep_documents(tmp_path_factory, monkeypatch, lines, size):
    folder = tmp_path_factory.mktemp("chunks")
    source = folder / "text.txt"
    source.write_text("\n".join([*lines, "", "last"]), encoding="utf-8")
    expected = [len(part) for part in _documents(lines)]
    with monkeypatch.context() as patch:
        whole = Corpus.build(source, folder / "whole", tokenizer=TOKENIZER, duplicates="keep")
        patch.setattr(builder, "_CHUNK", size)
        cut = Corpus.build(source, folder / "cut", tokenizer=TOKENIZER, duplicates="keep")
    assert contents(cut.path) == contents(whole.path)
    assert cut.manifest == whole.manifest
    visible = [count for count in expected if count]
    assert cut.counts["documents"] == len(visible) + 1
    assert cut.counts["empty_documents"] == len(expected) - len(visible)


def _documents(lines):
    """For each document its lines that give tokens."""
    found, run = [], []
    for line in [*lines, ""]:
        if line.strip():
            run.append(line)
        elif run:
            found.append([item for item in run if item != "\u200b"])
            run = []
    return found


def test_fingerprint_is_of_the_content(tmp_path, source):
    moved = tmp_path / "elsewhere.txt.gz"
    moved.write_bytes(gzip.compress(source.read_bytes()))
    one = Corpus.build(source, tmp_path / "one", tokenizer=TOKENIZER)
    same = Corpus.build(moved, tmp_path / "same", tokenizer=TOKENIZER)
    words = Corpus.build(source, tmp_path / "words", tokenizer=TOKENIZER, words="none")
    assert one.fingerprint == same.fingerprint
    assert one.fingerprint != words.fingerprint
    assert words.counts["words"] == words.counts["tokens"]


def test_several_files_are_several_documents(tmp_path):
    for name in "ab":
        (tmp_path / name).write_text("the dog", encoding="utf-8")
    corpus = Corpus.build([tmp_path / "a", tmp_path / "b"], tmp_path / "out", tokenizer=TOKENIZER, duplicates="keep")
    assert corpus.counts["documents"] == 2
    assert not corpus.heldout.any()
    assert "only one document" in corpus.manifest["notes"][0]


def test_training_the_tokenizer(tmp_path, source):
    done = []
    one = Corpus.build(source, tmp_path / "one", vocab=330, progress=lambda *where: done.append(where))
    two = Corpus.build(source, tmp_path / "two", vocab=330, workers=1)
    assert one.vocabulary <= 330
    assert one.fingerprint == two.fingerprint
    assert one.tokenizer.fingerprint == one.manifest["tokenizer"]["fingerprint"]
    assert [part for part, _ in done] == sorted(part for part, _ in done)
    assert any(whole is None for _, whole in done), "no part of learning a vocabulary can be told"
    assert done[-1] == (source.stat().st_size,) * 2
    chosen = Corpus.build(source, tmp_path / "chosen")
    assert "at most 1000 pieces" in chosen.manifest["tokenizer"]["note"]


def test_large_vocabularies_take_four_bytes(tmp_path, source):
    pieces = [*TOKENIZER.pieces, *(f"##x{n}" for n in range(66_000))]
    corpus = Corpus.build(source, tmp_path / "out", tokenizer=Tokenizer.from_pieces(pieces))
    assert corpus.tokens.dtype == np.uint32


def test_held_out_documents_go_by_their_text():
    hashes = np.array([0, 2**62, 2**63, 2**64 - 1], dtype=np.uint64)
    assert hold_out(hashes, 0.3)[0].tolist() == [True, True, False, False]
    assert hold_out(hashes, 0.0)[0].tolist() == [False] * 4
    many = np.linspace(2**60, 2**63, 12).astype(np.uint64)[::-1]
    for share in (0.01, 0.07):  # no document, or one
        chosen, notes = hold_out(many, share)
        assert np.flatnonzero(chosen).tolist() == [10, 11], "a second segment may come from another document"
        assert "the two with the smallest hashes" in notes[0]
    assert np.count_nonzero(hold_out(many, 0.2)[0]) > 2
    assert not hold_out(many, 0.0)[0].any()
    chosen, notes = hold_out(hashes[1:], 0.01)
    assert chosen.tolist() == [True, False, False]
    assert "smallest hash" in notes[0]
    chosen, notes = hold_out(hashes[:2], 0.9)
    assert chosen.tolist() == [True, False]
    assert "every document" in notes[0]
    chosen, notes = hold_out(hashes[[1, 1]], 0.5)
    assert chosen.tolist() == [False, False]
    assert notes


def test_held_out_share(tmp_path):
    source = tmp_path / "text.txt"
    source.write_text("\n\n".join(f"the dog {n}" for n in range(2000)), encoding="utf-8")
    corpus = Corpus.build(source, tmp_path / "out", tokenizer=TOKENIZER, heldout=0.1)
    assert 150 < corpus.heldout.sum() < 250
    assert corpus.counts["heldout_documents"] == corpus.heldout.sum()
    assert np.array_equal(
        np.sort(np.concatenate([corpus.documents("train"), corpus.documents("heldout")])), np.arange(2000)
    )


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"heldout": 1.0}, InputError),
        ({"heldout": -0.1}, InputError),
        ({"workers": -1}, InputError),
        ({"words": "jieba"}, UnknownName),
        ({"errors": "ignore"}, UnknownName),
        ({"kind": "bqe"}, UnknownName),
        ({"vocab": 10}, InputError),
        ({"tokenizer": "no/such/folder"}, InputError),
        ({"tokenizer": TOKENIZER, "vocab": 300}, InputError),
    ],
)
def test_bad_options_leave_nothing(tmp_path, source, options, error):
    with pytest.raises(error) as caught:
        Corpus.build(source, tmp_path / "out", **options)
    assert caught.value.repair
    assert sorted(path.name for path in tmp_path.iterdir()) == ["text.txt"]


def test_an_existing_folder_is_not_touched(tmp_path, source):
    out = tmp_path / "out"
    out.mkdir()
    with pytest.raises(ExistsError, match="already there") as caught:
        Corpus.build(source, out, tokenizer=TOKENIZER)
    assert caught.value.exit_code == 2
    assert list(out.iterdir()) == []


@pytest.mark.parametrize("count", [0, 1])
def test_a_broken_text_leaves_nothing(tmp_path, source, monkeypatch, count):
    monkeypatch.setattr(builder, "_CHUNK", 100)
    bad = tmp_path / "bad.txt"
    bad.write_bytes(source.read_bytes() + b"\xff")
    with pytest.raises(TextError, match="is not UTF-8"):
        Corpus.build([source, bad], tmp_path / "out", tokenizer=TOKENIZER, workers=count)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.txt", "text.txt"]
    corpus = Corpus.build([source, bad], tmp_path / "out", tokenizer=TOKENIZER, errors="replace")
    assert corpus.counts["replaced"] == 1


def test_text_without_tokens_is_refused(tmp_path):
    source = tmp_path / "text.txt"
    source.write_text("\u200b\n", encoding="utf-8")
    with pytest.raises(TextError, match="no token"):
        Corpus.build(source, tmp_path / "out", tokenizer=TOKENIZER)
    assert not (tmp_path / "out").exists()


def test_a_worker_that_dies_is_an_error(tmp_path, source, monkeypatch):
    monkeypatch.setattr(workers, "_START", "import sys; sys.exit('out of memory')")
    with pytest.raises(CorpusError, match="a worker process ended with code 1: out of memory") as caught:
        Corpus.build(source, tmp_path / "out", tokenizer=TOKENIZER, workers=2)
    assert "--workers" in caught.value.repair
    assert sorted(path.name for path in tmp_path.iterdir()) == ["text.txt"]


def test_ctrl_c_leaves_nothing(tmp_path, source):
    TOKENIZER.save(tmp_path / "tokenizer")
    script = textwrap.dedent(
        """
        import signal
        import sys
        import time
        from pathlib import Path
        from maskery.corpus import builder
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
        builder._CHUNK = 50
        parent = Path(sys.argv[2]).parent
        before = len(list(parent.iterdir()))
        def told(done, total):
            if len(list(parent.iterdir())) > before:  # the folder that is being filled
                print(done, flush=True)
                time.sleep(60)
        builder.build(sys.argv[1], sys.argv[2], tokenizer=sys.argv[3], workers=1, progress=told)
        """
    )
    big = tmp_path / "big.txt"
    text = source.read_text(encoding="utf-8")
    big.write_text("\n\n".join(f"{number}\n{text}" for number in range(20)), encoding="utf-8")
    process = subprocess.Popen(
        [sys.executable, "-c", script, str(big), str(tmp_path / "out"), str(tmp_path / "tokenizer")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    process.stdout.readline()
    os.killpg(process.pid, signal.SIGINT)
    _, talk = process.communicate(timeout=30)
    assert process.returncode != 0
    assert b"KeyboardInterrupt" in talk
    time.sleep(0.1)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["big.txt", "text.txt", "tokenizer"]


def test_a_tokenizer_that_frames_pairs_otherwise_is_told(tmp_path, source):
    rust = RustTokenizer.from_str(TOKENIZER.json)
    rust.post_processor = RobertaProcessing(("[SEP]", TOKENIZER.specials.sep), ("[CLS]", TOKENIZER.specials.cls))
    notes = Corpus.build(source, tmp_path / "out", tokenizer=Tokenizer(rust)).manifest["notes"]
    assert any("[SEP] [SEP]" in note and "[CLS] a [SEP] b [SEP], segments 0 and 1" in note for note in notes)
    assert not any("pair" in n for n in Corpus.build(source, tmp_path / "ours", tokenizer=TOKENIZER).manifest["notes"])
