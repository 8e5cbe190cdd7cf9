"""Pictures of order: the matrices that are drawn are the published ones, on the terminal, as JSON and as a page."""

import json
from itertools import permutations

import numpy as np
import pytest
import torch
from pages import SVG, check_page, check_svg
from small_run import corpus_in
from test_explain_rows import texts

from maskery.cli import main
from maskery.errors import InputError
from maskery.explain.flow import flow_of, reads_in_order
from maskery.explain.flow_words import CHINESE, why_two
from maskery.explain.matrices import visibility
from maskery.explain.order import order, order_of
from maskery.explain.sights import REMEMBERED, loss_of
from maskery.model.flow import reach, reach_source
from maskery.recipes.recipe import names, recipe

NEW_YORK = ["New", "York", "is", "a", "city"]
QUERY = {
    (3, 2, 4, 1): {1: {2, 3, 4}, 2: {3}, 3: set(), 4: {2, 3}},
    (4, 2, 1, 5, 3): {1: {2, 4}, 2: {4}, 3: {1, 2, 4, 5}, 4: set(), 5: {1, 2, 4}},
    (2, 1, 5, 3, 4): {1: {2}, 2: set(), 3: {1, 2, 5}, 4: {1, 2, 3, 5}, 5: {1, 2}},
    (1, 2, 3, 4, 5): {1: set(), 2: {1}, 3: {1, 2}, 4: {1, 2, 3}, 5: {1, 2, 3, 4}},
    (5, 4, 3, 2, 1): {1: {2, 3, 4, 5}, 2: {3, 4, 5}, 3: {4, 5}, 4: {5}, 5: set()},
}


def sets(matrix):
    return {row + 1: {int(k) + 1 for k in seen.nonzero().flatten()} for row, seen in enumerate(matrix)}


# An order that is written out


@pytest.mark.parametrize("turns", list(QUERY), ids=str)
def test_both_streams_at_every_depth(turns):
    side = order_of(NEW_YORK[: len(turns)], turns, layers=4)
    content, query = side.sight("own"), side.sight("query")
    assert sets(query.visible) == QUERY[turns]
    assert sets(content.visible) == {slot: seen | {slot} for slot, seen in QUERY[turns].items()}
    assert [sets(known) for known in query.layers[1:]] == [QUERY[turns]] * 4
    assert [sets(known) for known in content.layers[1:]] == [sets(content.visible)] * 4
    assert not query.layers[0].any(), "a query begins with a place and no token"


def test_what_one_stream_forgets():
    side = order_of("语言序列", [3, 2, 4, 1])
    alone = [sets(known) for known in side.sight("one_stream").layers]
    assert alone[1] == QUERY[3, 2, 4, 1]
    assert alone[2] == {1: {2, 3}, 2: set(), 3: set(), 4: {3}}
    assert alone[3] == {1: {3}, 2: set(), 3: set(), 4: set()}
    loss = loss_of(side)
    assert (loss.wanted, loss.kept, loss.kept_by_two) == (6, (6, 3, 1), (6, 6, 6))
    assert "has lost 3 of these after layer 2" in why_two(loss)
    assert "第 2 层之后就丢失其中 3 个" in why_two(loss, CHINESE)
    assert side.walk == [[2], [1], [3], [0]]


@pytest.mark.parametrize("turns", list(permutations(range(1, 4))), ids=str)
def test_one_stream_forgets_in_every_order(turns):
    loss = loss_of(order_of(["a", "b", "c"], turns, layers=3))
    assert (loss.wanted, loss.kept) == (3, (3, 1, 0))


def test_everybody_but_oneself_is_oneself_in_two_layers():
    apart = ~torch.eye(4, dtype=torch.bool)
    first, second = reach(apart, 2, residual=False)[1:]
    assert not first.diagonal().any()
    assert second.diagonal().all()


@pytest.mark.parametrize(("lang", "said"), [("en", "Why two streams"), ("zh", "为什么要两条流")])
def test_the_picture_of_an_order(lang, said):
    picture = order(list("语言序列"), [3, 2, 4, 1], lang=lang)
    page = check_page(picture.html())
    assert said in page.text
    root = check_svg(picture.svg)
    cells = [each for each in root.iter(f"{SVG}rect") if "mk-cell" in each.get("class", "")]
    # content and query, what either knows, and one stream after layers 1, 2 and 3
    assert len(cells) == 7 * 16
    assert sum("mk-seen" in cell.get("class") for cell in cells) == 2 * (10 + 6) + 6 + 3 + 1
    assert {"语", "言", "序", "列"} <= set(texts(root))
    assert any("序 → 言 → 列 → 语" in text for text in texts(root))


def test_an_order_that_is_none():
    for wrong in ([1, 2, 3], [0, 1, 2, 3], [1, 1, 2, 3]):
        with pytest.raises(InputError, match="does not name each of the 4 tokens once") as caught:
            order(list("语言序列"), wrong)
        assert "any order of 1 2 3 4" in str(caught.value)
    with pytest.raises(InputError, match="layers 0 is too small"):
        order(list("语言"), [1, 2], layers=0)
    with pytest.raises(InputError, match="0 tokens"):
        order([], [])
    with pytest.raises(InputError, match="choices: en, zh"):
        order(list("语言"), [1, 2], lang="fr")


# Recipes


def test_xlnet_draws_the_order_both_matrices_and_the_targets():
    drawn = flow_of(recipe("xlnet"), None, 0).drawn[0]
    side = drawn.sides[0]
    content, query = side.sight("own"), side.sight("query")
    turns, asked = np.array(side.order), np.array([bool(answer) for answer in side.asked])
    assert asked.sum() >= 2
    assert [side.asked[slot] for slot in side.asked_slots] == [side.tokens[slot] for slot in side.asked_slots]
    no_later, earlier = turns[None, :] <= turns[:, None], turns[None, :] < turns[:, None]
    assert (content.before, drawn.memory) == (REMEMBERED, 384)
    assert content.visible[:, :REMEMBERED].all()
    assert np.array_equal(content.visible[:, REMEMBERED:], no_later)
    assert np.array_equal(query.visible[:, REMEMBERED:], earlier & asked[:, None])
    assert all(torch.equal(known, query.visible) for known in query.layers[1:]), "two streams lose nothing"
    loss = loss_of(side)
    assert loss.kept[1] < loss.wanted == loss.kept_by_two[-1]
    assert not query.visible[:, REMEMBERED:].diagonal().any()
    assert set(turns[:6].tolist()).isdisjoint(turns[6:].tolist()), "the second half comes behind the first"
    assert turns[:6].max() < turns[6:].min()


def test_a_memory_stands_in_front():
    side = flow_of(recipe("transformer-xl"), None, 0).drawn[0].sides[0]
    sight, size = side.sights[0], len(side.tokens)
    assert sight.numbers == list(range(-REMEMBERED, size))
    assert sight.visible[:, :REMEMBERED].all()
    assert torch.equal(sight.visible[:, REMEMBERED:], torch.ones(size, size).tril().bool())
    assert list(side.asked) == [*side.tokens[1:], ""]


@pytest.mark.parametrize("name", ["bart", "mass", "transformer"])
def test_an_encoder_and_a_decoder(name):
    encoder, decoder = flow_of(recipe(name), None, 0).drawn[0].sides
    size = len(decoder.tokens)
    assert encoder.sights[0].visible.all()
    assert not any(encoder.asked)
    assert torch.equal(decoder.sight("own").visible, torch.ones(size, size).tril().bool())
    source = decoder.sight("source")
    assert source.read == encoder.tokens
    assert source.visible.all()
    assert not source.layers[0].any()
    assert source.layers[1].all()
    assert list(decoder.asked[:-1]) == list(decoder.tokens[1:]), "each is asked for what the next one reads"
    starts = {"bart": "[SEP]", "transformer": "[CLS]"}
    assert decoder.tokens[0] == starts.get(name, decoder.tokens[0])
    if name == "mass":
        begin = encoder.tokens.index("[MASK]")
        assert encoder.tokens[begin : begin + size] == ("[MASK]",) * size


def test_a_decoder_knows_of_its_source_what_the_source_knows():
    own = torch.ones(2, 2).tril().bool()
    across = torch.tensor([[True, False], [False, False]])
    known = torch.tensor([[True, True, False], [False, False, True]])
    first, second = reach_source(own, across, known, 2)[1:]
    assert first.int().tolist() == [[1, 1, 0], [0, 0, 0]]
    assert second.int().tolist() == [[1, 1, 0], [1, 1, 0]], "by way of the first, one layer later"


def test_which_recipes_have_an_order():
    plain = {name for name in names() if not reads_in_order(recipe(name))}
    ordered = {"gpt", "gpt2", "transformer-xl", "xlnet", "unilm", "bart", "mass", "transformer"}
    assert ordered & set(names()) == set(names()) - plain


def test_inspect_without_a_corpus(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    page = tmp_path / "xlnet.html"
    assert main(["inspect", "xlnet", "--html", str(page)]) == 0
    out, err = capsys.readouterr()
    assert "a made-up row; --text shows a text of yours, --corpus DIR rows of text" in err
    lines = out.splitlines()
    side = flow_of(recipe("xlnet"), None, 0).drawn[0].sides[0]
    assert any(line.startswith("In turn: ") and line.count(" → ") == max(side.order) for line in lines)
    heading = next(number for number, line in enumerate(lines) if "Who sees whom, content stream" in line)
    assert "The query stream sees" in lines[heading], "beside each other"
    for slot, line in enumerate(lines[heading + 2 : heading + 2 + len(side.tokens)]):
        content = "".join("██" if seen else "· " for seen in side.sight("own").visible[slot].tolist())
        assert content[: 2 * REMEMBERED] + "│" + content[2 * REMEMBERED :].rstrip() in line
        assert (f"→ {side.tokens[slot]}" in line) == bool(side.asked[slot])
    assert "after layer" not in out
    assert "after layer" not in check_page(page.read_text(encoding="utf-8")).text
    assert all(len(line) <= 100 for line in lines)
    monkeypatch.setenv("COLUMNS", "60")
    assert main(["inspect", "bart"]) == 0
    assert all(len(line) <= 60 for line in capsys.readouterr().out.splitlines()), "below each other"


def test_flow_says_why_two_streams(capsys):
    assert main(["inspect", "xlnet", "--flow"]) == 0
    out = capsys.readouterr().out
    assert "One stream alone knows after layer 1" in out
    assert "Why two streams" in out
    assert main(["inspect", "xlnet", "--flow", "--json"]) == 0
    flow = json.loads(capsys.readouterr().out)["flow"]
    assert flow["kept_by_one_stream"][1] < flow["wanted"]
    assert np.shape(flow["query"]["visible"]) == (12, 12 + flow["memory"])
    assert len(flow["order"]) == len(flow["asked"]) == 12
    assert main(["inspect", "bart", "--json"]) == 0
    flow = json.loads(capsys.readouterr().out)["flow"]
    assert np.all(flow["decoder"]["source"]["visible"])


def test_rows_of_a_corpus_are_drawn_with_their_order(tmp_path, capsys):
    corpus = corpus_in(tmp_path)
    short = ["--rows", "4", "--set", "training.length=32", "--set", "training.batch=4"]
    assert main(["inspect", "xlnet", "--corpus", str(corpus.path), *short]) == 0
    out = capsys.readouterr().out
    assert out.index("of the plan") < out.index("Who sees whom, content stream") < out.index("Measured over")
    assert main(["inspect", "bert", "--corpus", str(corpus.path), *short]) == 0
    assert "Who sees whom" not in capsys.readouterr().out
    picture = visibility(recipe("bart"), corpus, lang="zh")
    assert "谁能看到源文" in check_page(picture.html()).text
    assert main(["inspect", "bert", "--step", "3"]) == 2
    assert "--step 3: there are no rows without a corpus" in capsys.readouterr().err
