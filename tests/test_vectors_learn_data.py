"""Texts to learn from: files of every form, what is made of what, what is left out; and the verbs."""

from __future__ import annotations

import json

import numpy as np
import pytest
from small_encoder import lines, pairs, quiet, scored, small_encoder, triplets

from maskery.cli.app import run
from maskery.errors import InputError, TextError
from maskery.tasks.settings import ColumnsConfig
from maskery.vectors.encoder import Encoder
from maskery.vectors.folder import write_encoder
from maskery.vectors.learn.data import fitted, text_set
from maskery.vectors.learn.prepare import feed_of, resolved
from maskery.vectors.learn.read import read_texts
from maskery.vectors.learn.settings import learn_config


def write(path, rows, header=None):
    head = [header] if header else []
    path.write_text("".join("\t".join(map(str, row)) + "\n" for row in [*head, *rows]), encoding="utf-8")
    return path


THREE = [("a cat here", "the cat", "a dog"), ("some text", "other text", "a third text")]


@pytest.mark.parametrize("header", [None, ("anchor", "positive", "negative"), ("query", "pos", "neg_1")])
def test_triplets_by_their_columns(tmp_path, header):
    found = read_texts(write(tmp_path / "t.tsv", THREE, header), "triplet")
    assert (found.kind, len(found)) == ("triplets", 2)
    assert [tuple(found.column(at)[0] for at in range(3))] == THREE[:1]
    assert any("text =" in note for note in found.notes)


def test_other_forms(tmp_path):
    rows = [
        {"negative": "c", "anchor": "a", "positive": "b", "id": 7},
        {"negative": "c", "anchor": "d", "positive": "b"},
    ]
    path = tmp_path / "t.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = read_texts(path, "multiple_negatives")
    assert [found.texts[number] for number in found.units[1]] == ["d", "b", "c"]
    assert any("not read: 'id'" in note for note in found.notes)
    whole = tmp_path / "t.json"
    whole.write_text(json.dumps(rows))
    assert np.array_equal(read_texts(whole, "triplet").units, found.units)
    asked = read_texts(path, "multiple_negatives", ColumnsConfig(text=("positive", "anchor")))
    assert (asked.kind, asked.column(0)) == ("pairs", ["b", "b"])
    two = read_texts(write(tmp_path / "p.tsv", [row[:2] for row in THREE]), "simbert")
    assert (two.kind, two.column(1)) == ("pairs", ["the cat", "other text"])
    score = read_texts(write(tmp_path / "s.tsv", [(*row[:2], 1.5 + at) for at, row in enumerate(THREE)]), "cosent")
    assert (score.kind, score.label.tolist()) == ("scored", [1.5, 2.5])
    nli = [(*row[:2], name) for row, name in zip(THREE * 2, ["entailment", "neutral"] * 2, strict=True)]
    named = read_texts(write(tmp_path / "n.tsv", nli, ("sentence1", "sentence2", "label")), "softmax")
    assert (named.kind, named.labels, named.label.tolist()) == ("labelled", ("entailment", "neutral"), [0, 1, 0, 1])
    plain = tmp_path / "lines.txt"
    plain.write_text("one line\n\nanother, with\ta tab\none line\n", encoding="utf-8")
    found = read_texts(plain, "simcse")
    assert (found.kind, found.texts, len(found)) == ("lines", ("one line", "another, with\ta tab"), 2)
    assert any("was there before" in note for note in found.notes)


def test_wrong_files(tmp_path):
    with pytest.raises(TextError, match="no such file"):
        read_texts(tmp_path / "none.tsv", "simcse")
    path = write(tmp_path / "t.tsv", THREE)
    with pytest.raises(TextError, match="no column 'nothing'"):
        read_texts(path, "triplet", ColumnsConfig(text=("nothing", "1")))
    with pytest.raises(TextError):
        read_texts(write(tmp_path / "n.tsv", [("a b", "c d", "yes"), ("e f", "g h", "no")] * 3), "cosine")


def test_what_is_left_out_is_counted():
    found = text_set("triplets", [("a", "b", "c"), ("a", "b", "b"), ("a", "", "c"), ("d", "e", "d")])
    assert len(found) == 1
    assert [note.partition(" are")[0] for note in found.notes[:2]] == ["1 of 4 units", "2 of 3 units"]
    with pytest.raises(InputError, match="nothing is left"):
        text_set("pairs", [("", "b")])
    with pytest.raises(InputError, match="no pairs"):
        text_set("pairs", [("a", "b", "c")])
    with pytest.raises(InputError, match="7"):
        text_set("pairs", [("a", 7)])


def test_what_can_be_made_of_what():
    nli = [("p", "e1", "entailment"), ("p", "e2", "entailment"), ("p", "c", "contradiction"), ("q", "n", "neutral")]
    found = text_set("labelled", [row[:2] for row in nli], [row[2] for row in nli])
    made = fitted(found, "simcse_supervised")
    assert [[made.texts[number] for number in unit] for unit in made.units] == [["p", "e1", "c"], ["p", "e2", "c"]]
    assert fitted(found, "simbert").column(1) == ["e1", "e2"]
    above = fitted(scored(), "multiple_negatives", positive=5.0)
    assert above.kind == "pairs"
    assert len(above) == int((scored().label == 5).sum())
    assert fitted(triplets(), "simbert").units.shape == (24, 2)
    assert fitted(pairs(), "simcse").kind == "lines"
    classes = fitted(scored(), "softmax")
    assert (classes.labels, set(classes.label.tolist())) == (("1", "3", "5"), {0.0, 1.0, 2.0})
    with pytest.raises(InputError, match="which of them belong together"):
        fitted(scored(), "multiple_negatives")
    with pytest.raises(InputError, match="learns from triplets"):
        fitted(lines(), "triplet")


def test_false_negatives_are_counted_before_training():
    made, told = small_encoder(), []
    texts = text_set("pairs", [(f"the {word}", "a cat") for word in ("dog", "sea", "moon", "tree")])
    config = resolved(learn_config("multiple_negatives", {"training": {"batch": 4}}), texts, made, quiet)
    feed_of(made, texts, config, told.append)
    assert told == ["12 comparisons in 1 batches are left out: the texts are equal, no false negatives"]


def command(*parts):
    return run([str(part) for part in parts])


def test_the_verbs(tmp_path, capsys):
    model = tmp_path / "model"
    write_encoder(small_encoder(), model)
    rows = pairs(16)
    table = write(tmp_path / "pairs.tsv", zip(rows.column(0), rows.column(1), strict=True), ("anchor", "positive"))
    dev = scored(9, 4)
    judged = zip(dev.column(0), dev.column(1), dev.label, strict=True)
    held_out = write(tmp_path / "dev.tsv", judged, ("sentence1", "sentence2", "score"))
    mined = tmp_path / "mined.tsv"
    assert command("vectors", "mine", model, "--pairs", table, "--out", mined, "--negatives", 2, "--json") == 0
    assert json.loads(capsys.readouterr().out)["triplets"] > 0
    assert mined.read_text().splitlines()[0] == "anchor\tpositive\tnegative_1\tnegative_2"
    out = tmp_path / "run"
    asked = ("--loss", "multiple_negatives", "--train", mined, "--dev", held_out, "--out", out, "--batch", 4)
    assert command("vectors", "train", model, *asked, "--micro", 2, "--set", "scale=30", "--json") == 0
    told = capsys.readouterr()
    found = json.loads(told.out)
    assert found["best"]["step"] <= found["steps"]
    assert "gradients cached" in told.err
    assert "before training" in told.err
    assert json.loads((out / "state.json").read_text())["task"]["scale"] == 30
    texts = write(tmp_path / "lines.txt", [(each,) for each in rows.texts])
    white = tmp_path / "white"
    assert (
        command("vectors", "after", out, "--kind", "whitening", "--text", texts, "--out", white, "--dimensions", 5) == 0
    )
    vectors = Encoder(white, say=quiet).encode(list(rows.texts))
    assert np.cov(vectors.T) == pytest.approx(np.eye(5), abs=1e-3)


def test_simbert_from_the_command_line_writes_from_its_folder(tmp_path, capsys):
    model, out, rows = tmp_path / "model", tmp_path / "bert", pairs(8)
    small_encoder("mean").model.save(model)
    table = write(tmp_path / "pairs.tsv", zip(rows.column(0), rows.column(1), strict=True), ("anchor", "positive"))
    asked = ("--loss", "simbert", "--train", table, "--out", out, "--batch", 4)
    assert command("vectors", "train", model, *asked) == 0
    told = capsys.readouterr().err
    assert "does not say how slots are pooled: the first one is taken, as in SimBERT" in told
    assert "takes the place of" not in told
    assert f"maskery generate {out}/writer TEXT" in told
    assert command("generate", out / "writer", rows.column(0)[0], "--new", 3) == 0
    assert command("generate", out, rows.column(0)[0]) == 2
    assert f"a model that writes: {out}/writer" in " ".join(capsys.readouterr().err.split())
    assert command("vectors", "train", model, *asked[:-3], tmp_path / "other", "--pool", "mean") == 2
    assert "the vector of a model that also writes is the first slot's" in capsys.readouterr().err
    write_encoder(small_encoder("mean"), tmp_path / "mean")
    assert command("vectors", "train", tmp_path / "mean", *asked[:-3], tmp_path / "other") == 0
    assert "takes the place of how the encoder made its vectors: mean" in capsys.readouterr().err
    nowhere = ("--loss", "simbert", "--train", tmp_path / "none.tsv", "--out", tmp_path / "new")
    assert command("vectors", "train", tmp_path / "none", *nowhere) == 2
    assert "no such folder" in capsys.readouterr().err  # of the model, before the table is looked for
    assert command("vectors", "train", model, *nowhere) == 2
    assert "none.tsv: no such file" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("parts", "told"),
    [
        (("train", "MODEL", "--loss", "simcs", "--train", "F", "--out", "RUN"), "simcse"),
        (("train", "MODEL", "--loss", "simcse", "--train", "F", "--out", "RUN"), "MODEL: no such folder"),
        (("train", "MODEL", "--loss", "simcse", "--train", "F", "--out", "RUN", "--set", "scal=3"), "scal"),
        (("train", "MODEL", "--loss", "simcse", "--train", "F", "--out", "RUN", "--patience", "2"), "--dev"),
        (("mine", "MODEL", "--pairs", "F", "--out", "F.txt"), ".tsv or .jsonl"),
        (("mine", "MODEL", "--pairs", "LINES", "--out", "F.tsv"), "these are lines, not pairs"),
        (("after", "MODEL", "--kind", "bleaching", "--text", "F", "--out", "RUN"), "whitening"),
    ],
    ids=lambda part: part if isinstance(part, str) else part[0],
)
def test_what_is_wrong_is_told(tmp_path, capsys, monkeypatch, parts, told):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "LINES", [("the cat",), ("a dog",)])
    assert command("vectors", *parts) == 2
    assert told in capsys.readouterr().err
