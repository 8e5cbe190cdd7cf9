from __future__ import annotations

from itertools import groupby, pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maskery.cli import main
from maskery.corpus.store import Corpus, Flag
from maskery.errors import InputError, TextError
from maskery.text.dictionary import Dictionary
from maskery.text.words import auto, segmenter


def words(text, dictionary=None):
    numbers = auto(text, dictionary)
    found = [
        "".join(c for c, _ in group) for _, group in groupby(zip(text, numbers, strict=True), lambda pair: pair[1])
    ]
    return [word for word in found if not word.isspace()]


@pytest.mark.parametrize(
    ("lines", "text", "expected"),
    [
        ([], "老爸叫小宏去买酱油", ["老爸", "叫", "小宏去", "买", "酱油"]),
        (["小宏"], "老爸叫小宏去买酱油", ["老爸", "叫", "小宏", "去", "买", "酱油"]),
        (["小宏 1000 nr"], "小宏去，小宏来", ["小宏", "去", "，", "小宏", "来"]),
        (["京大"], "北京大学和京大", ["北京大学", "和", "京大"]),
        (["New York"], "in New York, New Yorkers", ["in", "New York", ",", "New", "Yorkers"]),
        (["York", "New York City", "New York"], "New York City New York", ["New York City", "New York"]),
        (["C++"], "C++和ABC++", ["C++", "和", "ABC", "+", "+"]),
        (["卡拉OK"], "唱卡拉OK去", ["唱", "卡拉OK", "去"]),
        (["T恤"], "买T恤XT恤", ["买", "T恤", "XT", "恤"]),
        (["二〇二四年"], "在二〇二四年春天", ["在", "二〇二四年", "春天"]),
        (["3.14"], "3.14 and 3.145", ["3.14", "and", "3", ".", "145"]),
        (["ありがとう"], "ありがとうね", ["ありがとう", "ね"]),
        (["new york"], "New York", ["New", "York"]),
        (["cafe"], "cafe\u0301", ["cafe\u0301"]),
        (["iPhone 15\t3"], "iPhone 15", ["iPhone 15"]),
        (["don't stop"], "I don't stop.", ["I", "don't stop", "."]),
    ],
)
def test_words_are_kept_together(lines, text, expected):
    assert words(text, Dictionary.read(lines) if lines else None) == expected


@pytest.mark.parametrize(
    ("line", "entry"),
    [
        ("小宏", ("小宏", None)),
        ("小宏 100", ("小宏", 100)),
        ("  小宏   100   nr ", ("小宏", 100)),
        ("小宏 nr", ("小宏", None)),
        ("小宏\t100\tnr", ("小宏", 100)),
        ("New York", ("New York", None)),
        ("New York 7", ("New York", 7)),
        ("New York 7 ns", ("New York", 7)),
        ("iPhone 15", ("iPhone", 15)),
        ("iPhone 15\t", ("iPhone 15", None)),
        ("iPhone 15\t9", ("iPhone 15", 9)),
        ("C# 3", ("C#", 3)),
        ("#hashtag", ("#hashtag", None)),
        ("卡拉 OK\t1", ("卡拉 OK", 1)),
    ],
)
def test_lines(line, entry):
    assert Dictionary.read([line, "# a comment", "#", ""]).entries[:1] == (entry,)


def test_a_word_given_again_counts_once_and_the_last_frequency_holds(tmp_path):
    file = tmp_path / "words.txt"
    file.write_bytes("\ufeff小宏 1\r\nNew York\r\n小宏 9\r\n".encode())
    found = Dictionary.read(file)
    assert found.entries == (("小宏", 9), ("New York", None))
    assert (len(found), found.repeated) == (2, 1)
    assert Dictionary.read([file, "小宏 9"]).repeated == 2
    assert found.fingerprint == Dictionary.read(["小宏 9", "New York"]).fingerprint
    assert found.fingerprint != Dictionary.read(["小宏 8", "New York"]).fingerprint


@pytest.mark.parametrize(
    ("content", "cause", "line"),
    [
        ("好\n小宏 100\n".encode("gbk"), "is not UTF-8", 1),
        ("the\n小宏 100\n".encode("gbk"), "is not UTF-8", 2),
        (b"", "no word", None),
        (b"\n# only a comment\n\n", "no word", None),
        ("小宏 10\n北京 abc1\n".encode(), "'abc1' is no frequency", 2),
        ("小宏 0\n".encode(), "'0' is no frequency", 1),
        ("小宏 -5 nr\n".encode(), "'-5 nr' is no frequency", 1),
        (b"\n\nC++ 3.5\n", "'3.5' is no frequency", 3),
        ("小宏\tx\n".encode(), "'x' is no frequency", 1),
        ("小宏 99999999999\n".encode(), "is no frequency", 1),
        ("小宏 1 nr more\n".encode(), "is no frequency", 1),
        (b"\t5\n", "no word before the tab", 1),
        (b"a\x00b\n", "control character", 1),
    ],
)
def test_bad_files_are_refused_with_file_and_line(tmp_path, content, cause, line):
    file = tmp_path / "words.txt"
    file.write_bytes(content)
    with pytest.raises(InputError, match=cause) as caught:
        Dictionary.read(file)
    assert caught.value.exit_code == 2
    assert caught.value.repair
    assert caught.value.where == (f"{file}:{line}" if line else str(file))


def test_what_is_no_file_is_refused(tmp_path):
    with pytest.raises(TextError, match="no such file"):
        Dictionary.read(tmp_path / "nothing.txt")
    with pytest.raises(TextError, match="is a folder"):
        Dictionary.read(tmp_path)
    with pytest.raises(InputError, match="empty list"):
        Dictionary.read([])
    with pytest.raises(InputError, match="word 2"):
        Dictionary.read(["fine", "小宏 x1"])
    with pytest.raises(InputError, match="no use"):
        segmenter("none", Dictionary.read(["小宏"]))


def test_the_corpus_knows_its_dictionary(tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("老爸叫小宏去New York买C++书。\n" * 3, encoding="utf-8")
    file = tmp_path / "words.txt"
    file.write_text("小宏\nNew York\nC++\n", encoding="utf-8")
    made = [
        Corpus.build(text, tmp_path / f"made{n}", kind="char", heldout=0, workers=n, dictionary=given)
        for n, given in enumerate([file, [Path(file)], ["小宏", "New York", "C++"]])
    ]
    plain = Corpus.build(text, tmp_path / "plain", kind="char", heldout=0)
    assert len({corpus.fingerprint for corpus in made}) == 1, "also from worker processes"
    assert made[0].fingerprint != plain.fingerprint
    text = "老爸叫小宏去New York。"
    assert made[1].segmenter(text).tolist() == auto(text, Dictionary.read(file)).tolist()
    assert plain.segmenter(text).tolist() == auto(text).tolist() != made[1].segmenter(text).tolist()
    assert "dictionary.txt" in made[1].manifest["files"]
    told = made[0].manifest["options"]["dictionary"]
    assert told == {"words": 3, "repeated": 0, "fingerprint": Dictionary.read(file).fingerprint}
    assert plain.manifest["options"]["dictionary"] is None
    shown = made[0].tokenizer.shown(made[0].tokens[: made[0].sentence_start[1]])
    at = [*np.flatnonzero(made[0].flags[: len(shown)] & Flag.WORD), len(shown)]
    found = ["".join(shown[a:b]) for a, b in pairwise(at)]
    assert found == ["老爸", "叫", "小宏", "去", "New▁York", "买", "C++", "书", "。"]


def read_or_refuse(source):
    try:
        return Dictionary.read(source), None
    except InputError as error:
        return None, error


MIXED = st.text(alphabet=st.sampled_from("我们小宏去北京〇 New York C+ab1'。\u0301👍🏽\n"), max_size=30)


@settings(deadline=None, max_examples=50)
@given(text=MIXED, given_words=st.lists(MIXED, max_size=5), cuts=st.lists(st.integers(0, 30), max_size=6))
def test_any_dictionary_gives_whole_words_in_order(text, given_words, cuts):
    lines = [f"{text[a:b]}\t" for a, b in pairwise(sorted(cuts))] + given_words
    dictionary, refused = read_or_refuse([line for line in lines if "\n" not in line.strip()])
    if dictionary is None:
        assert refused.repair
        return
    numbers = auto(text, dictionary)
    assert numbers.size == len(text)
    assert set(np.diff(numbers).tolist()) <= {0, 1}
    for word in words(text, dictionary):
        assert not any(c.isspace() for c in word) or word in dict(dictionary.entries)
    assert "".join(words(text, dictionary)).replace(" ", "") == "".join(text.split())


@settings(deadline=None)
@given(content=st.one_of(st.binary(max_size=60), st.text(max_size=60).map(str.encode)))
def test_any_file_is_read_or_refused(tmp_path_factory, content):
    file = tmp_path_factory.getbasetemp() / "fuzzed-dictionary.txt"
    file.write_bytes(content)
    found, refused = read_or_refuse(file)
    if found is None:
        assert str(file) in str(refused)
        assert refused.repair
        return
    assert all(word.strip() == word and word for word, _ in found.entries)
    file.write_bytes(found.text.encode())
    assert Dictionary.read(file).entries == found.entries
    auto("我们 the dog", found)


def test_the_command_takes_dictionaries_and_refuses_bad_ones(tmp_path, capsys):
    text, good, bad = (tmp_path / name for name in ("text.txt", "good.txt", "bad.txt"))
    text.write_text("老爸叫小宏去New York。\n" * 3, encoding="utf-8")
    good.write_text("小宏\n小宏 5\n", encoding="utf-8")
    bad.write_bytes("小宏\n".encode("gbk"))
    build = ["corpus", "build", str(text), "--kind", "char", "--workers", "0", "--dictionary"]
    assert main([*build, str(good), "--dictionary", str(good), "--out", str(tmp_path / "made")]) == 0
    assert "dictionary: 1 word (3 given again: the last frequency holds)" in capsys.readouterr().err
    assert main([*build, str(bad), "--out", str(tmp_path / "none")]) == 2
    told = capsys.readouterr().err
    assert f"{bad}:1: byte 0xba is not UTF-8" in told
    assert "iconv -f GBK" in told
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.txt", "good.txt", "made", "text.txt"]
