"""Spans of words measured: lengths as the papers have them, one draw for a token, word or span, rates that are met."""

from __future__ import annotations

import numpy as np
import pytest
from chance import surprise
from made_rows import FACTS, MadeSimilar, even_rows

from maskery.corruption.config import LAWS, CorruptionConfig, SpanConfig
from maskery.corruption.corrupt import candidates, corrupt
from maskery.corruption.units import word
from maskery.edit import Edit
from maskery.randomness import keys
from maskery.recipes.recipe import recipe

MANY = 1200
LONG = even_rows(0, MANY, 80)
KEYS = keys(0, "mask", np.arange(MANY))
SPANBERT = [0.2241, 0.1792, 0.1434, 0.1147, 0.0918, 0.0734, 0.0587, 0.0470, 0.0376, 0.0301]
POISSON = [0.0498, 0.1494, 0.2240, 0.2240, 0.1680, 0.1008, 0.0504, 0.0216]
PUBLISHED = {
    "albert": ({"law": "weights", "weights": [1, 1 / 2, 1 / 3]}, [0, 0.5455, 0.2727, 0.1818]),
    "macbert": ({"law": "weights", "weights": [0.4, 0.3, 0.2, 0.1]}, [0, 0.4, 0.3, 0.2, 0.1]),
    "unilm": ({"law": "weights", "weights": [0.8, 0.1, 0.1]}, [0, 0.8, 0.1, 0.1]),
    "spanbert": ({"law": "geometric", "p": 0.2, "longest": 10}, [0, *SPANBERT]),
    "bart": ({"law": "poisson", "mean": 3.0}, POISSON),
}
LANGUAGES = {"chinese": (0.5, 0.4, 0.06, 0.04), "english": (0.8, 0.12, 0.06, 0.02)}
every_law = pytest.mark.parametrize("name", PUBLISHED)


def law_of(name):
    span, expected = PUBLISHED[name]
    return SpanConfig(**span), np.array(expected)


@every_law
def test_the_table_is_the_papers(name):
    span, expected = law_of(name)
    table = LAWS.get(span.law)(span)
    assert table[: len(expected)] == pytest.approx(expected, abs=5e-5)
    assert table.sum() == pytest.approx(1)
    means = {"albert": 1.636, "macbert": 2.0, "unilm": 1.3, "spanbert": 3.797, "bart": 3.0}
    assert table @ np.arange(len(table)) == pytest.approx(means[name], abs=5e-4)


@every_law
@pytest.mark.parametrize("seed", range(3))
def test_drawn_lengths_follow_the_law(name, seed):
    span, _ = law_of(name)
    shares = {"mask": 0, "random": 0, "keep": 0, "infill": 1}
    config = CorruptionConfig(unit="word", span=span, decide="span", replace=shares)
    _, spans = candidates(LONG, config, keys(seed, "mask", np.arange(MANY)))
    table = LAWS.get(span.law)(span)
    table = np.append(table[:10], table[10:].sum()) if len(table) > 11 else table
    counts = np.bincount(np.minimum(spans.drawn, len(table) - 1), minlength=len(table))
    assert len(spans.drawn) == len(word(LONG).start), "each word is offered once"
    assert not counts[table == 0].any()
    assert surprise(counts[table > 0], counts.sum() * table[table > 0]) < 4


def test_kept_spans_are_as_drawn_where_nothing_cuts_them():
    """One span a row, of rows of which it takes a few words in sixty, begun far from the end."""
    span, table = law_of("spanbert")
    config = CorruptionConfig(unit="word", of="words", rate=0.4, span=span)
    units, spans = candidates(LONG, config, KEYS)
    first = np.searchsorted(spans.row, np.arange(MANY))
    left = np.searchsorted(units.row, np.arange(MANY), side="right") - spans.first[first]
    mine = first[left > 10]
    out = corrupt(LONG, config, KEYS, FACTS)
    begin = units.start[spans.first[mine]]
    end = (
        units.start[spans.first[mine] + spans.drawn[mine] - 1] + units.length[spans.first[mine] + spans.drawn[mine] - 1]
    )
    assert all((out.edit[a:b] != Edit.NONE).all() for a, b in zip(begin, end, strict=True)), "the first is taken whole"
    counts = np.bincount(spans.drawn[mine], minlength=11)[1:]
    assert surprise(counts, counts.sum() * table[1:] / table.sum()) < 4


def test_words_are_chosen_equally_often_wherever_they_stand():
    rows = even_rows(1, 6000, 12, words=(1.0,))
    out = corrupt(rows, CorruptionConfig(unit="word", rate=0.25), keys(0, "mask", np.arange(6000)), FACTS)
    assert surprise(np.bincount(out.slot[out.edit != Edit.NONE] - 1, minlength=12), 1500) < 4


@pytest.mark.parametrize(
    "shares",
    [{"mask": 0.8, "random": 0.1, "keep": 0.1}, {"mask": 0.85, "random": 0, "keep": 0.15}],
    ids=["bert", "electra"],
)
@pytest.mark.parametrize("decide", ["token", "word", "span"])
def test_one_draw_decides_for_a_token_a_word_or_a_span(decide, shares):
    config = CorruptionConfig(
        unit="word", of="words", decide=decide, replace=shares, span={"law": "weights", "weights": [0, 0, 1]}
    )
    rows = even_rows(2, 3000, 24, words=(0.0, 1.0))
    out = corrupt(rows, config, keys(0, "mask", np.arange(3000)), FACTS)
    units = word(rows)
    code = out.edit[units.start]
    rest = np.where(units.length > 1, out.edit[np.minimum(units.start + 1, len(out.edit) - 1)], code)
    together = (code == rest)[code != Edit.NONE].mean()
    assert together == 1.0 if decide != "token" else together < 0.9
    groups = code[code != Edit.NONE]
    if decide == "span":
        groups = first_of_each_span(rows, out, config)
    counts = np.array([(groups == number).sum() for number in (Edit.MASK, Edit.RANDOM, Edit.KEEP)])
    expected = np.array([shares[name] for name in ("mask", "random", "keep")])
    assert counts.sum() == len(groups) > 2000
    assert surprise(counts[expected > 0], counts.sum() * expected[expected > 0]) < 4


def first_of_each_span(rows, out, config):
    """The code at each span's first slot; within a span there is no other."""
    units, spans = candidates(rows, config, keys(0, "mask", np.arange(len(rows))))
    first = spans.first[np.searchsorted(spans.row, np.arange(len(rows)))]
    codes = out.edit[units.start[first]]
    for begin, code in zip(first, codes, strict=True):
        same_row = units.row[begin : begin + 3] == units.row[begin]
        assert set(out.edit[units.start[begin : begin + 3][same_row]].tolist()) <= {0, code}
    return codes


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("name", ["bert-wwm", "spanbert", "macbert", "ernie"])
def test_the_rate_is_met_on_average(name, language):
    """Rows of 32 are the hard case: four or five slots, and a word that does not fit is left out."""
    config = recipe(name).corruption.at(0.5)
    for tokens, many in ((29, 8000), (125, 2000)):
        rows = even_rows(3, many, tokens, words=LANGUAGES[language])
        out = corrupt(rows, config, keys(0, "mask", np.arange(many)), FACTS, MadeSimilar())
        chosen = (out.edit != Edit.NONE) & (out.edit != Edit.SHUFFLED)
        assert chosen.sum() / (~out.special).sum() == pytest.approx(0.15, abs=0.003)


def test_similar_words_are_whole_and_the_others_are_counted():
    config = recipe("macbert").corruption
    out = corrupt(LONG, config, KEYS, FACTS, MadeSimilar())
    similar, unmatched = out.edit == Edit.SIMILAR, out.edit == Edit.UNMATCHED
    assert np.array_equal(out.ids[similar], out.original[similar] + 1)
    assert (out.ids[unmatched] == 5).all()
    units = word(LONG)
    code = out.edit[units.start]
    assert (LONG.ids[units.start[code == Edit.SIMILAR]] % 2 == 0).all()
    assert (LONG.ids[units.start[code == Edit.UNMATCHED]] % 2 == 1).all()
    counts = np.array([np.isin(code, codes).sum() for codes in ((4, 7), (2,), (3,))])
    assert surprise(counts, counts.sum() * np.array([0.8, 0.1, 0.1])) < 4
