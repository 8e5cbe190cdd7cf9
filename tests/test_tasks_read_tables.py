"""Labelled tables: which column is what is found by itself and told; doubt and bad input are refused with a place."""

import json

import pytest

from maskery.errors import InputError, TextError, UnknownName
from maskery.tasks.read.columns import Seen
from maskery.tasks.read.files import read_examples
from maskery.tasks.read.values import counted
from maskery.tasks.settings import ColumnsConfig

AUTO = ColumnsConfig()
REVIEWS = [
    ("1", "The room was clean and the breakfast was very good indeed."),
    ("0", "Nobody answered the phone, and the lift did not work at all."),
    ("1", "We would come back at once, the view alone is worth it!"),
    ("0", "Far too loud; the street goes on all night under the window."),
]


@pytest.fixture
def written(tmp_path):
    def write(text, name="train.tsv"):
        path = tmp_path / name
        path.write_bytes(text.encode())
        return path

    return write


def tsv(rows):
    return "".join("\t".join(row) + "\n" for row in rows)


def read(path, task="classify", split="train", labelled=None, seen=None, **columns):
    return read_examples(path, task, split, ColumnsConfig(**columns), labelled=labelled, seen=seen or Seen())


def refused(path, *parts, line=None, task="classify", split="train", **columns):
    with pytest.raises(InputError) as caught:
        read(path, task, split, **columns)
    error = caught.value
    assert error.repair, "every refusal has a repair"
    for part in parts:
        assert part in str(error)
    assert str(path) in str(error.where)
    if line is not None:
        assert error.line == line
    return error


def test_classic_rows_without_a_header(written):
    found = read(written(tsv(REVIEWS)))
    assert [(item.label, item.text_a) for item in found] == REVIEWS
    assert [item.guid for item in found] == ["train-0", "train-1", "train-2", "train-3"]
    assert [item.line for item in found] == [1, 2, 3, 4]
    assert all(item.text_b is None for item in found)
    assert found.fields == ("text",)
    notes = "\n".join(found.notes)
    for told in ("no header", "label = column 1 (by its values)", "text = column 2 (by its values)", "0 x 2, 1 x 2"):
        assert told in notes or told.replace("0 x 2, 1 x 2", "1 x 2, 0 x 2") in notes


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0), (2, 0, 1)])
@pytest.mark.parametrize(
    "names",
    [("text_a", "text_b", "label"), ("premise", "hypothesis", "gold_label"), ("Sentence1", "Sentence2", "Score")],
)
def test_columns_in_any_order(written, names, order):
    rows = [("a cat sat", "a cat was there", "1"), ("a dog ran", "it slept", "0"), ("it rained", "it was wet", "1")]
    table = [names, *rows]
    path = written(tsv([[row[at] for at in order] for row in table]))
    found = read(path, None)
    assert found.task == "pair"
    assert found.fields == names[:2]
    assert [(*item.texts, item.label) for item in found] == rows
    assert found[0].guid == "train-1", "the header is a record of the file"
    assert "task = pair" in "\n".join(found.notes)


def test_quotes_are_plain_characters_in_tsv_and_quote_in_csv(written):
    rows = [("1", 'a lone " quote, and a comma'), ("0", '"quoted" words'), ("1", 'the 5" disk'), ("0", "it's fine")]
    assert [item.text_a for item in read(written(tsv(rows)))] == [text for _, text in rows]
    csv = 'label,text\n1,"one ""quoted"" word, and\na line break"\n0,plain words\n'
    found = read(written(csv, "train.csv"))
    assert [item.text_a for item in found] == ['one "quoted" word, and\na line break', "plain words"]
    assert [item.line for item in found] == [2, 4]


@pytest.mark.parametrize(
    "name", ["train.jsonl", "train.json", "list.json", "train.parquet", "train.csv.gz", "train.jsonl.zst"]
)
def test_the_same_rows_in_every_format(tmp_path, name):
    import gzip

    import pyarrow
    import pyarrow.parquet
    import zstandard

    rows = [{"sentence": text, "label": int(label), "id": 7} for label, text in REVIEWS]
    path, lines = tmp_path / name, "".join(json.dumps(row) + "\n" for row in rows)
    if name == "list.json":
        path.write_text(json.dumps(rows, indent=1))
    elif name.endswith(".parquet"):
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    elif name.endswith(".gz"):
        path.write_bytes(gzip.compress(("label,sentence\n" + "".join(f'{a},"{b}"\n' for a, b in REVIEWS)).encode()))
    elif name.endswith(".zst"):
        path.write_bytes(zstandard.compress(lines.encode()))
    else:
        path.write_text(lines)
    found = read(path, None)
    assert [(item.label, item.text_a) for item in found] == REVIEWS
    assert found.task == "classify"


def test_text_keeps_its_characters(written):
    rows = [("a", "  两个 空格 "), ("b", "e\u0301 👩‍👩‍👧\u3000"), ("a", "\u200b零宽"), ("b", "結果は？")]
    assert [item.text_a for item in read(written(tsv(rows)))] == [text for _, text in rows]


def test_columns_by_name_and_by_number(written):
    path = written(tsv([("kind", "one", "two", "text"), ("x", "a b", "c d", "q"), ("y", "e f", "g h", "r")]))
    by_name = read(path, text=("two", "one"), label="kind")
    assert [item.texts for item in by_name] == [("c d", "a b"), ("g h", "e f")]
    assert [item.texts for item in read(path, text=("3", "2"), label="1", header="yes")] == [
        item.texts for item in by_name
    ]
    assert [item.label for item in by_name] == ["x", "y"]
    refused(path, "--label size", "kind, one, two", label="size")
    refused(path, "--text 5", text=("5",), header="no")


def test_columns_beside_the_text_only_when_asked(written):
    rows = [("text", "label", "stars", "place"), *((text, label, "4", "Rome") for label, text in REVIEWS)]
    path = written(tsv(rows))
    assert read(path).meta == ()
    assert read(path)[0].meta == ()
    assert "not read: 'stars', 'place'" in "\n".join(read(path).notes)
    found = read(path, meta=("stars", "place"))
    assert found.meta == ("stars", "place")
    assert found[0].meta == (4.0, "Rome")
    assert read(path, meta=("stars",), seen=Seen(numbers=()))[0].meta == ("4",), "names in training, so names here"


def test_regress_and_what_scores_are(written):
    rows = [("text_a", "text_b", "score", "genre"), ("a b", "c d", "4.75", "news"), ("e f", "g", "0", "news")]
    found = read(written(tsv(rows)), None)
    assert found.task == "regress"
    assert [item.label for item in found] == [4.75, 0.0]
    whole = [("text_a", "text_b", "score")] + [("a b", "c d", str(n % 6)) for n in range(12)]
    assert read(written(tsv(whole)), None).task == "regress"
    assert read(written(tsv(whole)), "pair")[5].label == "5"


@pytest.mark.parametrize("bad", ["nan", "inf", "-Infinity", "good", "1_000"])
def test_scores_that_are_no_numbers(written, bad):
    rows = [("text", "score"), ("a b", "1.5"), ("c d", "2"), ("e f", bad), ("g h", "3")]
    refused(written(tsv(rows)), bad, line=4, task="regress")


def test_scores_are_no_classes_unless_asked(written):
    path = written(tsv([("text", "score"), ("a b", "1.5"), ("c d", "2"), ("e f", "2.5"), ("g h", "1.5")]))
    refused(path, "fractions", "--task regress", task="classify")
    assert read(path, label="score")[0].label == "1.5"


def test_a_label_that_the_task_cannot_have_is_not_replaced_unasked(written):
    rows = [("text_a", "text_b", "score", "entailment")]
    rows += [("a man sings", "a man is loud", f"{n}.5", "NEUTRAL" if n % 2 else "ENTAILMENT") for n in range(5)]
    path = written(tsv(rows))
    refused(path, "'score'", "--label entailment", task="pair")
    assert read(path, "pair", label="entailment")[0].label == "ENTAILMENT"
    assert read(path, "regress")[0].label == 0.5


def test_multilabel(written):
    for sign in "|,;":
        rows = [("text", "labels"), ("one text", f"a{sign}b"), ("two text", "b"), ("three text", "")]
        found = read(written(tsv(rows)), "multilabel")
        assert [item.label for item in found] == [frozenset("ab"), frozenset("b"), frozenset()]
        assert f"{sign!r} parts" in "\n".join(found.notes)
    lists = "".join(json.dumps({"text": "some words", "labels": each}) + "\n" for each in (["a", "b, c"], [], ["a"]))
    found = read(written(lists, "train.jsonl"), None)
    assert found.task == "multilabel"
    assert [len(item.label) for item in found] == [2, 0, 1]
    refused(written(tsv([("text", "label"), ("w", "a|b"), ("v", "a,b")])), "what parts the labels", task="multilabel")


def test_seq2seq(written):
    rows = [("hello there", "guten Tag"), ("good night", "gute Nacht")]
    for table in (rows, [("source", "target"), *rows], [("id", "input", "output"), *(("7", *row) for row in rows)]):
        found = read(written(tsv(table)), "seq2seq")
        assert [(item.text_a, item.label) for item in found] == rows
    assert read(written(tsv([("source", "target"), *rows])), None).task == "seq2seq"
    refused(
        written(tsv([("one", "two", "three"), ("a", "b", "c")])), "--text A --label B", task="seq2seq", header="yes"
    )


def test_test_files_may_have_a_header_and_no_label(written):
    found = read(written("id\tsentence\n0\tsome words\n1\tand more\n", "test.tsv"), split="test")
    assert [(item.guid, item.text_a, item.label) for item in found] == [
        ("test-1", "some words", None),
        ("test-2", "and more", None),
    ]
    assert "there is no label" in "\n".join(found.notes)
    assert [item.text_a for item in read(written("one\n\ntwo\n", "t.txt"), split="predict")] == ["one", "", "two"]
    seen = Seen(fields=("text",), labels=("0", "1"))
    few = read(written(tsv(REVIEWS[:2]), "test.tsv"), split="test", seen=seen)
    assert [item.label for item in few] == ["1", "0"]
    assert read(written(tsv(REVIEWS)), labelled=False, text=("2",))[0].label is None


def test_labels_that_are_not_read_and_labels_that_are_not_there(written):
    path = written(tsv([("text", "label", "genre"), ("a b", "", "x"), ("c d", "", "y")]), "test.tsv")
    assert [item.label for item in read(path, split="test")] == [None, None]
    small = written(tsv(REVIEWS))
    assert [(item.text_a, item.label) for item in read(small, labelled=False)] == [(text, None) for _, text in REVIEWS]
    pairs = written(tsv([("source", "target"), ("one", "eins")]))
    assert (read(pairs, "seq2seq", labelled=False)[0].texts, len(read(pairs, "seq2seq"))) == (("one",), 1)
    refused(small, "cannot be the label and read as well", text=("1",), label="1")


def test_rank(written):
    rows = [("query", "passage", "label"), ("who", "they", "1"), ("who", "it", "0"), ("what", "it", "2")]
    assert [(item.texts, item.label) for item in read(written(tsv(rows)), "rank")] == [
        ((query, passage), float(label)) for query, passage, label in rows[1:]
    ]


def test_fields_of_one_piece_of_writing(written):
    path = written(tsv([("content", "title", "label"), ("a b", "c", "1"), ("d e", "f", "0")]))
    found = read(path, None)
    assert (found.task, found.fields) == ("classify", ("content", "title"))
    assert read(path, text=("title", "content"))[0].texts == ("c", "a b")


def test_doubt_is_refused_with_the_candidates(written):
    rows = [(f"sentence {n} has some words and goes on", str(n % 2), "xy"[n % 2], str(n % 3)) for n in range(40)]
    error = refused(written(tsv(rows)), "which column is the label", "column 2 (0, 1)", "column 4 (0, 1, 2)")
    assert "--label 2 or --label 3 or --label 4" in error.repair
    two = [(f"{n} is a number, and a good one", f"they say that {n} is prime", "xy"[n % 2]) for n in range(40)]
    error = refused(written(tsv(two)), "which column is the text")
    assert "--text 1,2" in error.repair
    assert read(written(tsv(two)), "pair")[3].texts == two[3][:2]
    assert read(written(tsv(two)), None).task == "pair"
    refused(
        written(tsv([("review", "comment", "label"), ("a b", "c d", "1"), ("e", "f", "0")])),
        "'review'",
        "--text review,comment",
    )
    refused(written("only one column\nand no label\n"), "no column looks like a label")


def test_a_header_of_unknown_names(written):
    named = tsv([("meinung", "sterne"), *((text, label) for label, text in REVIEWS)])
    assert read(written(named)).fields == ("meinung",)
    words = [("good" if n % 2 else "bad", f"number {n} was one of those long evenings") for n in range(20)]
    refused(written(tsv([("sorte", "satz"), *words])), "header or an example", "--header yes", line=1)
    assert len(read(written(tsv([("sorte", "satz"), *words])), header="yes")) == 20
    assert len(read(written(tsv([("sorte", "satz"), *words])), header="no")) == 21
    assert "no header" in "\n".join(read(written(tsv([("good", "words"), *words]))).notes)


def test_names_of_columns_as_values_are_no_header(written):
    rows = [("title", "a text about it all"), ("text", "more of that"), ("title", "and the last one")]
    assert len(read(written(tsv(rows)))) == 3


@pytest.mark.parametrize(
    ("text", "line", "part"),
    [
        ("", None, "the file is empty"),
        ("\n\n", None, "no example"),
        ("text\tlabel\n", 1, "no example under the header"),
        ("text\ttext\tlabel\na\tb\t1\n", 1, "'text' more than once"),
        ("text\tlabel\na b\t1\nc d\t0\nno label here\n", 4, "the line has 1 column, the header (line 1) has 2"),
        ("1\ta b\n0\tc\td\n", 2, "the line has 3 columns, the first line (line 1) has 2"),
        ("text\tlabel\na b\t1\ntext\tlabel\nc d\t0\n", 3, "the header stands here again"),
        ("text\tlabel\na b\t1\nc d\t \n", 3, "there is no label"),
        ("text\tlabel\n\t1\n \t0\n", None, "all texts are empty"),
    ],
)  # fmt: skip
def test_broken_tables(written, text, line, part):
    refused(written(text), part, line=line)


def test_a_label_that_is_really_text(written):
    texts = [f"{n} some words that go on for a while, as sentences do" for n in range(30)]
    refused(written(tsv([("text", "label"), *((text, text[::-1]) for text in texts)])), "no label but text", line=2)
    refused(written(tsv(REVIEWS)), "no label but text", label="2", text=("1",), line=1)


def test_what_is_odd_is_counted(written):
    path = written("text\tlabel\n\t1\n\nwords\t0\n\n")
    notes = "\n".join(read(path).notes)
    assert "1 empty text, kept" in notes
    assert "2 blank lines passed over" in notes
    pairs = [("premise", "hypothesis", "label"), ("a", "b", "entailment"), ("c", "d", "-"), ("e", "f", "neutral")]
    found = read(written(tsv(pairs)), "pair")
    assert len(found) == 2
    assert "1 row whose label is '-'" in "\n".join(found.notes)
    assert [item.guid for item in found] == ["train-1", "train-3"]


def test_bytes_that_are_no_utf8(tmp_path):
    path = tmp_path / "train.tsv"
    path.write_bytes("1\t好吃\n0\t".encode() + b"\xff\xfe bad\n")
    refused(path, "not UTF-8", line=2)
    found = read(path, errors="replace")
    assert "\ufffd" in found[1].text_a
    assert "U+FFFD" in "\n".join(found.notes)


def test_json_that_cannot_be_read(written):
    refused(written('{"text": "a", "label": 1}\n{"text": "b"}\n', "train.jsonl"), "no label", line=2)
    refused(written('{"text": "a", "label": 1}\n{"label": 0}\n', "train.jsonl"), "no field 'text'", line=2)
    refused(written('{"text": "a", "label": 1}\nnonsense\n', "train.jsonl"), "not JSON", line=2)
    refused(written('{"text": ["a"], "label": 1}\n{"text": ["b"], "label": 0}\n', "t.jsonl"), "a list", line=1)
    refused(written("[1, 2]", "train.json"), "no form that is known")
    refused(written("[", "train.json"), "not JSON", line=1)
    refused(written('["a"]\n', "train.jsonl"), "does not hold an object", line=1)


def test_unknown_names(written):
    path = written(tsv(REVIEWS))
    with pytest.raises(UnknownName, match="clasify"):
        read(path, "clasify")
    with pytest.raises(UnknownName, match="xml"):
        read(path, format="xml")
    with pytest.raises(TextError, match="no such file"):
        read(path.with_name("none.tsv"))


@pytest.mark.parametrize(
    ("count", "what", "said"),
    [(1, "blank lines", "1 blank line"), (2000, "spans that no B- opens", "2,000 spans that no B- opens"),
     (1, "spans that x", "1 span that x")],
)  # fmt: skip
def test_counted(count, what, said):
    assert counted(count, what) == said
