"""`maskery words` as a user gives it: right and wrong command lines."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from gensim.models import KeyedVectors
from tiny import build

from maskery.cli import main
from maskery.corpus.store import Corpus
from maskery.errors import InputError
from maskery.train.lock import locked
from maskery.words.vectors import WordVectors

SMALL = ["--width", "8", "--epochs", "2", "--min-count", "1"]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("words")
    build(folder)
    for method in ("cbow", "fasttext"):
        assert (
            main(["words", "train", str(folder / "corpus"), "--method", method, *SMALL, "--out", str(folder / method)])
            == 0
        )
    return folder


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def train(place, *more):
    return ["words", "train", str(place / "corpus"), *SMALL, *map(str, more)]


@pytest.mark.parametrize("method", ["cbow", "skipgram", "fasttext", "glove"])
def test_train_tells_its_numbers_and_writes_a_folder(place, tmp_path, capsys, method):
    assert main(train(place, "--method", method, "--out", tmp_path / "v", "--json")) == 0
    told = capsys.readouterr()
    facts = json.loads(told.out)
    assert facts["training"]["method"] == method
    assert (facts["width"], facts["words"]) == (8, len(WordVectors.load(tmp_path / "v")))
    assert f"{method}: width 8, window " in told.err
    assert f"{facts['words']} words, {facts['occurrences']:,} occurrences in" in told.err
    assert "maskery words neighbours" in told.err
    assert names(tmp_path / "v") == ["counts.bin", "manifest.json", "vectors.safetensors", "words.txt"]
    assert main(train(place, "--method", method, "--out", tmp_path / "v")) == 2
    assert "is already there" in capsys.readouterr().err


def test_the_same_command_gives_the_same_vectors(place, tmp_path, capsys):
    assert main(train(place, "--method", "cbow", "--out", tmp_path / "v")) == 0
    assert (tmp_path / "v/vectors.safetensors").read_bytes() == (place / "cbow/vectors.safetensors").read_bytes()
    assert main(train(place, "--method", "cbow", "--seed", 1, "--workers", 2, "--out", tmp_path / "w")) == 0
    assert "2 threads write into the same vectors" in capsys.readouterr().err


def test_neighbours_and_analogies_are_shown(place, capsys):
    assert main(["words", "neighbours", str(place / "cbow"), "cat", "dog", "--top", "2", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    wanted = WordVectors.load(place / "cbow").neighbours("dog", 2)
    assert list(found) == ["cat", "dog"]
    assert [(each["word"], each["cosine"]) for each in found["dog"]] == [(w, round(c, 6)) for w, c in wanted]
    assert main(["words", "neighbours", str(place / "cbow"), "dog", "--top", "2"]) == 0
    assert capsys.readouterr().out == "".join(f"{cosine:6.3f}  {word}\n" for word, cosine in wanted)
    assert main(["words", "analogy", str(place / "cbow"), "cat", "dog", "bird", "--top", "1"]) == 0
    assert capsys.readouterr().out.split()[1] == WordVectors.load(place / "cbow").analogy("cat", "dog", "bird", 1)[0][0]
    assert main(["words", "neighbours", str(place / "fasttext"), "houses"]) == 0
    assert "not seen in training, made of their n-grams: houses" in capsys.readouterr().err


def test_files_are_exported_and_read(place, tmp_path, capsys):
    for form, more in (("text", []), ("binary", ["--binary"])):
        file = str(tmp_path / form)
        assert main(["words", "export", str(place / "fasttext"), "--out", file, *more]) == 0
        told = capsys.readouterr()
        assert f"8 numbers each, {form}" in told.out
        assert "n-grams for other words stay behind" in told.err
        theirs = KeyedVectors.load_word2vec_format(file, binary=form == "binary")
        assert (theirs["dog"] == WordVectors.load(place / "fasttext").vector("dog")).all()
        assert main(["words", "neighbours", file, "dog", "--json"]) == 0
        capsys.readouterr()
        assert main(["words", "export", str(place / "cbow"), "--out", file]) == 2
        capsys.readouterr()


def test_evaluate_prints_both_kinds(place, tmp_path, capsys):
    (tmp_path / "pairs.txt").write_text("cat\tdog\t7\ncat\thouse\t2\ndog\tbird\t6\ncat\tking\t1\n", encoding="utf-8")
    (tmp_path / "ask.txt").write_text(": animals\ncat dog bird house\n: verbs\nsees takes cat king\n", encoding="utf-8")
    files = [str(tmp_path / "pairs.txt"), str(tmp_path / "ask.txt")]
    assert main(["words", "evaluate", str(place / "cbow"), *files]) == 0
    shown = capsys.readouterr().out
    assert "pairs.txt: Spearman " in shown
    assert "3 of 4 pairs (75.0 %)" in shown
    assert [line.split()[0] for line in shown.splitlines()[2:]] == ["section", "animals", "verbs", "all"]
    assert main(["words", "evaluate", str(place / "cbow"), *files, "--json"]) == 0
    pairs, ask = json.loads(capsys.readouterr().out)
    assert (pairs["kind"], pairs["known"], pairs["coverage"]) == ("similarity", 3, 0.75)
    assert [each["known"] for each in ask["sections"]] == [1, 0, 1]
    assert ask["sections"][1]["accuracy"] is None


@pytest.mark.parametrize(
    ("arguments", "cause", "repair"),
    [
        (["neighbours", "{}/cbow", "dogg"], "no vector of 'dogg'", "did you mean dog?"),
        (["neighbours", "{}/nowhere", "dog"], "no such folder or file", "maskery words train"),
        (["neighbours", "{}/corpus", "dog"], "these are no word vectors", "maskery words train"),
        (["evaluate", "{}/cbow", "{}/text.txt"], "text.txt:1: two words and a score", "two words and a score a line"),
        (["evaluate", "{}/cbow", "{}/nothing.txt"], "no such file", "UTF-8"),
        (["train", "{}/corpus", "--out", "{}/new", "--method", "word2vec"], "unknown method", "cbow, fasttext, glove"),
        (["train", "{}/corpus", "--out", "{}/new", "--width", "0"], "--width 0", "default"),
        (["train", "{}/corpus", "--out", "{}/new", "--min-count", "99999"], "no word stands 99999", "--min-count"),
        (["train", "{}/corpus", "--out", "{}/new", "--resume"], "no epoch to go on from", "leave out --resume"),
        (["train", "{}/text.txt", "--out", "{}/new"], "text.txt", "maskery corpus build"),
        (["train", "{}/corpus", "--out", "{}/text.txt"], "is a file", "another --out"),
        (["export", "{}/cbow", "--out", "{}/text.txt"], "already there", "another --out"),
    ],
)  # fmt: skip
def test_wrong_command_lines_are_told(place, capsys, arguments, cause, repair):
    before = names(place)
    assert main(["words", *(each.format(place) for each in arguments)]) == 2
    told = capsys.readouterr().err
    assert cause in told
    assert repair in told.partition("repair: ")[2]
    assert names(place) == before


def test_a_corpus_without_words_is_refused(place, tmp_path, capsys):
    Corpus.build(place / "text.txt", tmp_path / "bare", vocab=200, words="none", workers=0)
    assert main(["words", "train", str(tmp_path / "bare"), "--out", str(tmp_path / "v")]) == 2
    assert "--words none" in capsys.readouterr().err
    assert not (tmp_path / "v").exists()


def test_a_folder_is_trained_by_one_process_at_a_time(place, tmp_path, capsys):
    with locked(tmp_path / "v"):
        assert main(train(place, "--out", tmp_path / "v")) == 2
    assert f"is being trained by process {os.getpid()}" in capsys.readouterr().err
    assert not (tmp_path / "v").exists()


def test_ctrl_c_keeps_the_epochs_and_resume_goes_on(place, tmp_path, capsys):
    """One signal, after the first epoch was kept; what comes out is what a training without it gives."""
    command = [*train(place)[:3], "--width", "8", "--min-count", "1", "--epochs", "80", "--out"]
    out = tmp_path / "v"
    run = subprocess.Popen([sys.executable, "-m", "maskery", *command, str(out)], stderr=subprocess.PIPE, text=True)
    while not (out / "state" / "state.json").exists() and run.poll() is None:
        time.sleep(0.01)
    run.send_signal(signal.SIGINT)
    told = run.communicate()[1]
    assert run.returncode == 130, told
    assert "repair: give the same command with --resume" in told
    assert main(["words", "neighbours", str(out), "cat"]) == 2
    assert "has not ended" in capsys.readouterr().err
    assert main([*command, str(out), "--resume"]) == 0
    assert "goes on behind epoch" in capsys.readouterr().err
    assert main([*command, str(tmp_path / "whole")]) == 0
    assert (out / "vectors.safetensors").read_bytes() == (tmp_path / "whole/vectors.safetensors").read_bytes()


def test_export_as_json_and_into_no_folder(place, tmp_path, capsys):
    vectors = WordVectors.load(place / "cbow")
    assert main(["words", "export", str(place / "cbow"), "--out", str(tmp_path / "v.txt"), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts == {"path": str(tmp_path / "v.txt"), "words": len(vectors), "width": 8, "form": "text"}
    for verb in (["export"], ["similar", "--corpus", str(place / "corpus")]):
        command = ["words", verb[0], str(place / "cbow"), *verb[1:], "--out", str(tmp_path / "no" / "v.txt")]
        assert main(command) == 2
        assert f"mkdir -p {tmp_path / 'no'}" in capsys.readouterr().err
    assert main(["words", "export", str(place / "cbow"), "--out", str(tmp_path / "v.txt")]) == 2
    assert f"rm {tmp_path / 'v.txt'}" in capsys.readouterr().err


def test_every_section_says_its_coverage(place, tmp_path, capsys):
    words = WordVectors.load(place / "cbow").words
    lines = [": known", " ".join(words[:4]), ": half", " ".join(words[:4]), "no such words here"]
    (tmp_path / "questions.txt").write_text("\n".join(lines), encoding="utf-8")
    assert main(["words", "evaluate", str(place / "cbow"), str(tmp_path / "questions.txt"), "--json"]) == 0
    sections = json.loads(capsys.readouterr().out)[0]["sections"]
    assert [each["coverage"] for each in sections] == [1, 0.5, pytest.approx(2 / 3)]


def test_a_text_is_no_file_of_vectors(place, tmp_path, capsys):
    (tmp_path / "text.txt").write_text("The assert statement\nis short\n", encoding="utf-8")
    assert main(["words", "neighbours", str(tmp_path / "text.txt"), "The"]) == 2
    told = capsys.readouterr().err
    assert "text.txt:1: a word and its numbers were expected: these are no word vectors" in told
    assert "maskery words train" in told


def test_of_words_spelt_as_near_the_commonest_is_proposed():
    words = ["中国", "其中", "集中", "高中"]
    vectors = WordVectors(words, [4, 3, 2, 1], [[1.0], [1.0], [1.0], [1.0]])
    with pytest.raises(InputError) as caught:
        vectors.neighbours("中囯")
    assert caught.value.repair.startswith("did you mean 中国 or 其中 or 集中?")


def test_the_word_proposed_is_worth_asking_for():
    from maskery.cli.words import _telling

    assert _telling(["，", "的", "the", "of", "2019", "中国", "大学"]) == "中国"
    assert _telling(["，", "的"]) == "，"
