"""The recipe of ten lines on the index page: shared layers, a generator, distances, spans and their ends in one run."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import torch
from small_run import TINY, corpus_in, cut_back, lines_without_time, run_quietly, same_files

import maskery
from maskery.cli import main
from maskery.recipes.recipe import recipe

DOCS = Path(__file__).parent.parent / "docs"
SIZES = {key: value for key, value in TINY.items() if not key.startswith("model.max")} | {"model.embedding": 8}
STEPS = 12


def shown(page):
    text = (DOCS / page).read_text(encoding="utf-8")
    return re.search(r"```toml\n(# five-papers\.toml\n.*?)```", text, re.DOTALL)[1]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    path = tmp_path_factory.mktemp("recipe") / "five-papers.toml"
    path.write_text(shown("recipes.md"), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def whole(made, tmp_path_factory):
    """A run of it, saved at every step, and its corpus."""
    folder = tmp_path_factory.mktemp("five")
    corpus = corpus_in(folder)
    saving = {"training.steps": STEPS, "training.save_every": 1, "training.keep": STEPS}
    chosen = recipe(made, SIZES | saving)
    _, talk = run_quietly(chosen, corpus, folder / "run")
    return folder / "run", corpus, talk


def test_it_is_ten_lines_and_answers_all_of_this(made):
    assert len(shown("recipes.md").splitlines()) == 10
    assert shown("recipes.md") == shown("zh/recipes.md")
    found = recipe(made).require()
    assert (found.model.share, found.model.embedding, found.model.positions) == ("all", 128, "nezha")
    assert (found.corruption.span.law, found.corruption.unit, found.corruption.decide) == ("geometric", "word", "span")
    assert found.model.generator.width == 0.25
    assert list(found.objectives) == ["masked_token", "replaced_token", "span_boundary", "sentence_order"]
    assert found.training.optimizer == "lamb"


def test_it_trains_and_comes_back(whole):
    run, corpus, talk = whole
    assert "Hugging Face tools cannot open" in talk.text
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    asked = ("masked_token", "replaced_token", "span_boundary", "sentence_order")
    assert all(line[f"loss/{name}"] > 0 for line in lines for name in asked)
    model = maskery.load(run)
    assert set(model.heads) == {"replaced_token", "span_boundary", "sentence_order"}
    assert set(model.generator.heads) == {"masked_token"}
    assert model.generator.network.embeddings.tokens is model.network.embeddings.tokens
    assert "layers.1.attention.inputs" not in dict(model.network.named_parameters())
    assert not hasattr(model.network.embeddings.positions, "table")
    assert model.generator.logits(torch.tensor([[2, 10, 4, 3]])).shape == (1, 4, corpus.vocabulary)


def test_it_goes_on_bitwise(whole, made, tmp_path):
    run, corpus, _ = whole
    again = cut_back(run, 5, tmp_path / "again")
    run_quietly(recipe(made, SIZES | {"training.steps": STEPS}), corpus, again, True)
    for folder in (f"checkpoints/step-{STEPS}", f"checkpoints/step-{STEPS}/generator"):
        same_files(run / folder, again / folder)
    assert lines_without_time(run) == lines_without_time(again)


def test_info_tells_the_folder_as_the_recipe(whole, made, capsys):
    run, corpus, _ = whole
    sizes = [part for key, value in SIZES.items() for part in ("--set", f"{key}={json.dumps(value)}")]
    told = []
    for arguments in ([str(run)], [str(made), "--vocab", str(corpus.vocabulary), *sizes]):
        assert main(["info", *arguments, "--json"]) == 0
        told.append(json.loads(capsys.readouterr().out))
    for key in ("parameters", "memory", "operations", "embedding", "shape", "family"):
        assert told[0][key] == told[1][key], key
    assert told[0]["parameters"]["generator"] > 0
    assert told[0]["generator"]["heads"] == ["masked_token"]


def test_it_saves_what_it_loads(whole, tmp_path):
    run, _, _ = whole
    maskery.load(run).save(tmp_path / "copy")
    for name in ("model.safetensors", "generator/model.safetensors", "config.json", "generator/config.json"):
        assert (tmp_path / "copy" / name).read_bytes() == (run / name).read_bytes(), name
