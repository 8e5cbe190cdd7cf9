"""The `[corruption]` table: what is refused and how it is told, stages, and corpora without words."""

from __future__ import annotations

import re
import tomllib

import pytest
from tiny import build

from maskery.corruption.config import LAWS, CorruptionConfig
from maskery.errors import CorpusError, RecipeError
from maskery.explain import maskings
from maskery.feed import Feed
from maskery.recipes.recipe import names, recipe

INFILL = "{ mask = 0.0, random = 0.0, keep = 0.0, infill = 1.0 }"
WRONG = {
    "corruption.replace.mask=0.5": r"shares sum to 0.7, not to 1: mask 0.5 \+ random 0.1 \+ keep 0.1",
    "corruption.replace={ mask = 0.0, random = 0.0, keep = 0.0 }": "shares sum to 0, not to 1: all are 0",
    "corruption.span.p=0.5": r"does not read 'p'\s+repair: law = \"geometric\", which reads 'p'; or the whole table",
    "corruption.span={ law = 'weights', weights = [1.0], mean = 2.0 }": "'weights' does not read 'mean'; it reads weig",
    "corruption.span={ law = 'geometric', mean = 2.0 }": "does not read 'mean'; it reads p and longest",
    "corruption.span.law=weights": "needs weights .*, and has .*\n  repair: for example weights = ",
    "corruption.span={ law = 'weights', weights = [0.0, 0.0] }": "one of them above 0",
    "corruption.span={ law = 'weights', weights = [0.5, -0.1] }": "not negative",
    "corruption.span={ law = 'weights', weights = [nan] }": "finite number",
    "corruption.span.law=geometrc": "did you mean geometric",
    "corruption.span.law=poisson": "only replace.infill = 1",
    "corruption.unit=wrd": "did you mean word",
    "corruption.of=words": "of = 'words' counts words, but the unit is a token",
    "corruption.decide=row": "'token', 'word' or 'span'",
    f"corruption.replace={INFILL}": "one mask for a span\n  repair: set decide = 'span'",
    "corruption.replace={ mask = 0.2, similar = 0.6 }": "similar takes whole words",
    "corruption.stages=[{ unit = 'word', share = 0.0 }]": "greater than 0",
    "corruption.shuffle.size=1": "greater than or equal to 2",
    "corruption.rate=1.0": "less than 1",
    "corruption.rate=-0.1": "greater than or equal to 0",
}


def setting(text):
    key, _, value = text.partition("=")
    try:
        return {key: tomllib.loads(f"value = {value}")["value"]}
    except tomllib.TOMLDecodeError:
        return {key: value}


@pytest.mark.parametrize("wrong", WRONG)
def test_what_cannot_be_is_refused_with_its_place(wrong):
    with pytest.raises(RecipeError) as error:
        recipe("bert", setting(wrong))
    assert re.search(WRONG[wrong], str(error.value))
    assert "corruption" in str(error.value)
    assert error.value.exit_code == 2
    assert error.value.repair


def test_another_law_is_given_as_a_whole_table():
    """The repair of a law that stands beside the numbers of another one is what works."""
    with pytest.raises(RecipeError) as error:
        recipe("macbert", {"corruption.span.law": "geometric"})
    assert 'corruption.span = { law = "geometric", p = ..., longest = ... }' in error.value.repair
    span = recipe("macbert", {"corruption.span": {"law": "geometric", "p": 0.3, "longest": 4}}).corruption.span
    assert (span.law, span.p, span.longest, span.weights) == ("geometric", 0.3, 4, ())


def test_a_law_reads_its_numbers_and_no_others():
    numbers = {"weights": {"weights": [1.0, 0.5]}, "geometric": {"p": 0.5, "longest": 3}, "poisson": {"mean": 2.0}}
    for law in LAWS.names():
        span = {"law": law, **numbers.get(law, {})}
        extra = {"decide": "span", "replace": {"mask": 0, "random": 0, "keep": 0, "infill": 1}}
        assert CorruptionConfig(span=span, **extra).span.law == law
        for other, given in numbers.items():
            if other != law:
                with pytest.raises(ValueError, match="does not read"):
                    CorruptionConfig(span={**span, **given}, **extra)


def test_stages_follow_each_other_by_their_shares():
    shares = [{"unit": "token", "share": 2}, {"unit": "phrase", "share": 1}, {"unit": "entity", "share": 1}]
    config = CorruptionConfig(stages=shares)
    assert config.units == ("token", "phrase", "entity")
    at = {done: config.at(done) for done in (0.0, 0.49, 0.5, 0.74, 0.75, 0.99, 1.0)}
    assert [each.unit for each in at.values()] == ["token"] * 2 + ["phrase"] * 2 + ["entity"] * 3
    assert all(each.stages == () and each.rate == config.rate for each in at.values())
    alone = CorruptionConfig(unit="word")
    assert alone.at(0.3) is alone


@pytest.fixture(scope="module")
def wordless(tmp_path_factory):
    return build(tmp_path_factory.mktemp("wordless"), words="none")


@pytest.mark.parametrize("name", names())
def test_every_recipe_says_whether_it_is_about_words(name, wordless):
    asked = recipe(name)
    if asked.corruption.about_words:
        with pytest.raises(CorpusError, match="--words none"):
            Feed(asked, wordless, 0)
    else:
        Feed(asked, wordless, 0)
    told = {"bert": "", "roberta": "", "structbert": "", "bert-wwm": "unit = 'word'", "infoword": "ngram.longest = 10"}
    assert asked.corruption.about_words == told.get(name, asked.corruption.about_words)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"corruption.unit": "word"}, "corruption.unit = 'word'"),
        ({"corruption.decide": "word"}, "corruption.decide = 'word'"),
        ({"corruption.stages": [{"unit": "token"}, {"unit": "entity"}]}, "one has unit = 'entity'"),
        ({"corruption.ngram": {"shortest": 2, "longest": 5}}, "corruption.ngram.longest = 5"),
    ],
)
def test_words_on_a_corpus_without_them_are_refused_with_the_repair(changes, told, wordless):
    asked = recipe("bert", changes)
    for use in (lambda: Feed(asked, wordless, 0), lambda: maskings([asked], wordless, "a cat")):
        with pytest.raises(CorpusError, match=told) as error:
            use()
        assert error.value.where == str(wordless.path)
        assert "corpus build FILES --words auto" in error.value.repair


def test_a_rate_of_nothing_needs_no_words(wordless):
    changes = {"corruption.unit": "word", "corruption.rate": 0, "objectives.masked_token": False}
    assert not Feed(recipe("bert", changes), wordless, 0).batch(0).edit.any()
