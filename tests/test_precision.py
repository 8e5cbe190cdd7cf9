"""Other numbers than float32: chosen with a reason, close in the loss, and never in what is saved."""

import json
from contextlib import nullcontext

import pytest
import torch
from safetensors.torch import load_file
from small_run import corpus_in, cut_back, lines_without_time, run_quietly, same_files, tiny_recipe

from maskery.errors import InputError, NonFiniteError
from maskery.objectives.cross_entropy import tied_cross_entropy
from maskery.recipes.recipe import recipe
from maskery.train import precision
from maskery.train.build import build_trainer
from maskery.train.precision import Precision, choose

CPU, GPU = torch.device("cpu"), torch.device("cuda")


pytestmark = pytest.mark.usefixtures("no_waiting_for_the_disk")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return corpus_in(tmp_path_factory.mktemp("corpus"))


def trainer_of(corpus, **changes):
    return build_trainer(tiny_recipe(**changes), corpus, 0, lambda text: None)


# -- the choice


@pytest.mark.parametrize(
    ("asked", "device", "hardware", "chosen", "reason"),
    [
        ("auto", CPU, False, "float32", "this CPU has no bfloat16 arithmetic"),
        ("auto", CPU, True, "bfloat16", "this CPU computes in it"),
        ("float32", CPU, True, "float32", "as asked"),
        ("bfloat16", CPU, True, "bfloat16", "as asked"),
        ("bfloat16", CPU, False, "bfloat16", "as asked; warning: this CPU has no arithmetic for it"),
        ("auto", GPU, True, "bfloat16", "this GPU computes in it"),
        ("auto", GPU, False, "float16", "losses are scaled"),
        ("float32", GPU, True, "float32", "as asked"),
        ("float16", GPU, True, "float16", "as asked"),
    ],
)
def test_what_is_chosen_and_why(monkeypatch, asked, device, hardware, chosen, reason):
    monkeypatch.setattr(precision, "bfloat16_hardware", lambda: hardware)
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation: hardware)
    found = choose(asked, device)
    assert found.precision == chosen
    assert reason in found.reason


@pytest.mark.parametrize("hardware", [True, False])
def test_what_begins_with_a_model_is_trained_in_float32_and_says_what_is_quicker(monkeypatch, hardware):
    monkeypatch.setattr(precision, "bfloat16_hardware", lambda: hardware)
    told = []
    assert precision.of_tuning("auto", CPU, told.append).name == "float32"
    assert ["training.precision=bfloat16" in line for line in told] == [True] * hardware
    told.clear()
    assert precision.of_tuning("float32", CPU, told.append).name == "float32"
    assert not told, "who asks for it knows"
    assert precision.of_tuning("bfloat16", CPU, told.append).name == "bfloat16"
    with pytest.raises(InputError, match="float16 is for pretraining"):
        precision.of_tuning("float16", CPU, told.append)


def test_float16_is_refused_on_a_cpu(corpus, tmp_path):
    with pytest.raises(InputError, match="needs a GPU") as caught:
        run_quietly(tiny_recipe(training__precision="float16"), corpus, tmp_path / "run")
    assert "training.precision=auto" in caught.value.repair
    assert not (tmp_path / "run").exists()


def test_auto_is_settled_told_and_kept(corpus, tmp_path, monkeypatch):
    short = {"training__steps": 6, "training__save_every": 3, "training__precision": "auto"}
    run, talk = run_quietly(tiny_recipe(**short), corpus, tmp_path / "run")
    assert recipe("bert").training.precision == "auto"
    assert talk[0].startswith(f"precision: {run.recipe.training.precision} (this CPU")
    assert run.recipe.training.precision in ("float32", "bfloat16")
    monkeypatch.setattr(precision, "bfloat16_hardware", lambda: run.recipe.training.precision == "float32")
    again = cut_back(tmp_path / "run", 3, tmp_path / "again")
    _, talk = run_quietly(tiny_recipe(**short), corpus, again, True)
    assert "bitwise" not in talk.text
    same_files(tmp_path / "run/checkpoints/step-6", again / "checkpoints/step-6")


# -- bfloat16


SHAPES = {
    "bert": ("bert", {}),
    "roberta": ("roberta", {}),
    "no dropout": ("bert", {"model__dropout": 0.0, "model__attention_dropout": 0.0}),
    "long rows": ("roberta", {"training__length": 300, "model__max_length": 300, "model__attention_dropout": 0.0}),
    "pre-norm": ("bert", {"model__norm": "pre", "model__positions": "sinusoidal"}),
    "factorised": ("bert", {"model__embedding": 8}),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_bfloat16_gives_almost_the_loss_and_gradient_of_float32(corpus, shape):
    name, changes = SHAPES[shape]
    found = {}
    for kind in ("float32", "bfloat16"):
        made = tiny_recipe(name, **changes, training__precision=kind, model__init_std=0.1)
        trainer = build_trainer(made, corpus, 0, lambda text: None)
        trainer.system.train()
        losses, _, _ = trainer._gradient([trainer.feed.batch(0)])
        assert all(p.grad.dtype == torch.float32 for p in trainer.system.parameters())
        found[kind] = losses, torch.cat([p.grad.flatten() for p in trainer.system.parameters()])
    (exact, gradient), (close, other) = found["float32"], found["bfloat16"]
    assert exact != close, "the products are really computed in other numbers"
    for objective, loss in exact.items():
        assert close[objective] == pytest.approx(loss, rel=1e-2)
    assert float(torch.nn.functional.cosine_similarity(gradient, other, 0)) > 0.995


def test_bfloat16_learns_and_saves_float32(corpus, tmp_path):
    learning = {"training__steps": 30, "training__save_every": 15, "training__precision": "bfloat16"}
    run, talk = run_quietly(tiny_recipe(**learning), corpus, tmp_path / "run")
    assert "precision: bfloat16 (as asked" in talk.text
    lines = run.metrics
    assert sum(line["loss"] for line in lines[-5:]) < sum(line["loss"] for line in lines[:5]) - 0.5
    point = tmp_path / "run/checkpoints/step-15"
    for file in (run.path / "model.safetensors", point / "model.safetensors", point / "optimizer.safetensors"):
        assert {tensor.dtype for tensor in load_file(file).values()} == {torch.float32}
    again = cut_back(run.path, 15, tmp_path / "again")
    run_quietly(tiny_recipe(**learning), corpus, again, True)
    same_files(run.path / "checkpoints/step-30", again / "checkpoints/step-30")


def test_the_cross_entropy_under_autocast_is_summed_in_float32():
    generator = torch.Generator().manual_seed(0)
    states, matrix = (torch.randn(n, 16, generator=generator, requires_grad=True) for n in (500, 90))
    bias, labels = torch.zeros(90, requires_grad=True), torch.randint(90, (500,), generator=generator)
    exact = torch.nn.functional.cross_entropy((states @ matrix.t() + bias).double(), labels, reduction="sum")
    wanted = torch.autograd.grad(exact, (states, matrix, bias))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = tied_cross_entropy(states, matrix, bias, labels)
        assert torch.is_autocast_enabled("cpu")
    assert loss.dtype == torch.float32
    assert float(loss.detach()) == pytest.approx(float(exact.detach()), rel=2e-3)
    for found, expected in zip(torch.autograd.grad(loss, (states, matrix, bias)), wanted, strict=True):
        assert found.dtype == torch.float32
        assert float((found - expected).norm() / expected.norm()) < 2e-2


# -- float16: a CPU can try how the loss is scaled, not the numbers themselves


class Pretended(Precision):
    """float16's scaling around float32's numbers."""

    def __init__(self):
        super().__init__("float16")

    def autocast(self, device):
        return nullcontext()


def overflowing(monkeypatch, times):
    """The norms of the first gradients are infinite."""
    norm, calls = torch.nn.utils.get_total_norm, []

    def limited(gradients):
        calls.append(len(gradients))
        return torch.tensor(torch.inf) if len(calls) <= times else norm(gradients)

    monkeypatch.setattr(torch.nn.utils, "get_total_norm", limited)
    return calls


def test_a_scaled_loss_gives_the_same_updates(corpus):
    plain, scaled = trainer_of(corpus, training__steps=5), trainer_of(corpus, training__steps=5)
    scaled.precision = Pretended()
    expected, found = list(plain.updates()), list(scaled.updates())
    assert [update.loss for update in found] == pytest.approx([update.loss for update in expected], rel=1e-6)
    norms = [update.gradient_norm for update in expected]
    assert [update.gradient_norm for update in found] == pytest.approx(norms, rel=1e-6)
    assert max(norms) > plain.training.clip, "clipping is tried, too"


def test_an_overflow_lowers_the_scale_and_the_update_is_redone(corpus, monkeypatch):
    trainer = trainer_of(corpus, training__steps=3)
    trainer.precision = Pretended()
    overflowing(monkeypatch, 2)
    updates = list(trainer.updates())
    assert [update.step for update in updates] == [1, 2, 3]
    assert updates[0].note == "step 1 was redone with the loss times 16384: overflow"
    assert not updates[1].note
    assert trainer.precision.state() == {"scale": 16384.0, "good": 3}


def test_an_overflow_without_end_is_an_error(corpus, monkeypatch):
    trainer = trainer_of(corpus)
    trainer.precision = Pretended()
    calls = overflowing(monkeypatch, 1000)
    before = [p.clone() for p in trainer.system.parameters()]
    with pytest.raises(NonFiniteError, match="update 1"):
        next(trainer.updates())
    assert len(calls) == 17, "65536 halved until it is 1"
    assert all(torch.equal(p, q) for p, q in zip(before, trainer.system.parameters(), strict=True))


def test_the_scale_grows_after_many_good_updates():
    scaled = Precision("float16")
    assert scaled.lowered()
    for _ in range(2000):
        scaled.went_well()
    assert scaled.state() == {"scale": 65536.0, "good": 0}
    other = Precision("float16")
    other.restore({"scale": 8.0, "good": 7})
    assert other.state() == {"scale": 8.0, "good": 7}
    for kind in ("float32", "bfloat16"):
        never = Precision(kind)
        assert not never.lowered()
        never.went_well()
        assert never.state() == {}
        assert never.scale == 1.0


def test_the_scale_is_part_of_the_state(corpus, tmp_path, monkeypatch):
    monkeypatch.setattr("maskery.train.build.precision.Precision", lambda name: Pretended())
    overflowing(monkeypatch, 1)
    changes = {"training__steps": 8, "training__save_every": 4}
    run, talk = run_quietly(tiny_recipe(**changes), corpus, tmp_path / "run")
    assert "step 1 was redone with the loss times 32768: overflow" in talk.text
    state = json.loads((run.path / "checkpoints/step-4/state.json").read_text())
    assert state["loss_scale"] == {"scale": 32768.0, "good": 4}
    assert state["notes"] == ["step 1 was redone with the loss times 32768: overflow"]
    again = cut_back(run.path, 4, tmp_path / "again")
    run_quietly(tiny_recipe(**changes), corpus, again, True)
    same_files(run.path / "checkpoints/step-8", again / "checkpoints/step-8")
    assert lines_without_time(run.path) == lines_without_time(again)
