"""NEZHA as transformers 4 names it (5 has it no more): BERT's tensors without a position table.

The waves of the distances are buffers in some files; they follow from config.json.
"""

from __future__ import annotations

from maskery.checkpoint.bert import DEFAULTS, FIELDS, classes_of
from maskery.checkpoint.bert import ENCODER as BERT_ENCODER
from maskery.checkpoint.family import ALLOWED, FIXED, Family
from maskery.checkpoint.rules import Rule, ignore

ENCODER: tuple[Rule, ...] = (
    *(rule for rule in BERT_ENCODER if rule.ours != "embeddings.positions.table"),
    ignore("encoder.layer.{layer}.attention.self.relative_positions_encoding.positions_encoding"),
)

FAMILY = Family(
    model_type="nezha",
    prefix="nezha.",
    fields={**FIELDS, "clip": "max_relative_position"},
    defaults={**DEFAULTS, "vocab_size": 21128, "max_relative_position": 64},
    fixed={name: value for name, value in FIXED.items() if name != "clip"} | {"positions": "nezha"},
    allowed={**ALLOWED, "use_relative_position": (True, None)},
    remark="transformers 4 opens it, 5 has nezha no more",
    classes=classes_of("Nezha", ENCODER),
)
