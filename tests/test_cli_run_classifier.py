"""A command line for Google's run_classifier.py works whole: names of tasks, their folders, a model by its files."""

from __future__ import annotations

import json
import shutil

import pytest
from oracle import make
from test_import_tensorflow import google_folder

from maskery.cli import main
from maskery.cli.run_classifier import translated
from maskery.errors import InputError
from maskery.tasks.finetune import read_splits
from maskery.tasks.read.classic_tasks import KINDS, reading_of

LABELS = ["entailment", "neutral", "contradiction"]
NLI = ["index", "promptID", "sentence1_parse", "sentence2_parse", "sentence1", "sentence2"]


def write(path, head, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join("\t".join(map(str, row)) + "\n" for row in ([head] if head else []) + list(rows)), "utf-8")


def sentence(number, sign=""):
    return f"w{number} the cat of row {number} sat on w{number * 7}{sign}"


def folder_of(place, name):
    """The files of a task in small, laid out as they were published."""
    for split, many in (("train", 24), ("dev", 9), ("test", 6)):
        numbers, test, path = range(many), split == "test", place / name / f"{split}.tsv"
        one, two = [sentence(n) for n in numbers], [sentence(n + 99) for n in numbers]
        if name == "cola":
            rows = [(n, one[n]) if test else ("gj04", n % 2, "" if n % 2 else "*", one[n]) for n in numbers]
            write(path, ["index", "sentence"] if test else None, rows)
        elif name == "sst-2":
            rows = [(n, one[n]) if test else (one[n], n % 2) for n in numbers]
            write(path, ["index", "sentence"] if test else ["sentence", "label"], rows)
        elif name == "mrpc":
            head = ["index" if test else "Quality", "#1 ID", "#2 ID", "#1 String", "#2 String"]
            write(path, head, [(n if test else n % 2, 70 + n, 90 + n, one[n], two[n]) for n in numbers])
        elif name == "sts-b":
            head = ["index", "genre", "sentence1", "sentence2", *([] if test else ["score"])]
            write(path, head, [(n, "news", one[n], two[n], *([] if test else [f"{n / 7:.3f}"])) for n in numbers])
        elif name == "mnli":
            for part in [""] if split == "train" else ["_matched", "_mismatched"]:
                head = [*NLI, *([] if test else ["label1", "gold_label"])]
                rows = [(n, n, "(a)", "(b)", one[n], two[n], *([] if test else [LABELS[n % 3]] * 2)) for n in numbers]
                write(place / name / f"{split}{part}.tsv", head, rows)
        elif name == "xnli" and split == "train":
            rows = [(f"句{n}", f"话{n}", ["contradictory", *LABELS[:2]][n % 3]) for n in numbers]
            write(place / name / "multinli" / "multinli.train.zh.tsv", ["premise", "hypo", "label"], rows)
        elif name == "xnli":
            rows = [(tongue, LABELS[n % 3], f"{tongue} {n}", f"b {n}") for tongue in ("en", "zh") for n in numbers]
            write(place / name / f"xnli.{split}.tsv", ["language", "gold_label", "sentence1", "sentence2"], rows)
        else:
            names = {"qnli": ("question", "sentence"), "qqp": ("question1", "question2")}.get(name, NLI[-2:])
            head = ["id" if name == "qqp" else "index", *names]
            label = "is_duplicate" if name == "qqp" else "label"
            values = (
                [n % 2 for n in numbers]
                if name == "qqp"
                else [["entailment", "not_entailment"][n % 2] for n in numbers]
            )
            write(path, [*head, *([] if test else [label])],
                  [(n, one[n], two[n], *([] if test else [values[n]])) for n in numbers])  # fmt: skip
    return place / name


def options(reading):
    """The options of a reading, as `read_splits` takes them."""
    found = dict(zip(reading.options[::2], reading.options[1::2], strict=True))
    return {name.removeprefix("--"): value for name, value in found.items()}


@pytest.mark.parametrize("name", KINDS)
def test_the_folder_of_a_task_is_read_by_its_name(name, tmp_path):
    splits = read_splits({}, **options(reading_of(name.upper(), folder_of(tmp_path, name))))
    assert splits.train.task == KINDS[name]
    assert (len(splits.train), len(splits.dev), len(splits.test)) == (24, 9, 6)
    expected = {"cola": (sentence(0),), "sst-2": (sentence(0),), "xnli": ("句0", "话0")}
    assert splits.train[0].texts == expected.get(name, (sentence(0), sentence(99)))
    assert splits.test[1].texts[0] == ("zh 1" if name == "xnli" else sentence(1))
    labels = {"cola": "0", "sst-2": "0", "mrpc": "0", "qqp": "0", "sts-b": 0.0, "xnli": "contradiction"}
    assert splits.train[0].label == labels.get(name, "entailment")


def test_own_data_under_the_name_of_a_task_is_read_as_it_is(tmp_path):
    """Many put a file of their own into the folder of a known task."""
    write(tmp_path / "train.tsv", ["label", "text"], [(n % 2, sentence(n)) for n in range(12)])
    for name in ("CoLA", "xnli", "MNLI"):
        assert reading_of(name, tmp_path).options == ("--task", KINDS[name.lower()], "--data", str(tmp_path))
    assert reading_of("news", tmp_path) is None


def test_names_of_tasks_without_a_folder_tell_the_task_alone():
    assert translated(["--task_name=QQP", "--train=f"])[0] == ["--task", "pair", "--train=f"]
    found, notes = translated(["--task_name=news", "--data_dir=d"])
    assert (found, "--task_name news is left out" in notes[0]) == (["--data", "d"], True)


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    folder = tmp_path_factory.mktemp("google") / "uncased_L-2"
    google_folder(folder, make("BertForPreTraining"))
    return folder


def classic(bert, data, out, **other):
    files = {
        "vocab_file": bert / "vocab.txt",
        "bert_config_file": bert / "bert_config.json",
        "init_checkpoint": bert / "bert_model.ckpt",
    } | other
    flags = [f"--{name}={path}" for name, path in files.items() if path]
    return ["finetune", "--task_name=MRPC", "--do_train=true", "--do_eval=true", f"--data_dir={data}", *flags,
            "--max_seq_length=32", "--train_batch_size=8", "--learning_rate=2e-5", "--num_train_epochs=1.0",
            f"--output_dir={out}"]  # fmt: skip


def test_a_classic_command_line_works_whole(bert, tmp_path, capsys):
    data = folder_of(tmp_path, "mrpc")
    assert main(classic(bert, data, tmp_path / "out")) == 0
    printed = capsys.readouterr()
    told = " ".join(printed.err.split())
    assert "***** Eval results *****" in printed.out
    assert f"the model is {bert / 'bert_model.ckpt'}" in told
    assert f"--task_name MRPC with --data_dir is understood as --task pair --data {data}" in told
    assert "read from the TensorFlow checkpoint" in told
    assert (tmp_path / "out" / "test_predictions.tsv").is_file()
    assert main([*classic(bert, data, tmp_path / "out"), "--resume"]) == 0, "the same command goes on"
    assert "already finished" in capsys.readouterr().err


def test_a_tensorflow_folder_is_a_model_for_every_verb(bert, tmp_path, capsys):
    data = folder_of(tmp_path, "sst-2")
    assert main(["finetune", str(bert), "--data", str(data), "--epochs", "1", "--out", str(tmp_path / "out")]) == 0
    assert main(["fill", str(bert), "W7 [MASK] W8"]) == 0
    (tmp_path / "texts.txt").write_text("W7 W8\n")
    assert main(["embed", str(bert), str(tmp_path / "texts.txt"), "--out", str(tmp_path / "v.npy")]) == 0
    capsys.readouterr()
    assert main(["info", str(bert), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)


def test_the_model_before_the_options_comes_first(bert):
    found, notes = translated([f"--init_checkpoint={bert / 'bert_model.ckpt'}"], lambda rest: "mine")
    assert (found, notes) == ([], ["--init_checkpoint left out: the model is mine, as given before the options"])


def test_files_of_a_folder_of_another_layout_name_the_folder(bert, tmp_path):
    from maskery.checkpoint.importing import import_model

    import_model(bert, tmp_path / "ours")
    for given in (["--init_checkpoint", "model.safetensors"], ["--vocab_file", "vocab.txt"]):
        assert translated([given[0], str(tmp_path / "ours" / given[1])])[0] == [str(tmp_path / "ours")]
    assert translated([f"--bert_config_file={bert / 'bert_config.json'}"])[0] == [str(bert)]


def test_files_that_do_not_belong_together_are_refused(bert, tmp_path, capsys):
    other = shutil.copy(bert / "vocab.txt", tmp_path / "vocab.txt")
    data = folder_of(tmp_path, "mrpc")
    assert main(classic(bert, data, tmp_path / "out", vocab_file=other)) == 2
    told = " ".join(capsys.readouterr().err.split())
    assert f"--vocab_file {other} is not the file that lies beside {bert / 'bert_model.ckpt'}" in told
    assert f"maskery import {bert / 'bert_model.ckpt'}" in told
    for more, cause in (
        ({"init_checkpoint": bert / "other.ckpt"}, "there is no checkpoint"),
        ({"vocab_file": bert / "none.txt"}, "there is no such file"),
        (
            {"init_checkpoint": None, "bert_config_file": data / "x.json", "vocab_file": None},
            "there is no checkpoint beside",
        ),
    ):
        assert main(classic(bert, data, tmp_path / "out", **more)) == 2
        assert cause in capsys.readouterr().err
    with pytest.raises(InputError, match="--init_checkpoint has no value"):
        translated(["--init_checkpoint"])
    assert not (tmp_path / "out").exists()
