"""Choosing a token: every rule against a slow form of it, draws against the probabilities they should have."""

from __future__ import annotations

import itertools
import math
from collections import Counter

import numpy as np
import pytest
import torch
from chance import surprise
from hypothesis import given, settings
from hypothesis import strategies as st

from maskery.errors import InputError
from maskery.randomness import keys
from maskery.text.tokenizer import Tokenizer
from maskery.writing import rules
from maskery.writing.how import How, how_of
from maskery.writing.pseudo import hidden_places
from maskery.writing.texts import Speller

numbers = st.floats(-8, 8, width=32).map(lambda x: round(x, 2))
scores = st.lists(numbers, min_size=1, max_size=9)
quick = settings(max_examples=40, deadline=None)


def kept(found):
    return {token for token, score in enumerate(found[0].tolist()) if score > rules.NONE}


@quick
@given(scores, st.integers(0, 12))
def test_top_k(row, k):
    least = sorted(row, reverse=True)[k - 1] if 0 < k < len(row) else min(row)
    assert kept(rules.most_probable(torch.tensor([row]), k)) == {t for t, score in enumerate(row) if score >= least}


@quick
@given(scores, st.floats(0.01, 1.0))
def test_top_p_is_the_smallest_set_that_reaches_it(row, p):
    weights = [math.exp(score) for score in row]
    order = sorted(range(len(row)), key=lambda token: (-row[token], token))
    chosen, sum_so_far = set(), 0.0
    for token in order:
        if sum_so_far / sum(weights) >= p and p < 1:
            break
        chosen.add(token)
        sum_so_far += weights[token]
    found = kept(rules.nucleus(torch.tensor([row]), p))
    edge = abs(sum(weights[token] for token in chosen) / sum(weights) - p) < 1e-5  # rounding may take one more
    assert found == chosen or (edge and abs(len(found) - len(chosen)) == 1)


@quick
@given(st.lists(st.integers(0, 3), max_size=12), st.integers(0, 4))
def test_no_stretch_comes_twice(history, size):
    def doubled(text):
        parts = [tuple(text[place : place + size]) for place in range(len(text) - size + 1)]
        return size > 0 and parts and parts[-1] in parts[:-1]

    assert rules.repeating(history, size) == {token for token in range(4) if doubled([*history, token])}


@quick
@given(scores, st.lists(st.integers(0, 8), max_size=6), st.floats(0.2, 5.0))
def test_penalty_for_repetition(row, history, penalty):
    mine = [token for token in history if token < len(row)]
    found = rules.penalised(torch.tensor([row]), [mine], penalty)[0].tolist()
    for token, score in enumerate(row):
        expected = score if token not in mine else score / penalty if score > 0 else score * penalty
        assert found[token] == pytest.approx(expected, rel=1e-5)


def test_draws_have_their_probabilities_and_depend_on_the_key_alone():
    row = torch.tensor([[1.0, 0.0, rules.NONE, 2.0, -1.0]])
    many = 4000
    drawn = rules.drawn(row.expand(many, -1), keys(1, "write", np.arange(many)), 5).tolist()
    counts = Counter(drawn)
    assert 2 not in counts
    share = row[0].double().softmax(0).tolist()
    possible = [0, 1, 3, 4]
    assert surprise([counts[token] for token in possible], [share[token] * many for token in possible]) < 4
    again = rules.drawn(row.expand(3, -1), keys(1, "write", np.array([7, 2, 7])), 5).tolist()
    assert again == [drawn[7], drawn[2], drawn[7]]


@pytest.mark.parametrize(
    ("given", "way"),
    [({}, "greedy"), ({"top_p": 0.9}, "sample"), ({"samples": 3}, "sample"), ({"beams": 2, "samples": 2}, "beam"),
     ({"steps": 9}, "gibbs"), ({"least": 2, "no_repeat": 3}, "greedy"), ({"stop": ("a",)}, "greedy")],
)  # fmt: skip
def test_settings_tell_the_way(given, way):
    assert how_of(None, given).how == way


def test_gibbs_draws_among_a_hundred_unless_told_otherwise():
    assert (how_of("gibbs", {}).top_k, how_of("gibbs", {"top_k": 0}).top_k, how_of("sample", {}).top_k) == (100, 0, 0)


@pytest.mark.parametrize(
    "given",
    [{"temperature": 0.0}, {"top_p": 0.0}, {"top_p": 1.5}, {"new": 0}, {"beams": 0}, {"repetition": -1.0},
     {"least": 9, "new": 3}, {"stop": ("",)}, {"top_k": 3, "beams": 2}, {"how": "gready"},
     {"how": "greedy", "top_k": 3}, {"how": "greedy", "samples": 2}, {"beams": 2, "samples": 3},
     {"how": "gibbs", "order": "up"},
     {"top_k": -1}, {"order": "random", "beams": 1},
     {"how": "gibbs", "burn_in": 2.0}, {"how": "gibbs", "stop": ("a",)}, {"beams": 2, "length_penalty": math.inf}],
    ids=lambda given: " ".join(f"{name}={value}" for name, value in given.items()),
)  # fmt: skip
def test_what_cannot_be_meant_is_refused_with_a_repair(given):
    with pytest.raises(InputError) as refused:
        how_of(given.get("how"), {name: value for name, value in given.items() if name != "how"})
    assert refused.value.repair


@quick
@given(st.integers(1, 30), st.integers(1, 8))
def test_every_place_is_hidden_once_and_not_too_many_at_a_time(size, masks):
    rounds = hidden_places(size, masks)
    assert sorted(place for places in rounds for place in places) == list(range(size))
    assert max(map(len, rounds)) <= masks
    assert len(rounds) == math.ceil(size / masks)
    assert all(b - a == len(rounds) for places in rounds for a, b in itertools.pairwise(places))


@pytest.fixture(scope="module")
def bytes_only():
    """A tokenizer whose tokens are single bytes: every Chinese character takes three."""
    from tokenizers import Tokenizer as Rust
    from tokenizers import decoders, models, pre_tokenizers

    marks = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    pieces = marks + sorted(pre_tokenizers.ByteLevel.alphabet())
    rust = Rust(models.BPE(vocab={piece: n for n, piece in enumerate(pieces)}, merges=[]))
    rust.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    rust.decoder = decoders.ByteLevel()
    rust.add_special_tokens(marks)
    return Tokenizer(rust)


def shown(speller, ids):
    parts = [speller.news(ids[:size], ended=size == len(ids)) for size in range(1, len(ids) + 1)]
    assert not any("\ufffd" in part for part in parts[:-1])
    return parts


def test_only_whole_characters_are_shown_and_nothing_is_lost(bytes_only):
    text = "北京 is Beijing，😀."
    ids = bytes_only.encode_marked(text)
    parts = shown(Speller(bytes_only, bytes_only.encode_marked("我去了")), ids)
    assert "".join(parts) == text
    assert parts[:3] == ["", "", "北"]


def test_half_a_character_at_the_end_is_shown_when_nothing_follows(bytes_only):
    ids = bytes_only.encode_marked("a京")[:-1]
    assert "".join(shown(Speller(bytes_only, []), ids)) == "a\ufffd"


def test_a_text_to_stop_at_is_never_shown_not_even_its_beginning(bytes_only):
    ids = bytes_only.encode_marked("one two END three")
    speller = Speller(bytes_only, [], ["END", "xyz"])
    whole = next(size for size in range(len(ids)) if speller.stops(ids[:size]))
    parts = [speller.news(ids[:size], ended=size == whole) for size in range(1, whole + 1)]
    assert "".join(parts) == "one two " == speller.text(ids[:whole])
    assert not any("E" in part for part in parts)
    assert not speller.stops(ids[: whole - 1])


def test_words_of_pieces_join_as_the_tokenizer_joins_them():
    tokenizer = Tokenizer.from_pieces(
        ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "##s", "北", "京", "."]
    )
    ids = tokenizer.encode_marked("cats 北京.")
    speller = Speller(tokenizer, tokenizer.encode_marked("the"))
    assert [speller.news(ids[:size], ended=False) for size in range(1, 6)] == [" cat", "s", " 北", "京", "."]


def test_how_has_no_second_meaning_for_defaults():
    assert how_of("greedy", {}) == How()
