"""Runs with trained tables of distances: resumed in the middle, they give the same bytes."""

import pytest
from small_run import STEPS, corpus_in, cut_back, lines_without_time, run_quietly, same_files, tiny_recipe


@pytest.mark.parametrize("optimizer", ["adamw", "lamb"])
@pytest.mark.parametrize("positions", ["shaw", "t5"])
def test_resuming_is_bitwise(positions, optimizer, tmp_path):
    corpus = corpus_in(tmp_path / "corpus")
    changes = {"model__positions": positions, "model__clip": 9, "training__optimizer": optimizer}
    whole = tmp_path / "whole"
    run_quietly(tiny_recipe("nezha", **changes, training__save_every=13, training__keep=STEPS), corpus, whole)
    run = cut_back(whole, 13, tmp_path / "run")
    run_quietly(tiny_recipe("nezha", **changes), corpus, run, True)
    same_files(whole / f"checkpoints/step-{STEPS}", run / f"checkpoints/step-{STEPS}")
    assert (run / "model.safetensors").read_bytes() == (whole / "model.safetensors").read_bytes()
    assert lines_without_time(run) == lines_without_time(whole)
