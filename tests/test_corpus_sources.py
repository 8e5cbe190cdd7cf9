"""What a user may name: files of every ending, folders, stdin."""

from __future__ import annotations

import io
from types import SimpleNamespace

import pytest

from maskery.corpus import sources as module
from maskery.corpus.sources import by_name, gathered
from maskery.errors import InputError, TextError, UnknownName


@pytest.fixture
def piped(monkeypatch, tmp_path):
    """Bytes on stdin; the temporary folder is one that the test can look into."""
    monkeypatch.setattr(module.tempfile, "tempdir", str(tmp_path))

    def pipe(data, terminal=False):
        monkeypatch.setattr(
            module.sys, "stdin", SimpleNamespace(buffer=io.BytesIO(data), isatty=lambda: terminal), raising=True
        )

    return pipe


def gather(*files, **options):
    with gathered(files, **options) as (sources, notes):
        return sources, notes


@pytest.mark.parametrize(
    ("name", "format", "packing"),
    [
        ("a.txt", "text", "none"),
        ("a.TXT", "text", "none"),
        ("a.gz", "text", "gzip"),
        ("a.v1.gz", None, "gzip"),
        ("a.jsonl.zst", "jsonl", "zstd"),
        ("a.ndjson", "jsonl", "none"),
        ("a.csv.gz", "csv", "gzip"),
        ("a.tsv", "tsv", "none"),
        ("a.parquet", "parquet", "none"),
        ("wiki_00", None, "none"),
        ("a.png", None, "none"),
    ],
)
def test_names_tell_format_and_compression(tmp_path, name, format, packing):
    assert by_name(tmp_path / name) == (format, packing)


def test_format_overrides_names_but_not_compression(tmp_path):
    for name in ("a.json", "b.txt.gz"):
        (tmp_path / name).write_bytes(b"x")
    found, notes = gather(tmp_path / "a.json", tmp_path / "b.txt.gz", format="jsonl", field="body")
    assert [(each.format, each.packing, each.field) for each in found] == [
        ("jsonl", "none", "body"),
        ("jsonl", "gzip", "body"),
    ]
    assert notes == []
    found, notes = gather(tmp_path / "a.json")
    assert found[0].format == "text"
    assert "a.json is read as plain text" in notes[0]
    with pytest.raises(UnknownName, match="jsonline"):
        gather(tmp_path / "a.json", format="jsonline")


def test_folders_are_walked_in_order(tmp_path):
    names = [
        "b.txt",
        "a/z.csv",
        "a/b/c.jsonl.gz",
        ".hidden.txt",
        ".git/x.txt",
        "a.png",
        "README",
        "c.txt",
        "a/empty.txt",
    ]
    for name in names:
        path = tmp_path / "data" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"" if "empty" in name else b"x")
    (tmp_path / "data" / "again").symlink_to(tmp_path / "data")
    found, notes = gather(tmp_path / "data")
    assert [str(each.path.relative_to(tmp_path / "data")) for each in found] == [
        "a/b/c.jsonl.gz",
        "a/z.csv",
        "b.txt",
        "c.txt",
    ]
    assert notes == [
        f"{tmp_path}/data: passed over, as the name tells no format: README, a.png, again",
        f"{tmp_path}/data: passed over, as they are empty: a/empty.txt",
    ]
    found, notes = gather(tmp_path / "data", format="text")
    assert {each.path.name for each in found} == {"README", "a.png", "b.txt", "c.txt", "c.jsonl.gz", "z.csv"}


def test_a_model_or_a_corpus_in_a_folder_is_no_text(tmp_path):
    (tmp_path / "a.txt").write_text("the dog", encoding="utf-8")
    (tmp_path / "run").mkdir()
    for name in ("tokenizer.json", "vocab.txt", "metrics.jsonl"):
        (tmp_path / "run" / name).write_text("{}", encoding="utf-8")
    sources, notes = gather(tmp_path)
    assert [source.path.name for source in sources] == ["a.txt"]
    assert notes == [f"{tmp_path}: passed over, as they are corpora or models: run"]


def test_a_folder_without_text_is_refused(tmp_path):
    for number in range(5):
        (tmp_path / f"{number}.png").write_bytes(b"x")
    with pytest.raises(
        TextError, match=r"no text in the folder; it holds 0[.]png, 1[.]png, 2[.]png and 2 more"
    ) as caught:
        gather(tmp_path)
    assert "--format text" in caught.value.repair
    (tmp_path / "none").mkdir()
    with pytest.raises(TextError) as caught:
        gather(tmp_path / "none")
    assert caught.value.cause == "there is no text in the folder"
    for name in ("manifest.json", "tokenizer.json", "vocab.txt"):
        (tmp_path / "none" / name).write_text("x")
    with pytest.raises(TextError, match="of a corpus or a model"):
        gather(tmp_path / "none")


def test_files_are_checked_before_work(tmp_path):
    good, empty = tmp_path / "good.txt", tmp_path / "empty.txt"
    good.write_bytes(b"text")
    empty.write_bytes(b"")
    assert gather(str(good))[0][0].path == good
    for path, cause in ((tmp_path / "none", "no such file"), (empty, "is empty"), ("/dev/null", "no ordinary file")):
        with pytest.raises(TextError, match=cause) as caught:
            gather(good, path)
        assert caught.value.repair
    with pytest.raises(TextError, match="no text file"):
        gather()


def test_fields_have_to_make_sense(tmp_path):
    text, table, packed = tmp_path / "a.txt", tmp_path / "a.csv", tmp_path / "a.parquet.gz"
    for path in (text, table, packed):
        path.write_bytes(b"x")
    for files, field, cause in (
        ([text], "body", "plain text has no fields"),
        ([table], "0", "counted from 1"),
        ([table], "", "is empty"),
        ([packed], "text", "compressed inside"),
    ):
        with pytest.raises(InputError, match=cause) as caught:
            gather(*files, field=field)
        assert caught.value.repair
    assert [each.field for each in gather(text, table, field="body")[0]] == ["body", "body"]


def test_stdin_is_kept_as_long_as_it_is_read(piped, tmp_path):
    piped(b"one\n" * 1000)
    told = []
    with gathered("-", "jsonl", told=lambda *where: told.append(where)) as (sources, _):
        assert (sources[0].name, sources[0].format) == ("stdin", "jsonl")
        assert sources[0].path.read_bytes() == b"one\n" * 1000
        assert len(list(tmp_path.iterdir())) == 1
    assert told == [(4000, None)]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("data", "terminal", "files", "cause"),
    [(b"", False, ["-"], "is empty"), (b"x", True, ["-"], "nothing is piped in"), (b"x", False, ["-", "-"], "twice")],
)
def test_stdin_that_cannot_be_used(piped, tmp_path, data, terminal, files, cause):
    piped(data, terminal)
    with pytest.raises(TextError, match=cause) as caught:
        gather(*files)
    assert caught.value.repair
    assert list(tmp_path.iterdir()) == []
