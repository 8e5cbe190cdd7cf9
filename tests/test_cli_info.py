"""`maskery info`: known counts from recipes, everything about a folder, and clear refusals."""

from __future__ import annotations

import json

import pytest
from networks import model_of
from oracle import make

from maskery.cli import main
from maskery.cli.output import WIDTH_WITHOUT_TERMINAL


def facts(capsys, *arguments):
    assert main(["info", *map(str, arguments), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def refused(capsys, *arguments):
    assert main(["info", *map(str, arguments)]) == 2
    output = capsys.readouterr()
    assert output.out == ""
    return output.err


@pytest.mark.parametrize(
    ("arguments", "encoder_and_pooler", "total"),
    [
        (["bert"], 109_482_240, 110_106_428),
        (["bert", "--size", "large"], 335_141_888, 336_226_108),
        (["bert", "--vocab", "21128"], 102_267_648, None),
        (["bert", "--size", "tiny"], 4_385_920, None),
        (["bert", "--size", "mini"], 11_170_560, None),
        (["bert", "--size", "small"], 28_763_648, None),
        (["bert", "--size", "medium"], 41_373_184, None),
    ],
)
def test_recipes_have_the_published_counts(capsys, arguments, encoder_and_pooler, total):
    found = facts(capsys, *arguments)
    parameters = found["parameters"]
    assert parameters["encoder"] + parameters["pooler"] == encoder_and_pooler
    assert total is None or parameters["total"] == total
    assert parameters["generator"] == 0
    assert found["family"] == "bert"


def test_factorised_embedding_is_shown_on_a_line_of_its_own(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(WIDTH_WITHOUT_TERMINAL))
    arguments = ["bert", "--vocab", "30000", "--set", "model.embedding=128"]
    found = facts(capsys, *arguments)
    assert found["embedding"]["total"] == 3_938_304
    assert found["family"] == "maskery"
    assert "embedding 128" in found["notes"][0]
    assert main(["info", *arguments]) == 0
    lines = capsys.readouterr().out.splitlines()
    line = next(each for each in lines if each.startswith("word embedding"))
    assert "3,938,304" in line
    assert "19,101,696" in line
    assert max(map(len, lines)) <= WIDTH_WITHOUT_TERMINAL


def test_a_folder(capsys, tmp_path):
    model = model_of("masked_token", "next_sentence", pooler=True)
    model.save(tmp_path / "m")
    found = facts(capsys, tmp_path / "m")
    assert found["family"] == "bert"
    assert found["heads"] == ["masked_token", "next_sentence"]
    assert found["parameters"] == model.parameters_by_part()
    assert found["shape"] == model.config.plain()
    assert found["tokenizer"]["vocabulary"] == model.tokenizer.vocabulary
    assert (found["missing"], found["unused"], found["notes"]) == ([], [], [])
    assert main(["info", str(tmp_path / "m")]) == 0
    assert f"{found['parameters']['total']:,}" in capsys.readouterr().out


def test_leftovers_are_shown(capsys, tmp_path):
    make("BertForQuestionAnswering").save_pretrained(tmp_path)
    assert facts(capsys, tmp_path)["unused"] == ["qa_outputs.bias", "qa_outputs.weight"]
    assert main(["info", str(tmp_path)]) == 0
    assert "unused tensors         2: qa_outputs.bias, qa_outputs.weight" in capsys.readouterr().out


def test_an_unfinished_run_says_which_checkpoint(capsys, tmp_path):
    (tmp_path / "checkpoints").mkdir()
    model_of("masked_token").save(tmp_path / "checkpoints/step-7")
    assert "step-7" in facts(capsys, tmp_path)["notes"][0]


def test_refusals(capsys, tmp_path):
    assert "did you mean bert" in refused(capsys, "bertt")
    assert "no such folder" in refused(capsys, tmp_path / "nowhere")
    assert "leave out --size" in refused(capsys, tmp_path, "--size", "tiny")
    assert "--vocab" in refused(capsys, "bert", "--vocab", "0")
    assert "no config.json" in refused(capsys, tmp_path)
