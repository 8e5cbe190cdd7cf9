"""Damaged run folders: state, recipe and metrics are read, or refused with the repair. A damaged line is told."""

import json
import shutil

import pytest
from damage import any_damage, survives, tries
from hypothesis import given
from small_run import corpus_in, lines_without_time, run_quietly, tiny_recipe

from maskery.errors import CheckpointError
from maskery.train.folder import RunFolder
from maskery.train.run import _open_folder

FEW = tries(30, slow=True)
RECIPE = tiny_recipe(model__layers=1, training__steps=3, training__save_every=1)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return corpus_in(tmp_path_factory.mktemp("corpus"))


@pytest.fixture(scope="module")
def run(corpus, tmp_path_factory):
    path = tmp_path_factory.mktemp("run") / "run"
    run_quietly(RECIPE, corpus, path)
    return path


@pytest.mark.parametrize("name", ["state.json", "recipe.toml", "metrics.jsonl"])
def test_a_damaged_file_of_a_run(run, corpus, name):
    data = (run / name).read_bytes()
    recipe = RunFolder(run).recipe

    def look():
        _open_folder(RunFolder(run), recipe, corpus, True, None, lambda text: None)
        assert all(isinstance(line["step"], int) for line in RunFolder(run).metrics())

    @FEW
    @given(any_damage(name, data))
    def check(damaged):
        (run / name).write_bytes(damaged)
        survives(look)

    try:
        survives(look)
        check()
    finally:
        (run / name).write_bytes(data)


def test_damaged_metrics_are_left_out_and_told(run, corpus, tmp_path):
    copy = tmp_path / "run"
    shutil.copytree(run, copy)
    state = json.loads((copy / "state.json").read_text())
    (copy / "state.json").write_text(json.dumps(state | {"finished": False}))
    lines = (copy / "metrics.jsonl").read_bytes().splitlines(keepends=True)
    (copy / "metrics.jsonl").write_bytes(lines[0] + b"\xff\x00 no line\n" + lines[1] + b"[1]\n" + lines[2][:20])
    shutil.rmtree(copy / "checkpoints/step-3")
    _, talk = run_quietly(RECIPE, corpus, copy, True)
    assert f"{copy}/metrics.jsonl: 2 damaged lines are left out" in talk.text
    assert lines_without_time(copy) == lines_without_time(run)


@pytest.mark.parametrize("key", ["corpus", "step"])
def test_a_state_without_what_every_state_has(run, tmp_path, key):
    state = json.loads((run / "state.json").read_text())
    del state[key]
    (tmp_path / "state.json").write_text(json.dumps(state))
    with pytest.raises(CheckpointError, match=f"{key} is missing") as refused:
        RunFolder(tmp_path).state  # noqa: B018
    assert refused.value.where.endswith("state.json")
    assert refused.value.repair
