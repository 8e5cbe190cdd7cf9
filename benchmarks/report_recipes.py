"""The tables of `benchmarks.recipes` for the pages; they hold no words, so one form does for both languages."""

from __future__ import annotations

from typing import Any

from maskery.compare.variants import PUBLISHED

Cells = list[list[str]]
QUESTIONS = ("next_sentence", "sentence_order")
NAMES = ("none", "next", "order", "three")
"""Those of the preset that differ in the question alone."""
FRESH = "†"

HEADS = {
    "recipes": {
        "en": ["recipe", "rows a step", "steps", "tokens", "accuracy %", "to bert", "loss", "own masks %"],
        "zh": ["配方", "每步行数", "步数", "token", "准确率 %", "与 bert 之差", "损失", "自己的掩码 %"],
    },
    "questions": {
        "en": ["trained with", "masked %", "next sentence %", "sentence order %", "Lan et al. 2019"],
        "zh": ["训练时的问题", "掩码 %", "下一句 %", "句序 %", "Lan et al. 2019"],
    },
    "recipe_questions": {
        "en": ["recipe", "next sentence %", "sentence order %"],
        "zh": ["配方", "下一句 %", "句序 %"],
    },
}


def recipes(found: dict[str, Any]) -> Cells:
    cells = []
    for each in found["variants"]:
        masked = each["masked"]
        if each["label"] in NAMES or masked is None:
            continue
        first = each is found["variants"][0]
        cells.append(
            [
                each["label"] + (f" = {each['same_as']}" if each["same_as"] else ""),
                f"{each['batch']}",
                f"{each['steps']:,}",
                f"{each['runs'][0]['tokens']:,}",
                share(masked),
                "" if first else difference(masked),
                f"{masked['loss']:.3f}",
                "" if each["own_accuracy"] is None else f"{100 * each['own_accuracy']:.2f}",
            ]
        )
    return cells


def questions(found: dict[str, Any]) -> Cells:
    cells = []
    for each in found["variants"]:
        if each["label"] not in NAMES:
            continue
        published = PUBLISHED.get(tuple(each["trained_with"]))
        beside = "" if published is None else " / ".join(f"{published[name]:.1f}" for name in QUESTIONS)
        asked = [_asked(each, question) for question in QUESTIONS]
        cells.append([each["label"], "" if each["masked"] is None else share(each["masked"]), *asked, beside])
    return cells


def recipe_questions(found: dict[str, Any]) -> Cells:
    return [
        [each["label"], *(_asked(each, question) for question in QUESTIONS)]
        for each in found["variants"]
        if each["label"] not in NAMES
    ]


def _asked(each: dict[str, Any], question: str) -> str:
    asked = each["questions"].get(question)
    return "" if asked is None else share(asked) + FRESH * (asked["head"] == "fresh")


def share(asked: dict[str, Any]) -> str:
    low, high = asked["interval"]
    return f"{100 * asked['accuracy']:.2f} [{100 * low:.2f}, {100 * high:.2f}]"


def difference(asked: dict[str, Any]) -> str:
    low, high = asked["difference_interval"]
    return f"{100 * asked['difference']:+.2f} [{100 * low:+.2f}, {100 * high:+.2f}]"
