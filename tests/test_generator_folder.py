"""A model with a generator on disk: a folder inside the folder, opened together, apart, and by Hugging Face's tools."""

from __future__ import annotations

import json
import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file
from small_run import TINY, corpus_in, cut_back, flags_of, lines_without_time, run_quietly, same_files, tiny_recipe
from transformers import ElectraForMaskedLM, ElectraForPreTraining

import maskery
from maskery.checkpoint.folder import state_of
from maskery.checkpoint.model import Model
from maskery.cli import main
from maskery.compare.ask import Examination, ask_masked
from maskery.errors import CheckpointError, InputError
from maskery.system import System

TIED = ("embeddings.word_embeddings", "embeddings.position_embeddings", "embeddings.token_type_embeddings")
IDS = torch.tensor([[2, 10, 20, 4, 30, 3], [2, 11, 21, 31, 3, 0]])
ONE_STEP = flags_of(TINY | {"training.steps": 1})
SETTINGS = {"training__steps": 6, "training__save_every": 1, "training__keep": 99, "training__eval_every": 3}
MASK = torch.tensor([[1, 1, 1, 1, 1, 1], [1, 1, 1, 1, 1, 0]])


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return corpus_in(tmp_path_factory.mktemp("generator"))


@pytest.fixture(scope="module")
def run(corpus, tmp_path_factory):
    """A finished run, saved at every step."""
    made, _ = run_quietly(tiny_recipe("electra", **SETTINGS), corpus, tmp_path_factory.mktemp("run") / "run")
    return made.path


def copied(run, tmp_path):
    """The model alone, without the run."""
    out = tmp_path / "model"
    maskery.load(run).save(out)
    return out


def test_what_is_saved(run):
    model = maskery.load(run)
    assert set(model.heads) == {"replaced_token"}
    assert set(model.generator.heads) == {"masked_token"}
    assert (model.family, model.generator.family) == ("electra", "electra")
    alone = maskery.load(run / "generator")
    assert alone.generator is None
    with torch.no_grad():
        assert torch.equal(alone.logits(IDS, MASK), model.generator.logits(IDS, MASK))
    assert maskery.load(run / "checkpoints" / "step-2").generator is not None


def test_tied_tensors_are_one_parameter_again(run, tmp_path):
    for model in (maskery.load(run), maskery.load(copied(run, tmp_path))):
        own, lent = model.network.embeddings, model.generator.network.embeddings
        assert lent.tokens is own.tokens
        assert lent.norm is own.norm
        parts = model.parameters_by_part()
        assert parts["total"] == sum(p.numel() for p in model.parameters())
        of_generator = sum(p.numel() for p in model.generator.parameters())
        assert parts["generator"] == of_generator > 0
        assert parts["total"] == parts["encoder"] + parts["heads"] + of_generator
        assert not [name for name, _ in model.generator.network.named_parameters() if "tokens" in name]


def test_saved_again_it_is_the_same_to_the_bit(run, tmp_path):
    model = maskery.load(run)
    again = maskery.load(copied(run, tmp_path))
    for one, other in ((model, again), (model.generator, again.generator)):
        left, right = (state_of(each.network, each.heads) for each in (one, other))
        assert left.keys() == right.keys()
        assert all(torch.equal(left[name], right[name]) for name in left)
    same_files(run / "generator", tmp_path / "model" / "generator")


def test_hugging_face_opens_both(run):
    model = maskery.load(run)
    theirs, told = ElectraForPreTraining.from_pretrained(run, output_loading_info=True)
    assert not any(told.values())
    filler, told = ElectraForMaskedLM.from_pretrained(run / "generator", output_loading_info=True)
    assert not any(told.values())
    with torch.no_grad():
        hidden = model(IDS, MASK)
        ours = hidden.layout.unpack(model.heads["replaced_token"](hidden.packed).unsqueeze(-1)).squeeze(-1)
        found = theirs.eval()(IDS, attention_mask=MASK).logits
        torch.testing.assert_close(ours[MASK == 1], found[MASK == 1], rtol=0, atol=1e-5)
        found = filler.eval()(IDS, attention_mask=MASK).logits
        torch.testing.assert_close(model.generator.logits(IDS, MASK)[MASK == 1], found[MASK == 1], rtol=0, atol=1e-5)


def test_what_hugging_face_writes_is_read(run, tmp_path):
    ElectraForPreTraining.from_pretrained(run).save_pretrained(tmp_path / "again")
    ElectraForMaskedLM.from_pretrained(run / "generator").save_pretrained(tmp_path / "again" / "generator")
    model, again = maskery.load(run), maskery.load(tmp_path / "again")
    with torch.no_grad():
        assert torch.equal(model(IDS).last, again(IDS).last)
        assert torch.equal(model.generator.logits(IDS), again.generator.logits(IDS))


@pytest.mark.parametrize("positions", ["learned", "nezha", "shaw", "t5"])
def test_what_hugging_face_cannot_express_is_saved_too(corpus, tmp_path, positions):
    """Shared layers and a generator; positions in attention are each network's own."""
    changes = {"model__share": "all", "model__positions": positions, "model__generator__width": 0.5}
    system = System(tiny_recipe("electra", **changes), corpus.vocabulary)
    system.initialise(0)
    small = system.generator
    model = Model(
        system.network,
        system.heads_of(system.network),
        corpus.tokenizer,
        generator=Model(small, system.heads_of(small), corpus.tokenizer),
    )
    model.save(tmp_path / "model")
    again = maskery.load(tmp_path / "model")
    assert again.generator.network.embeddings.tokens is again.network.embeddings.tokens
    with torch.no_grad():
        assert torch.equal(model(IDS, MASK).last, again(IDS, MASK).last)
        assert torch.equal(model.generator.logits(IDS, MASK), again.generator.logits(IDS, MASK))
        assert torch.equal(model.generator.logits(IDS), maskery.load(tmp_path / "model" / "generator").logits(IDS))


@pytest.mark.parametrize("name", TIED)
def test_copies_that_differ_are_refused(run, tmp_path, name):
    folder = copied(run, tmp_path)
    (folder / "manifest.json").unlink()
    weights = folder / "generator" / "model.safetensors"
    tensors = load_file(weights)
    changed = next(each for each in tensors if name in each)
    tensors[changed][0, 0] += 1
    save_file(tensors, weights, metadata={"format": "pt"})
    with pytest.raises(CheckpointError, match="differs from the model's") as caught:
        maskery.load(folder)
    assert "generator" in str(caught.value.where)
    assert "move generator/" in caught.value.repair
    shutil.move(folder / "generator", tmp_path / "apart")
    (tmp_path / "apart" / "manifest.json").unlink()
    assert maskery.load(folder).generator is None
    assert maskery.load(tmp_path / "apart").heads


def test_damage_inside_the_generator_is_seen(run, tmp_path):
    folder = copied(run, tmp_path)
    weights = folder / "generator" / "model.safetensors"
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)
    for place in (folder, folder / "generator"):
        with pytest.raises(CheckpointError, match=r"model\.safetensors does not match its checksum"):
            maskery.load(place)


def test_a_model_without_one_leaves_none_behind(run, tmp_path):
    folder = copied(run, tmp_path)
    model = maskery.load(folder)
    model.generator = None
    model.save(folder, replace=True)
    assert not (folder / "generator").exists()
    assert maskery.load(folder).generator is None


def test_resuming_is_bitwise(run, corpus, tmp_path):
    cut = cut_back(run, 3, tmp_path / "cut")
    run_quietly(tiny_recipe("electra", **SETTINGS), corpus, cut, resume=True)
    for place in (".", "generator", "checkpoints/step-6", "checkpoints/step-6/generator"):
        assert "model.safetensors" in same_tensors(run / place, cut / place)
    assert lines_without_time(run) == lines_without_time(cut)


def same_tensors(one, other):
    names = sorted(path.name for path in one.iterdir() if path.is_file() and path.suffix == ".safetensors")
    for name in names:
        assert (one / name).read_bytes() == (other / name).read_bytes(), name
    return names


def test_evaluation_tells_both(run):
    last = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()][-1]
    assert 0 <= last["eval/masked_token/accuracy"] <= 1
    assert 0 <= last["eval/replaced_token/auc"] <= 1
    assert last["eval/replaced_token/replaced"] > 0
    weighed = last["eval/masked_token/loss"] + 50 * last["eval/replaced_token/loss"]
    assert last["eval/loss"] == pytest.approx(weighed)


def test_masks_are_filled_by_the_generator(run, capsys):
    assert main(["fill", str(run), "bam [MASK] bar", "--json"]) == 0
    told = capsys.readouterr()
    assert "filled by the model's generator" in told.err
    found = json.loads(told.out)["masks"][0]["candidates"]
    assert main(["fill", str(run / "generator"), "bam [MASK] bar", "--json"]) == 0
    told = capsys.readouterr()
    assert "generator" not in told.err
    assert json.loads(told.out)["masks"][0]["candidates"] == found


def test_a_comparison_asks_the_generator_for_masked_tokens(run, corpus):
    examination = Examination.of("roberta", corpus, 8, (), {"training.length": 24})
    trained = tiny_recipe("electra", **SETTINGS)
    examination.require_fit("electra", trained)
    found = [
        ask_masked(maskery.load(place), trained, examination, lambda done, of: None).plain()
        for place in (run, run / "generator")
    ]
    assert found[0] == found[1]
    assert sum(found[0]["asked"]) > 0
    Examination.of("electra", corpus, 8, (), {"training.length": 24}).require()


def test_the_model_has_no_scores_over_the_vocabulary(run):
    with pytest.raises(InputError, match="no head over the vocabulary") as caught:
        maskery.load(run).logits(IDS)
    assert caught.value.repair == "model.generator has one"


def begin(corpus, out, source):
    return main(
        ["pretrain", "electra", "--corpus", str(corpus.path), "--out", str(out), "--from", str(source), *ONE_STEP]
    )


def test_a_run_begins_with_both(run, corpus, tmp_path, capsys):
    assert begin(corpus, tmp_path / "next", run) == 0
    assert "heads taken: replaced_token, generator, masked_token; new: none" in capsys.readouterr().err
    assert begin(corpus, tmp_path / "half", run / "generator") == 2
    assert "shape differs" in capsys.readouterr().err


def test_a_generator_may_be_new(run, corpus, tmp_path, capsys):
    folder = copied(run, tmp_path)
    shutil.rmtree(folder / "generator")
    (folder / "manifest.json").unlink()
    assert begin(corpus, tmp_path / "next", folder) == 0
    assert "heads taken: replaced_token; new: masked_token, generator" in capsys.readouterr().err


def test_info_counts_the_generator(capsys):
    assert main(["info", "electra", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["parameters"] | {"pooler": 0} == {
        "total": 108_891_648 + 591_361 + 9_903_418,
        "encoder": 108_891_648,
        "decoder": 0,
        "pooler": 0,
        "heads": 591_361,
        "generator": 9_903_418,
    }
