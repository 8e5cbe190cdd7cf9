"""Rows of dev and test that stand in train as well: found as an obvious search finds them, counted and reported."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_encoder import lines, scored, small_encoder
from small_task import examples_of, family_model

import maskery
from maskery.tasks.copies import FILE, Labelled, copies_of, overlap_of, sentence, within, within_sentence
from maskery.tasks.examples import Example, Examples
from maskery.tasks.finetune import finetune
from maskery.tasks.plan import Plan
from maskery.tasks.resolve import Splits
from maskery.text import near
from maskery.text.near import near_copies, normal
from maskery.vectors.learn.run import train_encoder

QUICK = {"epochs": 1, "training": {"lr": 3e-3, "batch": 8}}


def pieces(text):
    return {f"{text}\0\0"[at : at + 3] for at in range(len(text))}


def alike(one, other):
    """Jaccard of the pieces of two texts, as a pair of whole numbers; of two empty ones 1."""
    common, union = pieces(one) & pieces(other), pieces(one) | pieces(other)
    return (len(common), len(union)) if union else (1, 1)


def slowly(rows, known):
    """All near copies, by comparing everything with everything."""
    found = {}
    for number, row in enumerate(rows):
        good = []
        for at, other in enumerate(known):
            each = [alike(one, two) for one, two in zip(row, other, strict=True)]
            tagged = [
                {(field, piece) for field, text in enumerate(texts) for piece in pieces(text)} for texts in (row, other)
            ]
            if all(5 * common >= 4 * union for common, union in each) and all(tagged):
                good.append((len(tagged[0] & tagged[1]) / len(tagged[0] | tagged[1]), -at))
        if good:
            found[number] = -max(good)[1]
    return found


@st.composite
def corpora(draw):
    """Texts of which many are changed in few places, so that shares lie on both sides of the limit."""
    seed, fields = draw(st.integers(0, 10**6)), draw(st.integers(1, 3))
    random = Random(seed)
    signs = draw(st.sampled_from(["ab", "abcdefgh ", "中文语言模型训练", "a\u0301é🙂z"]))

    def text():
        return "".join(random.choice(signs) for _ in range(random.choice([0, 1, 2, 5, 20, 60])))

    def changed(given):
        signs_of = list(given)
        for _ in range(random.choice([0, 1, 2, 5])):
            if signs_of:
                signs_of[random.randrange(len(signs_of))] = random.choice(signs)
        return "".join(signs_of)

    known = [tuple(text() for _ in range(fields)) for _ in range(draw(st.integers(0, 12)))]
    rows = [
        tuple(changed(each) for each in random.choice(known)) if known and random.random() < 0.8
        else tuple(text() for _ in range(fields))
        for _ in range(draw(st.integers(0, 12)))
    ]  # fmt: skip
    return [tuple(map(normal, row)) for row in rows], [tuple(map(normal, row)) for row in known]


@settings(max_examples=200, deadline=None)
@given(corpora())
def test_near_copies_are_those_of_the_obvious_search(made):
    rows, known = made
    found = near_copies(rows, known)
    assert found.found == (slowly(rows, known) if known else {})
    assert found.searched == (len(rows) if known else 0)


def test_parts_of_the_search_change_nothing(monkeypatch):
    random = Random(3)
    known = [("".join(random.choice("abcdef ") for _ in range(40)).strip(),) for _ in range(60)]
    rows = [(f"{text[:-2]}xy",) for (text,) in known]
    whole = near_copies(rows, known)
    monkeypatch.setattr(near, "_AT_ONCE", 5)
    assert near_copies(rows, known) == whole
    assert whole.found == slowly(rows, known)
    few = near_copies(rows, known, most=20)
    assert 0 < few.searched < 60, "the search ends early, and says after which row"
    assert few.found == {row: at for row, at in whole.found.items() if row < few.searched}


def test_long_texts_are_compared_by_their_beginnings(monkeypatch):
    known, rows = [("a quick brown fox jumps" * 10 + "end",)], [("a quick brown fox jumps" * 10 + "x" * 300,)]
    assert not near_copies(rows, known).found
    monkeypatch.setattr(near, "MOST_CHARACTERS", 250)
    found = near_copies(rows, known)
    assert (found.found, found.characters) == ({0: 0}, 100)
    monkeypatch.setattr(near, "MOST_CHARACTERS", 20)
    assert near_copies(rows, known).searched == 0


def test_a_hundred_thousand_rows_take_seconds():
    random = Random(0)
    words = [
        "".join(random.choice("abcdefghijklmnopqrstuvwxyz") for _ in range(random.randint(2, 9))) for _ in range(9000)
    ]
    rows = [(" ".join(random.choice(words) for _ in range(8)),) for _ in range(100_000)]
    began = time.process_time()
    assert near_copies(rows[:5000], rows[5000:]).searched == 5000
    assert time.process_time() - began < 10, "two seconds on a quiet machine"


def labelled(*rows):
    return Labelled(rows=[(normal(text),) for text, _ in rows], labels=[label for _, label in rows])


def test_case_and_white_space_make_no_other_row_and_other_labels_are_counted():
    train = labelled(("The  cat sat", "a"), ("the dog", "b"), ("the dog", "a"), ("no label", None))
    found = copies_of(labelled((" the CAT\tsat", "b"), ("the dog", "a"), ("new", "a"), ("no label", "a")), train)
    assert found.exact == {0: 0, 1: 1, 3: 3}
    assert found.relabelled == {0}, "one of the two dogs has the label, and an unknown label is no other"
    assert sentence("dev", found, "remove them") == (
        "dev: of 4 rows 3 (75.0 %) are exact copies of train rows, 1 of them with another label than there: scores on "
        "them measure memory; remove them"
    )
    assert within(train) == {"rows": 4, "exact": 1, "other_label": 1}
    assert within_sentence(within(train)) == (
        "train: 1 of 4 rows (25.0 %) are copies of an earlier row, 1 of them with another label"
    )
    assert not within_sentence({"rows": 100, "exact": 1, "other_label": 0}), "one in a hundred is not worth a word"


def test_nothing_in_common_is_no_sentence():
    found = copies_of(labelled(("one thing", "a")), labelled(("quite another", "a")))
    assert sentence("dev", found, "remove them") == ""


def test_what_was_not_searched_is_said(monkeypatch):
    monkeypatch.setattr(near, "MOST_CHARACTERS", 1)
    found = copies_of(labelled(("one thing", "a")), labelled(("quite another", "a")))
    assert sentence("dev", found, "remove them") == (
        "dev: near copies of train rows are not searched for: the texts are too many"
    )


def test_a_pair_with_one_other_text_is_no_copy():
    """A long context in common does not make two questions one."""
    items = [
        Example(guid=f"{at}", texts=("the same long context " * 9, f"{word}?"))
        for at, word in enumerate(["who", "when"])
    ]
    one, other = (Examples(task="qa", fields=("context", "question"), items=(item,)) for item in items)
    found = overlap_of(Splits(one, other))
    assert (found.plain["dev"]["exact"], found.plain["dev"]["near"], found.notes) == (0, 0, ())


@pytest.fixture(scope="module")
def model(tmp_path_factory, no_waiting_for_the_disk):
    folder = tmp_path_factory.mktemp("copies") / "model"
    family_model(folder, "bert")
    return folder


def leaking():
    """20 of train; dev has one equal row, one with another label, and one that is nearly the same."""
    train = examples_of("classify", 20)
    letters = [replace(each, texts=(f"{each.texts[0]} number {at:02d} of the many rows that there are here",))
               for at, each in enumerate(train)]  # fmt: skip
    one, two, three = letters[:3]
    dev = [
        one,
        replace(two, label="even"),
        replace(three, texts=(three.texts[0] + "s",)),
        Example(guid="n", texts=("new x",), label="odd"),
    ]
    return replace(train, items=tuple(letters)), replace(train, items=tuple(dev))


@pytest.mark.parametrize("plan", [Plan(), Plan(seeds=2)], ids=["one", "seeds"])
def test_finetune_reports_copies_in_the_log_the_results_and_the_page(model, tmp_path, plan):
    train, dev = leaking()
    told = []
    run = finetune(model, out=tmp_path / "run", train=train, dev=dev, settings=QUICK, plan=plan, say=told.append)
    (note,) = [each for each in told if "copies of train rows" in each]
    assert note.startswith(
        "dev: of 4 rows 2 (50.0 %) are exact copies of train rows, 1 of them with another label than there and 1 "
        "(25.0 %) near copies: scores on them measure memory; remove them from dev"
    )
    written = json.loads((run.path / "evaluation.json").read_text())
    assert written["copies"]["dev"] == {"rows": 4, "exact": 2, "other_label": 1, "near": 1}
    assert note in written["notes"]
    assert "exact copies of train rows" in (run.path / "report.html").read_text()
    lines = [line.split("\t") for line in (run.path / FILE).read_text().splitlines()]
    assert [(line[3], line[6]) for line in lines[1:]] == [("exact", "no"), ("exact", "yes"), ("near", "no")]


def test_a_test_set_is_compared_too_and_nothing_is_said_of_clean_data(model, tmp_path):
    train, dev = leaking()
    told = []
    finetune(model, out=tmp_path / "run", train=train, test=dev, settings=QUICK, say=told.append)
    assert any(each.startswith("test: of 4 rows 2 ") for each in told)
    told.clear()
    run = finetune(model, out=tmp_path / "clean", train=train, settings=QUICK, say=told.append)
    assert not [each for each in told if "copies of train rows" in each]
    assert not (run.path / FILE).exists()


def test_training_of_encoders_reports_copies(tmp_path):
    told, data = [], scored(24)
    few = {"training": {"batch": 8}, "epochs": 0.3}
    train_encoder(
        small_encoder(), loss="cosent", train=data, dev=data, out=tmp_path / "pairs", settings=few, say=told.append
    )
    assert any(each.startswith("dev: of 24 rows 24 (100.0 %) are exact copies of train rows") for each in told)
    told.clear()
    train_encoder(
        small_encoder(), loss="simcse", train=lines(24), dev=data, out=tmp_path / "l", settings=few, say=told.append
    )
    known = {normal(each) for each in lines(24).texts}
    common = sum(each in known for each in {normal(each) for each in data.texts})
    assert any(f"distinct texts {common:,} (" in each for each in told) == (common > 0)


def test_estimators_report_copies_in_the_part_that_they_set_aside(model):
    texts = ["the cat x", "the mat y", "the cat x", "the mat y"] * 10
    made = maskery.Classifier(model, dev=0.2, epochs=1, lr=1e-3).fit(texts, ["odd", "even"] * 20)
    (note,) = [each for each in made.notes_ if each.startswith("dev: of 8 rows")]
    assert "8 (100.0 %) are exact copies of train rows" in note
    assert FILE not in note, "the run's folder is gone by then"
    assert any(each.startswith("train: 30 of 32 rows (93.8 %) are copies of an earlier row") for each in made.notes_)
