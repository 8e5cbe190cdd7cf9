"""Labelled files that cannot be learned from: each is refused with its file, its line and a repair, before anything is
written, by the command line as by Python. What only looks odd is read."""

from __future__ import annotations

import codecs
import json
from pathlib import Path

import pytest
from bad_tasks import GOOD, prepared, refused

from maskery.tasks.read.files import read_examples
from maskery.tasks.settings import ColumnsConfig

LONG = 10_000_000
HEADED = f"label\ttext\n{GOOD}"
TEXTS = "".join(f"a long text with the number {n} goes on and on\tword{n}\n" for n in range(20))
QUESTION = '{"context": "the cat", "question": "who", "answers": {"text": ["%s"], "answer_start": [0]}}\n'
SQUAD = {
    "data": [
        {
            "paragraphs": [
                {
                    "context": "the cat sat",
                    "qas": [
                        {"id": f"q{n}", "question": "who", "answers": [{"text": text, "answer_start": 0}]}
                        for n, text in enumerate(["dog", "the cow", "the cat"])
                    ],
                }
            ]
        }
    ]
}
BAD = {
    "one class": ("t.tsv", "label\ttext\na\tx y\na\tz w\n", "t.tsv:2: all 2 examples have the label 'a'"),
    "one score": ("t.tsv", "text\tscore\nx y\t2.5\nz w\t2.5\n", "t.tsv:2: all 2 examples have the score 2.5"),
    "a label that is text": ("t.tsv", f"label\ttext\n{TEXTS}", "t.tsv:2: the label 'label' has 20 values in 20 rows"),
    "a name twice": ("t.tsv", "text\ttext\tlabel\na\tb\t1\n", "t.tsv:1: the header has 'text' more than once"),
    "the header again": ("t.tsv", f"{HEADED}label\ttext\n", "t.tsv:14: the header stands here again"),
    "too few columns": ("t.tsv", f"{GOOD}animal\n", "t.tsv:13: the line has 1 column, the first line (line 1) has 2"),
    "too many columns": ("t.tsv", f"{HEADED}a\tb\tc\n", "t.tsv:14: the line has 3 columns, the header (line 1) has 2"),
    "ragged csv": (
        "t.csv",
        "label,text\na,b c\nb,c, d\n",
        "t.csv:3: the line has 3 columns, the header (line 1) has 2",
    ),
    "no label": ("t.tsv", f"{HEADED}\tsome words\n", "t.tsv:14: there is no label in 'label'"),
    "nan score": ("t.tsv", "text\tscore\na b\t1.5\nc\tnan\nd\t2\n", "t.tsv:3: the score is nan"),
    "infinite score": ("t.tsv", "text\tscore\na b\t1.5\nc\t-Infinity\nd\t2\n", "t.tsv:3: the score is -Infinity"),
    "nan class": (
        "t.tsv",
        "text\tlabel\na b\t1\nc d\t0\ne\tNaN\n",
        "t.tsv:4: the label is NaN, the others are numbers",
    ),
    "nan in json": (
        "t.jsonl",
        '{"text": "a", "label": 1}\n{"text": "b", "label": NaN}\n',
        "t.jsonl:2: the label is nan",
    ),
    "tags of another length": (
        "t.jsonl",
        '{"tokens": ["a", "b"], "tags": ["O", "B-X"]}\n{"tokens": ["a", "b"], "tags": ["O"]}\n',
        "t.jsonl:2: there are 2 tokens and 1 tags",
    ),
    "tags of another length in a table": (
        "t.tsv",
        "tokens\ttags\na b\tO B-X\na b c\tO O\n",
        "t.tsv:3: there are 3 tokens and 2 tags",
    ),
    "a token without its tag": ("t.conll", "a O\nb B-X\n\nc\n", "t.conll:4: the line has 1 column, the first has 2"),
    "a tag of no scheme": ("t.conll", "a O\nb B-X\n\nc Q-X\n", "t.conll:4: the tag 'Q-X' is of no scheme"),
    "answers elsewhere": (
        "t.jsonl",
        QUESTION % "the cat" + QUESTION % "dog" + QUESTION % "cow",
        "t.jsonl:2: the answers of 2 of 3 questions do not stand in their contexts (first: train-1)",
    ),
    "answers elsewhere in one value": (
        "t.json",
        json.dumps(SQUAD, indent=1),
        "t.json:9: the answers of 2 of 3 questions do not stand in their contexts (first: q0)",
    ),
    "an answer that is no choice": (
        "t.jsonl",
        '{"context": "a", "question": "q", "choices": ["x", "y"], "answer": "z"}\n',
        "t.jsonl:1: question train-0: the answer 'z' is none of the choices 'x', 'y'",
    ),
    "no utf-8": ("t.tsv", GOOD.encode() + b"thing\t\xff\xfe\n", "t.tsv:13: byte 204 (0xff) is not UTF-8"),
    "utf-16": ("t.tsv", GOOD.encode("utf-16"), "t.tsv:1: the text is in UTF-16"),
    "gb18030": ("t.tsv", "好\t今天天气\n坏\t不好\n".encode("gb18030"), "t.tsv:1: byte 0 (0xba) is not UTF-8"),
    "a zero byte": ("t.tsv", GOOD.encode() + b"thing\ta\x00b\n", "t.tsv:13: a zero byte: this is no text file"),
    "a zip": ("t.xlsx", b"PK\x03\x04" + bytes(range(256)), "t.xlsx:1: this is no text but a zip archive"),
    "one huge line": ("t.tsv", "x" * LONG, "t.tsv: no column looks like a label"),
    "huge and not json": ("t.jsonl", '{"text":"' + "x" * LONG, "t.jsonl:1: the line is not JSON"),
    "a huge open quote": ("t.csv", 'label,text\na,"' + "x" * LONG, "t.csv:2: a quote opened in the record"),
    "empty": ("t.tsv", "", "t.tsv: the file is empty"),
    "blank": ("t.tsv", "\n\n", "t.tsv: there is no example in the file"),
    "only a header": ("t.tsv", "label\ttext\n", "t.tsv:1: there is no example under the header"),
    "semicolons": ("t.csv", HEADED.replace("\t", ";"), "t.csv:1: the columns are parted by semicolons, not by commas"),
    "one text of many": (
        "t.tsv",
        "claim\treason\tlabel\n" + "".join(f"a claim of {n}\ta reason for {n}\t{n % 2}\n" for n in range(30)),
        "t.tsv: which column is the text? It could be 'claim'",
    ),
}


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    prepared(tmp_path)

    def put(name, data):
        (tmp_path / name).write_bytes(data if isinstance(data, bytes) else data.encode())
        return name

    yield put
    assert not (tmp_path / "run").exists(), "nothing is written before all is known to be good"


@pytest.mark.parametrize("case", BAD)
def test_a_file_to_learn_from(case, place, capsys):
    name, data, told = BAD[case]
    refused(capsys, told, train=place(name, data), dev="dev.tsv")


BESIDE = {
    "ragged": (f"{GOOD}thing\n", "d.tsv:13: the line has 1 column"),
    "two texts": (
        "text_a\ttext_b\tlabel\na\tb\tthing\n",
        "d.tsv: which column is the text? It could be 'text_a' (a), 'text_b' (b)",
    ),
}
DEV_ALONE = {
    "a label that train has not": (f"{GOOD}ghost\tx\n", "d.tsv:13: the label 'ghost' is not one of those to learn"),
    "empty": ("", "d.tsv: the file is empty"),
    "only a header": ("label\ttext\n", "d.tsv:1: there is no example under the header"),
}
"""Nothing of training depends on a test set: there these are logged (test_tasks_classic_processor)."""


@pytest.mark.parametrize("split", ["dev", "test"])
@pytest.mark.parametrize("case", BESIDE)
def test_a_file_beside_it(case, split, place, capsys):
    data, told = BESIDE[case]
    refused(capsys, told, train="train.tsv", **{split: place("d.tsv", data)})


@pytest.mark.parametrize("case", DEV_ALONE)
def test_a_development_set(case, place, capsys):
    data, told = DEV_ALONE[case]
    refused(capsys, told, train="train.tsv", dev=place("d.tsv", data))


ASKED = {
    "text": (
        ("--text", "txet"),
        {"text": ("txet",)},
        "--text txet: there is no such column; the columns are label, text",
    ),
    "label": (("--label", "9"), {"label": "9"}, "--label 9: there is no such column; the columns are label, text"),
    "meta": (("--meta", "size"), {"meta": ("size",)}, "--meta size: there is no such column"),
    "both": (
        ("--text", "text", "--label", "text"),
        {"text": ("text",), "label": "text"},
        "'text' cannot be the label and read as well",
    ),
    "label is text": (
        ("--label", "text", "--text", "label"),
        {"label": "text", "text": ("label",)},
        "t.tsv:2: the label",
    ),
}


@pytest.mark.parametrize("case", ASKED)
def test_columns_that_are_not_there(case, place, capsys):
    flags, columns, told = ASKED[case]
    data = "label\ttext\n" + "".join(f"{'ab'[n % 2]}\tsome words, {n} of them, and more\n" for n in range(12))
    refused(capsys, told, train=place("t.tsv", data), flags=flags, settings={"columns": columns})


def test_folders(place, capsys, tmp_path):
    (tmp_path / "folder").mkdir()
    refused(capsys, "folder: there is no train file in the folder; it holds nothing", data="folder")
    place("folder/dev.tsv", GOOD)
    refused(capsys, "folder: there is no train file in the folder; it holds dev.tsv", data="folder")
    refused(capsys, "train.tsv: is a file, and not a folder", "--train train.tsv", data="train.tsv")
    refused(capsys, "folder: is no file", train="folder")
    refused(capsys, "nowhere: there is no such folder", data="nowhere")


@pytest.mark.parametrize("data", [HEADED, HEADED.replace("\n", "\r\n"), codecs.BOM_UTF8.decode() + HEADED, HEADED[:-1]])
def test_marks_and_line_ends_of_other_systems_are_no_text(data, place):
    found = read_examples(Path(place("t.tsv", data)), None, "train", ColumnsConfig())
    assert [(item.label, *item.texts) for item in found] == [tuple(line.split("\t")) for line in GOOD.splitlines()]
    assert [item.line for item in found] == list(range(2, 14))


def test_a_huge_text_is_read(place):
    found = read_examples(
        Path(place("t.tsv", f"{HEADED}thing\t{'cat ' * (LONG // 4)}\n")), None, "train", ColumnsConfig()
    )
    assert len(found[12].text_a) == LONG


def test_few_answers_elsewhere_are_left_out_and_told_with_their_lines(place):
    few = json.loads(json.dumps(SQUAD))
    few["data"][0]["paragraphs"][0]["qas"][1]["answers"][0]["text"] = "sat"
    found = read_examples(Path(place("t.json", json.dumps(few, indent=1))), None, "train", ColumnsConfig())
    assert [item.guid for item in found] == ["q1", "q2"]
    assert "t.json: 1 question left out, their answers stand nowhere: q0 in line 9" in found.notes
    lines = place("t.jsonl", QUESTION % "the cat" + QUESTION % "dog")
    found = read_examples(Path(lines), None, "train", ColumnsConfig())
    assert "t.jsonl: 1 question left out, their answers stand nowhere: train-1 in line 2" in found.notes
