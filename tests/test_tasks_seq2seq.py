"""Sources and targets as rows, and the loss of writing: against reading everything anew for each token."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from small_pairs import CLS, DECODERS, KINDS, SEP, TWO, copies, next_scores, pairs, quiet, writing_model

from maskery.errors import InputError
from maskery.tasks.batches import TASK
from maskery.tasks.seq2seq.model import some_of

ALL = (*KINDS, TWO)
FEW = pairs([("the cat", "mat on"), ("on the mat sat", "the"), ("x", "sat sat cat the")])


def asked_of(feed, numbers=None):
    return feed.asked(np.arange(feed.units) if numbers is None else np.array(numbers))


def slow_loss(kind, made, examples, smoothing):
    """Summed over all tokens of all targets; and how many they are."""
    model, total, count = made.model, 0.0, 0
    for example in examples:
        source = model.tokenizer.encode_raw([example.texts[0]])[0][0].tolist()
        target = [*model.tokenizer.of_targets.encode_raw([example.label])[0][0].tolist(), SEP]
        steps = [(next_scores(kind, model, source, target[:at]), token) for at, token in enumerate(target)]
        if kind == "bart":  # which writes [CLS] itself before the text
            row, start = torch.tensor([[CLS, *source, SEP]]), torch.tensor([[SEP]])
            steps.append((model.logits(row, decoder_ids=start)[0, -1].detach(), CLS))
        for scores, token in steps:
            shares = scores.double().log_softmax(0)
            total -= float((1 - smoothing) * shares[token] + smoothing * shares.mean())
            count += 1
    return total, count


@pytest.mark.parametrize("kind", ALL)
def test_loss_is_that_of_reading_anew_for_every_token(kind, tmp_path):
    for smoothing in (0.0, 0.2):
        made = writing_model(tmp_path / "model", kind, FEW, head={"smoothing": smoothing})
        batch = asked_of(made.feed(FEW, quiet))
        total, count = slow_loss(kind, made, FEW, smoothing)
        assert made.system.counts(batch) == {TASK: count}
        assert float(made.system(batch)[TASK].detach()) / count == pytest.approx(total / count, abs=1e-6, rel=1e-6)
        assert made.loss(made.feed(FEW, quiet)) == pytest.approx(total / count, rel=1e-6)


@pytest.mark.parametrize("kind", ALL)
def test_nobody_sees_a_later_token_of_the_target(kind, tmp_path):
    """Targets that are alike up to a token: what is said up to there is the same, and behind it is not."""
    one, other = (pairs([("the cat", text)]) for text in ("sat on the mat", "sat on cat cat"))
    made = writing_model(tmp_path / "model", kind, one)
    states = []
    for examples in (one, other):
        batch = asked_of(made.feed(examples, quiet))
        index = batch.asked_about("next_token").targets["next_token"].index
        states.append(made.system.read(batch).select(index))
    alike = 3 + (kind == "bart")
    torch.testing.assert_close(states[0][:alike], states[1][:alike], rtol=0, atol=1e-6)
    assert (states[0][alike:] - states[1][alike:]).abs().amax(1).min() > 1e-3


@pytest.mark.parametrize("kind", ["bart", "gpt2", "unilm"])
def test_the_source_is_seen_by_every_token(kind, tmp_path):
    one, other = (pairs([(text, "sat on")]) for text in ("the cat", "on cat"))
    made = writing_model(tmp_path / "model", kind, one)
    states = []
    for examples in (one, other):
        batch = asked_of(made.feed(examples, quiet))
        index = batch.asked_about("next_token").targets["next_token"].index
        states.append(made.system.read(batch).select(index))
    assert (states[0] - states[1]).abs().amax(1).min() > 1e-3


@pytest.mark.parametrize("kind", ["bart", "gpt2", "unilm"])
def test_micro_batches_have_the_gradient_of_the_whole(kind, tmp_path):
    made = writing_model(tmp_path / "model", kind, FEW)
    feed = made.feed(FEW, quiet)

    def gradient(parts):
        made.system.zero_grad()
        batches = [asked_of(feed, part) for part in parts]
        count = sum(made.system.counts(batch)[TASK] for batch in batches)
        for batch in batches:
            (made.system(batch)[TASK] / count).backward()
        return {name: each.grad.clone() for name, each in made.system.named_parameters() if each.grad is not None}

    whole, several = gradient([[0, 1, 2]]), gradient([[0], [2], [1]])
    assert whole.keys() == several.keys()
    for name, each in whole.items():
        torch.testing.assert_close(several[name], each, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("kind", [*DECODERS, "gpt2", "unilm"])
def test_long_sources_and_targets_are_cut_and_counted(kind, tmp_path):
    told = []
    train = pairs([("the cat sat on mat x y z", "a b c d e f"), ("the", "cat"), ("on", "a b c d")])
    length = 7 if kind in DECODERS else 7 + 4 + (kind == "unilm")  # [CLS], five tokens, [SEP]; and the target
    made = writing_model(
        tmp_path / "model", kind, train, rows={"length": length, "truncate": "tail"}, write={"longest": 4}
    )
    feed = made.feed(train, told.append)
    assert feed.pairs.prompt(0) == made.model.tokenizer.encode_raw(["on mat x y z"])[0][0].tolist()
    assert feed.pairs.target.lengths.tolist() == [4, 1, 4]
    assert any(line.startswith("1 of 3 rows (33.3%) are cut to 7 slots") for line in told)
    assert "1 of 3 targets (33.3%) are cut to 4 tokens: 2 of 11 tokens (18.2%) are lost" in told
    assert feed.longest <= length + (5 if kind == "unilm" else 0)
    assert len(feed.asked(np.array([0])).asked_about("next_token").targets["next_token"].label) == 5 + (kind == "bart")


def test_several_fields_with_limits(tmp_path):
    train = pairs([(("the cat sat", "on the mat"), "cat"), (("x", "y"), "z")], fields=("title", "body"))
    made = writing_model(tmp_path / "model", "gpt2", train, rows={"limits": (2, 1)})
    the, cat, on = (made.model.tokenizer.id(word) for word in ("the", "cat", "on"))
    assert made.feed(train, quiet).pairs.prompt(0) == [the, cat, SEP, on]


@pytest.mark.parametrize("kind", ["bart", "gpt2", "unilm"])
def test_room_is_what_training_needs_and_the_model_reads(kind, tmp_path):
    told = []
    made = writing_model(tmp_path / "model", kind, copies(30), say=told.append)
    assert made.config.write.longest == 8
    assert made.config.rows.length == {"bart": 8, "gpt2": 16, "unilm": 17}[kind]
    long = pairs([("the " * 60, "cat " * 70), ("x", "y " * 60)])
    made = writing_model(tmp_path / "model", kind, long, say=told.append)
    feed = made.feed(long, told.append)
    assert made.config.rows.length == 40
    assert made.config.write.longest == {"bart": 38, "gpt2": 18, "unilm": 18}[kind]
    assert any("targets of at most" in line and "2 of 2 are longer, the longest has 70" in line for line in told)
    assert np.isfinite(made.loss(feed))
    assert len(made.answers(feed).answers) == 2


@pytest.mark.parametrize(
    ("kind", "tables", "told"),
    [
        ("bart", {"write": {"longest": 39}}, "reads 38 tokens of a target"),
        ("gpt2", {"write": {"longest": 38}}, "rows of 40 slots have no room for a source beside a target of 38 tokens"),
        ("unilm", {"rows": {"length": 12}, "write": {"longest": 9}}, "rows of 12 slots have no room"),
        ("gpt2", {"rows": {"length": 41}}, "the model reads 40 at most"),
        ("bart", {"rows": {"windows": 4}}, "seq2seq has no rows.windows"),
        ("bart", {"head": {"crf": True}}, "seq2seq has no head.crf"),
        ("bart", {"read": {"pool": "mean"}}, "seq2seq has no read"),
    ],
)
def test_what_does_not_fit_is_refused(kind, tables, told, tmp_path):
    with pytest.raises(InputError, match=told):
        writing_model(tmp_path / "model", kind, FEW, **tables)


@pytest.mark.parametrize(
    ("target", "told"), [(None, "there is no target"), (" ", "the target is empty"), ("\u200b", "has no token")]
)
def test_an_empty_target_is_told_with_its_line(target, told, tmp_path):
    with pytest.raises(InputError, match=told) as error:
        writing_model(tmp_path / "model", "gpt2", pairs([("the", "cat"), ("on", target)]))
    assert "pairs.tsv:2" in str(error.value)


def test_some_of():
    assert some_of(5, 0).tolist() == some_of(5, 9).tolist() == [0, 1, 2, 3, 4]
    assert some_of(10, 4).tolist() == [0, 2, 5, 7]
