"""A run resumed with more steps than it was started with: goes on as a run of the new length, bitwise resumable."""

import json
import shutil

import pytest
from small_run import (
    TINY_FLAGS,
    corpus_in,
    cut_back,
    lines_without_time,
    run_quietly,
    same_files,
    tiny_recipe,
)

from maskery.checkpoint.load import load
from maskery.cli import main
from maskery.errors import RecipeError
from maskery.train.folder import RunFolder
from maskery.train.schedules import Longer, rate

pytestmark = pytest.mark.usefixtures("no_waiting_for_the_disk")
SHORT, LONG = 10, 24
SAVING = {"training__save_every": 1, "training__keep": 100, "training__eval_every": 0}


def made(steps, name="bert", **changes):
    return tiny_recipe(name, training__steps=steps, **SAVING, **changes)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return corpus_in(tmp_path_factory.mktemp("corpus"))


@pytest.fixture(scope="module")
def short(corpus, tmp_path_factory):
    out = tmp_path_factory.mktemp("short") / "run"
    run_quietly(made(SHORT), corpus, out)
    return out


@pytest.fixture(scope="module")
def long(corpus, short, tmp_path_factory):
    """The finished run of 10 steps, made one of 24."""
    out = tmp_path_factory.mktemp("long") / "run"
    shutil.copytree(short, out)
    _, talk = run_quietly(made(LONG), corpus, out, True)
    return out, talk.text


def test_a_finished_run_goes_on_and_that_is_printed_and_recorded(short, long):
    out, talk = long
    assert f"made longer after step {SHORT}: {SHORT} steps become {LONG}; learning rate 0 at step {SHORT}" in talk
    state = RunFolder(out).state
    assert state["finished"]
    assert state["step"] == LONG
    assert state["longer"] == [{"step": SHORT, "before": SHORT, "after": LONG, "lr": 0.0}]
    assert RunFolder(out).recipe == made(LONG)
    lines = lines_without_time(out)
    assert [line["step"] for line in lines] == list(range(1, LONG + 1))
    assert lines[:SHORT] == lines_without_time(short), "what was learnt before is kept"
    longer = (Longer(**state["longer"][0]),)
    for line in lines:
        assert line["lr"] == rate(made(LONG).training, line["step"], longer)
    assert lines[SHORT]["lr"] > 0
    assert load(out).note == ""


@pytest.mark.parametrize("step", [SHORT, SHORT + 1, 17, LONG])
def test_the_longer_run_is_resumed_bitwise(long, corpus, tmp_path, step):
    out, _ = long
    run = cut_back(out, step, tmp_path / "run")
    folder = RunFolder(run)  # of a run that is killed, state.json says where it was made longer
    folder.write_state({**folder.state, "longer": RunFolder(out).state["longer"]})
    run_quietly(made(LONG), corpus, run, True)
    same_files(out / f"checkpoints/step-{LONG}", run / f"checkpoints/step-{LONG}")
    assert lines_without_time(run) == lines_without_time(out)


def test_it_is_longer_again(long, corpus, tmp_path):
    out, _ = long
    shutil.copytree(out, tmp_path / "run")
    run_quietly(made(LONG + 4), corpus, tmp_path / "run", True)
    found = RunFolder(tmp_path / "run").state
    assert [(each["step"], each["after"]) for each in found["longer"]] == [(SHORT, LONG), (LONG, LONG + 4)]
    assert found["step"] == LONG + 4


def test_an_unfinished_run_is_made_longer_from_its_checkpoint(short, corpus, tmp_path):
    run = cut_back(short, 6, tmp_path / "run")
    _, talk = run_quietly(made(LONG), corpus, run, True)
    assert "made longer after step 6" in talk.text
    (entry,) = RunFolder(run).state["longer"]
    assert entry["lr"] == lines_without_time(short)[5]["lr"]


def test_the_same_length_stays_bitwise_and_says_nothing(short, corpus, tmp_path):
    run = cut_back(short, 6, tmp_path / "run")
    _, talk = run_quietly(made(SHORT), corpus, run, True)
    assert "made longer" not in talk.text
    assert "longer" not in RunFolder(run).state
    same_files(short / f"checkpoints/step-{SHORT}", run / f"checkpoints/step-{SHORT}")


def test_shorter_is_refused_and_so_is_anything_else(long, corpus):
    out, _ = long
    with pytest.raises(RecipeError, match="longer, not shorter"):
        run_quietly(made(SHORT), corpus, out, True)
    with pytest.raises(RecipeError, match=r"training.lr.*\n.*same recipe"):
        run_quietly(made(LONG + 9, training__lr=1.0), corpus, out, True)


def test_a_run_that_is_stopped_on_the_way_opens_as_its_newest_checkpoint(short, corpus, tmp_path, monkeypatch):
    shutil.copytree(short, tmp_path / "run")
    monkeypatch.setattr("maskery.train.run._train", lambda *given: None)
    run_quietly(made(LONG), corpus, tmp_path / "run", True)
    assert "checkpoints/step-10" in load(tmp_path / "run").note


def test_a_kill_between_state_and_recipe_leaves_the_old_run(short, corpus, tmp_path, monkeypatch):
    shutil.copytree(short, tmp_path / "run")
    with monkeypatch.context() as patch:

        def killed(path, text):
            raise KeyboardInterrupt

        patch.setattr("maskery.files.write_text", lambda path, text: killed(path, text) if path.suffix == ".toml"
                      else path.write_text(text))  # fmt: skip
        with pytest.raises(KeyboardInterrupt):
            run_quietly(made(LONG), corpus, tmp_path / "run", True)
    run_quietly(made(SHORT), corpus, tmp_path / "run", True)
    found = RunFolder(tmp_path / "run").state
    assert (found["step"], found["finished"], found.get("longer")) == (SHORT, True, None)
    run_quietly(made(LONG), corpus, tmp_path / "run", True)
    assert RunFolder(tmp_path / "run").state["longer"][0]["after"] == LONG


def test_phases_are_those_of_the_new_length(corpus, tmp_path):
    phases = {"training__phases": [{"steps": 3, "length": 12, "batch": 12}, {"steps": 1, "length": 24}]}
    run_quietly(made(2, **phases), corpus, tmp_path / "run")
    run_quietly(made(8, **phases), corpus, tmp_path / "run", True)
    assert RunFolder(tmp_path / "run").state["step"] == 8


def test_the_command(corpus, tmp_path, capsys):
    command = ["pretrain", "bert", "--corpus", str(corpus.path), "--out", str(tmp_path / "run"), *TINY_FLAGS]
    assert main([*command, "--steps", "4"]) == 0
    assert main([*command, "--steps", "6", "--resume", "--json"]) == 0
    output = capsys.readouterr()
    assert "made longer after step 4: 4 steps become 6" in output.err
    assert json.loads(output.out[output.out.index("{") :])["steps"] == 6
    assert main([*command, "--steps", "4", "--resume"]) == 2
    assert "give as many steps or more" in capsys.readouterr().err
