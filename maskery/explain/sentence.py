"""One sentence under several recipes: the same draws, so that only what each recipe makes of them differs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from maskery import arguments, randomness
from maskery.arguments import checked
from maskery.corpus.encode import Flag
from maskery.corpus.mixture import AnyCorpora, Corpora, corpus_of
from maskery.corpus.store import CorpusFacts
from maskery.corruption.config import CorruptionConfig, SpanConfig
from maskery.corruption.corrupt import corrupt
from maskery.edit import Edit
from maskery.errors import InputError, RecipeError
from maskery.explain.chips import STYLE, chips, legend
from maskery.explain.own_row import copies, frame_of, own_row, read_texts
from maskery.explain.words import Words, words_of
from maskery.feed import require_words
from maskery.inspection.words import word_numbers
from maskery.knowledge.config import SYNONYM_FILES
from maskery.knowledge.load import similar_words
from maskery.picture import Picture
from maskery.picture.markup import Markup, joined, tag
from maskery.recipes.recipe import AnyRecipe, Recipe, recipe_of
from maskery.rows.ragged import Rows
from maskery.text.tokenizer import Tokenizer

MOST_DRAWS = 100
DRAWS = "maskings"
"""The stream of the draws of a sentence."""
_MARKS = {"phrase": "phrases", "entity": "entities"}


@dataclass(frozen=True, kw_only=True)
class Masking:
    """What one recipe, or one stage of it, makes of the sentence."""

    name: str
    config: CorruptionConfig
    rows: Rows
    """A row for each draw."""
    marks: frozenset[str]
    """phrases, entities: what the corpus marks."""

    def described(self, words: Words) -> str:
        config, moved = self.config, self._moved(words)
        if config.rate == 0:
            return words.unchosen + moved if moved else words.untouched
        shares = ", ".join(f"{share:.0%} {name}" for name, share in config.replace.plain().items() if share > 0)
        when = words.dynamic if config.when == "dynamic" else words.static
        unit = config.unit + ("" if config.span.law == "single" else words.spans.format(law=_law(config.span)))
        told = words.corrupted.format(rate=config.rate, of=config.of, unit=unit, shares=shares, when=when)
        return told + moved + self._unmarked(words)

    def _unmarked(self, words: Words) -> str:
        """Why a unit that the corpus marks is nothing but a word here."""
        first = {"phrase": Flag.PHRASE, "entity": Flag.ENTITY}.get(self.config.unit)
        if first is None or (self.rows.flags & first).any():
            return ""
        return words.unfound if _MARKS[self.config.unit] in self.marks else words.unmarked

    def _moved(self, words: Words) -> str:
        """What is done besides to what was not chosen."""
        shuffle, order, ngram = self.config.shuffle, self.config.order, self.config.ngram
        told = words.permuted if order.sentences else ""
        if order.rotate > 0:
            told += words.rotated.format(rate=order.rotate)
        if ngram.longest > 0:
            told += words.hidden_run.format(shortest=ngram.shortest, longest=ngram.longest)
        if shuffle.rate > 0:
            told += words.shuffled.format(rate=shuffle.rate, size=shuffle.size)
        return told


@dataclass(frozen=True, kw_only=True)
class Sentence:
    text: str
    pair: str | None
    tokenizer: Tokenizer
    plain_rows: Rows
    """One row, not corrupted."""
    maskings: tuple[Masking, ...]

    @property
    def edits(self) -> set[Edit]:
        return {Edit(code) for masking in self.maskings for code in np.unique(masking.rows.edit)}

    def plain(self) -> dict[str, Any]:
        """As JSON: the tokens, the number of each one's word (-1: special tokens), and all draws of every recipe."""
        return {
            "text": self.text,
            **({} if self.pair is None else {"pair": self.pair}),
            "tokens": self.tokenizer.tokens(self.plain_rows.ids),
            "words": word_numbers(self.plain_rows).tolist(),
            "recipes": {masking.name: self._draws(masking) for masking in self.maskings},
        }

    def _draws(self, masking: Masking) -> dict[str, Any]:
        rows, names = masking.rows, self.tokenizer.tokens
        parts = [slice(rows.start[place], rows.start[place + 1]) for place in range(len(rows))]
        draws = [
            {
                "tokens": names(rows.ids[part]),
                "original": names(rows.original[part]),
                "edits": [Edit(code).name.lower() for code in rows.edit[part]],
            }
            for part in parts
        ]
        return {"unit": masking.config.unit, "rate": masking.config.rate, "draws": draws}

    def picture(self, lang: str = "en") -> Picture:
        words = words_of(lang)
        parts: list[Markup] = []
        for masking in self.maskings:
            told = joined([tag("b", masking.name), f": {masking.described(words)}"])
            parts.append(tag("p", told, {"class": "mk-about"}))
            unit = words.epoch if masking.config.when == "dynamic" else words.copy
            parts += [
                chips(masking.rows, place, self.tokenizer, words, unit.format(number=place + 1))
                for place in range(len(masking.rows))
            ]
        body = joined([STYLE, legend(self.edits, words), *parts])
        return Picture(words.maskings, body, note=words.maskings_note, lang=lang)


@checked
def maskings(
    recipes: Sequence[AnyRecipe] | Mapping[str, AnyRecipe],
    source: AnyCorpora | Tokenizer,
    text: str,
    draws: int = 3,
    seed: int = 0,
    lang: str = "en",
    pair: str | None = None,
) -> Picture:
    """How several recipes treat one sentence, or a pair of them, each drawn `draws` times. A mapping gives the recipes
    other names.

    Words, phrases and entities are found as the corpus found them; with a tokenizer alone, words automatically.
    """
    arguments.text("text", text)
    arguments.count("draws", draws)
    named = recipes if isinstance(recipes, Mapping) else dict(enumerate(_listed(recipes)))
    read = {name: recipe_of(each, f"recipes[{name!r}]") for name, each in named.items()}
    given = source if isinstance(source, Tokenizer) else corpus_of(source, "source")
    return masked_sentence(
        {str(name): each for name, each in read.items()} if isinstance(recipes, Mapping) else list(read.values()),
        given, text, draws, seed, pair=pair,
    ).picture(lang)  # fmt: skip


def _listed(recipes: object) -> list[AnyRecipe]:
    return arguments.items("recipes", recipes, 'a list of recipes or of their names: ["bert", "bert-wwm"]')


def masked_sentence(
    recipes: Sequence[Recipe] | Mapping[str, Recipe],
    source: Corpora | Tokenizer,
    text: str,
    draws: int = 3,
    seed: int = 0,
    step: int | None = None,
    pair: str | None = None,
) -> Sentence:
    """The sentence under every recipe: at a step of training, or else in each of its stages."""
    named = recipes if isinstance(recipes, Mapping) else {each.name: each for each in recipes}
    if not isinstance(recipes, Mapping) and len(named) < len(recipes):
        raise InputError("two recipes have one name", repair="give a mapping from names to recipes")
    if not 1 <= draws <= MOST_DRAWS:
        raise InputError(f"{draws} draws of a sentence", repair=f"draw it 1 to {MOST_DRAWS} times")
    tokenizer = source if isinstance(source, Tokenizer) else source.tokenizer
    facts = facts_of(source) if isinstance(source, Tokenizer) else source.facts
    texts = read_texts(text, pair, source)
    plain = own_row(texts, tokenizer, frame_of(list(named.values())))
    keys = randomness.keys(seed, DRAWS, np.arange(draws))
    found: list[Masking] = []
    for name, recipe in named.items():
        require_synonyms(name, recipe)
        if not isinstance(source, Tokenizer):
            require_words(recipe, source)
        similar = similar_words(recipe.knowledge, tokenizer) if recipe.corruption.replace.similar else None
        for stage, config in stages_of(recipe, step):
            rows = corrupt(copies(plain, draws), config, keys, facts, similar)
            found.append(Masking(name=name + stage, config=config, rows=rows, marks=texts.marks))
    return Sentence(text=text, pair=pair, tokenizer=tokenizer, plain_rows=plain, maskings=tuple(found))


def _law(span: SpanConfig) -> str:
    """The law with its numbers."""
    numbers = {
        "weights": "/".join(f"{weight:g}" for weight in span.weights),
        "geometric": f"{span.p:g}, 1-{span.longest}",
        "poisson": f"{span.mean:g}",
    }
    return f"{span.law} {numbers.get(span.law, '')}".strip()


def stages_of(recipe: Recipe, step: int | None) -> Iterator[tuple[str, CorruptionConfig]]:
    """What is added to the recipe's name, and the corruption: of the step's stage, or of each."""
    config, stages = recipe.corruption, recipe.corruption.stages
    if not stages or step is not None:
        yield "", config.at((step or 0) / recipe.training.steps)
        return
    for number, stage in enumerate(stages, 1):
        yield f" {number}/{len(stages)} {stage.unit}", config.model_copy(update={"unit": stage.unit, "stages": ()})


def require_synonyms(name: str, recipe: Recipe) -> None:
    if recipe.corruption.rate > 0 and recipe.corruption.replace.similar > 0 and not recipe.knowledge.synonyms:
        raise RecipeError(
            f"{name} puts words of like meaning in place of others, but knowledge.synonyms names no file of them",
            where="corruption.replace.similar",
            repair=f"--set knowledge.synonyms=FILE ({SYNONYM_FILES}), or leave out {name}",
        )


def facts_of(tokenizer: Tokenizer) -> CorpusFacts:
    """Without a corpus every ordinary piece counts as seen once."""
    size = tokenizer.vocabulary

    def once() -> Any:
        return np.bincount(tokenizer.ordinary, minlength=size)

    return CorpusFacts(size, tokenizer.specials, once, lambda: tokenizer.ordinary)
