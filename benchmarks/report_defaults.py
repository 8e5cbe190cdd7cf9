"""The tables about chosen settings and time budgets for docs/defaults.md."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from statistics import mean
from typing import Any

Cells = list[list[str]]
FILES = {
    "pretrain_defaults": "pretrain_defaults.json",
    "finetune_defaults": "finetune_defaults.json",
    "budgets": "budgets.json",
}
HEADS = {
    "pretrain_defaults": {
        "en": [
            "text",
            "recipe",
            "budget",
            "settings",
            "tokens read, millions",
            "loss",
            "frequencies",
            "difference [95 %]",
            "accuracy, %",
        ],
        "zh": ["文本", "配方", "时间", "设置", "读了多少百万 token", "损失", "只用频率", "差 [95 %]", "准确率 %"],
    },
    "finetune_defaults": {
        "en": ["set", "rows", "`finetune`", "estimator", "`Encoder` + logistic regression", "TF-IDF", "seconds"],
        "zh": ["数据集", "样本数", "`finetune`", "估计器", "`Encoder` + 逻辑回归", "TF-IDF", "秒"],
    },
    "budgets": {
        "en": ["command", "verb", "budget, s", "took, s", "took / budget"],
        "zh": ["命令", "子命令", "时间预算，秒", "实际，秒", "实际 / 预算"],
    },
}
_SIDES = {
    "en": {"default": "chosen", "published": "the paper's", "demo": "tiny, rows of 32"},
    "zh": {"default": "自动选择", "published": "论文的", "demo": "tiny，行长 32"},
}
_TEXTS = {
    "en": {"corpus-chinese": "5 MB Chinese", "corpus-english": "3 MB English"},
    "zh": {"corpus-chinese": "5 MB 中文", "corpus-english": "3 MB 英文"},
}


def pretrain_defaults(found: dict[str, Any], language: str) -> Cells:
    """A line for each text, recipe, budget and kind of settings; the values of the seeds beside each other."""
    groups: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for each in sorted(found["cells"], key=_place):
        key = (each["corpus"], each["recipe"], _budget(each), each["side"])
        groups.setdefault(key, []).append(each)
    return [
        [_TEXTS[language][corpus], recipe, budget, _SIDES[language][side], *_seeds(cells)]
        for (corpus, recipe, budget, side), cells in groups.items()
    ]


def _place(cell: dict[str, Any]) -> tuple[Any, ...]:
    return cell["budget"], cell["corpus"], cell["recipe"], list(_SIDES["en"]).index(cell["side"]), cell["seed"]


def _budget(cell: dict[str, Any]) -> str:
    return cell["budget"] + (f", {cell['size']}" if cell["size"] else "")


def _seeds(cells: Iterable[dict[str, Any]]) -> list[str]:
    columns: list[list[str]] = [[], [], [], [], []]
    for each in cells:
        first = each["frequencies"][0]
        gap = first["loss"] - first["frequencies"]
        accuracy = each["eval"].get(f"{first['objective']}/accuracy", float("nan"))
        texts = [f"{each['tokens'] / 1e6:.1f}", f"{first['loss']:.2f}", f"{first['frequencies']:.2f}"]
        texts += [f"{gap:+.2f} [{first['low']:+.2f}, {first['high']:+.2f}]", f"{100 * accuracy:.1f}"]
        for column, text in zip(columns, texts, strict=True):
            column.append(text)
    return [", ".join(column) for column in columns]


def finetune_defaults(found: dict[str, Any], language: str) -> Cells:
    """Means over seeds, with the smallest and the largest."""
    cells: dict[tuple[str, int], dict[str, list[dict[str, Any]]]] = {}
    for row in found["cells"]:
        if row["model"] == "minilm" and "=" not in row["side"]:
            cells.setdefault((row["set"], row["rows"]), {}).setdefault(row["side"], []).append(row["found"])
    return [
        [
            name,
            f"{rows:,}",
            *(_accuracy(sides.get(side, []), name) for side in ("finetune", "estimator", "logistic", "tfidf")),
            _seconds(sides.get("finetune", [])),
        ]
        for (name, rows), sides in sorted(cells.items())
    ]


def _seconds(found: list[dict[str, Any]]) -> str:
    """Of the cells that ran alone; those that ran beside other work have none."""
    times = [each["seconds"] for each in found if each.get("seconds") is not None]
    return f"{mean(times):.0f}" if times else ""


def _accuracy(found: list[dict[str, Any]], name: str) -> str:
    if not found:
        return ""
    metric = "mcc" if name == "CoLA" else "accuracy"
    values = [100 * each[metric] for each in found]
    spread = f" ({min(values):.1f} to {max(values):.1f})" if len(values) > 1 else ""
    return f"{mean(values):.1f}{spread}{' MCC' if name == 'CoLA' else ''}"


def budgets(found: dict[str, Any], language: str) -> Cells:
    return [
        [
            each["name"],
            each["verb"],
            f"{each['budget']:.0f}",
            f"{each['seconds']:.1f}",
            f"{each['seconds'] / each['budget']:.2f}",
        ]
        for each in found["cells"]
    ]


TABLES: dict[str, Callable[[dict[str, Any], str], Cells]] = {
    "pretrain_defaults": pretrain_defaults,
    "finetune_defaults": finetune_defaults,
    "budgets": budgets,
}
