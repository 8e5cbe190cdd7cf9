"""MPNet as Hugging Face names it: RoBERTa's heads and positions, no segments, and T5's buckets of distances in one
table for all layers.

Their network takes 32 buckets up to a distance of 128, and counts positions from 2, whatever config.json says.
"""

from __future__ import annotations

from maskery.checkpoint.bert import DEFAULTS, FIELDS
from maskery.checkpoint.family import ALLOWED, FIXED, Family
from maskery.checkpoint.roberta import classes_of
from maskery.checkpoint.rules import Rule, both, ignore, same, stacked

_PADDING = 1
_LAYER = "encoder.layer.{layer}"
_ATTENTION = f"{_LAYER}.attention.attn"

ENCODER: tuple[Rule, ...] = (
    same("embeddings.tokens", "embeddings.word_embeddings.weight"),
    same("embeddings.positions.table", "embeddings.position_embeddings.weight"),
    same("embeddings.positions.distances", "encoder.relative_attention_bias.weight"),
    *both("embeddings.norm", "embeddings.LayerNorm"),
    ignore("embeddings.position_ids"),
    *stacked("layers.{layer}.attention.inputs", (f"{_ATTENTION}.q", f"{_ATTENTION}.k", f"{_ATTENTION}.v")),
    *both("layers.{layer}.attention.output", f"{_ATTENTION}.o"),
    *both("layers.{layer}.attention_norm", f"{_LAYER}.attention.LayerNorm"),
    *both("layers.{layer}.up", f"{_LAYER}.intermediate.dense"),
    *both("layers.{layer}.down", f"{_LAYER}.output.dense"),
    *both("layers.{layer}.feedforward_norm", f"{_LAYER}.output.LayerNorm"),
)

FAMILY = Family(
    model_type="mpnet",
    prefix="mpnet.",
    fields={ours: theirs for ours, theirs in FIELDS.items() if ours != "segments"},
    defaults={**DEFAULTS, "vocab_size": 30527, "pad_token_id": _PADDING},
    fixed={**FIXED, "positions": "mpnet", "clip": 128, "buckets": 32, "segments": 0, "position_offset": _PADDING + 1},
    allowed={**ALLOWED, "pad_token_id": (_PADDING,), "relative_attention_num_buckets": (32,)},
    offset_from_pad=True,
    masked_activation="gelu",
    classes=classes_of("MPNet", ENCODER),
)
