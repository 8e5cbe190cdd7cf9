"""`maskery inspect --text`: one sentence under one recipe or several, side by side; and how rows look on a terminal."""

import json
import re
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pages import check_page
from rich.cells import cell_len
from rich.console import Console
from tiny import build
from vocabularies import mixed_tokenizer

from maskery.cli import main
from maskery.cli.output import late_progress
from maskery.cli.rows import STYLES, TIE, print_hanging, row_text
from maskery.cli.sentence import _blocks, print_sentence
from maskery.corpus.encode import Flag
from maskery.edit import Edit
from maskery.explain.chips import SIGNS, segment_name
from maskery.explain.sentence import masked_sentence
from maskery.explain.words import words_of
from maskery.recipes.recipe import recipe

TEXT = "The unbelievable dog sees a small house and finds the quiet bird."
HAN = "我们今天去北京大学看周杰伦演唱会"
SIMILAR = {"mask": 0.0, "random": 0.0, "keep": 0.0, "similar": 1.0}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return build(tmp_path_factory.mktemp("sentence"))


@pytest.fixture(scope="module")
def synonyms(tmp_path_factory):
    path = tmp_path_factory.mktemp("like") / "like.txt"
    path.write_text("cat dog bird\nsees takes finds\nsmall quiet\n", encoding="utf-8")
    return path


def printed(found, width, colour=False):
    console = Console(width=width, record=True, markup=False, highlight=False, force_terminal=colour, file=None)
    with console.capture() as taken:
        print_sentence(found, console)
    return taken.get()


def test_several_recipes_side_by_side(corpus, synonyms, capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "300")
    page = tmp_path / "sentence.html"
    arguments = [
        "inspect",
        "--compare",
        "bert, bert-wwm,spanbert,macbert",
        "--text",
        TEXT,
        "--corpus",
        str(corpus.path),
    ]
    arguments += ["--set", f"knowledge.synonyms={synonyms}", "--draws", "2"]
    assert main([*arguments, "--html", str(page)]) == 0
    captured = capsys.readouterr()
    lines = captured.out.splitlines()
    assert [line.split(":")[0] for line in lines[:4]] == ["bert", "bert-wwm", "spanbert", "macbert"]
    assert "geometric 0.2, 1-10" in lines[2]
    assert "weights 0.4/0.3/0.2/0.1" in lines[3]
    table = lines[5 : lines.index("", 5)]
    assert len(table) == 1 + 4 * 2
    assert "similar words:" in captured.err
    assert "≈" in captured.out
    assert "mk-similar" in page.read_text(encoding="utf-8")
    check_page(page.read_text(encoding="utf-8"))

    assert main([*arguments, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["text"] == TEXT
    assert list(found["recipes"]) == ["bert", "bert-wwm", "spanbert", "macbert"]
    for made in found["recipes"].values():
        assert len(made["draws"]) == 2
        for draw in made["draws"]:
            assert draw["original"] == found["tokens"]
            changed = [old != new for old, new in zip(found["tokens"], draw["tokens"], strict=True)]
            assert not any(change and edit == "none" for change, edit in zip(changed, draw["edits"], strict=True))
            assert any(edit != "none" for edit in draw["edits"])
    assert {edit for draw in found["recipes"]["macbert"]["draws"] for edit in draw["edits"]}.isdisjoint({"mask"})


def test_one_recipe_and_its_stages(corpus, capsys):
    arguments = ["inspect", "ernie", "--text", TEXT, "--corpus", str(corpus.path), "--json"]
    assert main(arguments) == 0
    found = json.loads(capsys.readouterr().out)["recipes"]
    assert list(found) == ["ernie 1/3 token", "ernie 2/3 phrase", "ernie 3/3 entity"]
    assert main([*arguments, "--step", "999999"]) == 0
    found = json.loads(capsys.readouterr().out)["recipes"]
    assert {name: made["unit"] for name, made in found.items()} == {"ernie": "entity"}
    assert main(["inspect", "bert", "--text", "cat", "--corpus", str(corpus.path)]) == 0, "one token is a sentence"
    assert "cat" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("changes", "told", "chinese"),
    [({"ngram.longest": 6}, "; one run of 2 to 6 words masked whole", "连续 2 到 6 个词"),
     ({"order.sentences": True}, "; sentences in random order", "句子顺序随机"),
     ({"order.rotate": 0.5}, "; 50% of the segments rotated", "50% 的段落被轮转"),
     ({"rate": 0, "shuffle.rate": 0.05}, "nothing is chosen; 5% of the runs of 3 shuffled", "不选任何位置"),
     ({"rate": 0}, "nothing is corrupted", "不加噪")],
    ids=["ngram", "sentences", "rotate", "shuffle", "nothing"],
)  # fmt: skip
def test_all_that_is_done_to_a_text_is_told(corpus, changes, told, chinese):
    made = recipe("bert", {f"corruption.{key}": value for key, value in changes.items()})
    (masking,) = masked_sentence([made], corpus, TEXT).maskings
    assert masking.described(words_of("en")).endswith(told)
    assert chinese in masking.described(words_of("zh"))


def test_similar_words_take_the_place_of_others(corpus, synonyms):
    changes = {"corruption.rate": 0.9, "corruption.replace": SIMILAR, "knowledge.synonyms": str(synonyms)}
    rows = masked_sentence([recipe("macbert", changes)], corpus, TEXT, draws=20).maskings[0].rows
    names = corpus.tokenizer.tokens
    put = set(zip(names(rows.original), names(rows.ids), [Edit(code).name for code in rows.edit], strict=True))
    similar = {(old, new) for old, new, edit in put if edit == "SIMILAR"}
    groups = [{"cat", "dog", "bird"}, {"sees", "takes", "finds"}, {"small", "quiet"}]
    assert similar
    assert all(any({old, new} <= group for group in groups) for old, new in similar)
    assert "house" in {old for old, _, edit in put if edit == "UNMATCHED"}


@pytest.mark.parametrize("width", [40, 72, 120])
def test_every_line_fits_and_columns_stand_below_each_other(width):
    recipes = [recipe("bert"), recipe("bert-wwm"), recipe("spanbert")]
    found = masked_sentence(recipes, mixed_tokenizer(), HAN, draws=2)
    out = printed(found, width)
    blocks = [block.splitlines() for block in out.split("\n\n")[1:-1]]
    margin = len("bert-wwm") + 2
    seen = []
    for head, *draws in (block for block in blocks if block and block[0].startswith(" " * margin)):
        assert len(draws) == 6
        assert all(cell_len(line) <= width for line in (head, *draws))
        places = [0, *(cell_len(head[: found.start()]) for found in re.finditer(rf"(?<=[ {TIE}])(?=[^ {TIE}])", head))]
        for line in draws:
            edges = {cell_len(line[:at]) for at in range(len(line))}
            assert set(places) <= edges | {cell_len(line)} | {place for place in places if place > cell_len(line)}
        seen += [token for token in re.split(rf"[ {TIE}]+", head) if token]
    assert seen == found.tokenizer.shown(found.plain_rows.ids)


@given(st.lists(st.tuples(st.integers(1, 30), st.booleans()), min_size=1, max_size=40), st.integers(5, 60))
def test_blocks_hold_every_column_once_and_part_no_word_that_fits(columns, room):
    widths, tied = [width for width, _ in columns], [tie for _, tie in columns[:-1]] + [False]
    blocks = list(_blocks(widths, tied, room))
    assert [place for block in blocks for place in block] == list(range(len(widths)))
    starts = [0, *(place + 1 for place, tie in enumerate(tied) if not tie)]
    words = {place: (begin, end) for begin, end in pairwise(starts) for place in range(begin, end)}
    for block in blocks:
        assert len(block) == 1 or sum(widths[place] for place in block) <= room
        begin, end = words[block.stop - 1]
        if block.stop < end:
            assert block.start >= begin
            assert block.start > begin or sum(widths[begin:end]) > room


def test_rows_that_change_their_length_stand_one_by_one(corpus):
    changes = {"corruption": {"rate": 0.5, "replace": {"mask": 0.0, "random": 0.0, "keep": 0.0, "delete": 1.0}}}
    found = masked_sentence([recipe("roberta", changes)], corpus, TEXT, draws=2)
    out = printed(found, 200)
    assert "  text [CLS]" in out
    assert re.search(r"  roberta 1 \[CLS\]", out)
    longest = max(out.splitlines(), key=len)
    assert longest.startswith("  text")


def test_signs_colours_and_letters_are_all_different(corpus):
    kinds = set(Edit) - {Edit.NONE}
    assert set(SIGNS) == kinds
    assert len(set(SIGNS.values())) == len({STYLES[edit] for edit in kinds}) == len(kinds)
    assert [segment_name(number) for number in (0, 1, 2, 30)] == ["A", "B", "C", "30"]


def test_a_row_shows_words_signs_and_what_stood_there():
    tokenizer = mixed_tokenizer()
    found = masked_sentence([recipe("bert", {"corruption.rate": 0})], tokenizer, HAN, draws=1)
    rows = found.maskings[0].rows
    assert rows.flags[1] & Flag.WORD
    edits = [edit for edit in Edit if edit]
    rows.edit[1 : 1 + len(edits)] = edits
    rows.ids[1 : 1 + len(edits)] = tokenizer.id("[MASK]")
    text = row_text(rows, list(range(len(rows.ids))), tokenizer)
    old = tokenizer.shown(rows.original)
    for slot, edit in enumerate(edits, 1):
        assert f"{old[slot]}{SIGNS[edit]}" + ("[MASK]" if edit is not Edit.KEEP else "") in text.plain
    words = re.sub("[^ ]*?\\[MASK\\]", "", text.plain)
    assert TIE in words
    assert {span.style for span in text.spans} >= {STYLES[edit] for edit in edits}
    console = Console(width=30, force_terminal=True, color_system="truecolor")
    with console.capture() as taken:
        print_hanging("  A ", text, console)
    shown = [re.sub("\x1b\\[[0-9;]*m", "", line) for line in taken.get().splitlines()]
    assert all(cell_len(line) <= 30 for line in shown)
    assert all(line.startswith("    ") for line in shown[1:])
    assert "\x1b[" in taken.get()


def test_no_colour_where_none_is_wanted(corpus, capsys, monkeypatch):
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    arguments = ["inspect", "bert", "--corpus", str(corpus.path), "--rows", "20", "--set", "training.length=32"]
    assert main(arguments) == 0
    plain = capsys.readouterr().out
    assert "\x1b" not in plain
    assert "→[MASK]" in plain
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    assert main(arguments) == 0
    assert "\x1b[1;31m" in capsys.readouterr().out
    monkeypatch.setenv("NO_COLOR", "1")
    assert main(arguments) == 0
    assert "31m" not in capsys.readouterr().out


def test_a_bar_comes_only_late(capsys):
    now = [0.0]
    for pause, told in ((0.1, ""), (1.5, "rows: done")):
        with late_progress("rows", 4, clock=lambda: now[0]) as update:
            for done in range(4):
                now[0] += pause
                update(done)
        err = capsys.readouterr().err
        assert err == "" if not told else told in err


def test_what_is_refused(corpus, tmp_path, capsys):
    here, text = ["--corpus", str(corpus.path)], ["--text", TEXT]
    for arguments, told in (
        (["--compare", "bert,bret", *text, *here], "unknown recipe 'bret'"),
        (["--compare", "bert,roberta", *here], "--compare is about a text, and there is none"),
        (["--compare", " , ", *text, *here], "--compare names no recipe"),
        (["--compare", "bert,roberta,bert", *text, *here], "--compare bert,roberta\n"),
        (["roberta", "--compare", "bert,roberta", *text, *here], "--compare roberta,bert\n"),
        (["--compare", "bert,macbert", *text, *here], "macbert puts words of like meaning"),
        (["--compare", "bert", *text, "--corpus", str(tmp_path / "no")], "maskery corpus build"),
        (["bert", "--text", " \n ", *here], "the text has 0 tokens"),
        (["bert", "--text", "cat " * 200, *here], "1 to 128 tokens"),
        (["bert", *text, *here, "--draws", "0"], "draw it 1 to 100 times"),
        (["bert", *text, *here, "--rows", "9"], "--rows has no meaning with --text"),
        (["bert", *here, "--draws", "2"], 'add --text "a sentence"'),
        (["bert", *here, "--flow", *text, "--draws", "2"], "--draws has no meaning with --flow"),
        (["bert", *here, "--flow", "--text", "cat " * 60], "give a text of 1 to 48 tokens"),
        (["bert", *here, "--pair", TEXT], "--pair is about a text, and there is none"),
        (["bert", *here, *text, "--pair", " "], "the second text has 0 tokens"),
        (["bert", *here, *text, "--order", "2,1"], "bert reads full, in no order that could be given"),
        (["xlnet", *here, *text, "--order", "2,2"], "does not name some of the"),
        (["xlnet", *here, *text, "--order", "two"], "--order 3,2,4,1"),
        (["xlnet", *here, *text, "--order", "2,1", "--draws", "2"], "leave out --compare and --draws"),
        (["bert", *text, *here, "--lang", "fr"], "choices: en, zh"),
        (["bert", "--flow", "--step", "1"], "--step has no meaning with --flow"),
        (["bert", *here, "--step", "1000000"], "--step 999999"),
        (["bert", *here, "--step", "-1"], "the steps 0 to 999,999"),
        (["bert", *here, "--rows", "0"], "--rows 1000"),
        (here, "maskery inspect bert --corpus DIR"),
    ):
        assert main(["inspect", *arguments]) == 2, arguments
        captured = capsys.readouterr()
        assert told in captured.err + "\n"
        assert captured.out == ""


def test_rows_of_a_later_step_and_a_short_stage(corpus, capsys):
    settings = ["--set", "training.steps=9", "--set", "training.batch=8", "--set", "training.phases=[]"]
    arguments = ["inspect", "ernie", "--corpus", str(corpus.path), *settings, "--set", "training.length=32"]
    assert main([*arguments, "--step", "4", "--rows", "100"]) == 0
    captured = capsys.readouterr()
    assert "from step 4 on (stage 2 of 3: phrase)" in captured.out
    assert "16 rows measured, not 100: then another stage begins" in captured.err
    assert main([*arguments, "--step", "4", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["step"], found["unit"], found["rows"]) == (4, "phrase", 16)
    assert np.isclose(sum(found["replaced"].values()), 1)


# Marks, pairs and orders


@pytest.fixture(scope="module")
def marked(corpus, tmp_path_factory):
    folder = tmp_path_factory.mktemp("marked")
    phrases, entities = folder / "phrases.txt", folder / "entities.txt"
    phrases.write_text("small house\nquiet bird\nnever there\n", encoding="utf-8")
    entities.write_text("dog\n", encoding="utf-8")
    return corpus.mark(folder / "corpus", phrases=phrases, entities=entities)


def test_a_text_is_marked_as_the_corpus_is(marked, corpus):
    """The phrases of the store stand in its flags; what they are in a text is found again by a walk over its words."""
    from maskery.corpus.encode import encode
    from maskery.corpus.marked import marked_like

    piece = encode(TEXT, marked.tokenizer, marked.segmenter)
    found = marked_like(marked, piece)
    names = marked.tokenizer.tokens(piece.tokens)
    expected = set()
    for phrase in (["small", "house"], ["quiet", "bird"]):
        stands = any(
            marked.tokenizer.tokens(marked.tokens[at : at + 2]) == phrase
            for at in np.flatnonzero(marked.flags & Flag.PHRASE).tolist()
        )
        expected |= {names.index(word) for word in phrase} if stands else set()
    marks = found.flags & (Flag.PHRASE | Flag.IN_PHRASE)
    assert expected
    assert set(np.flatnonzero(marks).tolist()) == expected
    assert found.kinds == {"phrases", "entities"}
    assert not (marked_like(corpus, piece).flags & (Flag.PHRASE | Flag.ENTITY)).any()


def test_ernie_takes_the_phrases_of_a_marked_corpus_whole(marked, corpus, capsys):
    """Before, phrase rows were those of whole words, whatever the corpus marks."""
    arguments = ["inspect", "--compare", "ernie,bert-wwm", "--text", TEXT, "--draws", "30", "--json"]
    units = {}
    for store in (marked, corpus):
        assert main([*arguments, "--corpus", str(store.path)]) == 0
        found = json.loads(capsys.readouterr().out)
        at = found["tokens"].index("small")
        draws = found["recipes"]["ernie 2/3 phrase"]["draws"]
        units[store] = {(draw["edits"][at] == "none", draw["edits"][at + 1] == "none") for draw in draws}
    assert units[marked] == {(True, True), (False, False)}, "never one word of it alone"
    assert (True, False) in units[corpus] or (False, True) in units[corpus]


def test_why_words_are_taken_for_phrases_is_told(marked, corpus):
    asked = [recipe("ernie")]
    told = [
        masked_sentence(asked, store, text).maskings[1].described(words_of("en"))
        for store, text in ((marked, TEXT), (marked, "the cat"), (corpus, TEXT))
    ]
    assert told[0].endswith("in every epoch") or told[0].endswith("copy of the text")
    assert told[1].endswith("nothing in the text is marked in the corpus, so words are taken")
    assert told[2].endswith("the corpus has no marks of this kind (maskery corpus mark), so words are taken")


def test_a_pair_of_texts(corpus, capsys):
    arguments = ["inspect", "bert", "--text", "the dog", "--pair", "a bird", "--corpus", str(corpus.path)]
    assert main([*arguments, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["tokens"] == ["[CLS]", "the", "dog", "[SEP]", "a", "bird", "[SEP]"]
    assert found["pair"] == "a bird"
    assert main(["inspect", "xlnet", *arguments[2:], "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["tokens"] == ["the", "dog", "[SEP]", "a", "bird", "[SEP]", "[CLS]"], "as its own rows are framed"


def test_an_order_of_ones_own(capsys):
    """The example of the notes on XLNet: 3, 2, 4, 1."""
    arguments = ["inspect", "xlnet", "--text", "语言序列", "--order", "3,2,4,1"]
    assert main([*arguments, "--json"]) == 0
    flow = json.loads(capsys.readouterr().out)["flow"]
    assert flow["asked"] == ["语", "言", "序", "列", "", ""]
    seen = [{other + 1 for other, sees in enumerate(line) if sees} for line in flow["query"]["visible"]]
    assert seen[:4] == [{2, 3, 4}, {3}, set(), {2, 3}]
    assert main(["inspect", "xlnet", "--text", "语言序列", "--order", "4,1", "--json"]) == 0
    flow = json.loads(capsys.readouterr().out)["flow"]
    assert flow["asked"] == ["语", "", "", "列", "", ""]
    seen = [{other + 1 for other, sees in enumerate(line) if sees} for line in flow["query"]["visible"]]
    assert (seen[0], seen[3]) == ({2, 3, 4}, {2, 3}), "what is not named is known from the beginning"
    assert main([*arguments, "--flow"]) == 0
    assert "Why two streams" in capsys.readouterr().out


def test_order_and_targets_of_a_text_without_a_corpus(capsys, tmp_path):
    page = tmp_path / "text.html"
    assert main(["inspect", "xlnet", "--text", "New York is a city", "--html", str(page)]) == 0
    captured = capsys.readouterr()
    assert "In turn: " in captured.out
    assert "The query stream sees" in captured.out
    assert "no --corpus: the vocabulary is the words of the text" in captured.err
    assert "The query stream sees" in check_page(page.read_text(encoding="utf-8")).text
    assert main(["inspect", "bert", "--text", "New York is a city"]) == 0
    assert "Who sees whom" not in capsys.readouterr().out, "everybody sees everybody"
    assert main(["inspect", "bert", "--text", "New York is a city", "--flow"]) == 0
    assert "masked_token: no target can reach its answer" in capsys.readouterr().out


def test_the_first_draw_is_the_row_whose_order_is_drawn(corpus, capsys):
    assert main(["inspect", "xlnet", "--text", TEXT, "--corpus", str(corpus.path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    chosen = [edit != "none" for edit in found["recipes"]["xlnet"]["draws"][0]["edits"]]
    assert chosen == [bool(answer) for answer in found["flow"]["asked"]]
