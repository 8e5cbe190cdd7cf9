"""The table of what the cache saves when text is written; it holds no words but the names of recipes."""

from __future__ import annotations

from typing import Any

Cells = list[list[str]]
FILES = {"generate": "generate.json"}
HEADS = {
    "generate": {
        "en": ["recipe", "size", "prompts", "with the cache, s", "read anew, s", "ratio", "tokens/s", "same texts"],
        "zh": ["配方", "规模", "提示数", "用缓存 秒", "每步重读 秒", "倍数", "token/秒", "相同的文本"],
    }
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


TABLES = {"generate": generate}
