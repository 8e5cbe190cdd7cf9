"""The pieces of a comparison: variants, plans, intervals, the linear head, and masks that come round."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from small_run import TINY, corpus_in, tiny_recipe

from maskery.cli.variants import parse_count, parse_seeds, parse_variant
from maskery.compare.ask import Answers, Examination
from maskery.compare.linear import PENALTY, fit
from maskery.compare.plan import Length, plan
from maskery.compare.report import facts, main_table, markdown, verdict
from maskery.compare.result import Asked, comparison
from maskery.compare.run import compare
from maskery.compare.variants import COMMON_TRAINING, PRESETS, Variant
from maskery.errors import InputError
from maskery.feed import Feed
from maskery.inspection.bootstrap import interval, resampled
from maskery.language import phrases
from maskery.recipes.recipe import diff

SETTINGS = {
    key: TINY[key]
    for key in ("model.max_length", "training.length", "training.batch", "training.lr", "training.eval_rows")
}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return corpus_in(tmp_path_factory.mktemp("corpus"), documents=60)


# -- masks


def masks_by_row(corpus, epochs, **changes):
    """For each row of the plan, the ids that were read in each epoch."""
    feed = Feed(tiny_recipe("bert", rows__copies=1, **changes), corpus, 0)
    phase = feed.phases[0]
    rows = np.arange(5)
    found = [feed.corrupted(0, phase, np.full(5, epoch), rows) for epoch in range(epochs)]
    return [
        [each.ids[each.start[row] : each.start[row + 1]].tobytes() + each.edit.tobytes() for each in found]
        for row in range(5)
    ]


def test_static_with_ten_masks_shows_each_four_times_in_forty_epochs(corpus):
    for shown in masks_by_row(corpus, 40, corruption__when="static", corruption__masks=10):
        assert len(set(shown)) == 10
        assert shown[:10] * 4 == shown, "epochs take them in turn"
    for shown in masks_by_row(corpus, 40, corruption__when="dynamic"):
        assert len(set(shown)) == 40
    for shown in masks_by_row(corpus, 40, corruption__when="static"):
        assert len(set(shown)) == 1


def test_masks_are_counted_for_static_rows_alone():
    with pytest.raises(InputError, match="static"):
        tiny_recipe("bert", corruption__when="dynamic", corruption__masks=10)


# -- variants


@pytest.mark.parametrize(
    ("text", "label", "name", "changes"),
    [
        ("bert", "bert", "bert", {}),
        ("other=bert", "other", "bert", {}),
        ("x=bert:rows.copies=1,corruption.when=static", "x", "bert", {"rows.copies": 1, "corruption.when": "static"}),
        ("bert:rows.copies=1", "bert-rows.copies=1", "bert", {"rows.copies": 1}),
        ("runs/my.toml", "my", "runs/my.toml", {}),
        ('a=b:x={ p = "w", q = [1, 2] },y=[1, 2]', "a", "b", {"x.p": "w", "x.q": [1, 2], "y": [1, 2]}),
        ('a=b:x="1,2"', "a", "b", {"x": "1,2"}),
    ],
)  # fmt: skip
def test_a_variant_is_read(text, label, name, changes):
    assert parse_variant(text) == Variant(label, name, changes)


@pytest.mark.parametrize("text", ["", "=bert", "a=", "a/b=bert", "bert:x", "bert:=1", "bert:x=1,x=2", "..=bert"])
def test_a_variant_that_cannot_be_read_is_refused(text):
    with pytest.raises(InputError) as error:
        parse_variant(text)
    assert error.value.repair


def test_counts_and_seeds():
    given = {"2M": 2_000_000, "500k": 500_000, "1.5m": 1_500_000, "2_000": 2000, "1B": 10**9, "7": 7}
    assert {text: parse_count(text, "--tokens") for text in given} == given
    assert parse_seeds("0, 3") == [0, 3]
    for wrong in ("", "M", "-1", "0", "2 million"):
        with pytest.raises(InputError, match="--tokens"):
            parse_count(wrong, "--tokens")
    for wrong in ("", "a", "1,1", "0,00", "-1", "1,", "a,1"):
        with pytest.raises(InputError, match="--seeds"):
            parse_seeds(wrong)


# -- plans


def planned(corpus, variants, length=None, **options):
    return plan(variants, corpus, length or Length(tokens=20_000), "tiny", options.pop("settings", SETTINGS), **options)


def read_tokens(contestant, corpus):
    """Real positions of a whole training, counted row by row."""
    feed = Feed(contestant.seeded(0), corpus, 0)
    return [feed.batch(step).tokens for step in range(contestant.recipe.training.steps)]


def test_layouts_read_as_many_tokens_in_a_step_and_in_all(corpus):
    made = planned(corpus, PRESETS["layouts"].variants(SETTINGS))
    lengths = {round(each.slots) for each in made.contestants}
    assert len(lengths) > 1, "rows of different lengths, or nothing is shown"
    for each in made.contestants:
        read = read_tokens(each, corpus)
        assert np.mean(read) == pytest.approx(made.tokens_per_step, rel=0.08), each.label
        assert sum(read) == pytest.approx(20_000, rel=0.08), each.label


def test_masks_are_compared_on_the_same_rows_in_the_same_order(corpus):
    made = planned(corpus, PRESETS["masks"].variants(SETTINGS))
    feeds = [Feed(each.seeded(0), corpus, 0) for each in made.contestants]
    assert len({each.recipe.training.steps for each in made.contestants}) == 1
    for step in (0, 5, made.contestants[0].recipe.training.steps - 1):
        first, *others = [feed.batch(step) for feed in feeds]
        for other in others:
            assert torch.equal(first.rows, other.rows)
            assert torch.equal(first.original, other.original)


def test_batches_read_the_same_rows_in_other_batches(corpus):
    made = planned(corpus, PRESETS["batches"].variants({**SETTINGS, "training.lr": 7e-4}), Length(tokens=50_000))
    assert [each.recipe.training.batch for each in made.contestants] == [2, 16, 64]
    assert [each.recipe.training.lr for each in made.contestants] == pytest.approx([1e-4, 7e-4, 1e-3])
    rows = [each.recipe.training.batch * each.recipe.training.steps for each in made.contestants]
    assert max(rows) - min(rows) <= 64
    few = 2 * 32
    seen = []
    for each in made.contestants:
        feed = Feed(each.seeded(0), corpus, 0)
        seen.append(torch.cat([feed.batch(step).rows for step in range(few // each.recipe.training.batch or 1)])[:few])
    assert torch.equal(seen[0], seen[1])
    assert torch.equal(seen[0], seen[2])


def test_only_what_is_compared_differs(corpus):
    made = planned(corpus, [Variant("bert", "bert"), Variant("roberta", "roberta")])
    left, right = (each.recipe for each in made.contestants)
    apart = {key for key in diff(left, right) if key.startswith("training.")}
    assert apart <= {"training.batch", "training.steps", "training.save_every", "training.eval_every"}
    for key, value in {**COMMON_TRAINING, **SETTINGS}.items():
        table, name = key.split(".")
        if key != "training.batch":
            assert left.plain()[table][name] == right.plain()[table][name] == value, key


def test_steps_are_those_of_the_first_variant(corpus):
    made = planned(corpus, [Variant("a", "bert"), Variant("b", "roberta")], Length(steps=30))
    assert made.contestants[0].recipe.training.steps == 30


def test_what_is_trained_alike_is_trained_once(corpus):
    made = planned(corpus, [Variant("a", "bert-wwm"), Variant("b", "bert-wwm-ext"), Variant("c", "bert")])
    assert [each.same_as for each in made.contestants] == [None, "a", None]


def test_every_recipe_of_the_package_takes_part_or_says_why_not(corpus):
    variants = PRESETS["recipes"].variants(SETTINGS)
    made = planned(corpus, variants, optional=frozenset(each.label for each in variants))
    assert made.contestants[0].label == "bert"
    assert {each.label for each in made.contestants} | set(made.left_out) == {each.label for each in variants}
    assert "knowledge.synonyms" in made.left_out["macbert"]


@pytest.mark.parametrize(
    ("variants", "message"),
    [
        ([Variant("a", "bert")], "one variant alone"),
        ([], "no variant"),
        ([Variant("a", "bert"), Variant("a", "roberta")], "two variants are called 'a'"),
        ([Variant("a", "bert"), Variant("b", "brt")], "variant b: unknown recipe 'brt'"),
        ([Variant("a", "bert"), Variant("b", "bert", {"rows.kopies": 2})], "variant b .*rows.kopies"),
        ([Variant("a", "bert"), Variant("b", "macbert")], "variant b .*knowledge.synonyms"),
        ([Variant("a", "bert"), Variant("b", "bert", {"training.phases": [{"steps": 1, "length": 16}]})], "one length"),
    ],
)
def test_variants_that_cannot_be_compared_are_refused(corpus, variants, message):
    with pytest.raises(InputError, match=message) as error:
        planned(corpus, variants)
    assert error.value.repair
    assert error.value.exit_code == 2


def test_an_examination_needs_what_it_asks_about(corpus, tmp_path):
    with pytest.raises(InputError, match="unknown recipe"):
        Examination.of("brt", corpus, 10, (), SETTINGS)
    bare = corpus_in(tmp_path, heldout=0)
    with pytest.raises(InputError, match="no held-out part") as error:
        Examination.of("roberta", bare, 10, (), SETTINGS).require()
    assert "--heldout" in error.value.repair


@pytest.mark.parametrize(
    ("name", "why"), [("macbert", "knowledge.synonyms names no file"), ("infoword", "hides a run of words")]
)
def test_rows_that_cannot_be_common_are_refused_before_training(corpus, name, why):
    with pytest.raises(InputError, match=f"--common {name}: .*{why}") as error:
        Examination.of(name, corpus, 10, (), SETTINGS).require()
    assert error.value.repair == "--common roberta"


def test_common_rows_with_similar_words_read_the_file_that_all_read(corpus, tmp_path):
    words = tmp_path / "words.txt"
    words.write_text("ab cd\nef gh\n")
    asked = Examination.of("macbert", corpus, 10, (), {**SETTINGS, "knowledge.synonyms": str(words)})
    assert asked.common.knowledge.synonyms == str(words)
    plain = Examination.of("roberta", corpus, 10, (), {**SETTINGS, "knowledge.synonyms": str(words)})
    assert not plain.common.knowledge.synonyms


def test_the_steps_of_a_warm_up_keep_no_question_from_being_asked(corpus):
    asked = Examination.of("roberta", corpus, 10, ("next_sentence",), {**SETTINGS, "training.warmup": 100})
    asked.require()
    assert asked.impossible("next_sentence", tiny_recipe()) is None


@pytest.mark.parametrize(
    ("changes", "why"),
    [({"model.segments": 1, "rows.pair": "none", "objectives.next_sentence": False}, "one segment embedding"),
     ({"model.max_length": 16, "training.length": 16}, "learned positions end")],
    ids=["segments", "positions"],
)  # fmt: skip
def test_a_model_that_cannot_read_the_common_rows_is_refused_before_training(corpus, tmp_path, changes, why):
    made = planned(corpus, [Variant("a", "bert"), Variant("b", "bert", changes)])
    with pytest.raises(InputError, match=f"variant b cannot read .*{why}") as error:
        compare(made, [0], tmp_path / "out", Examination.of("bert", corpus, 10, (), SETTINGS))
    assert "--common" in error.value.repair
    assert not (tmp_path / "out").exists()


# -- what was found


def answered(hits, asked):
    return Asked({"masked_token": Answers(np.array(hits, float), np.array(asked, float), np.zeros(len(hits)))}, {}, "")


def found_in(corpus, answers):
    labels = [f"v{number}" for number in range(len(answers))]
    rates = [{"corruption.rate": 0.1 + 0.01 * number} for number in range(len(labels))]
    made = planned(corpus, [Variant(label, "bert", rate) for label, rate in zip(labels, rates, strict=True)])
    asked = {(label, 0): each for label, each in zip(labels, answers, strict=True)}
    return comparison(made, [0], Examination.of("roberta", corpus, 10, (), SETTINGS), asked, done=True)


def test_a_difference_is_to_the_first_variant_and_to_no_other(corpus):
    some, more = answered([1, 2, 0], [3, 3, 3]), answered([2, 2, 1], [3, 3, 3])
    found = found_in(corpus, [some, more])
    assert found["variants"][1]["masked"]["difference"] == pytest.approx(2 / 9)
    silent = found_in(corpus, [Asked({}, {}, ""), some, more])
    assert [each["masked"]["difference"] for each in silent["variants"][1:]] == [None, None]
    heads, lines = main_table(silent)
    assert [line[heads.index("to v0")] for line in lines] == ["", "-", "-"]
    assert not any("differences are to" in line for line in facts(silent))


@pytest.mark.parametrize(("hits", "share"), [([0] * 20, 0.0), ([3] * 20, 1.0)])
def test_a_share_of_nothing_or_all_is_not_told_as_certain(corpus, hits, share):
    masked = found_in(corpus, [answered(hits, [3] * 20)] * 2)["variants"][0]["masked"]
    low, high = masked["interval"]
    assert low <= masked["accuracy"] == share <= high
    assert 0.1 < high - low < 0.2, "Wilson's for twenty rows"


# -- intervals and the linear head


@settings(max_examples=30)
@given(st.integers(2, 60), st.integers(0, 1000))
def test_an_interval_lies_around_the_share(rows, seed):
    draw = np.random.default_rng(seed)
    asked = draw.integers(1, 9, rows).astype(float)
    hits = draw.binomial(asked.astype(int), 0.4).astype(float)
    shares = resampled(hits, asked)
    low, high = interval(shares)
    assert 0 <= low <= hits.sum() / asked.sum() + 0.1
    assert low <= high <= 1
    assert (shares - resampled(hits, asked) == 0).all(), "the same rows are drawn each time"


def test_an_interval_covers_as_often_as_it_says():
    draw, covered = np.random.default_rng(0), 0
    for _ in range(60):
        hits = draw.binomial(1, 0.3, 200).astype(float)
        low, high = interval(resampled(hits, np.ones(200)))
        covered += low <= 0.3 <= high
    assert covered >= 51


@pytest.mark.parametrize("classes", [2, 3])
def test_the_linear_head_is_the_optimum(classes):
    draw = torch.Generator().manual_seed(classes)
    vectors = torch.randn(300, 7, generator=draw) * torch.arange(1, 8) + 5
    labels = (vectors[:, 0] + 2 * torch.randn(300, generator=draw) > 5).long() * (classes - 1)
    head = fit(vectors, labels, classes)
    standard = ((vectors.double() - vectors.double().mean(0)) / vectors.double().std(0, correction=0)).numpy()
    weight, bias = head.weight.numpy()[:, :-1], head.weight.numpy()[:, -1]
    scores = standard @ weight.T + bias
    chances = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
    wrong = chances - np.eye(classes)[labels.numpy()]
    gradient = wrong.T @ standard / 300 + PENALTY * weight
    assert np.abs(gradient).max() < 1e-9
    assert np.abs(wrong.mean(0)).max() < 1e-8
    assert torch.allclose(head.scores(vectors), torch.from_numpy(scores))
    assert (head.scores(vectors).argmax(1) == labels).double().mean() > 0.6


def test_a_linear_head_stands_vectors_that_are_parted_or_all_alike():
    labels = torch.arange(40) % 2
    assert (fit(labels[:, None].double() * 9, labels, 2).scores(labels[:, None] * 9).argmax(1) == labels).all()
    alike = fit(torch.ones(40, 3), labels, 2).scores(torch.ones(40, 3))
    assert torch.allclose(alike, torch.zeros_like(alike))


# -- the verdict


def test_the_verdict_is_about_the_best_and_the_second(corpus):
    rows = 60
    asked = np.full(rows, 10.0)
    worst, middle, best = (answered(np.full(rows, hits) + np.arange(rows) % 2, asked) for hits in (1, 4, 7))
    found = found_in(corpus, [middle, worst, best])
    given = found["verdict"]
    assert (given["metric"], given["best"], given["second"], given["ahead"]) == ("accuracy", "v2", "v0", "v2")
    assert given["difference"] == pytest.approx(0.3)
    assert given["interval"] == pytest.approx([0.3, 0.3]), "row by row the difference is always the same"
    assert verdict(found).startswith("v2 is ahead, by 30 points of v0, the second best (95 % interval +30 to +30).")
    assert "One seed" in verdict(found)
    assert verdict(found) in markdown(found)


def test_no_variant_is_ahead_where_the_interval_holds_nothing(corpus):
    draw = np.random.default_rng(0)
    some, other = (answered(draw.integers(0, 10, 40), np.full(40, 10.0)) for _ in range(2))
    found = found_in(corpus, [some, other])
    low, high = found["verdict"]["interval"]
    assert low < 0 < high
    assert found["verdict"]["ahead"] is None
    assert verdict(found).startswith("No variant is ahead: ")
    assert "没有明显领先者" in verdict(found, phrases("zh"))
    page = markdown(found, phrases("zh"))
    assert page.startswith("# 对比实验")
    assert "equal for all" not in page


# -- what can be asked in common


@pytest.mark.parametrize(
    ("recipes", "why", "repair"),
    [(["bert", "gpt2"], "nothing in common .bert: masked tokens; gpt2: the next token.", "compare bert roberta or"),
     (["bert", "roberta", "gpt2"], "nothing in common", "compare bert roberta, each"),
     (["gpt2", "xlnet"], "variant xlnet is trained for neither masked tokens nor the next token", "gpt2"),
     (["bart", "mass"], "variant bart is trained for neither", "finetune")],
    ids=lambda value: "+".join(value) if isinstance(value, list) else None,
)  # fmt: skip
def test_what_has_no_common_examination_is_refused_before_training(corpus, tmp_path, recipes, why, repair):
    made = planned(corpus, [Variant(name, name) for name in recipes])
    with pytest.raises(InputError, match=why) as error:
        compare(made, [0], tmp_path / "out", Examination.of("roberta", corpus, 10, (), SETTINGS))
    assert repair in error.value.repair
    assert not (tmp_path / "out").exists()
