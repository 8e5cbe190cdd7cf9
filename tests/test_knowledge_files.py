"""Files of similar words: thesaurus, plain lists, vectors; what is wrong in them is named with its line."""

from __future__ import annotations

from contextlib import suppress
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_tokenizers import KINDS

from maskery.cli import main
from maskery.errors import InputError, TextError
from maskery.knowledge import vectors
from maskery.knowledge.config import KnowledgeConfig
from maskery.knowledge.load import fingerprints, read_similar, similar_words
from maskery.knowledge.synonyms import filled_lines, groups
from maskery.knowledge.vectors import looks_like_vectors, neighbours, read_vectors

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
    lines = list(filled_lines(file))
    assert not looks_like_vectors(lines)
    assert groups(lines, file) == [(words, True) for words in expected]


@pytest.mark.parametrize(
    ("content", "yes"),
    [
        ("2 3\na 1 2 3\nb 1 2 3\n", True),
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
    assert looks_like_vectors(list(filled_lines(file_of(tmp_path, content)))) == yes


@pytest.mark.parametrize("header", [True, False])
def test_neighbours_are_the_nearest_by_cosine_within_their_class(tmp_path, header):
    draw = np.random.default_rng(0)
    table, words = draw.normal(size=(60, 5)), [f"w{number}" for number in range(60)]
    table[7], table[9], table[10] = 0, table[9] * 1e200, table[10] * 1e-200
    rows = [f"{word} {' '.join(map(str, row))}" for word, row in zip(words, table, strict=True)]
    file = file_of(tmp_path, "\n".join(["60 5"] * header + rows))
    read = read_vectors(filled_lines(file), file)
    assert (read.words, read.more) == (words, False)
    kind = np.arange(60) % 3 - (np.arange(60) == 4) * 99
    found = {group[0]: group[1:] for group, mutual in neighbours(read, kind) if not mutual}
    assert found.keys() == {word for word in words if word != "w4"}
    table /= np.abs(table).max(axis=1, keepdims=True) + (np.arange(60) == 7)[:, None]
    length = np.maximum(np.linalg.norm(table, axis=1), 1e-9)
    for one, word in enumerate(words):
        if word != "w4" and word != "w7":
            others = [n for n in range(60) if kind[n] == kind[one] and n != one]
            cosine = {n: table[one] @ table[n] / length[one] / length[n] for n in others}
            best = sorted(others, key=lambda n, cosine=cosine: -cosine[n])[: vectors.NEAREST]
            assert found[word] == [words[n] for n in best]
            assert all(cosine[a] >= cosine[b] for a, b in pairwise(best))


def test_vectors_as_similar_words_have_as_many_tokens(tmp_path):
    """北京's nearest is 周杰伦, which has three tokens: the nearest of two is taken."""
    lines = ["北京 1 0", "周杰伦 1 0.01", "大学 0.9 0.1", "我们 -1 0", "龘龘 1 0", "dog 1 0", "the -1 1"]
    similar = read_similar(file_of(tmp_path, "\n".join(lines)), TOKENIZER)
    assert (similar.words, similar.unknown, similar.with_similar) == (6, 1, 5)
    assert similar.note == ""


def test_of_a_very_long_file_the_first_vectors_are_read(tmp_path, monkeypatch):
    monkeypatch.setattr(vectors, "MOST", 3)
    content = "5 2\nthe 1 0\ndog 0 1\nun 1 1\nhello 2 1\ncafe 1 2\n"
    told = []
    similar = read_similar(file_of(tmp_path, content), TOKENIZER, lambda done, total: told.append(done / total))
    assert similar.words == 3
    assert "only the first" in similar.note
    assert told == sorted(told)
    assert told[-1] == 1


THESAURUS = "Aa01A01= 我 人\n"


@pytest.mark.parametrize(
    ("content", "cause", "line"),
    [
        (b"", "holds no word", None),
        (b"\n \n", "holds no word", None),
        (b"one\ntwo\n", "no line holds two words", None),
        (b"# one two\n", "no line holds two words", None),
        ("Aa01A01@ 我 人\n".encode(), "no line holds two words", None),
        ((THESAURUS + "我 人\n").encode(), "no code such as", 2),
        ((THESAURUS + "好").encode("gbk"), "is not UTF-8", 1),
        (b"big large\n\xff\n", "byte 0xff is not UTF-8", 2),
        (b"big large\n\0\n", "a zero byte", 2),
        (b"the 1 2\ndog nan 1\n", "no number", 2),
        (b"the 1 2\n\ndog 1 inf\n", "no number", 3),
        (b"the 1 2\ndog 1 1e999\n", "no number", 2),
        (b"the 1 2\ndog 1\n", "'dog' has 1 numbers, the file has vectors of 2", 2),
        (b"2 2\nthe 1 2\ndog 1 2 3\n", "'dog' has 3 numbers", 3),
        (b"the 1 2\ndog 1 x\n", "a word and its numbers", 2),
        (b"the 1 2\ndog 1 1\nthe 1 2\n", "'the' is given again: it stands in line 1", 3),
        (b"3 2\nthe 1 2\ndog 1 1\n", "the first line says 3 words, the file has 2", 1),
        (b"2 3\nthe 1 2\ndog 1 1\n", "'the' has 2 numbers, the file has vectors of 3", 2),
        (b"1 2\nthe 1 2\n", "only one word", None),
    ],
)
def test_bad_files_are_refused_with_file_and_line(tmp_path, content, cause, line):
    file = file_of(tmp_path, content)
    with pytest.raises(TextError, match=cause) as caught:
        read_similar(file, TOKENIZER)
    assert (caught.value.file, caught.value.line) == (str(file), line)
    assert caught.value.repair


@pytest.mark.parametrize(
    ("content", "cause"),
    [
        ("龘 靐\n", "the tokenizer can write none of the words: all 2 hold a token that it does not know"),
        ("龘 1 2\n靐 1 2\n", "the tokenizer can write none of the words: all 2 hold"),
        ("the 北京\n", "none of the 2 words has another of like meaning with as many tokens"),
        ("THE the\n", "none of the 1 words has another"),
        ("the 1 2\n北京 1 2\n", "has another of like meaning with as many tokens"),
    ],
)
def test_files_of_no_use_are_refused(tmp_path, content, cause):
    with pytest.raises(InputError, match=cause) as caught:
        read_similar(file_of(tmp_path, content), TOKENIZER)
    assert "in the language of the corpus" in caught.value.repair


def test_what_is_no_file_is_refused(tmp_path):
    for path, cause in ((tmp_path, "a directory|Is a directory"), (tmp_path / "nothing.txt", "No such file")):
        with pytest.raises(InputError, match=cause) as caught:
            similar_words(KnowledgeConfig(synonyms=str(path)), TOKENIZER)
        assert caught.value.where == str(path)
        assert "--set knowledge.synonyms=FILE" in caught.value.repair
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
