"""Do similar words mean alike? A table of similar words against the thesaurus Cilin.

    python -m benchmarks.similar_words TABLE CILIN --tokenizer DIR [--json FILE]

TABLE is made by `maskery words similar` from vectors, CILIN has lines such as `Aa01A01= 人 士 人物`. Of all pairs of a
word and a similar one both of which Cilin knows, the share is counted that stands on one line of it, and that shares
the first five or four letters of its code, which are wider circles of meaning. A word that stands on several lines has
to share one of them. Beside it stands what a random word would reach: any word of the table with as many tokens that
Cilin knows, exactly, not drawn. Shares are given for the nearest word and for all; intervals (95 %) are a bootstrap
over words, because the pairs of one word hang together.
"""

from __future__ import annotations

import argparse
import json
import re
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from maskery.inspection.bootstrap import interval, resampled
from maskery.knowledge.spelling import spellings
from maskery.knowledge.synonyms import filled_lines
from maskery.knowledge.table import SimilarTable
from maskery.text.tokenizer import Tokenizer

CODE = re.compile(r"([A-Z][a-z]\d\d[A-Z]\d\d)[=#@]")
LEVELS = {"one line": 7, "one paragraph (Aa01A)": 5, "one class (Aa01)": 4}
"""Name -> letters of the code that must agree."""


def codes(path: Path) -> dict[str, set[str]]:
    """Word -> the codes of its lines."""
    found: dict[str, set[str]] = defaultdict(set)
    for number, line in filled_lines(path):
        if not (code := CODE.match(line)):
            raise SystemExit(f"{path}:{number}: no code such as Aa01A01=")
        for word in line[code.end() :].split():
            found[word].add(code[1])
    return dict(found)


def lengths(words: list[str], tokenizer: Tokenizer) -> dict[str, int]:
    """Tokens of each word that the tokenizer knows."""
    found = spellings(tokenizer, words)[0].length.tolist()
    return {word: length for word, length in zip(words, found, strict=True) if length}


def agreement(
    entries: Mapping[str, list[str]], known: Mapping[str, set[str]], length: Mapping[str, int], letters: int
) -> dict[str, Any]:
    """How many pairs share a code of so many letters, and how many would if any word of `length` were drawn."""
    of = {word: {code[:letters] for code in found} for word, found in known.items()}
    circle: dict[tuple[int, str], set[str]] = defaultdict(set)
    pool: dict[int, int] = defaultdict(int)
    for word in length:
        if word in of:
            pool[length[word]] += 1
            for code in of[word]:
                circle[length[word], code].add(word)
    hits, asked, chance = [], [], []
    for word, others in entries.items():
        pairs = [of[word] & of[other] for other in others if other in of] if word in of and word in length else []
        if pairs and pool[length[word]] > 1:
            like = set().union(*(circle[length[word], code] for code in of[word])) - {word}
            hits.append(sum(map(bool, pairs)))
            asked.append(len(pairs))
            chance.append(len(pairs) * len(like) / (pool[length[word]] - 1))
    if not asked:
        return {"pairs": 0}
    counts, total = np.array(hits, dtype=np.float64), np.array(asked, dtype=np.float64)
    return {
        "pairs": int(total.sum()),
        "words": len(asked),
        "share": float(counts.sum() / total.sum()),
        "interval": interval(resampled(counts, total)),
        "random": float(sum(chance) / total.sum()),
    }


def measure(table: SimilarTable, known: Mapping[str, set[str]], tokenizer: Tokenizer) -> dict[str, Any]:
    every = {word: [other for other, _ in scored] for word, scored in table.entries.items()}
    words = list(dict.fromkeys([*every, *(other for others in every.values() for other in others)]))
    length = lengths(words, tokenizer)
    asked = {"nearest": {word: others[:1] for word, others in every.items()}, "all": every}
    return {
        "table": {**dict(table.made), "words": len(every), "pairs": table.pairs},
        "in_cilin": sum(word in known for word in every) / max(1, len(every)),
        "agreement": {
            level: {name: agreement(entries, known, length, letters) for name, entries in asked.items()}
            for level, letters in LEVELS.items()
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", type=Path)
    parser.add_argument("cilin", type=Path)
    parser.add_argument("--tokenizer", type=Path, required=True, help="the corpus or tokenizer the table was made for")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    table, tokenizer = SimilarTable.read(options.table), Tokenizer.load(options.tokenizer)
    table.require(tokenizer, options.table)
    found = measure(table, codes(options.cilin), tokenizer)
    for level, asked in found["agreement"].items():
        for name, each in asked.items():
            if each["pairs"]:
                low, high = (100 * edge for edge in each["interval"])
                times = each["share"] / each["random"] if each["random"] else float("inf")
                share = f"{100 * each['share']:6.2f} % ({low:.2f} to {high:.2f}) of {each['pairs']:,} pairs"
                print(f"{level:22} {name:8} {share}; a random word {100 * each['random']:.3f} %: {times:.0f} times")
    if options.json:
        options.json.write_text(json.dumps(found, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
