"""The picture of a reading order: the row with its turns and targets, who sees whom, and what every layer knows."""

from __future__ import annotations

from dataclasses import replace

from maskery.arguments import checked
from maskery.corpus.mixture import AnyCorpora, corpus_of
from maskery.explain.flow import Flow, flow_of
from maskery.explain.flow_words import FlowWords, flow_words, verdict, why_two
from maskery.explain.panels import Panel, panels, walk_text
from maskery.explain.sights import REMEMBERED, Drawn, Side
from maskery.picture import Picture
from maskery.picture.markup import Markup, joined, language, tag
from maskery.picture.svg import Drawing, shortened, text_width
from maskery.picture.theme import LIGHT
from maskery.recipes.recipe import AnyRecipe, recipe_of

CELL, LABEL, TOP = 22, 110, 42
"""Of a matrix: side of a cell, widest label, height above the first line."""
WIDE = 1000
"""Of a file that has all of them."""
HIGH, STEP = 24, 32
"""Of the row above the matrices: height of a box, from one line to the next."""


@checked
def visibility(recipe: AnyRecipe, corpus: AnyCorpora | None = None, *, lang: str = "en") -> Picture:
    """Who sees whom in a short row of the recipe, what each layer knows, and whether a question leaks."""
    read = recipe_of(recipe)
    return flow_picture(flow_of(read, None if corpus is None else corpus_of(corpus), read.training.seed), lang=lang)


def flow_picture(flow: Flow, *, layers: bool = True, lang: str = "en") -> Picture:
    """Matrices: a line for each position that reads, a column for each that is read; without `layers` those of sight
    alone."""
    words = flow_words(lang)
    told = [tag("p", joined([tag("b", name), f": {verdict(each, words)}"])) for name, each in flow.readings.items()]
    if layers and flow.loss is not None:
        told.append(tag("p", why_two(flow.loss, words)))
    told += [
        tag("p", words.refused.format(piece=each.piece, reason=each.reason, repair=each.repair))
        for each in flow.refusals
    ]
    note = words.note.format(rows=flow.rows)
    memory = flow.drawn[0].memory
    if memory:
        note += " " + words.remembered.format(memory=memory, drawn=min(memory, REMEMBERED))
    made = picture_of(words.title.format(name=flow.recipe), flow.drawn, told, note, words, layers=layers)
    return replace(made, lang=lang)


def picture_of(
    title: str, rows: tuple[Drawn, ...], told: list[Markup], note: str, words: FlowWords, *, layers: bool
) -> Picture:
    """Some rows below each other."""
    bands: list[list[Drawing]] = []
    for drawn in rows:
        for side in drawn.sides:
            if side.order is not None or any(side.asked):
                bands.append([_strip(side, words)])
            bands.append([_matrix(each, side, words) for each in panels(side, words, mode=drawn.mode, layers=layers)])
    written = language("".join(token for each in rows for side in each.sides for token in side.tokens))
    body = [tag("div", joined(Markup(each.svg()) for each in band), {"class": "mk-matrices"}) for band in bands]
    style = tag("style", Markup(".maskery-picture .mk-matrices{display:flex;flex-wrap:wrap;gap:8px 24px}"))
    content = joined([style, tag("div", joined(body), {"lang": written}), *told])
    return Picture(title, content, svg=_together(title, bands).file(), note=note)


def _together(title: str, bands: list[list[Drawing]]) -> Drawing:
    """One drawing of all: those of a band beside each other as far as there is room."""
    placed: list[tuple[Drawing, float, float]] = []
    top = 0.0
    for band in bands:
        left = high = 0.0
        for each in band:
            if left and left + each.width > WIDE:
                left, top, high = 0.0, top + high, 0.0
            placed.append((each, left, top))
            left, high = left + each.width + 16, max(high, each.height)
        top += high
    whole = Drawing(title, max(x + each.width for each, x, _ in placed), top)
    for each, x, y in placed:
        whole.put(each, x, y)
    return whole


def _strip(side: Side, words: FlowWords) -> Drawing:
    """The row as it is read, below each slot its turn and what it is asked for."""
    lines: dict[str, list[str]] = {words.token: [shortened(token, LABEL) for token in side.tokens]}
    if side.order is not None:
        lines[words.turn] = [str(turn) for turn in side.order]
    if any(side.asked):
        lines[words.asked] = [shortened(answer, LABEL) for answer in side.asked]
    wide = [max(text_width(line[slot]) for line in lines.values()) + 14 for slot in range(len(side.tokens))]
    left = max(text_width(name) for name in lines) + 16
    name, top = words.side.get(side.name, ""), 26 if side.name else 6
    width = left + sum(wide) + 4 * len(wide) + 8
    walk = words.order.format(walk=walk_text(side)) if side.order is not None else ""
    high = top + STEP * len(lines)
    drawing = Drawing(name or words.token, max(width, text_width(walk) + 16), high + 20 * bool(walk))
    if name:
        drawing.text(4, 16, name, kind="strong")
    for number, (said, line) in enumerate(lines.items()):
        y, x = top + STEP * number, left
        drawing.text(4, y + 16, said, kind="soft")
        for slot, told in enumerate(line):
            if told:
                _box(drawing, x, y, wide[slot], told, "mask" if said == words.asked else "")
            x += wide[slot] + 4
    if walk:
        drawing.text(4, high + 12, walk)
    return drawing


def _box(drawing: Drawing, x: float, y: float, width: float, text: str, kind: str) -> None:
    ink, back, edge = (kind, f"{kind}-back", kind) if kind else ("ink", "paper", "line")
    frame = {"x": x, "y": y, "width": width, "height": HIGH, "rx": 4, "fill": LIGHT[back], "stroke": LIGHT[edge]}
    drawing.add("rect", frame | {"style": f"fill:var(--mk-{back});stroke:var(--mk-{edge})"})
    place = {"x": x + width / 2, "y": y + 16, "text-anchor": "middle", "font-size": 12, "fill": LIGHT[ink]}
    drawing.add("text", place | {"style": f"fill:var(--mk-{ink})"}, text)


def _matrix(panel: Panel, side: Side, words: FlowWords) -> Drawing:
    before, numbers, tokens = panel.sight.before, panel.sight.numbers, side.tokens
    left = 34 + min(LABEL, max(text_width(token) for token in tokens))
    gap = 8 if before else 0
    width = left + len(numbers) * CELL + gap + 8
    drawing = Drawing(panel.title, max(width, 1.15 * text_width(panel.title) + 12), TOP + len(tokens) * CELL + 12)
    drawing.text(4, 16, panel.title, kind="strong")
    columns = [left + place * CELL + gap * (number >= 0) for place, number in enumerate(numbers)]
    for x, number in zip(columns, numbers, strict=True):
        shown = number + side.first * (number >= 0)
        drawing.text(x + 0.5 * CELL, TOP - 6, shown, anchor="middle", kind="soft")
    for place, token in enumerate(tokens):
        middle = TOP + (place + 0.7) * CELL
        drawing.text(left - 28, middle, shortened(token, LABEL), anchor="end")
        drawing.text(left - 6, middle, place + side.first, anchor="end", kind="soft")
    said = words.known if panel.known else words.cell
    for query in panel.lines:
        for x, number, seen in zip(columns, numbers, panel.matrix[query].tolist(), strict=True):
            other = words.memory if number < 0 else panel.sight.read[number]
            at = number + side.first * (number >= 0)
            told = said[seen].format(one=tokens[query], q=query + side.first, other=other, k=at)
            attributes = {
                "x": x + 1,
                "y": TOP + query * CELL + 1,
                "width": CELL - 2,
                "height": CELL - 2,
                "class": "mk-cell mk-seen" if seen else "mk-cell mk-unseen",
                "fill": LIGHT["accent" if seen else "panel"],
            }
            drawing.add("rect", attributes, tag("title", told))
    return drawing
