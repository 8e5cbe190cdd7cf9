"""Heads in ONNX: what onnxruntime says is what `predict` says, for every task; labels are in the metadata."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from networks import model_of
from small_task import config_of, examples_of, family_model, quiet, task_model
from vector_models import made_of

from maskery.batches import Batch
from maskery.checkpoint.load import load
from maskery.cli import main
from maskery.compress.onnx_encoder import session_of
from maskery.compress.onnx_graph import IDS, MASK, SEGMENTS
from maskery.compress.onnx_heads import write_onnx
from maskery.errors import InputError
from maskery.tasks.examples import Example, Examples
from maskery.tasks.model import TASK_FILE, TaskModel, write_task
from maskery.tasks.pools import POOLS
from maskery.tasks.resolve import Splits, resolve
from maskery.tasks.system import TaskSystem
from maskery.vectors.encoder import Encoder

TASKS = ["classify", "pair", "multilabel", "regress", "rank", "choice", "tag", "qa"]


@pytest.fixture(scope="module")
def base(tmp_path_factory, no_waiting_for_the_disk):
    folder = tmp_path_factory.mktemp("base") / "model"
    family_model(folder, "bert")
    return folder


@pytest.fixture
def saved(base, tmp_path):
    """The folder of a model that was made for a task, with numbers that matter in its head."""

    def save(task, **tables):
        task_model(load(base), task, std=0.3, **tables).save(tmp_path / "run", quiet)
        return tmp_path / "run"

    return save


def fed(batch: Batch):
    """A batch of our rows, as a caller of onnxruntime gives it."""
    mask = (torch.arange(batch.ids.shape[1]) < batch.length[:, None]).long()
    return {IDS: batch.ids.numpy(), MASK: mask.numpy(), SEGMENTS: (batch.segments * mask).numpy()}, mask.bool().numpy()


def said_by(session, batch: Batch):
    """The scores in the form of `TaskSystem.scores`."""
    given, real = fed(batch)
    names = [each.name for each in session.get_outputs()]
    found = session.run(names, {each.name: given[each.name] for each in session.get_inputs()})
    scores = np.stack(found, -1) if len(names) == 2 else found[0]
    return scores[real] if scores.ndim == 3 else scores


@pytest.mark.parametrize("task", TASKS)
def test_every_task_says_the_same_as_predict(task, saved, tmp_path, monkeypatch):
    folder = saved(task)
    found = write_onnx(folder, tmp_path / "m.onnx", say=quiet)
    assert found.outputs == (("start_logits", "end_logits") if task == "qa" else ("logits",))
    assert found.difference < 1e-5
    session = session_of((tmp_path / "m.onnx").read_bytes())
    made, examples = TaskModel.load(folder), examples_of(task, 9)
    expected = made.predict(examples, quiet)
    for _, batch in made.feed(examples, quiet).to_read():
        assert np.allclose(said_by(session, batch), made.system.scores(batch), atol=1e-5)
    monkeypatch.setattr(made.system, "scores", lambda batch: said_by(session, batch))
    again = made.predict(examples, quiet)
    if task in ("regress", "rank"):
        assert again.answers == pytest.approx(expected.answers, abs=1e-5)
    else:
        assert again.answers == expected.answers


@pytest.mark.parametrize("task", TASKS)
def test_the_metadata_tell_what_predict_knows(task, saved, tmp_path):
    folder = saved(task, **({"threshold": 1.5} if task == "qa" else {}))
    write_onnx(folder, tmp_path / "m.onnx", say=quiet)
    about = session_of((tmp_path / "m.onnx").read_bytes()).get_modelmeta().custom_metadata_map
    config = TaskModel.load(folder).config
    assert about.pop("task") == task
    assert json.loads(about.pop("labels")) == list(config.labels)
    assert about.pop("max_length") == str(config.rows.length)
    functions = {"classify": "softmax", "pair": "softmax", "tag": "softmax", "multilabel": "sigmoid"}
    assert about.pop("function_to_apply") == functions.get(task, "none")
    assert about == {"qa": {"threshold": "1.5"}, "multilabel": {"threshold": "0.5"}}.get(task, {})


@pytest.mark.parametrize("pool", [name for name in POOLS if name != "pooler"])
def test_every_pooling(pool, saved, tmp_path):
    folder = saved("classify", read={"pool": pool})
    assert write_onnx(folder, tmp_path / "m.onnx", say=quiet).difference < 1e-5


@pytest.mark.parametrize("activation", ["relu", "tanh", "gelu", "none"])
@pytest.mark.parametrize("task", ["classify", "tag"])
def test_layers_of_a_head(task, activation, saved, tmp_path):
    layers = [{"width": 8, "activation": activation, "norm": True}, {"width": 5, "activation": activation}]
    folder = saved(task, head={"layers": layers})
    assert write_onnx(folder, tmp_path / "m.onnx", say=quiet).difference < 1e-5


@pytest.mark.parametrize("family", ["roberta", "albert", "electra", "distilbert", "ernie"])
@pytest.mark.parametrize("task", ["classify", "qa"])
def test_families(family, task, tmp_path):
    task_model(family_model(tmp_path / "base", family), task, std=0.3).save(tmp_path / "run", quiet)
    assert write_onnx(tmp_path / "run", tmp_path / "m.onnx", say=quiet).difference < 1e-5


def test_as_many_labels_as_a_compared_row_has_slots(base, tmp_path):
    labels = [f"l{number}" for number in range(33)]
    items = tuple(Example(guid=name, texts=(f"the {name}",), label=name) for name in labels)
    train = Examples(task="classify", fields=("text",), items=items)
    config = resolve(config_of("classify", rows={"length": 40}), load(base), Splits(train), tuple(labels), quiet)
    TaskModel(load(base), config).save(tmp_path / "run", quiet)
    assert write_onnx(tmp_path / "run", tmp_path / "m.onnx", say=quiet).difference < 1e-5


def test_a_wrong_head_is_found(saved, tmp_path, monkeypatch):
    folder = saved("classify")
    right = TaskSystem.scores
    monkeypatch.setattr(TaskSystem, "scores", lambda self, batch: right(self, batch) + 1e-3)
    with pytest.raises(InputError, match="differs from the model by"):
        write_onnx(folder, tmp_path / "m.onnx", say=quiet)
    assert not (tmp_path / "m.onnx").exists()


@pytest.mark.parametrize("task", ["classify", "multilabel", "tag", "qa"])
def test_a_head_that_hugging_face_wrote(task, saved, tmp_path):
    folder = saved(task)
    labels = TaskModel.load(folder).config.labels
    (folder / TASK_FILE).unlink()
    found = write_onnx(folder, tmp_path / "m.onnx", say=quiet)
    assert found.outputs == (("start_logits", "end_logits") if task == "qa" else ("logits",))
    about = session_of((tmp_path / "m.onnx").read_bytes()).get_modelmeta().custom_metadata_map
    assert (about["task"], json.loads(about["labels"])) == (task, list(labels))


TWO = {"columns": {"text": ("text_a", "text_b")}}


@pytest.mark.parametrize(
    ("task", "changes", "reason"),
    [
        ("tag", {"head": {"crf": True}}, "a CRF chooses"),
        ("pair", {"rows": {"towers": "shared"}, **TWO}, "an example is several rows"),
        ("pair", {"rows": {"towers": "apart"}, **TWO}, "an example is several rows"),
        ("pair", {"rows": {"orders": "both"}, **TWO}, "an example is several rows"),
    ],
)
def test_what_a_graph_cannot_say_is_refused(task, changes, reason, saved, tmp_path):
    folder = saved(task, **changes)
    with pytest.raises(InputError, match=reason) as caught:
        write_onnx(folder, tmp_path / "m.onnx", say=quiet)
    assert "--head none" in caught.value.repair
    assert not (tmp_path / "m.onnx").exists()
    assert write_onnx(folder, tmp_path / "m.onnx", head="none", say=quiet).outputs == ("last_hidden_state",)


def test_columns_beside_the_text_are_refused(base, tmp_path):
    items = tuple(replace(each, meta=("a", "b")[at % 2 :][:1]) for at, each in enumerate(examples_of("classify", 12)))
    train = Examples(task="classify", fields=("text",), items=items, meta=("source",))
    task_model(load(base), "classify", train, columns={"meta": ("source",)}).save(tmp_path / "run", quiet)
    with pytest.raises(InputError, match=r"it reads columns beside the text \(source\)"):
        write_onnx(tmp_path / "run", tmp_path / "m.onnx", say=quiet)


def test_several_models_are_refused_with_the_way_to_one(saved, tmp_path):
    folder = saved("classify")
    folder.rename(tmp_path / "one")
    (tmp_path / "all").mkdir()
    (tmp_path / "one").rename(tmp_path / "all" / "one")
    write_task(tmp_path / "all", config_of("classify", fused=("one",)))
    with pytest.raises(InputError, match="1 models answer together") as caught:
        write_onnx(tmp_path / "all", tmp_path / "m.onnx", say=quiet)
    words = caught.value.repair.partition("maskery ")[2].split()
    assert main([*words[:-1], str(tmp_path / words[-1])]) == 0
    assert (tmp_path / "all.onnx").is_file()


def test_an_encoder_without_its_vectors(tmp_path):
    Encoder(made_of(), say=quiet).save(tmp_path / "encoder")
    found = write_onnx(tmp_path / "encoder", tmp_path / "m.onnx", head="none", say=quiet)
    assert found.outputs == ("last_hidden_state",)


@pytest.mark.parametrize("shape", [{}, {"embedding": 8}, {"activation": "relu"}], ids=str)
def test_the_language_model_on_request(shape, tmp_path, capsys):
    model = model_of("masked_token", **shape)
    model.save(tmp_path / "m")
    assert main(["export", str(tmp_path / "m"), "--out", str(tmp_path / "lm.onnx"), "--head", "masked_token"]) == 0
    session = session_of((tmp_path / "lm.onnx").read_bytes())
    ids = np.arange(5, 17).reshape(2, 6)
    given = {IDS: ids, MASK: np.ones_like(ids), SEGMENTS: np.zeros_like(ids)}
    with torch.no_grad():
        expected = model.logits(torch.from_numpy(ids)).numpy()
    assert np.allclose(session.run(["logits"], given)[0], expected, atol=1e-5)
    assert main(["export", str(tmp_path / "m"), "--out", str(tmp_path / "s.onnx")]) == 0
    assert "--head masked_token writes its logits" in capsys.readouterr().err
    assert main(["export", str(tmp_path / "m"), "--out", str(tmp_path / "n.onnx"), "--head", "next_token"]) == 2
    assert "has no head 'next_token'" in capsys.readouterr().err
    assert main(["export", str(tmp_path / "m"), "--out", str(tmp_path / "folder"), "--head", "next_token"]) == 2
