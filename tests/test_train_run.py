"""A run folder through its life: made, refused, resumed, damaged, finished."""

import json
import shutil

import pytest
import torch
from small_run import TINY_FLAGS, corpus_in, cut_back, lines_without_time, run_quietly, same_files, tiny_recipe

import maskery
from maskery.cli import main
from maskery.errors import CheckpointError, ExistsError, NonFiniteError, RecipeError
from maskery.system import System
from maskery.train import machine
from maskery.train.folder import RunFolder

SHORT = {"training__steps": 10}


pytestmark = pytest.mark.usefixtures("no_waiting_for_the_disk")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return corpus_in(tmp_path_factory.mktemp("corpus"))


@pytest.fixture(scope="module")
def whole(corpus, tmp_path_factory):
    out = tmp_path_factory.mktemp("whole") / "run"
    run_quietly(tiny_recipe(**SHORT, training__save_every=1, training__keep=10), corpus, out)
    return out


def command(corpus, out, *more, recipe="bert"):
    arguments = ["pretrain", recipe, "--corpus", str(corpus.path), "--out", str(out)]
    return main([*arguments, *TINY_FLAGS, "--steps", "10", *more])


def steps_saved(run):
    return [step for step, _ in RunFolder(run).checkpoints()]


def contents(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


# -- saving, keeping, evaluating


@pytest.mark.parametrize(
    ("every", "keep", "saved"), [(3, 2, [9, 10]), (3, 9, [3, 6, 9, 10]), (5, 1, [10]), (0, 3, [10]), (50, 3, [10])]
)
def test_saving_and_keeping(corpus, tmp_path, every, keep, saved):
    run_quietly(tiny_recipe(**SHORT, training__save_every=every, training__keep=keep), corpus, tmp_path / "run")
    assert steps_saved(tmp_path / "run") == saved
    assert sorted(path.name for path in (tmp_path / "run/checkpoints").iterdir()) == sorted(f"step-{n}" for n in saved)


@pytest.mark.parametrize(("every", "evaluated"), [(4, [4, 8, 10]), (5, [5, 10]), (0, [10]), (50, [10])])
def test_evaluating(corpus, tmp_path, every, evaluated):
    run, _ = run_quietly(tiny_recipe(**SHORT, training__eval_every=every), corpus, tmp_path / "run")
    assert [line["step"] for line in run.metrics if "eval/loss" in line] == evaluated
    last = run.metrics[-1]
    assert last["eval/accuracy"] == last["eval/masked_token/accuracy"]
    total = last["eval/masked_token/loss"] + last["eval/next_sentence/loss"]
    assert last["eval/loss"] == pytest.approx(total)


def test_evaluation_does_not_touch_training(corpus, tmp_path):
    for every in (0, 1):
        run_quietly(tiny_recipe(**SHORT, training__eval_every=every), corpus, tmp_path / f"run-{every}")
    weights = [(tmp_path / f"run-{every}/model.safetensors").read_bytes() for every in (0, 1)]
    assert weights[0] == weights[1]


def test_the_same_rows_are_evaluated_every_time(corpus, tmp_path):
    """With a rate of almost nothing the weights stand still, and so does the held-out loss."""
    still = tiny_recipe(**SHORT, training__lr=1e-30, training__eval_every=1, training__weight_decay=0.0)
    run, _ = run_quietly(still, corpus, tmp_path / "run")
    assert len({line["eval/loss"] for line in run.metrics}) == 1
    assert len({line["loss"] for line in run.metrics}) == 10


def test_a_held_out_part_too_small_for_its_rows_is_said_and_skipped(tmp_path):
    small = corpus_in(tmp_path, documents=9, heldout=0.0001)
    assert len(small.documents("heldout")) == 1
    run, talk = run_quietly(tiny_recipe(**SHORT, training__eval_every=2), small, tmp_path / "bert")
    assert "no evaluation: the heldout part of the corpus is one document" in talk.text
    assert "--heldout" in talk.text
    assert len(run.metrics) == 10
    assert not any("eval/loss" in line for line in run.metrics)
    run, talk = run_quietly(tiny_recipe("roberta", **SHORT), small, tmp_path / "roberta")
    assert "no evaluation" not in talk.text
    assert "eval/loss" in run.metrics[-1]


def test_nothing_held_out_is_said(tmp_path):
    bare = corpus_in(tmp_path, documents=12, heldout=0.0)
    run, talk = run_quietly(tiny_recipe(**SHORT), bare, tmp_path / "run")
    assert "nothing is held out" in talk.text
    assert "eval/loss" not in run.metrics[-1]


def test_the_folder_of_a_finished_run(whole, corpus):
    assert {path.name for path in whole.iterdir()} >= {
        "recipe.toml", "metrics.jsonl", "state.json", "checkpoints", "config.json", "model.safetensors",
    }  # fmt: skip
    state = json.loads((whole / "state.json").read_text())
    assert state["finished"]
    assert state["step"] == 10
    assert state["corpus"] == corpus.fingerprint
    assert state["machine"] == machine.facts(torch.device("cpu"), 1, [8])
    lines = lines_without_time(whole)
    assert set(lines[0]) == {"step", "loss", "loss/masked_token", "loss/next_sentence", "lr", "gradient_norm", "tokens"}
    assert lines[-1]["tokens"] == state["tokens"]
    assert lines[0]["loss"] == pytest.approx(lines[0]["loss/masked_token"] + lines[0]["loss/next_sentence"])
    top, last = maskery.load(whole), maskery.load(whole / "checkpoints/step-10")
    for (name, value), other in zip(top.state_dict().items(), last.state_dict().values(), strict=True):
        assert torch.equal(value, other), name


# -- what is refused


def test_an_existing_run_is_not_touched_without_resume(whole, corpus, capsys):
    before = contents(whole)
    assert command(corpus, whole) == 2
    err = capsys.readouterr().err
    assert f"{whole}: is already there" in err
    assert "--resume" in err
    assert contents(whole) == before
    with pytest.raises(ExistsError):
        run_quietly(tiny_recipe(**SHORT), corpus, whole)


def test_a_finished_run_says_so(whole, corpus, capsys):
    before = contents(whole)
    assert command(corpus, whole, "--resume") == 0
    assert "already finished at step 10" in capsys.readouterr().err
    assert contents(whole) == before


@pytest.mark.parametrize(
    ("more", "key"),
    [
        (["--seed", "3"], "training.seed: the run has 0, asked is 3"),
        (["--set", "model.layers=1"], "model.layers"),
        (["--steps", "8"], "training.steps: the run has 10, asked is 8"),
        (["--set", "corruption.rate=0.2"], "corruption.rate"),
        (["--batch", "4"], "training.batch"),
    ],
)
def test_resuming_with_another_answer_names_the_key(whole, corpus, tmp_path, capsys, more, key):
    run = cut_back(whole, 4, tmp_path / "run")
    before = contents(run)
    given = ["pretrain", "bert", "--corpus", str(corpus.path), "--out", str(run), "--resume"]
    flags = drop(TINY_FLAGS, more[-1].partition("=")[0] + "=")
    assert main([*given, *flags, *(["--steps", "10"] if "--steps" not in more else []), *more]) == 2
    err = capsys.readouterr().err
    assert key in err
    assert ("resume with the same recipe" in err) == ("steps" not in key)
    assert "choose another --out" in err
    assert contents(run) == before


def drop(flags, key):
    """The flags without those that --set something which begins with `key`."""
    pairs = zip(flags[::2], flags[1::2], strict=True)
    return [part for pair in pairs if not pair[1].startswith(key) for part in pair]


def test_keys_that_do_not_touch_the_weights_may_change(whole, corpus, tmp_path):
    run = cut_back(whole, 4, tmp_path / "run")
    changed = tiny_recipe(**SHORT, training__save_every=2, training__keep=2, training__eval_every=5)
    run_quietly(changed, corpus, run, True)
    assert steps_saved(run) == [8, 10]
    assert (run / "model.safetensors").read_bytes() == (whole / "model.safetensors").read_bytes()


def test_another_corpus_is_refused(whole, tmp_path, capsys):
    other = corpus_in(tmp_path, seed=5)
    run = cut_back(whole, 4, tmp_path / "run")
    assert command(other, run, "--resume") == 2
    err = capsys.readouterr().err
    assert "corpus: the run was started on fingerprint" in err
    assert str(other.path) in err


def test_a_folder_that_is_no_run_is_left_alone(corpus, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/thesis.txt").write_text("years of work")
    with pytest.raises(CheckpointError, match="is no run folder"):
        run_quietly(tiny_recipe(**SHORT), corpus, tmp_path / "mine", True)
    assert (tmp_path / "mine/thesis.txt").read_text() == "years of work"


def test_checkpoints_are_never_deleted_because_a_state_is_missing(whole, corpus, tmp_path):
    run = cut_back(whole, 4, tmp_path / "run")
    (run / "state.json").unlink()
    (run / "metrics.jsonl").unlink()
    with pytest.raises(CheckpointError, match=r"state\.json is missing"):
        run_quietly(tiny_recipe(**SHORT), corpus, run, True)
    assert steps_saved(run) == [4]


# -- what a crash can leave behind


def test_a_run_killed_while_its_folder_was_made_begins_anew(whole, corpus, tmp_path):
    run = tmp_path / "run"
    (run / "checkpoints").mkdir(parents=True)
    shutil.copy(whole / "state.json", run)
    (run / ".partial-77-recipe.toml").write_text("[")
    _, talk = run_quietly(tiny_recipe(**SHORT), corpus, run, True)
    assert "starting anew" in talk.text
    assert (run / "model.safetensors").read_bytes() == (whole / "model.safetensors").read_bytes()
    assert not list(run.glob(".partial*"))


def test_leftovers_are_removed_and_told(whole, corpus, tmp_path):
    run = cut_back(whole, 4, tmp_path / "run")
    for place in (run / "checkpoints/.partial-9-step-5", run / ".partial-9-model"):
        place.mkdir()
        (place / "model.safetensors").write_bytes(b"half")
    _, talk = run_quietly(tiny_recipe(**SHORT, training__save_every=1, training__keep=10), corpus, run, True)
    assert "left behind: .partial-9-model, .partial-9-step-5" in talk.text
    same_model(run, whole)
    assert {path.name for path in run.iterdir()} == {path.name for path in whole.iterdir()}


def test_a_last_line_cut_short_is_forgotten(whole, corpus, tmp_path):
    run = cut_back(whole, 9, tmp_path / "run")
    text = (run / "metrics.jsonl").read_text()
    (run / "metrics.jsonl").write_text(text[: len(text) - 40])
    run_quietly(tiny_recipe(**SHORT), corpus, run, True)
    assert lines_without_time(run) == lines_without_time(whole)


@pytest.mark.parametrize("name", ["model.safetensors", "optimizer.safetensors", "state.json"])
def test_a_damaged_checkpoint_is_refused_and_the_one_before_still_works(whole, corpus, tmp_path, capsys, name):
    run = cut_back(whole, 4, tmp_path / "run")
    shutil.copytree(whole / "checkpoints/step-3", run / "checkpoints/step-3")
    damaged = run / "checkpoints/step-4"
    data = bytearray((damaged / name).read_bytes())
    data[len(data) // 2] ^= 1
    (damaged / name).write_bytes(data)
    before = contents(run)
    assert command(corpus, run, "--resume") == 2
    err = capsys.readouterr().err
    assert f"{name} does not match its checksum" in err
    assert f"rm -r {damaged}, then go on from step-3" in err
    assert contents(run) == before
    shutil.rmtree(damaged)
    assert command(corpus, run, "--resume") == 0
    assert (run / "model.safetensors").read_bytes() == (whole / "model.safetensors").read_bytes()


def test_another_machine_is_warned_of(whole, corpus, tmp_path, monkeypatch):
    facts = machine.facts
    monkeypatch.setattr(machine, "facts", lambda *given: facts(*given) | {"threads": 64})
    _, talk = run_quietly(tiny_recipe(**SHORT), corpus, cut_back(whole, 4, tmp_path / "run"), True)
    assert f"threads was {torch.get_num_threads()}, is 64: the run will not be bitwise the same" in talk.text


# -- guards, through the command line


def test_a_weight_that_is_no_number_ends_the_command_with_1(corpus, tmp_path, monkeypatch, capsys):
    initialise = System.initialise

    def broken(self, seed):
        initialise(self, seed)
        with torch.no_grad():
            self.heads["next_sentence"].dense.weight[0, 0] = float("nan")

    monkeypatch.setattr(System, "initialise", broken)
    assert command(corpus, tmp_path / "run") == 1
    err = capsys.readouterr().err
    assert "not finite; no weight was changed" in err
    numbers = maskery.batch(tiny_recipe(**SHORT), corpus).rows.tolist()
    assert f"rows {', '.join(map(str, numbers))} of the plan" in err
    assert "Traceback" not in err
    assert steps_saved(tmp_path / "run") == []
    monkeypatch.undo()
    assert command(corpus, tmp_path / "run", "--resume") == 0


def test_a_loss_that_breaks_in_the_middle_keeps_the_last_checkpoint(whole, corpus, tmp_path, monkeypatch):
    forward = System.forward

    def breaks_at_step_7(self, each):
        sums = forward(self, each)
        return {name: total * float("inf") if each.step == 6 else total for name, total in sums.items()}

    with monkeypatch.context() as patch:
        patch.setattr(System, "forward", breaks_at_step_7)
        with pytest.raises(NonFiniteError, match="update 7"):
            run_quietly(tiny_recipe(**SHORT, training__save_every=3), corpus, tmp_path / "run")
    assert steps_saved(tmp_path / "run") == [3, 6]
    same_model(tmp_path / "run/checkpoints/step-6", whole / "checkpoints/step-6")
    run_quietly(tiny_recipe(**SHORT), corpus, tmp_path / "run", True)
    same_model(tmp_path / "run", whole)


def same_model(one, other):
    assert (one / "model.safetensors").read_bytes() == (other / "model.safetensors").read_bytes()


def test_an_allocators_refusal_is_noted_in_the_state_and_told(corpus, tmp_path, monkeypatch, capsys):
    forward = System.forward

    def limited(self, each):
        if each.size > 4 and self.training:
            raise RuntimeError(
                "[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to allocate 99 bytes"
            )
        return forward(self, each)

    monkeypatch.setattr(System, "forward", limited)
    assert command(corpus, tmp_path / "run") == 0
    note = "step 1 was redone with micro-batches of 4 rows: out of memory"
    assert note in capsys.readouterr().err
    state = json.loads((tmp_path / "run/state.json").read_text())
    assert state["notes"] == [note]
    assert state["machine"]["micro"] == [4]
    assert all(line["loss"] < 10 for line in lines_without_time(tmp_path / "run"))


def test_a_smaller_micro_batch_stays_after_resuming(corpus, tmp_path, monkeypatch):
    """The checkpoint knows it, so resuming is bitwise, however much memory there is by then."""
    forward = System.forward

    def limited(self, each):
        if each.size > 4 and each.step == 1:
            raise MemoryError
        return forward(self, each)

    saving = tiny_recipe(**SHORT, training__save_every=1, training__keep=10)
    with monkeypatch.context() as patch:
        patch.setattr(System, "forward", limited)
        run_quietly(saving, corpus, tmp_path / "whole")
    run = cut_back(tmp_path / "whole", 5, tmp_path / "run")
    run_quietly(tiny_recipe(**SHORT), corpus, run, True)
    same_files(run / "checkpoints/step-10", tmp_path / "whole/checkpoints/step-10")


# -- beginning with another model


def test_starting_from_a_model_and_resuming_before_the_first_checkpoint(whole, corpus, tmp_path):
    chosen = tiny_recipe(**SHORT, training__seed=9, training__save_every=1, training__keep=10)
    _, talk = run_quietly(chosen, corpus, tmp_path / "second", start_from=whole)
    assert "heads taken: masked_token, next_sentence" in talk.text
    first = maskery.load(tmp_path / "second/checkpoints/step-1").network.embeddings.tokens
    assert (first - maskery.load(whole).network.embeddings.tokens).abs().max() < 0.01, "one update away"
    run = cut_back(tmp_path / "second", 0, tmp_path / "run")
    state = json.loads((run / "state.json").read_text())
    (run / "state.json").write_text(json.dumps(state | {"from": str(whole)}))
    run_quietly(chosen, corpus, run, True)
    same_model(run, tmp_path / "second")


def test_resuming_from_another_model_is_refused(whole, corpus, tmp_path):
    chosen = tiny_recipe(**SHORT, training__seed=9)
    run = cut_back(whole, 4, tmp_path / "run")
    with pytest.raises(RecipeError, match="--from: the run has None"):
        run_quietly(tiny_recipe(**SHORT), corpus, run, True, start_from=whole)
    run_quietly(chosen, corpus, tmp_path / "second", start_from=whole)
    shutil.copytree(whole, tmp_path / "copy")
    with pytest.raises(RecipeError, match="--from"):
        run_quietly(chosen, corpus, tmp_path / "second", True, start_from=tmp_path / "copy")


def test_the_command_takes_the_models_shape_and_resumes_with_and_without_from(whole, corpus, tmp_path, capsys):
    flags = [*drop(TINY_FLAGS, "model."), "--steps", "10", "--seed", "2"]
    base = ["pretrain", "bert", "--corpus", str(corpus.path), "--out", str(tmp_path / "run"), *flags]
    assert main([*base, "--from", str(whole)]) == 0
    assert "the network's shape is that of" in capsys.readouterr().err
    for more in ([], ["--from", str(whole)]):
        assert main([*base, *more, "--resume"]) == 0, capsys.readouterr().err
        assert "already finished" in capsys.readouterr().err
