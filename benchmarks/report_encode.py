"""The tables about how quick vectors are made, and what they say in sentences: reckoned, whatever the numbers are."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

Cells = list[list[str]]
Found = Mapping[str, Any]
FILE = "encode.json"
THEIRS = "sentence-transformers"
PARTS = {"encode": "speed", "encode_short": "speed", "encode_growth": "growth", "encode_said": "speed"}
"""Which part of the result file a table cannot do without."""
HEADS = {
    "encode": {
        "en": [
            "",
            "texts/s",
            "to its default",
            "to its best",
            "cosine, mean",
            "least",
            "Spearman",
            "points",
            "first, s",
        ],
        "zh": [
            "",
            "文本/秒",
            "对默认的倍数",
            "对最快的倍数",
            "平均余弦",
            "最小余弦",
            "Spearman",
            "百分点之差",
            "首个 秒",
        ],
    },
    "encode_short": {
        "en": ["arithmetic", "times as quick as sentence-transformers", "cosine with its vectors, least", "points"],
        "zh": ["运算", "对 sentence-transformers 的倍数", "与它的向量的最小余弦", "百分点之差"],
    },
    "encode_growth": {
        "en": ["texts", "seconds", "a thousand, to the first", "peak, MiB", "peak, to the first"],
        "zh": ["文本数", "秒", "每千条 / 第一行", "峰值 MiB", "峰值 / 第一行"],
    },
}
OURS = ("plain", "float32", "int8")
GOALS = {"float32": (1.8, 2.2), "int8": (2.5, 3.2)}
"""Times as quick as the other side's default: what is asked for, and what is hoped for."""
LOST = 0.5
"""Points of Spearman that int8 may cost."""
SAYS = {
    "en": {
        "gap": " ",
        "read": "{texts} texts, {tokens} tokens; both sides read the same ids, text by text; {cut} texts are cut.",
        "batch": "The quickest batch of the other side is {batch}.",
        "asked": "{name}: {ratio} times its default, {best} times its best; asked for are {least}, hoped for {most}: "
        "{reached}.",
        "most": "both are reached",
        "least": "the first is reached",
        "none": "neither is reached",
        "lost": "int8 differs by {points} points of Spearman on {n} pairs; {lost} may be lost: {kept}.",
        "kept": "it holds",
        "broken": "it does not hold",
        "first": "A fresh process has its first vector after {ours} s, that of the other side after {theirs} s.",
        "growth": "From {few} to {many} texts time grows with the power {power} of their number; the highest peak of "
        "memory is {peak} times the first.",
        "reason": "{name} was not to be had: {reason}.",
    },
    "zh": {
        "gap": "",
        "read": "{texts} 条文本，{tokens} 个 token；两边读到的 id 逐条相同；截短的文本有 {cut} 条。",
        "batch": "对手最快的批大小是 {batch}。",
        "asked": "{name}：是它默认设置的 {ratio} 倍，最快设置的 {best} 倍；要求 {least}，希望 {most}：{reached}。",
        "most": "两者都达到",
        "least": "达到了前者",
        "none": "都没有达到",
        "lost": "int8 的 Spearman 在 {n} 对上相差 {points} 个百分点，允许损失 {lost}：{kept}。",
        "kept": "做到了",
        "broken": "没有做到",
        "first": "新进程 {ours} 秒之后得到第一个向量，对手是 {theirs} 秒。",
        "growth": "从 {few} 到 {many} 条文本，时间按条数的 {power} 次方增长，最高的内存峰值是第一行的 {peak} 倍。",
        "reason": "{name} 用不了：{reason}。",
    },
}


def found(results: Path) -> dict[str, dict[str, Any]]:
    """By table; those of parts that were not measured are left out."""
    path = results / FILE
    if not path.is_file():
        return {}
    whole = json.loads(path.read_text(encoding="utf-8"))
    return {name: whole for name, part in PARTS.items() if part in whole}


def encode(found: Found, language: str) -> Cells:
    return [
        [
            name,
            f"{side['texts_per_second']:,.0f}",
            f"**{side['ratio']:.2f}**",
            f"{side['ratio_to_best']:.2f}",
            *_cosines(side),
            *_judged(found, name),
            _first(found, name),
        ]
        for name, side in found["speed"]["sides"].items()
    ]


def encode_short(found: Found, language: str) -> Cells:
    sides = found["speed"]["sides"]
    return [
        [name, f"**{sides[name]['ratio']:.2f}**", _cosines(sides[name])[1], _judged(found, name)[1]]
        for name in OURS
        if name in sides
    ]


def encode_growth(found: Found, language: str) -> Cells:
    return [
        [
            f"{point['texts']:,}",
            f"{point['seconds']:.1f}",
            f"{point['of_first']:.2f}",
            f"{point['peak_bytes'] / 2**20:,.0f}",
            f"{point['peak_of_first']:.2f}",
        ]
        for point in found["growth"]["points"]
    ]


def _cosines(side: Found) -> list[str]:
    return [f"{side['cosine']:.6f}", f"{side['least']:.6f}"]


def _judged(found: Found, name: str) -> list[str]:
    """Spearman and the difference in points; nothing where quality was not measured."""
    side = found.get("quality", {}).get("sides", {}).get(name)
    return ["", ""] if side is None else [f"{side['spearman']:.4f}", f"{side['points']:+.2f}"]


def _first(found: Found, name: str) -> str:
    side = found.get("first", {}).get("sides", {}).get(name)
    return "" if side is None else f"{side['best']:.2f}"


def encode_said(found: Found, language: str) -> str:
    words, speed = SAYS[language], found["speed"]
    assert speed["same_tokens"]
    said = [words["read"].format(**{key: f"{speed[key]:,}" for key in ("texts", "tokens", "cut")})]
    said.append(words["batch"].format(batch=speed["best_batch"]))
    said += [_goal(speed["sides"][name], name, language) for name in GOALS if name in speed["sides"]]
    judged = found.get("quality", {})
    if "int8" in judged.get("sides", {}):
        points = judged["sides"]["int8"]["points"]
        kept = words["kept" if points >= -LOST else "broken"]
        said.append(words["lost"].format(points=f"{points:+.2f}", n=f"{judged['n']:,}", lost=LOST, kept=kept))
    if "first" in found:
        said.append(words["first"].format(ours=_first(found, "float32"), theirs=_first(found, THEIRS)))
    if len(found.get("growth", {}).get("points", ())) > 1:
        said.append(_grown(found["growth"], words))
    said += [words["reason"].format(name=name, reason=reason) for name, reason in speed["reasons"].items()]
    return words["gap"].join(said)


def _goal(side: Found, name: str, language: str) -> str:
    words, (least, most) = SAYS[language], GOALS[name]
    reached = "most" if side["ratio"] >= most else "least" if side["ratio"] >= least else "none"
    numbers = {"ratio": f"{side['ratio']:.2f}", "best": f"{side['ratio_to_best']:.2f}", "least": least, "most": most}
    return words["asked"].format(name=name, reached=words[reached], **numbers)


def _grown(growth: Found, words: Mapping[str, str]) -> str:
    points = growth["points"]
    ends = {"few": f"{points[0]['texts']:,}", "many": f"{points[-1]['texts']:,}"}
    highest = max(point["peak_of_first"] for point in points)
    return words["growth"].format(power=f"{growth['exponent']:.2f}", peak=f"{highest:.2f}", **ends)


TABLES: dict[str, Callable[[Found, str], Cells]] = {
    "encode": encode,
    "encode_short": encode_short,
    "encode_growth": encode_growth,
}
SAID: dict[str, Callable[[dict[str, Any], str], str]] = {"encode_said": encode_said}
"""Sentences instead of a table."""
