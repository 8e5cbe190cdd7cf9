"""One thread a test process: the suite runs on two, and sums stay the same whatever the machine.

Examples of hypothesis have no deadline: a first call imports, and a busy machine is no failure.
"""

import torch
from hypothesis import settings

torch.set_num_threads(1)
settings.register_profile("patient", deadline=None)
settings.load_profile("patient")
