"""What a run has learnt beyond the frequency of tokens, and the words of like meaning that it learns by itself."""

import math

import numpy as np
import pytest
import torch
from tiny import build

from maskery.cli import main
from maskery.knowledge.table import SimilarTable
from maskery.recipes.recipe import recipe
from maskery.train.build import build_trainer
from maskery.train.corpora import heldout_of
from maskery.train.evaluate import evaluate
from maskery.train.folder import RunFolder
from maskery.train.frequencies import Against, against_frequencies, log_probabilities, training_counts
from maskery.train.similar import SIMILAR, learn_similar
from maskery.words.ppmi import ppmi_vectors
from maskery.words.vocabulary import Words

SMALL = {
    **{"model.layers": 1, "model.width": 16, "model.heads": 2, "training.length": 32, "training.batch": 8},
    **{"training.phases": [], "training.eval_rows": 24, "training.lr": 1e-2, "model.dropout": 0.0},
}
ROWS = 24
CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return build(tmp_path_factory.mktemp("frequencies"), heldout=0.3)


def found(corpus, name, steps=0):
    made = recipe(name, {**SMALL, "training.steps": max(1, steps)})
    trainer = build_trainer(made, corpus, 0, lambda text: None)
    for _ in trainer.updates() if steps else ():
        pass
    heldout, _ = heldout_of(trainer.feed)
    return trainer.system, heldout, against_frequencies(trainer.system, heldout, corpus, 1, ROWS, CPU)


@pytest.mark.parametrize(("name", "objective"), [("bert", "masked_token"), ("gpt2", "next_token")])
def test_both_losses_are_those_of_the_same_questions(corpus, name, objective):
    system, heldout, (only,) = found(corpus, name)
    assert only.objective == objective
    measured = evaluate(system, heldout, 1, ROWS, 5, CPU)
    assert only.loss == pytest.approx(measured[f"eval/{objective}/loss"], rel=1e-5)
    phase = heldout.phases[0]
    labels = heldout.make(1, phase, *heldout.first(phase, ROWS)).targets[objective].label.tolist()
    counts = training_counts(corpus)
    specials = {each: labels.count(each) / len(labels) for each in corpus.specials.ids}
    left = 1 - sum(specials.values())
    slowly = [
        math.log(specials[label] if label in specials else left * (counts[label] + 1) / (counts.sum() + len(counts)))
        for label in labels
    ]
    assert only.tokens == len(labels)
    assert only.frequencies == pytest.approx(-sum(slowly) / len(slowly), rel=1e-6)


def test_an_untrained_model_is_behind_and_a_trained_one_ahead(corpus):
    (before,) = found(corpus, "bert")[2]
    assert not before.ahead
    assert before.low > 0
    assert before.sentence().startswith("warning: held-out loss")
    assert "not even token frequencies" in before.sentence()
    (after,) = found(corpus, "gpt2", steps=150)[2]
    assert after.ahead, after
    assert "warning" not in after.sentence()


def test_the_interval_covers_the_difference():
    """Groups of rows that are drawn anew give differences of which 95 in 100 lie in their intervals."""
    from maskery.train.frequencies import _compared

    draw, inside = np.random.default_rng(0), 0
    table = np.log(np.full(4, 0.25))
    for _ in range(400):
        sizes = draw.integers(1, 20, 60)
        gaps = -0.3 + draw.normal(0, 0.5, 60)  # what the tokens of a group have in common
        groups = [
            (size * (math.log(4) + gap), np.zeros(size, dtype=np.int64)) for size, gap in zip(sizes, gaps, strict=True)
        ]
        each = _compared("masked_token", groups, table, np.array([], dtype=np.int64))
        inside += each.low < -0.3 < each.high
    assert 0.90 < inside / 400 < 0.98


def test_a_level_model_is_told_what_it_has_learnt():
    level = Against("masked_token", loss=6.8, frequencies=6.82, low=-0.05, high=0.01, tokens=1000)
    assert not level.ahead
    assert "it has learnt" not in level.sentence()
    assert "the model has learnt token frequencies, no context" in level.sentence()


def test_log_probabilities_sum_to_one():
    assert np.exp(log_probabilities(np.array([0, 3, 5]))).sum() == pytest.approx(1)


def test_a_run_keeps_and_says_it(corpus, tmp_path, capsys):
    settings = [part for key, value in SMALL.items() for part in ("--set", f"{key}={value}")]
    out = tmp_path / "run"
    assert main(["pretrain", "bert", "--corpus", str(corpus.path), "--out", str(out), *settings, "--steps", "2"]) == 0
    assert "token frequencies alone" in capsys.readouterr().err
    (kept,) = RunFolder(out).state["frequencies"]
    assert kept["objective"] == "masked_token"
    assert kept["ahead"] is False


# -- words of like meaning


def test_words_in_the_same_places_are_near():
    """x and y stand among the same neighbours, z among others."""
    sentences = [[0, 3, 4], [1, 3, 4], [2, 5, 6]] * 30
    number = np.array([each for sentence in sentences for each in sentence], dtype=np.int32)
    words = Words(
        words=list("xyzabcd"),
        counts=np.bincount(number),
        number=number,
        sentence_start=np.arange(0, len(number) + 1, 3),
        total=len(number),
    )
    vectors = ppmi_vectors(words, width=3)
    x, y, z = (vectors[each] / np.linalg.norm(vectors[each]) for each in range(3))
    assert x @ y > 0.99
    assert abs(x @ z) < 0.1
    assert (ppmi_vectors(words, width=3) == vectors).all(), "the same each time"


def test_macbert_learns_its_similar_words(corpus, tmp_path, capsys):
    settings = [part for key, value in SMALL.items() for part in ("--set", f"{key}={value}")]
    out = tmp_path / "run"
    command = ["pretrain", "macbert", "--corpus", str(corpus.path), "--out", str(out), *settings, "--steps", "2"]
    assert main(command) == 0
    said = capsys.readouterr().err
    assert "learnt from the corpus" in said
    assert RunFolder(out).recipe.knowledge.synonyms == str(out / SIMILAR)
    table = SimilarTable.read(out / SIMILAR)
    assert table.entries
    assert main([*command, "--resume"]) == 0
    assert "already finished" in capsys.readouterr().err
    assert (
        main(["pretrain", "macbert", "--corpus", str(corpus.path), "--out", str(tmp_path / "b"), "--as-published"]) == 2
    )
    assert "knowledge.synonyms" in capsys.readouterr().err, "what the paper has is a thesaurus"


def test_a_table_that_is_there_is_taken(corpus, tmp_path):
    said = []
    first = learn_similar(corpus, tmp_path / "run", said.append)
    learn_similar(corpus, tmp_path / "run", said.append)
    assert len(said) == 1
    assert first.is_file()
