"""Tagged text: CoNLL, sentences of tokens and tags, and texts with spans, all to exact characters."""

import json
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maskery.errors import InputError
from maskery.tasks.examples import Span
from maskery.tasks.read.files import read_examples
from maskery.tasks.read.tags import is_unspaced, joined, spans_of
from maskery.tasks.settings import ColumnsConfig

ENGLISH = "EU B-ORG\nrejects O\nGerman B-MISC\ncall O\n. O\n\nPeter B-PER\nBlackburn I-PER\n"
CHINESE = "我 O\n在 O\n北 B-LOC\n京 E-LOC\n王 B-PER.NAM\n小 M-PER.NAM\n明 E-PER.NAM\n她 S-PER.NOM\n\n好 O\n"


def written(tmp_path, text, name="train.txt"):
    path = tmp_path / name
    path.write_bytes(text.encode())
    return path


def read(path, task="tag", split="train", labelled=None, **columns):
    return read_examples(path, task, split, ColumnsConfig(**columns), labelled=labelled)


def marked(item):
    return [(item.text_a[span.start : span.stop], span.kind) for span in item.spans]


@pytest.mark.parametrize("name", ["train.txt", "train.conll", "train.bio", "train.tsv"])
@pytest.mark.parametrize("sign", [" ", "\t"], ids=["space", "tab"])
@pytest.mark.parametrize("task", ["tag", None])
def test_conll(tmp_path, name, sign, task):
    found = read(written(tmp_path, ENGLISH.replace(" ", sign), name), task)
    assert found.task == "tag"
    assert [item.text_a for item in found] == ["EU rejects German call .", "Peter Blackburn"]
    assert marked(found[0]) == [("EU", "ORG"), ("German", "MISC")]
    assert marked(found[1]) == [("Peter Blackburn", "PER")]
    assert [item.guid for item in found] == ["train-0", "train-1"]
    assert [item.line for item in found] == [1, 7]
    assert [found[1].text_a[slice(*word)] for word in found[1].words] == ["Peter", "Blackburn"]
    assert "BIO" in "\n".join(found.notes)


def test_chinese_is_joined_without_spaces(tmp_path):
    found = read(written(tmp_path, CHINESE))
    assert [item.text_a for item in found] == ["我在北京王小明她", "好"]
    assert marked(found[0]) == [("北京", "LOC"), ("王小明", "PER.NAM"), ("她", "PER.NOM")]
    assert found[1].spans == ()
    notes = "\n".join(found.notes)
    assert "BMES" in notes
    assert "without spaces" in notes


def test_emoji_and_combining_marks_keep_their_places(tmp_path):
    tokens = ["看", "👩‍👩‍👧", "和", "e\u0301", "北", "京", "\u3000", "𠮷", "野"]
    tags = ["O", "B-X", "O", "S-X", "B-LOC", "E-LOC", "O", "B-PER", "E-PER"]
    lines = "".join(f"{token} {tag}\n" for token, tag in zip(tokens, tags, strict=True))
    item = read(written(tmp_path, lines + "\n" + CHINESE))[0]
    assert marked(item) == [("👩‍👩‍👧", "X"), ("e\u0301", "X"), ("北京", "LOC"), ("𠮷野", "PER")]
    assert [item.text_a[slice(*word)] for word in item.words] == tokens


def test_words_of_letters_keep_their_spaces():
    assert joined(["我", "用", "New", "York", "卡"], True)[0] == "我用New York卡"
    assert joined(["a", "p", "p", "好"], True)[0] == "app好"
    assert not is_unspaced([["서울은", "크다"]])


def test_more_columns_and_document_lines(tmp_path):
    text = "-DOCSTART- -X- O O\n\nEU NNP I-NP I-ORG\nrejects VBZ I-VP O\n"
    found = read(written(tmp_path, text))
    assert marked(found[0]) == [("EU", "ORG")]
    notes = "\n".join(found.notes)
    for told in ("the tag is column 4", "1 -DOCSTART- line passed over", "1 span that no B- opens"):
        assert told in notes
    assert marked(read(written(tmp_path, text), label="3")[0]) == [("EU", "NP"), ("rejects", "VP")]


def test_a_space_of_its_own_is_a_token(tmp_path):
    found = read(written(tmp_path, "北 B-LOC\n京 I-LOC\n  O\n好 O\n吃 O\n"))
    assert found[0].text_a == "北京 好吃"
    assert len(found[0].words) == 5


@pytest.mark.parametrize("header", ["tokens\ttags\n", "text_a\tlabel\n", ""])
def test_sentences_of_tokens_and_tags(tmp_path, header):
    path = written(tmp_path, header + "青 岛 队 赢 了\tB-ORG I-ORG I-ORG O O\n好 人\tO O\n", "train.tsv")
    for task in ("tag", None) if header != "text_a\tlabel\n" else ("tag",):
        found = read(path, task)
        assert [item.text_a for item in found] == ["青岛队赢了", "好人"]
        assert marked(found[0]) == [("青岛队", "ORG")]
        assert found[0].guid == ("train-1" if header else "train-0")


def test_lists_of_tokens_and_tags(tmp_path):
    record = {"tokens": ["New", "York", "won"], "ner_tags": ["B-LOC", "I-LOC", "O"]}
    found = read(written(tmp_path, json.dumps(record) + "\n", "train.jsonl"), None)
    assert marked(found[0]) == [("New York", "LOC")]


@pytest.mark.parametrize(
    "label",
    [
        {"ORG": {"曼联": [[3, 4]]}, "PER": {"温格": [[0, 1]]}},
        [[3, 5, "ORG"], [0, 2, "PER"]],
        [{"start": 0, "end": 2, "type": "PER"}, {"start": 3, "end": 5, "type": "ORG", "text": "曼联"}],
    ],
    ids=["cluener", "triples", "objects"],
)
def test_texts_with_spans(tmp_path, label):
    name = "label" if isinstance(label, dict) else "entities"
    found = read(written(tmp_path, json.dumps({"text": "温格👏曼联!", name: label}) + "\n", "train.jsonl"), None)
    assert found[0].spans == (Span(0, 2, "PER"), Span(3, 5, "ORG"))


def test_spans_elsewhere_and_spans_that_overlap(tmp_path):
    label = {"ORG": {"曼联": [[0, 1]], "曼": [[2, 2]]}}
    found = read(written(tmp_path, json.dumps({"text": "赢了曼联", "label": label}) + "\n", "train.jsonl"))
    assert marked(found[0]) == [("曼联", "ORG")]
    notes = "\n".join(found.notes)
    assert "1 span that stood elsewhere than said" in notes
    assert "1 span inside or across longer ones: left out" in notes


@pytest.mark.parametrize(
    ("name", "text", "line", "part"),
    [
        ("t.tsv", "tokens\ttags\na b\tO O\na b c\tO O\n", 3, "3 tokens and 2 tags"),
        ("t.txt", "EU B-ORG\nrejects\n", 2, "1 column, the first has 2"),
        ("t.conll", "EU\nrejects\n", 1, "no tag"),
        ("t.txt", "a O\n\nEU B-ORG\nrejects VERB\n", 4, "'VERB' is of no scheme"),
        ("t.conll", "\n\n", None, "no sentence"),
        ("t.jsonl", '{"text": "ab", "label": {"X": {"c": [[0, 0]]}}}\n', 1, "it stands nowhere"),
        ("t.jsonl", '{"text": "aba", "label": {"X": {"a": [[1, 1]]}}}\n', 1, "in several places"),
        ("t.jsonl", '{"text": "ab", "entities": [[1, 9, "X"]]}\n', 1, "the text has 2"),
        ("t.jsonl", '{"text": "ab", "entities": [[1]]}\n', 1, "cannot be read"),
        ("t.jsonl", '{"tokens": ["a"], "tags": [3]}\n', 1, "not words or their tags"),
    ],
)  # fmt: skip
def test_broken_tags(tmp_path, name, text, line, part):
    path = written(tmp_path, text, name)
    with pytest.raises(InputError) as caught:
        read(path)
    assert part in str(caught.value)
    assert caught.value.line == line
    assert caught.value.repair


def test_untagged_text(tmp_path):
    found = read(written(tmp_path, "EU\nrejects\n", "test.conll"), split="test")
    assert found[0].spans is None
    assert found[0].text_a == "EU rejects"


@pytest.mark.parametrize(
    ("tags", "spans", "counts"),
    [
        ("B-A I-A O B-B", [(0, 2, "A"), (3, 4, "B")], {}),
        ("B-A B-A I-A", [(0, 1, "A"), (1, 3, "A")], {}),
        ("I-A I-A O I-B", [(0, 2, "A"), (3, 4, "B")], {"unopened": 2}),
        ("B-A I-B", [(0, 1, "A"), (1, 2, "B")], {"unopened": 1}),
        ("B-A M-A E-A S-A", [(0, 3, "A"), (3, 4, "A")], {}),
        ("B-A M-A O B-A E-A", [(0, 2, "A"), (3, 5, "A")], {"unclosed": 1}),
        ("E-A E-A", [(0, 1, "A"), (1, 2, "A")], {"unopened": 2}),
        ("B-A L-A U-B", [(0, 2, "A"), (2, 3, "B")], {}),
        ("B E S B M E", [(0, 2, "word"), (2, 3, "word"), (3, 6, "word")], {}),
    ],
)
def test_schemes(tags, spans, counts):
    words = [(at, at + 1) for at in range(len(tags.split()))]
    found: Counter[str] = Counter()
    assert spans_of(tags.split(), words, found) == tuple(Span(*span) for span in spans)
    assert +found == Counter(counts)


def written_in(scheme, lengths):
    """Tags and spans of pieces that follow one another: 0 is a word outside, n a span of n words."""
    tags, spans, at = [], [], 0
    for length in lengths:
        if not length:
            tags.append("O")
            at += 1
            continue
        spans.append(Span(at, at + length, "X"))
        single, first, inside, last = scheme
        tags += [f"{single}-X"] if length == 1 else [f"{first}-X", *[f"{inside}-X"] * (length - 2), f"{last}-X"]
        at += length
    return tags, tuple(spans)


@given(st.sampled_from(["BBII", "SBME", "SBIE", "UBIL"]), st.lists(st.integers(0, 5), max_size=12))
def test_what_a_scheme_writes_is_read_back(scheme, lengths):
    tags, spans = written_in(scheme, lengths)
    counts: Counter[str] = Counter()
    assert spans_of(tags, [(at, at + 1) for at in range(len(tags))], counts) == spans
    assert not +counts


@given(st.lists(st.text(st.characters(exclude_categories=("Cs",)), min_size=1), max_size=10), st.booleans())
def test_words_stand_where_they_are_said_to(tokens, characters):
    text, words = joined(tokens, characters)
    assert [text[slice(*word)] for word in words] == tokens
    assert len(text) - sum(map(len, tokens)) <= max(0, len(tokens) - 1)
