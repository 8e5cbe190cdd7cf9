"""Fine-tuning to write: it learns, goes on bitwise, and its folder opens everywhere with the same texts."""

from __future__ import annotations

import os
import signal

import numpy as np
import pytest
import torch
from small_pairs import KINDS, TWO, config_of, copies, model_folder, pairs, quiet, writing_model
from small_task import KilledError, contents, lines

from maskery.checkpoint.load import load
from maskery.errors import Stopped
from maskery.tasks.model import TaskModel
from maskery.tasks.resolve import Splits, resolve
from maskery.tasks.run import tune
from maskery.tasks.seq2seq.model import WritingModel
from maskery.writing.generate import generate

TRAIN, DEV = copies(24), copies(10, seed=2)
ONE = pairs([("the", "cat"), ("on", "mat"), ("x y", "sat sat")])


def run(folder, out, splits=None, *, resume=False, watch=lambda update, line: None, say=quiet, **tables):
    loaded = load(folder)
    splits = splits or Splits(TRAIN, DEV)
    config = resolve(config_of(**tables), loaded, splits, (), say)
    return tune(WritingModel(loaded, config), splits, out, resume=resume, say=say, watch=watch)


@pytest.mark.parametrize("kind", ["transformer", "gpt2", "unilm"])
def test_learns_to_copy(kind, tmp_path):
    model_folder(tmp_path / "model", kind, width=32)
    train = copies(64, longest=2)
    before = writing_model(tmp_path / "model", kind, train)
    unlearned = before.metrics(before.feed(DEV, quiet))
    quick = {"epochs": 8, "training": {"lr": 5e-3, "batch": 8, "save_every": 0}}
    made = run(tmp_path / "model", tmp_path / "run", Splits(train), **quick)
    learned = made.metrics(made.feed(train, quiet))
    assert unlearned["exact_match"] == 0
    assert learned["rouge_l"] > 0.8
    assert learned["loss"] < 0.2 * unlearned["loss"]


@pytest.mark.parametrize("kind", [*KINDS, TWO])
def test_the_folder_writes_the_same_everywhere(kind, tmp_path):
    model_folder(tmp_path / "model", kind)
    made = run(tmp_path / "model", tmp_path / "run", Splits(ONE), epochs=1, training={"lr": 1e-3})
    again = TaskModel.load(tmp_path / "run")
    assert isinstance(again, WritingModel)
    assert again.config == made.config
    answers = [each.predict(ONE, quiet).answers for each in (made, again)]
    assert answers[0] == answers[1]
    texts = [example.texts[0] for example in ONE]
    longest = made.config.write.longest
    role = "source" if kind == "unilm" else None
    assert [each.text for each in generate(load(tmp_path / "run"), texts, new=longest, role=role)] == answers[0]
    assert again.loss(again.feed(ONE, quiet)) == made.loss(made.feed(ONE, quiet))
    # What was trained can be trained again.
    assert run(tmp_path / "run", tmp_path / "second", Splits(ONE), epochs=1).form == made.form


def test_beams(tmp_path):
    made = writing_model(tmp_path / "model", "bart", ONE, write={"beams": 3, "longest": 5})
    model, texts = made.model, [example.texts[0] for example in ONE]
    wanted = [each.text for each in generate(model, texts, beams=3, new=5)]
    assert made.predict(ONE, quiet).answers == wanted


@pytest.mark.parametrize(("kind", "name"), [("bart", "AutoModelForSeq2SeqLM"), ("gpt2", "AutoModelForCausalLM")])
def test_transformers_writes_the_same(kind, name, tmp_path):
    transformers = pytest.importorskip("transformers")
    model_folder(tmp_path / "model", kind)
    made = run(tmp_path / "model", tmp_path / "run", Splits(ONE), epochs=2, write={"longest": 6})
    theirs = getattr(transformers, name).from_pretrained(tmp_path / "run").eval()
    feed, found = made.feed(ONE, quiet), made.predict(ONE, quiet).answers
    never = sorted(set(range(5)) - {3})
    for number, answer in enumerate(found):
        row = torch.tensor([[2, *feed.pairs.prompt(number), 3]])
        asked = {"max_new_tokens": 6, "do_sample": False, "num_beams": 1, "eos_token_id": 3, "pad_token_id": 0}
        if kind == "bart":  # with what our decoder begins with
            asked |= {
                "decoder_input_ids": torch.tensor([[3, 2]]),
                "forced_eos_token_id": None,
                "forced_bos_token_id": None,
            }
        written = theirs.generate(row, attention_mask=torch.ones_like(row), suppress_tokens=never, **asked)[0]
        text = written[2:] if kind == "bart" else written[row.shape[1] :]
        assert made.model.tokenizer.decode(text.numpy()) == answer


@pytest.mark.parametrize("kind", ["bart", "gpt2"])
def test_resumes_bitwise(kind, tmp_path):
    model_folder(tmp_path / "model", kind, dropout=0.1)
    asked = {"epochs": 2, "training": {"lr": 1e-2}, "write": {"dev": 4}}

    def killing(update, _line):
        if update.step == 4:
            raise KilledError

    run(tmp_path / "model", tmp_path / "whole", **asked)
    with pytest.raises(KilledError):
        run(tmp_path / "model", tmp_path / "killed", watch=killing, **asked)
    run(tmp_path / "model", tmp_path / "killed", resume=True, **asked)
    assert len(lines(tmp_path / "whole")) == 6
    assert lines(tmp_path / "killed") == lines(tmp_path / "whole")
    assert contents(tmp_path / "killed") == contents(tmp_path / "whole")
    evaluated = [line for line in lines(tmp_path / "whole") if "eval/rouge_l" in line]
    assert len(evaluated) == 2
    assert all(np.isfinite(line["eval/loss"]) for line in evaluated)


def test_interrupted(tmp_path):
    """The folder holds the best model so far, which writes."""
    model_folder(tmp_path / "model", "gpt2")

    def watch(update, _line):
        if update.step == 4:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(Stopped, match="after step 4"):
        run(tmp_path / "model", tmp_path / "run", epochs=3, watch=watch)
    found = TaskModel.load(tmp_path / "run")
    best = next(line for line in lines(tmp_path / "run") if "eval/rouge_l" in line)
    assert found.metrics(found.feed(DEV, quiet))["rouge_l"] == pytest.approx(best["eval/rouge_l"])


def test_texts_of_some_of_dev_are_told_and_the_loss_is_of_all(tmp_path):
    told = []
    made = writing_model(tmp_path / "model", "gpt2", TRAIN, write={"dev": 4})
    resolve(made.config, load(tmp_path / "model"), Splits(TRAIN, DEV), (), told.append)
    assert any("written for 4 of 10 examples at every evaluation" in line for line in told)
    feed = made.feed(DEV, quiet)
    some = made.feed(pairs([(DEV[at].texts[0], DEV[at].label) for at in (0, 2, 5, 7)]), quiet)
    found = made.metrics(feed)
    assert found["loss"] == pytest.approx(made.loss(feed))
    assert found["char_f1"] == pytest.approx(made.metrics(some)["char_f1"])
