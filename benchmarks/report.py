"""Write the tables of measured numbers into the pages of both languages: `python -m benchmarks.report`.

A table stands between `<!-- NAME -->` and `<!-- / -->`; a test compares pages and files, so that no number is written
by hand. What has not been measured yet says so.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks import (
    report_corruption,
    report_defaults,
    report_encode,
    report_finetune,
    report_memory,
    report_permutation,
    report_recipes,
    report_shapes,
    report_streams,
    report_vectors,
    report_vectors_words,
    report_writing,
)

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"
FOLDERS = {"en": ROOT / "docs", "zh": ROOT / "docs" / "zh"}
NAMES = (
    "benchmarks",
    "masking",
    "memory",
    "permutation",
    "sentence-vectors",
    "recipes/transformer",
    "recipes/bart",
    "defaults",
)
PAGES = {language: [folder / f"{name}.md" for name in NAMES] for language, folder in FOLDERS.items()}
MIB = 2**20

Cells = list[list[str]]
HEADS = {
    "memory": {
        "en": ["size", "rows", "dropout", "ours, MiB", "planned, MiB", "transformers, MiB", "ratio"],
        "zh": ["规模", "行", "dropout", "我们 MiB", "预计 MiB", "transformers MiB", "比值"],
    },
    "length": {
        "en": ["length", "rows", "tokens/s", "attention's share", "time / expected", "peak, MiB", "peak / planned"],
        "zh": ["长度", "行数", "token/秒", "注意力占比", "时间 / 预期", "峰值 MiB", "峰值 / 预计"],
    },
    "batch": {
        "en": ["rows", "tokens/s", "ms a step", "time / line", "peak, MiB", "peak / planned"],
        "zh": ["行数", "token/秒", "每步毫秒", "时间 / 直线", "峰值 MiB", "峰值 / 预计"],
    },
    "corpus": {
        "en": ["MB", "tokens", "build, s", "time / line", "peak, MiB", "with training, s", "time / line", "peak, MiB"],
        "zh": ["MB", "token", "构建 秒", "时间 / 直线", "峰值 MiB", "连同训练分词器 秒", "时间 / 直线", "峰值 MiB"],
    },
    **report_recipes.HEADS,
    **report_shapes.HEADS,
    "ranks": {
        "en": ["ranks", "threads each", "tokens/s", "loss at the end", "peak of all, MiB"],
        "zh": ["进程数", "每个的线程数", "token/秒", "最后的损失", "总峰值 MiB"],
    },
    **report_corruption.HEADS,
    **report_defaults.HEADS,
    **report_encode.HEADS,
    **report_finetune.HEADS,
    **report_memory.HEADS,
    **report_permutation.HEADS,
    **report_streams.HEADS,
    **report_vectors_words.HEADS,
    **report_writing.HEADS,
}
_WORDY = (
    *(report_corruption, report_defaults, report_finetune, report_memory),
    *(report_permutation, report_streams, report_writing),
)
WORDED = {name: table for each in (*_WORDY, report_encode, report_vectors) for name, table in each.TABLES.items()}
"""Tables that hold words, and are made for one language."""
SAID = report_encode.SAID | report_finetune.SAID | report_vectors.SAID
"""Sentences instead of a table."""
NOT_YET = {"en": "Not measured yet.", "zh": "尚未测量。"}


def memory(found: dict[str, Any]) -> Cells:
    return [
        [
            row["size"],
            f"{row['rows']} x {'up to ' if row['fill'] == 'ragged' else ''}{row['length']}",
            f"{row['dropout']:g}",
            _mib(row["ours_bytes"]),
            _mib(row["planned_bytes"]),
            _mib(min(row["eager_bytes"], row["sdpa_bytes"])),
            f"**{row['ratio']:.2f}**",
        ]
        for row in found["rows"]
    ]


def length(found: dict[str, Any]) -> Cells:
    return [
        [
            f"{each['length']}",
            f"{each['rows']}",
            f"{each['tokens_per_second']:,.0f}",
            f"{each['quadratic_share']:.0%}",
            f"{each['of_expected']:.2f}",
            *_peak(each),
        ]
        for each in found["points"]
    ]


def batch(found: dict[str, Any]) -> Cells:
    return [
        [
            f"{each['rows']}",
            f"{each['tokens_per_second']:,.0f}",
            f"{1000 * each['seconds']:.0f}",
            f"{each['of_line']:.2f}",
            *_peak(each),
        ]
        for each in found["points"]
    ]


def corpus(found: dict[str, Any]) -> Cells:
    rows: dict[float, dict[str, Any]] = {}
    for each in found["points"]:
        rows.setdefault(each["megabytes"], {})[each["tokenizer"]] = each
    return [
        [f"{size:g}", f"{both['train']['tokens']:,}", *_built(both.get("given")), *_built(both["train"])]
        for size, both in rows.items()
    ]


def ranks(found: dict[str, Any]) -> Cells:
    return [
        [
            f"{each['ranks']}",
            f"{each['threads']}",
            f"{each['tokens_per_second']:,.0f}",
            f"{each['loss']:.5f}",
            _mib(each["peak_bytes"]),
        ]
        for each in found["points"]
    ]


def _built(each: dict[str, Any] | None) -> list[str]:
    return (
        ["", "", ""] if each is None else [f"{each['seconds']:.1f}", f"{each['of_line']:.2f}", _mib(each["peak_bytes"])]
    )


def _peak(each: dict[str, Any]) -> list[str]:
    return [_mib(each["peak_bytes"]), f"{each['peak_bytes'] / each['planned_bytes']:.2f}"]


def _mib(size: int | None) -> str:
    return "" if size is None else f"{size / MIB:,.0f}"


TABLES: dict[str, Callable[[dict[str, Any]], Cells]] = {
    "memory": memory,
    "length": length,
    "batch": batch,
    "corpus": corpus,
    "ranks": ranks,
    "recipes": report_recipes.recipes,
    "questions": report_recipes.questions,
    "recipe_questions": report_recipes.recipe_questions,
    **report_shapes.TABLES,
}


def results() -> dict[str, dict[str, Any]]:
    """What each table is made of; a part that was not measured is left out."""
    found: dict[str, dict[str, Any]] = {}
    if (RESULTS / "scaling.json").is_file():
        found |= json.loads((RESULTS / "scaling.json").read_text(encoding="utf-8"))
    if (RESULTS / "memory.json").is_file():
        found["memory"] = json.loads((RESULTS / "memory.json").read_text(encoding="utf-8"))
    if (RESULTS / "recipes.json").is_file():
        compared = json.loads((RESULTS / "recipes.json").read_text(encoding="utf-8"))
        found |= dict.fromkeys(report_recipes.HEADS, compared)
    wordy = {name: file for each in _WORDY for name, file in each.FILES.items()}
    for name, file in (wordy | report_shapes.FILES).items():
        if (RESULTS / file).is_file():
            found[name] = json.loads((RESULTS / file).read_text(encoding="utf-8"))
    return found | report_encode.found(RESULTS) | report_vectors.found(RESULTS)


def markdown(name: str, language: str, found: dict[str, dict[str, Any]]) -> str:
    if name not in found:
        return NOT_YET[language]
    if name in SAID:
        return SAID[name](found[name], language) or NOT_YET[language]
    head = HEADS[name][language]
    worded = WORDED.get(name)
    cells = TABLES[name](found[name]) if worded is None else worded(found[name], language)
    if not cells:
        return NOT_YET[language]
    rows = [head, ["---"] * len(head), *cells]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def filled(page: str, language: str, found: dict[str, dict[str, Any]]) -> str:
    def table(match: re.Match[str]) -> str:
        return f"{match[1]}\n{markdown(match[2], language, found)}\n{match[3]}"

    return re.sub(r"(<!-- (\w+) -->)\n.*?\n(<!-- / -->)", table, page, flags=re.DOTALL)


def main() -> None:
    found = results()
    for language, pages in PAGES.items():
        for path in pages:
            path.write_text(filled(path.read_text(encoding="utf-8"), language, found), encoding="utf-8")
    missing = [name for name in HEADS if name not in found]
    if missing:
        print(f"not measured yet: {', '.join(missing)}", file=sys.stderr)


if __name__ == "__main__":
    main()
