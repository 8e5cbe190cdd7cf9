"""GLUE read as it is published: rows of the same form, in files of the same names."""

import pytest
from published import MANY, NLI, notes_of, said, tsv, written

from maskery.errors import TextError
from maskery.tasks.read.files import read_examples
from maskery.tasks.read.folder import read_folder
from maskery.tasks.settings import ColumnsConfig

AUTO = ColumnsConfig()


@pytest.fixture
def folder(tmp_path):
    return lambda files: written(tmp_path, files)


def glue(header, row):
    """train.tsv and dev.tsv of one form."""
    table = [header] if header else []
    return {f"{split}.tsv": tsv(*table, *(row(number) for number in range(MANY))) for split in ("train", "dev")}


STSB = ("index", "genre", "filename", "year", "old_index", "source1", "source2", "sentence1", "sentence2", "score")
MNLI = (
    *("index", "promptID", "pairID", "genre", "sentence1_binary_parse", "sentence2_binary_parse", "sentence1_parse"),
    *("sentence2_parse", "sentence1", "sentence2"),
)


def mnli(number):
    parses = [f"( {said(number)} )", f"( {said(number + 1)} )", f"(ROOT {said(number)})", f"(ROOT {said(number + 1)})"]
    return (number, 31193 + number, f"{31193 + number}n", "fiction", *parses, said(number), said(number + 1))


GLUE = {
    "SST-2": (("sentence", "label"), lambda n: (said(n), n % 2), "classify", ("sentence",), "0"),
    "MRPC": (
        ("Quality", "#1 ID", "#2 ID", "#1 String", "#2 String"),
        lambda n: (n % 2, 702876 + n * 7 % 50, 702977 + n * 11 % 50, said(n), said(n + 1)),
        "pair",
        ("#1 String", "#2 String"),
        "0",
    ),
    "CoLA": (
        (),
        lambda n: ("gj04" if n < 30 else "ks08", n % 2, "" if n % 2 else "*", said(n)),
        "classify",
        ("text",),
        "0",
    ),
    "QQP": (
        ("id", "qid1", "qid2", "question1", "question2", "is_duplicate"),
        lambda n: (133273 + n * 7 % 50, 213221 + n, 213222 + n, said(n), said(n + 1), n % 2),
        "pair",
        ("question1", "question2"),
        "0",
    ),
    "QNLI": (
        ("index", "question", "sentence", "label"),
        lambda n: (n, said(n), said(n + 1), ("entailment", "not_entailment")[n % 2]),
        "pair",
        ("question", "sentence"),
        "entailment",
    ),
    "WNLI": (
        ("index", "sentence1", "sentence2", "label"),
        lambda n: (n, said(n), said(n + 1), n % 2),
        "pair",
        ("sentence1", "sentence2"),
        "0",
    ),
    "STS-B": (
        STSB,
        lambda n: (
            n,
            "news",
            "MSRvid",
            "2012test",
            f"{n:04d}",
            "none",
            "none",
            said(n),
            said(n + 1),
            f"{n % 26 / 5:.3f}",
        ),
        "regress",
        ("sentence1", "sentence2"),
        0.0,
    ),
}


@pytest.mark.parametrize("name", GLUE)
def test_glue(name, folder):
    header, row, task, fields, label = GLUE[name]
    found = read_folder(folder(glue(header, row)), None, AUTO)
    assert [len(found[split]) for split in ("train", "dev")] == [MANY, MANY]
    assert (found["train"].task, found["train"].fields, found["train"][0].label) == (task, fields, label)
    assert found["train"][3].texts[0] == said(3)
    assert f"task = {task}" in notes_of(found["train"])


def test_quotes_of_glue_are_letters(folder):
    rows = [(f'" {said(number)}', number % 2) for number in range(MANY)]
    found = read_folder(folder({"train.tsv": tsv(("sentence", "label"), *rows)}), None, AUTO)["train"]
    assert len(found) == MANY
    assert found[0].text_a.startswith('" ')


def test_mnli_has_two_development_sets(folder):
    head, labels = [*MNLI, "label1", "gold_label"], [(NLI[n % 3], NLI[n % 3]) for n in range(MANY)]
    text = tsv(head, *((*mnli(n), *labels[n]) for n in range(MANY)))
    five = [*MNLI, "label1", "label2", "label3", "label4", "label5", "gold_label"]
    other = tsv(five, *((*mnli(n), *(NLI[(n + k) % 3] for k in range(5)), NLI[n % 3]) for n in range(9)))
    found = read_folder(
        folder(
            {
                "train.tsv": text,
                "dev_matched.tsv": other,
                "dev_mismatched.tsv": other,
                "test_matched.tsv": tsv(MNLI, mnli(1)),
            }
        ),
        None,
        AUTO,
    )
    assert {name: len(split) for name, split in found.items()} == {"train": MANY, "dev": 9, "test": 1}
    assert found["dev"].fields == ("sentence1", "sentence2")
    assert [each.label for each in found["dev"]][:3] == list(NLI)
    assert "left out: dev_mismatched.tsv" in notes_of(found["dev"])


def test_a_broken_row_of_a_large_set_is_left_out_and_told(folder):
    """QQP has such rows. Of a small file, or many of them, they are refused."""
    rows = [(number, said(number), said(number + 1), number % 2) for number in range(2400)]
    rows[7] = (7, "broken")
    head = ("id", "question1", "question2", "is_duplicate")
    found = read_examples(folder({"train.tsv": tsv(head, *rows)}) / "train.tsv", None, "train", AUTO)
    assert len(found) == 2399
    assert "1 row with another number of columns than 4: left out (lines 9)" in notes_of(found)
    with pytest.raises(TextError, match="the line has 2 columns"):
        read_examples(folder({"few.tsv": tsv(head, *rows[:400])}) / "few.tsv", None, "train", AUTO)
