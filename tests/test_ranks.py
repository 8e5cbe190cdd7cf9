"""Two ranks see the rows of one and learn the same; whatever ends one of them ends both, and the run goes on."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from rank_script import CASES, STOPPED, WHOLE, asking
from safetensors.torch import load_file
from small_run import TINY, corpus_in, cut_back, flags_of, lines_without_time, run_quietly, same_files, tiny_recipe
from test_train_loop import rows_in

from maskery.feed import Feed

HERE = Path(__file__).parent
PATIENCE = 900
"""Seconds; only what hangs takes them."""
STEPS = WHOLE["training__steps"]
KILLED = STEPS - 13


HOOK = """
import os, signal
if os.environ.get("RANK") == "1":
    from maskery.system import System
    forward = System.forward
    def watched(self, batch):
        if batch.step == {step}:
            os.kill({process}, {signal})
        return forward(self, batch)
    System.forward = watched
"""
"""Runs when a Python starts: the second rank sends a signal in the middle of a step."""


def run_ranks(command, *paths):
    """A command with these on its path, first to last: its exit code, results and talk."""
    path = os.pathsep.join(map(str, [*paths, HERE, HERE.parent]))
    done = subprocess.run(
        [sys.executable, "-m", *command],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
        timeout=PATIENCE,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


def torchrun(script, *arguments):
    command = ["torch.distributed.run", "--nproc-per-node", "2", script, *arguments]
    return run_ranks(list(map(str, command)))


def pretrain_and_signal(corpus, out, hook, *more):
    """`maskery pretrain --ranks 2`, with what HOOK does."""
    folder = out.parent / "hook"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(hook)
    arguments = ["pretrain", "bert", "--corpus", str(corpus.path), "--out", str(out), *flags_of(TINY), "--as-published"]
    return run_ranks(["maskery", *arguments, "--threads", "1", "--ranks", "2", *more], folder)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return corpus_in(tmp_path_factory.mktemp("corpus"))


@pytest.fixture(scope="module")
def killed(corpus, tmp_path_factory):
    """A run of two ranks whose second was killed; and what was told."""
    out = tmp_path_factory.mktemp("killed") / "run"
    hook = HOOK.format(step=KILLED, process="os.getpid()", signal="signal.SIGKILL")
    code, _, talk = pretrain_and_signal(corpus, out, hook, "--steps", str(STEPS), "--save-every", "5")
    return out, code, talk


@pytest.fixture(scope="module")
def ranks(corpus, killed, tmp_path_factory):
    """The folder in which two ranks under torchrun itself have done what rank_script.py says."""
    folder = tmp_path_factory.mktemp("ranks")
    recipe, changes, _ = CASES["plain"]
    run_quietly(tiny_recipe(recipe, **changes), corpus, folder / "one")
    cut_back(folder / "one", 8, folder / "grown")
    code, _, talk = torchrun(HERE / "rank_script.py", corpus.path, folder, killed[0])
    assert code == 0, talk
    return folder


@pytest.fixture(scope="module")
def found(ranks):
    return json.loads((ranks / "found.json").read_text())


# -- the same rows, the same losses


@pytest.mark.parametrize("case", CASES)
def test_two_ranks_see_the_rows_and_masks_of_one(corpus, found, case):
    recipe, changes, _ = CASES[case]
    feed = Feed(tiny_recipe(recipe, **changes), corpus, 0)
    with asking(case):
        expected = [rows_in(feed.batch(step)) for step in range(len(found["rows"][case]))]
    assert found["rows"][case] == json.loads(json.dumps(expected))


@pytest.mark.parametrize("case", CASES)
def test_two_ranks_learn_what_one_learns(corpus, ranks, tmp_path, case):
    recipe, changes, _ = CASES[case]
    with asking(case):
        run, _ = run_quietly(tiny_recipe(recipe, **changes), corpus, tmp_path / "one")
    alone, together = lines_without_time(run.path), lines_without_time(ranks / case)
    assert [line["tokens"] for line in alone] == [line["tokens"] for line in together]
    differences = [abs(one["loss"] - two["loss"]) for one, two in zip(alone, together, strict=True)]
    assert differences[0] < 1e-6
    assert max(differences) < 1e-5
    assert abs(alone[-1]["eval/loss"] - together[-1]["eval/loss"]) < 1e-5
    assert alone[-1].keys() == together[-1].keys()
    assert alone[-1]["loss"] != alone[0]["loss"]


@pytest.mark.parametrize("case", ["shared", "shared shards"])
def test_two_ranks_move_shared_weights_as_one_does(corpus, ranks, tmp_path, case):
    recipe, changes, _ = CASES[case]
    run, _ = run_quietly(tiny_recipe(recipe, **changes), corpus, tmp_path / "one")
    alone, together = (load_file(folder / "model.safetensors") for folder in (run.path, ranks / case))
    assert all((alone[name] - value).abs().max() < 2e-6 for name, value in together.items())


def test_a_rank_without_targets_still_runs_its_head(found):
    first, second = found["counts"]["sparse"]
    assert any((one == [0]) != (two == [0]) for one, two in zip(first, second, strict=True))


def test_a_repeat_is_bitwise_equal(ranks):
    same_files(ranks / f"whole/checkpoints/step-{STEPS}", ranks / f"again/checkpoints/step-{STEPS}")
    assert (ranks / "whole/model.safetensors").read_bytes() == (ranks / "again/model.safetensors").read_bytes()
    assert lines_without_time(ranks / "whole") == lines_without_time(ranks / "again")
    state = json.loads((ranks / "whole/state.json").read_text())
    assert state["finished"]
    assert state["machine"]["world"] == 2


def test_shards_are_saved_in_one_piece(ranks):
    names = {path.name for path in (ranks / "shards").iterdir()}
    assert names == {path.name for path in (ranks / "plain").iterdir()}
    sizes = [(ranks / case / f"checkpoints/step-20/{name}").stat().st_size
             for case in ("shards", "plain") for name in ("model.safetensors", "optimizer.safetensors")]  # fmt: skip
    assert sizes[:2] == sizes[2:]


# -- what goes wrong on one goes wrong on all


def test_not_a_number_on_one_rank_moves_no_weight_on_any(found):
    nan = found["nan"]
    assert nan["same"] == [[True, 2], [True, 2]]
    assert nan["error"][0] == nan["error"][1]
    assert nan["error"][0].startswith(f"rank 1, rows {', '.join(map(str, nan['rows']))} of the plan: update 3: loss")


def test_a_refusal_of_one_ranks_memory_halves_all_micro_batches(found):
    memory = found["memory"]
    assert memory["micro"] == [[2], [2]]
    assert "redone with micro-batches of 2 rows" in memory["note"]
    assert memory["step"] == 1


INJECTED = """
import json, os, sys, torch
from maskery.cli import main
from maskery.system import System
forward = System.forward
def broken(self, batch):
    found = forward(self, batch)
    return {name: total * torch.nan for name, total in found.items()} if batch.step == 3 else found
if os.environ["RANK"] == "1":
    System.forward = broken
folder, *arguments = sys.argv[1:]
codes = [main([*arguments, "--out", folder + name]) for name in ("/full", "/run")]
with open(folder + "/codes-" + os.environ["RANK"], "w") as file:
    json.dump(codes, file)
sys.exit(max(codes))
"""
"""Two commands in one process: the first finds its folder occupied, the second meets what is not a number."""


def test_errors_end_a_command_with_one_message(corpus, tmp_path):
    script = tmp_path / "injected.py"
    script.write_text(INJECTED)
    (tmp_path / "full").mkdir()
    (tmp_path / "full/mine.txt").write_text("mine")
    code, out, talk = torchrun(script, tmp_path, "pretrain", "bert", "--corpus", corpus.path, *flags_of(TINY))
    assert code == 1, "torchrun knows no other"
    assert not out
    assert [(tmp_path / f"codes-{rank}").read_text() for rank in (0, 1)] == ["[2, 1]", "[2, 1]"]
    assert "maskery/train" not in talk, "no traceback of ours"
    assert talk.count("full: is already there") == 1
    assert [path.name for path in (tmp_path / "full").iterdir()] == ["mine.txt"]
    rows = Feed(tiny_recipe(), corpus, 0).batch(3, 1, 2).rows.tolist()
    assert talk.count(f"rank 1, rows {', '.join(map(str, rows))} of the plan: update 4: loss") == 1
    assert "repair: lower training.lr" in talk
    assert len(lines_without_time(tmp_path / "run")) == 3


def test_a_killed_rank_ends_the_run(killed):
    out, code, talk = killed
    assert code == 1
    assert talk.count("another rank died") == 1
    assert "--resume" in talk
    assert "rank 1 was ended by SIGKILL" in talk
    assert "Traceback" not in talk
    assert not (out / "model.safetensors").exists()
    assert {path.name for path in (out / "checkpoints").iterdir()} == {"step-5", "step-10", "step-15"}


def test_resumed_with_as_many_ranks_it_ends_with_the_same_bytes(ranks, found):
    out = ranks / "killed"
    assert "resumed from step-15" in found["talk"]
    assert "bitwise" not in found["talk"]
    same_files(ranks / f"whole/checkpoints/step-{STEPS}", out / f"checkpoints/step-{STEPS}")
    assert (ranks / "whole/model.safetensors").read_bytes() == (out / "model.safetensors").read_bytes()
    assert lines_without_time(ranks / "whole") == lines_without_time(out)
    assert {path.name for path in out.iterdir()} == {path.name for path in (ranks / "whole").iterdir()}


@pytest.mark.parametrize("case", ["plain", "shards", "memory"])
def test_resumed_with_one_rank_it_ends_almost_the_same(corpus, ranks, tmp_path, case):
    """Without dropout, whose draws are a rank's own."""
    recipe, changes, _ = CASES[case]
    out = cut_back(ranks / case, 8, tmp_path / "run")
    _, talk = run_quietly(tiny_recipe(recipe, **changes), corpus, out, True)
    assert "resumed from step-8" in talk.text
    assert "warning: world was 2, is 1: the run will not be bitwise the same" in talk.text
    together, alone = lines_without_time(ranks / case), lines_without_time(out)
    assert len(alone) == 20
    assert together[:8] == alone[:8]
    assert max(abs(one["loss"] - two["loss"]) for one, two in zip(together, alone, strict=True)) < 1e-5
    weights = [load_file(each / "model.safetensors") for each in (ranks / case, out)]
    assert all((weights[0][name] - value).abs().max() < 1e-5 for name, value in weights[1].items())


def test_resumed_with_two_ranks_a_run_of_one_ends_almost_the_same(ranks):
    alone, together = lines_without_time(ranks / "one"), lines_without_time(ranks / "grown")
    assert together[:8] == alone[:8]
    assert max(abs(one["loss"] - two["loss"]) for one, two in zip(alone, together, strict=True)) < 1e-5


def test_resumed_shards_end_with_the_same_bytes(ranks):
    same_files(ranks / "shards/checkpoints/step-20", ranks / "shards-resumed/checkpoints/step-20")
    assert lines_without_time(ranks / "shards") == lines_without_time(ranks / "shards-resumed")


def test_shards_that_lack_only_the_final_model_get_it(ranks):
    same_files(ranks / "shards/checkpoints/step-20", ranks / "shards-unfinished/checkpoints/step-20")
    for name in ("model.safetensors", "maskery_heads.safetensors", "config.json"):
        if (ranks / "shards" / name).exists():
            assert (ranks / "shards" / name).read_bytes() == (ranks / "shards-unfinished" / name).read_bytes()
    assert (ranks / "shards-unfinished/model.safetensors").exists()


def test_a_signal_to_one_rank_stops_all_after_the_same_step(ranks, found):
    assert found["stopped"] == [[f"stopped by a signal after step {STOPPED}; the state is saved", 143]] * 2
    assert len(lines_without_time(ranks / "stopped")) == STOPPED
    assert [path.name for path in (ranks / "stopped/checkpoints").iterdir()] == [f"step-{STOPPED}"]


def test_a_signal_to_the_launcher_reaches_the_ranks(corpus, tmp_path):
    hook = HOOK.format(step=3, process="os.getppid()", signal="signal.SIGINT")
    code, _, talk = pretrain_and_signal(corpus, tmp_path / "run", hook, "--steps", "100000", "--save-every", "0")
    assert code == 130, talk
    assert talk.count("the state is saved") == 1
    assert "Traceback" not in talk
    step = lines_without_time(tmp_path / "run")[-1]["step"]
    assert [path.name for path in (tmp_path / "run/checkpoints").iterdir()] == [f"step-{step}"]
