"""What every objective must be: a sum whose count is known before, zero when nothing is asked, with a true gradient."""

from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from small_model import batch_of, part_of, rows_of, small_network

from maskery.batches import Targets
from maskery.edit import Edit
from maskery.model.initial import initialise
from maskery.model.transformer import inputs_of
from maskery.objectives.config import OBJECTIVES, PAIR_OF
from maskery.objectives.protocol import Ranked
from maskery.rows.config import PAIRS

LENGTHS = [9, 15, 2, 15, 12, 4]
every_objective = pytest.mark.parametrize("name", OBJECTIVES.names())
each_row_alone = pytest.mark.parametrize("name", [n for n in OBJECTIVES.names() if not OBJECTIVES.get(n).whole_batch])
"""Questions that compare rows have tests of their own for what is summed over rows."""


def asked_rows(lengths):
    """Rows of which everything can be asked: [CLS], tokens masked, shuffled or left, a hidden run of words, [SEP]."""
    rows = rows_of(lengths, chosen=0.0)
    ends = np.concatenate([rows.start[:-1], rows.start[1:] - 1])
    special = np.isin(np.arange(len(rows.ids)), ends)
    kinds = [Edit.NONE, Edit.MASK, Edit.SHUFFLED]
    edit = np.random.default_rng(1).choice(kinds, len(rows.ids), p=[0.4, 0.4, 0.2]).astype(np.uint8)
    edit[(rows.length[rows.row] > 8) & (rows.slot >= 5) & (rows.slot < 7)] = Edit.NGRAM
    edit[special] = Edit.NONE
    ids = np.where(np.isin(edit, (Edit.MASK, Edit.NGRAM)), 4, rows.original).astype(np.int32)
    return replace(rows, edit=edit, special=special, ids=ids, asked=edit == Edit.MASK)


def asked_batch(names, lengths=LENGTHS):
    return labelled(batch_of(asked_rows(lengths), names))


def labelled(batch):
    """With labels of both kinds for the question whose labels a generator makes."""
    targets = batch.targets.get("replaced_token")
    if targets is None:
        return batch
    replaced = batch.original.flatten()[targets.index] % 2
    return replace(batch, targets={**batch.targets, "replaced_token": replace(targets, label=replaced)})


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
    batch = asked_batch([name])
    targets = batch.targets[name]
    count = OBJECTIVES.get(name)().count(batch)
    assert count == targets.label.numel() == targets.index.numel() > 2
    assert targets.label.dtype == targets.index.dtype == torch.int64
    assert (targets.index.diff() > 0).all(), "ascending, no slot twice"
    asked = Asked(name)
    assert all(asked.measure(batch)[metric][1] == count for metric in ("loss", "accuracy"))


@every_objective
def test_answers_stand_where_they_are_said_to(name):
    batch = asked_batch([name])
    objective = OBJECTIVES.get(name)()
    answers = objective.answers(batch)
    if answers is None:
        return
    width = batch.ids.shape[1]
    for places in (answers.asked, answers.answer):
        assert (places % width < batch.length[places // width]).all(), "inside the row"
    assert torch.equal(answers.asked // width, answers.answer // width)
    label = batch.targets[name].label
    assert len(answers.asked) in (len(label), 2 * len(label)), "an answer is asked at one slot, or at both its ends"
    held = batch.original.flatten()[answers.answer]
    assert torch.equal(held, label.repeat(len(held) // len(label)))


@each_row_alone
def test_a_sum_adds_up(name):
    """Two halves, padded each for itself, give the whole: loss, count, gradient and metrics."""
    rows, asked = asked_rows(LENGTHS), Asked(name)
    whole = labelled(batch_of(rows, [name]))
    halves = [labelled(batch_of(part_of(rows, *part), [name])) for part in ((0, 3), (3, 6))]
    assert sum(asked.objective.count(half) for half in halves) == asked.objective.count(whole)
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
    for metric, found in measured[2].items():
        one, other = measured[0][metric], measured[1][metric]
        if isinstance(found, Ranked):
            assert Ranked.joined([one, other]).area == pytest.approx(found.area, rel=1e-5)
            continue
        assert one[0] + other[0] == pytest.approx(found[0], rel=1e-5)
        assert one[1] + other[1] == found[1]


@every_objective
@pytest.mark.parametrize("lengths", [LENGTHS, [2, 2]], ids=["rows", "empty rows"])
def test_nothing_asked_is_zero_and_still_runs_the_head(name, lengths):
    asked, batch = Asked(name), without_targets(asked_batch([name], lengths))
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
    gradients = asked.gradients(asked_batch([name]))
    for key in (key for key in gradients if key.startswith("head")):
        assert gradients[key].any(), key
    reached = [key for key, value in gradients.items() if value is not None and value.any()]
    assert {"embeddings.tokens", "layers.0.attention.inputs", "layers.1.down.weight"} <= set(reached)


@every_objective
def test_measured_loss_is_the_total(name):
    asked, batch = Asked(name), asked_batch([name])
    measured = asked.measure(batch)
    assert {"loss", "accuracy"} <= set(measured)
    assert measured["loss"][0] == pytest.approx(float(asked.total(batch).detach()), rel=1e-5)
    hits, count = measured["accuracy"]
    assert 0 <= hits <= count
    assert hits == int(hits)


def scores_one_by_one(asked, hidden, batch):
    """The scores of every target, from states of all slots."""
    targets, name, words = batch.targets[asked.objective.name], asked.objective.name, asked.network.embeddings.tokens
    if name in PAIR_OF:
        return torch.stack([asked.head(hidden.pooled[row]) for row in targets.index.tolist()])
    if name == "replaced_token":
        told = asked.head(hidden.last).flatten()[targets.index]
        return torch.stack([torch.zeros_like(told), told], dim=1)
    if name != "span_boundary":
        return asked.head(hidden.last, words).flatten(0, 1)[targets.index]
    found, width = [], batch.ids.shape[1]
    for row, slot in (divmod(flat, width) for flat in targets.index.tolist()):
        left, right = slot, slot
        while batch.edit[row, left] == Edit.MASK:
            left -= 1
        while batch.edit[row, right] == Edit.MASK:
            right += 1
        place = torch.tensor([slot - left - 1])
        state = asked.head(hidden.last[row, left : left + 1], hidden.last[row, right : right + 1], place)
        found.append((state @ words.T + asked.head.bias)[0])
    return torch.stack(found)


@each_row_alone
def test_against_the_obvious_implementation(name):
    """Scores of every slot or row, then one cross-entropy."""
    asked, batch = Asked(name), asked_batch([name])
    hidden, targets = asked.hidden(batch, all_slots=True), batch.targets[name]
    scores = scores_one_by_one(asked, hidden, batch)
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
    asked, batch = Asked(name), asked_batch([name])
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
    asked, batch = Asked(name), asked_batch([name])
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


@pytest.mark.parametrize("name", PAIR_OF)
def test_a_question_about_segments_asks_rows_with_a_label(name):
    objective, classes = OBJECTIVES.get(name)(), len(PAIRS.get(PAIR_OF[name]).labels)
    rows = replace(rows_of([3, 3, 3, 3]), label=np.array([classes - 1, -1, 0, -1]))
    targets = objective.ask(rows, 3)
    assert targets.index.tolist() == [0, 2]
    assert targets.label.tolist() == [classes - 1, 0]
    head = objective.head(small_network().shape)
    assert head.dense.weight.shape == (classes, 16)
    assert objective.count(batch_of(rows, [name])) == 2


def test_the_classes_of_every_question():
    classes = {name: PAIRS.get(pair).labels for name, pair in PAIR_OF.items()}
    assert classes["next_sentence"] == ("next", "other")
    assert classes["sentence_order"] == ("order", "swapped")
    assert classes["three_way"] == ("next", "previous", "other")
    assert classes["sentence_distance"] == ("adjacent", "same_document", "other")
    assert classes["segment_order"] == ("1", "12", "21", "123", "132", "213", "231", "312", "321")
