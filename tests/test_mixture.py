"""Several corpora in one run: exact shares in every block, no repeats within an epoch, the same rows for everyone."""

import pickle
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from small_run import WORDS, corpus_in, text_of, tiny_recipe

import maskery
from maskery.corpus.mixture import Joined, Mixture, unique_ends
from maskery.corpus.weights import LARGEST_BLOCK, whole_weights
from maskery.errors import CorpusError, InputError
from maskery.feed import Feed
from maskery.inspection import rates
from maskery.rows.order import Order
from maskery.text.tokenizer import Tokenizer
from maskery.text.training import LAYOUT

WEIGHTS = st.lists(st.integers(1, 12), min_size=1, max_size=4)


@pytest.fixture(scope="module")
def corpora(tmp_path_factory):
    """Two corpora of different sizes, built with one tokenizer."""
    folder = tmp_path_factory.mktemp("corpora")
    return [corpus_in(folder / name, documents, seed) for name, documents, seed in (("a", 30, 0), ("b", 12, 1))]


@pytest.fixture(scope="module")
def mixed(corpora):
    return Mixture([(corpora[0], 3), (corpora[1], 1)])


# -- weights


@pytest.mark.parametrize(
    ("given_weights", "whole"),
    [
        ([3, 1], (3, 1)),
        ([6, 2], (3, 1)),
        ([0.75, 0.25], (3, 1)),
        ([1 / 3, 2 / 3], (1, 2)),
        ([Fraction(1, 3), 1], (1, 3)),
        ([0.1, 0.7, 0.2], (1, 7, 2)),
        ([5], (1,)),
        ([999, 1], (999, 1)),
        ([123456, 654321], (159, 841)),
        ([0.12345, 1], (11, 89)),
    ],
)
def test_weights_become_whole_numbers(given_weights, whole):
    assert whole_weights(given_weights, "abc"[: len(given_weights)]) == whole


@given(st.lists(st.floats(0.05, 20), min_size=1, max_size=6))
def test_shares_are_met_to_a_thousandth(weights):
    found = whole_weights(weights, list(map(str, range(len(weights)))))
    assert sum(found) <= LARGEST_BLOCK
    for number, weight in zip(found, weights, strict=True):
        assert number / sum(found) == pytest.approx(weight / sum(weights), abs=1 / LARGEST_BLOCK)


@pytest.mark.parametrize("weight", [0, -1, float("nan"), float("inf"), 1e-9])
def test_a_weight_that_says_nothing_is_refused(corpora, weight):
    with pytest.raises(InputError, match="weight of a/corpus is") as caught:
        Mixture([(corpora[0], weight), (corpora[1], 1)])
    assert caught.value.repair


# -- the order of visits


@given(WEIGHTS, st.integers(0, 5), st.data())
def test_every_block_has_its_shares(weights, seed, data):
    sizes = tuple(data.draw(st.integers(1, 40)) for _ in weights)
    order, whole = Order(seed, "train 0", sizes, tuple(weights)), sum(weights)
    first = whole * data.draw(st.integers(0, 1000))
    parts, turns = order.turns(np.arange(first, first + 3 * whole))
    for block in range(3):
        mine = slice(block * whole, (block + 1) * whole)
        assert np.bincount(parts[mine], minlength=len(weights)).tolist() == weights
    for part, weight in enumerate(weights):
        begin = first // whole * weight
        assert turns[parts == part].tolist() == list(range(begin, begin + 3 * weight))


@given(WEIGHTS, st.integers(0, 5), st.data())
def test_no_row_comes_again_before_its_corpus_is_walked_through(weights, seed, data):
    sizes = tuple(data.draw(st.integers(1, 30)) for _ in weights)
    order = Order(seed, "train 0", sizes, tuple(weights))
    epochs, rows = order.visit(np.arange(300))
    start = np.cumsum([0, *sizes])
    for part, size in enumerate(sizes):
        mine = (rows >= start[part]) & (rows < start[part + 1])
        assert (np.diff(epochs[mine]) >= 0).all()
        for epoch in np.unique(epochs[mine]):
            walked = rows[mine & (epochs == epoch)]
            assert len(set(walked.tolist())) == len(walked)
            if epoch < epochs[mine].max():
                assert len(walked) == size


@given(st.lists(st.integers(0, 10**9), min_size=1, max_size=50), WEIGHTS)
def test_a_visit_does_not_know_the_visits_beside_it(visits, weights):
    order = Order(1, "train 0", tuple(range(7, 7 + len(weights))), tuple(weights))
    together = order.visit(np.array(visits))
    for place, visit in enumerate(visits):
        alone = order.visit(np.array([visit]))
        assert (alone[0][0], alone[1][0]) == (together[0][place], together[1][place])


def test_blocks_differ():
    order = Order(0, "train 0", (50, 50), (3, 2))
    parts, _ = order.turns(np.arange(500))
    assert len({tuple(block) for block in parts.reshape(-1, 5).tolist()}) == 10, "all ways to place two of five"
    other, _ = Order(1, "train 0", (50, 50), (3, 2)).turns(np.arange(500))
    assert (parts != other).any()


# -- reading


@given(st.lists(st.integers(1, 9), min_size=1, max_size=4), st.data())
def test_joined_arrays_read_like_one(sizes, data):
    parts = [np.arange(size, dtype=np.uint16) + 100 * number for number, size in enumerate(sizes)]
    joined, whole = Joined(parts), np.concatenate(parts)
    places = np.array(data.draw(st.lists(st.integers(0, len(whole) - 1))), dtype=np.int64)
    assert joined.size == len(whole)
    assert joined[places].tolist() == whole[places].tolist()
    assert joined[places].dtype == np.uint16


def rows_of(batch):
    return [batch.ids[n, : batch.length[n]].tolist() for n in range(batch.size)]


@pytest.mark.parametrize("name", ["bert", "roberta"])
def test_every_row_is_the_row_of_its_corpus(corpora, mixed, name):
    """Before corruption a row of the mixture is the row that its corpus has alone."""
    feed = Feed(tiny_recipe(name), mixed, 4)
    phase, epochs, numbers = feed.numbers(2)
    rows = feed.corrupted(0, phase, epochs, numbers)
    part, own = feed.corpus_of(phase, numbers)
    assert set(part.tolist()) == {0, 1}
    for place in range(len(rows)):
        alone = Feed(tiny_recipe(name), corpora[part[place]], 4)
        wanted = alone.corrupted(0, phase, epochs[[place]], own[[place]])
        mine = slice(int(rows.start[place]), int(rows.start[place + 1]))
        assert rows.original[mine].tolist() == wanted.original.tolist()
        assert rows.flags[mine].tolist() == wanted.flags.tolist()
        assert rows.label[place] == wanted.label[0]


@pytest.mark.parametrize("name", ["bert", "roberta"])
def test_one_corpus_alone_is_what_it_was(corpora, name):
    recipe, corpus = tiny_recipe(name), corpora[0]
    one = Mixture([(corpus, 7)])
    assert one.fingerprint == corpus.fingerprint
    for split in ("train", "heldout"):
        for step in (0, 1, 30):
            plain, mixture = (maskery.batch(recipe, each, step, seed=3, split=split) for each in (corpus, one))
            for field in ("rows", "ids", "length", "segments", "original", "edit"):
                assert torch.equal(getattr(plain, field), getattr(mixture, field))


def test_the_order_of_one_corpus_is_written_down():
    """The order of version 0.1 runs: another would change what a resumed run reads."""
    epochs, rows = Order(7, "train 0", (300,)).visit(np.array([0, 1, 2, 299, 300, 601]))
    assert epochs.tolist() == [0, 0, 0, 0, 1, 2]
    assert rows.tolist() == [15, 81, 165, 78, 81, 276]


def test_batches_are_pure_and_ranks_and_micro_batches_see_the_same(mixed):
    feed = Feed(tiny_recipe(), mixed, 1)
    whole = feed.batch(5)
    again = Feed(tiny_recipe(), pickle.loads(pickle.dumps(mixed)), 1).batch(5)
    assert torch.equal(whole.ids, again.ids)
    ranks = [feed.batch(5, rank, 3) for rank in range(3)]
    micro = [batch for rank in range(2) for batch in feed.micro_batches(5, rank, 2, 3)]
    for parts in (ranks, micro):
        assert torch.cat([part.rows for part in parts]).tolist() == whole.rows.tolist()
        assert [row for part in parts for row in rows_of(part)] == rows_of(whole)


def test_shares_of_training_and_of_the_part_set_aside(mixed):
    feed = Feed(tiny_recipe(training__batch=12), mixed, 0)
    phase = feed.phases[0]
    for step in range(5):
        _, _, numbers = feed.numbers(step)
        assert np.bincount(feed.corpus_of(phase, numbers)[0]).tolist() == [9, 3]
    heldout = Feed(tiny_recipe(), mixed, 0, "heldout")
    _, rows = heldout.first(phase, 8)
    assert np.bincount(heldout.corpus_of(phase, rows)[0]).tolist() == [6, 2]


def test_without_weights_one_epoch_is_all_rows_of_all(corpora):
    feed = Feed(tiny_recipe(), Mixture(corpora), 0)
    phase = feed.phases[0]
    sizes = [len(Feed(tiny_recipe(), corpus, 0).plan(phase)) for corpus in corpora]
    assert np.diff(feed.plan(phase).part_start).tolist() == sizes
    assert feed.shares(phase).tolist() == pytest.approx([size / sum(sizes) for size in sizes])
    epochs, rows = feed.first(phase, 10**6)
    assert not epochs.any()
    assert sorted(rows.tolist()) == list(range(sum(sizes)))


def test_masks_differ_between_corpora(mixed):
    feed = Feed(tiny_recipe(corruption__when="static"), mixed, 0)
    phase = feed.phases[0]
    start = feed.plan(phase).part_start
    keys = feed.mask_keys(phase, np.zeros(20, dtype=np.int64), np.r_[0:10, start[1] : start[1] + 10])
    assert len(set(keys.tolist())) == 20


def test_the_plan_counts_what_the_parts_count(corpora, mixed):
    phase = Feed(tiny_recipe(), mixed, 0).phases[0]
    whole = Feed(tiny_recipe(), mixed, 0).plan(phase).counts
    parts = [Feed(tiny_recipe(), corpus, 0).plan(phase).counts for corpus in corpora]
    assert whole == {name: sum(part[name] for part in parts) for name in parts[0]}


# -- facts


def test_facts(corpora, mixed):
    a, b = corpora
    assert (mixed.vocabulary, mixed.specials) == (a.vocabulary, a.specials)
    assert mixed.names == ("a/corpus", "b/corpus")
    assert (Mixture(corpora).facts.frequency == a.facts.frequency + b.facts.frequency).all()
    word = int(np.argmax(a.facts.frequency))
    rates = [corpus.facts.frequency[word] / corpus.tokens.size for corpus in corpora]
    found = mixed.facts.frequency / mixed.facts.frequency.sum()
    assert found[word] == pytest.approx(0.75 * rates[0] + 0.25 * rates[1], rel=1e-2)
    assert len(mixed.documents("heldout")) == sum(len(corpus.documents("heldout")) for corpus in corpora)


def test_fingerprints_tell_parts_weights_and_order_apart(corpora):
    a, b = corpora
    mixtures = [Mixture([a, b]), Mixture([b, a]), Mixture([(a, 1), (b, 1)]), Mixture([(a, 3), (b, 1)])]
    found = [each.fingerprint for each in [*mixtures, a, b]]
    assert len(set(found)) == len(found)
    assert Mixture([(a, 6), (b, 2)]).fingerprint == mixtures[-1].fingerprint
    assert pickle.loads(pickle.dumps(mixtures[-1])).fingerprint == mixtures[-1].fingerprint


def test_names_are_as_short_as_they_can_be(tmp_path):
    assert unique_ends([tmp_path / "a", tmp_path / "b"]) == ("a", "b")
    assert unique_ends([tmp_path / "x/a", tmp_path / "y/a", tmp_path / "b"])[:2] == ("x/a", "y/a")


def test_inspection_measures_the_shares(mixed):
    found = rates(Feed(tiny_recipe(), mixed, 0), 100).plain()
    assert found["corpora"] == found["nominal"]["corpora"] == {"a/corpus": 0.75, "b/corpus": 0.25}


# -- what is refused


def test_what_cannot_be_mixed(corpora, tmp_path):
    a, b = corpora
    with pytest.raises(InputError, match="no corpora"):
        Mixture([])
    with pytest.raises(InputError, match="has no weight, others have one"):
        Mixture([(a, 1), b])
    with pytest.raises(InputError, match="given twice"):
        Mixture([(a, 1), (b, 1), (maskery.Corpus.open(a.path), 1)])
    turned = Tokenizer.from_pieces([*LAYOUT, ".", *reversed(WORDS)])
    (tmp_path / "text.txt").write_text(text_of(), encoding="utf-8")
    other = maskery.Corpus.build(tmp_path / "text.txt", tmp_path / "other", tokenizer=turned, workers=0)
    with pytest.raises(CorpusError, match="one run needs one tokenizer") as caught:
        Mixture([(a, 1), (other, 1)])
    said = caught.value.text()
    for part in (a, other):
        assert str(part.path) in said
        assert part.tokenizer.fingerprint[:12] in said
    assert f"--tokenizer {a.path}" in said


def test_a_part_that_gives_no_rows_is_named(corpora, tmp_path):
    small = corpus_in(tmp_path, documents=1, seed=5, heldout=0.0)
    with pytest.raises(InputError, match=str(small.path)):
        Feed(tiny_recipe("bert"), Mixture([(corpora[0], 1), (small, 1)]), 0).batch(0)
