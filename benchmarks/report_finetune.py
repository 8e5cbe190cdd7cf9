"""The tables about fine-tuning for the pages, and what they say in a sentence: reckoned, so that nobody flatters."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

Cells = list[list[str]]
POINTS, SHARE = -1.0, 0.6
"""What is aimed at: at most a point worse, at most so much of the other's time."""
TASKS = ("SST2", "MRPC", "CoLA", "RTE", "STSB")
OURS = ("ours", "ours_bfloat16")
FILES = {
    "finetune": "finetune_english.json",
    "finetune_time": "finetune_english.json",
    "finetune_said": "finetune_english.json",
    "finetune_chinese": "finetune_chinese.json",
    "finetune_chinese_said": "finetune_chinese.json",
}
HEADS = {
    "finetune": {
        "en": ["task", "rows", "metric", "Trainer", "ours", "difference", "ours, bfloat16", "difference", "losses"],
        "zh": ["任务", "行数", "指标", "Trainer", "我们", "差", "我们，bfloat16", "差", "损失"],
    },
    "finetune_time": {
        "en": ["sides", *TASKS, "all, s", "all", "training alone"],
        "zh": ["双方", *TASKS, "总秒数", "全部", "只算训练"],
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
    cells = [row["task"], f"{row['rows'][0]:,} / {row['rows'][1]:,}", METRICS[language][metric]]
    cells.append(each_seed(_points(row, "trainer", metric)))
    for side in OURS:
        both = [each for each in row["seeds"] if side in each and "trainer" in each]
        differences = [100 * (each[side]["metrics"][metric] - each["trainer"]["metrics"][metric]) for each in both]
        cells += [each_seed(_points(row, side, metric)), each_seed(differences, "+")]
    return [*cells, _losses(row) if metric == row["metrics"][0] else ""]


def _losses(row: dict[str, Any]) -> str:
    """Trainer's and ours, the mean over the training with every seed that both have."""
    both = [each for each in row["seeds"] if "trainer" in each and "ours" in each]
    return " / ".join(f"{np.mean([each[side]['loss'] for each in both]):.4f}" for side in ("trainer", "ours") if both)


def _points(row: dict[str, Any], side: str, metric: str) -> list[float]:
    return [100 * each[side]["metrics"][metric] for each in row["seeds"] if side in each]


def finetune_time(found: dict[str, Any], language: str) -> Cells:
    """A line for each two sides: the ratio on each task, over all of them, and of the training alone."""
    cells = []
    for pair, by_task in _by_pair(found).items():
        names = [_SIDES[language][side] for side in pair]
        ratios = [f"{by_task[task]['total']:.2f}" if task in by_task else "" for task in TASKS]
        whole = [over_all(by_task.values(), what) for what in ("total", "training")]
        seconds = " / ".join(f"{each:,.0f}" for each in whole[0][1])
        cells.append([" / ".join(names), *ratios, seconds, f"**{whole[0][0]:.2f}**", f"{whole[1][0]:.2f}"])
    return cells


Pair = tuple[str, str]


def _by_pair(found: dict[str, Any]) -> dict[Pair, dict[str, Any]]:
    """Two sides -> task -> the ratio of their times."""
    pairs: dict[Pair, dict[str, Any]] = {}
    for row in found["tasks"]:
        for ratio in row["ratios"]:
            pairs.setdefault((ratio["of"], ratio["to"]), {})[row["task"]] = ratio
    return pairs


def over_all(ratios: Iterable[dict[str, Any]], what: str) -> tuple[float, list[float]]:
    """The ratio of the sums, and the sums."""
    sums = [float(sum(each)) for each in zip(*(ratio[f"{what}_seconds"] for ratio in ratios), strict=True)]
    return sums[0] / sums[1], sums


def each_seed(values: Sequence[float], sign: str = "") -> str:
    """The mean, and each seed."""
    if not values:
        return ""
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
    words, said = _ENGLISH[language], []
    for side in OURS:
        rows = [(row["task"], row["differences"][side]) for row in found["tasks"] if row["differences"][side]]
        if not rows:
            continue
        many = " - ".join(dict.fromkeys(str(pick(len(each) for _, each in rows)) for pick in (min, max)))
        said.append(words["side"].format(side=_SIDES[language][side], many=many))
        ahead = [task for task, each in rows if min(each) > 0]
        behind = [task for task, each in rows if max(each) < 0]
        either = [task for task, _ in rows if task not in (*ahead, *behind)]
        said += _named(words, language, ahead=ahead, behind=behind, either=either)
        worse = [f"{task} ({100 * np.mean(each):+.2f})" for task, each in rows if 100 * np.mean(each) <= POINTS]
        said += _named(words, language, worse=worse) or [words["none_worse"]]
    for pair, by_task in _by_pair(found).items():
        one, other = (_SIDES[language][side] for side in pair)
        ratio = over_all(by_task.values(), "total")[0]
        words_for = "quick" if ratio <= SHARE else "slow"
        said.append(words[words_for].format(one=one, other=other, ratio=f"{ratio:.2f}"))
    return words["gap"].join(said)


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


_SIDES = {
    "en": {
        "ours": "ours",
        "ours_bfloat16": "ours in bfloat16",
        "trainer": "Trainer",
        "grouped": "Trainer by length",
        "grouped_bfloat16": "Trainer by length in bfloat16",
    },
    "zh": {
        "ours": "我们",
        "ours_bfloat16": "我们（bfloat16）",
        "trainer": "Trainer",
        "grouped": "按长度成批的 Trainer",
        "grouped_bfloat16": "按长度成批的 Trainer（bfloat16）",
    },
}
_ENGLISH = {
    "en": {
        "gap": " ",
        "side": "Quality, {side} (seeds: {many}):",
        "ahead": "ahead of Trainer with every seed on {tasks};",
        "behind": "behind it with every seed on {tasks};",
        "either": "now ahead, now behind on {tasks};",
        "worse": "the mean difference is a point or more against us on {tasks}.",
        "none_worse": "the mean difference is nowhere a point against us.",
        "quick": "Time, {one} by {other}: {ratio}, within the 0.6 that we aim at.",
        "slow": "Time, {one} by {other}: {ratio}, more than the 0.6 that we aim at.",
    },
    "zh": {
        "gap": "",
        "side": "质量，{side}（种子数：{many}）：",
        "ahead": "每个种子都领先于 Trainer 的任务是 {tasks}；",
        "behind": "每个种子都落后的任务是 {tasks}；",
        "either": "互有先后的任务是 {tasks}；",
        "worse": "平均差使我们落后一个百分点或更多的任务是 {tasks}。",
        "none_worse": "没有任务的平均差使我们落后一个百分点。",
        "quick": "时间，{one}比{other}：{ratio}，在我们的目标 0.6 以内。",
        "slow": "时间，{one}比{other}：{ratio}，超过我们的目标 0.6。",
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
TABLES = {"finetune": finetune, "finetune_time": finetune_time, "finetune_chinese": finetune_chinese}
SAID: dict[str, Callable[[dict[str, Any], str], str]] = {
    "finetune_said": finetune_said,
    "finetune_chinese_said": finetune_chinese_said,
}
"""Sentences instead of a table."""
