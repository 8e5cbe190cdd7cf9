"""Text that cannot be used, through the real entry: exit 2, file and line and repair told, nothing left behind."""

from __future__ import annotations

import gzip
import io
import sys

import pyarrow
import pyarrow.parquet
import pytest
import zstandard

from maskery.cli.app import run

CHINESE = "这是一份中文文本，它有几个句子。\n"


def parquet(**columns):
    file = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table(columns), file)
    return file.getvalue()


CASES = {
    "one line of 50 MB": ("big.txt", b"ok\n" + b"word " * 10_000_000, [], "big.txt:2: the line has more than 32 MiB"),
    "one record of 50 MB": (
        "big.jsonl",
        b'{"text": "ok"}\n{"text": "' + b"word " * 10_000_000 + b'"}',
        [],
        "big.jsonl:2: the line has more than 32 MiB",
    ),
    "no field": ("a.jsonl", b'{"text": "a"}\n{"txt": "b"}\n', [], "a.jsonl:2: the object has no field 'text'"),
    "other field": ("a.jsonl", b'{"text": "a"}\n', ["--field", "body"], "a.jsonl:1: the object has no field 'body'"),
    "no JSON": ("a.jsonl", b'{"text": "a"}\nwords\n', [], "a.jsonl:2: the line is not JSON"),
    "no string": ("a.jsonl", b'{"text": "a"}\n{"text": 1}\n', [], "a.jsonl:2: the field 'text' holds a number"),
    "ragged": ("a.csv", b"id,text\n1,a\n2,b,c\n", [], "a.csv:3: the record has 3 fields"),
    "unclosed quote": ("a.csv", b'id,text\n1,a\n2,"b\n3,c\n', [], "a.csv:3: a quote opened"),
    "no column": ("a.tsv", b"id\ttitle\n1\ta\n", [], "a.tsv:1: the header has no column 'text'; it has id, title"),
    "column 0": ("a.csv", b"a,b\n", ["--field", "0"], "columns are counted from 1"),
    "mixed encodings": ("a.txt", CHINESE.encode() + CHINESE.encode("gbk"), [], "a.txt:2: byte 49 (0xd5) is not UTF-8"),
    "GBK": ("a.txt", CHINESE.encode("gbk"), [], "iconv -f GB18030 -t UTF-8 a.txt"),
    "GBK in csv": ("a.csv", b"id,text\n1," + CHINESE.encode("gbk"), [], "a.csv:2: byte 10 (0xd5)"),
    "UTF-16": ("a.txt", CHINESE.encode("utf-16"), [], "a.txt:1: the text is in UTF-16"),
    "UTF-16 without mark": ("a.txt", b"some text\n".decode().encode("utf-16-le"), [], "iconv -f UTF-16LE"),
    "cut zst": ("a.txt.zst", zstandard.compress(bytes(range(48, 120)) * 9)[:-3], [], "the archive ends in its middle"),
    "broken zst": ("a.jsonl.zst", b"not an archive", [], "a.jsonl.zst:1: the archive is damaged"),
    "cut gz": ("a.csv.gz", gzip.compress(b"text\na\n", mtime=0)[:-9], [], "the archive ends in its middle"),
    "no parquet": ("a.parquet", b"words", [], "a.parquet: this is no parquet file"),
    "no parquet column": ("a.parquet", parquet(id=[1], title=["a"]), [], "no column 'text'; there are id, title"),
    "numbers in parquet": ("a.parquet", parquet(text=[1, 2]), [], "the column 'text' holds int64"),
    "only nulls": ("a.parquet", parquet(text=[None, None]), [], "a.parquet: there is no text in the file"),
    "packed parquet": ("a.parquet.gz", gzip.compress(parquet(text=["a"]), mtime=0), [], "gunzip a.parquet.gz"),
    "no text": ("a.txt", b" \n\n", [], "a.txt: there is no text in the file"),
    "header alone": ("a.csv", b"id,text\n", [], "a.csv: there is no text in the file"),
    "unknown format": ("a.txt", b"a\n", ["--format", "jsonn"], "did you mean jsonl"),
    "field of text": ("a.txt", b"a\n", ["--field", "body"], "plain text has no fields"),
}


@pytest.fixture
def refused(tmp_path, monkeypatch, capsys):
    """Run `corpus build` in an empty folder and answer with what it said; it must leave what it found."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)

    def refuse(*arguments):
        before = sorted(tmp_path.rglob("*"))
        assert run(["corpus", "build", *arguments, "--out", "made/corpus", "--workers", "0"]) == 2
        captured = capsys.readouterr()
        assert captured.out == ""
        assert "repair: " in captured.err
        assert "Traceback" not in captured.err
        assert sorted(tmp_path.rglob("*")) == before
        return captured.err

    return refuse


@pytest.mark.parametrize("case", list(CASES))
def test_files(refused, tmp_path, case):
    name, data, more, told = CASES[case]
    (tmp_path / name).write_bytes(data)
    (tmp_path / "good.txt").write_text("A good text.\n")
    assert told in refused("good.txt", name, *more)


def test_folders(refused, tmp_path):
    (tmp_path / "texts/deep").mkdir(parents=True)
    assert "texts: there is no text in the folder" in refused("texts")
    (tmp_path / "texts/deep/a.png").write_bytes(b"x")
    assert "it holds deep/a.png" in refused("texts")
    (tmp_path / "texts/deep/b.txt").write_bytes(b"fine\n\xff\n")
    assert "texts/deep/b.txt:2: byte 5 (0xff) is not UTF-8" in refused("texts")


def test_stdin(refused, monkeypatch):
    def pipe(data):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))

    pipe(b"")
    assert "stdin: is empty" in refused("-")
    pipe(b"words\n")
    assert "stdin:1: the line is not JSON" in refused("-", "--format", "jsonl")
    pipe(gzip.compress(b"words\n", mtime=0))
    assert "stdin:1: this is no text but gzip" in refused("-")
    pipe(b"words\n")
    assert "-: stdin is given twice" in refused("-", "-")


def test_what_is_left_out_is_told(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.parquet").write_bytes(parquet(text=["The cat sees the dog.", None, "The dog.", "The dog.", ""]))
    (tmp_path / "b.csv").write_text('text\n"The bird\nflies."\n')
    (tmp_path / "c.txt").write_text("\n \n")
    (tmp_path / "d.pdf").write_text("x")
    assert run(["corpus", "build", ".", "--out", "../corpus", "--vocab", "200", "--workers", "0"]) == 0
    err = capsys.readouterr().err
    assert "left out, as they have no token: 2 documents" in err
    assert "exact copies of earlier ones (--keep-duplicates keeps them): 1 document\n" in err
    assert "over several lines: 1 record of tables" in err
    assert "hold no text: 1 file of folders" in err
    assert "passed over, as the name tells no format: d.pdf" in err


def test_stdin_is_read_like_a_file(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    records = b'{"text": "The cat sees the dog."}\n{"text": "The dog sees the cat."}\n'
    (tmp_path / "a.jsonl").write_bytes(records)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(records)))
    flags = ["--vocab", "200", "--workers", "0", "--json"]
    assert run(["corpus", "build", "-", "--format", "jsonl", "--out", "one", *flags]) == 0
    piped = capsys.readouterr().out
    assert run(["corpus", "build", "a.jsonl", "--out", "two", *flags]) == 0
    assert capsys.readouterr().out == piped.replace('"one"', '"two"')
