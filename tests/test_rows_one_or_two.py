"""ELECTRA's rows against a slow walk over sentences, and the shares that are drawn."""

from __future__ import annotations

import numpy as np
from chance import share_is
from fake_store import FakeStore, random_store

from maskery.randomness import key, scalars
from maskery.recipes.recipe import check, recipe
from maskery.rows.config import RowsConfig
from maskery.rows.plan import plan_rows

ROWS = RowsConfig(kind="one_or_two_segments", short=0.05)


def slow_rows(documents, length, short, seed):
    """Rows as lists of (segment, tokens), sentence by sentence, with the same draws in the same order."""
    draw, target, found, token = scalars(key(seed, "plan", 0)), length, [], 0
    for sizes in documents:
        sentences = []
        for size in sizes:
            sentences.append(list(range(token, token + size)))
            token += size
        gathered = []
        for number, sentence in enumerate(sentences):
            gathered.append(sentence)
            if sum(map(len, gathered)) < target and number + 1 < len(sentences):
                continue
            found.append(_one(gathered, length, target, draw))
            gathered, target = [], length
            if draw.random() < short:
                target = 5 + int(draw.random() * (length - 4))
    return found


def _one(sentences, length, target, draw):
    half = 10**9 if draw.random() < 0.1 else (target - 3) // 2
    first, second = [], []
    for sentence in sentences:
        below = len(first) + len(sentence) < half
        if not second and (not first or below or (len(first) < half and draw.random() < 0.5)):
            first += sentence
        else:
            second += sentence
    first = first[: length - 2]
    second = second[: max(0, length - 3 - len(first))]
    return [first, second] if second else [first]


def test_against_a_slow_walk():
    for seed in range(6):
        own = np.random.default_rng(seed)
        documents = [own.integers(1, 40, own.integers(1, 20)).tolist() for _ in range(30)]
        for length in (5, 16, 64, 200):
            plan = plan_rows(ROWS.model_copy(update={"short": 0.3}), FakeStore(documents), length, seed)
            pieces = [list(range(a, b)) for a, b in zip(plan.piece_start, plan.piece_end, strict=True)]
            rows = [pieces[a:b] for a, b in zip(plan.row_start[:-1], plan.row_start[1:], strict=True)]
            assert rows == slow_rows(documents, length, 0.3, seed)
            assert (plan.label == -1).all()


def test_shares():
    """Long documents of short sentences: what is one segment was drawn so."""
    plan = plan_rows(ROWS, FakeStore([[4] * 5000] * 8), 64, 0)
    many = len(plan)
    assert share_is(int((np.diff(plan.row_start) == 1).sum()), many, 0.1)
    assert share_is(plan.counts["short_rows"], many, 0.05)
    two = plan.row_start[:-1][np.diff(plan.row_start) == 2]
    sizes = plan.piece_end - plan.piece_start
    assert abs(float((sizes[two] / (sizes[two] + sizes[two + 1])).mean()) - 0.5) < 0.02
    assert (plan.piece_end[two] == plan.piece_start[two + 1]).all(), "the second segment follows the first"


def test_nothing_is_lost_unseen():
    store = random_store(3, 60)
    plan = plan_rows(ROWS, store, 48, 0)
    kept = int((plan.piece_end - plan.piece_start).sum())
    assert kept + plan.counts["cut_tokens"] == int(store.sentence_start[-1])


def test_two_segments_need_to_be_told_apart():
    assert [each.piece for each in check(recipe("electra", {"model.segments": 1}))] == ["model.segments"]
    assert not check(recipe("electra", {"model.segments": 0}))
    packed = check(recipe("electra", {"visibility.kind": "packed"}))
    assert [each.piece for each in packed] == ["visibility.kind"]
    assert "doc_sentences" in packed[0].repair
