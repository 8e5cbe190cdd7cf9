from __future__ import annotations

from itertools import groupby

import numpy as np
import pytest
import rjieba
from hypothesis import given, settings
from hypothesis import strategies as st

from maskery.errors import UnknownName
from maskery.text.words import SEGMENTERS, auto, segmenter

MIXED = st.text(
    alphabet=st.one_of(
        st.characters(codec="utf-8"),
        st.sampled_from("我们中国人民北京大学abcABC019'’ \t\n.,。é\u0301\u200d\ufe0fไทยかな👍🏽🇨🇳"),
    )
)


def words(text):
    numbers = auto(text)
    found = [
        "".join(c for c, _ in group) for _, group in groupby(zip(text, numbers, strict=True), key=lambda pair: pair[1])
    ]
    return [word for word in found if not word.isspace()]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I don't like 'it'.", ["I", "don't", "like", "'", "it", "'", "."]),
        ("l’été, rock'n'roll", ["l’été", ",", "rock'n'roll"]),
        ("covid19 is 3.14%", ["covid19", "is", "3", ".", "14", "%"]),
        ("cafe\u0301s naïve", ["cafe\u0301s", "naïve"]),
        ("周杰伦在北京", ["周杰伦", "在", "北京"]),
        ("hello你好world。", ["hello", "你好", "world", "。"]),
        ("!!..", ["!", "!", ".", "."]),
        ("中\ufe00国 人民", ["中\ufe00国", "人民"]),
        ("ひらカタカナ", ["ひ", "ら", "カタカナ"]),
        ("спасибо большое", ["спасибо", "большое"]),
        ("👍🏽 ok", ["👍🏽", "ok"]),
        ("👨\u200d👩\u200d👧👧", ["👨\u200d👩\u200d👧", "👧"]),
        ("🇨🇳🇺🇸🇨a", ["🇨🇳", "🇺🇸", "🇨", "a"]),
        ("❤\ufe0f1\ufe0f\u20e3", ["❤\ufe0f", "1\ufe0f\u20e3"]),
        ("🏽", ["🏽"]),
        ("a\u200d👍", ["a\u200d", "👍"]),
        ("a \u0301\u0301 \u0301b", ["a", "\u0301\u0301", "\u0301", "b"]),
    ],
)
def test_words(text, expected):
    assert words(text) == expected


@settings(deadline=None)
@given(MIXED)
def test_numbers_are_contiguous_and_spaces_part_words(text):
    numbers = auto(text)
    assert numbers.size == len(text)
    steps = np.diff(numbers)
    assert ((steps == 0) | (steps == 1)).all()
    for word in words(text):
        assert not any(character.isspace() for character in word), "no word reaches over white space"


@settings(deadline=None)
@given(st.lists(MIXED.map(lambda text: text.replace("\n", " ")), max_size=4))
def test_a_line_does_not_depend_on_its_neighbours(lines):
    together = auto("\n".join(lines))
    at = 0
    for line in lines:
        ours, alone = together[at : at + len(line)], auto(line)
        assert (np.diff(ours) == np.diff(alone)).all()
        at += len(line) + 1


@settings(deadline=None)
@given(st.text(alphabet="我们中国人民北京大学看周杰伦演唱会", min_size=1))
def test_han_runs_are_cut_as_jieba_cuts_them(text):
    assert words(text) == rjieba.cut(text)


def test_modes_are_closed():
    assert SEGMENTERS.names() == ["auto", "none"]
    assert segmenter("none")("text") is None
    with pytest.raises(UnknownName):
        segmenter("atuo")
