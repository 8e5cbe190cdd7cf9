"""The matrix of improvements: what the survey says is in it, each column follows its key, and the page shows it."""

import pytest

from maskery.recipes.matrix import COLUMNS, improvements, matrix
from maskery.recipes.recipe import names, recipe

SURVEY = {
    "ngrams": {"spanbert", "albert"},
    "dynamic": {"roberta"},
    "larger_batch": {"roberta"},
    "longer_training": {"roberta"},
    "more_data": {"roberta", "xlnet"},
    "permutation": {"xlnet"},
    "relative_positions": {"xlnet"},
    "shared_layers": {"albert"},
    "factorised": {"albert"},
    "no_next_sentence": {"roberta", "spanbert"},
    "other_tasks": {"unilm", "albert"},
}
"""The table of a survey of 2019, column by column."""


def of(name="bert", **changes):
    """The columns that a changed recipe has."""
    changed = recipe(name, {key.replace("__", "."): value for key, value in changes.items()})
    return {key for key, has in improvements(changed, recipe("bert")).items() if has}


def test_the_columns_are_the_surveys():
    assert [column.zh for column in COLUMNS] == [
        "全词掩盖",
        "n-gram掩盖",
        "动态掩盖",
        "更大的batch",
        "更长训练",
        "更多数据",
        "全排列",
        "相对位置",
        "层间共享",
        "因式分解",
        "去掉下一句判断",
        "其他任务",
    ]
    assert SURVEY.keys() < {column.key for column in COLUMNS}


def test_bert_improves_on_nothing():
    found = matrix()
    assert list(found) == names()
    assert not any(found["bert"].values())


@pytest.mark.parametrize("column", SURVEY)
def test_the_survey_is_part_of_the_matrix(column):
    found = matrix()
    assert {name for name in SURVEY[column] if name in found} <= {name for name in found if found[name][column]}


def test_what_the_survey_could_not_have():
    found = {name: {key for key, has in row.items() if has} for name, row in matrix().items()}
    assert found["bert-wwm"] == {"whole_words", "larger_batch", "longer_training"}
    assert found["structbert"] == {"other_tasks"}, "three ways contain the next sentence: nothing was dropped"
    assert {"no_next_sentence", "other_tasks"} <= found["macbert"]
    assert {"whole_words", "ngrams"} <= found["ernie"]


@pytest.mark.parametrize(
    ("changes", "column"),
    [
        ({"corruption__unit": "word"}, "whole_words"),
        ({"corruption__span": {"law": "geometric"}}, "ngrams"),
        ({"corruption__ngram__longest": 4}, "ngrams"),
        ({"corruption__when": "dynamic"}, "dynamic"),
        ({"training__batch": 257}, "larger_batch"),
        ({"training__steps": 1_000_001}, "longer_training"),
        ({"data": 1.1}, "more_data"),
        ({"model__embedding": 128}, "factorised"),
        ({"objectives__next_sentence": False}, "no_next_sentence"),
        ({"objectives__span_boundary__weight": 1.0}, "other_tasks"),
    ],
    ids=["word", "span", "ngram", "dynamic", "batch", "steps", "data", "embedding", "no question", "a question"],
)
def test_each_column_follows_its_key(changes, column):
    assert of(**changes) - {"longer_training" if "training__batch" in changes else ""} == {column}


def test_a_text_that_is_not_corrupted_has_no_masks_to_improve():
    assert of(corruption__rate=0, corruption__unit="word", corruption__when="dynamic") == set()


def test_what_no_recipe_has_yet_is_read_from_its_key():
    bert = recipe("bert")
    columns = {column.key: column.holds for column in COLUMNS}
    permuted = bert.model_copy(update={"visibility": bert.visibility.model_copy(update={"kind": "permuted"})})
    assert columns["permutation"](permuted, bert)
    relative = bert.model_copy(update={"model": bert.model.model_copy(update={"positions": "nezha"})})
    assert columns["relative_positions"](relative, bert)
    assert not any(columns[key](bert, bert) for key in ("permutation", "relative_positions", "shared_layers"))
