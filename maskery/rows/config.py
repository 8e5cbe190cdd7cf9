"""Question 1, what is one training row? The `[rows]` table of a recipe."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, Field, model_validator

from maskery.config import Config
from maskery.errors import Unfit
from maskery.registry import Registry

if TYPE_CHECKING:
    from maskery.rows.plan import Planner

KINDS: Registry[Planner] = Registry(
    "row kind",
    {
        "segment_pair": "maskery.rows.segment_pair:plan",
        "sentence_pair": "maskery.rows.sentence_pair:plan",
        "full_sentences": "maskery.rows.sentences:plan_full",
        "doc_sentences": "maskery.rows.sentences:plan_document",
        "one_or_two_segments": "maskery.rows.one_or_two:plan",
        "permuted_segments": "maskery.rows.permuted:plan",
        "stream": "maskery.rows.stream:plan",
        "stream_pair": "maskery.rows.stream_pair:plan",
        "source_target": "maskery.rows.source_target:plan",
    },
)
PAIRS: Registry[Any] = Registry(
    "pair label",
    {name: f"maskery.rows.pairs:{name.upper()}" for name in ("next", "order", "three", "distance", "none")}
    | {"permuted": "maskery.rows.permuted:PERMUTED"},
)

ONLY_PAIR = {
    "full_sentences": "none",
    "doc_sentences": "none",
    "one_or_two_segments": "none",
    "permuted_segments": "permuted",
    "stream": "none",
    "stream_pair": "none",
    "source_target": "none",
}
"""Kinds that go with one answer to `pair` only."""
UNFRAMED = ("stream", "stream_pair")
"""Kinds whose rows do not begin with [CLS]."""
SOURCES = "source_target"
"""The kind whose rows are a source and what is to be written for it."""
CONTINUED = ("stream", "stream_pair")
"""Kinds whose rows go on where the row before them ended, so that a memory holds the true past."""
CLOSED = ("stream_pair",)
"""Kinds whose rows end with [CLS], and go on behind their first half: what follows it comes again."""
MODE_SEGMENTS = 6
"""The segment ids of `segments = "mode"`."""


class RowsConfig(Config):
    kind: Annotated[str, AfterValidator(KINDS.validator())] = "segment_pair"
    pair: Annotated[str, AfterValidator(PAIRS.validator())] = "next"
    """How the second segment may be related to the first: next, order, three, distance, or none (one segment).

    Where it is not given: next, but none for the kinds that make no pairs, and permuted for permuted_segments."""
    short: float = Field(0.1, ge=0, le=1)
    """Chance of a random shorter length: segment_pair, of a document, as in BERT; one_or_two_segments, of a row."""
    copies: int = Field(1, ge=1, le=1000)
    """Passes over the corpus laid end to end in one plan, each with its own cuts and pairs."""

    both_ways: bool = False
    """stream_pair: whether the text is also read from its end to its beginning, by half of the rows (XLNet)."""

    decoder: Literal["none", "text", "chosen", "target"] = "none"
    """What a decoder writes: the whole row as it was before corruption (BART), the chosen tokens at their own positions
    (MASS), or the second segment, while the encoder reads the first (source and target)."""
    decoder_start: Literal["begin", "end"] = "begin"
    """The token that a decoder reads first: [CLS], or [SEP], behind which it writes [CLS] itself (BART)."""

    segments: Literal["pair", "mode"] = "pair"
    """Segment ids: 0 and 1 for the segments of a pair, or ids that tell how a row is read as well (UniLM): 0 1 full,
    2 causal, 3 reverse, 4 5 prefix."""

    @model_validator(mode="before")
    @classmethod
    def _default_pair(cls, values: Any) -> Any:
        if isinstance(values, dict) and isinstance(values.get("kind"), str) and values["kind"] in ONLY_PAIR:
            return {"pair": ONLY_PAIR[values["kind"]]} | values
        return values

    @model_validator(mode="after")
    def _kind_and_pair_fit(self) -> RowsConfig:
        wanted = ONLY_PAIR.get(self.kind)
        if wanted is not None and self.pair != wanted:
            raise Unfit(
                f"kind {self.kind!r} goes with pair {wanted!r} only, not with {self.pair!r}",
                f"--set rows.pair={wanted}",
            )
        if wanted is None and self.pair in ONLY_PAIR.values() and self.pair != "none":
            kind = next(kind for kind, pair in ONLY_PAIR.items() if pair == self.pair)
            raise Unfit(f"pair {self.pair!r} needs kind {kind!r}, not {self.kind!r}", f"--set rows.kind={kind}")
        return self

    @model_validator(mode="after")
    def _walks_both_ways(self) -> RowsConfig:
        if self.both_ways and self.kind not in CLOSED:
            raise Unfit(
                f"both_ways is of kind {CLOSED[0]!r}, not of {self.kind!r}",
                f"--set rows.both_ways=false, or --set rows.kind={CLOSED[0]}",
            )
        return self

    @property
    def two_segments(self) -> bool:
        """Whether rows have segment 1 besides segment 0."""
        in_two = ("one_or_two_segments", "source_target", "stream_pair")
        return self.kind in in_two or self.pair not in ("none", "permuted")
