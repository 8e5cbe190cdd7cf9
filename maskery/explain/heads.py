"""The head view: hover a token and see where each attention head looks, layer by layer.

It works for every model that has a tokenizer, because attention weights can always be captured. Weights travel in the
page as 16-bit numbers (steps of 1/65,535). Layers, heads and positions are counted as people do in words (from 1) for
layers and heads, and from 0 for positions, as everywhere in Maskery.

Shapes: L layers, H heads, T tokens.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from os import PathLike
from pathlib import Path

import numpy as np

from maskery import arguments
from maskery.arguments import checked
from maskery.checkpoint.load import AnyModel, model_of
from maskery.explain.attention import Attention, attend
from maskery.explain.words import HeadWords, words_of
from maskery.picture import Picture
from maskery.picture.markup import Markup, joined, language, script_data, tag

_SCRIPT = Path(__file__).with_name("heads.js").read_text(encoding="utf-8")
_STYLE = Path(__file__).with_name("heads.css").read_text(encoding="utf-8")
_STEPS = 65535
_FLAT = 0.97
"""Share of the largest entropy from which on weights are called uniform."""
_TITLE = 60
_FILTERS = {"AA": "A → A", "AB": "A → B", "BA": "B → A", "BB": "B → B"}


@checked
def head_view(
    model: AnyModel, text: str, pair: str | None = None, layers: Sequence[int] | None = None, lang: str = "en"
) -> Picture:
    """Attention of every head over a text, or over two as the model reads a pair; `layers` count from 1."""
    arguments.text("text", text)
    if pair is not None:
        arguments.text("pair", pair)
    if layers is not None:
        layers = [
            arguments.count(f"layers[{number}]", each)
            for number, each in enumerate(arguments.items("layers", layers, "a list of numbers: layers=[1, 2]"))
        ]
    opened = model_of(model)
    name = Path(model).name if isinstance(model, str | PathLike) else opened.family
    return head_picture(attend(opened, text, pair, layers), lang, name)


def head_picture(attention: Attention, lang: str = "en", name: str = "") -> Picture:
    """The view of attention that was measured before; `name` is the model's."""
    words, script = words_of(lang).heads, language("".join(attention.tokens))
    parts = [
        tag("style", Markup(_STYLE)),
        _controls(attention, words),
        tag("p", words.waiting, {"class": "mk-told", "lang": script}),
        _columns(attention, words, script),
        tag("script", script_data(_data(attention, words)), {"type": "application/json", "class": "mk-data"}),
        tag("script", Markup(_SCRIPT)),
    ]
    view = tag("div", joined(parts), {"class": "mk-heads", "data-mk-view": "heads"})
    layers, heads, tokens = attention.weights.shape[:3]
    note = [words.note, words.size.format(layers=layers, heads=heads, tokens=tokens, steps=_STEPS)]
    note += _flat(attention, words)
    if attention.unknown:
        note.append(words.unknown.format(unknown=attention.unknown))
    title = words.of.format(title=words.title, name=name, text=_shown(attention)) if name else words.title
    return Picture(title, view, note=words_of(lang).stop.join(note), lang=lang)


def _flat(attention: Attention, words: HeadWords) -> list[str]:
    """A remark where no head prefers any token to another."""
    heads = attention.heads()
    entropy = sum(head["entropy"] for head in heads) / len(heads)
    rows = attention.weights[0, 0] > 0
    most = float(rows.sum(-1).clamp(min=1).double().log().mean())
    return [words.flat.format(entropy=entropy, most=most)] if most and entropy > _FLAT * most else []


def _shown(attention: Attention) -> str:
    """The beginning of the text, for a title."""
    inside = [token for place, token in enumerate(attention.tokens) if place not in attention.frame]
    text = " ".join(inside)
    return text if len(text) <= _TITLE else text[:_TITLE] + "…"


def _controls(attention: Attention, words: HeadWords) -> Markup:
    options = joined(tag("option", number, {"value": place}) for place, number in enumerate(attention.layers))
    parts = [tag("label", joined([words.layer, " ", tag("select", options, {"class": "mk-layer"})]))]
    if attention.paired:
        filters = {"all": words.all_pairs, **_FILTERS}
        choices = joined(tag("option", label, {"value": key}) for key, label in filters.items())
        parts.append(tag("label", joined([words.sentences, " ", tag("select", choices, {"class": "mk-filter"})])))
    heads = attention.weights.shape[1]
    squares = [
        tag(
            "button",
            number,
            {
                "type": "button",
                "class": "mk-square",
                "aria-pressed": "true",
                "aria-label": words.head.format(number=number),
                "style": f"--mk-hue:{round(360 * (number - 1) / heads)}",
            },
        )
        for number in range(1, heads + 1)
    ]
    every = tag("button", words.all_heads, {"type": "button", "class": "mk-every"})
    row = tag("div", joined([*squares, every]), {"class": "mk-squares", "role": "group", "aria-label": words.title})
    return tag("div", joined([*parts, row]), {"class": "mk-controls"})


def _columns(attention: Attention, words: HeadWords, lang: str | None) -> Markup:
    """Two columns of tokens with the lines between them; the left one reads, the right one is read."""

    def column(side: str, heading: str) -> Markup:
        tokens = [_token(attention, words, place) for place in range(len(attention.tokens))]
        return tag("div", joined([tag("div", heading, {"class": "mk-side"}), *tokens]), {"class": f"mk-{side}"})

    lines = Markup('<div class="mk-lines"><svg preserveAspectRatio="none" aria-hidden="true"></svg></div>')
    sides = [column("from", words.left), lines, column("to", words.right)]
    return tag("div", joined(sides), {"class": "mk-grid", "lang": lang})


def _token(attention: Attention, words: HeadWords, place: int) -> Markup:
    segment = "AB"[attention.segments[place]]
    inner = joined([tag("span", "", {"class": "mk-bar"}), tag("bdi", attention.tokens[place])])
    if attention.paired:
        inner = joined([inner, tag("small", segment)])
    attributes = {
        "class": f"mk-token mk-in-{segment.lower()}",
        "role": "button",
        "tabindex": "0" if place == 0 else "-1",
        "data-place": place,
        "title": words.place.format(token=attention.tokens[place], place=place),
        "aria-pressed": "false",
    }
    return tag("div", inner, attributes)


def _data(attention: Attention, words: HeadWords) -> dict[str, object]:
    steps = np.rint(attention.weights.double().numpy() * _STEPS).astype("<u2")
    return {
        "tokens": [str(token) for token in attention.tokens],
        "segments": attention.segments,
        "layers": attention.layers,
        "heads": steps.shape[1],
        "words": words.script(),
        "weights": [base64.b64encode(layer.tobytes()).decode() for layer in steps],
    }
