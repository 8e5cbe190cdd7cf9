"""Permuted segments in a recipe: what they need, and what is said of their labels."""

from small_run import corpus_in, tiny_recipe

from maskery.feed import Feed
from maskery.inspection.asked import nominal
from maskery.recipes.recipe import check

PERMUTED = {
    "rows__kind": "permuted_segments",
    "rows__pair": "permuted",
    "objectives__next_sentence": False,
    "objectives__segment_order__weight": 1.0,
}


def test_one_segment_embedding_is_enough():
    """Their segments are told apart by [SEP] alone; a pair's are not."""
    assert not check(tiny_recipe(**PERMUTED, model__segments=1))
    assert [each.piece for each in check(tiny_recipe(model__segments=1))] == ["model.segments"]


def test_a_question_out_of_sight_is_refused():
    refused = check(tiny_recipe(**PERMUTED, visibility__kind="packed"))
    assert "objectives.segment_order" in [each.piece for each in refused]


def test_labels_have_no_nominal_share(tmp_path):
    """How many segments there can be is the text's doing; of a pair, every label is as likely."""
    corpus = corpus_in(tmp_path)
    assert set(nominal(Feed(tiny_recipe(**PERMUTED), corpus, 0))["pair"].values()) == {None}
    assert nominal(Feed(tiny_recipe(), corpus, 0))["pair"] == {"next": 0.5, "other": 0.5}
