"""The benchmarks of corruption: what they count, what they say of others, and their tables."""

import sys
from dataclasses import asdict
from itertools import pairwise
from math import factorial
from pathlib import Path
from random import Random

import numpy as np
import pytest

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks import corruption_speed, draws, masking_bench, masking_correctness, masking_laws, report  # noqa: E402
from benchmarks import other_maskers as others  # noqa: E402
from benchmarks.corpus import generated  # noqa: E402
from maskery import randomness  # noqa: E402
from maskery.corpus.store import Corpus  # noqa: E402
from maskery.edit import Edit  # noqa: E402
from maskery.errors import InputError  # noqa: E402

LAWS = {"lengths": masking_laws.LENGTHS, "replacements": masking_laws.REPLACEMENTS, "labels": masking_laws.LABELS}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpus")
    (folder / "text.txt").write_text(generated(0.4), encoding="utf-8")
    return Corpus.build(folder / "text.txt", folder / "out", vocab=4000, workers=0, heldout=0.0)


@pytest.fixture(scope="module")
def place(corpus, tmp_path_factory):
    synonyms = masking_laws.stand_in(corpus, tmp_path_factory.mktemp("synonyms"))
    return masking_laws.Place("zh", corpus, synonyms, 0, 400)


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    return masking_bench.Bench(tmp_path_factory.mktemp("bench"), 400, masking_bench.vocabulary())


def test_the_expected_shares_are_the_papers():
    spanbert = [0.2241, 0.1792, 0.1434, 0.1147, 0.0918, 0.0734, 0.0587, 0.0470, 0.0376, 0.0301]
    laws = masking_laws.LENGTHS
    assert np.round(laws["spanbert"].shares[1:], 4).tolist() == spanbert
    assert np.round(laws["albert"].shares, 4).tolist() == [0, 0.5455, 0.2727, 0.1818]
    assert laws["bart"].shares[0] == pytest.approx(0.0498, abs=1e-4)
    for studies in LAWS.values():
        assert all(sum(study.shares) == pytest.approx(1) for study in studies.values())
    for many, shares in masking_laws.SEGMENTS.items():
        assert sum(shares) == pytest.approx(1)
        assert len(shares) == sum(factorial(n) for n in range(1, many + 1))


def test_every_law_holds_on_a_small_corpus(place):
    found = list(masking_laws.tests(place))
    assert all(test.p > 1e-4 for test in found), [(test.kind, test.law, test.p) for test in found if test.p <= 1e-4]
    assert all(test.draws == sum(test.counts) > 50 for test in found if not test.law.startswith("permuted"))
    assert all(masking_laws.shown(test) for test in found)
    assert len({(test.kind, test.law) for test in found}) == len(found)


def test_a_law_that_is_not_followed_is_noticed(place):
    capped = others.capped_geometric(1, 0.2, 10, randomness.generator(0))
    assert 1 <= capped[0] <= 10
    wrong = [0, *(0.2 * 0.8**n for n in range(9)), 0.8**9]
    study = masking_laws.Study(tuple(wrong), "spanbert")
    assert masking_laws.of_lengths(place, "spanbert", study).p < 1e-4
    swapped = masking_laws.Study((0.1, 0.8, 0.1, 0.0))
    assert masking_laws.of_replacements(place, "bert", swapped).p < 1e-9
    with pytest.raises(InputError, match="no draw of labels, next"):
        place.test("labels", "next", np.zeros(2), (0.5, 0.5))


def test_kept_spans_and_merged_runs_hold_the_same_units(place):
    found = draws.lengths(place.sample(masking_laws.LENGTHS["macbert"]), 60)
    units = np.arange(60)
    assert (found.kept * units).sum() == (found.merged * units).sum() > 0
    assert found.kept.sum() >= found.merged.sum()
    assert found.kept[5:].sum() == 0 < found.merged[5:].sum()


def test_rows_of_one_sentence_are_those_that_the_plan_counts(place):
    sample = place.sample(masking_laws.LABELS["next"], {"rows.pair": "next"})
    assert len(sample.rows) == 400 < len(sample.plan)
    everything = masking_laws.Place("zh", place.corpus, place.synonyms, 0, len(sample.plan))
    whole = everything.sample(masking_laws.LABELS["next"], {"rows.pair": "next"})
    alone = draws.one_sentence_rows(whole)
    assert alone.sum() == whole.plan.counts["one_sentence_chunks"]
    assert (whole.rows.label[alone] == 1).all()


def test_split_words_are_counted(place):
    whole = draws.replacements(place.sample(masking_laws.REPLACEMENTS["bert-wwm"]))
    assert whole.words > 100 > whole.split == 0
    torn = draws.replacements(place.sample(masking_laws.REPLACEMENTS["bert"]))
    assert 0 < torn.split < torn.words


def test_shuffled_orders_are_told_apart(place):
    sample = place.sample(masking_laws.Study((), "structbert"))
    out = sample.corrupted()
    assert 0 < 3 * draws.shuffled_orders(sample).sum() <= (out.edit == Edit.SHUFFLED).sum()


def test_a_smaller_of_two_draws_is_heaped_on_the_longest():
    drawn = others.capped_geometric(200_000, 0.2, 10, randomness.generator(1))
    assert drawn.mean() == pytest.approx(sum(0.8**n for n in range(10)), abs=0.03)
    assert (drawn == 10).mean() == pytest.approx(0.8**9, abs=0.01)


def test_collapsed_masks_stand_for_what_they_hid():
    tokens = [f"t{n}" for n in range(5000)]
    out, behind = others.collapsed_masks(tokens, 0.5, Random(0))
    assert out.count(others.MASK) == len(behind)
    assert len(out) - len(behind) + sum(behind) == len(tokens)
    assert sum(behind) / len(tokens) == pytest.approx(0.4, abs=0.02)
    assert min(behind) == 1
    assert all(a != others.MASK or b != others.MASK for a, b in pairwise(out))


def test_joined_text_loses_spaces_and_what_is_unknown(bench):
    assert others.joined_and_cut(["[CLS]", "[UNK]", "周", "杰", "伦", "[SEP]"], bench.tokenizer) == [
        *("[CLS]", "周", "杰", "伦", "[SEP]")
    ]
    glued = others.joined_and_cut(["[CLS]", "the", "dog", "[SEP]"], bench.tokenizer)
    assert glued[1:-1] == ["the", "##d", "##o", "##g"]


@pytest.mark.parametrize("number", range(len(masking_correctness.LINES)))
def test_ours_is_right_where_others_are_not(bench, number):
    line = masking_correctness.LINES[number](bench)
    assert line.ours_right, line
    told = report.results()["masking_correctness"]
    if line.side == "described" or told["transformers"] == others.transformers().__version__:
        assert line.theirs_right == told["lines"][number]["theirs_right"], "the page says otherwise"
    for language in report.PAGES:
        cells = report.report_corruption.masking_correctness({"lines": [asdict(line)]}, language)
        assert [len(row) for row in cells] == [len(report.HEADS["masking_correctness"][language])]


def test_the_other_side_is_given_our_words(corpus):
    rows, _ = corruption_speed.read(corruption_speed.Feed(masking_laws.laid("bert-wwm", {}), corpus, 0), 40)
    given = corruption_speed.features(rows, corpus.specials.pad)
    collator, _ = others.collator(corpus.path, whole_word_mask=True)
    arrays = [np.array([row[name] for row in given]) for name in ("offset_mapping", "special_tokens_mask")]
    words, _ = collator._calc_word_ids_and_prob_mask(*arrays)
    for number, row in enumerate(words):
        part = slice(rows.start[number], rows.start[number + 1])
        begins = rows.special[part] | (rows.flags[part] & 1 != 0) | np.append(True, rows.special[part][:-1])
        ours = np.cumsum(begins)
        theirs = row[: len(ours)]
        inside = ~rows.special[part]
        same = (ours[inside][1:] == ours[inside][:-1]) == (theirs[inside][1:] == theirs[inside][:-1])
        assert same.all()
        assert (row[len(ours) :] == -1).all()


def test_every_task_of_the_speed_benchmark_runs(corpus, place):
    tasks = corruption_speed.tasks_of(corpus, ["roberta", "bert-wwm", "macbert"], place.synonyms, 16, "tiny")
    speed = corruption_speed.quickest(tasks, 1)
    assert set(speed) == set(tasks)
    assert all(0 < value < float("inf") for value in speed.values())
    assert [row["what"] for row in corruption_speed.against(speed)] == [*report.report_corruption.COMPARED]


def test_limits_of_speed_are_kept_or_named():
    rows = [{"recipe": "bert", "corruption": 3300, "batch": 900}]
    against = [{"what": "whole_words", "ours": 3300, "theirs": 165}, {"what": "tokens", "ours": 3300, "theirs": 1650}]
    made = {"training_rows_per_second": 100.0, "rows": rows, "against": against}
    assert corruption_speed.failures(made) == []
    made["training_rows_per_second"] = 101.0
    against[0]["theirs"], against[1]["theirs"] = 166, 1651
    assert corruption_speed.failures(made) == [
        "bert is below 33 x training",
        "whole_words is below 20 x theirs",
        "tokens is below 2 x theirs",
    ]


def test_tables_have_as_many_cells_as_heads(place):
    tests = [asdict(test) for test in masking_laws.tests(place)]
    tests += [test | {"language": "en"} for test in tests]
    speed = {"training_rows_per_second": 2.0, "rows": [{"recipe": "bert", "corruption": 9.0, "batch": 5.0}]}
    speed["against"] = [{"what": what, "ours": 4.0, "theirs": 2.0} for what in report.report_corruption.COMPARED]
    found = {"corruption_speed": speed, "collators": speed}
    found |= {name: {"tests": tests} for name in ("masking_lengths", "masking_draws")}
    for name in found:
        for language in report.PAGES:
            lines = report.markdown(name, language, found).splitlines()
            assert len(lines) > 2
            assert len({each.count("|") for each in lines}) == 1, lines
    assert "| **2.0** |" in report.markdown("collators", "en", found)
    assert "| .224 .179 .143" in report.markdown("masking_lengths", "zh", found)
