"""Records: jsonl, csv, tsv, parquet. Documents come back from every format, and bad records are refused by name."""

from __future__ import annotations

import csv
import gzip
import io
import json
import sys

import pyarrow
import pyarrow.parquet
import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from maskery.corpus import lines as raw
from maskery.corpus import packing, parquet, reader, tables
from maskery.corpus.lines import Tally
from maskery.corpus.sources import FORMATS, gathered
from maskery.errors import InputError, TextError
from maskery.tasks.read.files import read_examples
from maskery.tasks.settings import ColumnsConfig
from maskery.vectors.texts import chunks, source_of

TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=30)
"""A zero character cannot stand in a text file."""
FILES = settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])


def table(rows, **options):
    file = io.StringIO(newline="")
    csv.writer(file, **options).writerows(rows)
    return file.getvalue().encode()


def as_csv(texts):
    return table([["id", "text"], *enumerate(texts)])


def as_jsonl(texts):
    return "".join(json.dumps({"id": n, "text": text}) + "\n" for n, text in enumerate(texts)).encode()


def as_parquet(texts, kind=None):
    file = io.BytesIO()
    pyarrow.parquet.write_table(
        pyarrow.table({"id": list(range(len(texts))), "text": pyarrow.array(texts, kind)}), file
    )
    return file.getvalue()


WRITERS = {
    "a.jsonl": as_jsonl,
    "a.ndjson.gz": lambda texts: gzip.compress(as_jsonl(texts), mtime=0),
    "a.jsonl.zst": lambda texts: zstandard.compress(as_jsonl(texts)),
    "a.csv": as_csv,
    "a.CSV.GZ": lambda texts: gzip.compress(as_csv(texts), mtime=0),
    "a.parquet": lambda texts: as_parquet(texts, pyarrow.string()),
}


def write(folder, name, data):
    path = folder / name
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return path


def read(path, *, field="text", format=None, **options):
    """The documents as lists of lines."""
    with gathered(path, format, field) as (sources, _):
        found = [[]]
        for line in reader.lines(sources, **options):
            if line:
                found[-1].append(line)
            else:
                found.append([])
    assert found.pop() == []
    return found


def lines_of(text):
    return [line.removesuffix("\r") for line in text.split("\n") if line and not line.isspace()]


@pytest.mark.parametrize("name", list(WRITERS))
@FILES
@given(texts=st.lists(TEXTS, min_size=1, max_size=6))
def test_documents_come_back(tmp_path, name, texts):
    path = write(tmp_path, name, WRITERS[name](texts))
    wanted = [lines_of(text) for text in texts]
    tally = Tally()
    if not any(wanted):
        with pytest.raises(TextError, match="no text in the file"):
            read(path, tally=tally)
        return
    assert read(path, tally=tally) == [lines for lines in wanted if lines]
    assert tally.empty_records == sum(not lines for lines in wanted)
    assert tally.bytes_done == path.stat().st_size


@pytest.mark.parametrize("name", ["a.txt", "a.jsonl", "a.csv", "a.tsv", "a.parquet"])
@pytest.mark.parametrize("suffix", ["", ".gz", ".zst"])
@FILES
@given(data=st.binary(max_size=150), errors=st.sampled_from(["strict", "replace"]), mend=st.booleans())
def test_any_bytes_are_read_or_refused(tmp_path, name, suffix, data, errors, mend):
    """`mend` puts the bytes where they are looked at more closely: inside an archive, after a header."""
    heads = {"a.csv": b"text,b\n", "a.tsv": b"text\tb\n", "a.jsonl": b'{"text": "', "a.parquet": b"PAR1"}
    if mend:
        data = heads.get(name, b"") + data
        data = gzip.compress(data, mtime=0) if suffix == ".gz" else data
        data = zstandard.compress(data) if suffix == ".zst" else data
    refusal, found = None, []
    try:
        found = read(write(tmp_path, name + suffix, data), errors=errors)
    except InputError as error:
        refusal = error
    if refusal is None:
        assert found
        assert all(found)
    else:
        assert refusal.repair
        assert refusal.exit_code == 2


@FILES
@given(where=st.floats(0, 1), packed=st.sampled_from(["a.jsonl.zst", "a.CSV.GZ", "a.parquet"]))
def test_a_cut_file_is_refused(tmp_path, where, packed):
    whole = WRITERS[packed](["The dog sees the cat.", "The cat sees the dog."] * 50)
    with pytest.raises(TextError):
        read(write(tmp_path, packed, whole[: int(where * (len(whole) - 1))]))


def test_json_fields(tmp_path):
    lines = [
        '{"body": "one\\r\\n\\n two", "id": 1}',
        "",
        '{"id": 2, "body": null}',
        '{"body": "\\ud83d\\ude00\\u0000"}',
    ]
    tally = Tally()
    assert read(write(tmp_path, "a.jsonl", "\n".join(lines)), field="body", tally=tally) == [["one", " two"], ["😀\0"]]
    assert tally.empty_records == 1


BAD_JSON = [
    ('{"txt": "b", "id": 2}', "no field 'text'; it has txt, id", "--field"),
    ("{}", "it has none", "--field"),
    ('{"text": 3}', "holds a number, not text", "--field"),
    ('{"text": ["a"]}', "holds a list, not text", "--field"),
    ('"text"', "the line holds text, not an object", "one object"),
    ("null", "the line holds null", "one object"),
    ('{"text": "b"', "not JSON", "one object"),
    ("plain words", "not JSON", "one object"),
    ('{"text": 1' + "0" * 5000 + "}", "JSON", "one object"),
    ("[" * 100_000, "JSON", "one object"),
    ('{"text": "\\ud800"}', "half a character", "--errors replace"),
]


@pytest.mark.parametrize(("line", "cause", "repair"), BAD_JSON, ids=range(len(BAD_JSON)))
def test_bad_json_names_its_line(tmp_path, line, cause, repair):
    path = write(tmp_path, "a.jsonl", f'{{"text": "a"}}\n\n{line}\n')
    with pytest.raises(TextError) as caught:
        read(path)
    assert (caught.value.file, caught.value.line) == (str(path), 3)
    assert cause in caught.value.cause
    assert repair in caught.value.repair


def test_half_a_character_is_replaced_and_counted(tmp_path):
    tally = Tally()
    path = write(tmp_path, "a.jsonl", '{"text": "a\\ud800b\\udc00"}')
    assert read(path, errors="replace", tally=tally) == [["a\ufffdb\ufffd"]]
    assert tally.replaced == 2


def test_a_whole_json_file_is_told_how_to_become_lines(tmp_path):
    with pytest.raises(TextError) as caught:
        read(write(tmp_path, "a.json", '[\n{"text": "a"}]'), format="jsonl")
    assert "jq -c" in caught.value.repair


def test_columns_by_name_and_by_number(tmp_path):
    path = write(tmp_path, "a.csv", '\ufeffid,body\r\n1,"one, ""two""\r\nthree"\r\n\r\n2,four\r\n')
    tally = Tally()
    assert read(path, field="body", tally=tally) == [['one, "two"', "three"], ["four"]]
    assert tally.folded_records == 1
    plain = write(tmp_path, "b.tsv", "1\tone, two\n2\tthree\n")
    assert read(plain, field="2") == [["one, two"], ["three"]]
    assert read(plain, field="1") == [["1"], ["2"]]


BAD_TABLES = [
    ("id,text\n1,a\n\n2,b,c\n", 4, "has 3 fields, the first line, the header, has 2", "text"),
    ('id,text\n1,"a\nb"\n2\n', 4, "has 1 field,", "text"),
    ("1,a\n2\n", 2, "the first record has 2", "2"),
    ("id,title\n1,a\n", 1, "no column 'text'; it has id, title", "text"),
    ("text,text\n1,a\n", 1, "more than once", "text"),
    ("1,a\n", 1, "--field 3 is asked for", "3"),
    ('id,text\n1,a\n2,"b\n3,c\n', 3, "never closed", "text"),
    ('id,text\n1,"a" b\n', 2, "goes on after its closing quote", "text"),
    ("id,text\n1,a\rb\n", 2, "carriage return", "text"),
]


BAD = [(",", *case) for case in BAD_TABLES] + [("\t", *case) for case in BAD_TABLES if '"' not in case[0]]
"""Quotes of a TSV are plain characters: none of them is wrong."""


@pytest.mark.parametrize(("separator", "data", "line", "cause", "field"), BAD, ids=range(len(BAD)))
def test_bad_tables_name_the_first_line_of_the_record(tmp_path, separator, data, line, cause, field):
    path = write(tmp_path, "a.csv" if separator == "," else "a.tsv", data.replace(",", separator))
    with pytest.raises(TextError) as caught:
        read(path, field=field)
    assert (caught.value.file, caught.value.line) == (str(path), line)
    assert cause in caught.value.cause
    assert caught.value.repair


def test_a_record_without_end_is_refused_while_it_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "LONGEST_RECORD", 1000)
    path = write(tmp_path, "a.csv", 'id,text\n1,a\n2,"b\n' + "3,c\n" * 1000)
    with pytest.raises(TextError, match="a quote in it may never be closed") as caught:
        read(path)
    assert caught.value.line == 3


def test_fields_longer_than_the_usual_limit_of_the_csv_module(tmp_path):
    text = "word " * 100_000
    assert read(write(tmp_path, "a.csv", as_csv([text]))) == [[text]]


QUOTED = ['"Yes," he said.', 'She said "no', '""doubled""', '"whole"', "it's 5'"]


def test_quotes_of_a_tsv_are_plain_characters_for_every_verb(tmp_path):
    rows = [f"{text}\t{n % 2}" for n, text in enumerate(QUOTED)]
    path = write(tmp_path, "a.tsv", "text\tlabel\n" + "\n".join(rows) + "\n")
    assert read(path) == [[text] for text in QUOTED]
    assert [record.texts[0] for record in read_examples(path, "classify", "train", ColumnsConfig()).items] == QUOTED
    with source_of(path) as source:
        assert [text for chunk in chunks(source, "strict", Tally()) for text in chunk.texts] == QUOTED


def test_a_quoted_field_with_a_tab_in_a_tsv_is_refused_with_what_to_do(tmp_path):
    with pytest.raises(TextError, match="has 3 fields") as caught:
        read(write(tmp_path, "a.tsv", 'id\ttext\n1\t"one\ttwo"\n'))
    assert "quotes are plain characters in TSV" in caught.value.repair


@pytest.mark.parametrize(
    "kind",
    [pyarrow.string(), pyarrow.large_string(), pyarrow.dictionary(pyarrow.int32(), pyarrow.string())],
    ids=["string", "large", "dictionary"],
)
def test_parquet_strings_of_every_kind(tmp_path, kind):
    tally = Tally()
    texts = [f"line {n}\nmore" if n % 3 else None for n in range(1000)]
    found = read(write(tmp_path, "a.parquet", as_parquet(texts, kind)), tally=tally)
    assert found == [text.split("\n") for text in texts if text]
    assert tally.empty_records == texts.count(None)


def test_bad_parquet(tmp_path, monkeypatch):
    path = write(tmp_path, "a.parquet", as_parquet(["a", "b"], pyarrow.string()))
    for field, cause in (("body", "no column 'body'; there are id, text"), ("id", "holds int64, not text")):
        with pytest.raises(TextError, match=cause) as caught:
            read(path, field=field)
        assert "--field" in caught.value.repair
    for data in (b"no parquet at all", path.read_bytes()[:-30], b"PAR1" + bytes(20) + b"PAR1"):
        with pytest.raises(TextError, match="no parquet file, or a damaged one"):
            read(write(tmp_path, "b.parquet", data))
    monkeypatch.setattr(parquet, "LONGEST_RECORD", 4)
    with pytest.raises(TextError, match="row 2: the text has 5 bytes"):
        read(write(tmp_path, "c.parquet", as_parquet(["four", "fives"])))


def test_parquet_text_that_is_no_utf8(tmp_path):
    bad = pyarrow.StringArray.from_buffers(
        2, pyarrow.py_buffer(b"\0\0\0\0\1\0\0\0\3\0\0\0"), pyarrow.py_buffer(b"a\xffb")
    )
    path = tmp_path / "a.parquet"
    pyarrow.parquet.write_table(pyarrow.table({"text": bad}), path)
    with pytest.raises(TextError, match="row 2: byte 0"):
        read(path)
    tally = Tally()
    assert read(path, errors="replace", tally=tally) == [["a"], ["\ufffdb"]]
    assert tally.replaced == 1


def test_jsonl_lines_share_the_limit(tmp_path, monkeypatch):
    monkeypatch.setattr(raw, "LONGEST_RECORD", 100)
    monkeypatch.setattr(packing, "BLOCK", 16)
    with pytest.raises(TextError, match="without an end") as caught:
        read(write(tmp_path, "a.jsonl", '{"text": "a"}\n{"text": "' + "b" * 100 + '"}\n'))
    assert caught.value.line == 2
    assert "records" in caught.value.repair


def test_every_format_is_tried_here():
    assert set(FORMATS.names()) == {"text", "jsonl", "csv", "tsv", "parquet"}


@pytest.mark.parametrize(("name", "library"), [("a.parquet", "pyarrow"), ("a.txt.zst", "zstandard")])
def test_a_missing_library_is_named_with_what_installs_it(tmp_path, monkeypatch, name, library):
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(InputError, match=f"needs the library {library}") as caught:
        read(write(tmp_path, name, b"x"))
    assert "pip install" in caught.value.repair
