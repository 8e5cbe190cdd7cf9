"""A set of texts in two dimensions: a mark for each, its text on hovering, a colour and a shape for each label.

The places are principal components (`pca`), or by t-SNE of scikit-learn (`tsne`), which is an extra.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np

from maskery import randomness
from maskery.errors import ArgumentError, UnknownName
from maskery.extras import optional
from maskery.picture import Picture
from maskery.picture.markup import Markup, joined, language, tag
from maskery.picture.svg import SHAPES, Drawing, shortened, text_width
from maskery.picture.theme import LIGHT, SERIES_LIGHT
from maskery.vectors.judge.encodes import Encodes, Numbers, vectors_of
from maskery.vectors.judge.similarity import units
from maskery.vectors.judge.words import VectorWords, vector_words
from maskery.words.plane import principal

Method = Literal["pca", "tsne"]
METHODS: tuple[Method, ...] = ("pca", "tsne")
FEWEST, MOST, MOST_LABELS = 3, 3000, 24
"""Texts: two points are always on a line, and a page of more than some thousand marks is slow. Labels with a mark of
their own: the most common ones."""
WIDE, NARROW = 860.0, 372.0
_EDGE, _LEGEND, _CROWDED = 14.0, 20.0, 300
_PERPLEXITY, _TSNE = 30.0, "a map by t-SNE"


def vector_map(
    encoder: Encodes,
    texts: Sequence[str],
    labels: Sequence[object] | None = None,
    method: Method = "pca",
    lang: str = "en",
) -> Picture:
    """Texts by their vectors; of more than 3,000 some are drawn by lot, which is told."""
    words = vector_words(lang)
    require_method(method)
    require_enough(texts)
    if labels is not None and len(labels) != len(texts):
        raise ArgumentError(f"{len(labels):,} labels for {len(texts):,} texts", repair="give one label for each text")
    chosen = _chosen(len(texts))
    shown = [texts[at] for at in chosen]
    groups, names = _groups([str(labels[at]) for at in chosen], words) if labels is not None else ([0] * len(shown), [])
    place, note = _placed(units(vectors_of(encoder, shown)), method, words)
    if len(chosen) < len(texts):
        note += words.drawn.format(n=f"{len(chosen):,}", all=f"{len(texts):,}")
    title = words.map_title.format(n=f"{len(shown):,}")
    hover = [f"{names[group]}\n{text}" if names else text for group, text in zip(groups, shown, strict=True)]
    return _picture(title, note, lang, lambda width: _drawn(title, place, groups, names, hover, width), shown)


def require_method(method: str) -> Method:
    """Refuse one that is unknown, or whose library is not there, before long work."""
    found = next((each for each in METHODS if each == method), None)
    if found is None:
        raise UnknownName("method of a map", method, METHODS)
    if found == "tsne":
        optional("sklearn.manifold", _TSNE)
    return found


def require_enough(texts: Sequence[str]) -> None:
    if len(texts) < FEWEST:
        raise ArgumentError(f"{len(texts)} texts make no map", repair=f"give at least {FEWEST} texts")


def _picture(title: str, note: str, lang: str, draw: Callable[[float], Drawing], shown: list[str]) -> Picture:
    wide, narrow = draw(WIDE), draw(NARROW)
    drawings = joined([Markup(wide.svg("mk-wide")), Markup(narrow.svg("mk-narrow"))])
    body = tag("div", drawings, {"lang": language("".join(shown))})
    return Picture(title, body, svg=wide.file(), note=note, lang=lang)


def _chosen(many: int) -> list[int]:
    order = randomness.generator(randomness.key(0, "map of texts")).permutation(many)
    return [int(at) for at in np.sort(order[:MOST])]


def _groups(labels: Sequence[str], words: VectorWords) -> tuple[list[int], list[str]]:
    """The number of each text's label, the most common first, and their names; rare ones are one group."""
    common = [label for label, _ in Counter(labels).most_common()]
    kept = common if len(common) <= MOST_LABELS else common[: MOST_LABELS - 1]
    number = {label: place for place, label in enumerate(kept)}
    left = len(common) - len(kept)
    names = [*kept, words.rest.format(n=left)] if left else kept
    return [number.get(label, len(kept)) for label in labels], names


def _placed(vectors: Numbers, method: Method, words: VectorWords) -> tuple[Numbers, str]:
    """(N,2), and what is to be said about it."""
    centred = vectors - vectors.mean(axis=0)
    if method == "pca":
        place, share = principal(centred)
        return place, words.pca_note.format(share=f"{100 * share:.0f} %")
    manifold = optional("sklearn.manifold", _TSNE)
    perplexity = min(_PERPLEXITY, max(1.0, (len(vectors) - 1) / 3))
    # Begun from principal components, so that the same texts give the same map.
    begun = principal(centred)[0]
    begun = 1e-4 * begun / max(float(begun[:, 0].std()), 1e-12)
    found = manifold.TSNE(perplexity=perplexity, init=begun.astype(np.float32), random_state=0).fit_transform(centred)
    return np.asarray(found, dtype=np.float64), words.tsne_note


def _drawn(
    title: str, place: Numbers, groups: Sequence[int], names: Sequence[str], hover: Sequence[str], width: float
) -> Drawing:
    entries, lines = _legend(names, width)
    top = _EDGE + lines * _LEGEND + (6 if lines else 0)
    height = 0.62 * width
    drawing = Drawing(title, width, top + height + _EDGE)
    for x, line, number in entries:
        y = _EDGE + line * _LEGEND
        _mark(drawing, number, x + 5, y, 1.0, "")
        drawing.text(x + 14, y + 4, shortened(names[number], width - 40))
    size = 1.0 if len(place) <= _CROWDED else 0.7
    for group, (x, y), told in zip(groups, _dots(place, width, top, height), hover, strict=True):
        _mark(drawing, group, x, y, size, told)
    return drawing


def _dots(place: Numbers, width: float, top: float, height: float) -> list[tuple[float, float]]:
    """Both directions have one scale, so that distances can be compared."""
    low, high = place.min(axis=0), place.max(axis=0)
    room = np.array([width - 2 * _EDGE - 10, height - 10])
    scale = float((room / np.maximum(high - low, 1e-12)).min())
    middle = (low + high) / 2
    across = width / 2 + scale * (place[:, 0] - middle[0])
    down = top + height / 2 - scale * (place[:, 1] - middle[1])
    return list(zip(across.tolist(), down.tolist(), strict=True))


def _legend(names: Sequence[str], width: float) -> tuple[list[tuple[float, int, int]], int]:
    """x, line and number of each entry, and how many lines they take."""
    entries, x, line = [], _EDGE, 0
    for number, name in enumerate(names):
        size = 14 + text_width(shortened(name, width - 40)) + 18
        if x + size > width and x > _EDGE:
            x, line = _EDGE, line + 1
        entries.append((x, line, number))
        x += size
    return entries, line + 1 if entries else 0


def _mark(drawing: Drawing, group: int, x: float, y: float, size: float, told: str) -> None:
    colours = len(SERIES_LIGHT)
    number = group % colours
    # The second eight have the colours of the first with other shapes.
    shape = SHAPES[(group + group // colours) % len(SHAPES)]
    scale = "" if size == 1 else f" scale({size:g})"
    look = {"class": f"mk-f{number} mk-cell", "fill": SERIES_LIGHT[number], "fill-opacity": "0.8"}
    where = {"d": shape, "transform": f"translate({x:.1f} {y:.1f}){scale}"}
    edge = {"stroke": LIGHT["paper"], "style": "stroke-width:.6"}
    drawing.add("path", {**where, **look, **edge}, tag("title", told) if told else "")
