"""The tables of `benchmarks.shapes`, `ordered`, `longer_rows` and `shape_speed` for the pages: numbers and names, so
one form does for both languages."""

from __future__ import annotations

from typing import Any

from benchmarks.report_recipes import difference, share

Cells = list[list[str]]
MIB = 2**20
FILES = {
    "shapes": "shapes.json",
    "probe": "shapes.json",
    "ordered": "ordered.json",
    "longer_rows": "longer_rows.json",
    "shape_speed": "shape_speed.json",
}
HEADS = {
    "shapes": {
        "en": [
            "recipe",
            "masked tokens %",
            "to bert",
            "loss",
            "replaced, AUC",
            "parameters",
            "planned, MiB",
            "tokens/s",
        ],
        "zh": ["配方", "掩码 token %", "与 bert 之差", "损失", "换过吗 AUC", "参数", "预计 MiB", "token/秒"],
    },
    "probe": {
        "en": ["states of", "trained %", "untrained %"],
        "zh": ["谁的状态", "训练过 %", "未训练 %"],
    },
    "ordered": {
        "en": ["states of", "trained %", "untrained %", "its own loss", "parameters", "tokens/s"],
        "zh": ["谁的状态", "训练过 %", "未训练 %", "它自己的损失", "参数", "token/秒"],
    },
    "longer_rows": {
        "en": ["positions", "0 to 127", "128 to 255", "256 to 383", "384 to 511"],
        "zh": ["位置", "0 到 127", "128 到 255", "256 到 383", "384 到 511"],
    },
    "shape_speed": {
        "en": ["comparison", "size", "dropout", "length", "ratio"],
        "zh": ["比较", "规模", "dropout", "长度", "比值"],
    },
}


def shapes(found: dict[str, Any]) -> Cells:
    cells = []
    for each in found["variants"]:
        masked, run = each["masked"], found["shapes"][each["label"]]
        area = run["own"].get("eval/replaced_token/auc")
        cells.append(
            [
                each["label"],
                share(masked),
                "" if each is found["variants"][0] else difference(masked),
                f"{masked['loss']:.3f}",
                "" if area is None else f"{area:.3f}",
                f"{run['parameters']['total']:,}",
                f"{run['planned_bytes'] / MIB:,.0f}",
                f"{run['tokens_per_second']:,.0f}",
            ]
        )
    return cells


def probe(found: dict[str, Any]) -> Cells:
    asked = found["probe"]
    cells = [[name, share(asked[name]), share(asked[f"{name}, untrained"])] for name in found["shapes"]]
    return [*cells, *([name, share(each), ""] for name, each in asked.items() if name.startswith("TF-IDF"))]


def ordered(found: dict[str, Any]) -> Cells:
    asked = found["probe"]
    return [
        [
            name,
            share(asked[name]),
            share(asked[f"{name}, untrained"]),
            f"{run['own']['eval/loss']:.3f}",
            f"{run['parameters']['total']:,}",
            f"{run['tokens_per_second']:,.0f}",
        ]
        for name, run in found["shapes"].items()
    ]


def longer_rows(found: dict[str, Any]) -> Cells:
    cells = []
    for name, model in found["models"].items():
        row = [name]
        for number, (low, high) in enumerate(model["interval"]):
            seeds = " ".join(f"{100 * run[number]:.2f}" for run in model["by_seed"])
            row.append(f"**{100 * model['accuracy'][number]:.2f}** [{100 * low:.2f}, {100 * high:.2f}] ({seeds})")
        cells.append(row)
    return cells


def shape_speed(found: dict[str, Any]) -> Cells:
    return [
        [row["name"], row["size"], f"{row['dropout']:g}", f"{row['length']}", f"**{row['ratio']:.2f}**"]
        for row in found["rows"]
    ]


TABLES = {
    "shapes": shapes,
    "probe": probe,
    "ordered": ordered,
    "longer_rows": longer_rows,
    "shape_speed": shape_speed,
}
