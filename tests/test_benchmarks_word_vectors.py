"""The tables about word vectors in the docs: who is shown, and what counts as right."""

import numpy as np
import pytest

from benchmarks import word_vectors
from maskery.knowledge.table import SimilarTable
from maskery.words.vectors import WordVectors


def vectors_of(words):
    """Each word stands alone, but b - a = d - c for the first analogy."""
    matrix = np.random.default_rng(0).standard_normal((len(words), 16)).astype(np.float32)
    place = {word: number for number, word in enumerate(words)}
    a, b, c, d = word_vectors.asked()[0]
    if {a, b, c, d} <= place.keys():
        matrix[place[d]] = matrix[place[c]] + matrix[place[b]] - matrix[place[a]]
    counts = np.arange(len(words), 0, -1)
    return WordVectors(words, counts, matrix, {})


def test_common_words_are_one_in_twenty_of_chinese_words_of_two_characters():
    long = [f"一{chr(0x4E00 + number)}" for number in range(45)]
    mixed = [each for word in long for each in (word, "的", f"x{word}")]
    assert word_vectors.common(vectors_of(mixed), 3) == [long[0], long[20], long[40]]
    assert word_vectors.common(vectors_of(mixed), 2) == [long[0], long[20]]


def test_the_words_of_a_table_stand_beside_the_neighbours():
    words = [f"一{chr(0x4E00 + number)}" for number in range(30)]
    table = SimilarTable(entries={words[0]: [(words[3], 0.9)]}, tokenizer="x", made={})
    lines = word_vectors.words_table(vectors_of(words), table, 2)
    assert len(lines) == 4
    assert lines[2].startswith(f"| {words[0]} | ")
    assert lines[2].endswith(f" | {words[3]} |")
    assert lines[3].endswith("| (none) |")


def test_a_right_first_answer_is_counted_and_a_missing_word_is_told():
    first = word_vectors.asked()[0]
    lines = word_vectors.analogies_table({"toy": vectors_of([*first, "山", "水", "火"])})
    assert f"**{first[3]}**" in lines[2]
    assert "has no vector" in lines[3]
    assert lines[-1] == "| first is right | | 1 of 20 |"


def test_there_are_twenty_analogies_of_four_different_words():
    assert len({tuple(each) for each in word_vectors.asked()}) == 20
    assert all(len(set(each)) == 4 for each in word_vectors.asked())


@pytest.mark.parametrize(
    ("one", "two", "shared"), [("Aa01A01", "Aa01A01", 7), ("Aa01A01", "Aa01B01", 4), ("A", "B", 0)]
)
def test_codes_agree_from_their_beginning(one, two, shared):
    assert word_vectors._shared(one, two) == shared


def test_pairs_of_cilin_carry_how_much_of_their_codes_agree(tmp_path):
    cilin = tmp_path / "cilin.txt"
    cilin.write_text("Aa01A01= 人 士\nAa01B01= 男 女\nBb02C03= 山 峰\n", encoding="utf-8")
    pairs = word_vectors.cilin_pairs(cilin, {"人", "士", "男", "女", "山"}, 200)
    scores = {frozenset(pair[:2]): pair[2] for pair in pairs}
    assert scores[frozenset("人士")] == 7
    assert scores[frozenset("人男")] == 4
    assert scores[frozenset("人山")] == 0
    assert not any("峰" in pair[:2] for pair in pairs)
