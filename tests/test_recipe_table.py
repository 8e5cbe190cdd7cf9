"""A recipe in a few words: what `maskery recipes` prints, worked out from the values."""

import pytest

from maskery.recipes.recipe import names, recipe, table
from maskery.recipes.table import summary

SAID = {
    "albert": "word n-grams 54.5/27.3/18.2, 80/10/10, static x40",
    "roberta": "token, 80/10/10, dynamic",
    "bert-wwm": "word, 80/10/10, static x10",
    "electra": "token, 85 mask / 15 keep, dynamic",
    "spanbert": "geometric spans of words, 80/10/10 per span, dynamic, random from corpus",
    "ernie": "token, then phrase, then entity, 80/10/10, dynamic",
    "nezha": "word, 80/10/10, static x5",
    "macbert": "word n-grams 40/30/20/10, 15 % of words, 80 similar / 10 random / 10 keep per word, static x10",
    "structbert": "token, 80/10/10, 5 % of trigrams shuffled, static x10",
}


def test_table_is_worked_out_from_the_files():
    rows = {row["name"]: row for row in table()}
    assert list(rows) == names()
    assert rows["bert"] == {
        "name": "bert",
        "rows": "segment pair",
        "corruption": "token, 80/10/10, static x10",
        "visibility": "full",
        "model": "learned positions, post-norm",
        "objectives": "masked token + next sentence",
    }
    assert rows["roberta"]["model"] == "= bert"
    assert rows["unilm"]["visibility"] == "1/3 full, 1/3 prefix, 1/6 causal, 1/6 reverse"
    assert rows["roberta"]["rows"] == "full sentences"
    assert {name: rows[name]["corruption"] for name in rows if name in SAID} == SAID


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"rate": 0}, "none"),
        ({"rate": 0.4, "replace": {"mask": 1, "random": 0, "keep": 0}}, "token, 40 %, 100 mask, static x10"),
        ({"rate": 0, "shuffle.rate": 0.1, "shuffle.size": 4}, "10 % of runs of 4 shuffled"),
        ({"span": {"law": "weights", "weights": [1, 0.5, 0.25]}}, "token n-grams 57.1/28.6/14.3, 80/10/10, static x10"),
        (
            {"unit": "word", "span": {"law": "geometric", "longest": 5}},
            "geometric spans of words longest 5, 80/10/10, static x10",
        ),
        (
            {"stages": [{"unit": "word", "share": 2}, {"unit": "entity", "share": 1}]},
            "word x2, then entity x1, 80/10/10, static x10",
        ),
        (
            {"order": {"sentences": True, "rotate": 0.5}, "ngram.longest": 3, "random_from": "ordinary"},
            "token, 80/10/10, sentences permuted, 50 % rotated, one run of 2 to 3 words, static x10, "
            "random from ordinary",
        ),
    ],
    ids=["none", "rate", "shuffle", "weights", "geometric", "stages", "order"],
)
def test_corruption_in_a_few_words(changes, said):
    assert summary(recipe("bert", {f"corruption.{key}": value for key, value in changes.items()}))["corruption"] == said


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, "learned positions, post-norm"),
        ({"share": "all", "embedding": 128}, "learned positions, post-norm, layers shared, embedding 128"),
        ({"share": "attention", "groups": 3}, "learned positions, post-norm, attention shared in 3 groups"),
        ({"share": "feedforward", "norm": "pre"}, "learned positions, pre-norm, feed-forward shared"),
    ],
    ids=["plain", "all", "attention", "feedforward"],
)
def test_model_in_a_few_words(changes, said):
    assert summary(recipe("bert", {f"model.{key}": value for key, value in changes.items()}))["model"] == said
