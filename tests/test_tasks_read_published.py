"""CLUE, RACE, SQuAD, ARCT and HANS read as they are published: rows of the same form, in files of the same names."""

import json

import pytest
from published import MANY, NLI, WORDS, lines, notes_of, said, tsv, written

from maskery.errors import InputError, TextError
from maskery.tasks.read.files import read_examples
from maskery.tasks.read.folder import read_folder
from maskery.tasks.settings import ColumnsConfig

AUTO = ColumnsConfig()
IDIOMS = ("一心一意", "三心二意", "五花八门", "画蛇添足", "守株待兔", "对牛弹琴", "亡羊补牢")


@pytest.fixture
def folder(tmp_path):
    return lambda files: written(tmp_path, files)


def clue(record, many=MANY):
    return {f"{split}.json": lines(record(number) for number in range(many)) for split in ("train", "dev")}


# CLUE


def test_afqmc_and_iflytek(folder):
    pairs = read_folder(
        folder(clue(lambda n: {"sentence1": said(n), "sentence2": said(n + 1), "label": str(n % 2)})), None, AUTO
    )
    assert (pairs["train"].task, pairs["train"].fields) == ("pair", ("sentence1", "sentence2"))
    apps = {
        "train.json": lines(
            {"label": str(n % 40), "label_des": f"app{n % 40 // 2}", "sentence": said(n)} for n in range(640)
        ),
        "dev.json": lines({"label": str(n), "label_des": f"app{n // 2}", "sentence": said(n)} for n in range(40)),
    }
    found = read_folder(folder(apps), None, AUTO)
    assert [each.label for each in found["dev"]] == [str(number) for number in range(40)], "known from train"


def test_tnews_reads_the_sentence(folder):
    found = read_folder(
        folder(
            clue(
                lambda n: {
                    "label": ("102", "108", "116")[n % 3],
                    "label_desc": ("ent", "edu", "game")[n % 3],
                    "sentence": said(n),
                    "keywords": f"{WORDS[n % 12]},{WORDS[n % 5]}",
                }
            )
        ),
        None,
        AUTO,
    )["train"]
    assert (found.task, found.fields, found[1].label) == ("classify", ("sentence",), "108")
    assert "not read: 'label_desc', 'keywords'" in notes_of(found)


def test_ocnli_takes_the_largest_and_leaves_out_dashes(folder):
    def record(n):
        genre = ("lit", "gov")[n % 2]
        return {
            "level": "easy",
            "sentence1": said(n),
            "sentence2": said(n + 1),
            "label": "-" if n == 4 else NLI[n % 3],
            "label0": NLI[n % 3],
            "label1": None,
            "genre": genre,
            "prem_id": f"lit_{n}",
            "id": n,
        }

    sizes = {"train.50k.json": 48, "train.3k.json": 12, "dev.json": 9}
    made = folder({name: lines(record(n) for n in range(many)) for name, many in sizes.items()})
    found = read_folder(made, None, AUTO)
    assert {name: len(split) for name, split in found.items()} == {"train": 47, "dev": 8}
    assert "train.50k.json is taken (the largest); left out: train.3k.json" in notes_of(found["train"])
    assert "1 row whose label is '-' (nobody agreed on one): left out" in notes_of(found["train"])


def test_csl_keeps_its_keywords(folder):
    record = {"id": 1, "abst": said(1, 20), "keyword": ["水质", "遥感", "模型"], "label": "1"}
    other = {**record, "keyword": ["水"], "label": "0"}
    test = {key: value for key, value in record.items() if key != "label"}
    made = folder({"train.json": lines([record, other] * 3), "test.json": lines([test])})
    found = read_folder(made, None, AUTO)
    assert (found["train"].task, found["train"].fields) == ("pair", ("keyword", "abst"))
    assert found["train"][0].texts == ("水质；遥感；模型", said(1, 20))
    assert [each.label for each in found["train"]][:2] == ["1", "0"]
    assert found["test"][0].texts == found["train"][0].texts
    assert "read as CSL: text a = the keywords, joined by ；, text b = abst" in notes_of(found["train"])


WSC = {
    "target": {"span2_index": 9, "span1_index": 0, "span1_text": "小明", "span2_text": "他"},
    "idx": 0,
    "label": "true",
    "text": "小明给老师写信，因为他想念学校。",
}


def test_cluewsc_marks_both_spans(folder):
    wrong = {**WSC, "label": "false", "target": {**WSC["target"], "span1_text": "老师", "span1_index": 3}}
    wrong["target"] |= {"span2_index": 10}
    right = {**WSC, "target": {**WSC["target"], "span2_index": 10}}
    found = read_folder(folder({"train.json": lines([right, wrong] * 3)}), None, AUTO)["train"]
    assert (found.task, found.fields) == ("classify", ("text",))
    assert [each.text_a for each in found][:2] == [
        "_小明_给老师写信，因为[他]想念学校。",
        "小明给_老师_写信，因为[他]想念学校。",
    ]
    assert "the text has _ _ around span1_text and [ ] around span2_text" in notes_of(found)
    english = {
        "text": "Mark told Pete that he won.",
        "idx": 1,
        "label": True,
        "target": {"span1_text": "Pete", "span1_index": 2, "span2_text": "he", "span2_index": 4},
    }
    words = folder({"super.jsonl": lines([english, {**english, "label": False}])})
    counted = read_examples(words / "super.jsonl", None, "train", AUTO)
    assert counted[0].text_a == "Mark told _Pete_ that [he] won.", "SuperGLUE counts words"
    with pytest.raises(TextError, match=r"off.jsonl:1: .*'他' does not stand at 9"):
        read_examples(folder({"off.jsonl": lines([WSC])}) / "off.jsonl", None, "train", AUTO)


def test_chid_in_both_forms(folder):
    records = [
        {
            "content": [f"{said(n)}#idiom{n:06d}#。", f"先#idiom{n + 50:06d}#后#idiom{n + 90:06d}#"],
            "candidates": list(IDIOMS),
        }
        for n in range(3)
    ]
    answers = {f"#idiom{n + more:06d}#": (n + more) % 7 for n in range(3) for more in (0, 50, 90)}
    made = folder({"train.json": lines(records), "train_answer.json": json.dumps(answers)})
    found = read_folder(made, None, AUTO)["train"]
    assert (found.task, len(found)) == ("choice", 9)
    assert found[1].texts == ("", "先____后……")
    assert found[2].texts == ("", "先……后____")
    assert [each.label for each in found][:3] == ["0", "1", "6"]
    assert found[1].guid == "idiom000050"
    own = {"groundTruth": ["画蛇添足"], "candidates": [list(IDIOMS)], "content": "他#idiom#了", "realCount": 1}
    one = read_examples(folder({"own.txt": lines([own, own])}) / "own.txt", None, "train", AUTO)
    assert (one[0].texts[1], one[0].label) == ("他____了", "3")


def test_c3_is_read_from_its_two_halves(folder):
    passage = [
        ["女：去哪儿？", "男：超市。"],
        [{"question": "男的要去哪儿？", "choice": ["学校", "超市"], "answer": "超市"}],
        "1",
    ]
    text = json.dumps([passage, passage], ensure_ascii=False)
    halves = {f"{half}-{split}.json": text for half in "dm" for split in ("train", "dev")}
    made = folder({**halves, "test1.0.json": text, "test1.1.json": json.dumps([passage], ensure_ascii=False)})
    found = read_folder(made, None, AUTO)
    assert {name: len(split) for name, split in found.items()} == {"train": 4, "dev": 4, "test": 1}
    assert "test1.1.json is taken (the newest version); left out: test1.0.json" in notes_of(found["test"])
    assert found["train"][0].label == "1"
    assert "train: d-train.json, m-train.json are read together" in notes_of(found["train"])


# Reading comprehension


def squad(answers, **more):
    asked = [{"id": "q1", "question": "who?", "answers": answers, **more}]
    return json.dumps(
        {"version": "1", "data": [{"title": "t", "paragraphs": [{"context": "the cat sat", "qas": asked}]}]}
    )


def test_squad_by_the_names_of_its_files(folder):
    right = squad([{"text": "cat", "answer_start": 4}])
    found = read_folder(folder({"train-v1.1.json": right, "dev-v1.1.json": right}), None, AUTO)
    assert {name: split.task for name, split in found.items()} == {"train": "qa", "dev": "qa"}
    none = read_examples(folder({"x-v2.0.json": squad([], is_impossible=True)}) / "x-v2.0.json", None, "train", AUTO)
    assert none[0].answers == ()


def test_cmrc_without_places_and_without_answers(folder):
    passage = {
        "context_id": "T0",
        "context_text": "他住在碎叶城。碎叶城很远。",
        "title": "t",
        "qas": [{"query_id": "T0_Q0", "query_text": "住在哪里？", "answers": ["碎叶城", "碎叶城"]}],
    }
    made = folder(
        {
            "cmrc2018_train.json": json.dumps([passage], ensure_ascii=False),
            "cmrc2018_test.json": squad([{"text": "FAKE_ANSWER_1", "answer_start": -1}]),
        }
    )
    found = read_folder(made, None, AUTO)
    assert [(answer.start, answer.text) for answer in found["train"][0].answers] == [(3, "碎叶城")] * 2
    assert found["test"][0].answers is None
    assert "answers are where they first stand" in notes_of(found["train"])


RACE = {
    "article": "The cat sat. It was old.",
    "id": "high7.txt",
    "questions": ["Who sat?", "It was _ ."],
    "options": [["a dog", "a cat", "a cow", "a cat"], ["new", "big", "red", "old"]],
    "answers": ["D", "D"],
}


def test_race_as_folders_of_passages(folder):
    files = {
        f"{split}/{level}/{n}.txt": json.dumps({**RACE, "id": f"{level}{n}.txt"})
        for split in ("train", "dev", "test")
        for level in ("high", "middle")
        for n in (1, 2)
    }
    made = folder(files)
    found = read_folder(made, None, AUTO)
    assert {name: len(split) for name, split in found.items()} == {"train": 8, "dev": 8, "test": 8}
    first = found["train"][0]
    assert (found["train"].task, first.texts, first.choices) == (
        "choice",
        ("The cat sat. It was old.", "Who sat?"),
        ("a dog", "a cat", "a cow", "a cat"),
    )
    assert (first.label, first.guid) == ("3", "high1.txt-0"), "the letter decides between equal options"
    levels = read_examples(made / "dev", None, "dev", ColumnsConfig(by=("level",)))
    assert {each.by for each in levels} == {("high",), ("middle",)}
    (made / "dev" / "high" / "2.txt").write_text("no json")
    with pytest.raises(TextError, match=r"2.txt:1: the file is not JSON"):
        read_examples(made / "dev", None, "dev", AUTO)


def test_race_in_one_file(folder):
    made = folder(
        {
            "lists.jsonl": lines([RACE]),
            "one.txt": json.dumps(RACE),
            "indented.json": json.dumps(RACE, indent=1),
            "flat.jsonl": lines(
                [{"article": RACE["article"], "question": "Who?", "options": ["a dog", "a cat"], "answer": "B"}]
            ),
        }
    )
    for name, labels in {
        "lists.jsonl": ["3", "3"],
        "one.txt": ["3", "3"],
        "indented.json": ["3", "3"],
        "flat.jsonl": ["1"],
    }.items():
        found = read_examples(made / name, None, "train", AUTO)
        assert (found.task, [each.label for each in found]) == ("choice", labels), name
        assert found[0].texts[0] == RACE["article"]
    with pytest.raises(TextError, match="not as in RACE"):
        read_examples(folder({"x.jsonl": lines([{**RACE, "answers": ["A"]}])}) / "x.jsonl", None, "train", AUTO)


# Two sets that ask whether a model understands

ARCT = ("#id", "warrant0", "warrant1", "correctLabelW0orW1", "reason", "claim", "debateTitle", "debateInfo")


def test_arct_is_a_choice_of_two(folder):
    rows = [(f"{n}_A", said(n), said(n + 1), n % 2, said(n + 2), said(n + 3), "title", "info") for n in range(12)]
    found = read_folder(folder({"train-full.txt": tsv(ARCT, *rows), "dev-full.txt": tsv(ARCT, *rows)}), None, AUTO)
    assert (found["train"].task, found["train"].fields) == ("choice", ("context", "question"))
    assert found["train"][1].texts == (said(3), said(4))
    assert (found["train"][1].choices, found["train"][1].label) == ((said(1), said(2)), "1")
    assert "read as ARCT: a choice of two warrants (context = reason, question = claim)" in notes_of(found["train"])
    bad = folder({"bad.tsv": tsv(ARCT, *rows[:3], ("9", "a", "b", "2", "c", "d", "e", "f"))}) / "bad.tsv"
    with pytest.raises(TextError, match=r"bad.tsv:5: .*correctLabelW0orW1 is '2'"):
        read_examples(bad, None, "train", AUTO)
    tabs = folder({"dev-adv.csv": tsv(ARCT, *rows)}) / "dev-adv.csv"
    found = read_examples(tabs, None, "train", AUTO)
    assert found.task == "choice"
    assert "columns parted by tabs under the name of CSV: read as TSV" in notes_of(found)
    with pytest.raises(TextError, match="the columns are parted by tabs, not by commas"):
        read_examples(tabs, None, "train", ColumnsConfig(format="csv"))
    own = read_examples(bad, "classify", "train", ColumnsConfig(text=("reason",), label="correctLabelW0orW1"))
    assert own.task == "classify", "columns that are named win over the shape"


HANS = (
    *("gold_label", "sentence1_binary_parse", "sentence2_binary_parse", "sentence1_parse", "sentence2_parse"),
    *("sentence1", "sentence2", "pairID", "heuristic", "subcase", "template"),
)


def hans(many):
    kinds = ("lexical_overlap", "subsequence", "constituent")
    for n in range(many):
        parses = (f"( {said(n)} )", f"( {said(n + 1)} )", f"(ROOT {said(n)})", f"(ROOT {said(n + 1)})")
        label = ("entailment", "non-entailment")[n % 2]
        yield (label, *parses, said(n), said(n + 1), f"ex{n}", kinds[n % 3], f"sub{n % 3}", f"temp{n % 4}")


def test_hans_with_its_groups(folder):
    path = folder({"heuristics_evaluation_set.txt": tsv(HANS, *hans(24))}) / "heuristics_evaluation_set.txt"
    found = read_examples(path, None, "dev", ColumnsConfig(by=("heuristic", "heuristic,gold_label")))
    assert (found.task, found.fields, found[1].label) == ("pair", ("sentence1", "sentence2"), "non-entailment")
    assert found.by == ("heuristic", "heuristic,gold_label")
    assert found[1].by == ("subsequence", "subsequence, non-entailment")
    with pytest.raises(TextError, match="--by kind: there is no such column"):
        read_examples(path, None, "dev", ColumnsConfig(by=("kind",)))
    assert read_examples(path, None, "train", ColumnsConfig(by=("kind",))).by == (), "only what is evaluated has groups"


def test_groups_of_a_file_without_columns_are_refused(folder):
    path = folder({"dev.json": squad([{"text": "cat", "answer_start": 4}])}) / "dev.json"
    with pytest.raises(InputError, match="--by title: the file has no columns"):
        read_examples(path, None, "dev", ColumnsConfig(by=("title",)))
