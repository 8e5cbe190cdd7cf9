"""What batches of every recipe promise: a row is itself whoever makes it and beside whom; padding is never asked."""

import numpy as np
import pytest
import torch
from tiny import build

from maskery.feed import Feed
from maskery.objectives.config import OBJECTIVES
from maskery.objectives.masked_token import DRAWS
from maskery.recipes.recipe import names, recipe
from maskery.train.loop import batches_from

STEPS = 6
SMALL = {"training.length": 24, "training.batch": 7, "training.phases": [], "training.steps": STEPS}
GRIDS = ("ids", "original", "segments", "positions", "edit")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return build(tmp_path_factory.mktemp("feeds"))


@pytest.fixture(scope="module")
def similar(corpus, tmp_path_factory):
    """Groups of the corpus's own words, so that some are found and some are not."""
    ids, counts = np.unique(np.asarray(corpus.tokens[:]), return_counts=True)
    common = corpus.tokenizer.tokens(ids[np.argsort(-counts, kind="stable")][:30])
    words = [word for word in common if word.isalpha()]
    file = tmp_path_factory.mktemp("similar") / "similar.txt"
    file.write_text("\n".join(" ".join(words[n : n + 3]) for n in range(0, len(words) - 2, 3)), encoding="utf-8")
    return file


@pytest.fixture
def feed(request, corpus, similar):
    made = recipe(request.param, SMALL)
    if made.corruption.replace.similar:
        made = made.changed({"knowledge.synonyms": str(similar)})
    return Feed(made, corpus, 3)


every_recipe = pytest.mark.parametrize("feed", names(), indirect=True)


def rows_of(batches):
    """Each row without its padding, and what is asked of it at which of its slots."""
    found = []
    for batch in batches:
        width = batch.ids.shape[1]
        for row, length in enumerate(batch.length.tolist()):
            grids = [getattr(batch, name)[row, :length].tolist() for name in GRIDS]
            asked = {}
            for name, targets in batch.targets.items():
                of_rows = OBJECTIVES.get(name).needs_pooler
                here = (targets.index if of_rows else targets.index // width) == row
                places = [] if of_rows else (targets.index[here] % width).tolist()
                draws = [targets.extra[DRAWS][here].tolist()] if DRAWS in targets.extra else []
                asked[name] = (places, targets.label[here].tolist(), *draws)
            views = [view.ids[view.rows == batch.rows[row]].tolist() for view in batch.views.values()]
            found.append((int(batch.rows[row]), *grids, asked, [[trimmed(ids) for ids in view] for view in views]))
    return found


def trimmed(ids):
    """Without the padding, of which the number is 0."""
    return [each for each in ids if each]


@every_recipe
def test_a_row_does_not_depend_on_the_rows_beside_it(feed):
    for step in (0, STEPS // 2, STEPS - 1):
        whole = rows_of([feed.batch(step)])
        ranks = [feed.micro_batches(step, rank, 3, 2) for rank in range(3)]
        assert rows_of([each for rank in ranks for each in rank]) == whole


@every_recipe
def test_workers_change_nothing(feed):
    alone, helped = (list(batches_from(feed, 0, STEPS, [3], workers)) for workers in (0, 2))
    assert [rows_of(each) for each in helped] == [rows_of(each) for each in alone]


@every_recipe
def test_specials_and_padding_are_never_chosen_nor_asked(feed):
    specials = feed.corpus.specials
    for step in range(STEPS):
        batch = feed.batch(step)
        width = batch.ids.shape[1]
        padding = torch.arange(width) >= batch.length[:, None]
        closed = padding | (batch.original == specials.cls) | (batch.original == specials.sep)
        assert (batch.ids[padding] == specials.pad).all()
        assert torch.equal(batch.ids[closed], batch.original[closed])
        assert not batch.edit[closed].any()
        assert batch.edit[~closed].any() or not feed.recipe.corruption.rate
        for name, targets in batch.targets.items():
            if name == "replaced_token":  # asked of every token, [CLS] and [SEP] too
                assert torch.equal(targets.index, (~padding).flatten().nonzero().squeeze(1))
            elif name == "next_token":  # every token is an answer, and [SEP] too, but for a row's first
                answers = targets.index + 1
                assert not padding.flatten()[answers].any()
                assert len(answers) == batch.tokens - batch.size
                assert torch.equal(targets.label, batch.original.flatten()[answers])
            elif not OBJECTIVES.get(name).needs_pooler:
                assert not closed.flatten()[targets.index].any()
                assert torch.equal(targets.label, batch.original.flatten()[targets.index])


@pytest.mark.parametrize("feed", ["macbert"], indirect=True)
def test_similar_words_are_those_of_the_file_as_it_was(feed, similar):
    before = rows_of([feed.batch(step) for step in range(STEPS)])
    text = similar.read_text(encoding="utf-8")
    try:
        similar.write_text("\n".join(reversed(text.split())), encoding="utf-8")
        assert rows_of([feed.batch(step) for step in range(STEPS)]) == before
    finally:
        similar.write_text(text, encoding="utf-8")
