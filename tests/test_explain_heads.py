"""The head view and its numbers: which tokens, which weights, how the page carries them, what is refused."""

import base64
import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from networks import PIECES, model_of, network_of, shape_of
from oracle import make
from pages import check_fragment, check_page
from tokenizers import ByteLevelBPETokenizer, processors
from vocabularies import chinese_pieces

import maskery
from maskery.checkpoint.model import Model
from maskery.cli import main
from maskery.cli.explain import parse_layers
from maskery.errors import InputError
from maskery.explain.attention import attend
from maskery.explain.heads import head_picture, head_view
from maskery.text.tokenizer import Tokenizer

CHINESE = ("老爸叫小宏去买酱油，", "回来慢了就骂他。")


@pytest.fixture(scope="module")
def model():
    return model_of("masked_token")


@pytest.fixture(scope="module")
def chinese():
    return Model(
        network_of(shape_of(vocabulary=21_128, layers=3, heads=4)), {}, Tokenizer.from_pieces(chinese_pieces())
    )


def weights_in(page):
    """(L,H,T,T) as a browser reads them."""
    data = page.data[0]
    size = len(data["tokens"])
    layers = [np.frombuffer(base64.b64decode(text), "<u2").reshape(-1, size, size) for text in data["weights"]]
    return np.stack(layers) / 65535


def test_the_chinese_pair(chinese):
    found = attend(chinese, *CHINESE)
    wanted = ["[CLS]", *CHINESE[0], "[SEP]", *CHINESE[1], "[SEP]"]
    assert found.tokens == wanted
    assert len(wanted) == 21
    assert found.segments == [0] * 12 + [1] * 9
    assert (wanted[4:6], wanted[18]) == (["小", "宏"], "他")
    assert found.weights.shape == (3, 4, 21, 21)
    assert torch.allclose(found.weights.sum(-1), torch.ones(3, 4, 21), atol=1e-5)
    assert found.unknown == 0
    page = check_page(head_view(chinese, *CHINESE).html())
    assert page.data[0]["tokens"] == wanted
    assert [value for _, name, value in page.attributes if name == "lang"].count("zh-Hans") >= 1
    labels = [value for tag, name, value in page.attributes if name == "title" and tag == "div"]
    assert labels == [f"{token} at position {place}" for place, token in enumerate(wanted)] * 2


def test_weights_are_those_of_the_model(model):
    ids, segments = model.tokenizer.encode("the cat sat", "on the mat")
    with torch.inference_mode():
        wanted = model(torch.tensor([ids]), segments=torch.tensor([segments]), attentions=True).attentions
    page = check_fragment(head_view(model, "the cat sat", "on the mat")._repr_html_())
    assert np.abs(weights_in(page) - torch.cat(wanted).numpy()).max() <= 0.5 / 65535 + 1e-7


def test_layers_can_be_chosen(model):
    both, second = attend(model, "the cat"), attend(model, "the cat", layers=[2])
    assert (both.layers, second.layers) == ([1, 2], [2])
    assert torch.equal(both.weights[1:], second.weights)


def test_numbers_of_a_known_head(model):
    found = attend(model, "the cat sat")
    size = len(found.tokens)
    weights = torch.full((2, 2, size, size), 1 / size)
    weights[0, 0] = torch.eye(size).roll(1, 0)
    told = type(found)(found.tokens, found.segments, weights, [1, 2], found.separators, found.frame, 0).heads()
    assert told[0]["previous"] == 1
    assert told[0]["entropy"] == pytest.approx(0)
    assert told[0]["next"] == told[0]["self"] == 0
    assert told[0]["first"] == pytest.approx(1 / size)
    assert [(link["from"], link["to"]) for link in told[0]["strongest"][:2]] == [(2, 1), (3, 2)]
    assert told[1]["entropy"] == pytest.approx(np.log(size))
    assert told[1]["separator"] == pytest.approx(1 / size)
    assert [(head["layer"], head["head"]) for head in told] == [(1, 1), (1, 2), (2, 1), (2, 2)]


@settings(max_examples=20)
@given(st.text("abc <>&\"'\\/[]{}\u202e\u2028שé猫🙂\x00", max_size=12))
def test_any_text_is_shown_and_nothing_in_it_runs(text):
    model = model_of()
    picture = head_view(model, text)
    page = check_page(picture.html())
    assert len(page.scripts) == 2, "the view and the switch of the theme"
    assert page.data[0]["tokens"] == attend(model, text).tokens


def test_pieces_that_look_like_markup():
    pieces = [*PIECES, "</script>", "<b>", "&amp;", "שלום"]
    tokenizer = Tokenizer.from_pieces(pieces)
    attention = attend(model_of(), "the cat")
    odd = type(attention)(
        ["</script>", "<b>", "&amp;", "שלום"], [0, 0, 1, 1], attention.weights[:, :, :4, :4], [1, 2], [3], [0, 3], 0
    )
    assert tokenizer.vocabulary == len(pieces)
    page = check_page(head_picture(odd).html())
    assert page.data[0]["tokens"] == odd.tokens
    assert page.text.count("</script>") == 2, "once on each side"


def test_pairs_have_a_filter_and_single_texts_have_none(model):
    assert "mk-filter" in head_view(model, "the cat", "sat").body.split("<script")[0].split("</style>")[1]
    assert "mk-filter" not in head_view(model, "the cat").body.split("<script")[0].split("</style>")[1]


def test_roberta_with_byte_level_pieces(tmp_path):
    made = ByteLevelBPETokenizer()
    specials = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    made.train_from_iterator(["a cat sat", "猫 sat"] * 4, vocab_size=300, special_tokens=specials, show_progress=False)
    made._tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    make("RobertaModel", vocab_size=400).save_pretrained(tmp_path)
    made._tokenizer.save(str(tmp_path / "tokenizer.json"))
    found = attend(maskery.load(tmp_path), "a cat", "猫")
    assert (found.tokens[0], found.tokens[-1]) == ("<s>", "</s>")
    assert not {"Ġ", "ç"} & set("".join(found.tokens)), "bytes are read"
    assert 1 in found.segments, "two texts, though RoBERTa has one segment"
    check_page(head_picture(found).html())


def test_refusals(model):
    long = "the cat sat on the mat . " * 30
    wide = Model(network_of(shape_of(max_length=512)), {}, model.tokenizer)
    for wrong, told in (
        (lambda: attend(model, long), "the model's rows end at 24"),
        (lambda: attend(wide, long), "can be looked at ends at 128"),
        (lambda: attend(model, "the", layers=[3]), "the model has layers 1 to 2"),
        (lambda: attend(model, "the", layers=[]), "no layer is given"),
        (lambda: attend(model_of(with_tokenizer=False), "the"), "no tokenizer"),
    ):
        with pytest.raises(InputError, match=told):
            wrong()


def test_layers_on_the_command_line():
    assert parse_layers("1,3-5") == [1, 3, 4, 5]
    assert parse_layers(" 2 ") == [2]
    for wrong in ("", "a", "3-1", "1,,2", "1-99999999999"):
        with pytest.raises(InputError, match="--layers"):
            parse_layers(wrong)


def test_the_verb(model, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "140")
    model.save(tmp_path / "m")
    assert main(["explain", str(tmp_path / "m"), "the cat sat", "--pair", "on the mat", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["tokens"][:3] == ["[CLS]", "the", "cat"]
    assert len(found["heads"]) == 4
    assert found["heads"][0].keys() >= {"layer", "head", "entropy", "previous", "next", "first", "separator"}
    assert main(["explain", str(tmp_path / "m"), "the cat sat €", "--layers", "2"]) == 0
    captured = capsys.readouterr()
    assert "strongest links" in captured.out
    assert "1 token of the text is not in the vocabulary" in captured.err
    page = tmp_path / "p.html"
    assert main(["explain", str(tmp_path / "m"), "the cat sat", "--html", str(page)]) == 0
    captured = capsys.readouterr()
    assert captured.out == ""
    assert f"written: {page}" in captured.err
    check_page(page.read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["nowhere/m", "a"], "no such folder"),
        (["m", "a", "--layers", "7"], "layers 1 to 2"),
        (["m", "a", "--html", "p.svg"], "save it as p.html"),
        (["m", "a", "--html", "p"], "without a suffix"),
        (["m"], "Usage: maskery explain"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, list) else "told",
)
def test_the_verb_refuses(model, tmp_path, monkeypatch, capsys, arguments, told):
    model.save(tmp_path / "m")
    monkeypatch.chdir(tmp_path)
    assert main(["explain", *arguments]) == 2
    assert told in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["m"]


def test_the_view_names_model_and_text_and_says_where_weights_are_uniform():
    made = model_of("masked_token")
    picture = head_view(made, "the cat sat")
    assert made.family in picture.title
    assert "the cat sat" in picture.title
    seen = attend(made, "the cat sat")
    even = replace(seen, weights=torch.full_like(seen.weights, 1 / len(seen.tokens)))
    sharp = replace(seen, weights=torch.eye(len(seen.tokens)).expand_as(seen.weights))
    assert "nearly uniform" in head_picture(even).note
    assert "接近均匀" in head_picture(even, "zh").note
    assert "nearly uniform" not in head_picture(sharp).note
