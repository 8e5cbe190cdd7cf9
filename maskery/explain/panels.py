"""The matrices that are drawn of a side of a row, with their titles: the same on a terminal and in a picture."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from torch import Tensor

from maskery.explain.flow import equal_layers
from maskery.explain.flow_words import FlowWords
from maskery.explain.sights import Side, Sight


@dataclass(frozen=True)
class Panel:
    title: str
    sight: Sight
    matrix: Tensor
    """(t,M+s)"""
    known: bool
    """What is known, not what is seen."""
    lines: tuple[int, ...]
    """The slots that have a line: a second stream is that of the targets alone."""


def panels(side: Side, words: FlowWords, *, mode: str = "", layers: bool) -> list[Panel]:
    """Who sees whom, and with `layers` what is known after each; layers that know the same are drawn once. Titles say
    the `mode` that is given."""
    about = _about(mode, side, words)
    found = [
        Panel(words.sees[each.kind] + about[each.kind], each, each.visible, known=False, lines=_lines(side, each))
        for each in side.sights
        if each.kind != "one_stream"
    ]
    if layers:
        found += [panel for each in side.sights for panel in _known(side, each, words, about[each.kind])]
    return found


def _lines(side: Side, sight: Sight) -> tuple[int, ...]:
    return tuple(side.asked_slots) if sight.kind == "query" else tuple(range(len(side.tokens)))


def _about(mode: str, side: Side, words: FlowWords) -> dict[str, str]:
    """What a title adds, by the kind of sight."""
    read = [words.read.format(mode=mode)] if mode and side.name != "decoder" else []
    own = [words.side[side.name]] if side.name else []
    if side.sight("query"):
        own = [words.side["content"]]
    comma = words.comma
    told = {"own": own + read, "query": read, "one_stream": read, "source": []}
    return {kind: "".join(comma + each for each in parts) for kind, parts in told.items()}


def _known(side: Side, sight: Sight, words: FlowWords, about: str) -> Iterator[Panel]:
    for first, last in equal_layers(sight.layers):
        name = (words.layer if first == last else words.layers).format(first=first, last=last)
        title = words.knows[sight.kind].format(layers=name) + about
        yield Panel(title, sight, sight.layers[last], known=True, lines=_lines(side, sight))


def walk_text(side: Side) -> str:
    """The tokens from those that are known first to the one that is known last."""
    turns = [" ".join(side.tokens[slot] for slot in slots) for slots in side.walk]
    return " → ".join(turns)
