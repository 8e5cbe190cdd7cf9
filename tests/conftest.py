"""One thread a test process: the suite runs on two, and sums stay the same whatever the machine.

Hypothesis draws the same examples in every run, so that a red suite is the change's doing; HYPOTHESIS_PROFILE=explore
draws new ones.
"""

import os

import pytest
import torch
from hypothesis import settings

torch.set_num_threads(1)
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.register_profile("explore", deadline=None)
# Threads that wait for each other by spinning take the cores from whom they wait for, while other tests run beside.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
os.environ["LC_ALL"] = "C.UTF-8"
os.environ["MASKERY_LANG"] = "en"  # results are in the language of the environment; tests read English ones
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))


@pytest.fixture(autouse=True)
def _denormals():
    """Training switches very small numbers off for the whole process; the next test has them again."""
    yield
    torch.set_flush_denormal(False)


@pytest.fixture(scope="module")
def no_waiting_for_the_disk():
    """For tests that stop runs, not machines, and write many of them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        yield
