"""What can be said of ranks without starting any: refusals, threads, exit codes, sums, the error that is told."""

import gc
import os
import signal
import weakref

import pytest
import torch
import torch.distributed as dist
from small_run import corpus_in, run_quietly, tiny_recipe
from torch.distributed.elastic.multiprocessing import SignalException

from maskery.cli import main
from maskery.cli.launch import exit_code as whole_exit_code
from maskery.cli.launch import is_rank, launch, require_room
from maskery.errors import EndedElsewhere, InputError, Stopped
from maskery.train import machine
from maskery.train.build import build_trainer
from maskery.train.ranks import Ranks, exit_code, is_lost, joined
from maskery.train.stop import stop_requests


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return corpus_in(tmp_path_factory.mktemp("corpus"))


@pytest.fixture
def threads():
    yield
    torch.set_num_threads(1)


def test_alone_everything_is_its_own():
    alone = Ranks()
    assert alone.first
    assert alone.gather("x") == ["x"]
    assert alone.table([1.0, 2]) == [[1.0, 2]]
    assert alone.sums([0.1, 3]) == [0.1, 3]
    assert alone.from_first(lambda: 7) == 7
    alone.wait()
    with joined() as found:
        assert found == alone
        assert not dist.is_initialized()


class Pair(Ranks):
    """Beside another rank that nobody has asked to stop."""

    def gather(self, value):
        return [value, 0]


def test_a_stop_is_asked_by_a_signal_or_by_a_launcher_that_is_gone():
    here = os.getppid()
    assert Ranks().stop_asked(0) == 0
    assert Ranks().stop_asked(signal.SIGINT) == signal.SIGINT
    assert Pair(world=2, launcher=here).stop_asked(0) == 0
    assert Pair(world=2, launcher=here).stop_asked(signal.SIGINT) == signal.SIGINT
    assert Pair(world=2, launcher=here + 1).stop_asked(0) == signal.SIGTERM
    assert Pair(world=2, launcher=here + 1).stop_asked(signal.SIGINT) == signal.SIGINT


def test_a_rank_that_fails_is_not_cut_off_by_its_launcher():
    before = signal.getsignal(signal.SIGTERM)

    def fail(several):
        with stop_requests(several):
            raise ValueError("broken")

    try:
        with stop_requests(several=True):
            pass
        with pytest.raises(ValueError, match="broken"):
            fail(several=False)
        assert signal.getsignal(signal.SIGTERM) == before
        with pytest.raises(ValueError, match="broken"):
            fail(several=True)
        assert signal.getsignal(signal.SIGTERM) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGTERM, before)


def test_more_ranks_than_rows_are_refused(corpus):
    recipe = tiny_recipe(training__phases=[{"steps": 1, "length": 12, "batch": 3}, {"steps": 1, "length": 24}])
    with pytest.raises(InputError, match=r"training\.batch = 3 leaves some of 4 ranks without a row") as caught:
        build_trainer(recipe, corpus, 0, print, Ranks(world=4))
    assert "--batch 4" in caught.value.repair


def test_shards_want_equal_shares(corpus):
    with pytest.raises(InputError, match="8 rows a step cannot be shared equally by 3 ranks") as caught:
        build_trainer(tiny_recipe(), corpus, 0, print, Ranks(world=3), fsdp=True)
    assert "--batch 6" in caught.value.repair


def test_shards_of_one_rank_are_told_to_be_none(corpus, tmp_path):
    run, talk = run_quietly(tiny_recipe(training__steps=2), corpus, tmp_path / "run", fsdp=True)
    assert "--fsdp: there is one rank, which holds all weights" in talk
    assert len(run.metrics) == 2


@pytest.mark.parametrize(
    ("asked", "ranks", "variable", "chosen"),
    [
        (3, 1, None, 3),
        (3, 2, "1", 3),
        (0, 1, "1", 1),
        (0, 2, None, 4),
        (0, 2, "1", 4),
        (0, 3, None, 2),
        (0, 16, None, 1),
        (0, 2, "2", 1),
    ],
)
def test_ranks_divide_the_cores(monkeypatch, threads, asked, ranks, variable, chosen):
    monkeypatch.setattr(machine, "cores", lambda: 8)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    if variable is not None:
        monkeypatch.setenv("OMP_NUM_THREADS", variable)
    told = machine.choose_threads(asked, ranks)
    assert torch.get_num_threads() == chosen
    assert bool(told) == (asked > 0 or (ranks > 1 and variable != "2"))
    assert not told or f"threads: {chosen}" in told


def test_threads_are_a_flag(corpus, tmp_path, threads, capsys):
    arguments = ["pretrain", "bert", "--corpus", str(corpus.path), "--out", str(tmp_path / "run"), "--steps", "1"]
    assert main([*arguments, "--size", "tiny", "--length", "24", "--batch", "4", "--threads", "2"]) == 0
    assert "threads: 2, as asked" in capsys.readouterr().err
    assert torch.get_num_threads() == 2


@pytest.mark.parametrize(
    ("codes", "code", "told"),
    [
        ({0: 2, 1: 2}, 2, ""),
        ({0: 143, 1: 143}, 143, ""),
        ({0: 2, 1: -signal.SIGTERM}, 2, ""),
        ({1: -signal.SIGKILL}, 1, "rank 1 was ended by SIGKILL\n"),
        ({0: 1, 1: -signal.SIGKILL}, 1, "rank 1 was ended by SIGKILL\n"),
        ({0: -signal.SIGTERM}, 1, "rank 0 was ended by SIGTERM\n"),
        ({0: -signal.SIGKILL, 1: -signal.SIGTERM}, 1, "rank 0 was ended by SIGKILL\n"),
    ],
    ids=str,
)
def test_the_exit_code_of_the_whole(codes, code, told, capsys):
    assert whole_exit_code(codes) == code
    assert capsys.readouterr().err == told


def test_ranks_inside_ranks_are_refused(monkeypatch, corpus, capsys):
    assert not is_rank(None)
    assert not is_rank(2)
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert is_rank(None)
    assert is_rank(2)
    with pytest.raises(InputError, match="--ranks 3, but this is one of 2 ranks"):
        is_rank(3)


def test_a_wrong_command_line_starts_nothing(corpus, tmp_path, capsys):
    arguments = ["pretrain", "bert", "--corpus", str(corpus.path), "--out", str(tmp_path / "run"), "--ranks", "2"]
    assert main([*arguments, "--steps", "3", "--tokens", "9"]) == 2
    assert "each say how long to train" in capsys.readouterr().err
    assert main([*arguments[:-1], "0"]) == 2
    assert main([*arguments[:-1], "100000"]) == 2
    assert "--ranks 100000 is too many" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_ranks_need_a_place_to_compute():
    require_room(8, cores=2, gpus=0)
    require_room(2, cores=1, gpus=2)
    with pytest.raises(InputError, match="this machine has 2 cores") as caught:
        require_room(9, cores=2, gpus=0)
    assert caught.value.repair == "--ranks 8 or fewer"
    with pytest.raises(InputError, match="this machine has 2 GPUs, one for each rank") as caught:
        require_room(3, cores=16, gpus=2)
    assert caught.value.repair == "--ranks 2 or fewer"


def test_usage_errors_of_several_ranks_are_told_by_the_first(monkeypatch, capsys):
    monkeypatch.setenv("RANK", "1")
    assert main(["pretrain", "--nonsense"]) == 2
    assert capsys.readouterr().err == ""


def test_who_has_nothing_to_tell_is_silent(monkeypatch, capsys):
    def ended(arguments):
        raise EndedElsewhere(143)

    monkeypatch.setattr("maskery.cli.app._dispatch", ended)
    assert main(["pretrain"]) == 143
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (InputError("no"), 2),
        (Stopped("signal", signal_number=signal.SIGTERM), 143),
        (KeyboardInterrupt(), 130),
        (OSError(28, os.strerror(28)), 2),
        (ValueError("defect"), 1),
    ],
    ids=["input", "stopped", "interrupted", "disk", "defect"],
)
def test_exit_codes_of_errors(error, code):
    assert exit_code(error) == code
    assert not is_lost(error)


def test_a_broken_exchange_is_known():
    assert is_lost(RuntimeError("[../third_party/gloo/transport/tcp/pair.cc:547] Connection closed by peer"))
    assert is_lost(dist.DistNetworkError("gone"))
    assert not is_lost(RuntimeError("mat1 and mat2 shapes cannot be multiplied"))


def test_a_stopped_launch_stays_alive_until_the_process_ends(monkeypatch):
    """Torch leaves its meeting point open after a signal; collected by its own timer's thread, it fails loudly."""
    seen = []

    class MeetingPoint:
        pass

    def stopped(*_arguments):
        point = MeetingPoint()
        seen.append(weakref.ref(point))
        raise SignalException("stopped", signal.SIGINT)

    monkeypatch.setattr("torch.distributed.launcher.api.elastic_launch", lambda *_: stopped)
    assert launch(1, []) == 130
    gc.collect()
    assert seen[0]() is not None
