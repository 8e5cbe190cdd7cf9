"""`maskery pretrain`: precedence, automatic choices, budgets, resuming, exit codes."""

import io
import json
import os
import shutil
import time

import pytest
import torch
from rich.console import Console
from safetensors.torch import load_file
from tiny import SMALL, build

from maskery.cli import main
from maskery.cli.live import Display, Meter, Smooth
from maskery.cli.output import talk
from maskery.cli.settings import parse_settings
from maskery.errors import InputError
from maskery.feed import Feed
from maskery.model.config import ModelConfig
from maskery.model.cost import forward_flops
from maskery.phases import Phase
from maskery.recipes.recipe import recipe
from maskery.train import budget, machine, tokens
from maskery.train.folder import RunFolder
from maskery.train.loop import Update
from maskery.train.options import Options, flat
from maskery.train.settle import settle


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return build(tmp_path_factory.mktemp("pretrain"))


@pytest.fixture
def pretrain(corpus, tmp_path):
    def call(*arguments, name="bert", out="run"):
        folder = ["--corpus", str(corpus.path), "--out", str(tmp_path / out)]
        return main(["pretrain", name, *folder, *SMALL, *map(str, arguments)])

    return call


QUICK = ("--length", 32, "--batch", 4)


# -- budgets


def test_budget_grammar():
    assert [budget.parse_budget(each) for each in ("30s", "10m", "2h", "1.5m")] == [30, 600, 7200, 90]
    for bad in ("10", "m", "", "-5m", "10 minutes", "0s", "1h30m"):
        with pytest.raises(InputError, match="--budget"):
            budget.parse_budget(bad)


def test_steps_within_a_budget():
    first, second = Phase(0, 0, 9, 16, 10, 1e-3), Phase(1, 9, 10, 32, 10, 1e-3)
    speeds = [budget.Speed(first, 0.9, 1.0), budget.Speed(second, 0.1, 11.0)]
    assert budget.steps_within(2000 / 0.97, speeds, 0, 0) == 1000
    evaluated = budget.steps_within(2000 / 0.97, speeds, 100, 30)  # an evaluation: 30 rows of 1.1 s / 3 = 11 s
    assert evaluated == int((2000 - 11) / (2 + 0.11))
    assert budget.steps_within(0.01, speeds, 0, 30) == 1


def test_steps_for_tokens_are_those_read(corpus):
    settings = {"training.length": 32, "training.phases": [], "training.batch": 4}
    made = recipe("bert", settings)
    steps, each = tokens.steps_for_tokens(20_000, made, corpus)
    read = [Feed(made, corpus, 0).batch(step).tokens for step in range(steps)]
    assert sum(read) / len(read) == pytest.approx(each, rel=0.05)
    assert sum(read) == pytest.approx(20_000, rel=0.05)


def test_flops_by_hand():
    shape = ModelConfig(layers=2, width=8, heads=2, embedding=4, feedforward=16).shape(100)
    matrices = 2 * (4 * 8 * 8 + 2 * 8 * 16) + 4 * 8
    attention = 2 * (2 * 8 * 10)
    assert forward_flops(shape, 10) == 2 * (matrices + attention)
    head = 100 * 4 + 8 * 4
    assert forward_flops(shape, 10, 0.75) == 2 * (matrices + attention + 0.75 * head)
    spared = 0.75 * (2 * 8 * 8 + 2 * 8 * 16 + 2 * 8 * 10)  # what the last layer leaves out
    assert forward_flops(shape, 10, 0.25) == 2 * (matrices + attention - spared + 0.25 * head)


# -- the display


def update(step, loss=1.0, tokens=100, seconds=0.5):
    return Update(step=step, loss=loss, losses={}, lr=1e-3, gradient_norm=1.0, tokens=tokens, seconds=seconds, note="")


def test_smooth_is_a_mean_from_the_first_value():
    smooth = Smooth()
    smooth.add(4.0)
    assert smooth.value == 4.0
    for _ in range(500):
        smooth.add(1.0)
    assert smooth.value == pytest.approx(1.0, abs=1e-6)


def test_meter():
    meter = Meter(steps=10, flops_per_token=5.0, peak=2000.0)
    meter.add(update(1), {})
    assert meter.text() == "step 1/10, loss 1.000, rate 0.001, 200 tokens/s (50 % of peak), 4s left"
    meter.add(update(2), {"eval/loss": 2.5, "eval/accuracy": 0.25})
    assert meter.text().endswith("held out: loss 2.500, accuracy 25.0 %")


def test_a_log_gets_few_lines(tmp_path, capsys):
    now = 0.0
    display = Display(Meter(100, 1.0, 0.0), talk(), lambda: now)
    display.begin(tmp_path, recipe("bert"), 0)
    for step in range(1, 101):
        now += 0.5
        display.log(update(step), {})
    display.end(None)
    lines = capsys.readouterr().err.splitlines()
    assert [line.split(",")[0] for line in lines] == [f"step {n}/100" for n in (20, 40, 60, 80, 100)]


def test_a_terminal_gets_a_bar_above_the_figures(tmp_path):
    terminal = io.StringIO()
    display = Display(Meter(4, 1.0, 0.0), Console(file=terminal, force_terminal=True, width=100))
    display.begin(tmp_path, recipe("bert"), 0)
    display.log(update(2), {})
    display.end(None)
    lines = terminal.getvalue().split("\n")
    bar = next(number for number, line in enumerate(lines) if "━" in line)
    assert "step" not in lines[bar]
    assert "step 2/4, loss 1.000" in lines[bar + 1]


# -- the verb


def test_resuming_takes_what_is_open_from_the_run(pretrain, corpus, tmp_path, monkeypatch):
    assert pretrain("--length", 16, "--set", "training.batch=5", "--steps", 2) == 0
    request = Options(recipe="bert", length=16, settings=flat(parse_settings(SMALL[1::2])))
    again = settle(request, corpus, tmp_path / "run", True, say=lambda text: None)
    assert (again.training.batch, again.training.length, again.training.lr) == (5, 16, 2e-3)
    monkeypatch.setattr(machine, "device", lambda: torch.device("cuda"))
    beside = settle(request, corpus, tmp_path / "run", True, say=lambda text: None)
    assert beside == again, "also where it is resumed beside a GPU"


def test_a_run_and_what_it_says(pretrain, tmp_path, capsys):
    assert pretrain(*QUICK, "--steps", 6, "--seed", 3, "--json") == 0
    captured = capsys.readouterr()
    found = json.loads(captured.out)
    assert (found["steps"], found["run"]) == (6, str(tmp_path / "run"))
    assert found["eval"]["masked_token/accuracy"] >= 0
    assert "--save-every 1: the run is shorter than 1,000 steps" in captured.err
    made = RunFolder(tmp_path / "run").recipe
    assert (made.training.steps, made.training.batch, made.training.length, made.training.seed) == (6, 4, 32, 3)
    assert made.model.width == 16


def test_a_budget_is_measured_once_and_written_down(pretrain, tmp_path, capsys):
    began = time.monotonic()
    assert pretrain(*QUICK, "--budget", "2s") == 0
    captured = capsys.readouterr()
    assert time.monotonic() - began < 20
    assert "measured for one update" in captured.err
    assert f'maskery fill {tmp_path / "run"} "' in captured.err
    steps = RunFolder(tmp_path / "run").recipe.training.steps
    assert f"--budget 2s: {steps:,} steps" in captured.err
    assert pretrain(*QUICK, "--budget", "2s", "--resume") == 0
    assert f"as the run was started: {steps:,} steps" in capsys.readouterr().err


def test_tokens_become_steps(pretrain, tmp_path, capsys):
    assert pretrain(*QUICK, "--tokens", 600) == 0
    lines = list(RunFolder(tmp_path / "run").metrics())
    assert 300 < lines[-1]["tokens"] < 1200
    assert f"--tokens 600: {lines[-1]['step']} steps" in capsys.readouterr().err


def test_a_model_to_start_from(pretrain, capsys):
    assert pretrain(*QUICK, "--steps", 2, out="first") == 0
    run = ["--from", capsys.readouterr().out.split(":")[0]]
    assert pretrain(*QUICK, "--steps", 2, *run, out="second") == 0
    assert "heads taken: masked_token, next_sentence" in capsys.readouterr().err
    assert pretrain(*QUICK, "--steps", 2, *run, "--set", "model.segments=3", out="third") == 2
    told = "from the recipe's: segments 2 for 3\n  repair: give the recipe the model's: --set model.segments=2\n"
    assert told in capsys.readouterr().err


def test_a_pickle_to_start_from(pretrain, tmp_path, capsys):
    assert pretrain(*QUICK, "--steps", 1, out="first") == 0
    assert "a model of 1 step, " in capsys.readouterr().out
    model = tmp_path / "first"
    tensors = load_file(model / "model.safetensors") | {"riddle.weight": torch.zeros(2)}
    torch.save(tensors, model / "pytorch_model.bin")
    for name in ("model.safetensors", "manifest.json", "recipe.toml"):
        (model / name).unlink()
    shutil.rmtree(model / "checkpoints")
    start = [*QUICK, "--steps", 1, "--from", model]
    assert pretrain(*start, out="second") == 2
    assert "--allow-pickle" in capsys.readouterr().err
    assert pretrain(*start, "--allow-pickle", out="second") == 0
    err = capsys.readouterr().err
    assert f"{model}: unused tensors: 1: riddle.weight" in err
    assert "heads taken: masked_token, next_sentence" in err


def test_an_existing_run_needs_resume_and_the_same_answers(pretrain, tmp_path, capsys):
    assert pretrain(*QUICK, "--steps", 4) == 0
    before = (tmp_path / "run" / "recipe.toml").read_text()
    capsys.readouterr()
    assert pretrain(*QUICK, "--steps", 4) == 2
    assert "--resume" in capsys.readouterr().err
    assert pretrain(*QUICK, "--steps", 2, "--resume") == 2
    assert "training.steps: the run has 4, asked is 2" in capsys.readouterr().err
    assert pretrain("--length", 16, "--batch", 4, "--steps", 4, "--resume") == 2
    assert "training.length" in capsys.readouterr().err
    assert pretrain(*QUICK, "--steps", 4, "--resume") == 0
    assert "already finished at step 4" in capsys.readouterr().err
    assert (tmp_path / "run" / "recipe.toml").read_text() == before


def test_bad_input(pretrain, corpus, tmp_path, capsys):
    file = tmp_path / "file"
    file.write_text("x")
    for arguments, told in (
        (["--steps", 3, "--budget", "1m"], "keep --steps alone"),
        (["--budget", "soon"], "--budget 10m"),
        (["--steps", 0], "training.steps"),
        (["--tokens", 0], "--tokens"),
        (["--size", "huge"], "choices: base"),
        (["--set", "model.layer=3"], "model.layers"),
        (["--from", tmp_path / "no"], "no such folder"),
        (["--workers", -1], "Usage: maskery pretrain"),
        (["--stepps", 3], "Usage: maskery pretrain"),
        (["--set", "visibility.kind=causal"], "cannot see the second segment"),
        (["--set", "training.batch=two"], "training.batch"),
    ):
        assert pretrain(*QUICK, *arguments) == 2, arguments
        captured = capsys.readouterr()
        assert told in captured.err, captured.err
        assert captured.out == ""
    assert pretrain("--steps", 3, name="bret") == 2
    assert "did you mean bert" in capsys.readouterr().err
    assert pretrain("--steps", 3, out="file/run") == 2
    assert "is a file, not a folder" in capsys.readouterr().err
    assert main(["pretrain", "bert", "--corpus", str(tmp_path / "no"), "--out", str(tmp_path / "run")]) == 2
    assert "maskery corpus build" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.skipif(os.getuid() == 0, reason="for this user every folder can be written to")
def test_a_folder_that_cannot_be_written_to(pretrain, tmp_path, capsys):
    (tmp_path / "locked").mkdir(mode=0o500)
    assert pretrain(*QUICK, "--steps", 2, out="locked/run") == 2
    assert "cannot be written to" in capsys.readouterr().err


def test_a_loss_that_explodes_is_exit_1(pretrain, capsys):
    assert pretrain(*QUICK, "--steps", 50, "--set", "training.lr=1e30", "--set", "training.clip=0.0") == 1
    assert "not finite" in capsys.readouterr().err
