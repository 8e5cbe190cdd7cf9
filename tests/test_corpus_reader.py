from __future__ import annotations

import gzip

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from maskery.corpus import reader
from maskery.corpus.reader import Tally, check, documents, lines
from maskery.errors import TextError, UnknownName


def write(folder, data, name="text.txt"):
    path = folder / name
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return path


def test_documents_and_line_numbers(tmp_path):
    path = write(tmp_path, "\ufeffone\r\ntwo\r\n\r\n \t\r\nthree\r\n")
    assert list(documents(path)) == [[(1, "one"), (2, "two")], [(5, "three")]]
    assert [line for _, line in lines(path)] == ["one", "two", "", "three", ""]


@pytest.mark.parametrize("text", ["a", "a\n", "\n\na\n\n\n"])
def test_ends_of_files(tmp_path, text):
    assert [line for _, line in lines(write(tmp_path, text))] == ["a", ""]


def test_only_a_line_feed_ends_a_line(tmp_path):
    path = write(tmp_path, "a\u2028b\x0bc\x85d\n")
    assert list(documents(path)) == [[(1, "a\u2028b\x0bc\x85d")]]


def test_gzip_reads_like_plain(tmp_path):
    text = "\n".join(f"line {n}" if n % 7 else "" for n in range(500))
    plain, packed = write(tmp_path, text), write(tmp_path, gzip.compress(text.encode()), "text.txt.gz")
    assert list(documents(plain)) == list(documents(packed))
    tally = Tally()
    list(lines(packed, tally=tally))
    assert tally.bytes_done == packed.stat().st_size


def test_blocks_do_not_show(tmp_path, monkeypatch):
    text = "\n".join("字" * (n % 40) for n in range(200))
    path = write(tmp_path, text)
    whole = list(lines(path))
    for size in (1, 2, 7, 64):
        monkeypatch.setattr(reader, "_BLOCK", size)
        assert list(lines(path)) == whole


def test_bad_bytes_name_line_and_byte(tmp_path):
    path = write(tmp_path, b"good\nalso good\nbad \xe4\xb8 here\n")
    with pytest.raises(TextError) as caught:
        list(lines(path))
    assert caught.value.line == 3
    assert "byte 19 (0xe4)" in caught.value.cause
    assert "--errors replace" in caught.value.repair
    tally = Tally()
    assert [line for _, line in lines(path, errors="replace", tally=tally)][2] == "bad \ufffd here"
    assert tally.replaced == 1


def test_replacements_that_were_in_the_text_are_not_counted(tmp_path):
    tally = Tally()
    list(lines(write(tmp_path, "\ufffd ".encode() + b"\xff\n"), errors="replace", tally=tally))
    assert tally.replaced == 1


@pytest.mark.parametrize(
    ("name", "data", "cause", "line"),
    [
        ("a.txt", b" \n\n\t\n", "no text", None),
        ("a.txt", b"text\nmore\0", "zero byte", 2),
        ("a.txt", "text".encode("utf-16"), "UTF-16", 1),
        ("a.gz", gzip.compress(b"text\n" * 1000, mtime=0)[:-12], "ends in its middle", None),
        ("a.gz", b"not an archive", "damaged", 1),
    ],
)
def test_broken_files(tmp_path, name, data, cause, line):
    path = write(tmp_path, data, name)
    with pytest.raises(TextError, match=cause) as caught:
        list(lines(path))
    assert caught.value.file == str(path)
    assert caught.value.repair
    assert line is None or caught.value.line == line
    assert caught.value.exit_code == 2


def test_files_are_checked_before_work(tmp_path):
    good = write(tmp_path, "text")
    assert check([str(good)]) == [good]
    for path, cause in (
        (tmp_path, "folder"),
        (tmp_path / "none", "no such file"),
        (write(tmp_path, b"", "empty"), "is empty"),
    ):
        with pytest.raises(TextError, match=cause):
            check([good, path])
    with pytest.raises(TextError, match="no text file"):
        check([])
    with pytest.raises(UnknownName):
        reader.check_errors("ignore")


def test_long_lines_are_cut_without_loss_and_counted(tmp_path, monkeypatch):
    monkeypatch.setattr(reader, "LONGEST_LINE", 10)
    text = "aaaa bbbb cccc dddd\n" + "字" * 35 + "\nshort\n"
    tally = Tally()
    found = list(lines(write(tmp_path, text), tally=tally))
    assert "".join(line for _, line in found) == text.replace("\n", "")
    assert max(len(line) for _, line in found) <= 10
    assert found[0] == (1, "aaaa bbbb ")
    assert tally.cut_lines == 2
    assert tally.lines == 3


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.binary(max_size=200), packed=st.booleans(), errors=st.sampled_from(["strict", "replace"]))
def test_any_bytes_are_read_or_refused(tmp_path, data, packed, errors):
    path = write(tmp_path, data, "any.gz" if packed else "any.txt")
    refusal, found = None, []
    try:
        found = [line for _, line in lines(path, errors=errors)]
    except TextError as error:
        refusal = error
    if refusal is not None:
        assert refusal.repair
    else:
        assert any(found)
        assert found[-1] == ""
        assert all("\n" not in line for line in found)
        if not packed and errors == "strict":
            text = data.decode("utf-8-sig").replace("\r\n", "\n")
            assert [line for line in found if line] == [
                line.removesuffix("\r") for line in text.split("\n") if line and not line.isspace()
            ]
