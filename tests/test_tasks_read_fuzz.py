"""Whatever a file holds, it is read or refused with a repair; nothing else is raised."""

import json

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from maskery.errors import InputError
from maskery.tasks.examples import TASKS
from maskery.tasks.read.files import read_examples
from maskery.tasks.read.labels import labels_of
from maskery.tasks.settings import ColumnsConfig

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats(allow_nan=True) | st.sampled_from(["a", "好", "", "O"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "start", "end", "text"]), inner),
    max_leaves=6,
)
NAMES = st.sampled_from(
    ["text", "label", "text_a", "text_b", "tokens", "tags", "entities", "context", "question", "answers", "choices"]
)
CELLS = st.sampled_from(["0", "1", "nan", "a", "b c", "B-X", "O O", "", "text", "label", "好 的", '"', "x" * 50, "-"])
LINES = st.lists(st.lists(CELLS, max_size=3), max_size=8)
SPLITS = st.sampled_from(["train", "test"])
ANY_TASK = st.sampled_from([None, *TASKS])
FAST = settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def read_or_refused(path, text, task, split):
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    try:
        found = read_examples(path, task, split, ColumnsConfig())
        assert len(found)
        assert all(len(item.texts) == len(found.fields) for item in found)
        assert all(item.text_a[a.start : a.stop] == a.text for item in found for a in item.answers or ())
        assert all(0 <= span.start < span.stop <= len(item.text_a) for item in found for span in item.spans or ())
        if split == "train":
            labels_of(found, found.task)
    except InputError as error:
        repair = error.repair
    else:
        repair = "none is needed"
    assert repair


@FAST
@given(
    task=ANY_TASK,
    lines=LINES,
    sign=st.sampled_from(["\t", " "]),
    split=SPLITS,
    name=st.sampled_from(["a.tsv", "a.txt", "a.csv", "a.conll"]),
)
def test_cells(tmp_path, task, lines, sign, split, name):
    text = "\n".join(("," if name == "a.csv" else sign).join(line) for line in lines)
    read_or_refused(tmp_path / name, text, task, split)


@FAST
@given(records=st.lists(st.dictionaries(NAMES, VALUES), max_size=3), task=ANY_TASK, split=SPLITS, whole=st.booleans())
def test_records(tmp_path, task, records, split, whole):
    text = json.dumps(records) if whole else "".join(json.dumps(record) + "\n" for record in records)
    read_or_refused(tmp_path / ("a.json" if whole else "a.jsonl"), text, task, split)


@FAST
@given(value=VALUES, split=SPLITS)
def test_questions(tmp_path, value, split):
    for held in ({"data": value}, {"data": [{"paragraphs": value}]}, [[["a"], value, "id"]],
                 {"data": [{"paragraphs": [{"context": "a 好", "qas": [{"question": "?", "answers": value}]}]}]},
                 [[["a"], [{"question": "?", "choice": value, "answer": "a"}]]]):  # fmt: skip
        read_or_refused(tmp_path / "a.json", json.dumps(held), None, split)
