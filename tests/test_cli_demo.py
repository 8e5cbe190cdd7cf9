"""`maskery demo`: the whole way in a few seconds, in English, in Chinese and on a user's text; and what is refused."""

import json
import re
import signal

import pytest
import torch
from processes import Command

import maskery
from maskery.cli import main
from maskery.cli.demo import steps, text, training


@pytest.fixture(scope="module")
def some_text():
    """The first documents; the whole text takes seconds."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text, "_ENOUGH", 200_000)
        return text.python_documents()


def test_the_text_is_large_and_always_the_same(some_text):
    whole_text = text.python_documents()
    assert whole_text[: len(some_text)] == some_text
    assert 1_000_000 < sum(map(len, whole_text)) < 3_000_000
    assert len(whole_text) > 100
    assert not any("\n\n" in document or not document.strip() for document in whole_text)
    lines = [line for document in whole_text for line in document.split("\n")]
    assert len(lines) == len(set(lines))


@pytest.fixture
def quick(some_text, monkeypatch):
    """Little text and a network of one layer."""
    monkeypatch.setattr(steps, "python_documents", lambda progress: some_text[:60])
    monkeypatch.setattr(training, "_VOCABULARY", (1200, 1200))
    for key, value in {"training.eval_rows": 16, "model.layers": 1, "model.width": 32}.items():
        monkeypatch.setitem(training.SETTINGS, key, value)


def run(capsys, *arguments):
    code = main(["demo", "--budget", "1s", *map(str, arguments)])
    return code, capsys.readouterr()


def test_the_whole_way(quick, tmp_path, capsys):
    out = tmp_path / "demo"
    code, printed = run(capsys, "--out", out)
    assert code == 0, printed.err
    for told in ("this model", "always the most frequent token", "unigram", "untrained", "parameters", "maskery.load"):
        assert told in printed.out
    assert printed.out.count("[MASK]") >= steps.BLANKS
    assert [line[0] for line in printed.err.splitlines() if re.match(r"\d\. ", line)] == list("1234567")
    page = (out / "report.html").read_text(encoding="utf-8")
    assert page.count("This model is tiny") == 4
    assert 'data-mk-view="curves"' in page
    assert 'data-mk-view="heads"' in page
    assert "src=" not in page
    code, printed = run(capsys, "--out", out)
    assert code == 2
    assert "already there" in printed.err
    assert "--resume" not in printed.err


def test_the_folder_loads_elsewhere(quick, tmp_path, capsys):
    transformers = pytest.importorskip("transformers")
    out = tmp_path / "demo"
    code, printed = run(capsys, "--out", out, "--json")
    assert code == 0, printed.err
    found = json.loads(printed.out)
    ours = maskery.load(found["run"])
    theirs = transformers.AutoModelForMaskedLM.from_pretrained(found["run"]).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(found["run"])
    text = found["blanks"][0]["text"]
    ids = torch.tensor([ours.tokenizer.encode(text)[0]])
    assert tokenizer(text)["input_ids"] == ids[0].tolist()
    with torch.inference_mode():
        torch.testing.assert_close(theirs(ids).logits, ours.logits(ids), atol=1e-5, rtol=1e-4)


def test_json(quick, tmp_path, capsys):
    code, printed = run(capsys, "--out", tmp_path / "demo", "--json", "--seed", 5)
    assert code == 0, printed.err
    found = json.loads(printed.out)
    assert found["scores"].keys() == {"trained", "most frequent token", "unigram", "untrained"}
    assert found["scores"]["unigram"]["loss"] < found["scores"]["untrained"]["loss"]
    assert found["scores"]["most frequent token"]["loss"] is None
    assert len(found["blanks"]) == steps.BLANKS
    for blank in found["blanks"]:
        assert blank["text"].count("[MASK]") == 1
        assert len(blank["guesses"]) == 3
        right = [number for number, guess in enumerate(blank["guesses"], 1) if guess["token"] == blank["truth"]]
        assert [blank["rank"]] == (right or [None])
    assert len(found["seconds"]) == 7
    assert found["run"] == str(tmp_path / "demo" / "run")


def test_chinese(quick, tmp_path, capsys):
    code, printed = run(capsys, "--lang", "zh", "--out", tmp_path / "demo")
    assert code == 0, printed.err
    assert "这个模型非常小" in printed.out
    assert "1. 文本" in printed.err
    page = (tmp_path / "demo" / "report.html").read_text(encoding="utf-8")
    assert '<html lang="zh">' in page
    assert "同一句话的几种掩码方式" in page


def test_own_text(quick, some_text, tmp_path, capsys):
    """A file of one long document, as a novel is."""
    path = tmp_path / "novel.txt"
    path.write_text("\n".join(line for document in some_text[:10] for line in document.split("\n")))
    code, printed = run(capsys, "--text", path, "--out", tmp_path / "demo")
    assert code == 0, printed.err
    assert f"from {path}" in printed.err
    assert "cut at line ends" in printed.err


def test_too_little_text_leaves_nothing_behind(quick, tmp_path, capsys):
    path = tmp_path / "little.txt"
    path.write_text("Only a few words.\n\nAnd a few more words.\n")
    code, printed = run(capsys, "--text", path, "--out", tmp_path / "demo")
    assert code == 2
    assert "too little text" in printed.err
    assert "20 kB" in printed.err
    assert not (tmp_path / "demo").exists()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--budget", "0s"], "no length of time"),
        (["--lang", "de"], "choices: en, zh"),
        (["--text", "missing.txt"], "missing.txt: no such file"),
        (["--budgt", "1m"], "Usage: maskery demo"),
        (["--seed", "-1"], "Usage: maskery demo"),
    ],
    ids=["time", "language", "file", "option", "seed"],
)
def test_bad_input(arguments, told, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["demo", *arguments]) == 2
    assert told in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_ctrl_c_in_training_leaves_nothing_behind(tmp_path):
    out = tmp_path / "demo"
    command = Command(["demo", "--lang", "zh", "--budget", "10m", "--out", str(out)], tmp_path / "said")
    assert command.wait_until((out / "run" / "metrics.jsonl").is_file)
    command.signal(signal.SIGINT)
    code, _, told = command.end()
    assert code == 130, told
    assert "is removed" in told
    assert not out.exists()
