"""The tables of corruption for the pages, in both languages: laws, correctness, speed. `report` puts them there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Cells = list[list[str]]
Test = dict[str, Any]

HEADS = {
    "masking_lengths": {
        "en": ["law", "expected", "drawn, Chinese", "drawn, English", "smallest p", "kept, Chinese", "kept, English"],
        "zh": ["分布", "应有", "抽到（中文）", "抽到（英文）", "最小 p", "保留（中文）", "保留（英文）"],
    },
    "masking_draws": {
        "en": ["what is drawn", "recipe or kind", "expected", "Chinese", "English", "draws", "smallest p"],
        "zh": ["抽什么", "配方或种类", "应有", "中文", "英文", "抽取次数", "最小 p"],
    },
    "masking_correctness": {
        "en": ["text", "what is counted", "other side", "theirs", "ours", "wanted"],
        "zh": ["文本", "数什么", "对方", "对方的结果", "我们的结果", "应有"],
    },
    "corruption_speed": {
        "en": ["recipe", "corruption, rows/s", "x training", "whole batch, rows/s", "x training"],
        "zh": ["配方", "只做破坏 行/秒", "是训练的几倍", "做成整批 行/秒", "是训练的几倍"],
    },
    "collators": {
        "en": ["same rows, same recipe", "ours, rows/s", "theirs, rows/s", "ratio"],
        "zh": ["相同的行、相同的设置", "我们 行/秒", "对方 行/秒", "比值"],
    },
}

CASES: dict[str, dict[str, str]] = {
    "all_or_nothing": {
        "en": "rows that are hidden whole or not at all",
        "zh": "整行全部掩盖或完全不遮的行",
    },
    "name_split": {
        "en": "of the rows that hide a part of 周杰伦, those that leave the rest to be seen (plain collator)",
        "zh": "掩盖了“周杰伦”一部分的行里，其余字仍露在外面的（普通 collator）",
    },
    "comma": {
        "en": "of the rows that hide `Hello`, those that hide the comma behind it too",
        "zh": "掩盖 `Hello` 的行里，连后面的逗号也掩盖的",
    },
    "mixed": {
        "en": "of the rows that hide `Google`, those that hide 他 too",
        "zh": "掩盖 `Google` 的行里，连“他”也掩盖的",
    },
    "behind_unknown": {
        "en": "a character is unknown; of the rows that hide 住, those that hide 旁边 too",
        "zh": "文中有一个未登录字；掩盖“住”的行里，连“旁边”也掩盖的",
    },
    "forced_masks": {
        "en": "hidden tokens that became [MASK] / random / kept, % (80 / 10 / 10 asked for)",
        "zh": "被选中的 token 变成 [MASK] / 随机 / 不变的百分比（要求 80 / 10 / 10）",
    },
    "second_entry": {
        "en": "whole words with 80 / 10 / 10",
        "zh": "全词掩盖配 80 / 10 / 10",
    },
    "uneven_rows": {
        "en": "whole words, two rows of different lengths in one batch",
        "zh": "全词掩盖，一批里两行长度不同",
    },
    "square_memory": {
        "en": "bytes at the peak for each slot, whole words (rows x slots)",
        "zh": "全词掩盖时每个位置的峰值字节数（行 x 位置）",
    },
    "sentence_order": {"en": "rows for the question of sentence order", "zh": "为句序任务造行"},
    "glued": {
        "en": "tokens that are still there, in order, when words have been found",
        "zh": "找词之后仍在、顺序不变的 token",
    },
    "lost_unknown": {
        "en": "the same, with an unknown character in the text",
        "zh": "同上，文中有一个未登录字",
    },
    "torn_separator": {
        "en": "the same, with a [SEP] between two segments",
        "zh": "同上，两段之间有 [SEP]",
    },
    "capped": {
        "en": "mean of geometric spans, and the share of the longest",
        "zh": "几何分布片段的平均长度，以及最长片段的占比",
    },
    "swap_called_next": {
        "en": "rows labelled as no next sentence whose second segment is from another document",
        "zh": "标为“不是下一句”的行里，第二段确实来自别的文档的",
    },
    "infilled": {
        "en": "words behind one [MASK] by Poisson 3: mean, and the share of none",
        "zh": "泊松 3 填充时一个 [MASK] 背后的词数：平均值，以及为零的占比",
    },
    "one_order": {
        "en": "different orders of three sentences in 100 epochs",
        "zh": "三个句子在 100 轮里出现的不同顺序数",
    },
}
SIDES = {"measured": {"en": "{}", "zh": "{}"}, "described": {"en": "{}, as described", "zh": "{}，按描述重写"}}
ANSWERS = {
    "en": {"runs": "runs", "fails": "fails", "gone": "gone"},
    "zh": {"runs": "可以", "fails": "报错", "gone": "已删除"},
}


def masking_correctness(found: dict[str, Any], language: str) -> Cells:
    return [
        [
            line["text"].replace("|", "\\|"),
            CASES[line["case"]][language],
            SIDES[line["side"]][language].format(line["who"]),
            _answer(line["theirs"], line["theirs_right"], language),
            _answer(line["ours"], line["ours_right"], language),
            ANSWERS[language].get(line["wanted"], line["wanted"]),
        ]
        for line in found["lines"]
    ]


def _answer(value: str, right: bool, language: str) -> str:
    return f"{ANSWERS[language].get(value, value)} {'✓' if right else '✗'}"


KINDS = {
    "replacements": {"en": "mask / random / keep / similar", "zh": "掩盖 / 随机 / 不变 / 近义"},
    "random ids": {"en": "random tokens, in 64 parts", "zh": "随机 token，分 64 份"},
    "orders": {"en": "orders of three shuffled tokens", "zh": "三个打乱的 token 的顺序"},
    "labels": {"en": "labels of segments", "zh": "段落标签"},
}
MANY = 12
"""More shares than this are not listed."""


def masking_lengths(found: dict[str, Any], language: str) -> Cells:
    cells = []
    for law, tests in _by_law(found, ("lengths",)).items():
        first = 0 if tests[0]["expected"][0] > 0 else 1
        drawn = [_listed(_pooled(tests, each, "counts"), first) for each in ("zh", "en")]
        kept = [_listed(_pooled(tests, each, "kept"), 1) for each in ("zh", "en")]
        expected = _listed(np.array(tests[0]["expected"]), first)
        cells.append([law[1], expected, *drawn, _smallest(tests), *kept])
    return cells


def masking_draws(found: dict[str, Any], language: str) -> Cells:
    cells = []
    for (kind, law), tests in _by_law(found, KINDS).items():
        many = len(tests[0]["expected"]) > MANY
        seen = ["" if many else _listed(_pooled(tests, each, "counts")) for each in ("zh", "en")]
        expected = "" if many else _listed(np.array(tests[0]["expected"]))
        total = f"{sum(test['draws'] for test in tests):,}"
        cells.append([KINDS[kind][language], law, expected, *seen, total, _smallest(tests)])
    return cells


def _by_law(found: dict[str, Any], kinds: Any) -> dict[tuple[str, str], list[Test]]:
    groups: dict[tuple[str, str], list[Test]] = {}
    for test in found["tests"]:
        if test["kind"] in kinds:
            groups.setdefault((test["kind"], test["law"]), []).append(test)
    return groups


def _pooled(tests: list[Test], language: str, name: str) -> Any:
    """Counts of all seeds together."""
    mine = [test for test in tests if test["language"] == language]
    return np.sum([test[name] if name in test else test["beside"][name] for test in mine], axis=0)


def _listed(counts: Any, first: int = 0) -> str:
    """Shares without the leading zero: .224 .179 ..."""
    return " ".join(f"{share:.3f}".replace("0.", ".", 1) for share in counts[first:] / counts.sum())


def _smallest(tests: list[Test]) -> str:
    return f"{min(test['p'] for test in tests):.2g}"


def corruption_speed(found: dict[str, Any], language: str) -> Cells:
    step = found["training_rows_per_second"]
    return [
        [
            row["recipe"],
            f"{row['corruption']:,.0f}",
            f"**{row['corruption'] / step:,.0f}**",
            f"{row['batch']:,.0f}",
            f"{row['batch'] / step:,.0f}",
        ]
        for row in found["rows"]
    ]


COMPARED = {
    "whole_words": {"en": "whole words, `bert-wwm`", "zh": "全词，`bert-wwm`"},
    "whole_words_masking": {"en": "whole words, masking alone", "zh": "全词，只做掩盖"},
    "whole_words_batch": {"en": "whole words, to the finished batch", "zh": "全词，直到整批完成"},
    "tokens": {"en": "single tokens, `roberta`", "zh": "单个 token，`roberta`"},
    "tokens_masking": {"en": "single tokens, masking alone", "zh": "单个 token，只做掩盖"},
    "tokens_batch": {"en": "single tokens, to the finished batch", "zh": "单个 token，直到整批完成"},
}


def collators(found: dict[str, Any], language: str) -> Cells:
    return [
        [
            COMPARED[row["what"]][language],
            f"{row['ours']:,.0f}",
            f"{row['theirs']:,.0f}",
            f"**{row['ours'] / row['theirs']:.1f}**",
        ]
        for row in found["against"]
    ]


TABLES: dict[str, Callable[[dict[str, Any], str], Cells]] = {
    "masking_lengths": masking_lengths,
    "masking_draws": masking_draws,
    "masking_correctness": masking_correctness,
    "corruption_speed": corruption_speed,
    "collators": collators,
}
"""Their cells hold words, so they are told the language."""
FILES = {
    "masking_lengths": "masking_laws.json",
    "masking_draws": "masking_laws.json",
    "masking_correctness": "masking_correctness.json",
    "corruption_speed": "corruption_speed.json",
    "collators": "corruption_speed.json",
}
