"""How marks stand around texts, for each kind of model.

    bert        [CLS] a [SEP] b [SEP]              segments 0 and 1
    roberta     <s> a </s></s> b </s>              bart as well
    xlnet       a <sep> b <sep> <cls>              segments 0, 1 and 2
    gpt         start a delimiter b extract        read at its last token

A tokenizer's own template is followed where it has one: it is what the model was trained with. Models that read from
the left take gpt, and those of two streams xlnet, whatever their tokenizer says. A third text and further ones are
parted as the second is from the first, and are of its segment.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from maskery.checkpoint.model import Model
from maskery.errors import InputError
from maskery.text.tokenizer import Tokenizer

NEW_MARKS = ("<|start|>", "<|delimiter|>", "<|extract|>")
"""The marks that GPT's tasks add to its vocabulary."""
_FROM_THE_LEFT = ("causal", "packed_causal")


class Mark(NamedTuple):
    id: int
    segment: int


class Text(NamedTuple):
    """The place of a text in a row."""

    number: int
    """From 0, in the order of the row."""
    segment: int


@dataclass(frozen=True, kw_only=True)
class Frame:
    name: str
    front: tuple[Mark, ...]
    """Before the first text."""
    between: tuple[Mark, ...]
    """Behind the first text of two."""
    back: tuple[Mark, ...]
    """Behind the last text of two."""
    back_alone: tuple[Mark, ...]
    """Behind a text that has no second."""
    second: int
    """The segment of the second text; the first is of segment 0."""
    reads: Literal["first", "last"]
    """The slot that sums a row up."""
    new: tuple[str, ...] = ()
    """Marks whose numbers lie behind the vocabulary: the network needs vectors for them."""
    note: str = ""
    """What stands for what, where that is not plain."""

    def layout(self, texts: int, joined: Sequence[int] = ()) -> tuple[Mark | Text, ...]:
        """Marks and texts of a row in their order; no mark stands behind the texts whose numbers are in `joined`."""
        parts: list[Mark | Text] = list(self.front)
        for number in range(texts):
            parts.append(Text(number, self._segment(0, number)))
            if number == texts - 1:
                parts += self.back if texts > 1 else self.back_alone
            elif number not in joined:
                parts += [Mark(mark.id, self._segment(mark.segment, number)) for mark in self.between]
        return tuple(parts)

    def marks(self, texts: int, joined: Sequence[int] = ()) -> int:
        """How many slots of a row are marks."""
        return sum(isinstance(part, Mark) for part in self.layout(texts, joined))

    def _segment(self, segment: int, texts_before: int) -> int:
        return max(segment, min(segment + texts_before, self.second))

    def within(self, segments: int) -> Frame:
        """For models that know only so many segments: a higher number becomes the last one known."""

        def capped(marks: tuple[Mark, ...]) -> tuple[Mark, ...]:
            return tuple(Mark(mark.id, min(mark.segment, segments - 1)) for mark in marks)

        return replace(
            self,
            front=capped(self.front),
            between=capped(self.between),
            back=capped(self.back),
            back_alone=capped(self.back_alone),
            second=min(self.second, segments - 1),
        )


def in_frame(tokenizer: Tokenizer, frame: Frame, *, segments: bool) -> Tokenizer:
    """The tokenizer for a folder whose rows have this frame, so that other tools make the same rows of a text; the
    given one where it does so already."""
    if frame.new or frame.name not in ("gpt", "xlnet") or template(tokenizer) == replace(frame, note=""):
        return tokenizer

    def parts(texts: int) -> list[tuple[str, int]]:
        layout = frame.layout(texts)
        names = ["AB"[part.number] if isinstance(part, Text) else tokenizer.tokens([part.id])[0] for part in layout]
        return [(name, part.segment) for name, part in zip(names, layout, strict=True)]

    return tokenizer.framed(parts(1), parts(2), left=frame.name == "xlnet", segments=segments)


def frame_of(model: Model, *, new_marks: bool = False) -> Frame:
    """The frame of a model. `new_marks`: models that read from the left get three marks of their own behind the
    vocabulary, as GPT did, instead of marks that they know."""
    tokenizer, shape = tokenizer_of(model), model.config
    if shape.visibility in _FROM_THE_LEFT and not shape.decoder:
        return _gpt(tokenizer, shape.vocabulary if new_marks else None)
    frame = xlnet(tokenizer) if shape.streams == 2 else template(tokenizer)
    by_comparing = model.network.embeddings.positions.tells_segments  # whatever their numbers are
    return frame if by_comparing else frame.within(max(1, shape.segments))


def tokenizer_of(model: Model) -> Tokenizer:
    if model.tokenizer is None:
        raise InputError(
            "the folder holds no tokenizer", repair="put its tokenizer.json or vocab.txt beside the weights"
        )
    return model.tokenizer


def longest_row(model: Model) -> int | None:
    """The most slots that a model can read; None: any number."""
    limit = model.network.embeddings.positions.limit
    return None if limit is None else limit - model.config.position_offset


def bert(tokenizer: Tokenizer) -> Frame:
    cls, sep = tokenizer.specials.cls, tokenizer.specials.sep
    ends = (Mark(sep, 0),)
    return Frame(
        name="bert",
        front=(Mark(cls, 0),),
        between=ends,
        back=(Mark(sep, 1),),
        back_alone=ends,
        second=1,
        reads="first",
    )


def xlnet(tokenizer: Tokenizer) -> Frame:
    cls, sep = tokenizer.specials.cls, tokenizer.specials.sep
    return Frame(
        name="xlnet",
        front=(),
        between=(Mark(sep, 0),),
        back=(Mark(sep, 1), Mark(cls, 2)),
        back_alone=(Mark(sep, 0), Mark(cls, 2)),
        second=1,
        reads="last",
    )


def template(tokenizer: Tokenizer) -> Frame:
    """The frame in which the tokenizer itself puts text; BERT's, with its marks, where it has none."""
    (first, _), (second, _) = tokenizer.encode_raw(["a", "b"])
    single = _around(tokenizer.encode("a"), [first.tolist()])
    pair = _around(tokenizer.encode("a", "b"), [first.tolist(), second.tolist()])
    if single is None or pair is None or not (pair[0] + pair[2]):
        return bert(tokenizer)
    name = "xlnet" if not pair[0] else "bert" if len(pair[1]) == 1 else "roberta"
    ids, segments = tokenizer.encode("a", "b")
    last = len(ids) - 1 - len(pair[2])
    return Frame(
        name=name,
        front=pair[0],
        between=pair[1],
        back=pair[2],
        back_alone=single[1],
        second=segments[last],
        reads="first" if pair[0] else "last",
    )


def _around(framed: tuple[list[int], list[int]], texts: Sequence[list[int]]) -> list[tuple[Mark, ...]] | None:
    """The marks before, between and behind the texts; None where the texts are not found as they are."""
    ids, segments = framed
    parts, at = [], 0
    for text in texts:
        found = next((n for n in range(at, len(ids) - len(text) + 1) if ids[n : n + len(text)] == text), None)
        if found is None or not text:
            return None
        parts.append((at, found))
        at = found + len(text)
    return [tuple(Mark(ids[n], segments[n]) for n in range(*part)) for part in [*parts, (at, len(ids))]]


def _gpt(tokenizer: Tokenizer, vocabulary: int | None) -> Frame:
    """`vocabulary`: the number of the first new mark; None: known marks do."""
    known = [number for name in NEW_MARKS if (number := tokenizer.id(name)) is not None]
    if len(known) == len(NEW_MARKS):
        return _left_to_right(*known)
    if vocabulary is not None:
        note = f"three new marks behind the vocabulary: {', '.join(NEW_MARKS)}"
        made = _left_to_right(vocabulary, vocabulary + 1, vocabulary + 2)
        return replace(made, new=NEW_MARKS, note=note)
    cls, sep, names = tokenizer.specials.cls, tokenizer.specials.sep, tokenizer.names
    note = f"{names['cls']} starts a row and ends it, {names['sep']} parts its texts"
    return replace(_left_to_right(cls, sep, cls), note=note)


def _left_to_right(start: int, delimiter: int, extract: int) -> Frame:
    ends = (Mark(extract, 0),)
    return Frame(
        name="gpt",
        front=(Mark(start, 0),),
        between=(Mark(delimiter, 0),),
        back=ends,
        back_alone=ends,
        second=0,
        reads="last",
    )
