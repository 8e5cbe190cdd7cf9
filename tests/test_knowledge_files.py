"""Files of similar words: thesaurus and plain lists; what is wrong in them is named with its line."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_tokenizers import KINDS

from maskery.cli import main
from maskery.errors import InputError, TextError
from maskery.knowledge import lines
from maskery.knowledge.config import KnowledgeConfig
from maskery.knowledge.load import fingerprints, read_similar, similar_words
from maskery.knowledge.synonyms import filled_lines, groups, looks_like_vectors

TOKENIZER = KINDS["wordpiece"]


def file_of(folder, content):
    file = folder / "words.txt"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return file


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("Aa01A01= 我 人\nAa01A02# 去 看 天\nAa01A03@ 会\nAa01A04@ 中 国\n", [["我", "人"], ["去", "看", "天"]]),
        ("\ufeffAa01A01= 我 人\r\n\r\nAa01A02= 会\n", [["我", "人"]]),
        ("Aa01A01=我 人 我\n", [["我", "人"]]),
        ("big large\nsmall little  tiny\n\n# a comment\nalone\n", [["big", "large"], ["small", "little", "tiny"]]),
        ("New York,the big apple\n大，巨、庞;宏\n", [["New York", "the big apple"], ["大", "巨", "庞", "宏"]]),
        ("big\tvery large\t\thuge\n", [["big", "very large", "huge"]]),
        ("a b\nAa01A01= 我 人\n", [["a", "b"], ["Aa01A01=", "我", "人"]]),
        ("7 8 x\n", [["7", "8", "x"]]),
    ],
)
def test_groups(tmp_path, content, expected):
    file = file_of(tmp_path, content)
    assert not looks_like_vectors(file)
    assert groups(filled_lines(file), file) == [(words, True) for words in expected]


@pytest.mark.parametrize(
    ("content", "yes"),
    [
        ("2 3\na 1 2 3\nb 1 2 3\n", True),
        (b"1 2\na \0\0\0\0\0\0\x80\x3f\n", True),
        ("\ufeff\n2 1\nb 7\n", True),
        ("", False),
        ("a 1 2 -3e-5\n", True),
        ("a nan 0.5\nb 1 2\n", True),
        ("# 1 .5\nb 1 2\n", True),
        ("3 4\nx y\n", False),
        ("3 4\n", False),
        ("a 1\n", False),
        ("a b 1\n", False),
    ],
)
def test_vectors_are_told_from_lists(tmp_path, content, yes):
    assert looks_like_vectors(file_of(tmp_path, content)) == yes


@pytest.mark.parametrize("content", ["2 2\nthe 1 0\ndog 0 1\n", "the 1 0\ndog 0 1\n", "the nan 0\n"])
def test_vectors_are_refused_with_the_command_that_makes_a_table(tmp_path, content):
    file = file_of(tmp_path, content)
    with pytest.raises(TextError, match="these are word vectors") as caught:
        read_similar(file, TOKENIZER)
    assert caught.value.repair.startswith(f"maskery words similar {file} --corpus DIR --out FILE")


THESAURUS = "Aa01A01= 我 人\n"


@pytest.mark.parametrize(
    ("content", "cause", "line"),
    [
        (b"", "no line holds two words", None),
        (b"\n \n", "no line holds two words", None),
        (b"one\ntwo\n", "no line holds two words", None),
        (b"# one two\n", "no line holds two words", None),
        ("Aa01A01@ 我 人\n".encode(), "no line holds two words", None),
        ((THESAURUS + "我 人\n").encode(), "no code such as", 2),
        ((THESAURUS + "好").encode("gbk"), "is not UTF-8", 1),
        (b"big large\n\xff\n", "byte 0xff is not UTF-8", 2),
        (b"big large\n\0\n", "a zero byte", 2),
    ],
)
def test_bad_files_are_refused_with_file_and_line(tmp_path, content, cause, line):
    file = file_of(tmp_path, content)
    with pytest.raises(TextError, match=cause) as caught:
        read_similar(file, TOKENIZER)
    assert (caught.value.file, caught.value.line) == (str(file), line)
    assert caught.value.repair


def test_blocks_leave_no_trace_and_a_line_without_end_is_refused(tmp_path, monkeypatch):
    text = "".join(f"{'词' * (number % 7)}{number}\n" for number in range(200)) + "last"
    for block in (1, 5, 64, 1 << 20):
        monkeypatch.setattr(lines, "_BLOCK", block)
        found = list(lines.blocks(file_of(tmp_path, text)))
        assert [line for _, part in found for line in part] == text.split("\n")
        assert [number for number, _ in found] == [1 + sum(len(p) for _, p in found[:at]) for at in range(len(found))]
    monkeypatch.setattr(lines, "_BLOCK", 16)
    monkeypatch.setattr(lines, "_LONGEST", 64)
    for content in ("a b\nc d\n" + "x" * 65 + "\n", "a b\nc d\n" + "x" * 9999):
        with pytest.raises(TextError, match="a line of more than") as caught:
            list(filled_lines(file_of(tmp_path, content)))
        assert caught.value.line == 3
    assert len(list(filled_lines(file_of(tmp_path, "x" * 60 + "\n" + "y" * 60)))) == 2


@pytest.mark.parametrize(
    ("content", "cause"),
    [
        ("龘 靐\n", "the tokenizer can write none of the words: all 2 hold a token that it does not know"),
        ("the 北京\n", "none of the 2 words has another of like meaning with as many tokens"),
        ("THE the\n", "none of the 1 words has another"),
    ],
)
def test_files_of_no_use_are_refused(tmp_path, content, cause):
    with pytest.raises(InputError, match=cause) as caught:
        read_similar(file_of(tmp_path, content), TOKENIZER)
    assert "in the language of the corpus" in caught.value.repair


def test_what_is_no_file_is_refused(tmp_path):
    places = (
        (tmp_path, "names a folder, not a file", f"maskery words similar {tmp_path}"),
        (tmp_path / "nothing.txt", "No such file", "--set knowledge.synonyms=FILE"),
    )
    for path, cause, repair in places:
        with pytest.raises(InputError, match=cause) as caught:
            similar_words(KnowledgeConfig(synonyms=str(path)), TOKENIZER)
        assert caught.value.where == str(path)
        assert repair in caught.value.repair
    with pytest.raises(TextError, match="is a folder"):
        read_similar(tmp_path, TOKENIZER)


def test_a_table_is_made_once_for_a_file_and_a_tokenizer(tmp_path):
    file = file_of(tmp_path, "the dog\n")
    config = KnowledgeConfig(synonyms=str(file))
    made = similar_words(config, TOKENIZER)
    assert similar_words(config, TOKENIZER) is made
    assert similar_words(KnowledgeConfig(), TOKENIZER) is None
    assert similar_words(config, KINDS["bpe"]) is not made
    before = fingerprints(config)
    file.write_text("the dog\nun hello\n", encoding="utf-8")
    assert similar_words(config, TOKENIZER).words == 4
    assert fingerprints(config).keys() == before.keys() == {"synonyms"}
    assert fingerprints(config) != before
    assert fingerprints(KnowledgeConfig()) == {}


@given(content=st.one_of(st.binary(max_size=40), st.text(max_size=40).map(str.encode)))
def test_any_file_is_read_or_refused(tmp_path_factory, content):
    file = file_of(tmp_path_factory.getbasetemp(), content)
    with suppress(InputError):
        assert read_similar(file, TOKENIZER).with_similar > 0
        return
    with pytest.raises(InputError, match=r"words\.txt") as caught:
        read_similar(file, TOKENIZER)
    assert caught.value.repair


def test_commands_refuse_what_they_cannot_read(tmp_path, capsys):
    text = tmp_path / "text.txt"
    text.write_text("The dog sleeps. It dreams.\n\nThe cat runs. It is late.\n\n" * 3, encoding="utf-8")
    corpus = str(tmp_path / "corpus")
    assert main(["corpus", "build", str(text), "--out", corpus, "--vocab", "200", "--keep-duplicates"]) == 0
    bad = file_of(tmp_path, "dog cat\n\nthe \xff\n".encode("latin-1"))
    capsys.readouterr()
    for verb in (["inspect", "macbert"], ["pretrain", "macbert", "--out", str(tmp_path / "run"), "--steps", "1"]):
        assert main([*verb, "--corpus", corpus, "--set", f"knowledge.synonyms={bad}"]) == 2
        assert f"{bad}:3: byte 0xff is not UTF-8" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()
