"""Tables of similar words: written and read back, refused if cut, changed or made for another tokenizer."""

from __future__ import annotations

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_tokenizers import KINDS

from maskery.errors import InputError, TextError
from maskery.knowledge.config import KnowledgeConfig
from maskery.knowledge.load import read_similar, similar_words
from maskery.knowledge.table import SimilarTable, is_table

TOKENIZER = KINDS["wordpiece"]
ENTRIES = {"北京": [("大学", 0.75), ("我们", 0.5)], "the": [("dog", -0.25)]}


def table(entries=ENTRIES, tokenizer=TOKENIZER):
    return SimilarTable(entries=entries, tokenizer=tokenizer.fingerprint, made={"source": "vectors", "floor": 5})


def saved(folder, **options):
    file = folder / "similar.txt"
    table(**options).save(file)
    return file


def test_the_file_is_what_it_is_said_to_be(tmp_path):
    first, *lines = saved(tmp_path).read_text(encoding="utf-8").splitlines()
    assert lines == ["北京\t大学\t0.7500\t我们\t0.5000", "the\tdog\t-0.2500"]
    assert json.loads(first.removeprefix("# ")) == {
        "maskery": "similar words",
        "format": 1,
        "tokenizer": TOKENIZER.fingerprint,
        "words": 2,
        "pairs": 3,
        "made": {"source": "vectors", "floor": 5},
    }


WORD = st.text(alphabet="ab 北京,#=", min_size=1, max_size=4).filter(str.strip)
SCORED = st.lists(st.tuples(WORD, st.integers(-10_000, 10_000).map(lambda n: n / 10_000)), min_size=1, max_size=3)


@given(entries=st.dictionaries(WORD, SCORED, max_size=4))
def test_what_is_written_is_read_back(tmp_path_factory, entries):
    file = saved(tmp_path_factory.getbasetemp(), entries=entries)
    assert is_table(file)
    read = SimilarTable.read(file)
    assert read == table(entries)
    assert list(read.entries) == list(entries), "in the same order"


def test_a_recipe_reads_the_table_at_once(tmp_path):
    similar = similar_words(KnowledgeConfig(synonyms=str(saved(tmp_path))), TOKENIZER)
    assert (similar.words, similar.with_similar, similar.unknown) == (5, 2, 0)


def test_only_the_word_of_a_line_gets_its_others(tmp_path):
    groups = list(table().groups())
    assert groups == [(["北京", "大学", "我们"], False), (["the", "dog"], False)]
    assert read_similar(saved(tmp_path), TOKENIZER).with_similar == 2


def test_another_tokenizer_is_refused(tmp_path):
    file = saved(tmp_path)
    with pytest.raises(InputError, match="made for the tokenizer") as caught:
        read_similar(file, KINDS["char"])
    assert caught.value.where == str(file)
    assert "maskery words similar vectors --corpus DIR --out FILE" in caught.value.repair


def test_a_word_that_is_not_there_is_told_with_those_like_it():
    assert table().similar("the") == [("dog", -0.25)]
    with pytest.raises(InputError, match="the table has no 'teh'") as caught:
        table().similar("teh")
    assert "did you mean the?" in caught.value.repair
    with pytest.raises(InputError, match="no '龘'") as caught:
        table().similar("龘")
    assert "the source lacks" in caught.value.repair


@pytest.mark.parametrize(
    ("change", "cause", "line"),
    [
        (lambda text: text.rpartition("the")[0], "says 2 words, the file has 1", 1),
        (lambda text: text.replace("\t我们\t0.5000", ""), "says 3 pairs, the file has 2", 1),
        (lambda text: text + "the\tdog\t1\n", "'the' is given again: it stands in line 3", 4),
        (lambda text: text + "cafe\tdog\n", "no word with similar ones and their scores", 4),
        (lambda text: text + "cafe\n", "no word with similar ones", 4),
        (lambda text: text + "\tdog\t1\n", "no word with similar ones", 4),
        (lambda text: text + "cafe\t\t1\n", "no word with similar ones", 4),
        (lambda text: text.replace("0.7500", "much"), "a score is no number", 2),
        (lambda text: text.replace("0.7500", "nan"), "a score is no number", 2),
        (lambda text: text.replace('"format": 1', '"format": 7'), "has format 7, this version reads 1", 1),
        (lambda text: text.replace('"pairs": 3', '"pairs": "3"'), "the first line lacks pairs", 1),
        (lambda text: text.replace("}}", ""), "the first line cannot be read", 1),
        (lambda text: text.partition("\n")[0][:-2], "the first line cannot be read", 1),
        (lambda text: text.replace("北京", "\udcff"), "byte 0xff is not UTF-8", 2),
    ],
)
def test_damaged_tables_are_refused_with_file_and_line(tmp_path, change, cause, line):
    file = saved(tmp_path)
    file.write_bytes(change(file.read_text(encoding="utf-8")).encode(errors="surrogateescape"))
    with pytest.raises(TextError, match=cause) as caught:
        read_similar(file, TOKENIZER)
    assert (caught.value.file, caught.value.line) == (str(file), line)
    assert caught.value.repair


@given(at=st.integers(0, 400), byte=st.integers(0, 255))
def test_a_changed_byte_never_ends_in_a_traceback(tmp_path_factory, at, byte):
    file = saved(tmp_path_factory.getbasetemp())
    data = bytearray(file.read_bytes())
    data[at % len(data)] = byte
    file.write_bytes(data)
    with suppress(InputError):
        read_similar(file, TOKENIZER)
