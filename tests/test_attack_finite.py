"""What a model computes is finite, or refused with the model's name: in every command and every function."""

import pytest
import torch
from safetensors.torch import load_file, save_file
from small_run import WORDS, corpus_in, run_quietly, tiny_recipe
from small_task import examples_of, family_model, quiet

import maskery
from maskery.checkpoint.load import load
from maskery.cli.app import run
from maskery.errors import CheckpointError, InputError
from maskery.tasks.finetune import finetune
from maskery.vectors.encoder import Encoder

TEXT = " ".join(WORDS[:4])


def overflow(folder, words=("output.dense.weight", "mlp.c_proj.weight")):
    """Weights that are finite numbers, and whose products are not."""
    path = folder / "model.safetensors"
    tensors = load_file(path)
    chosen = [name for name in tensors if name.endswith(words)]
    assert chosen
    for name in chosen:
        tensors[name] = torch.randn(tensors[name].shape, generator=torch.Generator().manual_seed(0)) * 1e37
    save_file(tensors, path, metadata={"format": "pt"})
    (folder / "manifest.json").unlink(missing_ok=True)
    return folder


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    top = tmp_path_factory.mktemp("models")
    corpus = corpus_in(top / "text")
    for name, family in (("bert", "bert"), ("gpt", "gpt2")):
        settings = {"training__steps": 2, "training__save_every": 0}
        run_quietly(tiny_recipe(family, **settings), corpus, top / "runs" / name)
        load(top / "runs" / name).save(top / name)
        overflow(top / name)
    plain = top / "plain"
    family_model(plain, "bert")
    settings = {"epochs": 1, "training": {"save_every": 0}}
    finetune(plain, out=top / "task", train=examples_of("classify", 8), settings=settings, say=quiet)
    overflow(top / "task")
    (top / "texts.txt").write_text("the cat sat\nthe mat x\n")
    (top / "words.txt").write_text(TEXT + "\n")
    (top / "labelled.tsv").write_text("text\tlabel\nthe cat sat\todd\nthe mat x\teven\n")
    return top


COMMANDS = {
    "fill": ["fill", "{bert}", f"{TEXT} [MASK]"],
    "explain": ["explain", "{bert}", TEXT],
    "explain page": ["explain", "{bert}", TEXT, "--html", "{top}/explain.html"],
    "score masked": ["score", "{bert}", "{top}/words.txt"],
    "score": ["score", "{gpt}", "{top}/words.txt"],
    "generate": ["generate", "{gpt}", TEXT, "--new", "3"],
    "generate gibbs": ["generate", "{bert}", "--how", "gibbs", "--new", "3"],
    "embed": ["embed", "{bert}", "{top}/texts.txt", "--out", "{top}/vectors.npy"],
    "predict": ["predict", "{task}", "{top}/texts.txt"],
    "evaluate": ["evaluate", "{task}", "--data", "{top}/labelled.tsv"],
}


@pytest.mark.parametrize("as_json", [False, True])
@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_refuses_what_is_not_finite(folders, name, as_json, capsys):
    places = {each: folders / each for each in ("bert", "gpt", "task")}
    command = [part.format(top=folders, **places) for part in COMMANDS[name]]
    code = run([*command, *(["--json"] if as_json and "html" not in command[-1] else [])])
    said = capsys.readouterr()
    assert (code, said.out) == (2, ""), said.err
    assert "finite" in said.err
    assert "repair: " in said.err
    assert "Traceback" not in said.err
    place = next(each for each in command if str(folders) in each)
    assert place in said.err


def test_the_functions_refuse_it_as_well(folders):
    model, writer = load(folders / "bert"), load(folders / "gpt")
    ids = torch.tensor([model.tokenizer.encode(TEXT)[0]])
    for use in (
        lambda: model(ids),
        lambda: model.logits(ids),
        lambda: model(ids, attentions=True),
        lambda: maskery.score(model, [TEXT]),
        lambda: maskery.generate(writer, [TEXT]),
    ):
        with pytest.raises(CheckpointError, match="not finite"):
            use()
    with pytest.raises(InputError, match="finite"):
        Encoder(folders / "bert", say=quiet).encode([TEXT])


def test_a_head_alone_that_overflows_is_found(tmp_path):
    model = family_model(tmp_path / "m", "gpt2")
    ids = torch.tensor([[5, 6, 7]])
    assert torch.isfinite(model.logits(ids)).all()
    with torch.no_grad():
        model.network.embeddings.tokens[9] = 3e38
    with pytest.raises(CheckpointError, match=r"m: .* not finite"):
        model.logits(ids)
    model.train()
    assert not torch.isfinite(model.logits(ids)).all()  # training names the step itself
