"""Plain folders that transformers itself has written: evaluated and asked, with its own answers beside ours."""

from __future__ import annotations

import json

import pytest
import torch
from networks import PIECES

from maskery.cli import main

transformers = pytest.importorskip("transformers")
TEXTS = ("the cat sat", "on the mat x", "y z cat", "mat mat")
SECOND = ("x y", "the mat", "z", "on")


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """cls: two classes that nobody named; score: one number; tag; qa."""
    place = tmp_path_factory.mktemp("theirs")
    (place / "vocab.txt").write_text("".join(f"{piece}\n" for piece in PIECES))
    tokenizer = transformers.BertTokenizerFast(str(place / "vocab.txt"))
    names = dict(enumerate(["O", "B-P", "I-P"]))
    wanted = {
        "cls": ("SequenceClassification", {"num_labels": 2}),
        "score": ("SequenceClassification", {"num_labels": 1}),
        "tag": ("TokenClassification", {"id2label": names, "label2id": {name: at for at, name in names.items()}}),
        "unnamed": ("TokenClassification", {"num_labels": 3}),
        "qa": ("QuestionAnswering", {}),
    }
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
    torch.manual_seed(0)
    for name, (kind, changes) in wanted.items():
        config = transformers.BertConfig(
            vocab_size=len(PIECES), max_position_embeddings=40, initializer_range=0.3, **sizes, **changes
        )
        getattr(transformers, f"BertFor{kind}")(config).save_pretrained(place / name)
        tokenizer.save_pretrained(place / name)
    return place


@pytest.fixture
def command(capsys):
    def call(*arguments):
        code = main([*map(str, arguments)])
        output = capsys.readouterr()
        return code, output.out, output.err

    return call


@torch.no_grad()
def theirs(folder, kind, *texts):
    made = getattr(transformers, f"AutoModelFor{kind}").from_pretrained(folder).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    return made(**tokenizer(*map(list, texts), return_tensors="pt", padding=True))


def table(path, *columns):
    path.write_text("".join("\t".join(row) + "\n" for row in zip(*columns, strict=True)))
    return path


@pytest.mark.parametrize("labels", [("LABEL_0", "LABEL_1"), ("0", "1")])
def test_classes_that_nobody_named(folders, command, tmp_path, labels):
    wanted = theirs(folders / "cls", "SequenceClassification", TEXTS).logits.softmax(-1)
    file = table(tmp_path / "dev.tsv", labels * 2, TEXTS)
    code, printed, told = command("predict", folders / "cls", file, "--json")
    found = [json.loads(line)["probabilities"] for line in printed.splitlines()]
    assert (code, [list(each) for each in found]) == (0, [["LABEL_0", "LABEL_1"]] * 4)
    assert [each["LABEL_1"] for each in found] == pytest.approx(wanted[:, 1].tolist(), abs=1e-5)
    code, printed, told = command("evaluate", folders / "cls", "--data", file, "--json")
    right = (wanted.argmax(-1) == torch.tensor([0, 1, 0, 1])).float().mean()
    assert (code, json.loads(printed)["accuracy"]) == (0, pytest.approx(float(right)))
    assert ("0 as LABEL_0, 1 as LABEL_1" in told) == (labels == ("0", "1"))


def test_a_model_of_pairs(folders, command, tmp_path):
    """No folder tells how many texts are read: the columns that were named do, or the task."""
    wanted = theirs(folders / "cls", "SequenceClassification", TEXTS, SECOND).logits.softmax(-1).max(-1)
    head = ("text_a", *TEXTS), ("text_b", *SECOND), ("label", *(f"LABEL_{at}" for at in wanted.indices.tolist()))
    file = table(tmp_path / "dev.tsv", *head)
    code, printed, told = command("predict", folders / "cls", file)
    assert (code, "--text text_a,text_b" in told) == (2, True)
    code, printed, _ = command("predict", folders / "cls", file, "--text", "text_a,text_b")
    found = [float(line.split("\t")[2]) for line in printed.splitlines()[1:]]
    assert (code, found) == (0, pytest.approx(wanted.values.tolist(), abs=1e-4))
    for way in (("--text", "text_a,text_b"), ("--task", "pair")):
        code, printed, told = command("evaluate", folders / "cls", "--data", file, *way, "--json")
        assert (code, json.loads(printed)["task"], json.loads(printed)["accuracy"]) == (0, "pair", 1.0), told


def test_a_score_of_two_texts(folders, command, tmp_path):
    wanted = theirs(folders / "score", "SequenceClassification", TEXTS, SECOND).logits[:, 0].tolist()
    columns = ("sentence1", *TEXTS), ("sentence2", *SECOND), ("score", *(f"{each:.6f}" for each in wanted))
    file = table(tmp_path / "dev.tsv", *columns)
    code, printed, told = command(
        "evaluate", folders / "score", "--data", file, "--text", "sentence1,sentence2", "--json"
    )
    assert (code, json.loads(printed)["mse"]) == (0, pytest.approx(0, abs=1e-8)), told


def test_tags_and_answers(folders, command, tmp_path):
    scores = theirs(folders / "tag", "TokenClassification", [TEXTS[0]]).logits[0, 1:-1].argmax(-1).tolist()
    (tmp_path / "dev.conll").write_text("the O\ncat B-P\nsat I-P\n")
    code, printed, told = command("predict", folders / "tag", tmp_path / "dev.conll", "--json")
    found = {at for span in json.loads(printed)["answer"] for at in range(span["start"], span["stop"])}
    starts = [0, 4, 8]
    assert (code, [start in found for start in starts]) == (0, [each > 0 for each in scores]), told
    assert command("evaluate", folders / "tag", "--data", tmp_path / "dev.conll")[0] == 0
    code, _, told = command("evaluate", folders / "unnamed", "--data", tmp_path / "dev.conll")
    assert (code, "unnamed/config.json: the tags LABEL_0" in told, "id2label" in told) == (2, True, True)
    asked = {"id": "1", "question": "on", "answers": [{"text": "cat", "answer_start": 4}]}
    squad = {"data": [{"paragraphs": [{"context": "the cat sat", "qas": [asked]}]}]}
    (tmp_path / "dev.json").write_text(json.dumps(squad))
    code, printed, told = command("predict", folders / "qa", tmp_path / "dev.json", "--json")
    ours = json.loads(printed)["answer"]
    found = theirs(folders / "qa", "QuestionAnswering", ["on"], ["the cat sat"])
    first, last = (found[name][0, 3:6] for name in ("start_logits", "end_logits"))
    sums = {(a, b): float(first[a] + last[b]) for a in range(3) for b in range(a, 3)}
    begin, end = max(sums, key=sums.get)
    assert (code, ours) == (0, " ".join(["the", "cat", "sat"][begin : end + 1])), told
    assert command("evaluate", folders / "qa", "--data", tmp_path / "dev.json")[0] == 0
