"""The settings that are chosen: by the model, the rows and the folder; what is given wins in every door."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from networks import model_of
from small_task import examples_of, family_model, quiet

from maskery.checkpoint.load import load
from maskery.checkpoint.pooling import folder_pooling, modes_of
from maskery.language import phrases
from maskery.model.config import Architecture
from maskery.tasks.defaults import Facts, chosen, layer_parameters, rate_of, short_note, short_run
from maskery.tasks.estimator import Classifier
from maskery.tasks.examples import Example, Examples
from maskery.tasks.finetune import finetune
from maskery.tasks.plan import Plan
from maskery.tasks.weak import weakness

BASE, MINILM, TINY = 85_000_000, 10_600_000, 400_000


def facts(**changes):
    return Facts(**{"task": "classify", "rows": 5000, "parameters": BASE, **changes})


def test_rates_fall_with_the_size_and_stay_within_what_is_published():
    assert [rate_of(size) for size in (TINY, MINILM, BASE)] == [3e-4, 1.4e-4, 3.7e-5]
    assert 1e-5 <= rate_of(300_000_000) <= 2e-5 <= rate_of(BASE) <= 5e-5
    assert layer_parameters(Architecture()) == 12 * 12 * 768**2
    assert layer_parameters(Architecture(share="all")) == layer_parameters(Architecture()), "they act in every layer"


def test_few_rows_have_enough_updates():
    for rows in (100, 300, 700, 1000, 4000):
        found = chosen(facts(rows=rows, parameters=MINILM))
        updates = found.epochs * rows / found.batch
        assert updates >= 120 or found.epochs == 20, rows
    assert chosen(facts(rows=100)).batch == 16 != chosen(facts(rows=1000)).batch == 32
    once = [chosen(facts(rows=rows, epochs=1.0)).batch for rows in (100, 300, 1000, 2400, 10_000)]
    assert once == [4, 4, 8, 32, 32], "few updates are made more by smaller batches"
    assert chosen(facts(rows=50_000)).epochs == 3
    assert chosen(facts(rows=50_000, weak=True)).epochs == 8
    many = chosen(facts(rows=100))
    assert many.epochs / many.evaluate_every <= 10


def test_a_frozen_encoder_has_another_rate():
    assert chosen(facts(frozen=True)).lr > 20 * chosen(facts()).lr


@pytest.mark.parametrize(
    ("changes", "pool"),
    [
        ({}, "auto"),
        ({"pooling": "mean"}, "mean"),
        ({"pooling": "first"}, "first"),
        ({"pooling": "weighted"}, "auto"),
        ({"weak": True}, "mean"),
        ({"weak": True, "has_pooler": True}, "auto"),
        ({"pooling": "mean", "has_head": True}, "auto"),
        ({"pooling": "mean", "task": "tag"}, "auto"),
    ],
)
def test_pooling(changes, pool):
    assert chosen(facts(**changes)).pool == pool


def test_what_a_folder_says_of_pooling(tmp_path):
    assert folder_pooling(tmp_path) is None
    (tmp_path / "1_Pooling").mkdir()
    config = tmp_path / "1_Pooling" / "config.json"
    (tmp_path / "modules.json").write_text(json.dumps([{"idx": 1, "path": "1_Pooling", "type": "a.b.Pooling"}]))
    assert folder_pooling(tmp_path) is None, "the step's folder is empty"
    for said, wanted in (
        ({"pooling_mode_mean_tokens": True}, "mean"),
        ({"pooling_mode": "cls"}, "first"),
        ({"pooling_mode": ["mean", "max"]}, None),
        ({"pooling_mode": "strange"}, None),
        ([], None),
    ):
        config.write_text(json.dumps(said))
        assert folder_pooling(tmp_path) == wanted, said
    assert modes_of({"pooling_mode": ["cls", "strange"]}) == (("first",), ("strange",))


def test_short_runs(tmp_path):
    assert short_run(tmp_path) is None
    for state, short in (({"tokens": 5000}, 5000), ({"tokens": 10**10}, None), ({"tokens": 5, "task": {}}, None)):
        (tmp_path / "state.json").write_text(json.dumps(state))
        assert short_run(tmp_path) == short
        assert ("read 5,000 tokens" in short_note(tmp_path)) is (short is not None)


def test_a_short_run_is_named_though_it_is_ahead_of_frequencies(tmp_path, monkeypatch):
    family_model(tmp_path / "base", "bert")
    (tmp_path / "base" / "state.json").write_text(json.dumps({"tokens": 70_000}))
    monkeypatch.setattr("maskery.tasks.finetune.weakness", lambda model, train: None)
    told = []
    train = examples_of("classify", 16)
    finetune(tmp_path / "base", out=tmp_path / "run", train=train, settings={"epochs": 1}, say=told.append)
    (line,) = [line for line in told if "hardly trained" in line]
    assert "its pretraining read 70,000 tokens" in line
    assert told.index(line) < next(at for at, each in enumerate(told) if each.startswith("micro-batch"))
    assert "底座模型训练不足" in phrases("zh").line(line)


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    """A folder of sentence-transformers that pools by the mean."""
    folder = tmp_path_factory.mktemp("encoder") / "model"
    family_model(folder, "bert")
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text('{"pooling_mode_mean_tokens": true}')
    (folder / "modules.json").write_text(json.dumps([{"idx": 1, "path": "1_Pooling", "type": "x.Pooling"}]))
    return folder


def test_every_door_chooses_alike_and_what_is_given_wins(encoder, tmp_path):
    train, told = examples_of("classify", 40), []
    run = finetune(encoder, out=tmp_path / "run", train=train, settings={"epochs": 1}, say=told.append)
    config = run.model.config
    assert (config.read.pool, config.training.lr, config.training.batch, config.epochs) == ("mean", 3e-4, 4, 1)
    (line,) = [line for line in told if line.startswith("chosen: ")]
    assert "epochs" not in line
    assert "pooling mean (as the model's folder pools)" in line
    texts, labels = [each.texts[0] for each in train], [each.label for each in train]
    made = Classifier(encoder, epochs=1).fit(texts, labels).model_.config
    assert (made.read.pool, made.training.lr, made.training.batch) == ("mean", 3e-4, 4)
    own = Classifier(encoder, epochs=1, lr=1e-3, batch=7, pool="first").fit(texts, labels).model_.config
    assert (own.read.pool, own.training.lr, own.training.batch) == ("first", 1e-3, 7)


def test_parts_of_the_data_have_their_own_epochs(encoder, tmp_path):
    train, dev = examples_of("classify", 40), examples_of("classify", 8, 50)
    settings = {"training": {"batch": 40}}
    plan = Plan(curve=True)
    run = finetune(encoder, out=tmp_path / "run", train=train, dev=dev, settings=settings, plan=plan, say=quiet)
    sizes = sorted(run.path.glob("examples-*"), key=lambda path: int(path.name.split("-")[1]))
    assert len(sizes) > 1
    assert all("epochs = 20.0" in (path / "task.toml").read_text() for path in sizes)


# -- is the base model trained?


def frequent(many=200, seed=0):
    """Texts whose words come in fixed pairs: cat is followed by sat, on by mat."""
    draw = np.random.default_rng(seed)
    words = [("cat sat", "on mat", "the dog", "a tree")[each] for each in draw.integers(0, 4, (many, 6)).ravel()]
    items = tuple(Example(guid=str(at), texts=(" ".join(words[at * 6 : at * 6 + 6]),)) for at in range(many))
    return Examples(task="classify", fields=("text",), items=items)


def test_an_untrained_model_is_named(tmp_path):
    model_of("masked_token").save(tmp_path / "drawn")
    found = weakness(load(tmp_path / "drawn"), frequent())
    assert found is not None
    assert "norms" in found.why
    assert "warning: the base model is hardly trained" in found.note
    told = []
    finetune(
        tmp_path / "drawn", out=tmp_path / "run", train=examples_of("classify", 16), settings={"epochs": 1},
        say=told.append,
    )  # fmt: skip
    assert any("hardly trained" in line for line in told)


def test_a_model_is_compared_with_frequencies(tmp_path):
    """With moved norms the loss on hidden tokens decides: drawn weights lose to frequencies, a bias that knows them
    and the neighbours wins."""
    made = model_of("masked_token")
    with torch.no_grad():
        for name, each in made.network.named_parameters():
            if "norm" in name:
                each.add_(0.01)
    train = frequent()
    found = weakness(made, train)
    assert found is not None
    assert "that of their frequencies" in found.why
    counts = torch.ones(made.tokenizer.vocabulary, dtype=torch.float64)
    for each in train:
        for number in made.tokenizer.encode(each.texts[0])[0]:
            counts[number] += 1
    counts[list(made.tokenizer.specials.ids)] = 1e-3
    head = made.heads["masked_token"]
    with torch.no_grad():
        made.network.embeddings.tokens.zero_()
        head.bias.copy_((counts / counts.sum()).log())
    assert weakness(made, train) is None, "it knows the frequencies better than the sample does"
