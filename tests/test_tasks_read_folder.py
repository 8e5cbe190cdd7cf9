"""The classic folder, classes of the user's own, and the labels that both give."""

import pytest

from maskery.errors import InputError, UnknownName
from maskery.tasks.examples import Example, Examples, Span
from maskery.tasks.read.folder import read_folder, seen_in
from maskery.tasks.read.labels import labels_of, ordered, require_known
from maskery.tasks.read.processor import examples_of_processor, splits_of_processor
from maskery.tasks.settings import ColumnsConfig

AUTO = ColumnsConfig()
TRAIN = (
    "game\t这款游戏的画面非常漂亮\nfashion\t今年秋天流行红色的大衣\nhouseliving\t客厅应该怎样布置\ngame\t新赛季开始了\n"
)
DEV = "fashion\t这条裙子很好看\ngame\t他打游戏到半夜\n"
TEST = "label\ttext_a\ngame\t手柄坏了\nfashion\t帽子怎么搭配\n"


@pytest.fixture
def folder(tmp_path):
    def make(**files):
        for name, text in files.items():
            stem, _, suffix = name.partition("_")
            (tmp_path / f"{stem}.{suffix or 'tsv'}").write_bytes(text.encode())
        return tmp_path

    return make


def test_the_classic_folder(folder):
    found = read_folder(folder(train=TRAIN, dev=DEV, test=TEST), "classify", AUTO)
    assert list(found) == ["train", "dev", "test"]
    assert [found[split][0].guid for split in found] == ["train-0", "dev-0", "test-1"]
    assert [len(found[split]) for split in found] == [4, 2, 2], "test rows are there"
    assert all(item.text_b is None for split in found.values() for item in split)
    assert [item.label for item in found["test"]] == ["game", "fashion"]
    assert [item.text_a for item in found["test"]] == ["手柄坏了", "帽子怎么搭配"]
    assert labels_of(found["train"], "classify") == ("fashion", "game", "houseliving")


def test_test_without_labels(folder):
    found = read_folder(folder(train=TRAIN, dev=DEV, test="index\tsentence\n0\t手柄坏了\n1\t帽子\n"), None, AUTO)
    assert [(item.guid, item.text_a, item.label) for item in found["test"]] == [
        ("test-1", "手柄坏了", None),
        ("test-2", "帽子", None),
    ]
    alone = read_folder(folder(test="手柄坏了\n帽子\n"), None, AUTO)["test"]
    assert alone.items == read_folder(folder(), None, ColumnsConfig(text=("2",), label="1"))["test"].items
    assert [(item.guid, item.text_a, item.label) for item in alone] == [
        ("test-0", "手柄坏了", None),
        ("test-1", "帽子", None),
    ]


def test_what_train_tells_holds_for_the_others(folder):
    train = "text_b\ttext_a\tscore\nb one\ta one\t0.5\nb two\ta two\t1\n"
    found = read_folder(folder(train=train, val_jsonl='{"text_a": "x", "text_b": "y", "score": 1}\n'), None, AUTO)
    assert found["train"].task == found["dev"].task == "regress"
    assert found["dev"][0].texts == ("x", "y")
    assert found["dev"][0].label == 1.0
    assert labels_of(found["train"], "regress") == ()


def test_meta_is_read_as_in_train(folder):
    columns = ColumnsConfig(meta=("place",))
    train, dev = "text\tlabel\tplace\na b\t1\tRome\nc d\t0\t7\n", "text\tlabel\tplace\na b\t1\t7\n"
    found = read_folder(folder(train=train, dev=dev), None, columns)
    assert found["dev"][0].meta == ("7",)
    assert seen_in(found["train"], ("0", "1")).numbers == ()


@pytest.mark.parametrize(
    ("files", "line", "part"),
    [
        ({"train": TRAIN, "dev": DEV + "sport\t比赛\nsport\t又一场\n"}, 3, "'sport' is not one of those to learn"),
        ({"train": "a\tone text\na\tanother text\n", "dev": DEV}, 1, "have the label 'a': there is nothing to learn"),
        ({"train": TRAIN, "dev": ""}, None, "the file is empty"),
        ({"train": TRAIN, "dev": "label\ttext\n"}, 1, "no example under the header"),
        ({"train": TRAIN, "dev": DEV, "valid": DEV}, None, "two files could be dev: dev.tsv and valid.tsv"),
        ({"dev": DEV}, None, "no train file"),
        ({"train": "text\tscore\na\t2\nb\t2.0\n", "dev": DEV}, 2, "have the score 2.0"),
    ],
    ids=["strange label", "one class", "empty dev", "dev without rows", "two devs", "no train", "one score"],
)  # fmt: skip
def test_broken_folders(folder, files, line, part):
    path = folder(**files)
    with pytest.raises(InputError) as caught:
        read_folder(path, "regress" if "score" in files.get("train", "") else "classify", ColumnsConfig(
            label="1" if files.get("train", "").startswith("a\t") else ""))  # fmt: skip
    assert part in str(caught.value)
    assert str(path) in str(caught.value)
    assert caught.value.line == line
    assert caught.value.repair


def test_no_dev_is_told(folder):
    assert "there is no dev file" in "\n".join(read_folder(folder(train=TRAIN), "classify", AUTO)["train"].notes)
    with pytest.raises(InputError, match="no such folder"):
        read_folder(folder() / "none", None, AUTO)


def labelled(*labels, task="classify"):
    items = tuple(Example(guid=f"train-{n}", texts=("t",), label=label) for n, label in enumerate(labels))
    return Examples(task=task, fields=("text",), items=items)


def test_order_of_labels():
    assert labels_of(labelled("10", "9", "-1", "2.5"), "classify") == ("-1", "2.5", "9", "10")
    assert labels_of(labelled("b", "10", "a", "中"), "classify") == ("10", "a", "b", "中")
    assert labels_of(labelled(frozenset("ba"), frozenset("c"), frozenset(), task="multilabel"), "multilabel") == tuple(
        "abc"
    )
    assert ordered(["2", "02"]) == ordered(["02", "2"]) == ("02", "2")
    tags = (Example(guid="a", texts=("xy",), spans=(Span(0, 1, "PER"), Span(1, 2, "LOC"))),)
    assert labels_of(Examples(task="tag", fields=("text",), items=tags), "tag") == ("LOC", "PER")
    choices = (Example(guid="a", texts=("", "?"), label="0", choices=("x", "y", "z")),)
    assert labels_of(Examples(task="choice", fields=(), items=choices), "choice") == ("0", "1", "2")


def test_unknown_labels_are_refused_with_their_number():
    require_known(labelled("a", "b", None), ("a", "b"))
    with pytest.raises(InputError, match=r"train-1: the label 'c' .*; 3 labels are not, of 2 kinds"):
        require_known(labelled("a", "c", "d", "c"), ("a", "b"))
    tags = (Example(guid="dev-0", texts=("xy",), spans=(Span(0, 1, "GPE"),), file="dev.txt", line=4),)
    with pytest.raises(InputError, match=r"dev.txt:4: the label 'GPE'"):
        require_known(Examples(task="tag", fields=("text",), items=tags), ("LOC",))
    for empty, task in ((labelled(), "classify"), (labelled(frozenset(), task="multilabel"), "multilabel")):
        with pytest.raises(InputError):
            labels_of(empty, task)


PROCESSOR = """
import csv, os
from neighbour import InputExample

class DemoProcessor:
    def get_train_examples(self, data_dir):
        return self._made(os.path.join(data_dir, "train.tsv"), "train")
    def get_dev_examples(self, data_dir):
        return self._made(os.path.join(data_dir, "dev.tsv"), "dev")
    def get_test_examples(self, data_dir):
        return self._made(os.path.join(data_dir, "test.tsv"), "test")
    def get_labels(self):
        return ["fashion", "houseliving", "game"]
    def _made(self, file, split):
        with open(file, encoding="utf-8") as lines:
            rows = list(csv.reader(lines, delimiter="\\t"))
        made = [InputExample(f"{split}-{i}", row[1], label=row[0]) for i, row in enumerate(rows)]
        return made[split == "test":]

class Broken(DemoProcessor):
    def get_dev_examples(self, data_dir):
        return [][3]
    def get_train_examples(self, data_dir):
        return []
    get_test_examples = None
"""
NEIGHBOUR = """
class InputExample:
    def __init__(self, guid, text_a, text_b=None, label=None):
        self.guid, self.text_a, self.text_b, self.label = guid, text_a, text_b, label
"""


@pytest.fixture
def code(folder):
    path = folder(train=TRAIN, dev=DEV, test=TEST, demo_py=PROCESSOR, neighbour_py=NEIGHBOUR)
    return path / "demo.py"


def test_a_class_of_the_users_own(code):
    spec = f"{code}:DemoProcessor"
    found = {split: examples_of_processor(spec, code.parent, split) for split in splits_of_processor(spec)}
    assert [(split, found[split][0].guid, len(found[split])) for split in found] == [
        ("train", "train-0", 4),
        ("dev", "dev-0", 2),
        ("test", "test-1", 2),
    ]
    assert found["train"].task == "classify"
    assert found["train"][0].text_b is None
    labels = labels_of(found["train"], "classify")
    assert labels == ("fashion", "houseliving", "game")
    assert [labels.index(item.label) for item in found["train"]] == [2, 0, 1, 2]
    notes = "\n".join(found["train"].notes)
    assert "the code of this file was run" in notes
    assert "order of get_labels: fashion, houseliving, game" in notes


def test_the_class_and_the_ready_made_reader_agree(code):
    own = examples_of_processor(f"{code}:DemoProcessor", code.parent, "test")
    ready = read_folder(code.parent, "classify", AUTO)["test"]
    assert [(a.guid, a.texts, a.label) for a in own] == [(b.guid, b.texts, b.label) for b in ready]


@pytest.mark.parametrize(
    ("name", "split", "part"),
    [
        ("Broken", "dev", "demo.py:22: get_dev_examples failed: IndexError"),
        ("Broken", "train", "gave no examples"),
        ("Broken", "test", "has no get_test_examples"),
        ("DemoProcesor", "train", "did you mean DemoProcessor"),
    ],
)
def test_broken_classes(code, name, split, part):
    with pytest.raises(InputError) as caught:
        examples_of_processor(f"{code}:{name}", code.parent, split)
    assert part in str(caught.value)


def test_scores_and_pairs_of_a_class(code):
    text = (
        "from neighbour import InputExample\nclass P:\n"
        "    def get_labels(self): return LABELS\n"
        "    def get_train_examples(self, folder):\n"
        "        return [InputExample('a', 'x', 'y', '0.5'), InputExample('b', 'z', SECOND, '1')]\n"
    )
    spec = f"{code}:P"
    code.write_text(text + "LABELS, SECOND = [None], 'w'\n")
    found = examples_of_processor(spec, code.parent, "train")
    assert (found.task, found.fields, found[0].label) == ("regress", ("text_a", "text_b"), 0.5)
    assert splits_of_processor(spec) == ("train",)
    code.write_text(text + "LABELS, SECOND = ['0.5', '1'], None\n")
    with pytest.raises(InputError, match="b has no text_b"):
        examples_of_processor(spec, code.parent, "train")
    code.write_text(text + "LABELS, SECOND = ['0.5', '2'], 'w'\n")
    with pytest.raises(InputError, match="get_labels has to name it"):
        labels_of(examples_of_processor(spec, code.parent, "train"), "pair")


def test_a_class_that_is_not_there(code):
    with pytest.raises(InputError, match="no file and class"):
        examples_of_processor(str(code), code.parent, "train")
    with pytest.raises(InputError, match="no such file"):
        examples_of_processor(f"{code.parent / 'none.py'}:Demo", code.parent, "train")
    with pytest.raises(UnknownName, match="split"):
        examples_of_processor(f"{code}:DemoProcessor", code.parent, "valid")
    code.write_text("import nothing_of_this_name\n")
    with pytest.raises(InputError, match=r"demo.py:1: import failed: ModuleNotFoundError"):
        examples_of_processor(f"{code}:DemoProcessor", code.parent, "train")
