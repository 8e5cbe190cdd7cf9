"""What training reads: the first rows of a feed with what was done to them, and one sentence under several maskings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from maskery import randomness
from maskery.corpus.encode import encode
from maskery.corpus.mixture import Corpora
from maskery.corpus.store import Corpus, CorpusFacts
from maskery.corruption.corrupt import corrupt
from maskery.edit import Edit
from maskery.errors import InputError
from maskery.explain.chips import STYLE, chips, legend
from maskery.explain.words import Words, words_of
from maskery.feed import Feed
from maskery.inspection import measure, visits
from maskery.phases import Phase
from maskery.picture import Picture, table
from maskery.picture.markup import Markup, joined, tag
from maskery.recipes.recipe import Recipe
from maskery.rows.config import PAIRS
from maskery.rows.ragged import Rows
from maskery.text.tokenizer import Tokenizer
from maskery.text.words import segmenter

SHOWN, MEASURED = 8, 1000
LONGEST = 128
"""Tokens of a sentence that is shown under several maskings."""


def rates(feed: Feed, count: int) -> dict[str, Any]:
    """What corruption did to the first `count` rows of training, and under `nominal` what the recipe asks for."""
    found = {"recipe": feed.recipe.name, "unit": feed.recipe.corruption.unit}
    return found | measure(feed, count).plain() | {"nominal": nominal(feed)}


def nominal(feed: Feed) -> dict[str, Any]:
    """What the recipe asks for."""
    corruption = feed.recipe.corruption
    shares = {name: share for name, share in corruption.replace.plain().items() if share > 0}
    asked = {"chosen_rate": corruption.rate, "replaced": shares if corruption.rate > 0 else {}}
    return asked | {"corpora": dict(zip(feed.names, feed.shares(feed.phases[0]).tolist(), strict=True))}


def row_title(feed: Feed, phase: Phase, rows: Rows, place: int) -> str:
    """Which row it is, whose where several corpora are read, how long, how much was chosen, and its pair label."""
    number, label = int(rows.number[place]), int(rows.label[place])
    whose = ""
    if len(feed.names) > 1:
        part, row = feed.corpus_of(phase, np.array([number]))
        whose = f", {feed.names[int(part[0])]} row {int(row[0])}"
    chosen = int((rows.edit[rows.start[place] : rows.start[place + 1]] != Edit.NONE).sum())
    told = f", pair: {PAIRS.get(feed.recipe.rows.pair).labels[label]}" if label >= 0 else ""
    size = f"{int(rows.length[place])} of {phase.length} slots"
    return f"row {number} of the plan{whose}: {size}, {chosen} chosen{told}"


def corrupted_rows(recipe: Recipe, corpus: Corpora, rows: int = SHOWN, seed: int | None = None) -> Picture:
    """The first rows that training will read, and rates measured over the first thousand."""
    feed = Feed(recipe, corpus, recipe.training.seed if seed is None else seed)
    return rows_picture(feed, rates(feed, MEASURED), rows)


def rows_picture(feed: Feed, found: Mapping[str, Any], rows: int = SHOWN) -> Picture:
    """The first rows of a feed beside what `rates` found."""
    words = words_of("en")
    parts: list[Markup] = []
    edits: set[Edit] = set()
    for step, phase, epochs, numbers in visits(feed, rows):
        held = feed.corrupted(step, phase, epochs, numbers)
        edits |= {Edit(code) for code in np.unique(held.edit)}
        for place in range(len(held)):
            parts.append(tag("p", row_title(feed, phase, held, place), {"class": "mk-about"}))
            parts.append(chips(held, place, feed.corpus.tokenizer, words))
    body = joined([STYLE, legend(edits, words), *parts, _rate_table(found)])
    over = f"{found['rows']:,} rows, {found['tokens']:,} positions"
    note = f"Measured over {over}. A line below tokens holds a word together."
    return Picture(f"Rows of {found['recipe']} as training reads them", body, note=note)


def _rate_table(found: Mapping[str, Any]) -> Markup:
    asked = found["nominal"]
    lines: list[tuple[str, str, str]] = [
        ("chosen, of ordinary positions", _percent(found["chosen_rate"]), _percent(asked["chosen_rate"]))
    ]
    for name in {**asked["replaced"], **found["replaced"]}:
        share = found["replaced"].get(name, 0.0)
        lines.append((f"{name}, of the chosen", _percent(share), _percent(asked["replaced"].get(name, 0.0))))
    lines += [(f"pair {name}", _percent(share), "") for name, share in found["pair"].items()]
    if len(found["corpora"]) > 1:
        lines += [
            (f"corpus {name}", _percent(found["corpora"][name]), _percent(share))
            for name, share in asked["corpora"].items()
        ]
    if found["replaced"]:
        lines.append(("words in a run of chosen, mean", f"{found['span_words']['mean']:.2f}", ""))
        lines.append(("words split", _percent(found["words_split"]), ""))
    return table(("", "measured", "recipe"), lines)


def maskings(
    recipes: Sequence[Recipe] | Mapping[str, Recipe],
    source: Corpus | Tokenizer,
    text: str,
    draws: int = 3,
    seed: int = 0,
    lang: str = "en",
) -> Picture:
    """How several recipes treat one sentence, each drawn `draws` times. A mapping gives the recipes other names.

    Words are found as the corpus found them; with a tokenizer alone, automatically.
    """
    named = recipes if isinstance(recipes, Mapping) else {each.name: each for each in recipes}
    if not isinstance(recipes, Mapping) and len(named) < len(recipes):
        raise InputError("two recipes have one name", repair="give a mapping from names to recipes")
    tokenizer = source.tokenizer if isinstance(source, Corpus) else source
    plain = _same_row(text, source, tokenizer, draws)
    facts = source.facts if isinstance(source, Corpus) else _facts(tokenizer)
    words = words_of(lang)
    parts: list[Markup] = []
    edits: set[Edit] = set()
    for name, recipe in named.items():
        keys = randomness.keys(seed, "maskings", np.arange(draws))
        rows = corrupt(plain, recipe.corruption, keys, facts)
        edits |= {Edit(code) for code in np.unique(rows.edit)}
        parts.append(tag("p", joined([tag("b", name), f": {_described(recipe, words)}"]), {"class": "mk-about"}))
        unit = words.epoch if recipe.corruption.when == "dynamic" else words.copy
        parts += [chips(rows, place, tokenizer, words, unit.format(number=place + 1)) for place in range(draws)]
    body = joined([STYLE, legend(edits, words), *parts])
    return Picture(words.maskings, body, note=words.maskings_note, lang=lang)


def _described(recipe: Recipe, words: Words) -> str:
    corruption = recipe.corruption
    if corruption.rate == 0:
        return words.untouched
    shares = ", ".join(f"{share:.0%} {name}" for name, share in corruption.replace.plain().items() if share > 0)
    when = words.dynamic if corruption.when == "dynamic" else words.static
    return words.corrupted.format(
        rate=corruption.rate, of=corruption.of, unit=corruption.unit, shares=shares, when=when
    )


def _same_row(text: str, source: Corpus | Tokenizer, tokenizer: Tokenizer, copies: int) -> Rows:
    """The text in its frame, `copies` times."""
    words = source.segmenter if isinstance(source, Corpus) else segmenter("auto")
    piece = encode(" ".join(text.split()), tokenizer, words)
    size = len(piece.tokens) + 2
    if not 3 <= size <= LONGEST + 2:
        raise InputError(f"the text has {size - 2} tokens", repair=f"give a sentence of 1 to {LONGEST} tokens")
    one = np.concatenate(([tokenizer.specials.cls], piece.tokens, [tokenizer.specials.sep])).astype(np.int32)
    special = np.zeros(size, dtype=bool)
    special[[0, -1]] = True
    ids = np.tile(one, copies)
    return Rows(
        number=np.arange(copies),
        start=np.arange(copies + 1) * size,
        ids=ids,
        original=ids.copy(),
        flags=np.tile(np.concatenate(([0], piece.flags, [0])).astype(np.uint8), copies),
        special=np.tile(special, copies),
        segment=np.zeros(len(ids), dtype=np.uint8),
        document=np.zeros(len(ids), dtype=np.int32),
        edit=np.zeros(len(ids), dtype=np.uint8),
        label=np.full(copies, -1),
    )


def _facts(tokenizer: Tokenizer) -> CorpusFacts:
    """Without a corpus every ordinary piece counts as seen once."""
    size = tokenizer.vocabulary

    def once() -> Any:
        return np.bincount(tokenizer.ordinary, minlength=size)

    return CorpusFacts(size, tokenizer.specials, once, lambda: tokenizer.ordinary)


def _percent(share: float) -> str:
    return f"{100 * share:.2f} %"
