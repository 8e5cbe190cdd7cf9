"""The probe of frozen states: means over real slots, a classifier that learns, shapes that are planned alike."""

import numpy as np
import pytest
import torch
from small_run import corpus_in, tiny_recipe

from benchmarks import ordered, probe, shapes
from maskery.checkpoint.model import Model
from maskery.compare.variants import COMMON_TRAINING
from maskery.system import System


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return corpus_in(tmp_path_factory.mktemp("corpus"))


@pytest.fixture(scope="module")
def model(corpus):
    system = System(tiny_recipe("bert"), corpus.vocabulary)
    system.initialise(3)
    return Model(system.network, {}, corpus.tokenizer).eval()


def test_a_file_has_a_header_and_the_label_behind_the_last_tab(tmp_path):
    path = tmp_path / "texts.tsv"
    path.write_text("text\tlabel\none\ttab\tx\ntwo\ty\n\n", encoding="utf-8")
    assert probe.read(path) == (["one\ttab", "two"], ["x", "y"])


def test_means_are_over_the_slots_of_each_row_alone(model):
    rows = [[2, 7, 8, 9, 3], [2, 5, 3], [2, *range(5, 20), 3], [2, 9, 8, 7, 3]]
    with torch.no_grad():
        wanted = [model(torch.tensor([row])).last[0].mean(0).numpy() for row in rows]
    np.testing.assert_allclose(probe.mean_states(model, rows), np.stack(wanted), atol=1e-5)


def test_many_rows_are_read_in_parts_and_come_back_in_order(model, monkeypatch):
    rows = [[2, *range(5, 5 + size), 3] for size in (9, 1, 4, 9, 2, 7, 3)]
    whole = probe.mean_states(model, rows)
    monkeypatch.setattr(probe, "TOKENS", 12)
    np.testing.assert_allclose(probe.mean_states(model, rows), whole, atol=1e-5)


def test_a_text_is_framed_and_cut(corpus, monkeypatch):
    monkeypatch.setattr(probe, "LENGTH", 6)
    specials = corpus.tokenizer.specials
    short, long = probe.ids_of(corpus.tokenizer, ["the", "the " * 20])
    assert (short[0], short[-1]) == (specials.cls, specials.sep)
    assert len(long) == 6
    assert long[-1] == specials.sep


def test_the_classifier_learns_what_can_be_learnt_and_says_how_sure_it_is():
    draw = np.random.default_rng(0)
    labels = draw.integers(0, 2, 400)
    x = draw.standard_normal((400, 5)) + 3 * labels[:, None]
    names = ["yes" if label else "no" for label in labels]
    found = probe.accuracy(x[:300], names[:300], x[300:], names[300:], scale=True)
    assert found["accuracy"] > 0.95
    assert found["n"] == 100
    assert found["interval"][0] <= found["accuracy"] <= found["interval"][1]
    shuffled = list(draw.permutation(names[:300]))
    assert probe.accuracy(x[:300], shuffled, x[300:], names[300:], scale=True)["accuracy"] < 0.9


def test_characters_alone_are_a_baseline():
    texts = ["猫咪睡觉", "猫咪吃鱼", "股票上涨", "股票下跌"] * 5
    labels = ["pets", "pets", "money", "money"] * 5
    assert probe.characters(texts, labels, ["猫咪玩耍", "股票交易"], ["pets", "money"])["accuracy"] == 1.0


def test_all_shapes_are_trained_alike(corpus):
    made, examination = shapes.made_plan(corpus, 4000, "tiny")
    assert [each.label for each in made.contestants] == list(shapes.SHAPES)
    assert not made.left_out
    for each in made.contestants:
        examination.require_fit(each.label, each.recipe)
        plain = each.recipe.plain()["training"]
        for key in ("optimizer", "lr", "warmup", "decay", "length"):
            assert plain[key] == COMMON_TRAINING[f"training.{key}"], (each.label, key)


def test_shapes_that_read_in_an_order_are_trained_and_probed(corpus, tmp_path, monkeypatch):
    monkeypatch.setitem(shapes.COMMON_TRAINING, "training.length", 16)
    made = shapes.planned(ordered.SHAPES, corpus, 300, "tiny")
    turns = ordered.turns_of(made, [0], tmp_path)
    ordered.trained(made, turns, corpus)
    assert [turn.contestant.label for turn in turns if turn.finished] == list(ordered.SHAPES)
    (tmp_path / "texts.tsv").write_text("text\tlabel\n" + "the cat\ta\nthe dog\tb\n" * 4, encoding="utf-8")
    labelled = tmp_path / "texts.tsv", tmp_path / "texts.tsv"
    found = shapes.probes(turns, tmp_path, corpus, labelled, ordered.FRAMES)
    assert set(found) == {f"{name}{how}" for name in ordered.SHAPES for how in ("", ", untrained")}
    assert {each["n"] for each in found.values()} == {8}
    specials, rows = corpus.tokenizer.specials, {}
    for name, frame in ordered.FRAMES.items():
        (rows[name],) = probe.ids_of(corpus.tokenizer, ["the"], *frame)
    assert (rows["gpt2"][0], rows["gpt2"][-1]) == (specials.sep, specials.sep)
    assert rows["xlnet"][-2:] == [specials.sep, specials.cls]
