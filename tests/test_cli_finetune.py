"""`maskery finetune`: what it prints and writes, what it refuses, Ctrl-C and going on, run_classifier's flags."""

from __future__ import annotations

import json
import os
import signal

import pytest
from networks import model_of
from small_task import of_two_classes, write_tsv

from maskery.cli import live_task, main
from maskery.cli.called import program
from maskery.cli.run_classifier import translated
from maskery.errors import InputError

SMALL = ("--epochs", 2, "--batch", 8, "--lr", "3e-3")


@pytest.fixture(scope="module")
def place(tmp_path_factory, no_waiting_for_the_disk):
    folder = tmp_path_factory.mktemp("finetune")
    model_of(pooler=True).save(folder / "model")
    (folder / "data").mkdir()
    write_tsv(folder / "data" / "train.tsv", of_two_classes(0, 40))
    write_tsv(folder / "data" / "dev.tsv", of_two_classes(100, 20))
    write_tsv(folder / "data" / "test.tsv", ([text] for _, text in of_two_classes(200, 3)), "text\n")
    return folder


@pytest.fixture
def run(place, capsys):
    def call(*arguments, model="model"):
        code = main(["finetune", str(place / model), *map(str, arguments)])
        output = capsys.readouterr()
        return code, output.out, output.err

    return call


def test_a_folder_gives_a_measured_model(place, run, tmp_path):
    out = tmp_path / "run"
    code, printed, told = run("--data", place / "data", "--out", out, *SMALL)
    assert code == 0
    block = printed.splitlines()
    assert block[0] == "***** Eval results *****"
    assert [line.split(" = ")[0] for line in block[1:5]] == [
        "  eval_accuracy",
        "  eval_loss",
        "  global_step",
        "  loss",
    ]
    assert (out / "eval_results.txt").read_text().splitlines() == [line.strip() for line in block[1:5]]
    assert f"report: {out / 'report.html'}" in printed
    assert (out / "report.html").is_file()
    assert f"next: {program()} predict {out} FILE" in told
    assert "train.tsv: label = column 1 (by its values)" in told
    assert told.count(": dev: accuracy ") == 2, "one line after each epoch"
    assert "tokens/s" in told
    answers = (out / "test_predictions.tsv").read_text().splitlines()
    assert [line.split("\t")[0] for line in answers] == ["guid", "test-1", "test-2", "test-3"]


def test_json_has_the_run_and_its_figures(place, run, tmp_path):
    files = [f"--{name}={place / 'data' / name}.tsv" for name in ("train", "dev")]
    code, printed, _ = run(*files, "--out", tmp_path / "run", *SMALL, "--json", "--seed", 3)
    found = json.loads(printed)
    assert (code, found["task"], found["labels"]) == (0, "classify", ["animal", "thing"])
    assert found["steps"] == found["results"]["global_step"] == 10
    assert found["eval"]["n"] == 20
    assert found["results"]["eval_accuracy"] == pytest.approx(found["eval"]["accuracy"])
    assert found["test"] is None
    assert "seed = 3" in (tmp_path / "run" / "task.toml").read_text()


def test_flags_beat_settings_and_both_leave_the_rest_as_it_is_usual(place, run, tmp_path):
    asked = ("--set", "training.lr=1.0", "--set", "head.dropout=0.2", "--lr", "3e-3", "--epochs", 1)
    code, _, _ = run("--data", place / "data", "--out", tmp_path / "run", *asked)
    task = (tmp_path / "run" / "task.toml").read_text()
    assert code == 0
    assert [line for line in ("lr = 0.003", "batch = 4", "warmup = 0.1", "dropout = 0.2") if line not in task] == []


def test_without_a_development_set_it_is_told(place, run, tmp_path):
    train = place / "data" / "train.tsv"
    code, printed, told = run("--train", train, "--out", tmp_path / "run", "--epochs", 1, "--freeze", "--pool", "mean")
    assert code == 0
    assert "Eval results" not in printed
    assert "there is no development set: the last model is kept" in told
    code, _, told = run("--train", train, "--out", tmp_path / "other", "--patience", 1)
    assert (code, "--patience needs a development set" in told) == (2, True)


REFUSED = {
    "nothing": ((), "there is nothing to learn from"),
    "two ways": (("--data", "data", "--train", "data/train.tsv"), "--data and --train both say what to read"),
    "dev alone": (("--dev", "data/dev.tsv"), "--dev without --train"),
    "no folder": (("--data", "nowhere"), "nowhere: there is no such folder"),
    "no file": (("--train", "nowhere.tsv"), "nowhere.tsv: no such file"),
    "task": (("--data", "data", "--task", "clasify"), "did you mean classify?"),
    "truncate": (("--data", "data", "--truncate", "middle"), "choices: all, fuse, head, head+tail, tail"),
    "budget": (("--data", "data", "--budget", "soon"), "--budget 'soon' is no length of time"),
    "seeds": (("--data", "data", "--seeds", "0"), "--seeds"),
    "curve without dev": (("--train", "data/train.tsv", "--curve"), "--curve needs a development set"),
    "seeds without dev": (("--train", "data/train.tsv", "--seeds", "2"), "--seeds 2 needs a development set"),
    "ends without dev": (("--train", "data/train.tsv", "--truncate", "all"), "--truncate all needs a development set"),
    "set fused": (("--data", "data", "--set", "fused=head"), "--truncate fuse"),
    "epochs": (("--data", "data", "--epochs", "0"), "--epochs: Input should be greater than 0"),
    "key": (("--data", "data", "--set", "rows.lenght=5"), "did you mean rows.length"),
    "settled": (("--data", "data", "--set", "training.steps=5"), "--epochs N"),
    "crf": (("--data", "data", "--crf"), "--crf is for the task tag; this is classify"),
    "no value": (("--data", "data", "--set", "head.crf"), "is not KEY=VALUE"),
    "empty dev": (("--train", "data/train.tsv", "--dev", "empty.tsv"), "empty.tsv: the file is empty"),
    "only a header": (("--train", "data/train.tsv", "--dev", "header.tsv"), "header.tsv:1: there is no example"),
    "unknown label": (("--train", "data/train.tsv", "--dev", "strange.tsv"), "strange.tsv:2: the label 'ghost'"),
    "no flag": (("--data", "data", "--rate", "1"), "No such option: --rate"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_is_refused_before_anything_is_written(case, place, run, monkeypatch):
    monkeypatch.chdir(place)
    write_tsv(place / "empty.tsv", ())
    write_tsv(place / "header.tsv", (), "label\ttext\n")
    write_tsv(place / "strange.tsv", [("animal", "a cat"), ("ghost", "a b"), ("animal", "b cat"), ("thing", "a mat")])
    arguments, told = REFUSED[case]
    code, printed, error = run(*arguments, "--out", "refused")
    assert (code, printed) == (2, "")
    assert told in error
    assert not (place / "refused").exists()


def test_a_model_that_is_not_there_and_a_run_that_is(place, run, tmp_path):
    code, _, told = run("--data", place / "data", "--out", tmp_path / "run", model="nowhere")
    assert (code, "no such folder" in told) == (2, True)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "letter.txt").write_text("dear")
    code, _, told = run("--data", place / "data", "--out", tmp_path / "full")
    assert (code, "is already there" in told) == (2, True)


def test_ctrl_c_leaves_the_best_model_and_resume_goes_on(place, run, tmp_path, monkeypatch, capsys):
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    asked = ("--data", place / "data", *SMALL)
    assert run(*asked, "--out", whole)[0] == 0
    told = live_task.DevMeter.add

    def interrupted(self, update, line):
        told(self, update, line)
        if update.step == 7:
            os.kill(os.getpid(), signal.SIGINT)

    with monkeypatch.context() as patch:
        patch.setattr(live_task.DevMeter, "add", interrupted)
        code, _, error = run(*asked, "--out", cut)
    assert code == 130
    assert "the same command and --resume" in error
    assert main(["predict", str(cut), str(place / "data" / "test.tsv")]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 4
    code, printed, error = run(*asked, "--out", cut, "--resume")
    assert (code, "resumed from step-7" in error) == (0, True)
    assert "***** Eval results *****" in printed
    assert (cut / "model.safetensors").read_bytes() == (whole / "model.safetensors").read_bytes()
    assert "README.md" in same_files_but_time(whole, cut)
    code, _, error = run(*asked, "--out", cut, "--resume")
    assert (code, "already finished at step 10" in error) == (0, True)


def same_files_but_time(one, other):
    """The answers and figures of two runs, byte by byte."""
    names = ("eval_results.txt", "evaluation.json", "test_predictions.tsv", "task.toml")
    for name in names:
        assert (one / name).read_bytes() == (other / name).read_bytes(), name
    return [path.name for path in other.iterdir()]


# -- run_classifier


def test_a_command_for_run_classifier_is_understood_and_told(place, run, tmp_path):
    out = tmp_path / "run"
    flags = [
        "--task_name=demo", "--do_train=true", "--do_eval", "--nodo_predict", f"--data_dir={place / 'data'}",
        "--do_lower_case=False", "--max_seq_length=16", "--train_batch_size", "8", "--learning_rate=3e-3",
        "--num_train_epochs=1.0", f"--output_dir={out}", "--warmup_proportion=0.2",
    ]  # fmt: skip
    code, printed, told = run(*flags)
    assert (code, printed.splitlines()[0]) == (0, "***** Eval results *****")
    assert "--max_seq_length is understood as --length 16" in told
    assert "--task_name demo is left out" in told
    assert "--do_lower_case is left out: the model's own tokenizer says" in told
    task = (out / "task.toml").read_text()
    assert [line for line in ("batch = 8", "length = 16", "warmup = 0.2") if line not in task] == []


def test_flags_that_cannot_be_followed_are_refused():
    with pytest.raises(InputError, match="maskery evaluate RUN --data FILE"):
        translated(["--do_train=False"])
    with pytest.raises(InputError, match="--max_seq_length has no value"):
        translated(["--max_seq_length"])
    assert translated(["model", "--task_name", "news", "--lr", "1"])[0] == ["model", "--lr", "1"]
    assert translated(["--task_name=pair"])[0] == ["--task", "pair"]
    assert translated(["model", "--data", "d", "--no", "--note"])[1] == []


def test_a_class_of_the_users_own_reads_the_data(place, run, tmp_path):
    code = (
        "from pathlib import Path\n"
        "from types import SimpleNamespace as Row\n"
        "class Demo:\n"
        "    def get_labels(self): return ['thing', 'animal']\n"
        "    def _rows(self, folder, split):\n"
        "        for n, line in enumerate(Path(folder, f'{split}.tsv').read_text('utf-8').splitlines()):\n"
        "            label, text = line.strip().split('\\t')\n"
        "            yield Row(guid=f'{split}-{n}', text_a=text, text_b=None, label=label)\n"
        "    def get_train_examples(self, folder): return list(self._rows(folder, 'train'))\n"
        "    def get_dev_examples(self, folder): return list(self._rows(folder, 'dev'))\n"
    )
    (tmp_path / "own.py").write_text(code)
    asked = ("--processor", f"{tmp_path / 'own.py'}:Demo", "--data", place / "data", "--epochs", 1, "--json")
    exit_code, printed, told = run(*asked, "--out", tmp_path / "run")
    assert (exit_code, json.loads(printed)["labels"]) == (0, ["thing", "animal"])
    assert "the code of this file was run" in told
