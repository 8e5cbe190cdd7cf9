"""The lines of the guides that take rows in Python are run, with small models in the places of those of the guides."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from networks import model_of
from small_encoder import small_encoder
from small_task import quiet

import maskery
from maskery.vectors.folder import write_encoder

DOCS = Path(__file__).parent.parent / "docs"
BLOCK = re.compile(r"^```python\n(.*?)^```$(?:\n\n```\n(.*?)^```$)?", re.MULTILINE | re.DOTALL)
GUIDES = ("finetune", "predict", "evaluate", "embed", "corpus")
LABELS = ("debugger", "string-methods", "csv")
ROWS = re.compile(r"pandas|rows = \[")


def blocks(guide, folder=DOCS):
    """(code, output or "") of the blocks with tables or rows."""
    found = BLOCK.findall((folder / "guide" / f"{guide}.md").read_text(encoding="utf-8"))
    return [(code, output) for code, output in found if ROWS.search(code)]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("guide")
    model_of(pooler=True).save(folder / "my-run")
    write_encoder(small_encoder(), folder / "minilm")
    (folder / "pages").mkdir()
    for name in ("train", "dev"):
        lines = [f'{LABELS[number % 3]}\tthe "cat" {"x" * (number % 3)} sat {number}\n' for number in range(24)]
        (folder / "pages" / f"{name}.tsv").write_text("".join(lines), encoding="utf-8")
    train = folder / "pages" / "train.tsv"
    maskery.finetune(folder / "my-run", train=train, out=folder / "page-finder", settings={"epochs": 1}, say=quiet)
    return folder


@pytest.mark.parametrize("guide", GUIDES)
def test_the_lines_run_and_print_what_stands_there(guide, place, monkeypatch, capsys):
    monkeypatch.chdir(place)
    assert blocks(guide), "a guide with nothing to run shows nothing"
    for code, output in blocks(guide):
        capsys.readouterr()
        exec(compile(code, guide, "exec"), {})
        printed = capsys.readouterr().out
        assert printed == output if output else printed


@pytest.mark.parametrize("guide", GUIDES)
def test_both_languages_have_them(guide):
    assert blocks(guide, DOCS / "zh") == blocks(guide)
