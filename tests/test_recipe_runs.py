"""Every recipe trains from the command line, and what it writes is read by us and by Hugging Face's tools."""

import json

import pytest
import torch
from small_run import WORDS, corpus_in
from transformers import AutoModel

import maskery
from maskery.cli import main
from maskery.model.heads import TokenHead
from maskery.objectives.config import OBJECTIVES
from maskery.recipes.recipe import names, recipe


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    folder = tmp_path_factory.mktemp("recipes")
    corpus_in(folder)
    (folder / "similar.txt").write_text("\n".join(" ".join(WORDS[n : n + 3]) for n in range(0, 90, 3)), "utf-8")
    return folder / "corpus"


def pretrain(name, corpus, out, *more):
    settings = ["--size", "tiny", "--steps", "3", "--batch", "8", "--length", "32", "--seed", "1", *more]
    return main(["pretrain", name, "--corpus", str(corpus), "--out", str(out), *settings])


def needs(name, corpus):
    """What a recipe cannot do without; and a narrow embedding that is narrower than the tiny layers, and a warm-up
    that is shorter than the run."""
    made = recipe(name)
    settings = [f"knowledge.synonyms={corpus.parent / 'similar.txt'}"] if made.corruption.replace.similar else []
    settings += ["model.embedding=64"] if made.model.embedding else []
    settings += ["training.warmup=2"] if made.training.warmup > 1 else []
    return [part for setting in settings for part in ("--set", setting)]


GONE = {"nezha": "nezha", "transformer-xl": "transfo-xl"}
"""Written as transformers 4 reads them; 5 has them no more, and tests of the equations stand in for it."""

OWN = ("mass", "transformer")
"""Shapes that no family of Hugging Face expresses."""


def with_heads(name):
    """The questions that have a head; a contrast compares states as they are."""
    made = recipe(name, size="tiny")
    with torch.device("meta"):
        heads = {each: OBJECTIVES.get(each)().head(made.model.shape(50)) for each in made.objectives}
    return {each for each, head in heads.items() if isinstance(head, TokenHead) or (head and list(head.parameters()))}


@pytest.mark.parametrize("name", names())
def test_every_recipe_trains_and_is_read_again(name, corpus, tmp_path, capsys):
    out = tmp_path / "run"
    assert pretrain(name, corpus, out, *needs(name, corpus)) == 0, capsys.readouterr().err
    lines = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    asked = recipe(name).objectives
    trained = [line for line in lines if "loss" in line]
    assert len(trained) == 3
    for objective in asked:
        losses = [line[f"loss/{objective}"] for line in trained if f"loss/{objective}" in line]
        assert losses, "asked at some step, if not at every one"
        assert min(losses) > 0
    model = maskery.load(out)
    beside = {} if model.generator is None else model.generator.heads
    assert {*model.heads, *beside} == with_heads(name)
    ids = torch.tensor([[2, 10, 20, 30, 3]])
    if name in GONE:
        assert json.loads((out / "config.json").read_text())["model_type"] == GONE[name]
        assert model(ids).last.isfinite().all()
        return
    if name in OWN:
        assert json.loads((out / "config.json").read_text())["model_type"] == "maskery"
        assert model(ids).last.isfinite().all()
        return
    with torch.no_grad():
        ours, theirs = model(ids).last, AutoModel.from_pretrained(out).eval()(ids)
    read = theirs.get("encoder_last_hidden_state", theirs.last_hidden_state)
    torch.testing.assert_close(ours, read, rtol=0, atol=1e-5)


def test_as_published_similar_words_are_demanded_before_anything_is_read(corpus, tmp_path, capsys):
    assert pretrain("macbert", corpus, tmp_path / "run", "--as-published") == 2
    told = capsys.readouterr().err
    assert "knowledge.synonyms names no file" in told
    assert "repair: --set knowledge.synonyms=FILE" in told
    assert not (tmp_path / "run").exists()
