"""ERNIE as Hugging Face names it: BERT, and from ERNIE 2.0 on a vector for the task that a row is part of."""

from __future__ import annotations

from maskery.checkpoint.bert import DEFAULTS, FIELDS, classes_of
from maskery.checkpoint.bert import ENCODER as BERT_ENCODER
from maskery.checkpoint.family import FIXED, Family
from maskery.checkpoint.rules import Rule, same

ENCODER: tuple[Rule, ...] = (*BERT_ENCODER, same("embeddings.tasks", "embeddings.task_type_embeddings.weight"))

FAMILY = Family(
    model_type="ernie",
    prefix="ernie.",
    fields={**FIELDS, "tasks": "task_type_vocab_size"},
    defaults={**DEFAULTS, "task_type_vocab_size": 3, "use_task_id": False},
    fixed={name: value for name, value in FIXED.items() if name != "tasks"},
    switches={"tasks": "use_task_id"},
    classes=classes_of("Ernie", ENCODER),
)
