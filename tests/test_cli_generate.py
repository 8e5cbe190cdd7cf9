"""`maskery generate`: what is printed, how it streams, what is left after Ctrl-C, what is refused."""

from __future__ import annotations

import io
import json

import pytest
from networks import model_of
from writers import writer

import maskery
from maskery.cli import generate as verb
from maskery.cli import main


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("generate")
    writer("gpt").save(folder / "gpt")
    writer("unilm").save(folder / "unilm")
    model_of("masked_token").save(folder / "bert")
    (folder / "prompts.txt").write_text("the cat\n\n我去了\n", encoding="utf-8")
    return folder


def run(capsys, *arguments):
    code = main(["generate", *map(str, arguments)])
    output = capsys.readouterr()
    return code, output.out, output.err


def texts(model, *prompts, **settings):
    return [each.text for each in maskery.generate(model, prompts, **settings)]


def test_one_text_streams_to_the_same_as_all_at_once(place, capsys):
    (text,) = texts(writer("gpt"), "我去了", new=6)
    for option in ("--stream", "--no-stream"):
        assert run(capsys, place / "gpt", "我去了", "--new", 6, option) == (0, f"我去了{text}\n", "")


def test_a_source_is_not_printed_again(place, capsys):
    (text,) = texts(writer("unilm"), "the cat", new=4)
    assert run(capsys, place / "unilm", "the cat", "--new", 4)[1] == f"{text}\n"
    (text,) = texts(writer("unilm"), "the cat", new=4, role="beginning")
    assert run(capsys, place / "unilm", "the cat", "--new", 4, "--role", "beginning")[1] == f"the cat{text}\n"


@pytest.mark.parametrize("way", ["file", "stdin"])
def test_prompts_from_a_file(place, capsys, monkeypatch, way):
    monkeypatch.setattr("sys.stdin", io.StringIO((place / "prompts.txt").read_text("utf-8")))
    source = ["--file", place / "prompts.txt"] if way == "file" else []
    code, out, err = run(capsys, place / "gpt", *source, "--beams", 2, "--new", 3, "--batch", 1)
    first, second = texts(writer("gpt"), "the cat", "我去了", new=3, beams=2)
    assert (code, out) == (0, f"the cat{first}\n我去了{second}\n")
    assert "1 empty line left out" in err
    assert "--how beam" in err


def test_json_has_everything(place, capsys):
    code, out, _ = run(
        capsys, place / "gpt", "the cat", "--samples", 2, "--top-p", 0.9, "--seed", 7, "--new", 4, "--json"
    )
    expected = maskery.generate(writer("gpt"), "the cat", samples=2, top_p=0.9, seed=7, new=4)
    assert code == 0
    assert json.loads(out) == {"how": "sample", "seed": 7, "texts": [each.plain() for each in expected]}


def test_what_ended_a_text_and_what_is_unknown_is_told(place, capsys):
    code, _, err = run(capsys, place / "gpt", "the Ω", "--new", 99, "--least", 99)
    assert code == 0
    assert "1 token of the prompts is not in the vocabulary" in err
    assert "the model has 24 positions and no more" in err


def test_gibbs_needs_no_prompt(place, capsys):
    code, out, _ = run(capsys, place / "bert", "--how", "gibbs", "--length", 5, "--steps", 8)
    (text,) = texts(model_of("masked_token"), "", how="gibbs", new=5, steps=8)
    assert (code, out) == (0, f"{text}\n")


@pytest.mark.parametrize("options", [[], ["--no-stream"], ["--json"]], ids=["stream", "text", "json"])
def test_ctrl_c_leaves_what_was_written(place, capsys, monkeypatch, options):
    from maskery.writing import writer as writers

    steps = []
    step = writers.RowWriter.step

    def interrupted(self, tokens):
        steps.append(tokens)
        if len(steps) == 3:
            raise KeyboardInterrupt
        return step(self, tokens)

    monkeypatch.setattr(writers.RowWriter, "step", interrupted)
    code, out, err = run(capsys, place / "gpt", "the cat", "--new", 9, *options)
    monkeypatch.undo()
    (text,) = texts(writer("gpt"), "the cat", new=3)
    assert (code, "interrupted: this is what was written" in err) == (130, True)
    if "--json" in options:
        (found,) = json.loads(out)["texts"]
        assert (found["text"], found["ended"]) == (text, "open")
    else:
        assert out == f"the cat{text}\n"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["bert", "the cat"], "--how gibbs --length 20"),
        (["gpt", ""], "is empty"),
        (["gpt", "a " * 30], "30 tokens"),
        (["gpt", "a", "--how", "best"], "beam, gibbs, greedy, sample"),
        (["gpt", "a", "--top-k", "3", "--beams", "2"], "beams is for the way beam"),
        (["gpt", "a", "b", "--stream"], "leave --stream out"),
        (["gpt", "a", "--file", "prompts.txt"], "keep one"),
        (["gpt", "--file", "nowhere.txt"], "no such file"),
        (["gpt", "a", "--batch", "0"], "batch 1 or more"),
        (["gpt", "a", "--length", "9"], "--new 9"),
        (["bert", "a", "--how", "gibbs", "--length", "9", "--new", "9"], "keep one"),
        (["bert", "a", "--how", "gibbs", "--length", "40"], "at most 21 new tokens"),
    ],
    ids=lambda value: " ".join(value)[:24] if isinstance(value, list) else None,
)
def test_refusals_have_a_repair_and_print_nothing(place, capsys, arguments, words):
    model, *rest = arguments
    code, out, err = run(capsys, place / model, *rest)
    assert (code, out) == (2, "")
    assert words in err
    assert "repair:" in err


def test_no_prompt_at_a_terminal_is_told_how(place, capsys, monkeypatch):
    monkeypatch.setattr(verb.sys, "stdin", type("Terminal", (), {"isatty": lambda self: True})())
    code, _, err = run(capsys, place / "gpt")
    assert code == 2
    assert "Once upon a time" in err
