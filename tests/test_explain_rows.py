"""Corrupted rows, maskings of one sentence, and matrices of visibility as pictures."""

import re

import numpy as np
import pytest
import torch
from pages import SVG, check_page, check_svg, texts
from tiny import build
from vocabularies import mixed_tokenizer

from maskery.cli import main
from maskery.corpus.store import Flag
from maskery.edit import Edit
from maskery.errors import InputError
from maskery.explain import visibility
from maskery.explain.flow import flow_of
from maskery.explain.matrices import flow_picture
from maskery.explain.rows import corrupted_rows, rows_picture
from maskery.explain.sentence import masked_sentence, maskings
from maskery.explain.words import words_of
from maskery.feed import Feed
from maskery.inspection import rates
from maskery.recipes.recipe import recipe

SHORT = {"training.length": 32, "training.phases": [], "training.batch": 16}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return build(tmp_path_factory.mktemp("pictures"))


def without_style(picture):
    return re.sub("<style>.*?</style>", "", picture.body, flags=re.S)


def test_rows_show_every_token_and_what_was_done_to_it(corpus):
    feed = Feed(recipe("bert", SHORT), corpus, 0)
    picture = rows_picture(feed, rates(feed, 50), 5)
    page = check_page(picture.html())
    batch = feed.batch(0).one(0)
    for token in corpus.tokenizer.shown(batch.ids[0].numpy()):
        assert token in page.texts
    body = without_style(picture)
    assert body.count("of the plan") == 5
    edits = torch.cat([feed.batch(0).one(row).edit[0] for row in range(5)])
    for edit in (Edit.MASK, Edit.RANDOM, Edit.KEEP):
        chips = body.count(f'"mk-chip mk-{edit.name.lower()}"')
        shown = int((edits == edit).sum())
        assert chips == shown + (shown > 0), "each chosen token, and one sample in the legend"
    assert "15.00 %" in page.text
    assert "Measured over 50 rows" in picture.note


def test_words_hold_their_tokens_together(corpus):
    picture = maskings([recipe("roberta", {"corruption.rate": 0})], corpus, "unbelievable cat", 1)
    words = re.findall(r'<span class="mk-word">(.*?)</span></span>', without_style(picture))
    inside = [re.findall("<bdi>(.*?)</bdi>", word) for word in words]
    assert ["".join(piece.removeprefix("##") for piece in word) for word in inside] == [
        "[CLS]",
        "unbelievable",
        "cat",
        "[SEP]",
    ]


def test_one_sentence_under_several_maskings(corpus):
    text = "the unbelievable dog sees a small house and finds the quiet bird"
    chosen = {"<bert>": recipe("bert"), "much": recipe("roberta", {"corruption.rate": 0.6})}
    picture = maskings(chosen, corpus, text, draws=4)
    body = without_style(picture)
    assert body.count('class="mk-row"') == 8
    assert "&lt;bert&gt;" in body
    assert "copy 4" in body
    assert "epoch 4" in body
    few, much = body.split("<b>much</b>")
    assert 0 < few.count("<s>") < much.count("<s>")
    assert maskings(chosen, corpus, text, draws=4).body == picture.body
    assert maskings(chosen, corpus, text, draws=4, seed=1).body != picture.body


def test_maskings_without_a_corpus_and_in_chinese():
    picture = maskings([recipe("bert"), recipe("roberta")], mixed_tokenizer(), "我们今天去北京大学看 <演唱会>", draws=2)
    page = check_page(picture.html())
    assert 'lang="zh-Hans"' in picture.body
    assert "大" in page.text


def test_maskings_find_words_with_the_dictionary_of_the_corpus(tmp_path):
    corpus, text = build(tmp_path, dictionary=["small house"]), "the small house"

    def starts(source):
        row = masked_sentence([recipe("bert")], source, text).plain_rows
        return np.flatnonzero(row.flags & Flag.WORD).tolist()

    assert starts(corpus) == [1, 2]
    assert len(starts(corpus.tokenizer)) == 3


def test_every_edit_has_a_meaning_and_a_colour(corpus):
    style = corrupted_rows(recipe("bert", SHORT), corpus, 1).html()
    for edit in set(Edit) - {Edit.NONE}:
        assert words_of("en").edits[edit] != words_of("zh").edits[edit]
        assert f".mk-chip.mk-{edit.name.lower()} " in style


def test_maskings_refuse(corpus):
    with pytest.raises(InputError, match="has 0 tokens"):
        maskings([recipe("bert")], corpus, " \n ")
    with pytest.raises(InputError, match="1 to 128 tokens"):
        maskings([recipe("bert")], corpus, "cat " * 200)
    with pytest.raises(InputError, match="two recipes have one name"):
        maskings([recipe("bert"), recipe("bert")], corpus, "cat")


def test_matrices_show_who_sees_whom():
    flow = flow_of(recipe("roberta", {"visibility.kind": "causal"}), None, 0)
    picture = flow_picture(flow)
    check_page(picture.html())
    root = check_svg(picture.svg)
    cells = [each for each in root.iter(f"{SVG}rect") if "mk-cell" in each.get("class", "")]
    size = len(flow.drawn[0].tokens)
    assert len(cells) == 2 * size * size, "who sees whom, and what all layers know alike"
    seen = [cell for cell in cells if "mk-seen" in cell.get("class")]
    assert len(seen) == size * (size + 1)
    told = {cell.find(f"{SVG}title").text for cell in cells}
    assert f"{flow.drawn[0].tokens[0]} (0) does not see {flow.drawn[0].tokens[1]} (1)" in told
    assert f"{flow.drawn[0].tokens[1]} (1) knows {flow.drawn[0].tokens[0]} (0)" in told
    assert set(flow.drawn[0].tokens) <= set(texts(root))
    assert "masked_token" in picture.body


def test_a_recipe_is_drawn_in_one_call(corpus):
    picture = visibility(recipe("bert", SHORT), corpus)
    assert picture.title == "Information flow in bert"
    check_svg(picture.svg)


def test_inspect_draws(corpus, tmp_path, capsys):
    page = tmp_path / "rows.html"
    rows = ["inspect", "bert", "--corpus", str(corpus.path), "--rows", "20", "--set", "training.length=32"]
    assert main([*rows, "--html", str(page)]) == 0
    captured = capsys.readouterr()
    assert "of the plan" in captured.out
    assert f"written: {page}" in captured.err
    assert "Rows of bert" in check_page(page.read_text(encoding="utf-8")).text
    flow = tmp_path / "flow.svg"
    assert main(["inspect", "bert", "--flow", "--json", "--html", str(flow)]) == 0
    check_svg(flow.read_text(encoding="utf-8"))
    for wrong, told in ((rows, "an SVG file cannot"), (["inspect", "bret", "--flow"], "did you mean bert")):
        assert main([*wrong, "--html", str(tmp_path / "x.svg")]) == 2
        assert told in capsys.readouterr().err
    assert main(["inspect", "bert", "--flow", "--html", str(tmp_path / "no" / "x.html")]) == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["flow.svg", "rows.html"]
