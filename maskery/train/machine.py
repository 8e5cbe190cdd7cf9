"""What this machine is and can do: facts for `state.json`, settings that make training quick, the measured peak."""

from __future__ import annotations

import ctypes
import os
import platform
import sys
import time
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import safetensors
import tokenizers
import torch

from maskery.model.linear import linear
from maskery.model.multiply import library


def facts(device: torch.device, world: int, micro: Sequence[int]) -> dict[str, Any]:
    """What bitwise repetition depends on; written with every checkpoint and compared on resume."""
    return {
        "maskery": version("maskery"),
        "torch": str(torch.__version__),
        "numpy": np.__version__,
        "tokenizers": str(tokenizers.__version__),
        "safetensors": str(safetensors.__version__),
        "python": platform.python_version(),
        "machine": platform.machine(),
        "cpu": torch.backends.cpu.get_cpu_capability(),
        "float32_products": library(),
        "device": device.type,
        "threads": torch.get_num_threads(),
        "world": world,
        "micro": list(micro),
    }


def differences(then: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """What keeps a run that goes on from being bitwise what it would have been. Rows of a forward pass are taken over,
    so they are no difference."""
    return [
        f"warning: {name} was {then.get(name)!r}, is {now[name]!r}: the run will not be bitwise the same"
        for name in sorted(now.keys() - {"micro"})
        if now[name] != then.get(name)
    ]


def prepare() -> None:
    """Process-wide settings for training on a CPU. Neither changes any result that is not a denormal number.

    To be called before torch starts its threads: they take over how their maker treats denormal numbers.
    """
    torch.set_flush_denormal(True)
    keep_memory()


@cache
def keep_memory() -> bool:
    """Let the C library keep freed memory for the next step.

    By default every large block goes back to the system when freed and is handed out again page by page, zeroed: at
    small model sizes that costs as much as the arithmetic. Only glibc knows these settings; elsewhere nothing happens.
    """
    library = _glibc()
    if library is None:
        return False
    trim_threshold, mmap_max = -1, -4
    return bool(library.mallopt(mmap_max, 0)) and bool(library.mallopt(trim_threshold, 2**31 - 1))


@cache
def _glibc() -> ctypes.CDLL | None:
    return ctypes.CDLL(None) if sys.platform == "linux" and platform.libc_ver()[0] == "glibc" else None


def resident() -> int:
    """Bytes of memory that this process has now; 0 where the system does not tell."""
    try:
        with open("/proc/self/statm", encoding="ascii") as told:
            return int(told.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


def give_back() -> None:
    """Return freed memory to the system; what is in use stays where it is."""
    library = _glibc()
    if library is not None:
        library.malloc_trim(0)


class Heap:
    """Watches over the memory that is kept for what comes next. Freed blocks of many sizes leave holes that fit nothing
    new, so a long run can grow to several times what it uses; then all holes are given back at once."""

    EVERY = 8
    """Steps between two looks, which take microseconds."""
    MARGIN = 1.25
    """So much more than planned is no reason: to take pages anew costs time."""

    def __init__(self, planned: int) -> None:
        """`planned` for a step, beyond what the process has now."""
        self.room = int(self.MARGIN * planned)
        self.limit = resident() + self.room

    def look(self) -> bool:
        """Whether memory was given back. What is left then is really needed, and steps have their room beside it."""
        if resident() <= self.limit:
            return False
        give_back()
        self.limit = resident() + self.room
        return True


def device() -> torch.device:
    """A GPU where there is one, else the CPU."""
    return torch.device("cuda") if torch.cuda.is_available() else torch.device("cpu")


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def choose_threads(asked: int, local_world: int) -> str:
    """Set torch's threads: as asked, or where ranks share a machine its cores divided. What was chosen is returned.

    torchrun sets OMP_NUM_THREADS=1 where the user set nothing, so a 1 there says nothing about the user's will.
    """
    if asked:
        torch.set_num_threads(asked)
        return f"threads: {asked}, as asked"
    if local_world == 1 or os.environ.get("OMP_NUM_THREADS", "1") != "1":
        return ""
    each = max(1, cores() // local_world)
    torch.set_num_threads(each)
    return f"threads: {each} for each of {local_world} ranks, {cores()} cores in all (choose with --threads)"


def available_memory() -> int:
    """Bytes that can be taken: of the GPU, or of this machine without swapping, the container's limit included."""
    if torch.cuda.is_available():
        return int(torch.cuda.mem_get_info()[0])
    free = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_AVPHYS_PAGES")
    meminfo = Path("/proc/meminfo")
    if meminfo.is_file():
        for line in meminfo.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                free = int(line.split()[1]) * 1024
    limit, used = Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory.current")
    if limit.is_file() and used.is_file() and limit.read_text().strip() != "max":
        free = min(free, int(limit.read_text()) - int(used.read_text()))
    return max(0, free)


@cache
def total_memory() -> int:
    """Bytes that a process can ever have here: of the GPU, or of this machine with its swap, the container's limit
    included."""
    if torch.cuda.is_available():
        return int(torch.cuda.mem_get_info()[1])
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    meminfo = Path("/proc/meminfo")
    if meminfo.is_file():
        total += sum(int(each.split()[1]) * 1024 for each in meminfo.read_text().splitlines() if "SwapTotal:" in each)
    limit = Path("/sys/fs/cgroup/memory.max")
    if limit.is_file() and limit.read_text().strip() != "max":
        total = min(total, int(limit.read_text()))
    return total


@cache
def matmul_peak() -> float:
    """Floating-point operations a second of a large matrix product here, by the library that training takes, the best
    of a few."""
    size = 1024
    a = torch.ones(size, size)
    best = float("inf")
    for _ in range(6):
        began = time.perf_counter()
        linear(a, a, None)
        best = min(best, time.perf_counter() - began)
    return 2 * size**3 / best
