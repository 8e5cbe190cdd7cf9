"""`maskery info`: known counts from recipes, everything about a folder, and clear refusals."""

from __future__ import annotations

import json

import pytest
import torch
from folders import change_weights
from networks import model_of
from oracle import make
from vector_models import PROMPTS, made_of, quiet

from maskery.cli import main
from maskery.cli.output import WIDTH_WITHOUT_TERMINAL
from maskery.vectors.encoder import Encoder
from maskery.vectors.steps import Normalize


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
    assert found["family"] == "electra"
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
    make("BertForMaskedLM").save_pretrained(tmp_path)
    change_weights(tmp_path, lambda tensors: tensors.update({"fit_dense.weight": torch.zeros(3, 24)}))
    assert facts(capsys, tmp_path)["unused"] == ["fit_dense.weight"]
    assert main(["info", str(tmp_path)]) == 0
    assert "unused tensors         1: fit_dense.weight" in capsys.readouterr().out


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


def lines_of(capsys, monkeypatch, *arguments):
    monkeypatch.setenv("COLUMNS", str(WIDTH_WITHOUT_TERMINAL))
    assert main(["info", *map(str, arguments)]) == 0
    lines = capsys.readouterr().out.splitlines()
    return {line[:23].rstrip(): line[23:].strip() for line in lines}


def test_parameters_by_part_are_printed(capsys, monkeypatch):
    bert = lines_of(capsys, monkeypatch, "bert")
    assert bert["  attention"] == "28,348,416  2,362,368 x 12 layers"
    assert bert["  tokens"] == "23,440,896"
    albert = lines_of(capsys, monkeypatch, "albert", "--vocab", "30000")
    assert albert["  feed-forward"] == "4,722,432  shared by 12 layers: once"
    assert albert["shared"] == "all weights, by 12 layers"
    assert albert["word embedding"] == (
        "30,000 x 128 + 128 x 768 = 3,938,304; undivided 23,040,000, difference 19,101,696"
    )
    groups = lines_of(capsys, monkeypatch, "albert", "--set", "model.groups=3", "--set", "model.share=attention")
    assert groups["  attention"] == "7,087,104  2,362,368 x 3, each shared by 4 layers"
    assert groups["shared"] == "the attention, by 4 layers in each of 3 groups"
    electra = lines_of(capsys, monkeypatch, "electra")
    assert electra["generator"].startswith(
        "12 layers, width 256, 4 heads, feed-forward 1024; embeddings are the model's"
    )
    assert electra["parameters, generator"] == "9,903,418"


def test_memory_and_the_rows_that_fit(capsys, monkeypatch):
    found = facts(capsys, "bert", "--batch", 8, "--length", 128, "--memory", "8G")
    memory = found["memory"]
    assert (memory["rows"], memory["length"], memory["available_bytes"]) == (8, 128, 8 << 30)
    assert memory["weights_bytes"] < memory["inference_peak_bytes"] < memory["training_bytes"]
    assert memory["training_bytes"] < memory["training_peak_bytes"] < 8 << 30
    assert 8 < memory["largest_training_rows"] < memory["largest_inference_rows"]
    assert found["operations"]["length"] == 128
    fewer = facts(capsys, "bert", "--length", 512, "--memory", "8 GiB")["memory"]
    assert fewer["largest_training_rows"] < memory["largest_training_rows"]
    assert "largest_training_rows" not in facts(capsys, "bert")["memory"]
    told = lines_of(capsys, monkeypatch, "bert", "--memory", "8g")["rows in 8.0 GiB"]
    assert (
        told
        == f"{fewer['largest_training_rows']} in training, {fewer['largest_inference_rows']} in inference, of 512 slots"
    )


def test_how_vectors_are_made(capsys, tmp_path, monkeypatch):
    Encoder(made_of("first", "mean", steps=[Normalize()], prompts=PROMPTS, similarity="dot"), say=quiet).save(
        tmp_path / "e"
    )
    told = facts(capsys, tmp_path / "e")["vectors"]
    assert (told["pool"], told["length"], told["similarity"]) == (["first", "mean"], 20, "dot")
    assert (told["dimensions"], told["steps"], told["prompts"]) == (32, ["Normalize"], PROMPTS)
    line = lines_of(capsys, monkeypatch, tmp_path / "e")["vectors"]
    assert line.startswith("first and mean of at most 20 slots, then Normalize; 32 dimensions, compared by dot")
    (tmp_path / "e" / "manifest.json").unlink()
    listed = tmp_path / "e" / "modules.json"
    listed.write_text(listed.read_text().replace("Normalize", "Magic"), encoding="utf-8")
    assert "has a step Magic" in facts(capsys, tmp_path / "e")["vectors"]["note"]
    model_of("masked_token").save(tmp_path / "m")
    assert "vectors" not in facts(capsys, tmp_path / "m")


def test_the_drawing(capsys, tmp_path):
    picture = tmp_path / "albert.svg"
    assert facts(capsys, "albert", "--draw", picture)["family"] == "albert"
    assert "× 12, shared" in picture.read_text(encoding="utf-8")
    model_of("masked_token").save(tmp_path / "m")
    assert facts(capsys, tmp_path / "m", "--draw", tmp_path / "m.html")["kind"] == "model"
    assert "attention" in (tmp_path / "m.html").read_text(encoding="utf-8")


def test_a_generator_is_told(capsys):
    made = facts(capsys, "electra", "--size", "tiny")
    assert made["parameters"]["generator"] == sum(part["parameters"] for part in made["generator"]["parts"])
    assert made["generator"]["heads"] == ["masked_token"]
    assert made["heads"] == ["replaced_token"]


def test_a_recipe_that_contradicts_itself_is_described_with_a_note(capsys):
    found = facts(capsys, "electra", "--set", "objectives.replaced_token=false")
    assert any("pretrain refuses it: model.generator" in note for note in found["notes"])


def test_wrong_sizes_and_places(capsys, tmp_path):
    assert "is no amount of memory" in refused(capsys, "bert", "--memory", "much")
    assert "is no amount of memory" in refused(capsys, "bert", "--memory", "0")
    assert "learned positions end at 512" in refused(capsys, "bert", "--length", 513)
    assert facts(capsys, "nezha", "--length", 4096)["memory"]["length"] == 4096
    assert "cannot be saved as .png" in refused(capsys, "bert", "--draw", tmp_path / "x.png")
    assert "name it x.svg" in refused(capsys, "bert", "--draw", tmp_path / "x.SVG")
    assert "name it x.html" in refused(capsys, "bert", "--draw", tmp_path / "x.HTML")
    (tmp_path / "folder").mkdir()
    assert f"{tmp_path / 'folder'}: is a folder" in refused(capsys, "bert", "--draw", tmp_path / "folder")
    assert "no such folder" in refused(capsys, "bert", "--draw", tmp_path / "no" / "x.svg")
    assert "draws one network" in refused(capsys, "bert", "albert", "--draw", tmp_path / "x.svg")
