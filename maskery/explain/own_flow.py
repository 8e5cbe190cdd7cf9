"""The flow in a text of the user's: in the order that the recipe draws for it, or in one that the user gives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from maskery import randomness
from maskery.corpus.mixture import Corpora
from maskery.edit import Edit
from maskery.errors import InputError
from maskery.explain.flow import Flow, flow_in
from maskery.explain.made_up import ROWS, asked_about
from maskery.explain.own_row import copies, frame_of, own_row, read_texts
from maskery.explain.sentence import DRAWS, facts_of, require_synonyms
from maskery.feed import read_and_written, require_words
from maskery.knowledge.load import similar_words
from maskery.recipes.recipe import Recipe
from maskery.rows.modes import modes, with_every_mode, with_segments_by_mode
from maskery.rows.ragged import Rows
from maskery.text.tokenizer import Tokenizer

MOST = 48
"""Tokens of a text whose matrices are drawn."""


@dataclass(frozen=True, kw_only=True)
class Own:
    """What the user gives."""

    text: str
    pair: str | None = None
    order: Sequence[int] | None = None
    """Tokens of the text, counted from 1 without special tokens, in the order in which they are predicted."""


def flow_of_text(recipe: Recipe, source: Corpora | Tokenizer, own: Own, seed: int, step: int | None = None) -> Flow:
    """The flow in the first draw of the text, or in one that leaks; leaks are looked for in `ROWS` draws. Nothing is
    remembered: no text stands before a text of the user's."""
    recipe = recipe.model_copy(update={"model": recipe.model.model_copy(update={"memory": 0})})
    require_synonyms(recipe.name, recipe)
    if isinstance(source, Tokenizer):
        tokenizer, facts = source, facts_of(source)
    else:
        require_words(recipe, source)
        tokenizer, facts = source.tokenizer, source.facts
    texts = read_texts(own.text, own.pair, source)
    if texts.size > MOST:
        raise InputError(
            f"the text has {texts.size} tokens, and a matrix of as many cannot be read",
            repair=f"give a text of 1 to {MOST} tokens",
        )
    clean = copies(own_row(texts, tokenizer, frame_of([recipe])), ROWS)
    numbers = np.arange(ROWS)
    drawn = modes(recipe.visibility, randomness.keys(seed, "flow mode", numbers))
    clean = replace(clean, mode=with_every_mode(recipe.visibility, drawn))
    config = recipe.corruption.at((step or 0) / recipe.training.steps)
    similar = similar_words(recipe.knowledge, tokenizer) if config.replace.similar else None
    keys = randomness.keys(seed, DRAWS, numbers)
    rows, to_write = read_and_written(clean, recipe, config, keys, facts, tokenizer.specials, similar)
    if own.order is not None:
        rows = _in_given_order(clean, own.order, recipe)
    if recipe.rows.segments == "mode":
        rows = with_segments_by_mode(rows)
    if recipe.visibility.plain_kind:
        rows = replace(rows, mode=None)
    return flow_in(recipe, asked_about(recipe, rows, to_write, tokenizer), tokenizer, first=True)


def _in_given_order(clean: Rows, order: Sequence[int], recipe: Recipe) -> Rows:
    """The rows as they are, every named token a target at its turn. What is not named is known from the beginning;
    special tokens come last, so that no target has to do with them."""
    if recipe.visibility.kind != "permuted":
        raise InputError(
            f"{recipe.name} reads {recipe.visibility.kind}, in no order that could be given",
            repair="--order is for recipes with visibility.kind = permuted, such as xlnet",
        )
    ordinary = np.flatnonzero(~clean.special[: clean.length[0]])
    if not order or sorted(set(order)) != sorted(order) or not set(order) <= set(range(1, len(ordinary) + 1)):
        shown = " ".join(map(str, order))
        raise InputError(
            f"the order {shown!r} does not name some of the {len(ordinary)} tokens, each once",
            repair=f"numbers from 1 to {len(ordinary)}, such as {','.join(map(str, range(len(ordinary), 0, -1)))}",
        )
    turn = np.where(clean.special[: clean.length[0]], len(order) + 1, 0)
    turn[ordinary[np.array(order) - 1]] = np.arange(1, len(order) + 1)
    asked = np.zeros(len(turn), dtype=bool)
    asked[ordinary[np.array(order) - 1]] = True
    edit = np.where(asked, int(Edit.KEEP), int(Edit.NONE)).astype(np.uint8)
    many = len(clean)
    return replace(
        clean, order=np.tile(turn, many).astype(np.int64), asked=np.tile(asked, many), edit=np.tile(edit, many)
    )
