"""Nothing is resumed into something else: another command's run, another base model, other settings."""

import shutil
from contextlib import nullcontext

import pytest
from small_encoder import lines, pairs, small_encoder
from small_run import corpus_in, run_quietly, tiny_recipe
from small_task import examples_of, family_model, quiet

from maskery.checkpoint.fingerprint import model_fingerprint
from maskery.checkpoint.load import load
from maskery.checkpoint.locate import locate
from maskery.errors import CheckpointError, ExistsError, InputError, RecipeError
from maskery.tasks.finetune import finetune
from maskery.vectors.learn.run import train_encoder
from maskery.words.config import words_config
from maskery.words.training import Training

FINISHED = '"finished": true'
TRAIN, DEV = examples_of("classify", 24), examples_of("classify", 12, 50)


class KilledError(Exception):
    pass


def killing(update, line):
    if update.step == 3:
        raise KilledError


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Two of one shape, and what was made of the first by each command."""
    folder = tmp_path_factory.mktemp("models")
    for name, seed in (("one", 0), ("other", 1)):
        family_model(folder / name, "bert", seed=seed, dropout=0.1, attention_dropout=0.1)
    tune(folder / "one", folder / "tuned")
    vectors(folder / "vectors")
    run_quietly(tiny_recipe(training__steps=2), corpus_in(folder / "corpus"), folder / "pretrained")
    return folder


def tune(model, out, settings=None, **more):
    settings = {"epochs": 1, "training": {"save_every": 1}, **(settings or {})}
    return finetune(model, out=out, train=TRAIN, dev=DEV, settings=settings, say=quiet, **more)


def vectors(out, seed=0, loss="simcse", train=None, settings=None, say=quiet, **more):
    settings = {"training": {"batch": 8, "save_every": 1, **(settings or {})}}
    texts = lines() if train is None else train
    model = small_encoder("first", dropout=0.1, seed=seed)
    return train_encoder(model, loss=loss, train=texts, out=out, settings=settings, say=say, **more)


def contents(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("found", ["one", "tuned", "pretrained"])
def test_vectors_train_does_not_go_on_with_what_it_did_not_write(models, found, tmp_path):
    shutil.copytree(models / found, tmp_path / "out")
    before = contents(tmp_path / "out")
    with pytest.raises(InputError, match=r"maskery vectors train\n  repair: choose another --out"):
        vectors(tmp_path / "out", resume=True)
    assert contents(tmp_path / "out") == before


@pytest.mark.parametrize("found", ["one", "vectors", "pretrained"])
def test_finetune_does_not_go_on_with_what_it_did_not_write(models, found, tmp_path):
    shutil.copytree(models / found, tmp_path / "out")
    before = contents(tmp_path / "out")
    with pytest.raises(InputError, match=r"maskery finetune\n  repair: choose another --out"):
        tune(models / "one", tmp_path / "out", resume=True)
    assert contents(tmp_path / "out") == before


def test_a_finished_run_of_vectors_is_compared_with_what_is_wanted(models):
    said = []
    vectors(models / "vectors", resume=True, say=said.append)
    assert "already finished at step 3" in said[-1]
    for changed, cause in (
        ({"settings": {"lr": 0.5}}, r"another training\.lr"),
        ({"train": lines(16)}, "other examples"),
        ({"loss": "multiple_negatives", "train": pairs()}, "other examples"),
        ({"seed": 5}, "another base model"),
    ):
        with pytest.raises(RecipeError, match=cause):
            vectors(models / "vectors", resume=True, **changed)


@pytest.mark.parametrize("stopped", [True, False])
def test_finetune_does_not_go_on_from_another_base_model(models, stopped, tmp_path):
    out = tmp_path / "run"
    if stopped:
        with pytest.raises(KilledError):
            vectors(out, watch=killing)
        with pytest.raises(RecipeError, match="another base model"):
            vectors(out, seed=7, resume=True)
        vectors(out, resume=True)
    tune(models / "one", tmp_path / "tuned")
    if stopped:
        (state := tmp_path / "tuned" / "state.json").write_text(
            state.read_text().replace(FINISHED, FINISHED.replace("true", "false"))
        )
    with pytest.raises(RecipeError, match="another base model"):
        tune(models / "other", tmp_path / "tuned", resume=True)
    tune(models / "one", tmp_path / "tuned", resume=True)


def test_the_fingerprint_of_a_model_is_of_its_weights_its_tokenizer_and_its_shape(models):
    model = load(models / "one")
    first = model_fingerprint(model)
    assert first == model_fingerprint(load(models / "one"))
    assert first != model_fingerprint(load(models / "other"))
    weight = next(model.parameters()).data
    weight.view(-1)[-1] += 1e-3
    assert model_fingerprint(model) != first
    weight.view(-1)[-1] = load(models / "one").state_dict()[next(iter(model.state_dict()))].view(-1)[-1]
    assert model_fingerprint(model) == first
    model.tokenizer = small_encoder().tokenizer
    assert model_fingerprint(model) != first


@pytest.mark.parametrize("found", ["one", "tuned", "vectors"])
def test_pretrain_and_words_do_not_go_on_with_what_they_did_not_write(models, found, tmp_path):
    shutil.copytree(models / found, tmp_path / "out")
    before, store = contents(tmp_path / "out"), corpus_in(tmp_path / "corpus")
    kind = {"one": "is no run folder", "tuned": "a run of maskery finetune, not of maskery pretrain"}
    with pytest.raises(CheckpointError, match=kind.get(found, "a run of maskery vectors train, not of")):
        run_quietly(tiny_recipe(training__steps=2), store, tmp_path / "out", resume=True)
    with pytest.raises(InputError, match="is no run of maskery words train"):
        Training(store, words_config("cbow"), tmp_path / "out", resume=True)
    assert contents(tmp_path / "out") == before


@pytest.mark.parametrize("found", ["tuned", "vectors", "pretrained"])
def test_a_finished_run_without_its_manifest_is_its_model(models, found, tmp_path):
    """The repair for a model that was changed on purpose: remove the manifest."""
    shutil.copytree(models / found, tmp_path / "out")
    (tmp_path / "out" / "manifest.json").unlink()
    assert locate(tmp_path / "out") == (tmp_path / "out", "")
    state = tmp_path / "out" / "state.json"
    state.write_text(state.read_text().replace(FINISHED, FINISHED.replace("true", "false")))
    assert locate(tmp_path / "out")[0] != tmp_path / "out"


@pytest.mark.parametrize("name", ["state.json", "model.safetensors", "manifest.json"])
def test_a_folder_in_the_place_of_a_file_is_named(models, name, tmp_path):
    def replaced(update, line):
        if (tmp_path / "new" / name).is_file():
            (tmp_path / "new" / name).unlink()
        (tmp_path / "new" / name).mkdir(exist_ok=True)

    with pytest.raises(ExistsError, match="is a folder, not a file") as refused:
        tune(models / "one", tmp_path / "new", watching=lambda part: nullcontext(replaced))
    assert refused.value.repair.endswith(f"remove it: rm -r {tmp_path / 'new' / name}")


def test_a_file_in_the_place_of_a_checkpoint_is_named(models, tmp_path):
    def replaced(update, line):
        (tmp_path / "new" / "checkpoints").mkdir(exist_ok=True)
        (tmp_path / "new" / "checkpoints" / f"step-{update.step + 1}").write_text("")

    with pytest.raises(ExistsError, match="is a file, not a folder"):
        vectors(tmp_path / "new", watch=replaced)
