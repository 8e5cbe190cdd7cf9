"""`maskery corpus build` as a user meets it."""

import gzip
import json

import pytest
from tiny import write_text

from maskery.cli import main
from maskery.corpus.store import Corpus


@pytest.fixture
def text(tmp_path):
    return write_text(tmp_path / "text.txt")


def build(*arguments):
    return main(["corpus", "build", *map(str, arguments)])


def test_build_counts_and_tells(text, tmp_path, capsys):
    out = tmp_path / "corpus"
    assert build(text, "--out", out, "--vocab", 200, "--workers", 0, "--heldout", 0.1) == 0
    captured = capsys.readouterr()
    corpus = Corpus.open(out)
    shown = {line.split("  ")[1]: line.split("  ")[-1].strip() for line in captured.out.splitlines()[1:]}
    assert shown["documents"] == "40"
    assert shown["tokens"] == f"{corpus.counts['tokens']:,}"
    assert "bytes a token, disk" in shown
    assert "corpus: done in" in captured.err
    assert "uncased, trained" in captured.err
    assert f"maskery inspect bert --corpus {out}" in captured.err


def test_words_that_were_not_looked_for_are_not_counted(text, tmp_path, capsys):
    assert build(text, "--out", tmp_path / "corpus", "--vocab", 200, "--workers", 0, "--words", "none") == 0
    out = capsys.readouterr().out
    assert "not looked for (--words none)" in out
    assert "tokens a word" not in out


def test_json_goes_to_stdout_alone(text, tmp_path, capsys):
    assert build(text, "--out", tmp_path / "corpus", "--vocab", 200, "--workers", 0, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    corpus = Corpus.open(tmp_path / "corpus")
    assert found["fingerprint"] == corpus.fingerprint
    assert found["counts"] == corpus.counts
    assert found["bytes_per_token"] == pytest.approx(found["bytes"] / found["counts"]["tokens"])


def test_a_given_tokenizer(text, tmp_path, capsys):
    assert build(text, "--out", tmp_path / "one", "--vocab", 200, "--workers", 0) == 0
    assert build(text, "--out", tmp_path / "two", "--tokenizer", tmp_path / "one", "--workers", 0) == 0
    assert Corpus.open(tmp_path / "one").fingerprint == Corpus.open(tmp_path / "two").fingerprint
    assert build(text, "--out", tmp_path / "three", "--tokenizer", tmp_path / "one", "--vocab", 300) == 2
    assert "--vocab" in capsys.readouterr().err


def test_what_was_replaced_is_told(tmp_path, capsys):
    broken = tmp_path / "broken.txt"
    broken.write_bytes(b"The cat sees \xff the dog.\n\nThe dog sees the cat.\n" * 20)
    assert build(broken, "--out", tmp_path / "corpus", "--vocab", 200, "--workers", 0) == 2
    err = capsys.readouterr().err
    assert "broken.txt:1" in err
    assert "--errors replace" in err
    assert build(broken, "--out", tmp_path / "corpus", "--vocab", 200, "--workers", 0, "--errors", "replace") == 0
    assert "20 places that are no UTF-8 were replaced" in capsys.readouterr().err


def test_bad_input_is_exit_2_with_a_repair(text, tmp_path, capsys):
    out = tmp_path / "corpus"
    empty, archive = tmp_path / "empty.txt", tmp_path / "half.txt.gz"
    empty.write_text("\n\n")
    archive.write_bytes(gzip.compress(text.read_bytes())[:-20])
    cases = (
        ([tmp_path / "no.txt", "--out", out], "no.txt"),
        ([tmp_path, "--out", out, "--format", "parquet"], str(tmp_path)),
        ([empty, "--out", out], "empty.txt"),
        ([archive, "--out", out], "half.txt.gz"),
        ([text, "--out", out, "--kind", "bqe"], "choices: bpe"),
        ([text, "--out", out, "--words", "som"], "choices:"),
        ([text, "--out", out, "--heldout", 1.5], "--heldout"),
        ([text, "--out", out, "--errors", "skip"], "choices: replace, strict"),
        ([text, "--out", out, "--tokenizer", tmp_path / "no"], "tokenizer"),
        ([text, "--out", out, "--vocab", 3], "--vocab"),
    )
    for arguments, told in cases:
        assert build(*arguments) == 2, arguments
        captured = capsys.readouterr()
        assert told in captured.err, captured.err
        assert "repair:" in captured.err
        assert captured.out == ""
        assert not out.exists()


def test_an_existing_folder_is_left_alone(text, tmp_path, capsys):
    out = tmp_path / "corpus"
    out.mkdir()
    (out / "mine.txt").write_text("keep")
    assert build(text, "--out", out) == 2
    assert "already there" in capsys.readouterr().err
    assert [path.name for path in out.iterdir()] == ["mine.txt"]


def test_usage(text, capsys):
    for arguments in ([], ["build"], ["build", str(text)], ["biuld"], ["build", str(text), "--oout", "x"]):
        assert main(["corpus", *arguments]) == 2
        captured = capsys.readouterr()
        assert captured.out == ""
        assert "Usage: maskery corpus" in captured.err
