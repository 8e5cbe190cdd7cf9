"""The shape of the code: imports go against the flow of data, files and functions stay small, nothing is unfinished."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "maskery"
MODULES = sorted(PACKAGE.rglob("*.py"))
TEXTS = [
    path
    for folder in ("maskery", "tests", "benchmarks", "docs")
    for path in sorted((ROOT / folder).rglob("*"))
    if path.suffix in (".py", ".md", ".toml", ".txt", ".json") and path.is_file()
] + [path for path in sorted(ROOT.iterdir()) if path.suffix in (".md", ".toml", ".txt") or path.name == "Makefile"]

ORDER = [
    "errors", "arguments", "edit", "randomness", "registry", "config", "files", "extras", "hub", "language", "picture",
    "records",
    "configs",
    "text", "knowledge", "corpus", "words", "rows", "corruption", "batches", "model", "objectives",
    "recipes", "phases", "feed", "rewrite", "system", "inspection",
    "checkpoint", "train", "writing", "tasks", "vectors", "compress", "compare", "explain", "cli", "__main__",
]  # fmt: skip
"""A part may import those before it. "configs" are the tables of a recipe (`*/config.py`): every axis names its own
choices there, a recipe reads them all, and no code of an axis is needed to read a recipe."""

LONGEST_FILE, LONGEST_FUNCTION = 400, 60


def part_of(module: str) -> str:
    names = module.split(".")[1:]
    return "configs" if names[1:] == ["config"] else names[0]


def name_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def imports(tree: ast.AST) -> set[str]:
    """The modules of the package that are imported when the code runs, inside functions too."""
    found: set[str] = set()
    typing_only = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        for statement in node.body
        for inner in ast.walk(statement)
    }
    for node in ast.walk(tree):
        if id(node) in typing_only:
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            found |= {
                f"{node.module}.{alias.name}" if node.module == "maskery" else node.module for alias in node.names
            }
    return {name for name in found if name.startswith("maskery.")}


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_imports_go_against_the_flow_of_data(path):
    module = name_of(path)
    found = imports(ast.parse(path.read_text(encoding="utf-8")))
    if module == "maskery":
        assert not found, "public names are imported when they are first used"
        return
    here = part_of(module)
    assert here in ORDER, f"give {here} its place in the order"
    allowed = set(ORDER[: ORDER.index(here)])
    if here != "configs":
        allowed.add(here)
    wrong = {name for name in found if part_of(name) not in allowed}
    assert not wrong, f"{module} imports {wrong}, which come after it"


def test_the_order_has_no_dead_names():
    parts = {part_of(name_of(path)) for path in MODULES if name_of(path) != "maskery"}
    assert parts == set(ORDER)


def test_the_check_sees_what_it_should():
    code = (
        "from typing import TYPE_CHECKING\nimport os\nif TYPE_CHECKING:\n    from maskery.cli import app\n"
        "def f():\n    from maskery import files\n    import maskery.train.run\n"
        "    from maskery.rows.config import KINDS\n"
    )
    found = imports(ast.parse(code))
    assert found == {"maskery.files", "maskery.train.run", "maskery.rows.config"}
    assert {part_of(name) for name in found} == {"files", "train", "configs"}


def test_code_is_found_by_closed_tables_only():
    """Where a name becomes code: registries, the table of verbs, the public names, the optional libraries."""
    dynamic = re.compile(r"\b(import_module|__import__|eval|exec|pickle)\b\s*[(.]")
    found = {name_of(path) for path in MODULES if dynamic.search(without_strings(path))}
    assert found == {"maskery", "maskery.registry", "maskery.extras", "maskery.cli.app"}


def without_strings(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            node.value = ""
    return ast.unparse(tree).replace(".eval()", "")


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_files_and_functions_are_small_and_explained(path):
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    assert ast.get_docstring(tree), "says what it is"
    assert text.count("\n") <= LONGEST_FILE
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = node.end_lineno - node.lineno + 1
            assert length <= LONGEST_FUNCTION, f"{node.name} has {length} lines"
            assert node.name.startswith("_") or node.args.kwarg is None, f"{node.name} takes anything"


@pytest.mark.parametrize("path", sorted((ROOT / "tests").glob("*.py")), ids=name_of)
def test_tests_stay_readable_too(path):
    assert path.read_text(encoding="utf-8").count("\n") <= LONGEST_FILE


UNFINISHED = re.compile("|".join(("TO" + "DO", "FIX" + "ME", "X" * 3 + r"\b", "raise Not" + "ImplementedError")))
MACHINE = re.compile(
    "|".join(rf"(?<![\w.]){place}\b" for place in ("/wo" + "rk/", "/ho" + "me/", "/ro" + "ot/", "/Us" + "ers/"))
)
HOSTS = re.compile(
    "|".join(("py" + r"pi\.org", "files.python" + "hosted", "download.py" + "torch", "mir" + "ror")), re.I
)


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_nothing_is_unfinished_and_nothing_names_this_machine(path):
    text = path.read_text(encoding="utf-8")
    for pattern in (UNFINISHED, MACHINE, HOSTS):
        found = pattern.search(text)
        assert found is None, f"line {text.count(chr(10), 0, found.start()) + 1}: {found[0]}"
