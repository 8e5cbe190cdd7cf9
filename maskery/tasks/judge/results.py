"""What run_classifier prints and writes after an evaluation, in the same letters: scripts that read it go on reading.

***** Eval results *****
  eval_accuracy = 0.98
  eval_loss = 0.071
  global_step = 343
  loss = 0.071
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from maskery import files
from maskery.tasks.judge.measure import HEADLINES, Judgement

FILE = "eval_results.txt"


def eval_results(
    judgement: Judgement, *, eval_loss: float, global_step: int, loss: float | None = None
) -> dict[str, float]:
    """The headline figures of the task as eval_NAME, and the three keys beside them. `loss` is that of the same set,
    as Google's estimator has it, unless another one is given."""
    found = {f"eval_{name}": judgement.metrics[name] for name in HEADLINES[judgement.task]}
    found |= {"eval_loss": eval_loss, "global_step": global_step, "loss": eval_loss if loss is None else loss}
    return dict(sorted(found.items()))


def eval_block(results: Mapping[str, float], heading: str = "Eval results") -> str:
    """As it is printed."""
    return "\n".join([f"***** {heading} *****", *(f"  {line}" for line in _lines(results))])


def write_eval_results(folder: Path, results: Mapping[str, float]) -> Path:
    path = folder / FILE
    files.write_text(path, "".join(f"{line}\n" for line in _lines(results)))
    return path


def _lines(results: Mapping[str, float]) -> list[str]:
    return [f"{key} = {_plain(results[key])}" for key in sorted(results)]


def _plain(value: float) -> str:
    """Eight figures: what a number of 32 bits has."""
    return str(value) if isinstance(value, int) else str(float(f"{value:.8g}"))
