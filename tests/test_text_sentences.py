from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maskery.text.sentences import boundaries, split


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("他说：“你好。”然后走了！", ["他说：“你好。”", "然后走了！"]),
        ("真的吗？！是的……对吧?好!行", ["真的吗？！", "是的……", "对吧?", "好!", "行"]),
        ("一；二。  三", ["一；", "二。  ", "三"]),
        ("It ended. A new (yes!) began. “So?” he asked.", ["It ended. ", "A new (yes!) began. ", "“So?” he asked."]),
        ('"Stop!" He ran. 42 came.', ['"Stop!" ', "He ran. ", "42 came."]),
        ("He saw it... then left.", ["He saw it... then left."]),
        ("One. 你好", ["One. ", "你好"]),
        ("क्या? हाँ। ठीक है।", ["क्या? ", "हाँ। ", "ठीक है।"]),
    ],
)  # fmt: skip
def test_splits(text, sentences):
    assert split(text) == sentences


@pytest.mark.parametrize(
    "text",
    [
        "Mr. Smith and Dr. Jones met Prof. Li.",
        "J. R. R. Tolkien wrote it.",
        "The U.S. Army came, e.g. Bob.",
        "It costs 3.14 dollars at example.com today.",
        "See No. 5 and Fig. 3, Jan. 6.",
        "1. Introduction to words",
        "Yahoo! is not an end when small letters follow.",
        "圆周率是3.14左右，版本v2.0好用",
    ],
)
def test_does_not_split(text):
    assert split(text) == [text]


def test_abbreviation_before_a_word_may_end_a_sentence():
    assert split("He said no. Then he left.") == ["He said no. ", "Then he left."]


@given(st.text(alphabet=st.one_of(st.characters(codec="utf-8"), st.sampled_from("。！？；….!?”\"') \n\tAa1你好"))))
def test_sentences_tile_the_line(text):
    starts = boundaries(text)
    assert "".join(split(text)) == text
    assert all(split(text))
    assert starts == sorted(set(starts))
    assert starts[:1] == ([0] if text else [])
