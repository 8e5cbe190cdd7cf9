"""The tables about memory for the pages: how quick a text is scored with one, and what is learned with one."""

from __future__ import annotations

from typing import Any

Cells = list[list[str]]
FILES = {"xl_evaluation": "xl_evaluation.json", "perplexity": "perplexity.json"}
HEADS = {
    "xl_evaluation": {
        "en": ["length", "with memory, tokens/s", "read anew, tokens/s", "ratio", "Dai et al. 2019"],
        "zh": ["长度", "带记忆 token/秒", "逐个重读 token/秒", "倍数", "Dai et al. 2019"],
    },
    "perplexity": {
        "en": ["text", "model", "parameters", "tokens", "memory when scored", "perplexity a word or bits a character"],
        "zh": ["文本", "模型", "参数", "token", "打分时的记忆", "每词困惑度或每字比特"],
    },
}
UNITS = {"en": {"word": "a word", "character": "bits a character"}, "zh": {"word": "每词", "character": "比特每字"}}


def xl_evaluation(found: dict[str, Any], language: str) -> Cells:
    return [
        [
            f"{each['length']:,}",
            f"{each['memory_per_second']:,.0f}",
            f"{each['anew_per_second']:,.2f}",
            f"**{each['ratio']:,.0f}**",
            "" if each["published"] is None else f"{each['published']:,}",
        ]
        for each in found["points"]
    ]


def perplexity(found: dict[str, Any], language: str) -> Cells:
    cells = []
    for each in found["runs"]:
        unit = UNITS[language]["word" if each["text"] == "wikitext2" else "character"]
        for score in each["scores"]:
            shown = f"{score['value']:.2f}" if each["text"] == "wikitext2" else f"{score['value']:.3f}"
            cells.append(
                [
                    each["text"],
                    each["recipe"],
                    f"{each['parameters']:,}",
                    f"{each['tokens']:,}",
                    f"{score['memory']}",
                    f"{shown} {unit}",
                ]
            )
    return cells


TABLES = {"xl_evaluation": xl_evaluation, "perplexity": perplexity}
