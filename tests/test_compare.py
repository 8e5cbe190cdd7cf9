"""`maskery compare` as a whole: what it trains, asks, writes and refuses; stopped by a signal, it goes on."""

import json
import signal

import numpy as np
import pytest
import torch
from processes import Command
from small_run import corpus_in

from maskery.checkpoint.load import load
from maskery.cli import main
from maskery.compare.ask import Examination, ask_masked, ask_pairs
from maskery.feed import Feed
from maskery.model.transformer import inputs_of
from maskery.train.folder import RunFolder

FLAGS = ["--size", "tiny", "--set", "training.length=24", "--set", "model.max_length=32", "--set", "training.batch=8"]
FLAGS += ["--set", "model.width=16", "--set", "training.eval_rows=16", "--set", "training.lr=3e-3"]
ROWS = ["--rows", "40"]
VARIANTS = ["bert", "roberta", "plain=bert:rows.pair=none,objectives.next_sentence=false,corruption.rate=0.2"]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return corpus_in(tmp_path_factory.mktemp("corpus"), documents=40)


@pytest.fixture(scope="module")
def done(corpus, tmp_path_factory):
    """A finished comparison: its folder."""
    out = tmp_path_factory.mktemp("compared") / "out"
    asked = ["--ask", "next_sentence,sentence_order", "--seeds", "0,1", "--steps", "12"]
    assert main(["compare", *VARIANTS, "--corpus", str(corpus.path), "--out", str(out), *asked, *FLAGS, *ROWS]) == 0
    return out


def again(corpus, done, *more, variants=VARIANTS, steps="12", seeds="0,1"):
    arguments = ["--corpus", str(corpus.path), "--out", str(done), "--steps", steps, "--seeds", seeds, *FLAGS, *ROWS]
    return main(["compare", *variants, *arguments, *more])


def nothing(done, of):
    return None


def test_the_result_is_written_whole(done):
    found = json.loads((done / "comparison.json").read_text())
    assert found["finished"]
    assert [each["label"] for each in found["variants"]] == ["bert", "roberta", "plain"]
    for each in found["variants"]:
        assert [run["seed"] for run in each["runs"]] == [0, 1]
        masked = each["masked"]
        assert masked["interval"][0] <= masked["accuracy"] <= masked["interval"][1]
        assert masked["accuracy"] == pytest.approx(np.mean(masked["by_seed"]))
        assert 0 <= each["own_accuracy"] <= 1
        assert set(each["questions"]) == {"next_sentence", "sentence_order"}
    heads = [each["questions"]["next_sentence"]["head"] for each in found["variants"]]
    assert heads == ["own", "fresh", "fresh"]
    assert found["variants"][0]["masked"]["difference"] == 0
    answers = json.loads((done / "bert" / "answers-0.json").read_text())["answers"]
    for question, share in found["equal"]["examination"]["commonest"].items():
        asked = sum(answers[question]["asked"])
        assert share * asked == pytest.approx(round(share * asked))
        assert 0.5 <= share <= 1
    page = (done / "comparison.md").read_text()
    assert "| bert |" in page
    assert "next_sentence: whoever always gives the commonest answer is right in" in page
    assert "52.4 / 53.3" in page
    assert "90.5 / 52.0" in page


def test_all_answer_the_same_rows(done):
    answers = [json.loads(path.read_text())["answers"] for path in sorted(done.glob("*/answers-*.json"))]
    assert len(answers) == 6
    for question in ("masked_token", "next_sentence", "sentence_order"):
        assert len({tuple(each[question]["asked"]) for each in answers}) == 1


def test_masked_answers_equal_plain_arithmetic(done, corpus):
    """One row at a time, all logits, in the way of a textbook."""
    run = RunFolder(done / "roberta" / "seed-0")
    examination = Examination.of("roberta", corpus, 40, (), {"training.length": 24})
    model = load(run.path)
    found = ask_masked(model, run.recipe, examination, nothing)
    feed = Feed(examination.common, corpus, 0, "heldout")
    epochs, rows = feed.first(feed.phases[0], 40)
    for place in range(len(rows)):
        batch = feed.make(0, feed.phases[0], epochs[place : place + 1], rows[place : place + 1])
        chosen = torch.nonzero(batch.edit[0]).flatten()
        with torch.no_grad():
            scores = model.logits(batch.ids, segments=batch.segments)[0, chosen]
        right = batch.original[0, chosen]
        assert found.asked[place] == len(chosen)
        assert found.hits[place] == int((scores.argmax(1) == right).sum())
        losses = -scores.log_softmax(1)[torch.arange(len(chosen)), right]
        assert found.loss[place] == pytest.approx(float(losses.sum()), rel=1e-4)


def test_pair_answers_come_from_the_head_that_learnt_them(done, corpus):
    run = RunFolder(done / "bert" / "seed-0")
    examination = Examination.of("roberta", corpus, 40, (), {"training.length": 24})
    model = load(run.path)
    found = ask_pairs(model, run.recipe, examination, "next_sentence", nothing)
    feed = Feed(examination.pairs("next_sentence", run.recipe), corpus, 0, "heldout")
    epochs, rows = feed.first(feed.phases[0], 40)
    batch = feed.make(0, feed.phases[0], epochs, rows)
    mask = torch.arange(batch.ids.shape[1]) < batch.length[:, None]
    with torch.no_grad():
        said = model.heads["next_sentence"](model(batch.ids, mask, batch.segments).pooled).argmax(1)
    labels = feed.plan(feed.phases[0]).label[rows]
    assert found.hits.tolist() == (said.numpy() == labels).astype(float).tolist()
    assert set(labels.tolist()) == {0, 1}


def test_what_is_finished_is_not_done_again(done, corpus, capsys):
    weights = {path: path.stat().st_mtime_ns for path in done.rglob("*.safetensors")}
    answers = {path: path.stat().st_mtime_ns for path in done.glob("*/answers-*.json")}
    assert again(corpus, done, "--json") == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["finished"]
    assert err.count("already trained") == 6
    assert weights == {path: path.stat().st_mtime_ns for path in done.rglob("*.safetensors")}
    assert answers == {path: path.stat().st_mtime_ns for path in done.glob("*/answers-*.json")}


def test_another_question_is_asked_without_training(done, corpus, tmp_path):
    assert again(corpus, done, "--ask", "three_way", "--html", str(tmp_path / "page.html")) == 0
    found = json.loads((done / "comparison.json").read_text())
    assert all("three_way" in each["questions"] for each in found["variants"])
    page = (tmp_path / "page.html").read_text()
    assert "three_way, accuracy %" in page
    assert page.count("<circle") >= 6


def test_a_variant_may_be_added_and_none_left_out(done, corpus, capsys):
    assert again(corpus, done, variants=VARIANTS[:2]) == 2
    assert "holds a comparison of other variants: plain" in capsys.readouterr().err
    assert again(corpus, done, steps="13") == 2
    assert "training.steps: bert, seed 0 was trained with 12, asked is 13" in capsys.readouterr().err


def test_a_folder_of_something_else_is_refused(corpus, tmp_path, capsys):
    (tmp_path / "note.txt").write_text("mine")
    assert again(corpus, tmp_path) == 2
    assert "holds no comparison" in capsys.readouterr().err


def test_another_corpus_is_refused(done, tmp_path, capsys):
    """Its rows are as many, so that only the corpus itself tells the difference."""
    other = corpus_in(tmp_path, documents=60, seed=1)
    code = again(other, done)
    assert code == 2
    assert "repair:" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["bert"], "one variant alone cannot be compared"),
        (["bert", "brt"], "unknown recipe 'brt'"),
        (["bert", "--preset", "maks"], "did you mean masks"),
        (["bert", "roberta", "--ask", "next"], "unknown question about pairs 'next'"),
        (["bert", "roberta", "--tokens", "2M", "--steps", "3"], "each say how long"),
        (["bert", "roberta", "--set", "training.seed=3"], "--seeds"),
        (["bert", "roberta", "--size", "huge"], "unknown size 'huge'"),
        (["bert", "roberta", "--common", "brt"], "unknown recipe 'brt'"),
        (["bert", "roberta", "--html", "page.pdf"], "page.html"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_wrong_use_is_told(corpus, tmp_path, capsys, arguments, message):
    assert main(["compare", *arguments, "--corpus", str(corpus.path), "--out", str(tmp_path / "out")]) == 2
    told = capsys.readouterr().err
    assert message in told
    assert "repair:" in told
    assert not (tmp_path / "out").exists()


def test_masks_that_never_come_round_are_told(corpus, tmp_path, capsys):
    places = ["--corpus", str(corpus.path), "--out", str(tmp_path / "out")]
    assert main(["compare", "--preset", "masks", *places, "--steps", "2", *FLAGS, *ROWS]) == 0
    out = capsys.readouterr().out
    told = next(line for line in out.splitlines() if line.startswith("warning: no mask comes back"))
    assert "static-x1 (" in told
    assert "static-x10 (" in told
    assert "dynamic" not in told


def line(corpus, out):
    places = ["--corpus", str(corpus.path), "--out", str(out)]
    return ["compare", "bert", "roberta", *places, "--steps", "30", *FLAGS, *ROWS]


def updates(run):
    log = run / "metrics.jsonl"
    return log.read_bytes().count(b"\n") if log.is_file() else 0


def test_stopped_and_killed_it_goes_on_and_finds_the_same(corpus, tmp_path):
    whole, out = tmp_path / "whole", tmp_path / "out"
    assert main(line(corpus, whole)) == 0
    first = Command(line(corpus, out), tmp_path / "said")
    assert first.wait_until(lambda: updates(out / "bert" / "seed-0") > 5)
    first.signal_group(signal.SIGTERM)
    code, _, told = first.end()
    assert code == 143, told
    assert "the same command goes on from here" in told
    assert not json.loads((out / "comparison.json").read_text())["finished"]
    second = Command(line(corpus, out), tmp_path / "said")
    assert second.wait_until(lambda: updates(out / "roberta" / "seed-0") > 5)
    second.signal_group(signal.SIGKILL)
    second.end()
    between = json.loads((out / "comparison.json").read_text())
    assert [each["masked"] is not None for each in between["variants"]] == [True, False]
    assert main(line(corpus, out)) == 0
    one, other = (json.loads((each / "comparison.json").read_text()) for each in (whole, out))
    for left, right in zip(one["variants"], other["variants"], strict=True):
        assert left["masked"] == right["masked"]
    for name in ("bert", "roberta"):
        weights = [(each / name / "seed-0" / "model.safetensors").read_bytes() for each in (whole, out)]
        assert weights[0] == weights[1]


# Models that read in order


@pytest.fixture(scope="module")
def ordered(corpus, tmp_path_factory):
    out = tmp_path_factory.mktemp("ordered") / "out"
    settings = ["--set", "training.length=16", "--set", "model.width=16", "--set", "training.batch=4"]
    small = ["--size", "tiny", *settings, "--set", "training.eval_rows=16", "--steps", "8", "--rows", "32"]
    variants = ["gpt2", "xl=transformer-xl:model.memory=16", "none=transformer-xl:model.memory=0"]
    assert main(["compare", *variants, "--corpus", str(corpus.path), "--out", str(out), *small]) == 0
    return out


def test_models_that_read_in_order_are_asked_for_the_next_token(ordered):
    """Before, both were trained and nothing was asked."""
    found = json.loads((ordered / "comparison.json").read_text())
    assert found["equal"]["examination"]["asked_for"] == "next_token"
    answers = [each["next"] for each in found["variants"]]
    assert len({(each["answers"], each["rows"]) for each in answers}) == 1, "the same text"
    for each in answers:
        low, high = each["loss_interval"]
        assert low <= each["loss"] <= high
        assert each["perplexity"] == pytest.approx(np.exp(each["loss"]))
    assert found["verdict"]["metric"] == "loss"
    assert found["verdict"]["best"] == min(found["variants"], key=lambda each: each["next"]["loss"])["label"]
    page = (ordered / "comparison.md").read_text(encoding="utf-8")
    assert "perplexity" in page
    assert "ahead" in page


def test_the_next_token_is_asked_as_plain_arithmetic_does(ordered, corpus):
    """Row by row, without lanes and batches."""
    found = json.loads((ordered / "none" / "answers-0.json").read_text())["answers"]["next_token"]
    model = load(ordered / "none" / "seed-0")
    trained = RunFolder(ordered / "none" / "seed-0").recipe
    asked = Examination.of("roberta", corpus, 32, (), {"training.length": 16})
    feed = Feed(asked.next(trained), corpus, 0, "heldout")
    phase = feed.phases[0]
    order, turns = feed.walk(phase, 32)
    _, rows = order.visit(np.arange(order.lanes * turns))
    losses = []
    for number in sorted(rows.tolist()):
        batch = feed.make(0, phase, np.zeros(1, dtype=np.int64), np.array([number]))
        with torch.no_grad():
            states = model.network(inputs_of(batch)).packed
        head = model.heads["next_token"]
        scores = head(states, model.network.embeddings.tokens).log_softmax(-1)
        losses.append(-float(scores[:-1].gather(1, batch.ids[0, 1:, None]).sum().detach()))
    assert losses == pytest.approx(found["loss"], rel=1e-4)


def test_a_memory_is_given_to_those_that_have_one(ordered):
    with_memory, without = (
        json.loads((ordered / name / "answers-0.json").read_text())["answers"]["next_token"] for name in ("xl", "none")
    )
    assert len(with_memory["loss"]) == len(without["loss"])
    assert with_memory["loss"] != without["loss"]
