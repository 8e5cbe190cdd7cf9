"""CONTRIBUTING is done as it is written: each walk in a copy of the package, with the commands that it gives.

A sentence that ends with the name of a new file is followed by the file; one with "In `FILE`:" by a diff, whose lines
with a space stand in the file and whose lines with a plus are added there. `sh` blocks are run.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGE, CHINESE = ROOT / "CONTRIBUTING.md", ROOT / "docs" / "zh" / "contributing.md"
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
WALKS = ["Add a recipe", "Add an objective", "Add a corruption"]
CONTENTS = ["maskery", "tests", "docs", "pyproject.toml"]


def section(page, title):
    return re.split(r"^## ", page.read_text(encoding="utf-8").partition(f"\n## {title}\n")[2], flags=re.MULTILINE)[0]


def steps(text):
    """(what, file, content) for each block of a walk: "new", "diff" or "sh"."""
    found, end = [], 0
    for block in BLOCK.finditer(text):
        kind, content, before = block[1], block[2], text[end : block.start()].strip()
        end = block.end()
        if kind == "sh":
            found.append(("sh", None, content))
            continue
        file = re.search(r"(?:New file|In) `([^`]+)`:$", before)
        assert file, f"the text before a block says where it goes: {before[-80:]}"
        found.append(("diff" if kind == "diff" else "new", file[1], content))
    return found


def patched(text, diff):
    """The text with a diff's new lines; its other lines must stand in it, once and together."""
    lines = diff.splitlines()
    assert all(line[:1] in (" ", "+", "") for line in lines), "lines begin with a space or a plus"
    known = "\n".join(line[1:] for line in lines if not line.startswith("+")) + "\n"
    assert text.count(known) == 1, f"stands {text.count(known)} times in the file:\n{known}"
    return text.replace(known, "\n".join(line[1:] for line in lines) + "\n")


def run(line, folder):
    environment = {**os.environ, "PYTHONPATH": str(folder), "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    for name in ("PYTEST_XDIST_WORKER", "PYTEST_CURRENT_TEST", "PYTEST_ADDOPTS"):
        environment.pop(name, None)
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", line],
        cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"{line}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout


@pytest.fixture
def copy(tmp_path):
    unwanted = shutil.ignore_patterns("test_contributing.py")  # bytecode of unchanged files is as good there
    for name in CONTENTS:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, tmp_path / name, ignore=unwanted)
        else:
            shutil.copy(source, tmp_path / name)
    return tmp_path


def test_commands_meet_the_copy(copy):
    code = "import maskery, sys; print(maskery.__file__)"
    assert Path(run(f"python -c '{code}'", copy).strip()).is_relative_to(copy)


@pytest.mark.parametrize("title", WALKS)
def test_a_walk_can_be_walked(title, copy):
    commands = 0
    for what, file, content in steps(section(PAGE, title)):
        if what == "sh":
            for line in content.splitlines():
                out = run(line, copy)
                if "pytest" in line:
                    commands += 1
                    assert int(re.search(r"(\d+) passed", out)[1]) > 5, out
        elif what == "new":
            assert not (copy / file).exists(), f"{file} is there already: choose another example"
            (copy / file).write_text(content, encoding="utf-8")
        else:
            path = copy / file
            path.write_text(patched(path.read_text(encoding="utf-8"), content), encoding="utf-8")
    assert commands == 1, "a walk ends with the tests that watch the piece"
    new = [file for what, file, _ in steps(section(PAGE, title)) if what == "new" and file.endswith(".py")]
    for file in new:
        run(f"ruff check {file} && ruff format --check {file}", copy)


def test_the_pages_have_the_same_blocks():
    english, chinese = (BLOCK.findall(page.read_text(encoding="utf-8")) for page in (PAGE, CHINESE))
    assert english == chinese


@pytest.mark.parametrize("page", [PAGE, CHINESE], ids=["english", "chinese"])
def test_what_the_pages_name_exists(page):
    text = BLOCK.sub("", page.read_text(encoding="utf-8"))
    new = {file for title in WALKS for what, file, _ in steps(section(PAGE, title)) if what == "new"}
    for name in re.findall(r"`((?:maskery|tests|docs)/[\w/.-]+)`", text):
        assert name in new or (ROOT / name).exists(), name
    for link in re.findall(r"\]\(([^)#:]+)\)", text):
        assert (page.parent / link).is_file(), link
    for name in re.findall(r"`(test_\w+)`", text):
        assert any(f"def {name}(" in each.read_text(encoding="utf-8") for each in (ROOT / "tests").glob("*.py")), name


def test_a_diff_is_put_in_its_place():
    assert patched("a\nb\nc\n", " b\n+new\n") == "a\nb\nnew\nc\n"
    assert patched("a\nb\nc\n", "+new\n b\n+too\n") == "a\nnew\nb\ntoo\nc\n"
    with pytest.raises(AssertionError, match="0 times"):
        patched("a\n", " b\n+c\n")
