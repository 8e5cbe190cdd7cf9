"""The pictures of the recipe pages: what a row is before and after corruption, drawn from a few words a line.

`python docs/draw.py` writes docs/pictures/NAME.svg and NAME.zh.svg. A cell is a token; a sign before it says what was
done to it: * masked, ^ a similar word, % moved, ~ drawn and another, = drawn and the same; + is a mark of the corpus,
! an end of a span, _ nothing at all.
"""

from __future__ import annotations

import re
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from maskery.explain.network import network
from maskery.model.config import VISIBILITIES
from maskery.model.transformer import Network
from maskery.model.visibility import dense, view_of_rows
from maskery.picture.svg import Drawing, text_width
from maskery.picture.theme import LIGHT
from maskery.recipes.recipe import Recipe, recipe

PICTURES = Path(__file__).parent / "pictures"
KINDS = {"*": "mask", "^": "similar", "%": "other", "+": "ngram", "!": "infilled", "~": "random", "=": "keep"}
MEANINGS = {
    "mask": ("chosen, masked", "选中，换成掩码"),
    "similar": ("chosen, a similar word", "选中，换成相近的词"),
    "other": ("moved", "换了位置"),
    "ngram": ("marked in the corpus", "语料里的标记"),
    "infilled": ("end of the span", "这一段的两端"),
    "random": ("drawn, another token", "抽到别的 token"),
    "keep": ("drawn, the same token", "抽到原来的 token"),
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
    "marks": "标记",
    "1: token": "一：token",
    "2: phrase": "二：短语",
    "3: entity": "三：实体",
}
HIGH, STEP, LEFT = 26, 40, 122


@dataclass(frozen=True, kw_only=True)
class Example:
    title: str
    title_zh: str
    words: list[int]
    """Tokens of each word of the first line."""
    lines: dict[str, str]
    """What stands before a line, and its cells."""


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


def rows(example: Example, chinese: bool) -> Drawing:
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


WWM = Example(
    title="One sentence under both masks: a word is hidden whole or not at all",
    title_zh="同一句话，两种掩码：一个词要么整个藏住，要么不藏",
    words=[3, 1, 2, 2, 3],
    lines={
        "text, words": "周 杰 伦 在 台 北 举 办 演 唱 会",
        "bert": "周 *[MASK] 伦 在 台 北 举 *[MASK] 演 唱 会",
        "bert-wwm": "*[MASK] *[MASK] *[MASK] 在 台 北 举 办 演 唱 会",
    },
)
SPANBERT = Example(
    title="A span of words is hidden whole; the states at its two ends are asked for every token of it",
    title_zh="一段词整段藏住；它两端的状态要说出其中的每个 token",
    words=[1] * 11,
    lines={
        "text, words": "the team won an american football game in denver last night",
        "read": "the team won *[MASK] *[MASK] *[MASK] *[MASK] in denver last night",
        "asked here": "_ _ _ *an *american *football *game _ _ _ _",
        "asked of ends": "_ _ !won 1 2 3 4 !in _ _ _",
    },
)
SPANBERT_ZH = replace(
    SPANBERT,
    words=[2, 2, 1, 2, 1, 1, 2, 2, 2, 1],
    lines={
        "text, words": "球 队 昨 晚 在 丹 佛 赢 了 一 场 美 式 足 球 赛",
        "read": "球 队 昨 晚 在 *[M] *[M] *[M] *[M] 一 场 美 式 足 球 赛",
        "asked here": "_ _ _ _ _ *丹 *佛 *赢 *了 _ _ _ _ _ _ _",
        "asked of ends": "_ _ _ _ !在 1 2 3 4 !一 _ _ _ _ _ _",
    },
)
ERNIE = Example(
    title="Three stages: a character, a phrase, an entity is hidden whole",
    title_zh="三个阶段：依次整个藏住一个字、一个短语、一个实体",
    words=[2, 2, 1, 2, 1, 1, 2, 1, 2, 2],
    lines={
        "text, words": "李 白 出 生 于 碎 叶 城 是 唐 代 的 著 名 诗 人",
        "marks": "+李 +白 _ _ _ +碎 +叶 +城 _ +唐 +代 _ +著 +名 +诗 +人",
        "1: token": "李 *[M] 出 生 于 碎 叶 城 是 *[M] 代 的 著 名 诗 人",
        "2: phrase": "李 白 出 生 于 碎 叶 城 是 唐 代 的 *[M] *[M] *[M] *[M]",
        "3: entity": "李 白 出 生 于 *[M] *[M] *[M] 是 唐 代 的 著 名 诗 人",
    },
)
MACBERT = Example(
    title="No mask is ever read: words are replaced by similar ones of the same length",
    title_zh="从不出现掩码：用同样长的相近词来替换",
    words=[1, 2, 1, 3, 2, 2, 1, 2],
    lines={
        "text, words": "他 喜 欢 在 图 书 馆 阅 读 小 说 和 写 信",
        "bert-wwm": "他 喜 欢 在 *[M] *[M] *[M] 阅 读 小 说 和 写 信",
        "macbert": "他 喜 欢 在 图 书 馆 ^浏 ^览 ^故 ^事 和 写 信",
        "asked": "_ _ _ _ _ _ _ ^阅 ^读 ^小 ^说 _ _ _",
    },
)
STRUCTBERT = Example(
    title="Besides masked tokens: three neighbours in another order; at each place, who stood here?",
    title_zh="掩码之外：相邻三个 token 换了次序，逐位问原来是谁",
    words=[1] * 10,
    lines={
        "text, words": "the dog chased a small cat across the wet street",
        "read": "the *[MASK] chased a %cat %across %small the wet street",
        "asked": "_ *dog _ _ %small %cat %across _ _ _",
    },
)
STRUCTBERT_ZH = replace(
    STRUCTBERT,
    words=[2, 2, 2, 1, 1, 1, 3, 1, 2],
    lines={
        "text, words": "小 狗 追 着 一 只 猫 跑 过 湿 漉 漉 的 街 道",
        "read": "小 *[M] 追 着 一 %猫 %跑 %只 过 湿 漉 漉 的 街 道",
        "asked": "_ *狗 _ _ _ %只 %猫 %跑 _ _ _ _ _ _ _",
    },
)
ELECTRA = Example(
    title="A generator fills the masks; the model tells for every token whether it was replaced",
    title_zh="生成器填上掩码；模型判断每个 token 是否被换过",
    words=[1] * 9,
    lines={
        "text, words": "the chef cooked the meal for ten hungry guests",
        "generator reads": "the chef *[MASK] the *[MASK] for ten hungry *[MASK]",
        "model reads": "the chef ~ate the =meal for ten hungry ~people",
        "replaced?": "no no ~yes no =no no no no ~yes",
    },
)
ELECTRA_ZH = replace(
    ELECTRA,
    words=[2, 1, 2, 2, 1, 2, 1, 2],
    lines={
        "text, words": "厨 师 给 客 人 准 备 了 可 口 的 晚 饭",
        "generator reads": "厨 师 给 *[M] 人 准 备 了 可 口 的 *[M] *[M]",
        "model reads": "厨 师 给 ~女 人 准 备 了 可 口 的 =晚 ~餐",
        "replaced?": "否 否 否 ~是 否 否 否 否 否 否 否 =否 ~是",
    },
)
EXAMPLES = {
    "bert-wwm": (WWM, WWM),
    "spanbert": (SPANBERT, SPANBERT_ZH),
    "ernie": (ERNIE, ERNIE),
    "macbert": (MACBERT, MACBERT),
    "structbert": (STRUCTBERT, STRUCTBERT_ZH),
    "electra": (ELECTRA, ELECTRA_ZH),
}
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
CELL, MARGIN = 18, 46


def modes(chinese: bool) -> Drawing:
    """Who sees whom in one pair, in each mode: a line for each position that reads."""
    tokens = PAIR[chinese]
    size, source = len(tokens), tokens.index("[SEP]") + 1
    side = size * CELL
    title = FOUR[chinese]
    drawing = Drawing(title, 4 * (MARGIN + side + 14) + 8, side + 84)
    drawing.text(8, 18, title, kind="strong")
    document = (torch.arange(size) >= source).long().unsqueeze(0)
    view = view_of_rows(size, {"document": document}, 1, torch.device("cpu"))
    for number, (kind, name) in enumerate(MODES.items()):
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
        found[f"unilm{suffix}"] = modes(chinese).file()
        found[f"nezha{suffix}"] = distances(DISTANCES[chinese], SENTENCES[chinese], 3).file()
        found[f"albert{suffix}"] = sharing(PARAMETERS[chinese], chinese).file()
        networks = {"network-albert": recipe("albert"), "network-electra": recipe("electra")}
        networks["five-papers"] = of_the_page("five-papers")
        lang = "zh" if chinese else "en"
        found |= {f"{name}{suffix}": network(made, lang=lang).svg or "" for name, made in networks.items()}
    return {name: f"{text}\n" for name, text in found.items()}


if __name__ == "__main__":
    for name, text in drawn().items():
        (PICTURES / name).write_text(text, encoding="utf-8")
