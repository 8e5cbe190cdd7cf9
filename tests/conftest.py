"""One thread a test process: the suite runs on two, and sums stay the same whatever the machine."""

import pytest
import torch

torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def _denormals():
    """Training switches very small numbers off for the whole process; the next test has them again."""
    yield
    torch.set_flush_denormal(False)
