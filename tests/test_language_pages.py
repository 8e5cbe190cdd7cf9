"""Results and pages in Chinese: no English sentence is left in them, and JSON is the same in both languages."""

import json
import re

import pytest
from networks import model_of
from pages import Page
from rich.cells import cell_len
from small_run import corpus_in

from maskery.cli import main
from maskery.language import phrases
from maskery.language.lines import LINES
from maskery.language.patterns import translated
from maskery.tasks.framing.lengths import length_report
from maskery.tasks.judge.baselines import _MAKERS
from maskery.tasks.judge.measure import _verdict

ENGLISH = re.compile(r"\b(the|of|is|are|was|were|with|that|and|by|from|than|for|has|have|at|not|no)\b", re.IGNORECASE)
"""Words that every English sentence has one of, and names of models, metrics, keys and options do not."""
PATH = re.compile(r"[^\s：]*/[^\s：，；]*")
HAN = re.compile("[\u4e00-\u9fff]")
CLASSES = "text\tlabel\n" + "".join(
    f"{'x cat' if each % 2 else 'y mat'} sat\t{'odd' if each % 2 else 'even'}\n" for each in range(16)
)
SCORES = "text_a\ttext_b\tscore\n" + "".join(f"x cat{' sat' * (each % 4)}\tx mat\t{each % 4}\n" for each in range(16))
TAGS = "".join(
    json.dumps({"text": "x cat sat y", "label": {"one": {"x": [[0, 0]]}, "two": {"y": [[10, 10]]}}}) + "\n"
    for _ in range(16)
)
ANSWERS = json.dumps(
    {
        "data": [
            {
                "paragraphs": [
                    {
                        "context": "x cat sat on mat y",
                        "qas": [
                            {"id": str(each), "question": "x cat", "answers": [{"text": "sat", "answer_start": 6}]}
                            for each in range(8)
                        ],
                    }
                ]
            }
        ]
    }
)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A model, a run of pretraining, a run of each kind of task, an encoder: all written by commands in Chinese."""
    folder = tmp_path_factory.mktemp("chinese")
    model_of("masked_token").save(folder / "base")
    corpus_in(folder)
    for name, text in {"c.tsv": CLASSES, "s.tsv": SCORES, "t.jsonl": TAGS, "q.json": ANSWERS}.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def said(capsys, *arguments):
    """What a command prints in Chinese."""
    capsys.readouterr()
    assert main([*map(str, arguments), "--lang", "zh"]) == 0
    found = capsys.readouterr()
    return found.out + found.err


def english_in(lines):
    """Those that hold a word of an English sentence outside the names of files."""
    return [line for line in lines if ENGLISH.search(PATH.sub("", line))]


def texts_of(path):
    """All that is read on a page: text, and what is shown on hovering."""
    page = Page(path.read_text(encoding="utf-8"))
    hovered = [value for _, name, value in page.attributes if name in ("title", "aria-label") and value]
    return [*page.texts, *hovered]


def is_chinese(path):
    shown = texts_of(path)
    assert HAN.search("".join(shown))
    assert english_in(shown) == []
    assert '<html lang="zh' in path.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("data", "more"),
    [
        ("c.tsv", ()),
        ("c.tsv", ("--seeds", "2")),
        ("c.tsv", ("--budget", "60s")),
        ("s.tsv", ()),
        ("t.jsonl", ("--task", "tag")),
        ("q.json", ()),
    ],
    ids=["classify", "seeds", "budget", "regress", "tag", "qa"],
)
def test_fine_tuning(place, tmp_path, capsys, data, more):
    files = ("--train", place / data, "--dev", place / data, "--test", place / data)
    epochs = () if "--budget" in more else ("--epochs", 1)
    printed = said(capsys, "finetune", place / "base", *files, "--out", tmp_path / "run", *epochs, *more)
    assert english_in(printed.splitlines()) == []
    is_chinese(tmp_path / "run" / "report.html")
    printed = said(capsys, "evaluate", tmp_path / "run", "--data", place / data, "--html", tmp_path / "page.html")
    assert english_in(printed.splitlines()) == []
    is_chinese(tmp_path / "page.html")
    printed = said(capsys, "predict", tmp_path / "run", place / data, "--out", tmp_path / "answers.tsv")
    assert english_in(printed.splitlines()) == []
    printed = said(capsys, "info", tmp_path / "run", "--html", tmp_path / "info.html")
    assert english_in(printed.splitlines()) == []
    is_chinese(tmp_path / "info.html")


def test_pretraining(place, tmp_path, capsys):
    corpus = ("--corpus", place / "corpus")
    command = ("pretrain", "bert", *corpus, "--size", "tiny", "--steps", 4)
    printed = said(capsys, *command, "--out", tmp_path / "run")
    assert english_in(printed.splitlines()) == []
    assert "验证集损失" in printed
    assert "词频" in printed
    for name, more in {"run.html": ("run",), "runs.html": ("run", "run")}.items():
        runs = [tmp_path / each for each in more]
        assert english_in(said(capsys, "info", *runs, "--html", tmp_path / name).splitlines()) == []
        is_chinese(tmp_path / name)
    said(capsys, "info", "bert", "--draw", tmp_path / "network.html")
    is_chinese(tmp_path / "network.html")
    said(capsys, "inspect", "bert", *corpus, "--html", tmp_path / "rows.html")
    is_chinese(tmp_path / "rows.html")
    assert english_in(said(capsys, "inspect", "bert", *corpus).splitlines()) == []
    printed = said(capsys, "compare", "bert", "roberta", *corpus, "--steps", 2, "--size", "tiny", "--rows", 8,
                   "--out", tmp_path / "compared", "--html", tmp_path / "compared.html")  # fmt: skip
    assert english_in(printed.splitlines()) == []
    is_chinese(tmp_path / "compared.html")


def test_attention_and_vectors(place, tmp_path, capsys):
    base = place / "base"
    assert english_in(said(capsys, "explain", base, "x cat sat").splitlines()) == []
    said(capsys, "explain", base, "x cat sat", "--html", tmp_path / "heads.html")
    is_chinese(tmp_path / "heads.html")
    files = ("--train", place / "s.tsv", "--dev", place / "s.tsv")
    printed = said(capsys, "vectors", "train", base, "--loss", "cosent", *files, "--epochs", 1, "--out", tmp_path / "v")
    assert english_in(printed.splitlines()) == []
    printed = said(capsys, "evaluate", tmp_path / "v", "--task", "sts", "--data", place / "s.tsv")
    assert english_in(printed.splitlines()) == []
    assert "个句对" in printed
    for verb in ("heat", "map"):
        said(capsys, "vectors", verb, tmp_path / "v", place / "c.tsv", "--html", tmp_path / f"{verb}.html")
        is_chinese(tmp_path / f"{verb}.html")


def test_programs_read_the_same_in_both_languages(place, tmp_path, capsys):
    files = ("--train", place / "c.tsv", "--dev", place / "c.tsv", "--epochs", "1")
    assert main([*map(str, ("finetune", place / "base", *files, "--out", tmp_path / "run"))]) == 0
    found = {}
    for lang in ("en", "zh"):
        for verb in (("evaluate", tmp_path / "run", "--data", place / "c.tsv"), ("info", tmp_path / "run")):
            capsys.readouterr()
            assert main([*map(str, verb), "--json", "--lang", lang]) == 0
            found.setdefault(verb[0], []).append(json.loads(capsys.readouterr().out))
    for one, other in found.values():
        assert one == other


def test_the_environment_chooses_for_every_verb(place, monkeypatch, capsys):
    monkeypatch.setenv("MASKERY_LANG", "zh_CN.UTF-8")
    assert main(["info", str(place / "base")]) == 0
    assert "参数：合计" in capsys.readouterr().out
    assert main(["info", str(place / "base"), "--lang", "en"]) == 0
    assert "parameters, total" in capsys.readouterr().out
    assert main(["info", str(place / "base")]) == 0  # what an option said is forgotten
    assert "参数：合计" in capsys.readouterr().out


def test_sentences_stand_in_each_other():
    assert translated("dev: 3 of 1,136 texts hold no token") == "验证集：1,136 条文本中有 3 条没有任何 token"
    assert translated("nobody wrote this down") == "nobody wrote this down"
    head = length_report({"text": [3, 5]}).lines[0]
    assert cell_len(translated(head)) == cell_len(head), "columns stay above their figures"
    assert translated(head).split()[:3] == ["位置", "行数", "平均"]
    assert translated("rows of 8 slots: the model reads no more; none is longer").startswith("序列长度 8")


@pytest.mark.parametrize("english", LINES)
def test_every_pattern_finds_its_own_sentence(english):
    """Filled with numbers and words, a sentence comes out as its own Chinese, not as that of another pattern."""
    values = {name: "12" if re.fullmatch(r"n\d*", name) else "Wort" for name in re.findall(r"\{(\w+)\}", english)}
    assert translated(english.format(**values)) == LINES[english].format(**values)
    assert not HAN.search(english)


@pytest.mark.parametrize(("bounds", "start"), [((0.1, 0.2), "优于"), ((-0.1, 0.1), "与"), ((-0.2, -0.1), "不如")])
def test_the_verdict_names_baselines_as_the_table_does(bounds, start):
    for name in {name for makers in _MAKERS.values() for name in makers}:
        said = translated(_verdict("accuracy", 0.5, name, 0.4, bounds))
        assert said.startswith(f"模型{start}最好的基线（{phrases('zh').name(name)}）"), said
        assert not ENGLISH.search(said)
