"""`--ranks N`: the same command N times on this machine, started and watched by torchrun's own launcher."""

from __future__ import annotations

import logging
import os
import signal
import sys
import tempfile
from collections.abc import Sequence
from inspect import signature
from typing import TYPE_CHECKING, Any

from maskery.errors import InputError

if TYPE_CHECKING:
    from torch.distributed.launcher.api import LaunchConfig

_PATIENCE = 300
"""Seconds that ranks get to write their state after a signal."""
_CROWD = 4
"""Ranks on one core, beyond which a number is taken for a slip: each is a whole process with torch in it."""

_HELD: list[BaseException] = []
"""A stopped launch, which holds torch's meeting point: collected, its timer may try to join itself, and says so."""


def is_rank(asked: int | None) -> bool:
    """Whether torchrun, or `launch`, has started this process; `asked` ranks must be what it started."""
    started = int(os.environ.get("WORLD_SIZE", "0"))
    if started and asked not in (None, started):
        raise InputError(
            f"--ranks {asked}, but this is one of {started} ranks that torchrun started",
            repair="leave out --ranks, or run maskery without torchrun",
        )
    return started > 0


def require_room(ranks: int, cores: int, gpus: int) -> None:
    """Refuse what this machine cannot hold, before anything is started."""
    most = gpus or _CROWD * cores
    if ranks > most:
        have = f"{gpus} GPUs, one for each rank" if gpus else f"{cores} cores"
        raise InputError(f"--ranks {ranks} is too many: this machine has {have}", repair=f"--ranks {most} or fewer")


def launch(ranks: int, arguments: Sequence[str]) -> int:
    """Run `maskery ARGUMENTS` as so many ranks; the exit code of the whole."""
    import torch
    from torch.distributed.elastic.multiprocessing import DefaultLogsSpecs, SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.launcher.api import LaunchConfig, elastic_launch

    from maskery.train import machine

    require_room(ranks, machine.cores(), torch.cuda.device_count())
    for name in [each for each in logging.root.manager.loggerDict if each.startswith("torch.distributed")]:
        logging.getLogger(name).setLevel(logging.CRITICAL)  # the ranks tell what went wrong
    with tempfile.TemporaryDirectory(prefix="maskery-ranks-") as notes:
        config = LaunchConfig(
            min_nodes=1,
            max_nodes=1,
            nproc_per_node=ranks,
            run_id=f"maskery-{os.getpid()}",
            rdzv_backend="c10d",
            rdzv_endpoint="localhost:0",
            local_addr="localhost",
            max_restarts=0,
            logs_specs=DefaultLogsSpecs(log_dir=notes),
            **_patience(LaunchConfig),
        )
        try:
            elastic_launch(config, sys.executable)("-m", "maskery", *arguments)
        except SignalException as error:
            _HELD.append(error)
            return 128 + int(error.sigval)
        except ChildFailedError as error:
            return exit_code({rank: failure.exitcode for rank, failure in error.failures.items()})
    return 0


def _patience(config: type[LaunchConfig]) -> dict[str, Any]:
    """How long ranks may take to save and end: older versions of torch have a time of their own, 30 seconds."""
    known = "shutdown_timeout" in signature(config).parameters
    return {"shutdown_timeout": _PATIENCE} if known else {}


def exit_code(codes: dict[int, int]) -> int:
    """Of ranks that failed: what they say, or 1 where a signal from outside ended one, which is told."""
    later = {rank for rank, code in codes.items() if code == -signal.SIGTERM}  # as the launcher ends the others
    if later == codes.keys():
        later = set()
    for rank, code in sorted(codes.items()):
        if code < 0 and rank not in later:
            print(f"rank {rank} was ended by {signal.Signals(-code).name}", file=sys.stderr)
    return max([1, *codes.values()])
