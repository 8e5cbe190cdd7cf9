"""Training of encoders: batches, gradient caching, the run with resuming and stopping, SimBERT, hard negatives."""

from __future__ import annotations

import json
import os
import re
import signal
from dataclasses import replace

import numpy as np
import pytest
import torch
from small_encoder import DATA, PIECES, labelled, lines, pairs, quiet, scored, small_encoder, text, triplets

from maskery import randomness
from maskery.checkpoint.load import load
from maskery.cli.live_task import DevMeter
from maskery.errors import ArgumentError, InputError, RecipeError, Stopped, UnknownName
from maskery.model.config import Architecture
from maskery.train.loop import Trainer, Update
from maskery.train.optimizers import AdamW
from maskery.vectors.encoder import Encoder
from maskery.vectors.learn.batches import SIMILARITY
from maskery.vectors.learn.contrast import not_rivals
from maskery.vectors.learn.data import text_set
from maskery.vectors.learn.defaults import scaled
from maskery.vectors.learn.dev import DevSet, dev_set
from maskery.vectors.learn.mining import MiningSettings, mine
from maskery.vectors.learn.prepare import feed_of, resolved, system_of
from maskery.vectors.learn.run import train_encoder
from maskery.vectors.learn.settings import learn_config
from maskery.vectors.steps import Dense, Normalize
from maskery.writing.forms import form_of
from maskery.writing.generate import generate

WHOLE = ("multiple_negatives", "cosent", "simcse", "simcse_supervised", "simbert")


def parts(loss, batch=8, dropout=0.1, **more):
    """System and feed of a loss on its own kind of data."""
    made, texts = small_encoder("first", dropout=dropout), DATA[loss]()
    config = learn_config(loss, {**more, "training": {"batch": batch, "lr": 1e-3}})
    config = resolved(config, texts, made, quiet)
    system = system_of(made, config, quiet)
    return config, system, feed_of(system.made, texts, config, quiet)


def gradient(loss, micro, *, dropout, step=0):
    """The gradient of one step, and its losses; in double precision, so that rounding hides nothing."""
    config, system, feed = parts(loss, dropout=dropout)
    system.double()
    optimizer = AdamW(system.trained, config.training)
    trainer = Trainer(config.training.model_copy(update={"clip": 0.0}), feed, system, optimizer, [micro], step=step)
    system.train()
    trainer.spread()
    found = trainer._gradient(feed.micro_batches(step, 0, 1, micro))
    return {name: each.grad.clone() for name, each in system.trained if each.grad is not None}, found.losses


def distance(one, other):
    """Of two gradients, as a share of their size."""
    assert one.keys() == other.keys()
    size = sum(float(each.square().sum()) for each in other.values()) ** 0.5
    return sum(float((one[name] - other[name]).square().sum()) for name in one) ** 0.5 / size


@pytest.mark.parametrize("loss", WHOLE)
def test_cached_gradients_are_those_of_the_whole_batch(loss):
    dropout = 0.0 if loss != "simcse" else 1e-9  # which drops nothing, and is dropout all the same
    whole, losses = gradient(loss, 8, dropout=dropout)
    for micro in (1, 3):
        found, told = gradient(loss, micro, dropout=dropout)
        assert distance(found, whole) < 1e-10
        assert told == pytest.approx(losses, rel=1e-10)


@pytest.mark.parametrize("loss", ["multiple_negatives", "simbert"])
def test_caching_reads_every_part_with_the_same_dropout_twice(loss):
    found, told = gradient(loss, 3, dropout=0.3)
    _config, system, feed = parts(loss, dropout=0.3)
    system.double().train()
    batches, vectors, tokens, count = feed.micro_batches(0, 0, 1, 3), [], 0.0, 0
    for number, batch in enumerate(batches):
        randomness.seed_dropout(randomness.key(feed.seed, "dropout", 0, 0, number))
        hidden, part = system._read(batch)
        vectors.append(part)
        if system.writes is not None:
            tokens = tokens + system.question.total(system.made.model.network, system.writes, hidden, batch)
            count += system.question.count(batch)
    joined = feed.asked(feed.chosen(0)).targets[SIMILARITY]
    mean = system.loss.compare(torch.cat(vectors), joined).losses.mean()
    (mean + tokens / max(1, count)).backward()
    wanted = {name: each.grad for name, each in system.trained if each.grad is not None}
    assert distance(found, wanted) < 1e-10
    assert told[SIMILARITY] == pytest.approx(mean.item(), rel=1e-10)


def test_batches_are_a_pure_function_of_the_step():
    _, _, feed = parts("simcse")
    one, other = (feed.micro_batches(2, 0, 1, 3) for _ in range(2))
    assert [len(batch.targets[SIMILARITY].label) for batch in one] == [3, 3, 2]
    assert all(torch.equal(a.ids, b.ids) for a, b in zip(one, other, strict=True))
    epoch = np.concatenate([feed.chosen(step) for step in range(3)])
    assert sorted(epoch) == list(range(24))
    assert torch.equal(one[0].ids[0::2], one[0].ids[1::2])  # a line is read twice


def test_two_readings_of_a_line_have_other_dropout():
    _, system, feed = parts("simcse", dropout=0.2)
    system.train()
    vectors = system.vectors(feed.asked(np.arange(4)))[SIMILARITY]
    assert vectors.shape == (4, 2, 16)
    assert not torch.allclose(vectors[:, 0], vectors[:, 1], atol=1e-3)
    system.eval()
    vectors = system.vectors(feed.asked(np.arange(4)))[SIMILARITY]
    assert torch.allclose(vectors[:, 0], vectors[:, 1], atol=1e-6)
    with pytest.raises(InputError, match="no dropout"):
        parts("simcse", dropout=0.0)


def test_simbert_reads_both_orders_and_writes_the_second_text():
    _, system, feed = parts("simbert")
    units = np.array([3, 5])
    batch = feed.asked(units)
    (a1, b1), (a2, b2) = ([PIECES_OF[t] for t in unit] for unit in feed.units[units])
    cls, sep = 2, 3
    rows = [[cls, *one, sep, *other] for one, other in ((a1, b1), (b1, a1), (a2, b2), (b2, a2))]
    assert [batch.ids[row, : batch.length[row]].tolist() for row in range(4)] == rows
    asked = batch.targets["next_token"]
    width = batch.ids.shape[1]
    wanted = [token for other in (b1, a1, b2, a2) for token in (*other, sep)]
    assert asked.label.tolist() == wanted
    first = asked.index[: len(b1) + 1].tolist()
    assert first == list(range(len(a1) + 1, len(a1) + len(b1) + 2))
    assert first[-1] < width
    # The first text does not see the second: its vector is that of the text by itself.
    system.eval()
    found = system.vectors(batch)[SIMILARITY].flatten(0, 1).numpy()
    texts = [" ".join(PIECES[each] for each in part) for part in (a1, b1, a2, b2)]
    assert np.abs(found - Encoder(system.made, say=quiet).encode(texts)).max() < 1e-5
    assert [step.bend for step in system.made.steps] == ["identity"]


PIECES_OF = [[PIECES.index(word) for word in each.split()] for each in pairs().texts]


def run(tmp_path, loss="multiple_negatives", name="run", **more):
    settings = {"epochs": 2, "eval_every": 2, "training": {"lr": 5e-3, "batch": 8, "micro": 3, "save_every": 100}}
    told = []
    encoder = train_encoder(
        more.pop("model", None) or small_encoder(),
        loss=loss,
        train=DATA[loss](),
        dev=scored(12, 5),
        out=tmp_path / name,
        settings=settings,
        say=told.append,
        **more,
    )
    return encoder, told


def test_a_run_leaves_the_best_encoder_and_goes_on_bitwise(tmp_path):
    encoder, told = run(tmp_path)
    folder = tmp_path / "run"
    state, texts = json.loads((folder / "state.json").read_text()), ["the cat", "a old sea"]
    log = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    figures = {line["step"]: line["eval/spearman"] for line in log if "eval/spearman" in line}
    assert [line["step"] for line in log] == list(range(1, 7))
    assert sorted(figures) == [2, 4, 6]
    best = max(figures, key=lambda step: figures[step])
    assert (state["best"]["step"], state["best"]["value"], state["finished"]) == (best, figures[best], True)
    opened = Encoder(folder, say=quiet)
    assert np.array_equal(opened.encode(texts), encoder.encode(texts))
    assert DevSet(scored(12, 5)).judge(system_for(opened))["spearman"] == pytest.approx(figures[best], abs=1e-9)
    assert any("gradients cached" in line for line in told)
    assert any("before training" in line for line in told)

    def stop(update, line):
        if update.step == 3:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(Stopped):
        run(tmp_path, name="stopped", watch=stop)
    early = Encoder(tmp_path / "stopped", say=quiet).encode(texts)  # the best so far
    assert early.shape == (2, 16)
    with pytest.raises(RecipeError, match="other examples"):
        train_encoder(
            small_encoder(), loss="multiple_negatives", train=pairs(10), out=tmp_path / "stopped", resume=True,
            say=quiet, settings={"epochs": 2, "eval_every": 2, "training": {"lr": 5e-3, "batch": 8, "micro": 3}},
        )  # fmt: skip
    again, _ = run(tmp_path, name="stopped", resume=True)
    assert np.array_equal(again.encode(texts), encoder.encode(texts))
    _, told = run(tmp_path, resume=True)
    assert "already finished" in told[-1]


def system_for(encoder):
    from types import SimpleNamespace

    return SimpleNamespace(made=encoder.made, projection=None)


@pytest.mark.parametrize("loss", ["softmax", "cosine", "triplet", "cosent"])
def test_every_loss_falls(tmp_path, loss):
    losses = []
    train_encoder(
        small_encoder(dropout=0.0), loss=loss, train=DATA[loss](), out=tmp_path / "run", say=quiet,
        settings={"epochs": 6, "training": {"lr": 5e-3, "batch": 12, "save_every": 0}},
        watch=lambda update, line: losses.append(update.loss),
    )  # fmt: skip
    assert np.mean(losses[-2:]) < 0.8 * losses[0]


def test_what_is_kept_and_what_is_thrown_away(tmp_path):
    config = learn_config("simcse_supervised")
    kept = system_of(small_encoder("first"), config, quiet)
    assert [type(step) for step in kept.made.steps] == [Dense]
    assert kept.projection is None
    again = system_of(kept.made, config, quiet)
    assert len(again.made.steps) == 1
    behind = small_encoder("first").changed(small_encoder("first").config, [Normalize()])
    assert [type(step) for step in system_of(behind, config, quiet).made.steps] == [Dense, Normalize]
    thrown = system_of(small_encoder("first"), learn_config("simcse"), quiet)
    assert thrown.projection is not None
    assert not len(thrown.made.steps)
    names = [name for name, _ in thrown.trained]
    assert not any("head_modules" in name for name in names)
    assert "projection.linear.weight" in names
    writes = system_of(small_encoder("first"), learn_config("simbert"), quiet)
    assert any("head_modules" in name for name, _ in writes.trained)


def test_simbert_finds_and_writes_and_simcse_goes_on(tmp_path):
    losses = []
    settings = {"epochs": 40, "length": 12, "training": {"lr": 1e-2, "batch": 6, "save_every": 0}}
    same = text_set("pairs", [(f"the {topic}", f"a small {topic}") for topic in ("cat", "dog", "tree", "sea")])
    encoder = train_encoder(
        small_encoder("first", dropout=0.001, std=0.1), loss="simbert", train=same, out=tmp_path / "bert",
        settings=settings, say=quiet, watch=lambda update, line: losses.append(line),
    )  # fmt: skip
    assert {"loss/similarity", "loss/next_token"} <= losses[0].keys()
    first, second = (encoder.encode(same.column(at), normalize=True) for at in (0, 1))
    assert (first @ second.T).argmax(1).tolist() == [0, 1, 2, 3]
    writer = load(tmp_path / "bert" / "writer")
    assert (form_of(writer).role, form_of(writer).probe) == ("source", None)
    written = [each.text for each in generate(writer, same.column(0))]
    assert sum(text == wanted for text, wanted in zip(written, same.column(1), strict=True)) >= 3, written
    further = train_encoder(
        tmp_path / "bert", loss="simcse", train=lines(8), out=tmp_path / "cse", say=quiet,
        settings={"training": {"batch": 4}, "rivals": "all", "projection": "none"},
    )  # fmt: skip
    assert [step.bend for step in further.made.steps] == ["identity"]
    assert not np.allclose(further.encode(same.column(0)), encoder.encode(same.column(0)))


def test_development_sets(tmp_path):
    config = learn_config("softmax", {"labels": ("same", "other")})
    judged = dev_set(labelled(), config)
    assert judged.headline == "accuracy"
    assert judged.texts.labels == ("same", "other")
    system = system_of(small_encoder(), config, quiet)
    system.eval()
    vectors = Encoder(system.made, say=quiet).encode
    u, v = (torch.from_numpy(vectors(judged.texts.column(at))) for at in (0, 1))
    told = system.loss.scores(torch.stack([u, v], 1)).argmax(1).numpy()
    assert judged.judge(system) == {"accuracy": float((told == judged.texts.label).mean())}
    other = dev_set(triplets(), learn_config("triplet")).judge(system)["accuracy"]
    a, p, n = (vectors(triplets().column(at), normalize=True) for at in range(3))
    assert other == pytest.approx(np.mean((a * p).sum(1) > (a * n).sum(1)))
    yes = text_set("scored", zip(pairs().column(0), pairs().column(1), strict=True), [0.0, 1.0] * 12)
    assert dev_set(yes, config).headline == "average_precision"
    with pytest.raises(InputError, match="tell nothing"):
        dev_set(pairs(), learn_config("triplet"))


def test_mined_negatives_are_near_and_never_right():
    made = Encoder(small_encoder(), say=quiet)
    found = pairs(20)
    more = [text(each, 0, 9) for each in range(5)]
    mined = mine(made, found, MiningSettings(negatives=2, first=2, last=6, margin=0.01), candidates=more)
    every = dict.fromkeys([*found.column(1), *more])
    right = {a: {p for b, p in zip(found.column(0), found.column(1), strict=True) if a == b} for a in found.column(0)}
    units, at = mined.triplets.units, 0
    texts = list(dict.fromkeys([*found.texts, *more]))
    near = dict(zip(texts, made.encode(texts, normalize=True), strict=True))
    for anchor, positive in zip(found.column(0), found.column(1), strict=True):
        cosine = {each: float(near[anchor] @ near[each]) for each in texts}
        best = max(cosine[each] for each in right[anchor])
        others = [each for each in every if each not in right[anchor] and each != anchor]
        ranked = sorted(others, key=cosine.__getitem__, reverse=True)
        wanted = [each for each in ranked[1:6] if cosine[each] <= best - 0.01][:2]
        if len(wanted) < 2:
            continue
        assert [mined.triplets.texts[number] for number in units[at]] == [anchor, positive, *wanted]
        at += 1
    assert at == len(units) > 3
    assert not not_rivals(torch.from_numpy(units))[:, len(units) :].diagonal().any()
    drawn = mine(made, found, MiningSettings(last=6, draw=True, seed=1))
    assert drawn.ranks.max() <= 6
    assert np.array_equal(drawn.ranks, mine(made, found, MiningSettings(last=6, draw=True, seed=1)).ranks)
    with pytest.raises(InputError, match="far enough"):
        mine(made, found, MiningSettings(margin=2.5))
    with pytest.raises(ArgumentError, match="5 negatives"):
        MiningSettings(negatives=5, last=3)


def test_settings_and_data_that_do_not_fit_are_told(tmp_path):
    with pytest.raises(UnknownName):
        learn_config("softmx")
    with pytest.raises(ArgumentError, match="join"):
        learn_config("softmax", {"join": "sum"})
    for loss, given, told in (
        ("cosent", {"scal": 3}, "unknown setting of vectors 'scal'\n  repair: did you mean scale"),
        (
            "cosent",
            {"margin": 2.0},
            "margin: the loss cosent does not read it\n  repair: leave it out; it bel",
        ),
        ("cosent", {"training": {"steps": 9}}, "training.steps: has no effect here"),
        ("cosent", {"training": {"batch": 0}}, "training.batch: Input should be greater than or equal to 1"),
        ("cosent", {"training": 3}, "training: 3 is no table"),
        ("simbert", {"symmetric": True}, "every text looks for its partner already"),
    ):
        with pytest.raises(InputError, match=re.escape(told)):
            learn_config(loss, given)
    for loss in ("cosent", "simcse", "simbert"):
        with pytest.raises(InputError, match=f"a batch of 1: {loss} compares"):
            parts(loss, batch=1)
    one = text_set("triplets", [("the cat", "a cat", "a dog")])
    assert resolved(learn_config("multiple_negatives"), one, small_encoder(), quiet).training.batch == 1
    with pytest.raises(InputError, match="learns from triplets"):
        train_encoder(small_encoder(), loss="triplet", train=lines(), out=tmp_path / "run", say=quiet)
    with pytest.raises(InputError, match="belong together"):
        train_encoder(small_encoder(), loss="simbert", train=scored(), out=tmp_path / "run", say=quiet)


@pytest.mark.parametrize("loss", ["simcse", "cosent"])
def test_the_network_may_have_fewer_digits_and_the_comparison_has_all(loss, tmp_path, no_waiting_for_the_disk):
    """With a temperature of 1/20 a cosine of three digits would be noise."""
    told, found = [], {}
    for precision in ("float32", "bfloat16"):
        train_encoder(
            small_encoder("first", dropout=0.0 if loss == "cosent" else 0.1), loss=loss, train=DATA[loss](),
            out=tmp_path / precision, say=told.append,
            settings={"epochs": 1, "training": {"batch": 8, "lr": 1e-3, "precision": precision}},
        )  # fmt: skip
        text = (tmp_path / precision / "metrics.jsonl").read_text()
        found[precision] = [json.loads(line)["loss"] for line in text.splitlines()]
    assert sum(line.startswith("precision: bfloat16") for line in told) == 1
    assert found["float32"] != found["bfloat16"]
    assert found["bfloat16"] == pytest.approx(found["float32"], rel=0.1)


def test_the_start_is_a_candidate_and_what_is_worse_is_not_kept(tmp_path):
    """Scores that are the opposite of what the encoder finds: training on other pairs makes dev worse."""
    texts = ["the cat", "a old sea"]
    start = small_encoder()
    before = Encoder(start, say=quiet).encode(texts)
    wanted = Encoder(start, say=quiet)
    judged = scored(12, 5)
    vectors = [wanted.encode(judged.column(at), normalize=True) for at in (0, 1)]
    perfect = replace(judged, label=(vectors[0] * vectors[1]).sum(1).astype(np.float64))
    told, lines = [], []
    encoder = train_encoder(
        start, loss="cosine", train=scored(12, 5), dev=perfect, out=tmp_path / "run", say=told.append,
        settings={"epochs": 3, "training": {"lr": 1e-2, "batch": 4}}, watch=lambda update, line: lines.append(line),
    )  # fmt: skip
    state = json.loads((tmp_path / "run" / "state.json").read_text())
    assert state["start"] == state["best"]["value"] == pytest.approx(1.0)
    assert state["best"]["step"] == 0
    assert any(line.startswith("worse than before: no evaluation reached spearman 1.0000") for line in told)
    np.testing.assert_allclose(encoder.encode(texts), before, atol=1e-6)
    assert all(line["eval/spearman"] < 1 for line in lines if "eval/spearman" in line)


def test_the_meter_knows_the_start():
    meter = DevMeter(10)
    meter.best = 0.538, 0
    update = Update(step=5, loss=1.0, losses={}, lr=1e-3, gradient_norm=1.0, tokens=10, seconds=0.1)
    meter.add(update, {"step": 5, "tokens": 10, "eval/spearman": 0.1443})
    assert meter.evaluation == "dev: spearman 0.1443 (worse than 0.5380 before training)"
    meter.add(update, {"step": 5, "tokens": 10, "eval/spearman": 0.6})
    assert "best so far" in meter.evaluation


def test_vector_training_is_scaled_to_model_and_data():
    config, told = learn_config("simcse_supervised"), []
    small = scaled(config, {}, Architecture(layers=2, width=128, heads=2), 300, told.append)
    assert (small.training.batch, small.epochs) == (30, 10)
    assert small.training.lr == pytest.approx(config.training.lr * 3e-4 / 3.7e-5, rel=0.05)
    assert "chosen for the loss simcse_supervised" in told[0]
    base = scaled(config, {}, Architecture(), 100_000, quiet)
    assert (base.training.lr, base.training.batch, base.epochs) == (5e-5, 512, 3)
    own = scaled(config, {"epochs": 3.0, "training": {"lr": 5e-5, "batch": 512}}, Architecture(layers=2), 9, quiet)
    assert own == config
