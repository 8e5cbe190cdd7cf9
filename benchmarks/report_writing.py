"""The tables about text that is written: what the cache saves, what the Transformer makes of syllables, and BART of
blanks."""

from __future__ import annotations

from typing import Any

Cells = list[list[str]]
FILES = {"generate": "generate.json", "pinyin": "pinyin.json", "blanks": "blanks.json", "blanks_shown": "blanks.json"}
HEADS = {
    "generate": {
        "en": ["recipe", "size", "prompts", "with the cache, s", "read anew, s", "ratio", "tokens/s", "same texts"],
        "zh": ["配方", "规模", "提示数", "用缓存 秒", "每步重读 秒", "倍数", "token/秒", "相同的文本"],
    },
    "pinyin": {
        "en": ["", "characters right %", "whole texts right %"],
        "zh": ["", "正确的字 %", "完全正确的文本 %"],
    },
    "blanks": {"en": ["", "like the original %"], "zh": ["", "与原文相同 %"]},
    "blanks_shown": {"en": ["it read", "it wrote", "the original"], "zh": ["读到的", "写出的", "原文"]},
}
WHO = {
    "en": {"transformer": "transformer", "most_frequent": "the commonest character of each syllable"},
    "zh": {"transformer": "transformer", "most_frequent": "每个音节最常见的字"},
}


def generate(found: dict[str, Any], language: str) -> Cells:
    return [
        [
            each["recipe"],
            each["size"],
            f"{each['rows']}",
            f"{each['cached_seconds']:.2f}",
            f"{each['anew_seconds']:.2f}",
            f"**{each['ratio']:.1f}**",
            f"{each['tokens_per_second']:,.0f}",
            f"{each['same_texts']} / {each['rows']}",
        ]
        for each in found["cases"]
    ]


def pinyin(found: dict[str, Any], language: str) -> Cells:
    cells = []
    for side, name in WHO[language].items():
        low, high = found[side]["interval"]
        right = f"{100 * found[side]['characters']:.2f} [{100 * low:.2f}, {100 * high:.2f}]"
        cells.append([name, right, f"{100 * found[side]['texts']:.2f}"])
    return cells


SIDES = {
    "en": {"written": "as it was written", "copied": "the text with the blanks left out"},
    "zh": {"written": "写出来的", "copied": "去掉空白的原文"},
}


def blanks(found: dict[str, Any], language: str) -> Cells:
    cells = []
    for side, name in SIDES[language].items():
        low, high = found[side]["interval"]
        cells.append([name, f"{100 * found[side]['mean']:.1f} [{100 * low:.1f}, {100 * high:.1f}]"])
    return cells


def blanks_shown(found: dict[str, Any], language: str) -> Cells:
    return [[each[key].replace("|", "\\|") for key in ("read", "written", "original")] for each in found["shown"]]


TABLES = {"generate": generate, "pinyin": pinyin, "blanks": blanks, "blanks_shown": blanks_shown}
