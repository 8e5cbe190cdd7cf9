"""The package as others install it: its version, its extras, and where an editable install is found from."""

from __future__ import annotations

import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

import maskery
from maskery.cli import main
from maskery.extras import EXTRAS

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_the_version_is_that_of_the_package(capsys, monkeypatch):
    monkeypatch.setattr(importlib.metadata, "version", lambda name: {"maskery": "7.8.9"}[name])
    assert maskery.__version__ == "7.8.9"
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == "maskery 7.8.9\n"


def test_a_clone_that_nobody_installed_has_a_version(monkeypatch):
    def not_installed(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", not_installed)
    assert maskery.__version__ == PROJECT["version"]


def test_every_extra_is_one_that_can_be_installed():
    extras = PROJECT["optional-dependencies"]
    assert set(EXTRAS.values()) <= extras.keys()
    (every,) = extras["all"]
    assert set(re.findall(r"[\w-]+", every.partition("[")[2])) == set(EXTRAS.values())


def test_torch_is_bounded_below_and_pinned_by_the_constraints_only():
    (bound,) = [each for each in PROJECT["dependencies"] if each.startswith("torch")]
    assert bound == "torch>=2.6"
    pins = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    assert any(line.startswith("torch==") for line in pins)
    named = {line.partition("==")[0].lower().replace("_", "-") for line in pins}
    for each in PROJECT["optional-dependencies"]["test"]:
        name = re.match(r"[\w-]+", each)[0].lower().replace("_", "-")
        assert name in named | {"maskery"}, f"{each} is not pinned"


def test_an_editable_install_is_found_from_the_folder_that_contains_the_clone(tmp_path):
    """There `maskery` is a folder without __init__.py: a namespace, which wins over a finder that comes last."""
    pytest.importorskip("setuptools", minversion="77")
    clone = tmp_path / "work" / "maskery"
    (clone / "maskery").mkdir(parents=True)
    for name in ("pyproject.toml", "README.md", "LICENSE", "maskery/__init__.py"):
        shutil.copy(ROOT / name, clone / name)
    (tmp_path / "wheel").mkdir()
    build = "from setuptools import build_meta; build_meta.build_editable('../../wheel')"
    plain = {**os.environ, "PYTHONPATH": "", "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(
        [sys.executable, "-c", build], cwd=clone, env=plain, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-500:]
    (wheel,) = (tmp_path / "wheel").glob("*.whl")
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(tmp_path / "site")
    script = f"import site; site.addsitedir({str(tmp_path / 'site')!r})\nimport maskery; print(maskery.__file__)"
    # -S: the editable install of the machine that runs the tests is none of this test's.
    found = subprocess.run(
        [sys.executable, "-S", "-c", script],
        cwd=tmp_path / "work",
        env=plain,
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout.strip() == str(clone / "maskery" / "__init__.py")
