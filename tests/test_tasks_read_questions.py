"""Questions on a text: SQuAD's JSON, answers at exact characters, and C3's choices."""

import json

import pytest

from maskery.errors import InputError
from maskery.tasks.examples import Answer
from maskery.tasks.read.files import read_examples
from maskery.tasks.settings import ColumnsConfig

CONTEXT = "爱丽丝👩‍🚀在 cafe\u0301 喝茶。爱丽丝喜欢茶。"


def asked(*questions, context=CONTEXT):
    held = []
    for number, question in enumerate(questions):
        said = {"id": f"Q{number}", "question": "谁？", **question}
        held.append(said)
    return {"version": "1", "data": [{"title": "t", "paragraphs": [{"context": context, "qas": held}]}]}


def said(*answers):
    return {"answers": [{"text": text, "answer_start": start} for text, start in answers]}


def read(tmp_path, value, task="qa", split="train", name="train.json", labelled=None):
    path = tmp_path / name
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=1)
    path.write_bytes(text.encode())
    return read_examples(path, task, split, ColumnsConfig(), labelled=labelled)


def test_answers_keep_their_exact_characters(tmp_path):
    tea, cafe = CONTEXT.index("茶"), CONTEXT.index("cafe\u0301")
    found = read(tmp_path, asked(said(("茶", tea), ("cafe\u0301", cafe)), said(("爱丽丝👩‍🚀", 0))), None)
    assert found.task == "qa"
    assert found.fields == ("context", "question")
    assert [item.guid for item in found] == ["Q0", "Q1"]
    assert found[0].answers == (Answer(tea, "茶"), Answer(cafe, "cafe\u0301"))
    for item in found:
        assert all(item.text_a[answer.start : answer.stop] == answer.text for answer in item.answers)
    told = "train.json: task = qa (by the form of the data; --task says another)"
    assert found.notes == ("train.json: 2 examples", told)


def test_an_answer_elsewhere_is_moved_to_the_nearest_place(tmp_path):
    second = CONTEXT.rindex("爱丽丝")
    found = read(tmp_path, asked(said(("爱丽丝", second + 2)), said(("爱丽丝", -1)), said((" 茶。 ", 3))))
    assert [item.answers[0].start for item in found] == [second, 0, CONTEXT.index("茶。")]
    assert found[2].answers[0].text == "茶。"
    assert "3 of 3 answers stood elsewhere than said" in "\n".join(found.notes)


def test_an_answer_that_stands_nowhere_is_left_out_and_told(tmp_path):
    found = read(tmp_path, asked(said(("咖啡", 3)), said(("茶", 13), ("咖啡", -1)), said(("爱丽丝", 0))))
    assert [item.guid for item in found] == ["Q1", "Q2"]
    assert len(found[0].answers) == 1
    notes = "\n".join(found.notes)
    assert "2 of 4 answers stand nowhere" in notes
    assert "1 question left out, their answers stand nowhere: Q0" in notes


def test_most_answers_nowhere_are_refused(tmp_path):
    with pytest.raises(InputError, match="2 of 3 questions do not stand in their contexts") as caught:
        read(tmp_path, asked(said(("咖啡", 3)), said(("水", 0)), said(("爱丽丝", 0))))
    assert "Q0" in str(caught.value)
    assert caught.value.repair


def test_no_answer_and_nobody_said(tmp_path):
    impossible = {"is_impossible": True, "answers": [], "plausible_answers": [{"text": "茶", "answer_start": 0}]}
    found = read(tmp_path, asked(impossible, said(("茶", 13))))
    assert found[0].answers == ()
    assert "1 question without an answer in their context" in "\n".join(found.notes)
    assert read(tmp_path, asked({}), split="test")[0].answers is None
    assert read(tmp_path, asked(said(("茶", 13))), labelled=False)[0].answers is None
    with pytest.raises(InputError, match="Q0 has no answers"):
        read(tmp_path, asked({}))


def test_records_one_on_each_line(tmp_path):
    record = {"context": CONTEXT, "question": "?", "answers": {"text": ["茶"], "answer_start": [13]}, "id": "a"}
    lines = json.dumps(record) + "\n" + json.dumps(record | {"answers": {"text": [], "answer_start": []}}) + "\n"
    found = read(tmp_path, lines, None, name="train.jsonl")
    assert [(item.guid, item.line, len(item.answers)) for item in found] == [("a", 1, 1), ("a", 2, 0)]


@pytest.mark.parametrize(
    ("value", "part"),
    [
        ({"data": [{"paragraphs": [{"qas": []}, {"qas": [{"question": "?"}]}]}]}, "not as in SQuAD"),
        ({"data": []}, "no question"),
        (asked({"answers": [{"text": "a"}]}), "cannot be read"),
        (asked({"answers": []}, context=7), "no text"),
    ],
    ids=["no context", "nothing", "no start", "a number"],
)
def test_broken_questions(tmp_path, value, part):
    with pytest.raises(InputError, match=part) as caught:
        read(tmp_path, value)
    assert caught.value.repair


def c3(*questions):
    return [[["男：茶？", "女：好。"], list(questions), "7-1"]]


def test_choices(tmp_path):
    first = {"question": "喝什么？", "choice": ["水", "茶 ", "酒"], "answer": "茶"}
    second = {"question": "谁？", "choice": ["女", "男", "女"], "answer": "女"}
    found = read(tmp_path, c3(first, second), None)
    assert found.task == "choice"
    assert [(item.guid, item.label) for item in found] == [("7-1-0", "1"), ("7-1-1", "0")]
    assert found[0].texts == ("男：茶？\n女：好。", "喝什么？")
    assert found[0].choices == ("水", "茶 ", "酒")
    assert "1 question with the right choice twice" in "\n".join(found.notes)
    assert read(tmp_path, c3({"question": "?", "choice": ["a", "b"]}), "choice", "test")[0].label is None


def test_choices_one_on_each_line(tmp_path):
    line = json.dumps({"question": "?", "choices": ["a", "b"], "answer": "b"}) + "\n"
    found = read(tmp_path, line, None, name="train.jsonl")
    assert (found[0].label, found[0].texts, found[0].line) == ("1", ("", "?"), 1)
    with pytest.raises(InputError, match="'c' is none of the choices") as caught:
        read(tmp_path, line + line.replace('"b"}', '"c"}'), "choice", name="train.jsonl")
    assert caught.value.line == 2


@pytest.mark.parametrize(
    ("question", "part"),
    [
        (
            {"question": "?", "choice": ["a", "b"], "answer": "c"},
            "7-1-0: the answer 'c' is none of the choices 'a', 'b'",
        ),
        ({"question": "?", "choice": ["a"], "answer": "a"}, "the choices are"),
        ({"question": "?", "choice": ["a", "b"]}, "there is no answer"),
        ({"question": "?", "answer": "a"}, "not as in C3"),
        ({"question": 3, "choice": ["a", "b"], "answer": "a"}, "no text"),
    ],
    ids=["another answer", "one choice", "no answer", "no choices", "a number"],
)
def test_broken_choices(tmp_path, question, part):
    with pytest.raises(InputError, match=part) as caught:
        read(tmp_path, c3(question), "choice")
    assert caught.value.repair


def test_a_file_for_another_task(tmp_path):
    with pytest.raises(InputError, match="task qa, not for classify"):
        read(tmp_path, asked(said(("茶", 13))), "classify")
