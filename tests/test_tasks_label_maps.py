"""Label maps: in reading, kept with a run, and of the classes of a model; and the groups of an evaluation."""

import json

import numpy as np
import pytest
from networks import model_of
from small_task import quiet, write_tsv

import maskery
from maskery.cli import main
from maskery.errors import InputError, TextError, UnknownName
from maskery.tasks.examples import Example, Examples, Span
from maskery.tasks.merging import Merging
from maskery.tasks.model import read_task
from maskery.tasks.questions import Predicted
from maskery.tasks.read.columns import Seen
from maskery.tasks.read.files import read_examples
from maskery.tasks.read.mapping import joined, mapped, parsed
from maskery.tasks.settings import ColumnsConfig, TaskConfig
from maskery.tasks.tags import Tags

TO = {"neutral": "non-entailment", "contradiction": "non-entailment"}
FLAGS = [part for source, target in TO.items() for part in ("--map", f"{source}={target}")]
NLI = ("contradiction", "entailment", "neutral")
QUICK = {"epochs": 1, "training": {"lr": 3e-3, "batch": 8}}


def nli_rows(first, many, labels=NLI):
    """premise, hypothesis, label, heuristic"""
    for number in range(first, first + many):
        letter = "xyz"[number % 3]
        texts = (f"{'abcdefgh'[number % 8]} the cat {letter}", f"mat {'abcdefgh'[number // 8 % 8]} {letter}")
        yield *texts, labels[number % len(labels)], ("overlap", "subsequence")[number // 6 % 2]


HEADER = "premise\thypothesis\tlabel\theuristic\n"


@pytest.fixture(scope="module")
def place(tmp_path_factory, no_waiting_for_the_disk):
    """A model of three labels, one that was trained with a map, and a set of two labels."""
    folder = tmp_path_factory.mktemp("maps")
    model_of(pooler=True).save(folder / "bert")
    train = write_tsv(folder / "train.tsv", nli_rows(0, 48), HEADER)
    write_tsv(folder / "dev.tsv", nli_rows(100, 24), HEADER)
    write_tsv(folder / "hans.tsv", nli_rows(200, 24, ("entailment", "non-entailment")), HEADER)
    write_tsv(folder / "test.tsv", (row[:2] for row in nli_rows(300, 5)), "premise\thypothesis\n")
    maskery.finetune(folder / "bert", train=train, out=folder / "three", settings=QUICK, say=quiet)
    columns = {"map": TO, "by": ["heuristic"]}
    settings = {**QUICK, "columns": columns}
    maskery.finetune(
        folder / "bert", train=train, dev=folder / "dev.tsv", out=folder / "two", settings=settings, say=quiet
    )
    return folder


@pytest.fixture
def run(place, capsys, monkeypatch):
    monkeypatch.chdir(place)

    def call(*arguments):
        code = main([*map(str, arguments)])
        output = capsys.readouterr()
        return code, output.out, output.err

    return call


def classes(*labels, task="classify"):
    items = tuple(Example(guid=f"t-{at}", texts=("a",), label=label) for at, label in enumerate(labels))
    return Examples(task=task, fields=("text",), items=items)


# Reading


def test_labels_are_mapped_once_counted_and_told():
    found = mapped(classes("a", "b", "a", "c"), {"a": "b", "b": "a", "x": "y"})
    assert [each.label for each in found] == ["b", "a", "b", "c"], "no chains"
    assert found.notes == (
        "label map: a -> b (2 labels)",
        "label map: b -> a (1 label)",
        "label map: 'x' never occurs; the labels are a, b, c",
        "label map: 3 labels after it: b x 2, a x 1, c x 1",
    )
    sets = mapped(classes(frozenset({"a", "b"}), frozenset(), task="multilabel"), {"a": "b"})
    assert [each.label for each in sets] == [{"b"}, set()]
    tagged = Examples(
        task="tag", fields=("text",), items=(Example(guid="t", texts=("ab",), spans=(Span(0, 1, "PER"),)),)
    )
    assert mapped(tagged, {"PER": "name"})[0].spans == (Span(0, 1, "name"),)
    with pytest.raises(InputError, match="regress has none"):
        mapped(classes(1.0, task="regress"), {"1": "2"})


def test_a_map_is_written_as_pairs():
    assert parsed(["a=b", " c = d=e "]) == {"a": "b", "c": "d=e"}
    for wrong in (["a"], ["=b"], ["a="], ["a=b", "a=c"]):
        with pytest.raises(InputError, match="--map"):
            parsed(wrong)


def test_a_map_of_the_command_goes_before_that_of_the_run():
    assert joined({"a": "b", "c": "d"}, {"a": "x", "d": "e"}) == {"a": "x", "c": "e", "d": "e"}


def test_labels_before_the_map_are_known_as_labels(tmp_path):
    """A file without a header whose labels are those before the map, after one that told what is learned."""
    path = write_tsv(tmp_path / "dev.tsv", [("neg", "a cat sat here"), ("pos", "the old mat was red")] * 3)
    columns = ColumnsConfig(map={"neg": "0", "pos": "1"})
    found = read_examples(path, "classify", "test", columns, seen=Seen(fields=("text",), labels=("0", "1")))
    assert [each.label for each in found][:2] == ["0", "1"]


# Runs


def test_a_run_keeps_its_map_and_uses_it_again(place, run):
    config = read_task(place / "two")
    assert (config.labels, config.columns.map) == (("entailment", "non-entailment"), TO)
    code, printed, told = run("evaluate", "two", "--data", "dev.tsv", "--json")
    assert code == 0
    assert "dev.tsv: label map: neutral -> non-entailment (8 labels)" in told
    assert json.loads(printed)["n"] == 24
    code, _, told = run("evaluate", "two", "--data", "dev.tsv", "--map", "neutral=entailment")
    assert code == 0, "the command's map wins"
    assert "label map: neutral -> entailment (8 labels)" in told
    assert "label map: contradiction -> non-entailment (8 labels)" in told


def test_finetune_takes_a_map(place, run, tmp_path):
    code, _, told = run(
        "finetune", "bert", "--train", "train.tsv", "--out", tmp_path / "run", "--epochs", 1, *FLAGS, "--map", "odd=x"
    )
    assert code == 0
    assert read_task(tmp_path / "run").labels == ("entailment", "non-entailment")
    assert "train.tsv: label map: 'odd' never occurs; the labels are contradiction, entailment, neutral" in told


def test_a_model_of_three_labels_on_a_set_of_two(place, run):
    code, _, told = run("evaluate", "three", "--data", "hans.tsv")
    assert code == 2
    assert "'non-entailment' is not one of those that the model knows" in told
    assert "--map LABEL=OTHER" in told
    code, printed, told = run("evaluate", "three", "--data", "hans.tsv", *FLAGS, "--json", "--html", "page.html")
    assert code == 0
    assert "never occurs" not in told, "neutral and contradiction are classes of the model"
    assert "it now answers non-entailment, entailment" in told
    three = maskery.predict("three", [tuple(row[:2]) for row in nli_rows(200, 24)], say=quiet)
    gold = np.array([row[2] for row in nli_rows(200, 24, ("entailment", "non-entailment"))])
    summed = three.probabilities[:, 0] + three.probabilities[:, 2]
    answers = np.where(summed >= three.probabilities[:, 1], "non-entailment", "entailment")
    assert json.loads(printed)["accuracy"] == pytest.approx(float((answers == gold).mean()))
    again = maskery.evaluate("three", "hans.tsv", map=TO, say=quiet)
    assert again.metrics["accuracy"] == json.loads(printed)["accuracy"]


def test_predictions_of_merged_classes(place, run):
    code, printed, _ = run("predict", "three", "test.tsv", *FLAGS, "--json")
    assert code == 0
    found = [json.loads(line) for line in printed.splitlines()]
    assert all(set(each["probabilities"]) == {"entailment", "non-entailment"} for each in found)
    assert all(sum(each["probabilities"].values()) == pytest.approx(1) for each in found)
    texts = [tuple(row[:2]) for row in nli_rows(300, 5)]
    assert maskery.predict("three", texts, map=TO, say=quiet).answers == [each["answer"] for each in found]
    code, _, told = run("predict", "three", "test.tsv", "--map", "maybe=no")
    assert code == 2
    assert "maybe" in told


def config(task, labels):
    return TaskConfig(task=task, labels=labels)


def test_merged_probabilities_are_added_and_what_changes_is_counted():
    made = Merging.of(config("pair", NLI), TO)
    chances = np.array([[0.3, 0.4, 0.3], [0.1, 0.8, 0.1]])
    found = made.applied(Predicted(answers=["entailment", "entailment"], probabilities=chances))
    assert made.labels == ("non-entailment", "entailment")
    assert found.answers == ["non-entailment", "entailment"]
    assert np.allclose(found.probabilities, [[0.6, 0.4], [0.2, 0.8]])
    assert any("1 of 2 answers differ from the new name" in note for note in found.notes)
    with pytest.raises(InputError, match="every class 'x'"):
        Merging.of(config("pair", ("a", "b")), {"a": "x", "b": "x"})
    with pytest.raises(UnknownName):
        Merging.of_predictions(config("pair", NLI), {"maybe": "no"})


def test_merged_labels_of_sets_and_spans():
    sets = Merging.of(config("multilabel", ("a", "b", "c")), {"a": "b"})
    found = sets.applied(Predicted(answers=[frozenset({"a"})], probabilities=np.array([[0.7, 0.2, 0.1]])))
    assert (found.answers, found.probabilities.tolist()) == ([{"b"}], [[0.7, 0.1]])
    tags = Merging.of(config("tag", Tags(("PER", "LOC")).names), {"PER": "name", "LOC": "name"})
    assert tags.labels == ("name",)
    assert tags.applied(Predicted(answers=[(Span(0, 2, "LOC"),)])).answers == [(Span(0, 2, "name"),)]


# Groups


def test_groups_in_terminal_json_page_and_python(place, run):
    arguments = ("evaluate", "three", "--data", "dev.tsv", "--by", "heuristic", "--by", "heuristic,label")
    code, printed, _ = run(*arguments)
    assert code == 0
    shown = printed.splitlines()
    at = next(number for number, line in enumerate(shown) if line.startswith("heuristic "))
    assert shown[at].split() == ["heuristic", "n", "accuracy", "95", "%", "from", "to"]
    assert [line.split()[:2] for line in shown[at + 1 : at + 3]] == [["overlap", "12"], ["subsequence", "12"]]
    _, chinese, _ = run(*arguments, "--lang", "zh")
    assert ["heuristic", "样本数", "accuracy", "95%", "下限", "上限"] in [line.split() for line in chinese.splitlines()]
    _, printed, _ = run(*arguments, "--json", "--html", "groups.html")
    groups = json.loads(printed)["groups"]
    assert list(groups) == ["heuristic", "heuristic,label"]
    assert len(groups["heuristic,label"]) == 6
    whole, parts = json.loads(printed), groups["heuristic"].values()
    assert sum(each["n"] * each["accuracy"] for each in parts) == pytest.approx(whole["n"] * whole["accuracy"])
    assert all(each["intervals"]["accuracy"][0] <= each["accuracy"] for each in parts)
    page = (place / "groups.html").read_text(encoding="utf-8")
    assert "By heuristic" in page
    assert "subsequence" in page
    told = maskery.evaluate("three", "dev.tsv", by=("heuristic",), say=quiet)
    assert {name: each.n for name, each in told.groups["heuristic"].items()} == {"overlap": 12, "subsequence": 12}
    assert told.groups["heuristic"]["overlap"].metrics["accuracy"] == groups["heuristic"]["overlap"]["accuracy"]


def test_groups_of_the_development_set_of_a_run(place):
    found = json.loads((place / "two" / "evaluation.json").read_text())["groups"]["heuristic"]
    assert {name: each["n"] for name, each in found.items()} == {"overlap": 12, "subsequence": 12}
    assert "By heuristic" in (place / "two" / "report.html").read_text(encoding="utf-8")
    assert maskery.evaluate(str(place / "two"), place / "dev.tsv", say=quiet).groups == {}


def test_wrong_groups_are_refused(place, run, tmp_path):
    code, _, told = run("evaluate", "three", "--data", "dev.tsv", "--by", "kind")
    assert code == 2
    assert "--by kind: there is no such column; the columns are premise, hypothesis, label, heuristic" in told
    many = write_tsv(tmp_path / "many.tsv", ((*row[:3], str(at)) for at, row in enumerate(nli_rows(0, 240))), HEADER)
    code, _, told = run("evaluate", "three", "--data", many, "--by", "heuristic")
    assert code == 2
    assert "--by heuristic: 240 groups in 240 examples" in told
    code, _, told = run("evaluate", "bert", "--task", "sts", "--data", "dev.tsv", "--by", "heuristic")
    assert code == 2
    assert "--by belongs to fine-tuned models" in told
    with pytest.raises(TextError):
        read_examples(place / "dev.tsv", None, "dev", ColumnsConfig(by=("heuristic,no",)))
