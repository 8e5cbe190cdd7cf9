"""The pictures of the recipe pages: what a row is before and after corruption, drawn from a few words a line.

`python docs/draw.py` writes docs/pictures/NAME.svg and NAME.zh.svg. A cell is a token; a sign before it says what was
done to it: * masked, ^ a similar word, % moved, ~ drawn and another, = drawn and the same; + is a mark of the corpus,
! an end of a span, @ what is remembered, _ nothing at all.
"""

from __future__ import annotations

import re
import runpy
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from maskery.explain.network import network
from maskery.explain.order import order, order_of
from maskery.model.config import VISIBILITIES
from maskery.model.transformer import Network
from maskery.model.visibility import Causal, dense, view_of_rows
from maskery.picture.svg import Drawing, text_width
from maskery.picture.theme import LIGHT
from maskery.recipes.recipe import Recipe, recipe

PICTURES = Path(__file__).parent / "pictures"
KINDS = {
    "*": "mask",
    "^": "similar",
    "%": "other",
    "+": "ngram",
    "!": "infilled",
    "~": "random",
    "=": "keep",
    "@": "unmatched",
}
MEANINGS = {
    "mask": ("chosen, masked", "选中，换成掩码"),
    "similar": ("chosen, a similar word", "选中，换成相近的词"),
    "other": ("moved", "换了位置"),
    "ngram": ("marked in the corpus", "语料里的标记"),
    "infilled": ("end of the span", "这一段的两端"),
    "random": ("drawn, another token", "抽到别的 token"),
    "keep": ("drawn, the same token", "抽到原来的 token"),
    "unmatched": ("remembered", "记住的"),
}
LABELS = {
    "text, words": "文本与词",
    "read": "读到的",
    "asked": "要答的",
    "asked here": "在本位问",
    "asked of ends": "向两端问",
    "generator reads": "生成器读到的",
    "model reads": "模型读到的",
    "replaced?": "换过吗？",
    "encoder reads": "编码器读到的",
    "decoder reads": "解码器读到的",
    "marks": "标记",
    "1: token": "一：token",
    "2: phrase": "二：短语",
    "3: entity": "三：实体",
}
HIGH, STEP, LEFT = 26, 40, 122


_shown = runpy.run_path(str(Path(__file__).with_name("examples.py")))
Example, EXAMPLES = _shown["Example"], _shown["EXAMPLES"]


def _box(drawing: Drawing, x: float, y: float, width: float, text: str, kind: str | None) -> None:
    ink, back, edge = (kind, f"{kind}-back", kind) if kind else ("ink", "paper", "line")
    frame = {"x": x, "y": y, "width": width, "height": HIGH, "rx": 4, "fill": LIGHT[back], "stroke": LIGHT[edge]}
    drawing.add("rect", frame | {"style": f"fill:var(--mk-{back});stroke:var(--mk-{edge})"})
    place = {"x": x + width / 2, "y": y + 17, "text-anchor": "middle", "font-size": 12, "fill": LIGHT[ink]}
    drawing.add("text", place | {"style": f"fill:var(--mk-{ink})"}, text)


def _parts(cell: str) -> tuple[str, str | None]:
    return (cell[1:], KINDS[cell[0]]) if cell[0] in KINDS and len(cell) > 1 else (cell, None)


def _legend(drawing: Drawing, kinds: list[str], chinese: bool) -> None:
    x = float(LEFT)
    for kind in kinds:
        said = MEANINGS[kind][chinese]
        place = {"x": x, "y": 24, "font-size": 12, "fill": LIGHT[kind], "style": f"fill:var(--mk-{kind})"}
        drawing.add("text", place, said)
        x += text_width(said) + 26


def rows(example: Any, chinese: bool) -> Drawing:
    """Lines of cells below each other; a line under the first holds each word together."""
    cells = {LABELS.get(name, name) if chinese else name: line.split() for name, line in example.lines.items()}
    wide = [max(text_width(_parts(cell)[0]) for cell in column) + 14 for column in zip(*cells.values(), strict=True)]
    starts = [LEFT + sum(wide[:n]) + 6 * n for n in range(len(wide))]
    title = example.title_zh if chinese else example.title
    drawing = Drawing(title, starts[-1] + wide[-1] + 16, 50 + STEP * len(cells))
    kinds = [kind for line in cells.values() for cell in line if (kind := _parts(cell)[1])]
    _legend(drawing, list(dict.fromkeys(kinds)), chinese)
    for row, (name, line) in enumerate(cells.items()):
        y = 40 + STEP * row
        drawing.text(12, y + 17, name, kind="soft")
        for x, width, cell in zip(starts, wide, line, strict=True):
            if cell != "_":
                _box(drawing, x, y, width, *_parts(cell))
    first = 0
    for size in example.words:
        end = first + size - 1
        drawing.line(starts[first] + 2, 40 + HIGH + 5, starts[end] + wide[end] - 2, 40 + HIGH + 5, kind="axis")
        first += size
    return drawing


def phases(title: str, names: list[str]) -> Drawing:
    """How many positions each phase of some recipes reads, as bars to one scale."""
    read = {name: positions_by_length(name) for name in names}
    scale = 520 / max(sum(bars.values()) for bars in read.values())
    drawing = Drawing(title, 820, 50 + STEP * len(names))
    drawing.text(LEFT, 24, title, kind="soft")
    for row, (name, bars) in enumerate(read.items()):
        x, y = float(LEFT), 40 + STEP * row
        drawing.text(12, y + 17, name, kind="soft")
        for length, size in bars.items():
            _box(drawing, x, y, size * scale, "", "ngram" if length == 512 else "similar")
            x += size * scale + 2
        drawing.text(x + 6, y + 17, " + ".join(f"{size:.1f} ({length})" for length, size in bars.items()))
    return drawing


SHARING: dict[str, dict[str, Any]] = {
    "bert": {},
    "attention": {"share": "attention"},
    "feed-forward": {"share": "feedforward"},
    "all": {"share": "all"},
    "128": {"embedding": 128},
    "albert: 128, all": {"embedding": 128, "share": "all"},
}
PARTS = {"embeddings": ("similar", "嵌入"), "layers": ("ngram", "各层"), "pooler": ("other", "pooler")}


def sharing(title: str, chinese: bool) -> Drawing:
    """The parameters of BERT base by part, as bars to one scale: what sharing and a narrow embedding leave of them."""
    drawing = Drawing(title, 820, 74 + STEP * len(SHARING))
    drawing.text(12, 24, title, kind="soft")
    x = float(LEFT)
    for name, (kind, in_chinese) in PARTS.items():
        said = in_chinese if chinese else name
        place = {"x": x, "y": 48, "font-size": 12, "fill": LIGHT[kind], "style": f"fill:var(--mk-{kind})"}
        drawing.add("text", place, said)
        x += text_width(said) + 26
    for row, (name, changes) in enumerate(SHARING.items()):
        x, y = float(LEFT), 64 + STEP * row
        drawing.text(12, y + 17, name, kind="soft")
        sizes = parameters_by_module(changes)
        for part, (kind, _) in PARTS.items():
            _box(drawing, x, y, sizes[part] * 520e-8, "", kind)
            x += sizes[part] * 520e-8 + 2
        drawing.text(x + 6, y + 17, f"{sum(sizes.values()):,}")
    return drawing


def parameters_by_module(changes: dict[str, Any]) -> dict[str, int]:
    with torch.device("meta"):
        network = Network(recipe("bert").model.model_copy(update=changes).shape(30_000), pooler=True)
    return {name: sum(each.numel() for each in part.parameters()) for name, part in network.named_children()}


def distances(title: str, words: str, clip: int) -> Drawing:
    """A row of the table for every pair of slots: the query on the left, the key above, clipped at both ends."""
    cells = words.split()
    wide = max(text_width(cell) for cell in cells) + 14
    drawing = Drawing(title, LEFT + (wide + 6) * len(cells) + 16, 74 + 32 * len(cells))
    drawing.text(12, 24, title, kind="soft")
    for key, word in enumerate(cells):
        drawing.text(LEFT + (wide + 6) * key + wide / 2, 54, word, anchor="middle")
        drawing.text(LEFT - 14, 64 + 32 * key + 17, word, anchor="end")
        for query in range(len(cells)):
            far = max(-clip, min(clip, key - query))
            kind = None if abs(key - query) <= clip else "similar" if far < 0 else "ngram"
            _box(drawing, LEFT + (wide + 6) * key, 64 + 32 * query, wide, f"{far:+d}" if far else "0", kind)
    return drawing


def positions_by_length(name: str) -> dict[int, float]:
    """Row length -> billions of positions."""
    training = recipe(name).training
    if not training.phases:
        return {training.length: training.steps * training.batch * training.length / 1e9}
    return {each.length: each.steps * (each.batch or training.batch) * each.length / 1e9 for each in training.phases}


PARAMETERS = (
    "Parameters of a base model, vocabulary 30,000: what is shared, and an embedding of 128 instead of 768",
    "base 模型的参数，词表 30,000：共享什么；嵌入用 128 而不是 768",
)
DISTANCES = (
    "The distance of every pair, query on the left, key above. Clipped at 3: coloured ones are farther",
    "每一对的距离：左边是查询，上面是键。在 3 处截断，有颜色的其实更远",
)
SENTENCES = ("the dog chased a small cat across the street", "小 狗 追 着 一 只 猫 跑")
MODES = {"full": "双向", "prefix": "源到目标", "causal": "从左到右", "reverse": "从右到左"}
PAIR = (["[CLS]", "a", "b", "c", "[SEP]", "x", "y", "z", "[SEP]"], ["[CLS]", *"你想吃啥", "[SEP]", *"白切鸡", "[SEP]"])
FOUR = (
    "One pair read in four modes: a line for each position, filled where it sees",
    "同一行的四种读法：每行格子是一个位置，涂色的是它能看到的",
)
STREAM = (["the", "cat", "sat", ".", "[SEP]", "a", "dog", "ran"], ["猫", "坐", "着", "。", "[SEP]", "狗", "跑", "了"])
STREAM_MODES = {"causal": "看得见前一篇", "packed_causal": "只看本篇"}
TWO = (
    "One row of a stream, two documents in it: a line for each position, filled where it sees",
    "文本流里的一行，含两篇文档：每行格子是一个位置，涂色的是它能看到的",
)
CELL, MARGIN = 18, 46


def sights(title: str, tokens: list[str], kinds: dict[str, str], chinese: bool) -> Drawing:
    """Who sees whom in one row of two pieces, in several ways: a line for each position that reads."""
    size, source = len(tokens), tokens.index("[SEP]") + 1
    side = size * CELL
    drawing = Drawing(title, max(len(kinds) * (MARGIN + side + 14) + 8, text_width(title) + 24), side + 84)
    drawing.text(8, 18, title, kind="strong")
    document = (torch.arange(size) >= source).long().unsqueeze(0)
    view = view_of_rows(size, {"document": document}, 1, torch.device("cpu"))
    for number, (kind, name) in enumerate(kinds.items()):
        left = MARGIN + number * (MARGIN + side + 14)
        drawing.text(left, 42, f"{kind} {name}" if chinese else kind, kind="strong")
        seen = dense(VISIBILITIES.get(kind)().bind(view), view)[0, 0].tolist()
        for q, line in enumerate(seen):
            drawing.text(left - 4, 62 + q * CELL + 3, tokens[q], anchor="end", kind="soft")
            for k, sees in enumerate(line):
                ink = "accent" if sees else "panel"
                frame = {"x": left + k * CELL, "y": 50 + q * CELL, "width": CELL - 2, "height": CELL - 2}
                drawing.add("rect", frame | {"fill": LIGHT[ink], "style": f"fill:var(--mk-{ink})"})
    return drawing


STREAMS = (("content stream", "query stream"), ("内容流", "查询流"))
ORDER = (
    "The order 3, 2, 4, 1: a line for each position, filled where it sees. Who is asked for a token does not see it",
    "顺序 3、2、4、1：每行格子是一个位置，涂色的是它能看到的。被问到的位置看不到自己的词",
)


def streams(title: str, order: list[int], names: tuple[str, str]) -> Drawing:
    """What both streams see in an order of the slots, which are counted from 1."""
    size = len(order)
    side = size * 2 * CELL
    drawing = Drawing(title, max(2 * (MARGIN + side + 40), text_width(title) + 24), side + 64)
    drawing.text(8, 18, title, kind="strong")
    rank = torch.tensor([[order.index(slot) for slot in range(1, size + 1)]])
    for number, name in enumerate(names):
        view = replace(view_of_rows(size, {"order": rank}, 1, torch.device("cpu")), asks=number == 1)
        left = MARGIN + number * (MARGIN + side + 40)
        drawing.text(left, 42, name, kind="strong")
        for q, line in enumerate(dense(VISIBILITIES.get("permuted")().bind(view), view)[0, 0].tolist()):
            drawing.text(left - 6, 50 + (2 * q + 1) * CELL + 3, f"{q + 1}", anchor="end", kind="soft")
            for k, sees in enumerate(line):
                ink = "accent" if sees else "panel"
                frame = {
                    "x": left + 2 * k * CELL,
                    "y": 50 + 2 * q * CELL,
                    "width": 2 * CELL - 2,
                    "height": 2 * CELL - 2,
                }
                drawing.add("rect", frame | {"fill": LIGHT[ink], "style": f"fill:var(--mk-{ink})"})
    return drawing


READERS = (
    "Five readers of five tokens: a line for each position, filled where it sees; left of the wall, what stands before",
    "五种读者，五个 token：每行格子是一个位置，涂色的是它能看到的；竖线左边是排在前面的内容",
)
FIVE = (["New", "York", "is", "a", "city"], ["我", "爱", "读", "好", "书"])
TURNS = (4, 2, 1, 5, 3)
NAMES = {
    "gpt": ("gpt", "gpt"),
    "transformer-xl": ("transformer-xl: memory", "transformer-xl：记忆"),
    "unilm": ("unilm: source, target", "unilm：源与目标"),
    "content": ("xlnet: content stream", "xlnet：内容流"),
    "query": ("xlnet: query stream", "xlnet：查询流"),
    "bart": ("bart: source and decoder", "bart：源与解码器"),
}


def five(tokens: list[str]) -> dict[str, Tensor]:
    """Who sees whom, (5,M+5), what stands in front first."""
    size = len(tokens)
    document = (torch.arange(size) >= 2).long().unsqueeze(0)
    view = view_of_rows(size, {"document": document}, 1, torch.device("cpu"))
    causal = dense(Causal().bind(view), view)[0, 0]
    content, query, _ = order_of(tokens, TURNS).sights
    return {
        "gpt": causal,
        "transformer-xl": torch.cat((torch.ones(size, 3, dtype=torch.bool), causal), 1),
        "unilm": dense(VISIBILITIES.get("prefix")().bind(view), view)[0, 0],
        "content": content.visible,
        "query": query.visible,
        "bart": torch.cat((torch.ones(size, 4, dtype=torch.bool), causal), 1),
    }


def readers(title: str, tokens: list[str], chinese: bool) -> Drawing:
    """The five beside each other."""
    found, left = five(tokens), 0.0
    margin = max(text_width(token) for token in tokens) + 18
    widths = {name: margin + max(text_width(NAMES[name][chinese]), CELL * m.shape[1] + 8) for name, m in found.items()}
    drawing = Drawing(
        title, max(sum(list(widths.values())[:3]), text_width(title)) + 24, 2 * (len(tokens) * CELL + 52) + 30
    )
    drawing.text(8, 18, title, kind="strong")
    for number, (name, matrix) in enumerate(found.items()):
        x, y = margin + left, 50 + number // 3 * (len(tokens) * CELL + 52)
        left = 0.0 if number % 3 == 2 else left + widths[name]
        drawing.text(x, y - 6, NAMES[name][chinese], kind="strong")
        before = matrix.shape[1] - len(tokens)
        for q, line in enumerate(matrix.tolist()):
            drawing.text(x - 6, y + q * CELL + 13, tokens[q], anchor="end", kind="soft")
            for k, sees in enumerate(line):
                ink = "accent" if sees else "panel"
                frame = {"x": x + k * CELL + 6 * (0 < before <= k), "y": y + q * CELL}
                frame |= {"width": CELL - 2, "height": CELL - 2}
                drawing.add("rect", frame | {"fill": LIGHT[ink], "style": f"fill:var(--mk-{ink})"})
        if before:
            wall = x + before * CELL + 2
            drawing.line(wall, y - 2, wall, y + len(tokens) * CELL, kind="axis")
    return drawing


def of_the_page(name: str) -> Recipe:
    """A recipe that a page shows."""
    text = (PICTURES.parent / "recipes.md").read_text(encoding="utf-8")
    shown = re.search(rf"```toml\n(# {re.escape(name)}\.toml\n.*?)```", text, re.DOTALL)
    assert shown, f"{name} is on no page"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{name}.toml"
        path.write_text(shown[1], encoding="utf-8")
        return recipe(path)


READ = ("Positions read, in billions (row length in brackets)", "读过的位置数，单位十亿（括号内是行长）")


def drawn() -> dict[str, str]:
    """File name -> text."""
    found: dict[str, str] = {}
    for chinese, suffix in ((False, ".svg"), (True, ".zh.svg")):
        found |= {f"{name}{suffix}": rows(both[chinese], chinese).file() for name, both in EXAMPLES.items()}
        bars = phases(READ[chinese], ["bert", "bert-wwm", "bert-wwm-ext", "roberta-wwm-ext"])
        found[f"wwm-phases{suffix}"] = bars.file()
        found[f"unilm{suffix}"] = sights(FOUR[chinese], PAIR[chinese], MODES, chinese).file()
        found[f"gpt2{suffix}"] = sights(TWO[chinese], STREAM[chinese], STREAM_MODES, chinese).file()
        found[f"xlnet{suffix}"] = streams(ORDER[chinese], [3, 2, 4, 1], STREAMS[chinese]).file()
        found[f"order{suffix}"] = readers(READERS[chinese], FIVE[chinese], chinese).file()
        told = order(FIVE[chinese], TURNS, layers=4, lang="zh" if chinese else "en")
        found[f"two-streams{suffix}"] = told.svg or ""
        found[f"nezha{suffix}"] = distances(DISTANCES[chinese], SENTENCES[chinese], 3).file()
        found[f"albert{suffix}"] = sharing(PARAMETERS[chinese], chinese).file()
        networks = {"network-albert": recipe("albert"), "network-electra": recipe("electra")}
        networks["network-modernbert"] = recipe("modernbert")
        networks["five-papers"] = of_the_page("five-papers")
        lang = "zh" if chinese else "en"
        found |= {f"{name}{suffix}": network(made, lang=lang).svg or "" for name, made in networks.items()}
    return {name: f"{text}\n" for name, text in found.items()}


if __name__ == "__main__":
    for name, text in drawn().items():
        (PICTURES / name).write_text(text, encoding="utf-8")
