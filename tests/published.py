"""Files in the form of published sets: rows, records and folders of them."""

from __future__ import annotations

import json

NLI = ("entailment", "neutral", "contradiction")
WORDS = ("cats", "sleep", "often", "near", "old", "rivers", "while", "birds", "sing", "loudly", "above", "trees")
MANY = 48


def said(number, words=6):
    return (
        " ".join(WORDS[(number * 5 + place * (1 + number % 7)) % len(WORDS)] for place in range(words)) + f" {number}"
    )


def tsv(*rows):
    return "".join("\t".join(map(str, row)) + "\n" for row in rows)


def lines(records):
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)


def written(folder, files):
    """The folder with these files in it: name -> text."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


def notes_of(examples):
    return " | ".join(examples.notes)
