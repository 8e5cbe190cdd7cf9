"""Runs and what surrounds them: opened by other tools, stopped by signals, resumed in the wrong folder."""

import os
import signal

import pytest
import torch
from small_run import corpus_in, run_quietly, tiny_recipe

import maskery
from maskery.errors import CheckpointError, Stopped
from maskery.train.build import build_trainer

SHORT = {"training__steps": 10}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return corpus_in(tmp_path_factory.mktemp("corpus"))


@pytest.mark.parametrize("name", ["bert", "roberta"])
def test_a_trained_run_opens_with_hugging_face(corpus, tmp_path, name):
    """Model and tokenizer by their automatic classes; the same scores for padded rows, to 1e-5."""
    import transformers

    run_quietly(tiny_recipe(name, training__steps=3), corpus, tmp_path / "run")
    ours = maskery.load(tmp_path / "run")
    theirs = transformers.AutoModelForMaskedLM.from_pretrained(tmp_path / "run").eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "run")
    text = corpus.tokenizer.decode(corpus.tokens[:12].tolist())
    given = tokenizer([text, text[: len(text) // 2]], padding=True, return_tensors="pt")
    assert given["input_ids"][0].tolist() == list(ours.tokenizer.encode(text)[0])
    with torch.no_grad():
        expected = theirs(**given).logits
        found = ours.logits(given["input_ids"], given["attention_mask"], given["token_type_ids"])
    real = given["attention_mask"].bool()
    torch.testing.assert_close(found[real], expected[real], atol=1e-5, rtol=1e-5)


def test_a_signal_after_the_save_stops_one_update_later(corpus, tmp_path):
    """What is said to be saved is saved: a signal between saving and telling counts for the next update."""
    seen = []

    class Strike(maskery.Logger):
        def log(self, update, line):
            seen.append(update.step)
            if update.step == 2:
                os.kill(os.getpid(), signal.SIGTERM)

    with pytest.raises(Stopped, match="after step 3; the state is saved"):
        run_quietly(tiny_recipe(**SHORT), corpus, tmp_path / "run", loggers=[Strike()])
    assert seen == [1, 2, 3]
    assert (tmp_path / "run/checkpoints/step-3/state.json").is_file()


def test_each_phase_has_its_own_micro_batch(corpus, tmp_path):
    phases = [{"steps": 1, "length": 16, "batch": 2000}, {"steps": 1, "length": 32, "batch": 8}]
    recipe = tiny_recipe("roberta", training__steps=2, training__phases=phases)
    trainer = build_trainer(recipe, corpus, 0, lambda text: None)
    assert trainer.micro == [500, 8]


def test_resuming_in_a_folder_of_ones_own_touches_nothing(corpus, tmp_path):
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "recipe.toml").write_text('extends = "bert"\n')
    with pytest.raises(CheckpointError, match="is no run folder"):
        run_quietly(tiny_recipe(**SHORT), corpus, mine, True)
    assert (mine / "recipe.toml").read_text() == 'extends = "bert"\n'
