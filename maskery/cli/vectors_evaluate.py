"""`maskery evaluate MODEL --task sts|pairs|retrieval|clustering|geometry`: how good a model's sentence vectors are."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any


def evaluate_vectors_of(model: Path, task: str, data: Path, as_json: bool, flags: dict[str, Any] | None = None) -> None:
    """Tell the figures with their 95 % intervals. `flags` are the columns that were asked for (`column_flags`)."""
    from maskery.cli.output import emit_json, progress, say, tell
    from maskery.cli.task_settings import checked
    from maskery.vectors.encoder import Encoder
    from maskery.vectors.judge.measure import evaluate_vectors
    from maskery.vectors.judge.read import read_vector_examples

    examples = read_vector_examples(data, task, checked(flags or {}).columns)
    encoder = Encoder(model, say=say)
    done = 0
    with progress("reading") as update:

        def told(texts: int) -> None:
            nonlocal done
            done += texts
            update(done, math.inf, f"{done:,} texts; then the intervals")

        found = evaluate_vectors(encoder, task, examples, told=told)
    if as_json:
        emit_json(found.plain())
        return
    figures = len(found.metrics) + 1
    for line in found.lines()[:figures]:
        tell(line)
    for note in found.notes:
        say(note)
