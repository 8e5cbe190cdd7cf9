"""What a trained generator draws in the rows that `inspect` shows, against its own scores, token by token."""

import json

import numpy as np
import pytest
import torch
from small_run import TINY_FLAGS, corpus_in, text_of, tiny_recipe

import maskery
from maskery.cli import main
from maskery.errors import InputError
from maskery.explain.drawn import SIGN, generator_of
from maskery.feed import Feed
from maskery.inspection import visits
from maskery.objectives.masked_token import ASKED, DRAWS
from maskery.train.run import pretrain

CHANGES = {"training__steps": 3, "training__batch": 4, "training__eval_every": 0}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return corpus_in(tmp_path_factory.mktemp("corpus"))


@pytest.fixture(scope="module")
def run(corpus, tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "electra"
    pretrain(tiny_recipe("electra", **CHANGES), corpus, folder)
    return folder


def test_drawn_tokens_are_those_of_the_scores(corpus, run):
    """The first token at which the summed chances go beyond the number that the feed made for the slot."""
    feed = Feed(tiny_recipe("electra", **CHANGES), corpus, 0)
    generator = generator_of(run, feed)
    (visit,) = visits(feed, 4, 2)
    rows, batch = feed.corrupted(*visit), feed.make(*visit)
    real = torch.arange(batch.ids.shape[1]) < batch.length[:, None]
    with torch.no_grad():
        chances = maskery.load(run).generator.logits(batch.ids, real, batch.segments).double().softmax(-1).cumsum(-1)
    asked = batch.targets["masked_token"]
    places = chances.flatten(0, 1)[asked.index]
    expected = (places <= asked.extra[DRAWS][:, None]).sum(1).tolist()
    read, chosen = generator.read(feed, visit, rows), np.isin(rows.edit, ASKED)
    assert read[chosen].tolist() == expected
    assert (read == rows.ids)[~chosen].all(), "all else is as corruption left it"
    right = int((read == rows.original)[chosen].sum())
    assert generator.counts(feed, 4, 2) == {"rows": 4, "drawn": len(expected), "original": right}


def inspected(*words):
    return main(["inspect", *map(str, words), *TINY_FLAGS])


def test_inspect_shows_them(corpus, run, capsys, tmp_path):
    page = tmp_path / "rows.html"
    asked = ["electra", "--corpus", corpus.path, "--model", run, "--rows", 2]
    assert inspected(*asked, "--html", page) == 0
    out, err = capsys.readouterr()
    assert f"{SIGN} drawn by the generator of {run}" in out
    assert out.count("of the plan") == 2, "two rows are asked for"
    assert " tokens drawn in 2 rows, " in err
    shown = int(err.split(" tokens drawn")[0].split()[-1])
    assert out.count(SIGN) == shown + 1
    assert f"what the generator of {run} drew" in page.read_text(encoding="utf-8")
    assert inspected(*asked, "--json") == 0
    told = json.loads(capsys.readouterr().out)["generator"]
    assert (told["rows"], told["drawn"]) == (2, shown)


def test_inspect_without_a_generator(corpus, run, capsys, tmp_path):
    assert inspected("bert", "--corpus", corpus.path, "--model", run) == 2
    assert "recipe bert has no generator" in capsys.readouterr().err
    assert inspected("electra", "--corpus", corpus.path, "--model", run / "generator") == 2
    assert "has no generator" in capsys.readouterr().err
    assert inspected("electra", "--flow", "--model", run) == 2
    assert "--model has no meaning with --flow" in capsys.readouterr().err
    assert inspected("electra", "--corpus", corpus.path, "--text", "bam", "--model", run) == 2
    assert "--model has no meaning with --text" in capsys.readouterr().err


def test_another_vocabulary_is_refused(corpus, run, tmp_path):
    source = tmp_path / "text.txt"
    source.write_text(text_of(), encoding="utf-8")
    other = maskery.Corpus.build(source, tmp_path / "other", workers=0)
    with pytest.raises(InputError, match="another tokenizer"):
        generator_of(run, Feed(tiny_recipe("electra", **CHANGES), other, 0))
