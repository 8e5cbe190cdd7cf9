"""`maskery evaluate MODEL --task sts|pairs|retrieval|clustering|geometry`: the figures of sentence vectors."""

from __future__ import annotations

import json

import pytest
from small_encoder import TOPICS, quiet, small_encoder, text

from maskery.cli import main
from maskery.vectors.encoder import Encoder
from maskery.vectors.judge.measure import HEADLINES, evaluate_vectors

ROWS = [(text(n, n), text(n, n + n % 2, 1), 1 - n % 2) for n in range(36)]
FILES = {
    "sts": [(one, other, f"{4 * same + 0.5}") for one, other, same in ROWS],
    "pairs": ROWS,
    "retrieval": [row for row in ROWS if row[2]],
    "clustering": [(one, TOPICS[n % len(TOPICS)]) for n, (one, _, _) in enumerate(ROWS)],
    "geometry": ROWS,
}
HEADS = {"clustering": "text\tlabel"}


@pytest.fixture(scope="module")
def place(tmp_path_factory, no_waiting_for_the_disk):
    folder = tmp_path_factory.mktemp("evaluate")
    Encoder(small_encoder(), say=quiet).save(folder / "model")
    for task, rows in FILES.items():
        lines = [HEADS.get(task, "sentence1\tsentence2\tscore"), *("\t".join(map(str, row)) for row in rows)]
        (folder / f"{task}.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


@pytest.fixture
def evaluate(place, capsys):
    def call(task, *arguments):
        data = place / f"{task if task in FILES else 'sts'}.tsv"
        code = main(["evaluate", str(place / "model"), "--task", task, "--data", str(data), *map(str, arguments)])
        return code, *capsys.readouterr()

    return call


@pytest.mark.parametrize("task", FILES)
def test_the_figures_are_those_of_the_vectors(task, evaluate, place):
    code, out, err = evaluate(task, "--json")
    assert code == 0, err
    wanted = evaluate_vectors(Encoder(place / "model", say=quiet), task, place / f"{task}.tsv")
    assert json.loads(out) == json.loads(json.dumps(wanted.plain()))
    assert HEADLINES[task] in json.loads(out)


def test_a_terminal_is_told_in_lines(evaluate):
    code, out, _ = evaluate("sts")
    assert code == 0
    assert out.splitlines()[0] == "sts, 36 pairs; in brackets the 95 % interval"
    assert out.splitlines()[1].split()[0] == "spearman"


@pytest.mark.parametrize("flag", [("--html", "page.html"), ("--meta", "score")])
def test_what_belongs_to_fine_tuned_models_is_refused(evaluate, flag):
    code, _, err = evaluate("sts", *flag)
    assert code == 2
    assert f"{flag[0]} belongs to fine-tuned models" in " ".join(err.split())


def test_an_encoder_without_a_task_is_asked_which(place, capsys):
    assert main(["evaluate", str(place / "model"), "--data", str(place / "sts.tsv")]) == 2
    told = " ".join(capsys.readouterr().err.split())
    assert "makes vectors, and has no task of its own" in told
    assert "--task sts, pairs, retrieval, clustering or geometry" in told


def test_an_unknown_task_lists_those_of_vectors_too(evaluate):
    code, _, err = evaluate("clusterin")
    assert code == 2
    assert "clustering" in err


def test_a_model_that_is_not_there_is_told(place, capsys):
    code = main(["evaluate", str(place / "none"), "--task", "sts", "--data", str(place / "sts.tsv")])
    assert code == 2
    assert "none" in capsys.readouterr().err
