"""`maskery demo`: its text, and the whole way in a few seconds."""

import json

import pytest

from maskery.cli import demo, demo_text, main
from maskery.cli.demo_text import docstrings, documents, paragraphs


def test_paragraphs_are_prose_on_one_line():
    text = "The first line of a paragraph\n  goes on here.\n\n>>> x = 1 and this is no prose at all\n\nToo short.\n\n"
    table = "a | b | 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8"
    assert list(paragraphs(text + table)) == ["The first line of a paragraph goes on here."]


def test_docstrings_are_read_without_running_anything():
    source = b'"""Module."""\nraise SystemExit\ndef f():\n    "Function \\d."\nclass C:\n    """Class."""\n'
    assert list(docstrings(source)) == ["Module.", "Function \\d.", "Class."]
    assert list(docstrings(b"def (")) == []
    assert list(docstrings(b"\0")) == []


@pytest.fixture(scope="module")
def whole_text():
    return documents()


def test_the_text_is_large_and_always_the_same(whole_text):
    found = whole_text
    assert found == documents()
    assert 500_000 < sum(map(len, found)) < 3_000_000
    assert len(found) > 100
    assert not any("\n\n" in document or not document.strip() for document in found)


@pytest.fixture
def little_text(whole_text, monkeypatch):
    monkeypatch.setattr(demo_text, "documents", lambda: whole_text[:30])
    monkeypatch.setattr(demo, "VOCABULARY", 500)
    monkeypatch.setitem(demo.SETTINGS, "training.eval_rows", 16)
    monkeypatch.setitem(demo.SETTINGS, "model.layers", 1)
    monkeypatch.setitem(demo.SETTINGS, "model.width", 32)


def test_the_whole_way(little_text, tmp_path, capsys):
    assert main(["demo", "--out", str(tmp_path / "demo"), "--minutes", "0.02"]) == 0
    captured = capsys.readouterr()
    for told in ("trained", "most frequent token", "untrained", "parameters", str(tmp_path / "demo")):
        assert told in captured.out
    assert captured.out.count("[MASK]") == 4
    assert (tmp_path / "demo" / "run" / "model.safetensors").is_file()
    assert main(["demo", "--out", str(tmp_path / "demo")]) == 2
    err = capsys.readouterr().err
    assert "already there" in err
    assert "--resume" not in err


def test_json(little_text, tmp_path, capsys):
    assert main(["demo", "--out", str(tmp_path / "demo"), "--minutes", "0.01", "--json"]) == 0
    captured = capsys.readouterr()
    found = json.loads(captured.out)
    assert found["accuracy"].keys() == {"trained", "most frequent token", "untrained"}
    assert [each["text"] for each in found["blanks"]] == list(demo.BLANKS)
    assert all(len(each["masks"][0]["candidates"]) == 3 for each in found["blanks"])
    assert found["run"] == str(tmp_path / "demo" / "run")
    assert "1 threads" not in captured.err


def test_bad_input(tmp_path, capsys):
    assert main(["demo", "--minutes", "0"]) == 2
    assert main(["demo", "--minuts", "1"]) == 2
    assert "Usage: maskery demo" in capsys.readouterr().err
