"""The parts of `maskery demo`: its texts, its baselines, its blanks, and what it says in two languages."""

import math
import string
from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maskery.cli.demo import blanks, text, training
from maskery.cli.demo.baselines import Score, baselines
from maskery.cli.demo.own_text import FEWEST_DOCUMENTS, own_documents, pieces_of
from maskery.cli.demo.results import Found
from maskery.cli.demo.words import CHINESE, ENGLISH, WORDS, Words
from maskery.corpus.store import Corpus
from maskery.errors import InputError
from maskery.text.tokenizer import Tokenizer
from maskery.train.frequencies import training_counts, unigram_loss
from maskery.train.tokens import tokens_in


def test_paragraphs_are_prose_on_one_line():
    prose = "The first line of a paragraph\n  goes on here.\n\n>>> x = 1 and this is no prose at all\n\nToo short.\n\n"
    table = "a | b | 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8"
    assert list(text.paragraphs(prose + table)) == ["The first line of a paragraph goes on here."]


def test_docstrings_are_found_at_any_depth():
    source = (
        b"try:\n    pass\nexcept E:\n    if x:\n        def f():\n            'Deep.'\nelse:\n    class C: 'Else.'\n"
    )
    assert sorted(text.docstrings(source)) == ["Deep.", "Else."]


def test_docstrings_are_read_without_running_anything():
    source = b'"""Module."""\nraise SystemExit\ndef f():\n    "Function \\d."\nclass C:\n    """Class."""\n'
    assert list(text.docstrings(source)) == ["Module.", "Function \\d.", "Class."]
    assert list(text.docstrings(b"def (")) == []
    assert list(text.docstrings(b"\0")) == []


def test_a_paragraph_comes_once(monkeypatch):
    twice = "This paragraph stands in two topics.\n\nThis one stands in the {} topic only."
    monkeypatch.setattr(text, "topics", {"a": twice.format("first"), "b": twice.format("second")})
    monkeypatch.setattr(text, "_module_paths", list)
    assert text.python_documents() == [
        "This paragraph stands in two topics.\nThis one stands in the first topic only.",
        "This one stands in the second topic only.",
    ]


def test_the_chinese_text_is_varied_and_long_enough():
    documents = text.chinese_documents()
    whole = "".join(documents)
    assert 25_000 < len(whole.encode()) < 45_000
    assert len(documents) == len(set(documents)) > 100
    assert all(document.strip() == document and document[-1] in "。！？”" for document in documents)
    han = [sign for sign in whole if "\u4e00" <= sign <= "\u9fff"]
    assert len(han) > 0.75 * len(whole)
    assert not any(sign.isascii() and sign.isalnum() for sign in whole)


def test_own_documents_are_taken_as_they_are(tmp_path):
    path = tmp_path / "many.txt"
    path.write_text("\n\n".join(f"Document {n}.\nIts second line." for n in range(FEWEST_DOCUMENTS)))
    own = own_documents(path)
    assert own.documents[3] == "Document 3.\nIts second line."
    assert len(own.documents) == FEWEST_DOCUMENTS
    assert not own.pieces
    assert not own.cut_short


def test_one_long_document_is_cut_into_pieces(tmp_path):
    path = tmp_path / "novel.txt"
    path.write_text("\n".join(f"This is line number {n} of a long story." for n in range(500)))
    own = own_documents(path)
    assert own.pieces
    assert len(own.documents) > FEWEST_DOCUMENTS / 2
    assert "\n".join(own.documents) == path.read_text()


def test_a_long_text_is_cut_short(tmp_path, monkeypatch):
    monkeypatch.setattr("maskery.cli.demo.own_text.LONGEST", 100)
    path = tmp_path / "many.txt"
    path.write_text("\n\n".join(f"This is document number {n}." for n in range(50)))
    own = own_documents(path)
    assert own.cut_short
    assert sum(map(len, own.documents)) < 150


@given(st.lists(st.text(alphabet=string.ascii_letters + " .。", min_size=1, max_size=50), min_size=1, max_size=80))
def test_pieces_lose_no_line(lines):
    document = "\n".join(lines)
    assert "\n".join(pieces_of(document)) == document


def test_pieces_of_one_endless_line_are_sentences():
    found = list(pieces_of("This is a sentence. " * 500))
    assert len(found) > 5
    assert max(map(len, found)) < 1100


@given(st.lists(st.integers(0, 50), min_size=2, max_size=30), st.data())
def test_unigram_loss_is_a_cross_entropy(counts, data):
    labels = np.array(data.draw(st.lists(st.integers(0, len(counts) - 1), min_size=1, max_size=40)))
    probability = [(count + 1) / (sum(counts) + len(counts)) for count in counts]
    assert math.isclose(sum(probability), 1)
    expected = -sum(math.log(probability[label]) for label in labels) / len(labels)
    assert math.isclose(unigram_loss(np.array(counts), labels), expected)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo")
    (folder / "text.txt").write_text("\n\n".join(text.chinese_documents()), encoding="utf-8")
    return Corpus.build([folder / "text.txt"], folder / "corpus", vocab=2500, heldout=0.1, workers=0)


def test_only_training_text_is_counted(corpus):
    counts = training_counts(corpus)
    expected = np.zeros(corpus.vocabulary, dtype=np.int64)
    for document in corpus.documents("train"):
        first, last = corpus.sentence_start[corpus.document_start[document : document + 2]]
        np.add.at(expected, corpus.tokens[first:last], 1)
    assert (counts == expected).all()
    assert 0 < tokens_in(corpus, "heldout") == corpus.counts["tokens"] - counts.sum()


def test_baselines(corpus):
    recipe = training._open_ended(corpus, seed=3).changed({"training.steps": 4, "model.layers": 1})
    scores, questions = baselines(recipe, corpus)
    assert list(scores) == ["most frequent token", "unigram", "untrained"]
    assert questions > 50
    assert scores["most frequent token"].loss is None
    assert scores["unigram"].accuracy == scores["most frequent token"].accuracy > 0.03
    assert scores["unigram"].loss < scores["untrained"].loss
    assert scores["untrained"].perplexity == pytest.approx(corpus.vocabulary, rel=0.2)


def test_blanks_are_held_out_whole_and_common(corpus):
    counts = training_counts(corpus)
    chosen = blanks.choose(corpus, counts, 6, seed=1)
    again = blanks.choose(corpus, counts, 6, seed=1)
    assert [each.blank for each in chosen] == [each.blank for each in again]
    assert len(chosen) == 6
    commonest = set(np.argsort(-counts, kind="stable")[:20].tolist())
    heldout = {tuple(corpus.tokens[start:end].tolist()) for start, end in blanks.heldout_sentences(corpus)}
    for each in chosen:
        hidden = int(each.ids[each.blank])
        assert tuple(each.ids.tolist()) in heldout
        assert counts[hidden] >= 2
        assert hidden not in commonest
        assert corpus.tokenizer.pieces[hidden].isalpha()
    assert [each.blank for each in blanks.choose(corpus, counts, 6, seed=2)] != [each.blank for each in chosen]


@pytest.mark.parametrize(
    "line",
    [
        "他说：“没关系，下次再给。”春天来了！",
        "a list of (name, [value]) pairs, don't use start_serving ; it's old.",
        "a, [MASK] (b) 中文 [MASK]",
    ],
    ids=["chinese", "signs", "mixed"],
)
def test_readable_text_reads_as_the_same_tokens(line):
    signs = sorted({sign for sign in line.lower() + string.ascii_lowercase + string.punctuation if not sign.isspace()})
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *signs, *(f"##{sign}" for sign in signs)]
    tokenizer = Tokenizer.from_pieces(pieces, lowercase=True)
    ids = tokenizer.encode(line)[0][1:-1]
    assert tokenizer.specials.unk not in ids
    shown = blanks.readable(tokenizer, ids)
    assert tokenizer.encode(shown)[0][1:-1] == ids
    assert shown == line


def test_only_whole_words_of_spaced_text_are_hidden(tmp_path):
    path = tmp_path / "en.txt"
    path.write_text("\n\n".join(f"the reader opens number{n} and the writer closes it again here." for n in range(40)))
    corpus = Corpus.build([path], tmp_path / "corpus", vocab=300, heldout=0.3, workers=0)
    counts = training_counts(corpus)
    fitting = blanks.fitting_tokens(corpus, np.maximum(counts, 1000) * (counts > 0))
    fitting[:] = True
    start, end = blanks.heldout_sentences(corpus)[0]
    pieces = corpus.tokenizer.tokens(corpus.tokens[start:end])
    for place in blanks.blank_places(corpus, fitting, int(start), int(end)):
        assert place > 0
        assert not pieces[place].startswith("##")
        assert place + 1 == len(pieces) or not pieces[place + 1].startswith("##")


def test_too_little_text_is_refused_with_what_is_needed(tmp_path):
    path = tmp_path / "little.txt"
    path.write_text("\n\n".join(f"A short document, number {n}." for n in range(30)))
    corpus = Corpus.build([path], tmp_path / "corpus", vocab=300, heldout=0.1, workers=0)
    with pytest.raises(InputError, match=r"too little text.*3,000 and 200") as caught:
        training.require_enough(corpus, "little.txt")
    assert caught.value.where == "little.txt"
    assert "--text" in caught.value.repair


@pytest.mark.parametrize(("before", "seconds"), [(0, 140), (12, 140), (60, 80), (500, 20)])
def test_a_slow_machine_trains_for_less(before, seconds):
    assert training.default_seconds(before) == seconds


def names_in(template):
    return {name for _, name, _, _ in string.Formatter().parse(template) if name is not None}


@pytest.mark.parametrize("field", [each.name for each in fields(Words)])
def test_both_languages_say_the_same(field):
    english, chinese = (getattr(words, field) for words in (ENGLISH, CHINESE))
    if field == "lang":
        assert {english, chinese} == set(WORDS)
        return
    pairs = [(english, chinese)] if isinstance(english, str) else list(zip(english, chinese, strict=True))
    for ours, theirs in pairs:
        assert bool(ours) == bool(theirs)
        assert names_in(theirs) <= names_in(ours)
        assert not theirs or any("\u4e00" <= sign <= "\u9fff" for sign in theirs)


def found(trained, rank=None):
    guesses = (("a", 0.5), ("b", 0.3), ("c", 0.1))
    truth = "z" if rank is None else guesses[rank - 1][0]
    return Found(
        words=ENGLISH,
        folder="demo",
        parameters=1000,
        steps=1,
        tokens=10,
        training_seconds=90,
        questions=5,
        scores={"trained": trained, "most frequent token": Score(0.06, None), "unigram": Score(0.06, 6.0)},
        blanks=[blanks.Blank("x [MASK]", truth, guesses)],
        sentence="x",
    )


def test_a_weak_model_is_never_shown_as_more():
    assert found(Score(0.18, 5.0)).verdict.startswith("It guesses 3.0 times as often right")
    assert "82 times in 100" in found(Score(0.18, 5.0)).verdict
    for weak in (Score(0.06, 5.9), Score(0.10, 6.1), Score(0.0, 8.0)):
        assert found(weak).verdict == ENGLISH.verdict_same
    assert found(Score(0.18, 5.0)).tiny == ENGLISH.tiny.format(parameters=1000, time="1.5 minutes", tokens=10)


@pytest.mark.parametrize(
    ("rank", "mark"), [(1, "right"), (2, "among the three"), (3, "among the three"), (None, "wrong")]
)
def test_marks(rank, mark):
    made = found(Score(0.18, 5.0), rank=rank)
    assert made.mark(made.blanks[0]) == mark
    assert (
        made.tally
        == f"{int(rank == 1)} of 1 blanks right at the first guess, {int(rank is not None)} within three guesses."
    )
