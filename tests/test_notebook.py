"""The notebook runs: all its cells in order, in an empty folder, as a notebook would run and show them."""

import ast
import json
import re
from pathlib import Path

import pytest

import maskery

DOCS = Path(__file__).parent.parent / "docs"
ENGLISH, CHINESE = DOCS / "notebooks" / "first-steps.ipynb", DOCS / "zh" / "notebooks" / "first-steps.ipynb"
every_notebook = pytest.mark.parametrize("path", [ENGLISH, CHINESE], ids=["english", "chinese"])


def cells(path):
    return json.loads(path.read_text(encoding="utf-8"))["cells"]


def sources(path, kind):
    return ["".join(cell["source"]) for cell in cells(path) if cell["cell_type"] == kind]


def run_cell(source, names):
    """Run a cell and give the value of its last expression, as a notebook does."""
    tree = ast.parse(source)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "cell", "exec"), names)
    return None if last is None else eval(compile(ast.Expression(last.value), "cell", "eval"), names)


@every_notebook
def test_it_runs_learns_and_shows(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names, shown = {"__name__": "__main__"}, []
    for source in sources(path, "code"):
        value = run_cell(source, names)
        shown.append(value._repr_html_() if hasattr(value, "_repr_html_") else value)

    last = next(value for value in shown if isinstance(value, dict) and "eval/accuracy" in value)
    assert last["step"] == 400
    assert 0.6 < last["eval/accuracy"] <= 1
    blank = "The {} says [MASK]." if path == ENGLISH else "{}住在{}，[MASK][MASK]叫。"
    texts = {each: blank.format(each, home) for each, (_, home) in names["animals"].items()}
    said = {each: maskery.fill(names["model"], text).masks[0].candidates[0].token for each, text in texts.items()}
    right = [animal for animal, (sound, _) in names["animals"].items() if said[animal] == sound]
    assert len(right) >= 5, said

    pictures = [value for value in shown if isinstance(value, str) and "<div" in value]
    assert len(pictures) == 3, "a masking, curves, heads"
    assert shown[-1] == ["curves.html", "heads.html"]
    for name in shown[-1]:
        assert Path(name).read_text(encoding="utf-8").startswith("<!doctype html>")
    assert Path("animals-run", "model.safetensors").is_file()


@every_notebook
def test_a_notebook_is_whole_and_holds_no_output(path):
    book = json.loads(path.read_text(encoding="utf-8"))
    assert (book["nbformat"], book["nbformat_minor"]) == (4, 5)
    assert book["metadata"]["kernelspec"]["name"] == "python3"
    names = [cell["id"] for cell in book["cells"]]
    assert len(names) == len(set(names))
    for cell in book["cells"]:
        assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", cell["id"])
        assert cell["metadata"] == {}
        if cell["cell_type"] == "code":
            assert cell["outputs"] == []
            assert cell["execution_count"] is None
    for link in re.findall(r"\]\(([^)#:]+)\)", "".join(sources(path, "markdown"))):
        assert (path.parent / link).is_file(), link


def test_the_translation_has_the_same_cells_and_its_own_text():
    assert [cell["cell_type"] for cell in cells(ENGLISH)] == [cell["cell_type"] for cell in cells(CHINESE)]
    assert not re.search("duck|quack|cat", "".join(sources(CHINESE, "code")))
    english, chinese = sources(ENGLISH, "markdown"), sources(CHINESE, "markdown")
    assert [each.count("\n\n") for each in english] == [each.count("\n\n") for each in chinese]
    assert all(re.search("[一-鿿]", each) for each in chinese)
