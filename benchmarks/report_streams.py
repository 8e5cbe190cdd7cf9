"""The table of what two streams cost."""

from __future__ import annotations

from typing import Any

Cells = list[list[str]]
FILES = {"xlnet_speed": "xlnet_speed.json"}
HEADS = {
    "xlnet_speed": {
        "en": ["size", "rows", "memory", "xlnet, ms", "bert, ms", "transformers, ms", "/ bert", "/ transformers"],
        "zh": ["规模", "行", "记忆", "xlnet 毫秒", "bert 毫秒", "transformers 毫秒", "/ bert", "/ transformers"],
    }
}


def xlnet_speed(found: dict[str, Any], language: str) -> Cells:
    return [
        [
            row["size"],
            f"{row['rows']} x {row['length']}",
            f"{row['memory']}",
            *(f"{row['milliseconds'][side]:,.0f}" for side in ("xlnet", "bert", "theirs")),
            *(f"**{row['ratio'][side]:.2f}**" for side in ("bert", "theirs")),
        ]
        for row in found["rows"]
    ]


TABLES = {"xlnet_speed": xlnet_speed}
