"""`finetune`, `predict` and `evaluate` of rows: whatever form they have, all is as with a JSON Lines file of them."""

from __future__ import annotations

from dataclasses import replace

import datasets
import pandas as pd
import pytest
from networks import model_of
from rows_of_tasks import FORMS, TASKS, rows_of, write_lines
from small_task import quiet

import maskery
from maskery.errors import MaskeryError
from maskery.tasks.finetune import finetune, read_splits
from maskery.tasks.read.given import of_argument

QUICK = {"epochs": 1, "training": {"lr": 3e-3, "batch": 8}}
TRAINED = [task for task in TASKS if task != "seq2seq"]


def held(examples):
    """Examples without the place that they came from."""
    items = tuple(replace(each, file="", line=0) for each in examples)
    return replace(examples, items=items, notes=tuple(note.partition(": ")[2] for note in examples.notes))


@pytest.fixture(scope="module")
def place(tmp_path_factory, no_waiting_for_the_disk):
    folder = tmp_path_factory.mktemp("rows")
    model_of(pooler=True).save(folder / "bert")
    for task in TASKS:
        (folder / task).mkdir()
        write_lines(folder / task / "train.jsonl", rows_of(task))
        write_lines(folder / task / "dev.jsonl", rows_of(task, 9))
    return folder


@pytest.fixture(scope="module")
def runs(place):
    """A run of each task, trained on files; made when first asked for."""
    made = {}

    def run(task):
        if task not in made:
            train = place / task / "train.jsonl"
            made[task] = finetune(
                place / "bert", task=task, train=train, out=place / f"{task}-run", settings=QUICK, say=quiet
            )
        return made[task]

    return run


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("task", TASKS)
def test_rows_are_read_as_lines_are(place, task, form):
    of_files = read_splits({}, task=task, train=place / task / "train.jsonl", dev=place / task / "dev.jsonl")
    rows = {"train": rows_of(task), "dev": rows_of(task, 9)}
    given = {name: of_argument(name, FORMS[form](each)) for name, each in rows.items()}
    of_rows = read_splits({}, task=task, **given)
    assert held(of_rows.train) == held(of_files.train)
    assert held(of_rows.dev) == held(of_files.dev)


@pytest.mark.parametrize("task", TASKS)
def test_the_task_is_found_by_the_columns(place, task):
    given = of_argument("train", pd.DataFrame(rows_of(task)))
    assert read_splits({}, train=given).train.task == read_splits({}, train=place / task / "train.jsonl").train.task


@pytest.mark.parametrize("task", TRAINED)
def test_training_and_answers_are_those_of_the_file(place, runs, task, tmp_path):
    form = list(FORMS)[TRAINED.index(task)]
    frame = pd.DataFrame(rows_of(task))
    of_rows = maskery.finetune(
        place / "bert", task=task, train=FORMS[form](rows_of(task)), out=tmp_path / "run", settings=QUICK, say=quiet
    )
    file = place / task / "dev.jsonl"
    expected = maskery.predict(runs(task), file, say=quiet)
    assert maskery.predict(of_rows, frame[:9], say=quiet).answers == expected.answers, "labels are not read"
    for each in FORMS:
        found = maskery.predict(of_rows, FORMS[each](rows_of(task, 9)), say=quiet)
        assert found.answers == expected.answers
    figures = maskery.evaluate(runs(task), file, say=quiet).metrics
    for data in (frame[:9], iter(rows_of(task, 9)), datasets.Dataset.from_list(rows_of(task, 9))):
        assert maskery.evaluate(of_rows, data, say=quiet).metrics == pytest.approx(figures, nan_ok=True)


def test_a_run_predicts_rows_and_columns_of_texts(runs):
    run, rows = runs("classify"), rows_of("classify", 5)
    texts = [row["text"] for row in rows]
    expected = maskery.predict(run, texts).answers
    frame, given = pd.DataFrame(rows), datasets.Dataset.from_list(rows)
    for each in (rows, frame, frame["text"], frame["text"].to_numpy(), given, given["text"], iter(texts), iter(rows)):
        assert run.predict(each).answers == expected


@pytest.mark.parametrize("second", ["dev", "valid", "validation"])
def test_a_dict_by_split_is_data(place, tmp_path, second):
    notes = []
    rows = {"train": rows_of("classify"), second: rows_of("classify", 9), "unsupervised": [{"text": "a"}]}
    split = datasets.DatasetDict({name: datasets.Dataset.from_list(each) for name, each in rows.items()})
    run = maskery.finetune(place / "bert", data=split, out=tmp_path / "run", settings=QUICK, say=notes.append)
    assert run.judgement.n == 9
    assert "data: not read: unsupervised" in notes
    again = {"train": pd.DataFrame(rows["train"]), second: iter(rows[second])}
    other = maskery.finetune(place / "bert", data=again, out=tmp_path / "other", settings=QUICK, say=quiet)
    assert other.judgement.metrics == run.judgement.metrics


def test_files_and_rows_go_together(place, tmp_path):
    run = maskery.finetune(
        place / "bert", train=str(place / "classify" / "train.jsonl"), dev=pd.DataFrame(rows_of("classify", 9)),
        out=tmp_path / "run", settings=QUICK, say=quiet,
    )  # fmt: skip
    assert run.judgement.n == 9


def _numbered(rows, names):
    features = datasets.Features({"text": datasets.Value("string"), "label": datasets.ClassLabel(names=names)})
    numbers = [names.index(row["label"]) for row in rows]
    return datasets.Dataset.from_dict({"text": [row["text"] for row in rows], "label": numbers}, features=features)


def test_numbers_of_classes_are_names_in_the_order_of_the_dataset(place, tmp_path):
    given, notes = _numbered(rows_of("classify"), ["odd", "even", "never"]), []
    run = maskery.finetune(
        place / "bert", train=given, dev=given, out=tmp_path / "run", settings=QUICK, say=notes.append
    )
    assert run.model.config.labels == ("odd", "even", "never"), "number n of the dataset is number n of the model"
    assert "train: labels in the order of the data: odd, even, never" in notes
    assert "train: no example has the label never: it is not learned" in notes
    assert maskery.evaluate(run, given, say=quiet).metrics["accuracy"] == run.judgement.metrics["accuracy"]
    assert maskery.evaluate(run, rows_of("classify"), say=quiet).metrics == run.judgement.metrics


def test_tags_that_a_dataset_numbers(place):
    names = ["O", "B-ONE", "I-ONE", "B-TWO"]
    rows = rows_of("tag")
    given = datasets.Dataset.from_dict(
        {
            "tokens": [row["tokens"] for row in rows],
            "ner_tags": [[names.index(tag) for tag in row["ner_tags"]] for row in rows],
        },
        features=datasets.Features(
            {
                "tokens": datasets.List(datasets.Value("string")),
                "ner_tags": datasets.List(datasets.ClassLabel(names=names)),
            }
        ),
    )
    found = read_splits({}, train=of_argument("train", given)).train
    assert held(found) == held(read_splits({}, train=place / "tag" / "train.jsonl").train)


def test_a_missing_text_is_an_empty_one_and_a_missing_label_is_refused(place, tmp_path):
    frame = pd.DataFrame(rows_of("classify"))
    frame.loc[3, "text"] = None
    notes = []
    maskery.finetune(place / "bert", train=frame, out=tmp_path / "run", settings=QUICK, say=notes.append)
    assert "train: 1 empty text, kept" in notes
    frame.loc[5, "label"] = None
    with pytest.raises(MaskeryError, match=r"^train\[5\]: there is no label in 'label'"):
        maskery.finetune(place / "bert", train=frame, out=tmp_path / "other", settings=QUICK, say=quiet)


def test_columns_are_said_in_settings(place, tmp_path):
    frame = pd.DataFrame(rows_of("classify")).rename(columns={"text": "a", "label": "b"}).assign(c="the same text")
    said = {"columns": {"text": ["a"], "label": "b"}}
    run = maskery.finetune(place / "bert", train=frame, out=tmp_path / "run", settings=QUICK | said, say=quiet)
    assert maskery.predict(run, frame, say=quiet).answers == run.predict(list(frame["a"])).answers


def test_the_worst_errors_have_their_place(place, tmp_path):
    out = tmp_path / "run"
    rows = rows_of("classify")
    dev = [{**row, "label": label} for row in rows[:9] for label in ("odd", "even")]
    maskery.finetune(place / "bert", train=rows, dev=dev, out=out, settings=QUICK, say=quiet)
    assert "dev[" in (out / "report.html").read_text(encoding="utf-8")


FRAME = pd.DataFrame(rows_of("classify"))
TWO_TEXTS = FRAME.rename(columns={"text": "review"}).assign(comment=FRAME.text)
LOST = {"context": "a", "question": "c", "answers": [{"text": "z", "answer_start": 0}]}
REFUSED = {
    # call -> (call, place, words of the error, words of its repair)
    "two texts": (
        lambda t: t.tune(train=TWO_TEXTS),
        "train", "which column is the text?", 'settings={"columns": {"text": ["A"], "label": "B"}}',
    ),
    "no such column": (
        lambda t: t.tune(train=FRAME, settings={"columns": {"label": "no"}}),
        "train", "columns.label no: there is no such column", "settings=",
    ),
    "a dict without the text": (
        lambda t: t.tune(train=[*rows_of("classify"), {"label": "odd"}]),
        "train[24]", "the record has no field 'text'", "",
    ),
    "an object in the text": (
        lambda t: t.tune(train=[*rows_of("classify"), {"text": {"a": 1}, "label": "odd"}]),
        "train[24]", "'text' holds an object, not text", "",
    ),
    "a NaN label": (
        lambda t: t.tune(train=[*rows_of("classify"), {"text": "a", "label": float("nan")}]),
        "train[24]", "the label is nan", "",
    ),
    "half a character": (
        lambda t: t.tune(train=[*rows_of("classify"), {"text": "a\ud800", "label": "odd"}]),
        "train[24]", "half a character", "columns.errors replace",
    ),
    "an unknown label": (
        lambda t: t.tune(data={"train": FRAME, "dev": [{"text": "a", "label": "new"}]}),
        "data['dev'][0]", "the label 'new' is not one of those to learn", "",
    ),
    "qa without answers": (
        lambda t: t.tune(task="qa", train=[{"context": "a b", "question": "c"}]), "train[0]", "has no answers", "",
    ),
    "qa with lost answers": (
        lambda t: t.tune(task="qa", train=[LOST]),
        "train[0]", "do not stand in their contexts", "",
    ),
    "tags of no scheme": (
        lambda t: t.tune(task="tag", train=[*rows_of("tag"), {"tokens": ["a"], "ner_tags": ["?"]}]),
        "train[24]", "the tag '?' is of no scheme", "",
    ),
    "tags and tokens": (
        lambda t: t.tune(task="tag", train=[*rows_of("tag"), {"tokens": ["a"], "ner_tags": []}]),
        "train[24]", "1 tokens and 0 tags", "",
    ),
    "a wrong choice": (
        lambda t: t.tune(task="choice", train=[{"question": "a", "choices": ["x", "y"], "answer": "z"}]),
        "train[0]", "is none of the choices", "",
    ),
    "predict other columns": (
        lambda t: maskery.predict(t.run, TWO_TEXTS),
        "texts", "which column is the text?", "frame.rename(columns=",
    ),
    "predict without the text": (
        lambda t: maskery.predict(t.run, [{"text": "a"}, {"label": "a"}]),
        "texts[1]", "the record has no field 'text'", "",
    ),
    "evaluate without labels": (
        lambda t: maskery.evaluate(t.run, [{"text": "a"}]),
        "data", "no column looks like a label", "frame.rename(columns=",
    ),
    "evaluate an unknown label": (
        lambda t: maskery.evaluate(t.run, [{"text": "a", "label": "new"}]),
        "data[0]", "the label 'new'", "columns.label",
    ),
}  # fmt: skip


class Doors:
    def __init__(self, place, run, out):
        self.place, self.run, self.out = place, run, out

    def tune(self, **arguments):
        return maskery.finetune(self.place / "bert", out=self.out, say=quiet, **arguments)


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_wrong_is_told_with_argument_row_and_repair(place, runs, tmp_path, name):
    call, where, words, repair = REFUSED[name]
    with pytest.raises(MaskeryError) as caught:
        call(Doors(place, runs("classify"), tmp_path / "run"))
    error = caught.value
    assert error.where == where, error.text()
    assert words in error.cause
    assert error.repair
    assert repair in error.repair
    assert "--" not in error.text(), "no options of the command"
    assert not (tmp_path / "run").exists()
