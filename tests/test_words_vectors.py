"""Word vectors: kept in a folder, exchanged with word2vec's files, asked for neighbours and analogies."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest
from crash import contents
from gensim.models import KeyedVectors
from hypothesis import given
from hypothesis import strategies as st

from maskery.errors import ExistsError, InputError, TextError
from maskery.words.subwords import Subwords, initial_ngrams, ngrams
from maskery.words.vectors import WordVectors

WORDS = ["，", "北京", "上海", "Dog", "dog", "don't", "quiet", "▁x"]


def made(width=5, seed=0, subwords=None):
    draw = np.random.default_rng(seed)
    matrix = draw.standard_normal((len(WORDS), width)).astype(np.float32)
    counts = np.arange(len(WORDS), 0, -1) * 7
    return WordVectors(WORDS, counts, matrix, {"training": {"min_count": 5}}, subwords=subwords)


def parts(width=5):
    bucket = np.unique(ngrams(WORDS, 3, 6, 1000)[0])
    matrix = initial_ngrams(9, bucket, width) + 1
    return Subwords(bucket=bucket, matrix=matrix, shortest=3, longest=6, buckets=1000, seed=9)


def same(one, other):
    assert one.words == other.words
    assert one.matrix.tobytes() == other.matrix.tobytes()


def test_a_folder_comes_back_as_it_was(tmp_path):
    vectors = made(subwords=parts())
    vectors.save(tmp_path / "v")
    again = WordVectors.load(tmp_path / "v")
    same(vectors, again)
    assert again.counts.tolist() == vectors.counts.tolist()
    assert again.facts == vectors.facts
    assert (again.vector("dogs") == vectors.vector("dogs")).all()
    vectors.save(tmp_path / "w")
    assert contents(tmp_path / "v") == contents(tmp_path / "w")
    with pytest.raises(ExistsError, match="already there"):
        vectors.save(tmp_path / "v")
    made(seed=1).save(tmp_path / "v", replace=True)
    assert WordVectors.load(tmp_path / "v").subwords is None


@pytest.mark.parametrize("binary", [False, True], ids=["text", "binary"])
def test_files_come_back_bit_for_bit_and_gensim_reads_them(tmp_path, binary):
    vectors = made()
    vectors.matrix[0, :3] = [1e-42, -3.4e38, 0.1]
    vectors.export(tmp_path / "v", binary=binary)
    same(vectors, WordVectors.load(tmp_path / "v"))
    theirs = KeyedVectors.load_word2vec_format(tmp_path / "v", binary=binary)
    assert theirs.index_to_key == WORDS
    assert theirs.vectors.tobytes() == vectors.matrix.tobytes()
    theirs.save_word2vec_format(tmp_path / "theirs", binary=binary)
    same(vectors, WordVectors.load(tmp_path / "theirs"))
    with pytest.raises(ExistsError, match="already there"):
        vectors.export(tmp_path / "v")


@given(
    st.lists(
        st.text(st.characters(blacklist_categories=["Z", "C"]), min_size=1, max_size=4).filter(
            lambda w: w.split() == [w]
        ),
        min_size=1,
        max_size=8,
        unique=True,
    ),
    st.integers(1, 4),
    st.booleans(),
    st.data(),
)
def test_any_words_and_numbers_survive(tmp_path_factory, words, width, binary, data):
    numbers = st.floats(width=32, allow_nan=False, allow_infinity=False)
    rows = data.draw(
        st.lists(st.lists(numbers, min_size=width, max_size=width), min_size=len(words), max_size=len(words))
    )
    vectors = WordVectors(words, np.zeros(len(words)), np.array(rows, dtype=np.float32))
    file = tmp_path_factory.mktemp("any") / "v"
    vectors.export(file, binary=binary)
    same(vectors, WordVectors.load(file))


def test_glove_files_have_no_first_line_and_words_with_spaces(tmp_path):
    (tmp_path / "v.txt").write_text("the 1 2\n. . . 3 4\nthe 5 6\nat a@b.de 7 8\n", encoding="utf-8")
    found = WordVectors.load(tmp_path / "v.txt")
    assert found.words == ["the", ". . .", "at a@b.de"]
    assert found.matrix.tolist() == [[1, 2], [3, 4], [7, 8]]
    assert found.notes == [f"{tmp_path / 'v.txt'}: 1 words are given again: the first vector of each counts"]
    with pytest.raises(InputError, match=r"the word '\. \. \.' holds a space"):
        found.export(tmp_path / "out")


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("2 3\na 1 2 3\nb 1 2\n", r":3: 'b' has 2 numbers, the file has vectors of 3"),
        ("2 3\na 1 2 3\nb 1 2 3 4\n", r":3: 'b' has 4 numbers, the file has vectors of 3"),
        ("a 1 2 3\nb 1 nan 3\n", r":2: the vector of 'b' holds a value that is no number"),
        ("a 1 2 3\nb 1 1e99 3\n", r":2: the vector of 'b' holds a value that is no number"),
        ("a 1 2 3\n\nb 1 x 3\n", r":3: 'x' is no number"),
        ("3 3\na 1 2 3\nb 1 2 3\n", r":1: the first line says 3 words, the file has 2"),
        ("0 3\n", r":1: the first line says that there is nothing"),
        ("hello\nthere\n", r":1: a word and its numbers were expected"),
        ("", r"there is no vector in the file"),
    ],
    ids=["short", "long", "nan", "overflow", "no-number", "cut", "none", "a-list", "empty"],
)
def test_bad_text_is_refused_with_its_line(tmp_path, text, cause):
    (tmp_path / "v.txt").write_text(text, encoding="utf-8")
    with pytest.raises(TextError, match=cause) as caught:
        WordVectors.load(tmp_path / "v.txt")
    assert caught.value.repair


def test_bad_binary_is_refused(tmp_path):
    vectors = made()
    file = vectors.export(tmp_path / "v.bin", binary=True)
    whole = file.read_bytes()
    (tmp_path / "cut").write_bytes(whole[:-12])
    (tmp_path / "short").write_bytes(whole[:40])
    (tmp_path / "more").write_bytes(whole + b"more")
    vectors.matrix[3, 2] = np.nan
    vectors.export(tmp_path / "nan", binary=True)
    (tmp_path / "packed").write_bytes(b"\x1f\x8b" + whole)
    (tmp_path / "gbk").write_bytes(whole.replace("北京".encode(), "北京".encode("gbk"), 1))
    causes = {
        "cut": "goes wrong at word 8 of 8",
        "short": "too short",
        "more": "goes on behind its 8 words: 4 bytes",
        "nan": "word 4, 'Dog', holds a value that is no number",
        "packed": "compressed",
        "gbk": "word 2 is not UTF-8",
    }
    for name, cause in causes.items():
        with pytest.raises(InputError, match=cause) as caught:
            WordVectors.load(tmp_path / name)
        assert str(tmp_path / name) in str(caught.value)
        assert caught.value.repair


def test_a_damaged_folder_is_refused(tmp_path):
    folder = made().save(tmp_path / "v")
    for name in ("words.txt", "counts.bin", "vectors.safetensors", "manifest.json"):
        whole = (folder / name).read_bytes()
        (folder / name).write_bytes(whole[:-9] + bytes([whole[-9] ^ 1]) + whole[-8:])
        with pytest.raises(InputError, match=r"checksum|cannot be read") as caught:
            WordVectors.load(folder)
        assert str(folder) in str(caught.value)
        (folder / name).write_bytes(whole)
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    for wrong, cause in (
        ({**manifest, "maskery": "corpus"}, "of another kind"),
        ({**manifest, "format": 9}, "format 9"),
    ):
        (folder / "manifest.json").write_text(json.dumps(wrong), encoding="utf-8")
        with pytest.raises(InputError, match=cause):
            WordVectors.load(folder)
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=r"no word vectors here"):
        WordVectors.load(tmp_path / "empty")
    with pytest.raises(InputError, match=r"no such folder or file"):
        WordVectors.load(tmp_path / "nowhere")


def test_vectors_that_are_none_are_refused():
    with pytest.raises(
        InputError, match=r"2 vectors hold a value that is no number \(nan or inf\), the first that of 'b'"
    ):
        WordVectors(["a", "b", "c"], np.zeros(3), np.array([[1.0], [np.nan], [np.inf]]))
    with pytest.raises(InputError, match="2 words, 3 counts"):
        WordVectors(["a", "b"], np.zeros(3), np.ones((3, 2)))


def cosine(a, b):
    return float(a @ b / np.sqrt((a @ a) * (b @ b)))


def test_neighbours_and_analogies_are_those_of_a_slow_search():
    vectors = made(seed=3)
    rows = dict(zip(WORDS, vectors.matrix.astype(np.float64), strict=True))

    def ordered(target, without):
        found = [(word, cosine(target, row)) for word, row in rows.items() if word not in without]
        return sorted(found, key=lambda each: -each[1])

    near = vectors.neighbours("dog", 4)
    wanted = ordered(rows["dog"], ["dog"])[:4]
    assert [word for word, _ in near] == [word for word, _ in wanted]
    assert [each for _, each in near] == pytest.approx([each for _, each in wanted], abs=1e-6)
    assert len(vectors.neighbours("dog", 100)) == len(WORDS) - 1
    unit = {word: row / np.linalg.norm(row) for word, row in rows.items()}
    answer = vectors.analogy("北京", "上海", "dog", 3)
    wanted = ordered(unit["上海"] - unit["北京"] + unit["dog"], ["北京", "上海", "dog"])[:3]
    assert [word for word, _ in answer] == [word for word, _ in wanted]
    assert [each for _, each in answer] == pytest.approx([each for _, each in wanted], abs=1e-6)
    theirs = KeyedVectors(5)
    theirs.add_vectors(WORDS, vectors.matrix)
    assert near == [(word, pytest.approx(each, abs=1e-6)) for word, each in theirs.most_similar("dog", topn=4)]
    listed = theirs.most_similar(positive=["上海", "dog"], negative=["北京"], topn=3)
    assert answer == [(word, pytest.approx(each, abs=1e-6)) for word, each in listed]


def test_unknown_words_are_told_with_near_spellings():
    vectors = made()
    with pytest.raises(InputError, match="no vector of 'quiets'") as caught:
        vectors.neighbours("quiets")
    assert (
        caught.value.repair == "did you mean quiet? give one of the 8 words (they stand 5 times or more in the corpus)"
    )
    with pytest.raises(InputError) as caught:
        vectors.vector("QUIET")
    assert "did you mean quiet?" in caught.value.repair
    with pytest.raises(InputError) as caught:
        vectors.vector("龘")
    assert caught.value.repair.startswith("give one of")


def test_a_vector_of_nothing_is_near_to_nothing():
    vectors = WordVectors(["a", "b", "c"], np.zeros(3), np.array([[1.0, 0], [0, 0], [1, 1]]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert vectors.neighbours("b", 2) == [("a", 0.0), ("c", 0.0)]
        assert vectors.neighbours("a", 2)[0][0] == "c"


@pytest.mark.parametrize("size", [1e30, 1e-30], ids=["huge", "tiny"])
def test_vectors_of_any_size_have_neighbours(size):
    """The square of such a number is no float32: it would be infinite, or zero."""
    plain = np.array([[1.0, 0.1], [1, 0.2], [-1, 3]])
    found = WordVectors(["a", "b", "c"], np.zeros(3), plain * size)
    wanted = WordVectors(["a", "b", "c"], np.zeros(3), plain)
    assert found.unit == pytest.approx(wanted.unit, abs=1e-6)
    assert dict(found.neighbours("a")) == pytest.approx(dict(wanted.neighbours("a")), abs=1e-6)
    assert found.neighbours("a")[0][0] == "b"


@pytest.mark.parametrize("first", ["4 2\n", ""], ids=["header", "no header"])
def test_a_byte_order_mark_and_wide_spaces_are_read(tmp_path, first):
    text = f"\ufeff{first}\u3000 1 2\n\u00a0 3\t4 \n\u3000 \u3000 5 6\n天 7 8\r\n"
    (tmp_path / "v.txt").write_text(text, encoding="utf-8", newline="")
    found = WordVectors.load(tmp_path / "v.txt")
    assert found.words == ["\u3000", "\u00a0", "\u3000 \u3000", "天"]
    assert found.matrix.tolist() == [[1, 2], [3, 4], [5, 6], [7, 8]]


def test_unseen_words_are_made_of_their_ngrams():
    vectors = made(subwords=parts())
    numbers, _ = ngrams(["dogs"], 3, 6, 1000)
    rows = []
    for number in numbers.tolist():
        known = np.flatnonzero(vectors.subwords.bucket == number)
        begun = initial_ngrams(9, np.array([number]), 5)[0]
        rows.append(vectors.subwords.matrix[known[0]] if known.size else begun)
    assert 1 < sum(row.mean() > 0.5 for row in rows) < len(rows), "some are trained, some are not"
    assert vectors.vector("dogs") == pytest.approx(np.mean(rows, axis=0), abs=1e-6)
    assert len(vectors.neighbours("dogs", 3)) == 3
    with pytest.raises(InputError, match="no vector of ''"):
        vectors.vector("")
    with pytest.raises(InputError, match="no vector of '龘龘'"):
        vectors.vector("龘龘")
