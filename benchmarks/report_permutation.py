"""The table of what is wrong with a collator, and right with ours, when targets are asked in an order."""

from __future__ import annotations

from typing import Any

Cells = list[list[str]]
FILES = {"permutation_correctness": "permutation_correctness.json"}
HEADS = {
    "permutation_correctness": {
        "en": ["what is counted", "transformers' collator", "ours", "as it should be"],
        "zh": ["数的是什么", "transformers 的 collator", "我们", "应当是"],
    }
}
CASES = {
    "earlier": {
        "en": "pairs of targets in which the later one's prediction moves when the earlier one's true token changes",
        "zh": "改动顺序在前的目标的真实 token，后面目标的预测随之变化的（目标对占比）",
    },
    "later": {
        "en": "the same, the later one's token changed and the earlier one's prediction watched",
        "zh": "改动顺序在后的，前面目标的预测随之变化的",
    },
    "itself": {"en": "predictions that move with their own token", "zh": "预测随自己的 token 变化的"},
    "kept": {
        "en": "targets whose true token stands in the stream that others read",
        "zh": "真实 token 留在内容流里的目标",
    },
    "split": {"en": "words with a target that are asked for in part only", "zh": "含目标的词里，只问了一部分的"},
    "spans": {
        "en": "mean length of a span, p ~ 1/n for 1 to 5 words (theirs counts pieces)",
        "zh": "片段的平均长度，1 到 5 个词，p ~ 1/n（对方按 token 数）",
    },
    "second": {"en": "slots of the query stream for each target", "zh": "每个目标占查询流的位置数"},
    "beside": {
        "en": "how far a row's states move when a longer row stands beside it",
        "zh": "旁边有更长的行时，一行的状态移动了多少",
    },
    "odd": {"en": "rows of 63 tokens", "zh": "63 个 token 的行"},
}
ANSWERS = {"en": {}, "zh": {"runs": "可以", "fails": "报错"}}


def permutation_correctness(found: dict[str, Any], language: str) -> Cells:
    def told(value: str) -> str:
        return ANSWERS[language].get(value, value)

    return [
        [
            CASES[line["case"]][language],
            f"{told(line['theirs'])} {'✓' if line['theirs_right'] else '✗'}",
            f"{told(line['ours'])} {'✓' if line['ours_right'] else '✗'}",
            told(line["wanted"]),
        ]
        for line in found["lines"]
    ]


TABLES = {"permutation_correctness": permutation_correctness}
