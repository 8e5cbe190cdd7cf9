"""Training on several corpora: resumed bitwise, refused under other weights, told and measured on the command line."""

import json
import re

import pytest
from small_run import (
    TINY,
    TINY_FLAGS,
    WORDS,
    corpus_in,
    cut_back,
    flags_of,
    lines_without_time,
    run_quietly,
    same_files,
    text_of,
    tiny_recipe,
)

import maskery
from maskery.cli import main
from maskery.cli.corpora import open_corpora, parse_corpus
from maskery.corpus.mixture import Mixture
from maskery.errors import InputError, RecipeError
from maskery.feed import Feed
from maskery.text.tokenizer import Tokenizer
from maskery.text.training import LAYOUT
from maskery.train.tokens import slots_per_row

STEPS = 12
SHORT = {"training__steps": STEPS}


pytestmark = pytest.mark.usefixtures("no_waiting_for_the_disk")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("corpora")


@pytest.fixture(scope="module")
def corpora(folder):
    return [corpus_in(folder / name, documents, seed) for name, documents, seed in (("a", 30, 0), ("b", 12, 1))]


@pytest.fixture(scope="module")
def mixed(corpora):
    return Mixture([(corpora[0], 3), (corpora[1], 1)])


@pytest.fixture(scope="module")
def whole(mixed, tmp_path_factory):
    out = tmp_path_factory.mktemp("whole") / "run"
    _, talk = run_quietly(tiny_recipe(**SHORT, training__save_every=1, training__keep=STEPS), mixed, out)
    return out, talk


@pytest.mark.parametrize(("step", "workers"), [(0, 0), (1, 0), (5, 2), (11, 0)])
def test_resuming_is_bitwise(whole, mixed, tmp_path, step, workers):
    run = cut_back(whole[0], step, tmp_path / "run")
    run_quietly(tiny_recipe(**SHORT), mixed, run, True, workers=workers)
    same_files(whole[0] / f"checkpoints/step-{STEPS}", run / f"checkpoints/step-{STEPS}")
    assert lines_without_time(run) == lines_without_time(whole[0])


def test_what_a_run_says_and_keeps(whole, mixed, corpora):
    out, talk = whole
    assert "corpus a/corpus: 75.00 % of the rows (by weight)" in talk.text
    assert "corpus b/corpus: 25.00 % of the rows (by weight)" in talk.text
    state = json.loads((out / "state.json").read_text())
    assert state["corpus"] == mixed.fingerprint
    assert [(each["fingerprint"], each["weight"]) for each in state["corpora"]] == [
        (corpora[0].fingerprint, 3),
        (corpora[1].fingerprint, 1),
    ]
    lines = lines_without_time(out)
    assert [(line["rows/a/corpus"], line["rows/b/corpus"]) for line in lines[:2]] == [(6, 2), (12, 4)]
    assert state["rows"] == {"a/corpus": 6 * STEPS, "b/corpus": 2 * STEPS}
    assert "eval/loss" in lines[-1]


def test_walked_through_says_how_often(mixed, corpora, tmp_path):
    _, talk = run_quietly(tiny_recipe(training__steps=2), mixed, tmp_path / "run")
    feed = Feed(tiny_recipe(training__steps=2), corpora[1], 0)
    rows = len(feed.plan(feed.phases[0]))
    assert f"{rows} rows of its own, walked through {2 * 2 / rows:.2f} times in this run" in talk.text


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            lambda a, b: Mixture([(a, 1), (b, 1)]),
            "the weights or the order of --corpus: the run has .*=3, .*; asked is .*=1, .*=1",
        ),
        (lambda a, b: Mixture([(b, 1), (a, 3)]), "the weights or the order of --corpus"),
        (lambda a, b: Mixture([a, b]), "the weights or the order of --corpus"),
        (lambda a, b: a, "--corpus: the run has"),
    ],
    ids=["weights", "order", "no weights", "one"],
)
def test_resuming_with_another_mixture_is_refused(whole, corpora, tmp_path, change, said):
    run = cut_back(whole[0], 5, tmp_path / "run")
    state = json.loads((whole[0] / "checkpoints/step-5/state.json").read_text())
    (run / "state.json").write_text(json.dumps({**state, "finished": False}))
    with pytest.raises(RecipeError, match=said):
        run_quietly(tiny_recipe(**SHORT), change(*corpora), run, True)


def test_a_part_with_nothing_held_out_is_told(corpora, tmp_path):
    bare = corpus_in(tmp_path / "bare", 12, 3, heldout=0.0)
    run, talk = run_quietly(tiny_recipe(**SHORT), Mixture([(corpora[0], 1), (bare, 1)]), tmp_path / "run")
    assert "nothing is held out in bare/corpus: it takes no part in evaluation" in talk.text
    alone, _ = run_quietly(tiny_recipe(**SHORT), corpora[0], tmp_path / "alone")
    assert run.metrics[-1].keys() - alone.metrics[-1].keys() == {"rows/a/corpus", "rows/bare/corpus"}


def test_positions_of_a_row_go_by_the_shares(corpora, mixed):
    phase = Feed(tiny_recipe(), mixed, 0).phases[0]
    alone = [slots_per_row(Feed(tiny_recipe(), corpus, 0), phase) for corpus in corpora]
    assert slots_per_row(Feed(tiny_recipe(), mixed, 0), phase) == pytest.approx(0.75 * alone[0] + 0.25 * alone[1])
    feed = Feed(tiny_recipe(), corpora[0], 0)
    batch = feed.make(0, phase, *feed.first(phase, 10**6))
    assert alone[0] == pytest.approx(batch.tokens / batch.size)


# -- the command line


def test_what_is_a_path_and_what_a_weight(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lr=3").mkdir()
    (tmp_path / "a").mkdir()
    assert parse_corpus("a")[1] is None
    assert parse_corpus("a=3")[1] == 3
    assert float(parse_corpus("a=0.25")[1]) == 0.25
    assert float(parse_corpus("a=1/3")[1]) == pytest.approx(1 / 3)
    path, weight = parse_corpus("lr=3")
    assert (str(path), weight) == ("lr=3", None)
    path, weight = parse_corpus("lr=3=2")
    assert (str(path), weight) == ("lr=3", 2)
    assert parse_corpus("no=where") == (parse_corpus("no=where")[0], None)
    with pytest.raises(InputError, match="the weight 'three' is no number"):
        parse_corpus("a=three")


def test_one_corpus_needs_no_weight(corpora):
    for text in (str(corpora[0].path), f"{corpora[0].path}=3"):
        assert open_corpora([text]).fingerprint == corpora[0].fingerprint
        assert isinstance(open_corpora([text]), maskery.Corpus)


def given(corpora, *weights):
    return [
        part for corpus, weight in zip(corpora, weights, strict=True) for part in ("--corpus", f"{corpus.path}{weight}")
    ]


def test_pretrain_and_inspect(corpora, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "160")
    run = ["pretrain", "bert", *given(corpora, "=3", "=1"), "--out", str(tmp_path / "run"), *TINY_FLAGS, "--steps", "4"]
    assert main(run) == 0
    assert "corpus a/corpus: 75.00 % of the rows" in capsys.readouterr().err
    assert main([*run[:2], *given(corpora, "=1", "=1"), *run[6:], "--resume"]) == 2
    assert "weights or the order of --corpus" in capsys.readouterr().err
    shown = ["inspect", "bert", *given(corpora, "=3", "=1"), "--rows", "40", *TINY_FLAGS]
    assert main([*shown, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["corpora"] == found["nominal"]["corpora"] == {"a/corpus": 0.75, "b/corpus": 0.25}
    assert main(shown) == 0
    text = capsys.readouterr().out
    assert re.search(r"a/corpus +75\.00 % .* 75\.00 % +40 rows", text)
    assert ", a/corpus row " in text
    assert main(["inspect", "bert", *given(corpora, "", ""), "--flow"]) == 0


def test_tokens_count_the_mixture(corpora, tmp_path, capsys):
    settings = flags_of({key: value for key, value in TINY.items() if key != "training.steps"})
    run = ["pretrain", "roberta", *given(corpora, "", ""), "--out", str(tmp_path / "run"), *settings]
    assert main([*run, "--tokens", "500"]) == 0
    assert "(by size)" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("weights", "said"),
    [
        (("=0", "=1"), "is 0"),
        (("=-1", "=1"), "is -1"),
        (("=nan", "=1"), "is nan"),
        (("=1/0", "=1"), "is inf"),
        (("=1e999999999", "=1"), "is inf"),
        (("=1e-999999999", "=1"), "is 0"),
        (("=x", "=1"), "is no number"),
        (("=1", ""), "has no weight"),
    ],
    ids=["zero", "negative", "nan", "infinite", "too large", "too small", "text", "one without"],
)
def test_bad_weights(corpora, tmp_path, capsys, weights, said):
    assert main(["pretrain", "bert", *given(corpora, *weights), "--out", str(tmp_path / "run"), *TINY_FLAGS]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert "repair:" in error
    assert not (tmp_path / "run").exists()


def test_two_tokenizers_are_refused(corpora, tmp_path, capsys):
    (tmp_path / "text.txt").write_text(text_of(), encoding="utf-8")
    turned = Tokenizer.from_pieces([*LAYOUT, ".", *reversed(WORDS)])
    other = maskery.Corpus.build(tmp_path / "text.txt", tmp_path / "other", tokenizer=turned, workers=0)
    pair = [corpora[0], other]
    assert main(["pretrain", "bert", *given(pair, "=1", "=1"), "--out", str(tmp_path / "run"), *TINY_FLAGS]) == 2
    error = capsys.readouterr().err
    assert all(str(each.path) in error and each.tokenizer.fingerprint[:12] in error for each in pair)
    assert f"--tokenizer {corpora[0].path}" in error
    assert not (tmp_path / "run").exists()
    assert main(["inspect", "bert", *given([corpora[0]] * 2, "=1", "=1")]) == 2
    assert "given twice" in capsys.readouterr().err
