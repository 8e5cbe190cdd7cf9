"""Two ranks see the rows of one and learn the same; whatever ends one of them ends both, and the run goes on."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from rank_script import CASES, WHOLE, asking
from safetensors.torch import load_file
from small_run import TINY, corpus_in, cut_back, flags_of, lines_without_time, run_quietly, same_files, tiny_recipe
from test_train_loop import rows_in

from maskery.feed import Feed

HERE = Path(__file__).parent
PATIENCE = 300
STEPS = WHOLE["training__steps"]
KILLED = STEPS - 13


def environment():
    path = os.pathsep.join([str(HERE), str(HERE.parent)])
    return {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"}


def start(corpus, out, *more):
    arguments = ["pretrain", "bert", "--corpus", str(corpus.path), "--out", str(out), *flags_of(TINY)]
    settings = ["--steps", str(STEPS), "--save-every", "5", "--threads", "1", "--ranks", "2"]
    return subprocess.Popen(
        [sys.executable, "-m", "maskery", *arguments, *settings, *more],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
    )


def finish(process):
    out, err = process.communicate(timeout=PATIENCE)
    return process.returncode, out, err


def rank_processes(launcher):
    """The process of each rank, by its place in the launcher's environment."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                variables = (entry / "environ").read_bytes().split(b"\0")
            except (OSError, ValueError):
                continue
            ranks = [each for each in variables if each.startswith(b"RANK=")]
            if parent == launcher.pid and ranks:
                found[int(ranks[0].removeprefix(b"RANK="))] = int(entry.name)
    return found


def wait_for_line(process, out, line):
    """Until the run has told of so many updates."""
    end = time.monotonic() + PATIENCE
    while process.poll() is None and time.monotonic() < end:
        log = out / "metrics.jsonl"
        if log.is_file() and log.read_bytes().count(b"\n") >= line:
            return
        time.sleep(0.005)
    raise AssertionError(finish(process))


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return corpus_in(tmp_path_factory.mktemp("corpus"))


@pytest.fixture(scope="module")
def ranks(corpus, tmp_path_factory):
    """The folder in which two ranks under torchrun itself have done what rank_script.py says."""
    folder = tmp_path_factory.mktemp("ranks")
    recipe, changes, _ = CASES["plain"]
    run_quietly(tiny_recipe(recipe, **changes), corpus, folder / "one")
    cut_back(folder / "one", 8, folder / "grown")
    script = [str(HERE / "rank_script.py"), str(corpus.path), str(folder)]
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", *script]
    done = subprocess.run(command, capture_output=True, text=True, env=environment(), timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stderr
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
import sys, torch
from maskery.cli import main
from maskery.system import System
import os
forward = System.forward
def broken(self, batch):
    found = forward(self, batch)
    return {name: total * torch.nan for name, total in found.items()} if batch.step == 3 else found
if os.environ["RANK"] == "1":
    System.forward = broken
sys.exit(main(sys.argv[1:]))
"""


def test_not_a_number_ends_the_command_with_one_message(corpus, tmp_path):
    script = tmp_path / "injected.py"
    script.write_text(INJECTED)
    arguments = ["pretrain", "bert", "--corpus", str(corpus.path), "--out", str(tmp_path / "run"), *flags_of(TINY)]
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", str(script), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, env=environment(), timeout=PATIENCE, check=False)
    assert done.returncode == 1
    rows = Feed(tiny_recipe(), corpus, 0).batch(3, 1, 2).rows.tolist()
    assert done.stderr.count(f"rank 1, rows {', '.join(map(str, rows))} of the plan: update 4: loss") == 1
    assert "repair: lower training.lr" in done.stderr
    assert "maskery/train" not in done.stderr, "no traceback of ours"
    assert len(lines_without_time(tmp_path / "run")) == 3


@pytest.fixture(scope="module")
def killed(corpus, tmp_path_factory):
    """A run of two ranks whose second was killed; and what was told."""
    out = tmp_path_factory.mktemp("killed") / "run"
    process = start(corpus, out)
    wait_for_line(process, out, KILLED)
    os.kill(rank_processes(process)[1], signal.SIGKILL)
    code, _, talk = finish(process)
    return out, code, talk


def test_a_killed_rank_ends_the_run(killed):
    out, code, talk = killed
    assert code == 1
    assert talk.count("another rank died") == 1
    assert "--resume" in talk
    assert "rank 1 was ended by SIGKILL" in talk
    assert "Traceback" not in talk
    assert not (out / "model.safetensors").exists()
    assert {path.name for path in (out / "checkpoints").iterdir()} <= {"step-5", "step-10", "step-15", "step-20"}


def test_resumed_with_as_many_ranks_it_ends_with_the_same_bytes(corpus, killed, ranks, tmp_path):
    out = Path(shutil.copytree(killed[0], tmp_path / "run"))
    code, _, talk = finish(start(corpus, out, "--resume"))
    assert code == 0, talk
    assert "resumed from step-" in talk
    assert "bitwise" not in talk
    same_files(ranks / f"whole/checkpoints/step-{STEPS}", out / f"checkpoints/step-{STEPS}")
    assert (ranks / "whole/model.safetensors").read_bytes() == (out / "model.safetensors").read_bytes()
    assert lines_without_time(ranks / "whole") == lines_without_time(out)
    assert {path.name for path in out.iterdir()} == {path.name for path in (ranks / "whole").iterdir()}


@pytest.mark.parametrize("case", ["plain", "shards"])
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


def test_a_signal_to_one_rank_stops_all_after_the_same_step(corpus, tmp_path):
    process = start(corpus, tmp_path / "run", "--save-every", "1000")
    wait_for_line(process, tmp_path / "run", 3)
    os.kill(rank_processes(process)[1], signal.SIGTERM)
    code, _, talk = finish(process)
    assert code == 143
    assert talk.count("the state is saved") == 1
    assert "Traceback" not in talk
    step = lines_without_time(tmp_path / "run")[-1]["step"]
    assert [path.name for path in (tmp_path / "run/checkpoints").iterdir()] == [f"step-{step}"]


def test_a_signal_to_the_launcher_reaches_the_ranks(corpus, tmp_path):
    process = start(corpus, tmp_path / "run", "--save-every", "1000")
    wait_for_line(process, tmp_path / "run", 3)
    process.send_signal(signal.SIGINT)
    code, _, talk = finish(process)
    assert code == 130
    assert talk.count("the state is saved") == 1
    assert len(list((tmp_path / "run/checkpoints").iterdir())) == 1


def test_bad_input_is_told_once(corpus, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run/mine.txt").write_text("mine")
    code, out, talk = finish(start(corpus, tmp_path / "run"))
    assert code == 2
    assert talk.count("is already there") == 1
    assert "Traceback" not in talk
    assert not out
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["mine.txt"]
