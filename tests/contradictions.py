"""What changes bert into a recipe that contradicts itself, for each contradiction about an order or a decoder."""

from __future__ import annotations

from typing import Any

KEPT = {"mask": 0.0, "random": 0.0, "keep": 1.0}
STREAM = {"rows.kind": "stream", "rows.pair": "none"}
PAIRS = {"rows.kind": "stream_pair", "rows.pair": "none", "model.positions": "xlnet"}

ORDERED: dict[str, dict[str, Any]] = {
    "permuted_question_without_order": {"objectives.permuted_token.weight": 1, "corruption.replace": KEPT},
    "permuted_question_of_the_hidden": {"objectives.permuted_token.weight": 1},
    "order_without_question": {"visibility.kind": "permuted"},
    "streams_without_order": {"model.streams": 2},
    "contrast_without_cls": {**STREAM, "objectives.contrast.weight": 1, "corruption.ngram.longest": 4},
    "memory_of_strangers": {"model.memory": 8, "model.positions": "xl"},
    "memory_without_distances": {**STREAM, "model.memory": 8},
    "memory_out_of_sight": {**STREAM, "model.memory": 8, "model.positions": "xl", "visibility.kind": "packed"},
    "memory_that_saw_ahead": {**PAIRS, "model.memory": 8},
    "memory_of_other_lengths": {
        **PAIRS,
        "model.memory": 8,
        "corruption.replace": {"mask": 0.5, "random": 0.0, "keep": 0.0, "delete": 0.5},
    },
    "memory_of_two": {"model.memory": 8, "model.generator.width": 0.25},
    "third_segment_without_vector": PAIRS,
}
DECODERS: dict[str, dict[str, Any]] = {
    "decoder_without_text": {"model.decoder": 2},
    "text_without_decoder": {"rows.decoder": "text"},
    "decoder_without_question": {"model.decoder": 2, "rows.decoder": "text"},
    "text_in_plain_sight": {"model.decoder": 2, "rows.decoder": "text", "corruption.rate": 0},
    "chosen_that_are_gone": {"model.decoder": 2, "rows.decoder": "chosen", "corruption.rate": 0},
    "target_without_pairs": {"model.decoder": 2, "rows.decoder": "target", "rows.pair": "none"},
    "target_out_of_sight": {"model.decoder": 2, "rows.decoder": "target"},
    "views_beside_decoder": {
        "model.decoder": 2,
        "rows.decoder": "text",
        "objectives.contrast.weight": 1,
        "corruption.ngram.longest": 4,
    },
}
