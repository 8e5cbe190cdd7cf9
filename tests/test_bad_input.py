"""Bad input through the command line: exit 2, cause and place and repair on stderr, nothing half-written."""

import gzip
import json
import os
import pickle
import shutil

import pytest
import torch
from small_run import TINY_FLAGS, corpus_in, text_of

from maskery.cli import main
from maskery.corpus.store import Corpus
from maskery.recipes.recipe import names


@pytest.fixture(scope="module")
def ground(tmp_path_factory):
    """A text, its corpus and a finished run on it."""
    folder = tmp_path_factory.mktemp("ground")
    corpus = corpus_in(folder)
    command = ["pretrain", "bert", "--corpus", str(corpus.path), "--out", str(folder / "run"), *TINY_FLAGS]
    assert main([*command, "--steps", "4", "--save-every", "2"]) == 0
    return folder


@pytest.fixture
def place(ground, tmp_path, monkeypatch):
    """A copy that a test may damage, as the current folder."""
    shutil.copytree(ground, tmp_path / "here")
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path / "here"


def contents(folder):
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


@pytest.fixture
def refused(place, capsys):
    """Run a command that must be refused; gives what it said."""

    def run(*arguments):
        before = contents(place)
        capsys.readouterr()
        code = main([str(each) for each in arguments])
        out, err = capsys.readouterr()
        assert code == 2, err
        assert out == ""
        assert "repair: " in err
        assert "Traceback" not in err
        assert contents(place) == before, "nothing is written, nothing is lost"
        return err

    return run


def build(*files, more=()):
    return ["corpus", "build", *files, "--out", "new", *more]


def train(*more, recipe="bert", corpus="corpus", out="new", flags=(*TINY_FLAGS, "--steps", "4")):
    return ["pretrain", recipe, "--corpus", corpus, "--out", out, *flags, *more]


def without(key):
    """The usual settings but one."""
    pairs = zip(TINY_FLAGS[::2], TINY_FLAGS[1::2], strict=True)
    return [part for pair in pairs if not pair[1].startswith(f"{key}=") for part in pair]


def flip(path, at=None):
    data = bytearray(path.read_bytes())
    data[len(data) // 2 if at is None else at] ^= 0x40
    path.write_bytes(data)


# -- text files


def test_missing(refused):
    err = refused(*build("text.txt", "nowhere.txt"))
    assert "nowhere.txt: no such file" in err


def test_empty(refused, place):
    (place / "empty.txt").touch()
    assert "empty.txt: the file is empty" in refused(*build("text.txt", "empty.txt"))
    (place / "blank.txt").write_text("\n \n\t\n")
    assert "blank.txt: there is no text in the file" in refused(*build("text.txt", "blank.txt"))


def test_a_folder_in_place_of_a_file(refused, place):
    assert "corpus: is the folder of a corpus or a model" in refused(*build("corpus"))


def test_binary(refused, place):
    (place / "picture.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 40)
    err = refused(*build("text.txt", "picture.png"))
    assert "picture.png:3: a zero byte: this is no text file" in err, "two line feeds come before it"
    (place / "zeros.txt").write_bytes(b"one\ntwo\nthr\0ee\n")
    err = refused(*build("zeros.txt"))
    assert "zeros.txt:3: a zero byte: this is no text file" in err


def test_a_damaged_archive(refused, place):
    data = gzip.compress(text_of(300).encode())
    (place / "cut.txt.gz").write_bytes(data[:-900])
    assert "cut.txt.gz:" in (err := refused(*build("cut.txt.gz")))
    assert "the archive ends in its middle" in err
    (place / "plain.txt.gz").write_text("not an archive")
    assert "plain.txt.gz:1: the archive is damaged" in refused(*build("plain.txt.gz"))


def test_invalid_utf8(refused, place, capsys):
    good = text_of(20)
    lines = good.splitlines()
    lines[6] = "caf\udce9 ol\udce9."
    (place / "latin.txt").write_bytes("\n".join(lines).encode("utf-8", "surrogateescape"))
    err = refused(*build("latin.txt"))
    assert "latin.txt:7: byte" in err
    assert "(0xe9) is not UTF-8" in err
    assert "--errors replace" in err
    assert main(build("latin.txt", more=["--errors", "replace", "--json"])) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["counts"]["replaced"] == 2
    assert "2 places that are no UTF-8 were replaced" in captured.err


def test_unknown_choices_of_corpus_build(refused):
    assert "did you mean replace" in refused(*build("text.txt", more=["--errors", "repalce"]))
    assert "wordpiece" in refused(*build("text.txt", more=["--kind", "wordpeice"]))
    assert "did you mean auto" in refused(*build("text.txt", more=["--words", "atuo"]))
    assert "tokenizer" in refused(*build("text.txt", more=["--tokenizer", "nowhere"]))
    assert "corpus: is already there" in refused("corpus", "build", "text.txt", "--out", "corpus")


# -- corpora


def test_no_corpus(refused, place):
    assert "nowhere: no such folder" in refused(*train(corpus="nowhere"))
    assert "maskery corpus build" in refused(*train(corpus="run/checkpoints"))
    assert "this is no corpus" in refused(*train(corpus="run"))


@pytest.mark.parametrize("name", ["tokens.bin", "sentences.bin", "tokenizer.json"])
def test_a_truncated_store(refused, place, name):
    path = place / "corpus" / name
    size = path.stat().st_size
    os.truncate(path, size - 4)
    for command in (train(), ["inspect", "bert", "--corpus", "corpus", *TINY_FLAGS]):
        err = refused(*command)
        assert f"corpus: {name} has {size - 4} bytes, the manifest says {size}" in err
        assert "maskery corpus build" in err


@pytest.mark.parametrize("name", ["tokens.bin", "flags.bin", "heldout.bin", "tokenizer.json"])
def test_a_flipped_byte_in_a_store(refused, place, name):
    flip(place / "corpus" / name)
    wanted = f"corpus: {name} does not match its checksum"
    assert wanted in refused(*train())
    measured = train("--budget", "5s", flags=without("training.steps"))
    assert wanted in refused(*measured), "before anything is measured on it"
    assert wanted in refused(*train("--resume", out="run"))


@pytest.mark.parametrize("place_of_byte", [0.2, 0.5, 0.8, 0.97])
def test_a_flipped_byte_in_the_manifest(refused, place, place_of_byte):
    """Whatever it hits, a number, a name or the checksum itself: never a traceback, never silence."""
    manifest = place / "corpus/manifest.json"
    text = manifest.read_text()
    at = next(i for i in range(int(place_of_byte * len(text)), len(text)) if text[i].isalnum())
    manifest.write_text(text[:at] + ("1" if text[at] != "1" else "2") + text[at + 1 :])
    assert "corpus: " in refused(*train())


def test_a_flipped_byte_in_offsets_is_seen_when_opening(refused, place):
    flip(place / "corpus/sentences.bin", 1)
    assert "corpus: sentences.bin and tokens.bin do not agree" in refused(*train())


def test_a_corpus_built_with_another_tokenizer(refused, place):
    assert main(["corpus", "build", "text.txt", "--out", "other", "--vocab", "240"]) == 0
    err = refused(*train("--from", "run", corpus="other"))
    assert "run: the corpus was built with another tokenizer than the model's" in err
    assert "maskery corpus build FILES --tokenizer" in err


def test_too_little_text_for_pairs(refused, place):
    (place / "one.txt").write_text("\n".join(text_of(3).replace("\n\n", "\n").splitlines()))
    assert main(["corpus", "build", "one.txt", "--out", "one", "--tokenizer", "corpus", "--heldout", "0"]) == 0
    err = refused(*train(corpus="one"))
    assert "the train part of the corpus is one document" in err
    assert "blank line between documents" in err


# -- recipes


def test_unknown_names(refused, place):
    assert "did you mean bert or " in (err := refused(*train(recipe="brert")))
    assert f"choices: {', '.join(names())}" in err
    err = refused(*train("--set", "corruption.raet=0.2"))
    assert "corruption.raet" in err
    assert "did you mean corruption.rate" in err
    assert "keys here:" in err
    assert "did you mean masked_token" in refused(*train("--set", "objectives.maskd_token.weight=1"))
    assert "did you mean small" in refused(*train("--size", "smal"))
    assert "KEY=VALUE" in refused(*train("--set", "model.layers"))
    assert "nowhere.toml: cannot be read" in refused(*train(recipe="nowhere.toml"))


def test_errors_in_a_recipe_file_name_the_line(refused, place):
    (place / "mine.toml").write_text('extends = "bert"\nname = "mine"\n[training]\nlr = 1e-4\nclipp = 1.0\n')
    err = refused("pretrain", "mine.toml", "--corpus", "corpus", "--out", "new", "--steps", "2")
    assert "mine.toml:5" in err
    assert "did you mean training.clip" in err or "did you mean clip" in err
    (place / "mine.toml").write_text('extends = "bert"\n[model]\nlayers = "four"\n')
    assert "mine.toml:3" in refused("pretrain", "mine.toml", "--corpus", "corpus", "--out", "new")
    (place / "mine.toml").write_text('extends = "bert"\n[model\n')
    assert "mine.toml:2: not valid TOML" in refused("pretrain", "mine.toml", "--corpus", "corpus", "--out", "new")


def test_a_recipe_whose_parts_contradict_each_other(refused):
    err = refused(*train("--set", "rows.pair=none"))
    assert 'objectives.next_sentence: needs rows.pair = "next", which is "none"' in err
    err = refused(*train("--set", "rows.pair=none", "--set", "corruption.rate=0.0"))
    assert "refused for 2 reasons" in err
    assert err.count("repair: ") == 2
    assert "learned positions end at model.max_length = 32" in refused(*train("--length", "64"))
    assert "heads" in refused(*train("--set", "model.heads=3", flags=without("model.heads")))


def test_a_recipe_that_leaks_its_answers(refused, place):
    (place / "leak.toml").write_text(
        'extends = "roberta"\nname = "leak"\n[corruption]\nrate = 0.0\n[objectives.next_token]\nweight = 1.0\n'
    )
    err = refused(*train(recipe="leak.toml"))
    assert (
        "recipe leak: objectives.next_token: a position sees the token that it is asked for "
        'when visibility.kind = "full"' in err
    )
    assert 'visibility.kind = "causal"' in err
    (place / "leak.toml").write_text((place / "leak.toml").read_text() + '[visibility]\nkind = "causal"\n')
    assert main(train(recipe="leak.toml")) == 0


def test_ways_to_say_how_long(refused):
    err = refused(*train("--tokens", "100"))
    assert "--steps and --tokens each say how long to train" in err
    assert "--budget" in refused("pretrain", "bert", "--corpus", "corpus", "--out", "new", "--budget", "soon")
    assert "--tokens 0" in refused("pretrain", "bert", "--corpus", "corpus", "--out", "new", "--tokens", "0")
    assert "training.steps" in refused("pretrain", "bert", "--corpus", "corpus", "--out", "new", "--steps", "0")


# -- runs and models


def test_an_existing_run(refused):
    err = refused(*train(out="run"))
    assert "run: is already there" in err
    assert "--resume" in err
    assert "text.txt: is a file, not a folder" in refused(*train("--resume", out="text.txt/run"))


def test_a_flipped_byte_in_a_checkpoint(refused, place, ground):
    unfinish(place / "run")
    flip(place / "run/checkpoints/step-4/model.safetensors")
    err = refused(*train("--save-every", "2", "--resume", out="run"))
    assert "run/checkpoints/step-4: model.safetensors does not match its checksum" in err
    assert "rm -r run/checkpoints/step-4, then go on from step-2 with --resume" in err


def unfinish(run):
    state = json.loads((run / "state.json").read_text())
    (run / "state.json").write_text(json.dumps(state | {"finished": False}))


def test_a_state_that_is_no_json(refused, place):
    (place / "run/state.json").write_text('{"step": ')
    err = refused(*train("--resume", out="run"))
    assert "run/state.json:1: is not JSON" in err


def test_a_flipped_byte_in_a_model(refused, place):
    flip(place / "run/model.safetensors")
    for command in (["fill", "run", "[MASK]"], ["info", "run"], train("--from", "run")):
        assert "run: model.safetensors does not match its checksum" in refused(*command)


def bare(place):
    """A model folder as it is fetched: without our manifest."""
    for name in ("manifest.json", "recipe.toml", "state.json", "metrics.jsonl"):
        (place / "run" / name).unlink()
    shutil.rmtree(place / "run/checkpoints")
    return place / "run"


def test_a_config_that_names_code(refused, place):
    model = bare(place)
    config = json.loads((model / "config.json").read_text())
    (model / "modeling.py").write_text("raise SystemExit('this was run')")
    (model / "config.json").write_text(json.dumps(config | {"auto_map": {"AutoModel": "modeling.Model"}}))
    for command in (["fill", "run", "[MASK]"], ["info", "run"], train("--from", "run")):
        err = refused(*command)
        assert "run/config.json: auto_map names code to be run" in err
        assert "bert, roberta" in err


class Trap:
    """What would write a file when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize("write", [torch.save, lambda value, path: path.write_bytes(pickle.dumps(value))])
def test_a_pickle_that_would_run_code(refused, place, write):
    model = bare(place)
    (model / "model.safetensors").unlink()
    write({"bert.embeddings.word_embeddings.weight": Trap(place / "trapped")}, model / "pytorch_model.bin")
    for verb in (["fill", "run", "[MASK]"], ["info", "run"]):
        err = refused(*verb)
        assert "--allow-pickle" in err
        err = refused(*verb, "--allow-pickle")
        assert "run/pytorch_model.bin: holds something other than tensors" in err
        assert "weights_only" not in err
        assert "nothing in it was run" in err
    assert "--allow-pickle" in refused(*train("--from", "run"))
    assert not (place / "trapped").exists()
    with open(model / "pytorch_model.bin", "rb") as file:
        data = file.read()
    if write is not torch.save:
        pickle.loads(data)
        assert (place / "trapped").is_dir(), "the trap works where somebody steps into it"


def test_what_was_refused_works_when_repaired(place, capsys):
    """The commands of these tests are otherwise good."""
    assert main(build("text.txt", more=["--tokenizer", "corpus"])) == 0
    assert Corpus.open(place / "new").vocabulary == Corpus.open(place / "corpus").vocabulary
    assert main(train("--from", "run", corpus="new", out="again")) == 0
    assert "started from" in capsys.readouterr().err
