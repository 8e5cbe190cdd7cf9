"""Classes that were written for run_classifier.py: what they import is there while they run, and not afterwards."""

from __future__ import annotations

import sys

import pytest
from bad_tasks import prepared

from maskery.cli import main
from maskery.errors import InputError
from maskery.tasks.examples import Example, Examples
from maskery.tasks.finetune import read_splits
from maskery.tasks.read.classic import MODULES
from maskery.tasks.read.labels import known_only

BODY = """
class CatProcessor(DataProcessor):
    def get_train_examples(self, data_dir):
        return self._create_examples(self._read_tsv(os.path.join(data_dir, "cats.tsv")), "train")

    def get_dev_examples(self, data_dir):
        return self._create_examples(self._read_tsv(os.path.join(data_dir, "cats.tsv")), "dev")

    def get_labels(self):
        return ["0", "1"]

    def _create_examples(self, lines, set_type):
        found = []
        for i, line in enumerate(lines):
            text = CONVERT(line[1])
            found.append(InputExample(guid="%s-%s" % (set_type, i), text_a=text, text_b=None, label=line[0]))
        return found
"""
HEADS = {
    "run_classifier": (
        "import os\nfrom run_classifier import DataProcessor, InputExample, InputFeatures\nimport tokenization\n",
        "tokenization.convert_to_unicode",
    ),
    "bert": (
        "import os\nfrom bert.run_classifier import DataProcessor, InputExample\nfrom bert import tokenization\n",
        "tokenization.convert_to_unicode",
    ),
    "transformers": ("import os\nfrom transformers import DataProcessor, InputExample\n", "str"),
    "transformers, inside": (
        "import os\nfrom transformers.data.processors.utils import DataProcessor, InputExample\n",
        "str",
    ),
    "old transformers": ("import os\nfrom pytorch_transformers import DataProcessor, InputExample\n", "str"),
    "tensorflow": (
        "import os\nimport tensorflow as tf\nfrom run_classifier import DataProcessor, InputExample\n"
        "tf.logging.info('read')\nflags = tf.flags\nFLAGS = flags.FLAGS\nflags.DEFINE_string('dir', None, 'help')\n",
        "str",
    ),
    "tensorflow 2": (
        "import os\nimport tensorflow.compat.v1 as tf\nfrom run_classifier import DataProcessor, InputExample\n"
        "assert tf.gfile.Exists(__file__)\nwith tf.gfile.Open(__file__) as own:\n    assert own.read()\n",
        "str",
    ),
}


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = [f'{number % 2}\t{"the cat" if number % 2 else "a mat"} "sat {number}\n' for number in range(8)]
    (tmp_path / "cats.tsv").write_text("".join(lines), encoding="utf-8")
    return tmp_path


def read(place, code, name="CatProcessor"):
    (place / "own.py").write_text(code, encoding="utf-8")
    return read_splits({}, processor=f"{place / 'own.py'}:{name}", data=place)


@pytest.mark.parametrize("head", HEADS)
def test_a_classic_class_is_read_as_it_stands(head, place):
    before = {name: sys.modules.get(name) for name in MODULES}
    finders = list(sys.meta_path)
    imports, convert = HEADS[head]
    splits = read(place, imports + BODY.replace("CONVERT", convert))
    assert [each.texts for each in splits.train][:2] == [('a mat "sat 0',), ('the cat "sat 1',)]
    assert (len(splits.dev), splits.test, splits.train.labels) == (8, None, ("0", "1"))
    assert any("stand in for" in note for note in splits.train.notes)
    assert {name: sys.modules.get(name) for name in MODULES} == before, "nothing is left behind"
    assert sys.meta_path == finders


def test_the_real_module_beside_the_file_is_taken(place):
    (place / "tokenization.py").write_text("def convert_to_unicode(text):\n    return text.upper()\n")
    try:
        imports, convert = HEADS["run_classifier"]
        splits = read(place, imports + BODY.replace("CONVERT", convert))
    finally:
        sys.modules.pop("tokenization", None)
    assert splits.train[0].texts == ('A MAT "SAT 0',)


def test_a_module_beside_the_file_that_needs_tensorflow_is_passed_over(place):
    """As in a clone of Google's repository; also where the class stands in run_classifier.py itself."""
    for name in ("run_classifier", "tokenization", "modeling"):
        (place / f"{name}.py").write_text("import tensorflow as tf\nraise RuntimeError('not here')\n")
    imports, convert = HEADS["run_classifier"]
    assert len(read(place, imports + BODY.replace("CONVERT", convert)).train) == 8
    code = "import os\nimport modeling\nimport tokenization\nimport tensorflow as tf\n" + (
        "class InputExample(object):\n    def __init__(self, guid, text_a, text_b=None, label=None):\n"
        "        self.guid, self.text_a, self.text_b, self.label = guid, text_a, text_b, label\n"
        "class DataProcessor(object):\n    def _read_tsv(self, path):\n"
        "        with tf.gfile.Open(path, 'r') as f:\n            return [line.strip().split('\\t') for line in f]\n"
        "def main(_):\n    tf.logging.set_verbosity(tf.logging.INFO)\n"
        "if __name__ == '__main__':\n    tf.app.run()\n"
    )
    (place / "run_classifier.py").write_text(code + BODY.replace("CONVERT", "tokenization.convert_to_unicode"))
    splits = read_splits({}, processor=f"{place / 'run_classifier.py'}:CatProcessor", data=place)
    assert (len(splits.train), len(splits.dev)) == (8, 8)


def test_a_set_that_is_only_inherited_from_an_own_base_is_left_out(place):
    """As in Google's script: its base class raises for every set that a class does not read."""
    base = "class DataProcessor(object):\n    def get_test_examples(self, data_dir):\n"
    base += "        raise Not" + "ImplementedError()\n"
    lines = "[line.split('\\t') for line in Path(path).read_text().splitlines()]"
    read_tsv = f"    def _read_tsv(self, path):\n        return {lines}\n"
    head = "import os\nfrom pathlib import Path\nfrom run_classifier import InputExample\n"
    splits = read(place, head + base + read_tsv + BODY.replace("CONVERT", "str"))
    assert (len(splits.dev), splits.test) == (8, None)
    assert any("get_test_examples is not implemented: there is no test set" in note for note in splits.train.notes)


def test_what_the_stand_ins_lack_is_told_with_its_line(place):
    with pytest.raises(InputError, match=r"own.py:2: import failed: AttributeError: .*keras"):
        read(place, "import tensorflow as tf\ntf.keras\n")


@pytest.mark.parametrize(
    ("imports", "line"),
    [("", "from run_classifier import DataProcessor, InputExample"),
     ("from run_classifier import DataProcessor, InputExample\n", "import os"),
     ("import os\nfrom run_classifier import DataProcessor, InputExample\n", "import tokenization")],
)  # fmt: skip
def test_a_class_that_was_cut_out_without_its_imports_is_told_which(imports, line, place):
    with pytest.raises(InputError, match="NameError") as error:
        read(place, imports + BODY.replace("CONVERT", "tokenization.convert_to_unicode"))
    assert error.value.repair == f"write at the beginning of the file: {line}"


MORE = {
    "empty": (
        "    def get_test_examples(self, data_dir):\n        return []\n",
        "gave no examples: there is no test set",
    ),
    "another label": (
        "    def get_test_examples(self, data_dir):\n"
        "        return [InputExample('t-%d' % n, 'a cat', None, it) for n, it in enumerate(['0', '7', '7', None])]\n",
        "test: 2 of 4 rows have a label that is not one of those to learn ('7'): they are taken as unlabelled",
    ),
}


@pytest.mark.parametrize("case", MORE)
def test_a_test_set_does_not_stop_training(case, place, capsys):
    prepared(place)
    more, told = MORE[case]
    imports, convert = HEADS["run_classifier"]
    (place / "own.py").write_text(imports + BODY.replace("CONVERT", convert) + "\n" + more)
    asked = [
        "model",
        "--processor",
        "own.py:CatProcessor",
        "--data",
        ".",
        "--out",
        "r",
        "--epochs",
        "1",
        "--batch",
        "8",
    ]
    code = main(["finetune", *asked])
    printed = capsys.readouterr()
    assert code == 0, printed.err
    assert told in " ".join(printed.err.split())
    assert (place / "r" / "test_predictions.tsv").exists() == (case == "another label")


def test_a_label_of_the_test_file_that_is_strange_and_an_empty_test_file_are_logged(place):
    (place / "data").mkdir()
    rows = [f"{'animal' if n % 2 else 'thing'}\ta {'cat' if n % 2 else 'mat'} number {n}\n" for n in range(12)]
    for name in ("train", "dev"):
        (place / "data" / f"{name}.tsv").write_text("label\ttext\n" + "".join(rows))
    test = place / "data" / "test.tsv"
    test.write_text("label\ttext\nghost\ta boo\nanimal\ta cat\n")
    splits = read_splits({}, data=place / "data")
    assert [each.label for each in splits.test] == [None, "animal"]
    assert any(
        "1 of 2 rows have a label that is not one of those to learn ('ghost')" in note for note in splits.test.notes
    )
    for empty in ("", "label\ttext\n", "\n"):
        test.write_text(empty)
        splits = read_splits({}, data=place / "data")
        assert splits.test is None
        assert any("there is no test set" in note for note in splits.train.notes)
        alone = read_splits({}, train=place / "data" / "train.tsv", dev=place / "data" / "dev.tsv", test=test)
        assert (alone.test, "there is no test set" in alone.train.notes[-1]) == (None, True)
    (place / "data" / "dev.tsv").write_text("")
    with pytest.raises(InputError, match="the file is empty"):
        read_splits({}, data=place / "data")


def test_labels_that_are_scores_are_never_strange():
    items = (Example(guid="0", texts=("a",), label=7.0),)
    given = Examples(task="regress", fields=("text",), items=items)
    assert known_only(given, ()) is given
