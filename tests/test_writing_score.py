"""Scores of lines: against every token asked one by one, for every kind of model; what is left out; the command."""

from __future__ import annotations

import json
import math

import pytest
import torch
from networks import model_of
from writers import CLS, KINDS, MASK, SEP, next_scores, writer

import maskery
from maskery.cli import main
from maskery.errors import InputError

LINES = ["the cat sat on the mat.", "我去了北京。", "a"]
PAIRS = [("the cat", "我去了"), ("a b c d", "a"), ("上海", "the cat sat on")]
PAIRED = ("shifted", "masked", "unilm", "bart", "transformer")


def one_by_one(kind, model, prompt, text):
    shares = [next_scores(kind, model, prompt, text[:place]).log_softmax(0) for place in range(len(text))]
    return sum(float(share[token]) for share, token in zip(shares, text, strict=True))


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in PAIRED])
def test_lines_are_scored_from_the_left(kind):
    model = writer(kind)
    found = maskery.score(model, LINES)
    assert found.kind == "log_probability"
    for text, line in zip(LINES, found.lines, strict=True):
        ids = model.tokenizer.encode_marked(text)
        expected = one_by_one(kind, model, [] if kind == "framed" else [SEP], ids)
        assert (line.tokens, line.log_probability) == (len(ids), pytest.approx(expected, abs=1e-4))
        assert line.perplexity == pytest.approx(math.exp(-expected / len(ids)), rel=1e-4)
        assert line.bits_per_character == pytest.approx(-expected / math.log(2) / len(text), rel=1e-4)
        assert line.bits_per_byte == pytest.approx(-expected / math.log(2) / len(text.encode()), rel=1e-4)
    total = math.fsum(line.log_probability for line in found.lines)
    tokens = sum(line.tokens for line in found.lines)
    assert found.perplexity == pytest.approx(math.exp(-total / tokens))
    assert found.total.bits_per_byte == pytest.approx(-total / math.log(2) / sum(len(text.encode()) for text in LINES))


@pytest.mark.parametrize("kind", [*PAIRED, "gpt"])
def test_pairs_are_scored_by_their_targets(kind):
    model = writer(kind)
    found = maskery.score(model, PAIRS)
    for (source, target), line in zip(PAIRS, found.lines, strict=True):
        before, ids = (model.tokenizer.encode_marked(text) for text in (source, target))
        text = ids if kind == "gpt" else [*ids, SEP]
        assert line.text == target
        assert line.tokens == len(text)
        assert line.log_probability == pytest.approx(one_by_one(kind, model, before, text), abs=1e-4)


@pytest.mark.parametrize("masks", [1, 2, 30])
@torch.no_grad()
def test_masked_models_hide_every_token_in_turn(masks):
    model = model_of("masked_token", seed=3)
    found = maskery.score(model, LINES, masks=masks)
    assert (found.kind, found.masks) == ("pseudo_log_probability", masks)
    for text, line in zip(LINES, found.lines, strict=True):
        ids = model.tokenizer.encode_marked(text)
        rounds, expected = math.ceil(len(ids) / masks), 0.0
        for turn in range(rounds):
            row = torch.tensor([[CLS, *[MASK if n % rounds == turn else token for n, token in enumerate(ids)], SEP]])
            shares = model.logits(row)[0].log_softmax(-1)
            expected += sum(float(shares[n + 1, token]) for n, token in enumerate(ids) if n % rounds == turn)
        assert line.log_probability == pytest.approx(expected, abs=1e-4)


def test_a_line_without_a_beginning_has_a_token_less():
    model = writer("gpt")
    ids = model.tokenizer.encode_marked(LINES[0])
    found = maskery.score(model, LINES, begin=False)
    assert found.lines[0].tokens == len(ids) - 1
    assert found.lines[0].log_probability == pytest.approx(one_by_one("gpt", model, ids[:1], ids[1:]), abs=1e-4)
    assert found.skipped == ((3, "one token alone: nothing stands before it"),)


def test_a_memory_reads_a_line_in_rows():
    model = writer("transformer-xl")
    whole, rows = (maskery.score(model, LINES, **how).lines for how in ({}, {"length": 2, "memory": 30}))
    for one, other in zip(whole, rows, strict=True):
        assert one.log_probability == pytest.approx(other.log_probability, abs=1e-4)
    forgetful = maskery.score(model, LINES[:1], length=2, memory=0).lines[0]
    assert abs(forgetful.log_probability - whole[0].log_probability) > 0.01
    near, clamped = (maskery.score(model, LINES[:1], length=2, memory=3, **more).lines[0]
                     for more in ({"same_length": True}, {"clamp": 1}))  # fmt: skip
    assert len({near.log_probability, clamped.log_probability, whole[0].log_probability}) == 3


@pytest.mark.parametrize("kind", ["gpt", "bert"])
def test_lines_that_cannot_be_scored_are_told(kind):
    model = writer("gpt") if kind == "gpt" else model_of("masked_token")
    fits = 24 if kind == "gpt" else 22
    texts = ["a " * fits, "", "a " * (fits + 1), "a Ω", " "]
    found = maskery.score(model, texts)
    assert [line.line for line in found.lines] == [1, 4]
    assert found.skipped == ((2, "empty"), (3, "longer than the model: 25 slots of 24"), (5, "empty"))
    assert found.unknown == 1


def test_many_lines_of_all_lengths_are_scored_each_as_alone():
    model = writer("gpt2")
    texts = [" ".join("abcdefgh"[(n * k) % 8] for k in range(1 + n * 7 % 23)) for n in range(60)]
    found = maskery.score(model, texts)
    assert [line.text for line in found.lines] == texts
    for number in (0, 31, 59):
        alone = maskery.score(model, texts[number : number + 1]).lines[0]
        assert alone.log_probability == pytest.approx(found.lines[number].log_probability, abs=1e-4)


@pytest.mark.parametrize(
    ("kind", "settings", "words"),
    [
        ("gpt", {"masks": 2}, "without masks"),
        ("gpt", {"masks": 0}, "too small"),
        ("bart", {}, "source"),
        ("gpt", {"memory": 4}, "cannot tell how far"),
        ("xlnet", {"memory": 4}, "behind a memory"),
    ],
)
def test_what_cannot_be_scored_is_refused(kind, settings, words):
    with pytest.raises(InputError, match=words) as refused:
        maskery.score(writer(kind), LINES, **settings)
    assert refused.value.repair


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("score")
    writer("gpt").save(folder / "gpt")
    model_of("masked_token").save(folder / "bert")
    (folder / "lines.txt").write_text("the cat\n\n我去了北京。\n" + "a " * 30 + "\n", encoding="utf-8")
    (folder / "pairs.tsv").write_text("the cat\t我去\na\n", encoding="utf-8")
    return folder


def test_the_command_prints_a_table_and_tells_what_it_left_out(place, capsys):
    assert main(["score", f"{place}/gpt", f"{place}/lines.txt"]) == 0
    output = capsys.readouterr()
    assert "我去了北京。" in output.out
    assert "bits per byte" in output.out
    assert "lines.txt:2: left out: empty" in output.err
    assert "lines.txt:4: left out: longer" in output.err


def test_the_command_as_json(place, capsys):
    assert main(["score", f"{place}/bert", f"{place}/lines.txt", "--masks", "2", "--json"]) == 0
    output = capsys.readouterr()
    found = json.loads(output.out)
    expected = maskery.score(
        maskery.load(place / "bert"), (place / "lines.txt").read_text("utf-8").splitlines(), masks=2
    )
    assert found == json.loads(json.dumps(expected.plain()))
    assert (found["kind"], found["masks"]) == ("pseudo_log_probability", 2)
    assert [each["line"] for each in found["skipped"]] == [2, 4]
    assert "2 at a time" in output.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["gpt", "nowhere.txt"], "no such file"),
        (["gpt", "pairs.tsv", "--pairs"], "pairs.tsv:2"),
        (["gpt", "lines.txt", "--memory", "3"], "cannot tell how far"),
        (["bert", "pairs.tsv", "--pairs"], "without --pairs"),
    ],
)
def test_the_command_refuses_with_a_repair(place, capsys, arguments, words):
    model, file, *options = arguments
    if "bert" in arguments:
        (place / "pairs.tsv").write_text("the cat\t我去\n", encoding="utf-8")
    assert main(["score", f"{place}/{model}", f"{place}/{file}", *options]) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert words in output.err
    assert "repair:" in output.err
