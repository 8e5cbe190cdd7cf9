"""Plain text and compression: lines, documents, bad bytes, long lines."""

from __future__ import annotations

import gzip

import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from maskery.corpus import lines as raw
from maskery.corpus import packing, reader
from maskery.corpus.lines import Tally, check_errors
from maskery.corpus.sources import gathered
from maskery.errors import TextError, UnknownName

PACK = {"": bytes, ".gz": lambda data: gzip.compress(data, mtime=0), ".zst": zstandard.compress}


def write(folder, data, name="text.txt"):
    path = folder / name
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return path


def lines(path, **options):
    with gathered(path) as (sources, _):
        return list(reader.lines(sources, **options))


def test_a_blank_line_and_the_end_of_a_file_end_documents(tmp_path):
    path = write(tmp_path, "\ufeffone\r\ntwo\r\n\r\n \t\r\nthree\r\n")
    assert lines(path) == ["one", "two", "", "three", ""]
    with gathered([path, path]) as (sources, _):
        tally = Tally()
        assert list(reader.lines(sources, tally=tally)) == ["one", "two", "", "three", ""] * 2
    assert (tally.documents, tally.lines, tally.characters) == (4, 6, 22)


@pytest.mark.parametrize("text", ["a", "a\n", "\n\na\n\n\n"])
def test_ends_of_files(tmp_path, text):
    assert lines(write(tmp_path, text)) == ["a", ""]


def test_only_a_line_feed_ends_a_line(tmp_path):
    assert lines(write(tmp_path, "a\u2028b\x0bc\x85d\n")) == ["a\u2028b\x0bc\x85d", ""]


def test_documents_can_be_skipped_by_number(tmp_path):
    path, tally = write(tmp_path, "a\nb\n\nc\n\nd\n\ne"), Tally()
    assert lines(path, skip=bytes([1, 0, 1]), tally=tally) == ["c", "", "e", ""]
    assert (tally.documents, tally.lines) == (4, 2)


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
def test_packed_reads_like_plain(tmp_path, suffix):
    text = "\n".join(f"line {n}" if n % 7 else "" for n in range(5000)).encode()
    packed = write(tmp_path, PACK[suffix](text), f"text.txt{suffix}")
    tally = Tally()
    assert lines(packed, tally=tally) == lines(write(tmp_path, text))
    assert tally.bytes_done == packed.stat().st_size
    twice = write(tmp_path, PACK[suffix](b"one\n") + PACK[suffix](b"two\n"), f"twice{suffix}")
    assert lines(twice) == ["one", "two", ""]


def test_blocks_do_not_show(tmp_path, monkeypatch):
    text = "\n".join("字" * (n % 40) for n in range(200)).encode()
    paths = [write(tmp_path, pack(text), f"text.txt{suffix}") for suffix, pack in PACK.items()]
    whole = lines(paths[0])
    for size in (1, 2, 7, 64):
        monkeypatch.setattr(packing, "BLOCK", size)
        monkeypatch.setattr(packing, "_ZSTD_BITE", size)
        assert [lines(path) for path in paths] == [whole] * 3


def test_bad_bytes_name_line_and_byte(tmp_path):
    path = write(tmp_path, b"\xef\xbb\xbfgood\nalso good\nbad \xe4\xb8 here\n")
    with pytest.raises(TextError) as caught:
        lines(path)
    assert caught.value.line == 3
    assert "byte 22 (0xe4)" in caught.value.cause
    assert "--errors replace" in caught.value.repair
    tally = Tally()
    assert lines(path, errors="replace", tally=tally)[2] == "bad \ufffd here"
    assert tally.replaced == 1


def test_replacements_that_were_in_the_text_are_not_counted(tmp_path):
    tally = Tally()
    lines(write(tmp_path, "\ufffd ".encode() + b"\xff\n"), errors="replace", tally=tally)
    assert tally.replaced == 1


CHINESE = "这是一份中文文本，它有几个句子。\n第二行也是中文。\n"
TRADITIONAL = "這是繁體中文的文章，裡面還有幾個句子。\n"


@pytest.mark.parametrize(
    ("data", "line", "said", "repair"),
    [
        (CHINESE.encode("gbk"), 1, "looks like GB18030", "iconv -f GB18030"),
        (("plain\n" + TRADITIONAL).encode("big5"), 2, "looks like Big5", "iconv -f Big5"),
        ("un café à l'été\n".encode("cp1252"), 1, "looks like Windows-1252", "iconv -f Windows-1252"),
        (CHINESE.encode() + CHINESE.encode("gbk"), 3, "GB18030, while lines before it are UTF-8", "mixes encodings"),
        ("text\n".encode("utf-16"), 1, "in UTF-16", "iconv -f UTF-16 "),
        ("some text\nmore\n".encode("utf-16-le"), 1, "UTF-16LE", "iconv -f UTF-16LE"),
        (CHINESE.encode("utf-16-le"), 1, "UTF-16LE", "iconv -f UTF-16LE"),
        ("some text\nmore\n".encode("utf-16-be"), 1, "UTF-16BE", "iconv -f UTF-16BE"),
        (b"text\nmore\0", 2, "zero byte", "plain text"),
        (b"\xff\xff\xff\xff\xff\n", 1, "0xff", "iconv -f ENCODING"),
        (gzip.compress(b"text", mtime=0), 1, "no text but gzip", "name it .gz"),
        (zstandard.compress(b"text"), 1, "no text but zstd", "name it .zst"),
    ],
    ids=[
        "gbk",
        "big5",
        "latin",
        "mixed",
        "utf-16",
        "utf-16-le",
        "utf-16-le-zh",
        "utf-16-be",
        "zero",
        "unknown",
        "gzip",
        "zstd",
    ],
)
def test_what_is_no_utf8_is_named(tmp_path, data, line, said, repair):
    with pytest.raises(TextError) as caught:
        lines(write(tmp_path, data))
    assert caught.value.line == line
    assert said in caught.value.cause
    assert repair in caught.value.repair


BROKEN = [
    ("a.txt", b" \n\n\t\n", "no text"),
    ("a.gz", gzip.compress(b"text\n" * 1000, mtime=0)[:-12], "ends in its middle"),
    ("a.gz", b"not an archive", "damaged"),
    ("a.zst", zstandard.compress(bytes(range(48, 120)) * 9)[:-3], "ends in its middle"),
    ("a.zst", b"not an archive", "damaged"),
    ("a.zst", zstandard.compress(b"text\n") + b"rest", "damaged|ends in its middle"),
]


@pytest.mark.parametrize(("name", "data", "cause"), BROKEN, ids=range(len(BROKEN)))
def test_broken_files(tmp_path, name, data, cause):
    path = write(tmp_path, data, name)
    with pytest.raises(TextError, match=cause) as caught:
        lines(path)
    assert caught.value.file == str(path)
    assert caught.value.repair
    assert caught.value.exit_code == 2


def test_the_way_with_bad_bytes_is_a_closed_choice():
    assert check_errors("replace") == "replace"
    with pytest.raises(UnknownName):
        check_errors("ignore")


def test_long_lines_are_cut_without_loss_and_counted(tmp_path, monkeypatch):
    monkeypatch.setattr(reader, "LONGEST_LINE", 10)
    text = "aaaa bbbb cccc dddd\n" + "字" * 35 + "\nshort\n"
    tally = Tally()
    found = lines(write(tmp_path, text), tally=tally)
    assert "".join(found) == text.replace("\n", "")
    assert max(map(len, found)) <= 10
    assert found[0] == "aaaa bbbb "
    assert tally.cut_lines == 2
    assert tally.lines == 3


@pytest.mark.parametrize("suffix", list(PACK))
def test_a_line_without_end_is_refused_while_it_is_read(tmp_path, monkeypatch, suffix):
    monkeypatch.setattr(raw, "LONGEST_RECORD", 100)
    monkeypatch.setattr(packing, "BLOCK", 16)
    longest = b"x" * 100
    assert lines(write(tmp_path, PACK[suffix](b"a\n" + longest + b"\nb"), f"fits{suffix}"))[1] == longest.decode()
    with pytest.raises(TextError, match="without an end") as caught:
        lines(write(tmp_path, PACK[suffix](b"a\nb\n" + longest + b"x\nb"), f"long{suffix}"))
    assert caught.value.line == 3
    assert "sed -E" in caught.value.repair


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.binary(max_size=200), errors=st.sampled_from(["strict", "replace"]))
def test_any_bytes_are_read_or_refused(tmp_path, data, errors):
    path = write(tmp_path, data or b"\n", "any.txt")
    refusal, found = None, []
    try:
        found = lines(path, errors=errors)
    except TextError as error:
        refusal = error
    if refusal is not None:
        assert refusal.repair
        return
    assert any(found)
    assert found[-1] == ""
    assert all("\n" not in line for line in found)
    if errors == "strict":
        text = data.decode("utf-8-sig").replace("\r\n", "\n")
        assert [line for line in found if line] == [
            line.removesuffix("\r") for line in text.split("\n") if line and not line.isspace()
        ]
