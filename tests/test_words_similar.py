"""Tables of similar words against the rules as they are said: length, frequency, part of speech, cosine or group."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_tokenizers import KINDS

from maskery.cli import main
from maskery.errors import InputError
from maskery.knowledge.load import read_similar
from maskery.knowledge.table import SimilarTable
from maskery.text.tokenizer import Tokenizer
from maskery.text.training import LAYOUT
from maskery.words import similar as module
from maskery.words.similar import Counts, Rules, part_of_speech, similar_words
from maskery.words.vectors import WordVectors

LETTERS = "abcdefgh"
SMALL = Tokenizer.from_pieces([*LAYOUT, *LETTERS, *(f"##{letter}" for letter in LETTERS)])
"""A word of n letters has n tokens; capitals are written as small letters."""
EVERY = Rules(floor=0)


def vectors(words, seed=0, counts=None, width=5):
    matrix = np.random.default_rng(seed).normal(size=(len(words), width)).astype(np.float32)
    return WordVectors(words, np.zeros(len(words), dtype=np.int64) if counts is None else counts, matrix)


def names(found):
    return {word: [other for other, _ in scored] for word, scored in found.table.entries.items()}


def within(one, other, ratio):
    more, less = max(one, other) + 1, min(one, other) + 1
    return not ratio or more / less <= ratio * (1 + 1e-12)


WORD = st.text(alphabet="abAz", min_size=1, max_size=3)


@settings(max_examples=60)
@given(
    words=st.lists(WORD, min_size=1, max_size=14, unique=True),
    nearest=st.integers(1, 4),
    floor=st.integers(0, 3),
    seed=st.integers(0, 3),
    cells=st.sampled_from([1, 7, 1 << 24]),
)
def test_vectors_give_the_nearest_that_may_stand_for_a_word(words, nearest, floor, seed, cells):
    source = vectors(words, seed)
    source.matrix[::5] = 0
    text = ["a", "ab", "aba", "b"]
    counts = Counts(text, np.array([5, 2, 1, 3]))
    before, module._CELLS = module._CELLS, cells
    try:
        found = similar_words(source, SMALL, Rules(nearest=nearest, floor=floor), counts=counts)
    finally:
        module._CELLS = before
    kept = {}
    for number, word in enumerate(words):
        if "z" not in word:
            kept.setdefault(word.lower(), number)
    often = dict(zip(text, counts.counts.tolist(), strict=True))
    expected = {}
    for word, own in kept.items():
        cosine = {}
        for other, at in kept.items():
            one, two = source.matrix[own].astype(float), source.matrix[at].astype(float)
            if at != own and len(other) == len(word) and often.get(other, 0) >= floor and one.any() and two.any():
                cosine[words[at]] = one @ two / np.linalg.norm(one) / np.linalg.norm(two)
        if cosine:
            expected[words[own]] = sorted(cosine.items(), key=lambda item: -item[1])[:nearest]
    assert names(found) == {word: [other for other, _ in best] for word, best in expected.items()}
    for word, best in expected.items():
        assert [score for _, score in found.table.entries[word]] == pytest.approx(
            [score for _, score in best], abs=1e-5
        )
    assert list(found.table.entries) == [word for word in words if word in expected], "in the order of the source"
    unwritten = sum("z" in word for word in words)
    assert (found.given, found.unknown) == (len(words), unwritten)
    assert found.alike == len(words) - unwritten - len(kept)
    assert found.rare == sum(often.get(word, 0) < floor for word in kept)
    assert found.undirected == sum(not source.matrix[number].any() for number in kept.values())
    assert found.alone == len(kept) - found.undirected - len(expected)


@settings(max_examples=60)
@given(
    groups=st.lists(st.lists(WORD, min_size=2, max_size=6), max_size=5),
    nearest=st.integers(1, 3),
    counted=st.dictionaries(st.text(alphabet="ab", min_size=1, max_size=3), st.integers(1, 9), min_size=1, max_size=8),
    floor=st.integers(0, 4),
    ratio=st.sampled_from([0.0, 1.0, 1.6, 3.0]),
)
def test_a_thesaurus_gives_the_commonest_of_the_groups(groups, nearest, counted, floor, ratio):
    counts = Counts(list(counted), np.array(list(counted.values())))
    rules = Rules(nearest=nearest, floor=floor, frequency_ratio=ratio)
    found = similar_words([(group, True) for group in groups], SMALL, rules, counts=counts)
    first, others = {}, {}
    for word in (word for group in groups for word in group if "z" not in word):
        first.setdefault(word.lower(), word)
    for group in groups:
        small = [word.lower() for word in group if "z" not in word]
        for word in small:
            others.setdefault(word, set()).update(small)
    order = list(first)
    expected = {}
    for word in order:
        may = [each for each in others[word] - {word} if len(each) == len(word) and counted.get(each, 0) >= floor]
        may = [each for each in may if within(counted.get(each, 0), counted.get(word, 0), ratio)]
        best = sorted(may, key=lambda each: (-counted.get(each, 0), order.index(each)))[:nearest]
        if best:
            expected[first[word]] = [first[each] for each in best]
    assert names(found) == expected
    assert {score for scored in found.table.entries.values() for _, score in scored} <= {1.0}


def test_a_rare_word_does_not_stand_for_a_common_one():
    counts = Counts(["ab", "cd", "ef"], np.array([999, 500, 9]))
    source = WordVectors(["ab", "cd", "ef"], counts.counts, np.array([[1, 0], [0.5, 0.5], [1, 0.1]], dtype=np.float32))
    assert names(similar_words(source, SMALL, EVERY, counts=counts))["ab"] == ["ef", "cd"]
    near = similar_words(source, SMALL, Rules(floor=0, frequency_ratio=10), counts=counts)
    assert names(near) == {"ab": ["cd"], "cd": ["ab"]}
    assert near.table.made["frequency_ratio"] == 10
    with pytest.raises(InputError, match=r"frequency_ratio is 0\.5: at least 1 is wanted"):
        Rules(frequency_ratio=0.5)


def test_without_counts_there_is_no_floor():
    found = similar_words([(["ab", "cd"], True)], SMALL, Rules(floor=99))
    assert names(found) == {"ab": ["cd"], "cd": ["ab"]}
    assert found.rare == 0


def test_counts_of_words_that_are_spelt_alike_are_added():
    counts = Counts(["ab", "AB", "zz"], np.array([2, 3, 100]))
    source = [(["ab", "cd"], True)]
    assert names(similar_words(source, SMALL, Rules(floor=5), counts=counts)) == {"cd": ["ab"]}
    assert names(similar_words(source, SMALL, Rules(floor=6), counts=counts)) == {}


def test_part_of_speech():
    tags = {"喜欢": "v", "周杰伦": "n", "北京大学": "n", "周杰伦演唱会": "n", "hello": "e", "": ""}
    assert {word: part_of_speech(word) for word in tags} == tags


def test_words_of_one_part_of_speech_only():
    words = ["喜欢", "喜爱", "北京", "大学"]
    pieces = sorted({sign for word in words for sign in word})
    tokenizer = Tokenizer.from_pieces([*LAYOUT, *pieces])
    rules = Rules(floor=0, same_part_of_speech=True)
    expected = {"喜欢": ["喜爱"], "喜爱": ["喜欢"], "北京": ["大学"], "大学": ["北京"]}
    assert names(similar_words([(words, True)], tokenizer, rules)) == expected
    assert names(similar_words(vectors(words), tokenizer, rules)) == expected
    assert all(len(others) == 3 for others in names(similar_words(vectors(words), tokenizer, EVERY)).values())
    assert names(similar_words([], tokenizer, rules)) == {}


@pytest.mark.parametrize("kind", KINDS)
def test_similar_words_have_as_many_tokens_whatever_the_tokenizer(kind, tmp_path):
    tokenizer = KINDS[kind]
    words = ["我们", "北京", "大学", "周杰伦", "演唱会", "don", "new", "the", "dog", "去"]
    found = similar_words(vectors(words), tokenizer, EVERY)
    length = {word: len(tokenizer.encode_raw([word])[0][0]) for word in words}
    assert found.table.entries
    for word, others in names(found).items():
        assert set(others) == {each for each in words if length[each] == length[word]} - {word}
    found.table.save(tmp_path / "table.txt")
    assert read_similar(tmp_path / "table.txt", tokenizer).with_similar == len(found.table.entries)


@pytest.mark.parametrize(("rule", "cause"), [({"nearest": 0}, "nearest is 0"), ({"floor": -1}, "floor is -1")])
def test_rules_that_make_no_sense_are_refused(rule, cause):
    with pytest.raises(InputError, match=cause):
        Rules(**rule)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    folder = tmp_path_factory.mktemp("similar")
    text = folder / "text.txt"
    lines = "The dog sees the cat.\nThe cat sees a bird.\nA bird sees the dog.\n\n"
    text.write_text(lines * 4 + "One owl came.\n", encoding="utf-8")
    arguments = ["--heldout", "0", "--keep-duplicates", "--kind", "char"]
    assert main(["corpus", "build", str(text), "--out", str(folder / "corpus"), *arguments]) == 0
    return str(folder / "corpus")


VECTORS = "5 2\ndog 1 0\ncat 0.9 0.1\nowl 1 0.01\nbird 0 1\nsees 0.1 1\n"


def made(tmp_path, corpus, *arguments, source=VECTORS):
    file = tmp_path / "source.txt"
    file.write_text(source, encoding="utf-8")
    return main(["words", "similar", str(file), "--out", str(tmp_path / "table.txt"), *arguments])


def test_the_command_makes_a_table_that_a_recipe_reads(tmp_path, corpus, capsys):
    assert made(tmp_path, corpus, "--corpus", corpus, "--json") == 0
    told = capsys.readouterr()
    answer = json.loads(told.out)
    assert (answer["words"], answer["given"], answer["rare"], answer["counts"]) == (5, 5, 1, "corpus")
    assert "never offered, as they are rarer than 5 in the text (they may have similar words): 1 word" in told.err
    table = SimilarTable.read(tmp_path / "table.txt")
    assert [other for other, _ in table.similar("dog")] == ["cat"], "owl is nearer, but stands there once"
    assert [other for other, _ in table.similar("owl")] == ["dog", "cat"]
    assert [other for other, _ in table.similar("bird")] == ["sees"]
    asked = ["inspect", "macbert", "--corpus", corpus, "--set", f"knowledge.synonyms={tmp_path / 'table.txt'}"]
    assert main([*asked, "--rows", "2"]) == 0
    assert "similar words: 5 of" in capsys.readouterr().err


def test_the_command_shows_a_table(tmp_path, corpus, capsys):
    assert made(tmp_path, corpus, "--corpus", corpus, "--floor", "0", "--nearest", "1") == 0
    assert "5 of 5" in capsys.readouterr().out
    table = str(tmp_path / "table.txt")
    assert main(["words", "similar", table, "--word", "dog"]) == 0
    assert capsys.readouterr().out.splitlines()[1:] == ["dog  owl 1.00"]
    assert main(["words", "similar", table, "--json"]) == 0
    assert list(json.loads(capsys.readouterr().out)["similar"]) == ["dog", "cat", "owl", "bird", "sees"]
    assert main(["words", "similar", table, "--word", "dgo"]) == 2
    assert "did you mean dog?" in capsys.readouterr().err
    assert main(["words", "similar", table, "--out", "other.txt"]) == 2
    assert "is a table already; --out would make one" in capsys.readouterr().err
    assert main(["words", "similar", table, "--nearest", "3", "--floor", "1", "--same-part-of-speech"]) == 2
    assert "--nearest, --floor, --same-part-of-speech would make one" in " ".join(capsys.readouterr().err.split())


def test_a_tokenizer_alone_and_counts_from_elsewhere(tmp_path, corpus, capsys):
    assert made(tmp_path, corpus, "--tokenizer", corpus) == 0
    assert "how common words are is not known" in capsys.readouterr().err
    first = SimilarTable.read(tmp_path / "table.txt")
    assert [other for other, _ in first.similar("dog")] == ["owl", "cat"]
    (tmp_path / "table.txt").unlink()
    assert made(tmp_path, corpus, "--tokenizer", corpus, "--frequency-from", corpus, source="dog cat owl\n") == 0
    second = SimilarTable.read(tmp_path / "table.txt")
    assert second.entries == {"dog": [("cat", 1.0)], "cat": [("dog", 1.0)], "owl": [("dog", 1.0), ("cat", 1.0)]}


@pytest.mark.parametrize(
    ("arguments", "source", "told"),
    [
        (["--corpus", "CORPUS", "--tokenizer", "CORPUS"], VECTORS, "both give a tokenizer"),
        ([], VECTORS, "give one of --corpus DIR and --tokenizer DIR"),
        (["--tokenizer", "CORPUS", "--floor", "3"], VECTORS, "--floor 3 needs to know how common words are"),
        (["--corpus", "CORPUS", "--nearest", "0"], VECTORS, "nearest is 0"),
        (["--corpus", "CORPUS", "--word", "dog"], VECTORS, "--word shows a table that is made"),
        (["--corpus", "CORPUS", "--floor", "99"], VECTORS, "or a lower --floor than 99"),
        (["--corpus", "CORPUS"], "北京 大学\n", "in the language of the corpus"),
        (["--corpus", "CORPUS"], "dog\n", "holds neither word vectors nor"),
        (["--corpus", "CORPUS"], "", "holds neither word vectors nor"),
        (["--corpus", "CORPUS"], "dog 1 2\ncat nan 1\n", "source.txt:2"),
        (["--corpus", "CORPUS"], "2 2\ndog 1 2\ncat 1\n", "source.txt:3"),
        (["--corpus", "nothing"], VECTORS, "no such folder"),
    ],
)
def test_bad_input_is_refused_and_leaves_nothing(tmp_path, corpus, capsys, arguments, source, told):
    arguments = [corpus if each == "CORPUS" else each for each in arguments]
    assert made(tmp_path, corpus, *arguments, source=source) == 2
    assert told in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["source.txt"]


def test_what_is_there_is_not_overwritten(tmp_path, corpus, capsys):
    (tmp_path / "table.txt").write_text("mine", encoding="utf-8")
    assert made(tmp_path, corpus, "--corpus", corpus) == 2
    assert "is already there" in capsys.readouterr().err
    assert (tmp_path / "table.txt").read_text(encoding="utf-8") == "mine"
    assert main(["words", "similar", str(tmp_path / "nothing"), "--out", "x", "--corpus", corpus]) == 2
    assert "no such file or folder" in capsys.readouterr().err
    assert main(["words", "similar", str(tmp_path / "source.txt"), "--corpus", corpus]) == 2
    assert "--out is missing" in capsys.readouterr().err
