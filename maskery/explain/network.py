"""A network as boxes, from the row at the bottom to the questions at the top, with the parameters of each part.

Layers that share weights are drawn once, with how many times they are used. A generator stands beside the model; what
both have in common is drawn once, at the model, with a line between them.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from os import PathLike
from pathlib import Path

from maskery import arguments
from maskery.arguments import checked
from maskery.checkpoint.heads import FIRST, POOLED
from maskery.checkpoint.load import load
from maskery.checkpoint.model import Model
from maskery.checkpoint.parts import Part
from maskery.checkpoint.whole import Whole, whole_of
from maskery.explain.boxes import GAP, Box, Cells, Frame, Item, Line, arrow, draw_column, first_cell, heights
from maskery.explain.network_words import NetworkWords, network_words
from maskery.model.config import COUNTED, Shape
from maskery.model.heads import TokenHead
from maskery.objectives.config import OBJECTIVES
from maskery.picture import Picture
from maskery.picture.markup import Markup, tag
from maskery.picture.svg import Drawing
from maskery.recipes.recipe import Recipe, recipe

WIDTH, BETWEEN, MARGIN, TOP = 540, 150, 28, 74
VOCABULARY = 30522
"""Of a recipe, when none is given: BERT's own in English."""


@checked
def network(source: Model | Recipe | str | PathLike[str], vocabulary: int = VOCABULARY, lang: str = "en") -> Picture:
    """The network of a recipe, with a vocabulary of so many pieces, or of a model; or of what is named: a folder is a
    model, all else the name or the file of a recipe."""
    if isinstance(source, (str, PathLike)):
        source = load(source) if Path(source).is_dir() else recipe(source)
    if not isinstance(source, (Model, Recipe)):
        raise arguments.wrong(
            "source",
            source,
            "a recipe or a model",
            'give a recipe, a model, the name of a recipe or a folder: maskery.explain.network("electra")',
        )
    arguments.count("vocabulary", vocabulary)
    if isinstance(source, Model):
        return network_picture(whole_of(source, vocabulary), source.config.visibility, source.family, lang)
    return network_picture(whole_of(source, vocabulary), source, source.name, lang)


def network_picture(whole: Whole, read: Recipe | str, name: str, lang: str = "en") -> Picture:
    """`read` is a recipe, or the visibility of a model that has none."""
    words, shape = network_words(lang), whole.network.shape
    title = words.title.format(name=name, layers=shape.layers, width=shape.width)
    drawing = _Painter(words, whole, read).drawing(title)
    body = tag("div", Markup(drawing.svg()), {"lang": lang})
    return Picture(title, body, svg=drawing.file(), note=words.note, lang=lang)


@dataclass(frozen=True)
class _Painter:
    words: NetworkWords
    whole: Whole
    read: Recipe | str

    def drawing(self, title: str) -> Drawing:
        small = self.whole.generator
        columns = [self.column(self.whole, small is not None)] + ([self.column(small, False)] if small else [])
        tall = max(heights(main) + self.top_of(tops) for main, tops in columns)
        wide = 2 * MARGIN + WIDTH * len(columns) + BETWEEN * (len(columns) - 1) + 24
        drawing = Drawing(title, wide, TOP + tall + MARGIN)
        drawing.text(MARGIN, 30, title, kind="strong")
        total = self.words.total.format(total=f"{self.whole.parameters()['total']:,}")
        drawing.text(MARGIN, 49, total, kind="soft")
        bottom, x = drawing.height - MARGIN, float(MARGIN)
        if small is not None:
            low = self.paint(drawing, small, x, bottom)
            x += WIDTH + BETWEEN
            self.paint(drawing, self.whole, x, bottom)
            self.connect(drawing, x, bottom, low)
        else:
            self.paint(drawing, self.whole, x, bottom)
        return drawing

    def paint(self, drawing: Drawing, whole: Whole, x: float, bottom: float) -> float:
        """A network and the heads on it; where its heads end."""
        main, tops = self.column(whole, whole is self.whole and self.whole.generator is not None)
        edge = draw_column(drawing, main, x, bottom, WIDTH)[-1]
        half = (WIDTH - 16) / 2
        if not tops:
            return edge
        if len(tops) == 1:
            arrow(drawing, [(x + WIDTH / 2, edge - 1), (x + WIDTH / 2, edge - GAP + 1)])
            return draw_column(drawing, tops[0], x, edge - GAP, WIDTH)[-1]
        highest = edge
        for number, items in enumerate(tops):
            left = x + number * (half + 16)
            middle = left + half / 2
            arrow(drawing, [(middle, edge - 1), (middle, edge - GAP + 1)])
            highest = min(highest, draw_column(drawing, items, left, edge - GAP, half)[-1])
        return highest

    def connect(self, drawing: Drawing, x: float, bottom: float, top: float) -> None:
        """The embeddings that both have, and the way from what the generator draws to what the model reads."""
        cells = self.row(self.whole, True)
        small = self.whole.generator
        assert small is not None
        mine, theirs = (self.embeddings(each)[0] for each in (self.whole, small))
        low = bottom - cells.height - GAP
        y = low - min(mine.height, theirs.height) / 2
        arrow(drawing, [(x - BETWEEN, y), (x, y)], dashed=True, tip=False)
        drawing.text(x - BETWEEN / 2 - 10, y - 7, self.words.tie, anchor="middle", kind="soft")
        side, row = x - 24, bottom - cells.height + 12
        from_head = x - BETWEEN - WIDTH / 2
        up = top - 14
        cell = first_cell(cells, x, WIDTH) - 4
        arrow(drawing, [(from_head, top), (from_head, up), (side, up), (side, row), (cell, row)])
        drawing.text(side - 8, (up + low) / 2, self.words.samples, anchor="middle", kind="soft", turn=-90)

    # -- what stands in a column

    def column(self, whole: Whole, rewritten: bool) -> tuple[list[Item], list[list[Item]]]:
        """From the row to the last layer, and what stands above: questions about slots, and about rows."""
        main: list[Item] = [self.row(whole, rewritten), *self.embeddings(whole), self.layers(whole)]
        main += self.last_norm(whole, "layers")
        if whole.network.decoder is not None:
            main += [self.decoder(whole), *self.last_norm(whole, "decoder")]
        return main, self.heads(whole)

    def last_norm(self, whole: Whole, of: str) -> list[Item]:
        last = [part for part in whole.parts() if part.name == "last norm" and part.of == of]
        return [Box((Line(self.words.parts["last norm"], "", part.count),), "random") for part in last]

    def decoder(self, whole: Whole) -> Frame:
        """Its own embeddings apart from the tokens, then what each of its layers does."""
        words, shape = self.words, whole.network.shape
        parts = {part.name: part for part in whole.parts() if part.of == "decoder"}
        own = [
            Line(words.parts[name], "", parts[name].count) for name in ("tokens", "positions", "norm") if name in parts
        ]
        embeddings = Box((Line(words.written, strong=True), *own), "similar")
        size = words.heads_of.format(heads=shape.heads, width=shape.width // shape.heads)
        attention = Box(
            (self.once(Line(words.parts["attention"], size), parts["attention"]), Line(words.sees["causal"])), "ngram"
        )
        across = Box(
            (self.once(Line(words.parts["attention"], size), parts["attention to the source"]), Line(words.looks)),
            "ngram",
        )
        forward = Box((self.once(Line(words.parts["feedforward"], self.inner(shape)), parts["feed-forward"]),), "keep")
        heading = words.decoder.format(layers=shape.decoder)
        return Frame((embeddings, attention, across, forward), heading, gap=GAP, copies=1 if shape.decoder == 1 else 3)

    @staticmethod
    def top_of(tops: list[list[Item]]) -> float:
        return max((heights(items) for items in tops), default=-GAP) + GAP

    def row(self, whole: Whole, rewritten: bool) -> Cells:
        words = self.words
        texts, marked = list(words.row), {}
        masks = isinstance(self.read, str) or self.read.corruption.rate > 0
        if rewritten:
            texts[2], marked = words.replaced, {2: "infilled"}
        elif masks and (whole.network.decoder is not None or not {"next_token", "permuted_token"} & set(whole.heads)):
            texts[2], marked = words.hidden, {2: "mask"}
        label = words.model_reads if whole is self.whole else words.generator_reads
        return Cells(tuple(texts), label, marked)

    def embeddings(self, whole: Whole) -> list[Box]:
        words, shape = self.words, whole.network.shape
        parts = {part.name: part for part in whole.parts() if part.of == "embeddings"}
        if whole is not self.whole:
            boxes = [Box((Line(words.borrowed),), "similar", dashed=True)]
        else:
            sizes = {"tokens": shape.vocabulary, "segments": shape.segments, "tasks": shape.tasks}
            sizes["positions"] = _positions(shape)
            lines = [Line(words.parts["embeddings"], strong=True)]
            for name in ("tokens", "positions", "segments", "tasks", "start", "norm"):
                if name in parts and not (name == "positions" and shape.positions not in COUNTED):
                    size = f"{sizes[name]:,} × {shape.embedding}" if name in sizes else ""
                    # What a scheme has beside its positions is told where it acts, in attention.
                    many = sizes[name] * shape.embedding if name == "positions" else parts[name].count
                    lines.append(Line(words.parts[name], size, many))
            if shape.positions == "sinusoidal":
                lines.insert(2, Line(words.parts["waves"]))
            boxes = [Box(tuple(lines), "similar")]
        if "projection" in parts:
            size = f"{shape.embedding} → {shape.width}"
            boxes.append(Box((Line(words.parts["projection"], size, parts["projection"].count),), "similar"))
        return boxes

    def layers(self, whole: Whole) -> Frame:
        words, shape = self.words, whole.network.shape
        parts = {part.name: part for part in whole.parts() if part.of == "layers"}
        attention = Box((*self.attention(whole, parts["attention"]),), "ngram")
        forward = Box((self.once(Line(words.parts["feedforward"], self.inner(shape)), parts["feed-forward"]),), "keep")
        norms = [parts[f"{half} norm"].each for half in ("attention", "feed-forward")]
        if shape.norm == "post":
            adds = [Box((Line(words.add_norm, "", each),), "random") for each in norms]
            boxes, around = [attention, adds[0], forward, adds[1]], ((0, 1), (2, 3))
        else:
            before = [Box((Line(words.parts["norm"], "", each),), "random") for each in norms]
            add = Box((Line(words.add),), "random")
            boxes, around = [before[0], attention, add, before[1], forward, add], ((0, 2), (3, 5))
        shared = shape.share == "all" and shape.layers > shape.groups
        heading = words.times if not shared else words.shared if shape.groups == 1 else words.grouped
        return Frame(
            tuple(boxes),
            heading.format(layers=shape.layers, groups=shape.groups),
            gap=GAP,
            copies=1 if shape.layers == 1 or (shared and shape.groups == 1) else 3,
            again=shared,
            around=around,
        )

    def attention(self, whole: Whole, part: Part) -> list[Line]:
        words, shape = self.words, whole.network.shape
        size = words.heads_of.format(heads=shape.heads, width=shape.width // shape.heads)
        lines = [self.once(Line(words.parts["attention"], size), part), Line(self.sight(shape))]
        if local := sum(map(shape.is_local, range(shape.layers))):
            whole_rows = shape.layers - local
            lines.append(Line(words.windows.format(whole=whole_rows, layers=shape.layers, reach=shape.reach)))
        if shape.memory:
            lines.append(Line(words.remembers.format(memory=shape.memory)))
        if shape.positions in words.distances:
            tables = [each.count for each in whole.parts() if each.name == "positions" and each.of == "embeddings"]
            said = words.distances[shape.positions].format(
                clip=shape.clip, buckets=shape.buckets, theta=f"{shape.theta:,.0f}"
            )
            sets = part.held if shape.positions == "shaw" else 1
            lines.append(Line(said, "", (tables[0] - _positions(shape) * shape.embedding) // sets if tables else None))
        return lines

    def inner(self, shape: Shape) -> str:
        said = self.words.gated if shape.gated else self.words.inner
        return said.format(width=shape.width, inner=shape.feedforward, activation=shape.activation)

    def once(self, line: Line, part: Part) -> Line:
        """A line with the parameters of one layer; where only this half is shared, it says so."""
        alone = part.used > 1 and self.whole.network.shape.share != "all"
        return Line(line.name + f" ({self.words.once} × {part.used})" * alone, line.size, part.each, strong=True)

    def sight(self, shape: Shape) -> str:
        if isinstance(self.read, str) or not self.read.visibility.mixed:
            return self.words.sees[shape.visibility]
        shares = self.read.visibility.shares.items()
        told = ", ".join(f"{Fraction(share).limit_denominator(12)} {kind}" for kind, share in shares)
        return self.words.sees["mixture"].format(shares=told)

    def heads(self, whole: Whole) -> list[list[Item]]:
        words = self.words
        counts = {part.name: part.count for part in whole.parts() if part.of in ("heads", "pooler")}
        by_row = [name for name in whole.heads if _about_rows(name)]
        by_slot = [name for name in whole.heads if name not in by_row]
        tops: list[list[Item]] = []
        if by_slot:
            tops.append([Frame(tuple(self.head(whole, name, counts[name]) for name in by_slot), words.asked_slots)])
        pooled: list[Item] = []
        if "pooler" in counts:
            pooled.append(Box((Line(words.parts["pooler"], "", counts["pooler"]),), "other"))
        if by_row:
            pooled.append(Frame(tuple(self.head(whole, name, counts[name]) for name in by_row), words.asked_rows))
        return [*tops, *([pooled] if pooled else [])]

    def head(self, whole: Whole, name: str, count: int) -> Box:
        lines = [Line(name, "", count or None, strong=True)]
        question = next((said for key, said in self.words.questions.items() if name.startswith(key)), None)
        lines += [Line(question)] if question else []
        if isinstance(whole.heads[name], TokenHead) or name == "span_boundary":
            lines.append(Line(self.words.tied))
        return Box(tuple(lines), "mask")


def _positions(shape: Shape) -> int:
    """Positions that have a trained vector."""
    return shape.max_length + shape.position_offset if shape.positions in COUNTED else 0


def _about_rows(name: str) -> bool:
    if name in OBJECTIVES.names():
        return OBJECTIVES.get(name).needs_pooler
    return name in POOLED or name in FIRST
