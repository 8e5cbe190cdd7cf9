"""What every objective must be: a sum whose count is known before, zero when nothing is asked, with a true gradient."""

from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from small_model import batch_of, part_of, rows_of, small_batch, small_network

from maskery.batches import Targets
from maskery.model.initial import initialise
from maskery.model.transformer import inputs_of
from maskery.objectives.config import OBJECTIVES

LENGTHS = [5, 9, 2, 9, 7, 1]
every_objective = pytest.mark.parametrize("name", OBJECTIVES.names())


class Asked:
    """One objective with a small network and its head."""

    def __init__(self, name, **changes):
        self.objective = OBJECTIVES.get(name)()
        self.network = small_network(pooler=self.objective.needs_pooler, **changes)
        self.head = self.objective.head(self.network.shape)
        initialise(self.head, 0.3, 1)
        for parameter in self.head.parameters():
            if parameter.dim() == 1:
                torch.nn.init.normal_(parameter, 1.0, 0.3, generator=torch.Generator().manual_seed(2))

    def hidden(self, batch, *, all_slots=False):
        return self.network(inputs_of(batch), reads=None if all_slots else self.objective.reads(batch))

    def total(self, batch):
        return self.objective.total(self.network, self.head, self.hidden(batch), batch)

    def measure(self, batch):
        with torch.no_grad():
            return self.objective.measure(self.network, self.head, self.hidden(batch), batch)

    def parameters(self):
        return dict(self.network.named_parameters()) | {f"head {n}": p for n, p in self.head.named_parameters()}

    def gradients(self, batch):
        parameters = self.parameters()
        found = torch.autograd.grad(self.total(batch), list(parameters.values()), allow_unused=True)
        return dict(zip(parameters, found, strict=True))


def without_targets(batch):
    """The same batch, nothing asked."""

    def emptied(targets):
        extra = {name: value[:0] for name, value in targets.extra.items()}
        return Targets(index=targets.index[:0], label=targets.label[:0], extra=extra)

    return replace(batch, targets={name: emptied(targets) for name, targets in batch.targets.items()})


@every_objective
def test_names(name):
    assert OBJECTIVES.get(name).name == name


@every_objective
def test_the_count_is_in_the_targets(name):
    batch = small_batch(LENGTHS, [name])
    targets = batch.targets[name]
    count = OBJECTIVES.get(name)().count(batch)
    assert count == targets.label.numel() == targets.index.numel() > 2
    assert targets.label.dtype == targets.index.dtype == torch.int64
    assert (targets.index.diff() > 0).all(), "ascending, no slot twice"
    asked = Asked(name)
    assert all(counted == count for _, counted in asked.measure(batch).values())


@every_objective
def test_answers_stand_where_they_are_said_to(name):
    batch = small_batch(LENGTHS, [name])
    objective = OBJECTIVES.get(name)()
    answers = objective.answers(batch)
    if answers is None:
        return
    width = batch.ids.shape[1]
    for places in (answers.asked, answers.answer):
        assert places.shape == batch.targets[name].index.shape
        assert (places % width < batch.length[places // width]).all(), "inside the row"
    assert torch.equal(answers.asked // width, answers.answer // width)
    assert torch.equal(batch.original.flatten()[answers.answer], batch.targets[name].label)


@every_objective
def test_a_sum_adds_up(name):
    """Two halves, padded each for itself, give the whole: loss, count, gradient and metrics."""
    rows, asked = rows_of(LENGTHS), Asked(name)
    whole = batch_of(rows, [name])
    halves = [batch_of(part_of(rows, 0, 3), [name]), batch_of(part_of(rows, 3, 6), [name])]
    assert sum(asked.objective.count(half) for half in halves) == asked.objective.count(whole)
    assert not asked.objective.whole_batch, "an objective that compares rows needs a test of its own"
    parts = torch.stack([asked.total(half) for half in halves]).sum()
    torch.testing.assert_close(parts, asked.total(whole), rtol=1e-5, atol=1e-5)
    one, other, both = (asked.gradients(batch) for batch in (*halves, whole))
    for key, gradient in both.items():
        if gradient is None:
            assert one[key] is None
            continue
        scale = max(1.0, float(gradient.abs().max()))
        torch.testing.assert_close(one[key] + other[key], gradient, rtol=1e-4, atol=1e-5 * scale, msg=key)
    measured = [asked.measure(batch) for batch in (*halves, whole)]
    for metric, (value, _) in measured[2].items():
        assert measured[0][metric][0] + measured[1][metric][0] == pytest.approx(value, rel=1e-5)


@every_objective
@pytest.mark.parametrize("lengths", [LENGTHS, [1, 1]])
def test_nothing_asked_is_zero_and_still_runs_the_head(name, lengths):
    asked, batch = Asked(name), without_targets(small_batch(lengths, [name]))
    assert asked.objective.count(batch) == 0
    loss = asked.total(batch)
    assert loss.shape == ()
    assert loss == 0
    loss.backward()
    for key, parameter in asked.head.named_parameters():
        assert parameter.grad is not None, f"{key}: ranks wait for each other's gradients"
        assert not parameter.grad.any(), key
    for key, parameter in asked.network.named_parameters():
        assert parameter.grad is None or not parameter.grad.any(), key
    assert asked.measure(batch)["loss"] == (0.0, 0)


@every_objective
def test_every_parameter_of_the_head_learns(name):
    asked = Asked(name)
    gradients = asked.gradients(small_batch(LENGTHS, [name]))
    for key in (key for key in gradients if key.startswith("head")):
        assert gradients[key].any(), key
    reached = [key for key, value in gradients.items() if value is not None and value.any()]
    assert {"embeddings.tokens", "layers.0.attention.inputs", "layers.1.down.weight"} <= set(reached)


@every_objective
def test_measured_loss_is_the_total(name):
    asked, batch = Asked(name), small_batch(LENGTHS, [name])
    measured = asked.measure(batch)
    assert {"loss", "accuracy"} <= set(measured)
    assert measured["loss"][0] == pytest.approx(float(asked.total(batch).detach()), rel=1e-5)
    hits, count = measured["accuracy"]
    assert 0 <= hits <= count
    assert hits == int(hits)


@every_objective
def test_against_the_obvious_implementation(name):
    """Scores of every slot or row, then one cross-entropy."""
    asked, batch = Asked(name), small_batch(LENGTHS, [name])
    hidden, targets = asked.hidden(batch, all_slots=True), batch.targets[name]
    if hidden.pooled is None:
        scores = asked.head(hidden.last, asked.network.embeddings.tokens).flatten(0, 1)[targets.index]
    else:
        scores = asked.head(hidden.pooled)[targets.index]
    expected = F.cross_entropy(scores, targets.label, reduction="sum")
    parameters = asked.parameters()
    wanted = torch.autograd.grad(expected, list(parameters.values()), allow_unused=True)
    torch.testing.assert_close(asked.total(batch), expected, rtol=1e-5, atol=1e-5)
    for (key, gradient), other in zip(asked.gradients(batch).items(), wanted, strict=True):
        if gradient is not None:
            scale = max(1.0, float(other.abs().max()))
            torch.testing.assert_close(gradient, other, rtol=1e-4, atol=1e-5 * scale, msg=key)
    hits = int((scores.argmax(1) == targets.label).sum())
    assert asked.measure(batch)["accuracy"][0] == hits


@every_objective
def test_the_gradient_by_differences(name):
    """In double precision, along a random direction through all parameters."""
    asked, batch = Asked(name), small_batch(LENGTHS, [name])
    asked.network.double()
    asked.head.double()
    draw = torch.Generator().manual_seed(3)
    gradients = asked.gradients(batch)
    direction = {
        key: torch.randn(p.shape, generator=draw, dtype=torch.float64) for key, p in asked.parameters().items()
    }
    slope = sum(float((value * direction[key]).sum()) for key, value in gradients.items() if value is not None)
    step, around = 1e-6, []
    with torch.no_grad():
        for sign in (1, -2):
            for key, parameter in asked.parameters().items():
                parameter.add_(direction[key], alpha=sign * step)
            around.append(float(asked.total(batch)))
    assert (around[0] - around[1]) / (2 * step) == pytest.approx(slope, rel=1e-5)


@every_objective
def test_reads_name_all_that_is_read(name):
    """What is not named may be anything: only pooled and named states reach the loss."""
    asked, batch = Asked(name), small_batch(LENGTHS, [name])
    hidden = asked.hidden(batch, all_slots=True)
    reads = asked.objective.reads(batch)
    spoiled = torch.full_like(hidden.packed, torch.nan)
    places = hidden.layout.places(reads)
    spoiled[places] = hidden.packed.detach()[places]
    loss = asked.objective.total(asked.network, asked.head, replace(hidden, packed=spoiled), batch)
    torch.testing.assert_close(loss, asked.total(batch), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("chosen", [0.0, 1.0])
def test_masked_token_asks_where_there_was_an_edit(chosen):
    rows = rows_of([4, 6], chosen=chosen)
    targets = OBJECTIVES.get("masked_token")().ask(rows, 6)
    expected = [0, 1, 2, 3, 6, 7, 8, 9, 10, 11] if chosen else []
    assert targets.index.tolist() == expected
    assert targets.label.tolist() == (rows.original.tolist() if chosen else [])


def test_next_token_asks_all_but_the_last():
    rows = rows_of([3, 1, 2, 0, 4], chosen=0.5)
    targets = OBJECTIVES.get("next_token")().ask(rows, 4)
    assert targets.index.tolist() == [0, 1, 8, 16, 17, 18]
    at = [1, 2, 5, 7, 8, 9]
    assert targets.label.tolist() == rows.original[at].tolist()


def test_next_sentence_asks_rows_with_a_label():
    rows = rows_of([3, 3, 3, 3])
    labels = replace(rows, label=torch.tensor([1, -1, 0, -1]).numpy())
    targets = OBJECTIVES.get("next_sentence")().ask(labels, 3)
    assert targets.index.tolist() == [0, 2]
    assert targets.label.tolist() == [1, 0]
