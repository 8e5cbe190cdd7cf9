"""Words of like meaning learnt from the corpus itself, for a recipe that needs them (MacBERT) and names no file.

How the words of the corpus meet gives each a vector, and the nearest vectors of the same part of speech and of similar
frequency are its similar words. A thesaurus knows better which words may stand for each other; this is what any text
gives.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from maskery import files
from maskery.corpus.mixture import Corpora, Mixture
from maskery.corpus.store import Corpus
from maskery.recipes.recipe import Recipe
from maskery.words.ppmi import ppmi_vectors
from maskery.words.similar import RATIO, Counts, Rules, similar_words
from maskery.words.vectors import WordVectors
from maskery.words.vocabulary import read_words

SIMILAR = "similar-words.tsv"
"""In the folder of the run that learnt it."""
_MIN_COUNT = 5
Say = Callable[[str], None]


def lacks_similar(recipe: Recipe, corpus: Corpora) -> bool:
    """Whether the recipe puts similar words into rows, nobody names them, and they can be learnt."""
    return bool(recipe.corruption.replace.similar and not recipe.knowledge.synonyms and not isinstance(corpus, Mixture))


def learn_similar(corpus: Corpora, run: Path, say: Say) -> Path:
    """The table of similar words, in the run's folder; one that is there already is taken."""
    assert isinstance(corpus, Corpus)
    made = run / SIMILAR
    if made.is_file():
        return made
    words = read_words(corpus, _MIN_COUNT)
    vectors = WordVectors(words.words, words.counts, ppmi_vectors(words), {})
    counts = Counts(words.words, words.counts)
    facts = {"source": "the corpus", "counts": "its own"}
    found = similar_words(
        vectors, corpus.tokenizer, Rules(same_part_of_speech=True, frequency_ratio=RATIO), counts=counts, made=facts
    )
    with files.writing(run):
        run.mkdir(parents=True, exist_ok=True)
    found.table.save(made)
    say(
        f"--set knowledge.synonyms={made}: {len(found.table.entries):,} words with similar ones, learnt from the "
        "corpus (a thesaurus is better)"
    )
    return made
