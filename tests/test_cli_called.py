"""Commands that are printed to be copied begin with a name that the shell finds."""

import sys
from pathlib import Path

from maskery.cli import called
from maskery.cli.called import program


def test_the_program_is_named_as_a_shell_finds_it(tmp_path, monkeypatch):
    monkeypatch.setattr(called.shutil, "which", lambda name: f"/usr/bin/{name}")
    assert program() == "maskery"
    monkeypatch.setattr(called.shutil, "which", lambda name: None)
    python = tmp_path / "my environment" / "bin" / "python"
    python.parent.mkdir(parents=True)
    monkeypatch.setattr(sys, "executable", str(python))
    assert program() == f"'{python}' -m maskery"
    script = python.with_name("maskery")
    script.touch(mode=0o755)
    assert program() == f"'{script}'"
    monkeypatch.chdir(tmp_path)
    assert program() == f"'{Path('my environment/bin/maskery')}'"


def test_printed_commands_are_such(monkeypatch):
    from maskery.cli.demo import results

    class Found:
        blanks = (type("Blank", (), {"text": "a [MASK]"})(),)
        run = Path("demo/run")

    monkeypatch.setattr(results, "program", lambda: ".venv/bin/maskery")
    command = results.Found.next_command.fget(Found())
    assert command == ".venv/bin/maskery fill demo/run 'a [MASK]'"
