"""One thread a test process: the suite runs on two, and sums stay the same whatever the machine."""

import torch

torch.set_num_threads(1)
