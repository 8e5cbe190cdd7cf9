"""Chinese by finished English sentences; see `patterns` for the holes in braces."""

from __future__ import annotations

from maskery.language.lines.models import MODELS
from maskery.language.lines.pretraining import PRETRAINING
from maskery.language.lines.reading import READING
from maskery.language.lines.tasks import TASKS
from maskery.language.lines.vectors import VECTORS

LINES: dict[str, str] = {**READING, **TASKS, **PRETRAINING, **MODELS, **VECTORS}
