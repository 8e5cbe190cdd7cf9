"""The tables about fine-tuning for the pages, and what they say in a sentence: reckoned, so that nobody flatters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

Cells = list[list[str]]
POINTS, SHARE = -1.0, 0.6
"""What is aimed at: at most a point worse, at most so much of the other's time."""
FILES = {
    "finetune": "finetune_english.json",
    "finetune_said": "finetune_english.json",
    "finetune_chinese": "finetune_chinese.json",
    "finetune_chinese_said": "finetune_chinese.json",
}
HEADS = {
    "finetune": {
        "en": [
            "task",
            "rows",
            "metric",
            "ours",
            "Trainer",
            "difference",
            "ours, s",
            "Trainer, s",
            "time",
            "training alone",
            "to like lengths",
        ],
        "zh": [
            "任务",
            "行数",
            "指标",
            "我们",
            "Trainer",
            "差",
            "我们 秒",
            "Trainer 秒",
            "时间比",
            "只算训练",
            "对相近长度",
        ],
    },
    "finetune_chinese": {
        "en": ["task", "examples", "metric", "pretrained", "untrained", "TF-IDF", "to untrained", "to TF-IDF"],
        "zh": ["任务", "样本数", "指标", "预训练", "未训练", "TF-IDF", "与未训练之差", "与 TF-IDF 之差"],
    },
}
METRICS = {
    "en": {"accuracy": "accuracy", "f1": "F1", "mcc": "MCC", "spearman": "Spearman", "span_f1": "span F1", "em": "EM"},
    "zh": {"accuracy": "准确率", "f1": "F1", "mcc": "MCC", "spearman": "Spearman", "span_f1": "片段 F1", "em": "EM"},
}


def finetune(found: dict[str, Any], language: str) -> Cells:
    return [_english(row, metric, language) for row in found["tasks"] for metric in row["metrics"]]


def _english(row: dict[str, Any], metric: str, language: str) -> list[str]:
    sides = [[100 * each[side]["metrics"][metric] for each in row["seeds"]] for side in ("ours", "trainer")]
    differences = [one - other for one, other in zip(*sides, strict=True)]
    head = [row["task"], f"{row['rows'][0]:,} / {row['rows'][1]:,}", METRICS[language][metric]]
    cells = [*head, *(each_seed(each) for each in sides), each_seed(differences, "+")]
    if metric != row["metrics"][0]:
        return [*cells, "", "", "", "", ""]
    seconds = [np.mean([each[side]["seconds"]["total"] for each in row["seeds"]]) for side in ("ours", "trainer")]
    ratios = [row["training_ratio"], row["grouped_ratio"]]
    shown = ["" if each is None else f"{each:.2f}" for each in ratios]
    return [*cells, *(f"{each:,.0f}" for each in seconds), f"**{row['ratio']:.2f}**", *shown]


def each_seed(values: Sequence[float], sign: str = "") -> str:
    """The mean, and each seed."""
    return f"**{np.mean(values):{sign}.2f}** ({' '.join(f'{each:{sign}.2f}' for each in values)})"


def finetune_chinese(found: dict[str, Any], language: str) -> Cells:
    cells = []
    for row in found["tasks"]:
        name = row["headline"]
        sides = [_measured(row["sides"].get(side), name) for side in ("pretrained", "untrained", "tfidf")]
        ahead = [in_points(row["ahead"].get(side)) for side in ("untrained", "tfidf")]
        examples = f"{row['rows'][0]:,} / {row['rows'][1]:,}"
        cells.append([row["task"], examples, METRICS[language][name], *sides, *ahead])
    return cells


def _measured(side: dict[str, Any] | None, name: str) -> str:
    if side is None:
        return ""
    low, high = side["intervals"][name]
    return f"{100 * side['metrics'][name]:.2f} [{100 * low:.2f}, {100 * high:.2f}]"


def in_points(difference: dict[str, Any] | None) -> str:
    """A difference with its interval; empty: there is none."""
    if difference is None:
        return ""
    low, high = difference["interval"]
    return f"{100 * difference['value']:+.2f} [{100 * low:+.2f}, {100 * high:+.2f}]"


def finetune_said(found: dict[str, Any], language: str) -> str:
    rows, words = found["tasks"], _ENGLISH[language]
    many = sorted({len(row["seeds"]) for row in rows})
    said = [words["seeds"].format(many=" - ".join(map(str, dict.fromkeys((many[0], many[-1])))))]
    ahead = [row["task"] for row in rows if min(row["differences"]) > 0]
    behind = [row["task"] for row in rows if max(row["differences"]) < 0]
    either = [row["task"] for row in rows if row["task"] not in (*ahead, *behind)]
    said += _named(words, language, ahead=ahead, behind=behind, either=either)
    worse = [row["task"] for row in rows if 100 * row["difference"] <= POINTS]
    said += _named(words, language, worse=worse) or [words["none_worse"]]
    for which, name in (("ratio", "time"), ("grouped_ratio", "grouped")):
        asked = [row for row in rows if row[which] is not None]
        slow = [f"{row['task']} ({row[which]:.2f})" for row in asked if row[which] > SHARE]
        if asked:
            said.append(words[name].format(ratio=_whole(asked, "trainer" if name == "time" else "grouped")))
            said += _named(words, language, slow=slow) or [words["none_slow"]]
    return words["gap"].join(said)


def _whole(rows: Sequence[dict[str, Any]], side: str) -> str:
    """Our seconds by the other's, over all tasks and the seeds that both have."""
    both = [each for row in rows for each in row["seeds"] if side in each]
    mine, others = (sum(each[name]["seconds"]["total"] for each in both) for name in ("ours", side))
    return f"{mine / others:.2f}"


def finetune_chinese_said(found: dict[str, Any], language: str) -> str:
    words, said = _CHINESE[language], []
    for side in ("untrained", "tfidf"):
        asked = [(row["task"], row["ahead"][side]["interval"]) for row in found["tasks"] if side in row["ahead"]]
        better = [task for task, (low, _) in asked if low > 0]
        worse = [task for task, (_, high) in asked if high < 0]
        equal = [task for task, (low, high) in asked if low <= 0 <= high]
        told = {f"{side}_better": better, f"{side}_worse": worse, f"{side}_equal": equal}
        said += _named(words, language, **told)
    return words["gap"].join(said)


def _named(words: dict[str, str], language: str, **tasks: Sequence[str]) -> list[str]:
    """A sentence for each that has tasks to name."""
    comma = {"en": ", ", "zh": "、"}[language]
    return [words[name].format(tasks=comma.join(names)) for name, names in tasks.items() if names]


_ENGLISH = {
    "en": {
        "gap": " ",
        "seeds": "Seeds: {many}.",
        "ahead": "Ours is ahead with every seed on {tasks}.",
        "behind": "Trainer is ahead with every seed on {tasks}.",
        "either": "Now one, now the other is ahead on {tasks}.",
        "worse": "The mean difference is a point or more against us on {tasks}.",
        "none_worse": "The mean difference is nowhere a point against us.",
        "time": "Ours takes {ratio} of Trainer's time over all.",
        "grouped": "Against batches of like lengths it takes {ratio}.",
        "slow": "More than the 0.6 that we aim at: {tasks}.",
        "none_slow": "That is within the 0.6 that we aim at, on every task.",
    },
    "zh": {
        "gap": "",
        "seeds": "种子数：{many}。",
        "ahead": "每个种子都是我们领先的任务：{tasks}。",
        "behind": "每个种子都是 Trainer 领先的任务：{tasks}。",
        "either": "互有先后的任务：{tasks}。",
        "worse": "平均差使我们落后一个百分点或更多的任务：{tasks}。",
        "none_worse": "没有任务的平均差使我们落后一个百分点。",
        "time": "总时间是 Trainer 的 {ratio}。",
        "grouped": "与相近长度成批的 Trainer 相比是 {ratio}。",
        "slow": "超过我们的目标 0.6：{tasks}。",
        "none_slow": "每个任务都在我们的目标 0.6 以内。",
    },
}
_CHINESE = {
    "en": {
        "gap": " ",
        "untrained_better": "Pretraining helps on {tasks}.",
        "untrained_worse": "Pretraining does harm on {tasks}.",
        "untrained_equal": "Pretraining makes no difference that could be shown on {tasks}.",
        "tfidf_better": "It beats TF-IDF on {tasks}.",
        "tfidf_worse": "TF-IDF beats it on {tasks}.",
        "tfidf_equal": "Between it and TF-IDF no difference could be shown on {tasks}.",
    },
    "zh": {
        "gap": "",
        "untrained_better": "预训练有帮助的任务：{tasks}。",
        "untrained_worse": "预训练反而有害的任务：{tasks}。",
        "untrained_equal": "看不出预训练有差别的任务：{tasks}。",
        "tfidf_better": "胜过 TF-IDF 的任务：{tasks}。",
        "tfidf_worse": "不如 TF-IDF 的任务：{tasks}。",
        "tfidf_equal": "与 TF-IDF 分不出高下的任务：{tasks}。",
    },
}
TABLES = {"finetune": finetune, "finetune_chinese": finetune_chinese}
SAID: dict[str, Callable[[dict[str, Any], str], str]] = {
    "finetune_said": finetune_said,
    "finetune_chinese_said": finetune_chinese_said,
}
"""Sentences instead of a table."""
