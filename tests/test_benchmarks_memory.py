"""The benchmarks about memory: both ways of scoring, equal parameters, every token scored once, and what is written."""

import json
import math
import sys
from pathlib import Path

import pytest
import torch
from small_run import text_of

sys.path.insert(0, str(Path(__file__).parent.parent))

from benchmarks import perplexity, report_memory, xl_evaluation
from maskery.checkpoint.load import load
from maskery.corpus.store import Corpus
from maskery.model.reading import Reading, score_stream

pytestmark = pytest.mark.usefixtures("no_waiting_for_the_disk")


def test_both_ways_of_scoring_are_measured(monkeypatch):
    monkeypatch.setattr(xl_evaluation, "VOCABULARY", 50)
    monkeypatch.setattr(xl_evaluation, "ROW", 8)
    system, head = xl_evaluation.network_of("tiny")
    found = xl_evaluation.point(system, head, 12, rounds=1)
    assert found["ratio"] == pytest.approx(found["memory_per_second"] / found["anew_per_second"])
    assert found["tokens"] == 64
    cells = report_memory.xl_evaluation({"points": [found | {"length": 3800, "published": 1874}]}, "en")
    assert [cells[0][0], cells[0][-1]] == ["3,800", "1,874"]


def test_rivals_have_as_many_parameters():
    made = perplexity.rivals("mini", 128, 32, 4_000_000, 0, 8000)
    many = [perplexity.parameters(each, 8000) for each in made.values()]
    assert abs(many[0] - many[1]) / many[0] < 1e-3
    assert made["transformer-xl"].model.memory == 128
    assert not made["gpt2"].model.memory
    assert {each.training.steps * each.training.batch * 128 for each in made.values()} == {4_001_792}
    one, two = (each.training.plain() for each in made.values())
    assert one == two, "nothing but the network parts them"


def test_articles_stay_whole():
    text = "\n\n".join(f"article {number}" for number in range(100))
    first, second = perplexity.cut(text, 0, 200), perplexity.cut(text, 200, 100)
    assert text.startswith(first + "\n\n" + second + "\n\n")
    assert len(first) >= 200


def test_a_model_is_trained_and_scored_once(tmp_path, monkeypatch):
    train, valid = tmp_path / "train.txt", tmp_path / "valid.txt"
    train.write_text(text_of(20), "utf-8")
    valid.write_text(text_of(4, seed=1), "utf-8")
    monkeypatch.setattr(perplexity, "LANES", 3)
    flags = ["--wikitext", str(train), str(valid), "--out", str(tmp_path / "out"), "--nowhere-else", "--pieces", "300"]
    flags += ["--tokens", "512", "--size", "tiny", "--length", "16", "--batch", "8"]
    perplexity.main(flags)
    found = json.loads((tmp_path / "out/perplexity.json").read_text())
    assert [run["recipe"] for run in found["runs"]] == ["gpt2", "transformer-xl"]
    assert [score["memory"] for score in found["runs"][1]["scores"]] == [0, 16, 64]
    assert len(report_memory.perplexity(found, "zh")) == 4
    ids = perplexity.stream_of(Corpus.open(tmp_path / "out/wikitext2-valid"))
    model = load(tmp_path / "out/run-wikitext2-gpt2-0")
    size = -(-(len(ids) - 1) // 3)
    nats = 0.0
    for start in range(0, len(ids) - 1, size):
        part = ids[start : start + size + 1][None]
        nats -= float(score_stream(model.network, model.token_head(), part, Reading(length=16)).sum())
    words = len(valid.read_text().split())
    assert found["runs"][0]["scores"][0]["value"] == pytest.approx(math.exp(nats / words), rel=1e-4)
    monkeypatch.setattr(perplexity, "pretrain", None)
    perplexity.main(flags)
    assert torch.equal(ids, perplexity.stream_of(Corpus.open(tmp_path / "out/wikitext2-valid")))
