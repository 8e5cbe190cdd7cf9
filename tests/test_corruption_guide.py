"""The guide to corruption: its recipes are read, its choices are all there are, its messages are the real ones."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from made_rows import FACTS, made_rows

from maskery.corruption.config import LAWS, SOURCES, UNITS, CorruptionConfig, ReplaceConfig
from maskery.corruption.corrupt import corrupt
from maskery.edit import Edit
from maskery.randomness import keys
from maskery.recipes.recipe import check, recipe

DOCS = Path(__file__).parent.parent / "docs"
PAGES = {language: DOCS / language / "guide" / "corruption.md" for language in ("", "zh")}
TEXT = PAGES[""].read_text(encoding="utf-8")
EXAMPLES = {re.search('name = "(.*)"', block)[1]: block for block in re.findall(r"```toml\n(.*?)```", TEXT, re.DOTALL)}


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_is_a_recipe_whose_rows_can_be_made(name, tmp_path):
    file = tmp_path / "own.toml"
    file.write_text(EXAMPLES[name], encoding="utf-8")
    asked = recipe(str(file))
    rows = made_rows(0, 20)
    out = corrupt(rows, asked.corruption, keys(0, "mask", np.arange(20)), FACTS)
    assert (out.edit != Edit.NONE).any()
    refused = [refusal.piece for refusal in check(asked)]
    assert refused == (["objectives.masked_token"] if name == "bart-noise" else [])


@pytest.mark.parametrize("page", PAGES.values(), ids=["english", "chinese"])
def test_the_table_of_keys_has_every_key_and_choice(page):
    text = page.read_text(encoding="utf-8")
    keys_of = [line.split("|") for line in text.splitlines() if re.match(r"\| `\w+(\.law)?` \|", line)]
    listed = {cells[1].strip().strip("`"): set(re.findall(r"`(\w+)`", cells[2])) for cells in keys_of}
    assert {name.removesuffix(".law") for name in listed} == set(CorruptionConfig.model_fields)
    assert listed["unit"] == set(UNITS.names())
    assert listed["span.law"] == set(LAWS.names())
    assert listed["random_from"] == set(SOURCES.names())
    assert listed["replace"] == set(ReplaceConfig.model_fields)


def test_both_languages_have_the_same_blocks():
    blocks = [re.findall(r"^```.*?^```", page.read_text("utf-8"), re.MULTILINE | re.DOTALL) for page in PAGES.values()]
    assert blocks[0] == blocks[1]
    assert len(blocks[0]) > 5
