"""Measured beside nominal: true recipes raise no warning, and every lie about one does."""

import json
from dataclasses import dataclass

import numpy as np
import pytest
from tiny import build

from maskery.corruption.config import CorruptionConfig
from maskery.corruption.corrupt import corrupt
from maskery.feed import Feed
from maskery.inspection import rates, report
from maskery.recipes.recipe import names, recipe
from maskery.rows.ragged import gather
from maskery.text.tokenizer import Tokenizer

SHORT = {"training.length": 64, "training.phases": [], "training.batch": 64, "rows.copies": 1}
ROWS = 400
KEYS = ["chosen_rate", "pair", "recipe", "replaced", "rows", "span_words", "tokens", "unit", "words_split"]
PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ".", "a", "the", "cat", "dog", "bird", "sees", "takes", "finds"]
PIECES += ["ho", "##use", "small", "qui", "##et", "un", "##believ", "##able", "read", "##ing"]
"""Some words are several tokens."""


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return build(tmp_path_factory.mktemp("rates"), tokenizer=Tokenizer.from_pieces(PIECES), vocab=None)


@pytest.fixture(scope="module")
def synonyms(tmp_path_factory):
    path = tmp_path_factory.mktemp("synonyms") / "like.txt"
    path.write_text("cat dog bird\nsees takes finds\n", encoding="utf-8")
    return str(path)


def changed(name, synonyms, more=None):
    made = recipe(name, SHORT | (more or {}))
    return made.changed({"knowledge.synonyms": synonyms}) if made.corruption.replace.similar else made


@dataclass(frozen=True)
class Liar(Feed):
    """Corrupts in another way than its recipe says."""

    really: CorruptionConfig | None = None

    def both(self, step, phase, epochs, numbers):
        rows = gather(self.plan(phase), numbers, self.corpus)
        keys = self.mask_keys(phase, epochs, numbers)
        return corrupt(rows, self.really, keys, self.corpus.facts, self.similar), None


def lied(name, corpus, synonyms, **changes):
    said = changed(name, synonyms)
    really = CorruptionConfig.model_validate(said.corruption.model_dump() | changes)
    return rates(Liar(said, corpus, 0, really=really), ROWS)


@pytest.mark.parametrize("name", names())
def test_every_recipe_does_what_it_says(name, corpus, synonyms):
    made = changed(name, synonyms)
    for step in (0, made.training.steps - 1) if made.corruption.stages else (0,):
        found = rates(Feed(made, corpus, 0), ROWS, step)
        assert [line for line in found.warnings if not line.startswith("pair labels")] == []
        plain = found.plain()
        assert json.loads(json.dumps(plain, allow_nan=False)) == plain
        assert sorted(set(KEYS) & set(plain)) == KEYS
        assert sum(plain["replaced"].values()) == pytest.approx(1 if made.corruption.rate else 0)
        assert sum(plain["pair"].values()) == pytest.approx(1 if made.rows.pair != "none" else 0)
        assert plain["span_words"].keys() == {"mean", "histogram", "drawn_mean", "drawn_histogram"}
        assert plain["unit"] == made.corruption.units[-1 if step else 0]
        assert plain["words_split"] == 0 or plain["unit"] == "token"


def test_intervals_stand_around_their_values(corpus, synonyms):
    found = rates(Feed(changed("macbert", synonyms), corpus, 0), ROWS)
    for line in found.lines:
        low, high = line.interval
        assert low <= line.value <= high, line
        assert line.cases > 0
    plain = found.plain()
    assert (
        plain["intervals"]["replaced"].keys() == plain["replaced"].keys() == {"random", "keep", "similar", "unmatched"}
    )
    assert plain["similar_or_unmatched"] == pytest.approx(plain["replaced"]["similar"] + plain["replaced"]["unmatched"])
    assert plain["nominal"]["replaced"]["similar"] == 0.8
    assert plain["nominal"]["chosen_words_rate"] == 0.15
    assert "chosen_rate" not in plain["nominal"], "the recipe counts words"
    assert plain["nominal"]["span_words"]["drawn_histogram"] == pytest.approx({"1": 0.4, "2": 0.3, "3": 0.2, "4": 0.1})
    assert plain["nominal"]["span_words"]["drawn_mean"] == pytest.approx(2)
    assert 1e-4 < plain["span_law"]["p"] <= 1


@pytest.mark.parametrize(
    ("name", "changes", "told"),
    [
        ("bert", {"rate": 0.17}, "chosen: 1"),
        ("macbert", {"rate": 0.2}, "chosen words: "),
        ("bert", {"replace": {"mask": 0.7, "random": 0.2, "keep": 0.1}}, "random: "),
        ("bert", {"replace": {"mask": 0.9, "random": 0.0, "keep": 0.1}}, "random: 0.00 %"),
        ("roberta", {"replace": {"mask": 1.0, "random": 0.0, "keep": 0.0}}, "keep: 0.00 %"),
        ("macbert", {"replace": {"mask": 0.0, "random": 0.3, "keep": 0.1, "similar": 0.6}}, "similar or unmatched: "),
        ("bert-wwm", {"unit": "token"}, "words split: "),
        ("structbert", {"shuffle": {"rate": 0.1, "size": 3}}, "runs shuffled: "),
        ("infoword", {"rate": 0.2}, "chosen, beside the n-gram: "),
        ("structbert", {"shuffle": {"rate": 0.0, "size": 3}}, "runs shuffled: 0.00 %"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_lie_is_told(name, changes, told, corpus, synonyms):
    found = lied(name, corpus, synonyms, **changes)
    assert any(line.startswith(told) for line in found.warnings), found.warnings


def test_a_wrong_law_is_told(corpus, synonyms, monkeypatch):
    heaped = np.append(0.2 * 0.8 ** np.arange(9), 0.8**9)
    monkeypatch.setattr(report, "law_table", lambda config: np.append(0, heaped))
    found = rates(Feed(changed("spanbert", synonyms), corpus, 0), ROWS)
    assert found.law.p < 1e-4
    assert any("do not follow the law" in line for line in found.warnings)


def test_uneven_pairs_are_told_with_their_reason(corpus):
    short = recipe("bert", SHORT | {"training.length": 16, "rows.copies": 5})
    found = rates(Feed(short, corpus, 0), ROWS)
    assert len(found.warnings) == 1
    assert "next" in found.warnings[0]
    assert "50.00 % each" in found.warnings[0]
    assert "chunk of one sentence" in found.warnings[0]


def test_lengths_are_told_beside_each_other(corpus, synonyms):
    found = rates(Feed(changed("macbert", synonyms), corpus, 0), ROWS)
    headings, told = found.lengths()
    assert list(told) == ["recipe", "drawn", "kept", "runs, in words"]
    assert headings[:4] == ["1", "2", "3", "4"]
    assert told["recipe"][:4] == pytest.approx([0.4, 0.3, 0.2, 0.1])
    for row in told.values():
        assert len(row) == len(headings)
        assert sum(row) == pytest.approx(1)
    assert "chi-square" in found.law_told
    long = rates(Feed(changed("spanbert", synonyms, {"corruption.span.longest": 20}), corpus, 0), ROWS).lengths()
    assert long[0][-1] == "longer"
    assert sum(long[1]["recipe"]) == pytest.approx(1)
    plain = rates(Feed(changed("bert", synonyms, {"corruption.rate": 0.0}), corpus, 0), 8)
    assert plain.lengths() == ([], {})
    assert plain.law_told == ""


def test_few_rows_surprise_nobody(corpus, synonyms):
    for name in names():
        for seed in range(5):
            assert rates(Feed(changed(name, synonyms), corpus, seed), 3).warnings == []


def test_a_stage_ends_the_rows(corpus, synonyms):
    made = changed("ernie", synonyms, {"training.steps": 9})
    first = rates(Feed(made, corpus, 0), 10_000)
    assert (first.unit, first.stage, first.measured.rows) == ("token", (1, 3), 3 * 64)
    last = rates(Feed(made, corpus, 0), 100, 8)
    assert (last.unit, last.stage, last.plain()["stage"]) == ("entity", (3, 3), {"number": 3, "of": 3})
    assert last.plain()["nominal"]["words_split"] == 0
    assert "words_split" not in first.plain()["nominal"]
