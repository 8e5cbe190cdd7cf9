"""Examples of several rows: fields read apart, and both orders, against each row read alone and joined by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from small_task import LABELS, config_of, examples_of, family_model, quiet, task_model

from maskery.checkpoint.load import load
from maskery.checkpoint.model import Model
from maskery.errors import InputError
from maskery.tasks.batches import TASK
from maskery.tasks.examples import Example, Examples
from maskery.tasks.folder import TaskFolder
from maskery.tasks.model import TaskModel
from maskery.tasks.resolve import Splits, resolve
from maskery.tasks.run import tune
from maskery.tasks.system import LANGUAGE

SHARED, APART, BOTH = {"towers": "shared"}, {"towers": "apart"}, {"orders": "both"}
WORDS = ["the cat", "x y z", "on the mat sat", "a", "b c d e f g", "cat cat", "mat", "the x on y"]


def of_fields(task, fields, many=8, *, meta=False):
    """Examples of so many texts each, no two alike (|u-v| has no gradient at 0); labels in turn."""
    names = tuple("abc"[:fields])
    labels = {"regress": [0.0, 0.5, 1.5], "multilabel": [frozenset(), frozenset("x"), frozenset("yz")]}
    said = labels.get(task, LABELS.get(task, ()))
    items = tuple(
        Example(
            guid=f"t-{number}",
            texts=tuple(WORDS[(number + 3 * side) % len(WORDS)] for side in range(fields)),
            label=said[number % len(said)],
            meta=(("red", "blue")[number % 2], float(number)) if meta else (),
        )
        for number in range(many)
    )
    return Examples(task=task, fields=names, items=items, meta=("colour", "size") if meta else ())


def made_of(folder, examples, rows, family="bert", **tables):
    model = family_model(folder / "model", family)
    columns = {"text": examples.fields, "meta": examples.meta}
    return task_model(model, examples.task, examples, std=0.2, rows=rows, columns=columns, **tables)


def read_alone(made, network, ids):
    """The vector of one row, read by itself."""
    hidden = Model(network, {}, made.model.tokenizer)(torch.tensor([ids]))
    if made.config.read.pool == "pooler":
        return hidden.pooled[0]
    slots = hidden.last[0]
    return {"mean": slots.mean(0), "first": slots[0], "last": slots[-1]}[made.config.read.pool]


def joined(law, vectors):
    if law == "difference":
        return torch.cat([*vectors, (vectors[0] - vectors[1]).abs()])
    return torch.cat(vectors) if law == "concat" else sum(vectors)


def slow_scores(made, examples, law, framed):
    """(E,C) with each row read alone; `framed`: texts of an example -> ids of its rows."""
    networks = [made.model.network, *made.system.towers.values()]
    found = []
    for number, example in enumerate(examples):
        rows = framed(example.texts)
        whose = networks if len(networks) > 1 else networks * len(rows)
        vector = joined(law, [read_alone(made, network, ids) for network, ids in zip(whose, rows, strict=True)])
        if examples.meta:
            arrays = made.config.meta.arrays(examples)
            tables = [table[arrays.categories[number, at]] for at, table in enumerate(made.system.join.tables)]
            vector = torch.cat([vector, *tables, torch.from_numpy(arrays.quantities[number])])
        found.append(made.system.head(vector[None])[0])
    return torch.stack(found)


def slow_loss(made, examples, scores):
    labels = [example.label for example in examples]
    if examples.task == "regress":
        return F.mse_loss(scores[:, 0], torch.tensor(labels))
    if examples.task == "multilabel":
        wanted = torch.tensor([[float(name in label) for name in made.config.labels] for label in labels])
        return F.binary_cross_entropy_with_logits(scores, wanted)
    return F.cross_entropy(scores, torch.tensor([made.config.labels.index(label) for label in labels]))


def gradients(made, loss):
    made.system.zero_grad()
    loss.backward()
    return {name: each.grad.clone() for name, each in made.system.named_parameters() if each.grad is not None}


def alike(one, other):
    assert one.keys() == other.keys()
    for name, each in one.items():
        scale = max(1.0, each.abs().max().item())
        torch.testing.assert_close(each / scale, other[name] / scale, atol=1e-6, rtol=1e-5)


def bert_rows(made):
    return lambda texts: [made.model.tokenizer.encode(text)[0] for text in texts]


CASES = [
    ("pair", 2, SHARED, "difference", "auto", False),
    ("pair", 2, APART, "difference", "auto", False),
    ("pair", 2, {**SHARED, "join": "concat"}, "concat", "mean", True),
    ("classify", 3, SHARED, "concat", "auto", False),
    ("classify", 3, APART, "concat", "first", True),
    ("regress", 2, SHARED, "difference", "mean", False),
    ("regress", 2, {**APART, "join": "concat"}, "concat", "auto", False),
    ("multilabel", 2, APART, "difference", "mean", False),
]


@pytest.mark.parametrize(("task", "fields", "rows", "law", "pool", "meta"), CASES)
def test_towers_are_each_field_alone(task, fields, rows, law, pool, meta, tmp_path):
    examples = of_fields(task, fields, meta=meta)
    made = made_of(tmp_path, examples, rows, read={"pool": pool})
    assert made.config.rows.join == law
    if made.system.towers:  # so that it matters which one reads
        with torch.no_grad():
            for number, tower in made.system.towers.items():
                tower.embeddings.tokens.add_(torch.linspace(0, int(number), 16))
    feed = made.feed(examples, quiet)
    scores = slow_scores(made, examples, law, bert_rows(made))
    np.testing.assert_allclose(made.scores(feed), scores.detach().numpy(), atol=1e-6)
    expected = slow_loss(made, examples, scores)
    batch = feed.asked(np.arange(len(examples)))
    assert made.system.counts(batch) == {TASK: len(examples)}
    loss = made.system(batch)[TASK] / len(examples)
    assert loss.item() == pytest.approx(expected.item(), abs=1e-6)
    alike(gradients(made, loss), gradients(made, expected))


def test_the_shared_encoder_learns_of_both_fields(tmp_path):
    """Its gradient is the sum of those that its copies get, each of its own field."""
    examples = of_fields("pair", 2)
    found = {}
    for name, rows in (("shared", SHARED), ("apart", APART)):
        made = made_of(tmp_path / name, examples, rows)
        loss = made.system(made.feed(examples, quiet).asked(np.arange(8)))[TASK]
        found[name] = gradients(made, loss)
    apart, shared = found["apart"], found["shared"]
    for name, each in shared.items():
        other = apart.get(name.replace("network.", "towers.1.", 1)) if name.startswith("network.") else 0
        torch.testing.assert_close(each, apart[name] + other, atol=1e-5, rtol=1e-4)


def gpt_rows(made):
    """[CLS] a [SEP] b [CLS], as a GPT with these marks reads, and the same with b before a."""
    tokenizer = made.model.tokenizer
    cls, sep = tokenizer.specials.cls, tokenizer.specials.sep

    def framed(texts):
        a, b = (tokenizer.encode(text)[0][1:-1] for text in texts)
        return [[cls, *a, sep, *b, cls], [cls, *b, sep, *a, cls]]

    return framed


@pytest.mark.parametrize("task", ["pair", "regress"])
@pytest.mark.parametrize("family", ["gpt2", "openai-gpt"])
def test_both_orders_are_added(family, task, tmp_path):
    examples = of_fields(task, 2)
    made = made_of(tmp_path, examples, BOTH, family)
    scores = slow_scores(made, examples, "sum", gpt_rows(made))
    feed = made.feed(examples, quiet)
    np.testing.assert_allclose(made.scores(feed), scores.detach().numpy(), atol=1e-6)
    loss = made.system(feed.asked(np.arange(8)))[TASK] / 8
    expected = slow_loss(made, examples, scores)
    assert loss.item() == pytest.approx(expected.item(), abs=1e-6)
    alike(gradients(made, loss), gradients(made, expected))


def exchanged(examples):
    return replace(examples, items=tuple(replace(each, texts=each.texts[::-1]) for each in examples))


@pytest.mark.parametrize("length", [0, 7])
def test_exchanging_the_texts_changes_nothing(length, tmp_path):
    """Also where texts are cut."""
    examples = of_fields("regress", 2)
    both = made_of(tmp_path / "both", examples, {**BOTH, "length": length}, "gpt2")
    one = made_of(tmp_path / "one", examples, {"orders": "one", "length": length}, "gpt2")
    scores = {
        made: [made.scores(made.feed(each, quiet)) for each in (examples, exchanged(examples))] for made in (both, one)
    }
    np.testing.assert_allclose(*scores[both], atol=1e-6)
    assert abs(np.subtract(*scores[one])).max() > 1e-2


@pytest.mark.parametrize("rows", [BOTH, SHARED, APART], ids=["both", "shared", "apart"])
def test_the_language_model_is_asked_of_all_rows(rows, tmp_path):
    examples = of_fields("regress", 2)
    made = made_of(tmp_path, examples, rows, "gpt2", head={"lm": 0.5})
    feed = made.feed(examples, quiet)
    batch = feed.asked(np.arange(8))
    with torch.no_grad():
        sums = made.system(batch)
        total, count = 0.0, 0
        for row in range(batch.size):
            ids = batch.ids[row, : batch.length[row]]
            logits = made.model.logits(ids[None])[0, :-1]
            total += F.cross_entropy(logits, ids[1:], reduction="sum").item()
            count += len(ids) - 1
    assert batch.size == 16
    assert made.system.counts(batch) == {TASK: 8, LANGUAGE: count}
    assert sums[LANGUAGE].item() == pytest.approx(total, rel=1e-5)
    if rows is APART:
        with torch.no_grad():
            made.system.towers["1"].embeddings.tokens.add_(3 * torch.randn(16))
            assert made.system(batch)[LANGUAGE].item() != pytest.approx(total, rel=1e-3)


MICRO = [("pair", "bert", SHARED), ("pair", "bert", APART), ("regress", "gpt2", BOTH), ("pair", "bart", APART)]


@pytest.mark.parametrize(("task", "family", "rows"), MICRO, ids=["shared", "apart", "both", "decoder"])
def test_micro_batches(task, family, rows, tmp_path):
    """And a batch that holds an example twice, and one without a label. In double precision: float32 rounds as the
    kernels of a processor add."""
    examples = of_fields(task, 2)
    examples = replace(examples, items=(*examples[:7], replace(examples[7], label=None)))
    made = made_of(tmp_path, examples, rows, family)
    made.system.double()
    feed = made.feed(examples, quiet)
    assert (feed.units, feed.largest_unit) == (8, 2)
    units, found = np.array([3, 1, 3, 7, 0, 2]), []
    for micro in (6, 2, 1):
        batches = [feed.asked(units[start : start + micro]) for start in range(0, 6, micro)]
        assert sum(made.system.counts(batch)[TASK] for batch in batches) == 5
        found.append(gradients(made, sum(made.system(batch)[TASK] for batch in batches)))
    alike(found[0], found[1])
    alike(found[0], found[2])


def tuned(model, out, rows, *, resume=False, watch=lambda update, line: None, say=quiet):
    splits = Splits(examples_of("pair", 24), examples_of("pair", 12, 50))
    loaded = load(model)
    config = config_of("pair", epochs=2, rows=rows, training={"lr": 1e-2})
    config = resolve(config, loaded, splits, LABELS["pair"], quiet)
    return tune(TaskModel(loaded, config), splits, out, resume=resume, say=say, watch=watch), splits


class KilledError(Exception):
    """As if the process had ended there."""


RUNS = [("bert", SHARED), ("bert", APART), ("gpt2", BOTH)]


@pytest.mark.parametrize(("family", "rows"), RUNS, ids=["shared", "apart", "both"])
def test_a_run_is_the_same_again(family, rows, tmp_path):
    """From its folder the same answers; killed and resumed the same bits."""
    family_model(tmp_path / "model", family, dropout=0.1, attention_dropout=0.1)
    told = []
    made, splits = tuned(tmp_path / "model", tmp_path / "whole", rows, say=told.append)
    assert any("micro-batch: 8 examples of 2 rows (the whole batch fits)" in line for line in told)
    again = TaskModel.load(tmp_path / "whole")
    assert again.config == made.config
    assert again.config.columns.text == ("text_a", "text_b")
    feed = made.feed(splits.dev, quiet)
    np.testing.assert_array_equal(again.scores(again.feed(splits.dev, quiet)), made.scores(feed))
    assert again.predict(splits.dev, quiet).answers == made.answers(feed).answers

    def killing(update, _line):
        if update.step == 4:
            raise KilledError

    with pytest.raises(KilledError):
        tuned(tmp_path / "model", tmp_path / "killed", rows, watch=killing)
    tuned(tmp_path / "model", tmp_path / "killed", rows, resume=True)
    for name in ("model.safetensors", "task.safetensors", "task.toml"):
        assert (tmp_path / "killed" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    last = [TaskFolder(tmp_path / out).checkpoints()[-1][1] for out in ("whole", "killed")]
    for name in ("weights.safetensors", "optimizer.safetensors"):
        assert (last[0] / name).read_bytes() == (last[1] / name).read_bytes()


def test_encoders_apart_begin_alike_and_part(tmp_path):
    family_model(tmp_path / "model", "bert")
    before = load(tmp_path / "model").network.state_dict()
    begun = made_of(tmp_path / "again", examples_of("pair"), APART)
    assert all(torch.equal(each, before[name]) for name, each in begun.system.towers["1"].state_dict().items())
    made, _ = tuned(tmp_path / "model", tmp_path / "run", APART)
    networks = [made.model.network.state_dict(), made.system.towers["1"].state_dict()]
    matrices = [name for name in before if "layers" in name and name.endswith("weight")]
    assert matrices
    for name in matrices:
        assert not torch.equal(networks[0][name], networks[1][name])
        assert not torch.equal(networks[1][name], before[name])


def test_limits_and_length_are_of_each_row(tmp_path):
    told = []
    examples = of_fields("pair", 2)
    made = made_of(tmp_path, examples, {**SHARED, "limits": (2, 3), "length": 5})
    rows = made.feed(examples, told.append).rows
    assert rows.part.tolist() == [0, 1] * 8
    assert rows.example.tolist() == [each // 2 for each in range(16)]
    assert rows.length[0::2].max() == 4
    assert rows.length[1::2].max() == 5
    assert not rows.segments.any()
    assert any(line.startswith("a: ") and "cut" in line for line in told)
    assert any(line.startswith("b: ") and "cut" in line for line in told)
    with pytest.raises(InputError, match="reads 2 apart"):
        made.feed(of_fields("pair", 3), quiet)


def test_the_length_is_chosen_for_single_rows(tmp_path):
    examples = of_fields("pair", 2)
    apart = made_of(tmp_path / "apart", examples, SHARED)
    one = made_of(tmp_path / "one", examples, {})
    assert (apart.config.rows.length, one.config.rows.length) == (8, 16)


def test_what_is_settled_is_told(tmp_path):
    told = []
    gpt = family_model(tmp_path / "gpt", "openai-gpt")
    assert gpt.family == "openai-gpt"
    two, columns = of_fields("regress", 2), {"text": ("a", "b")}
    settled = [
        task_model(model, "regress", two, say=told.append, columns=columns, rows=rows).config.rows.orders
        for model, rows in (
            (gpt, {}),
            (gpt, {"orders": "one"}),
            (gpt, {"windows": 2, "length": 12}),
            (family_model(tmp_path / "gpt2", "gpt2"), {}),
            (family_model(tmp_path / "bert", "bert"), {}),
        )
    ]
    assert settled == ["both", "one", "one", "one", "one"]
    assert sum("rows.orders=one if their order matters" in line for line in told) == 1
    assert sum("both orders have no windows" in line for line in told) == 1
    assert task_model(gpt, "regress").config.rows.orders == "one", "of one text"
    assert "[CLS] starts a row and ends it, [SEP] parts its texts" in told


REFUSED = [
    ("classify", 1, {"rows": SHARED}, "there is one: a"),
    ("rank", 2, {"rows": SHARED}, "no towers for rank: every candidate"),
    ("choice", 2, {"rows": APART}, "no towers for choice"),
    ("qa", 2, {"rows": APART}, "no towers for qa"),
    ("tag", 1, {"rows": APART}, "no towers for tag"),
    ("pair", 2, {"rows": {**SHARED, "windows": 2}}, "several vectors"),
    ("pair", 2, {"rows": {**SHARED, **BOTH}}, "no order"),
    ("pair", 2, {"rows": APART, "read": {"frozen": True}}, "stay alike"),
    ("classify", 3, {"rows": {**SHARED, "join": "difference"}}, "difference is of two"),
    ("pair", 2, {"rows": {"join": "concat"}}, "nothing to join"),
    ("regress", 1, {"rows": BOTH}, "both orders are for the two texts of pair or regress"),
    ("multilabel", 2, {"rows": BOTH}, "this is multilabel of a, b"),
    ("pair", 2, {"rows": {**BOTH, "windows": 2}}, "same parts"),
]


@pytest.mark.parametrize(("task", "fields", "tables", "cause"), REFUSED)
def test_refused(task, fields, tables, cause, towers_model):
    columns = {"text": tuple("abc"[:fields])}
    config = config_of(task, columns=columns, **tables)
    with pytest.raises(InputError, match=cause) as refused:
        resolve(config, towers_model, Splits(examples_of("classify")), LABELS.get(task, ()), quiet)
    assert str(refused.value.where).startswith("rows.")
    assert refused.value.repair


@pytest.fixture(scope="module")
def towers_model(tmp_path_factory):
    return family_model(tmp_path_factory.mktemp("model") / "model", "bert")


def test_frozen_towers_share_what_they_read(tmp_path):
    examples = of_fields("pair", 2)
    made = made_of(tmp_path, examples, SHARED, read={"frozen": True})
    loss = made.system.train()(made.feed(examples, quiet).asked(np.arange(8)))[TASK]
    assert {name.partition(".")[0] for name in gradients(made, loss)} == {"head"}
