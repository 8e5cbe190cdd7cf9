"""Completion scripts: bash is asked what it would offer; the others are read, and checked by a shell that is here."""

import os
import pty
import shutil
import subprocess
import sys
from contextlib import suppress

import pytest

from maskery.cli import completion, main
from maskery.cli.app import VERBS
from maskery.model.config import SIZES
from maskery.recipes.layers import names


@pytest.fixture(scope="module")
def scripts():
    found = completion.places()
    return {shell: write(found) for shell, write in completion.SCRIPTS.items()}


@pytest.fixture(scope="module")
def script(scripts, tmp_path_factory):
    path = tmp_path_factory.mktemp("completion") / "maskery.bash"
    path.write_text(scripts["bash"], encoding="utf-8")
    return path


def offered(script, line):
    """What bash offers at the end of a command line."""
    words = line.split(" ")
    code = f"""
        source {script}
        COMP_WORDS=({" ".join(f"'{word}'" for word in words)})
        COMP_CWORD={len(words) - 1}
        _maskery
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    done = subprocess.run(["bash", "-u", "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return done.stdout.split()


def test_verbs(script):
    assert offered(script, "maskery ") == list(VERBS)
    assert offered(script, "maskery pre") == ["pretrain", "predict"]
    assert offered(script, "maskery --") == ["--help", "--version"]
    assert offered(script, "maskery corpus ")[:1] == ["build"]
    assert {"show", "diff"} <= set(offered(script, "maskery recipes "))
    assert offered(script, "maskery nothing-like-this") == []


def test_options_of_a_verb(script):
    found = offered(script, "maskery pretrain bert --")
    assert {"--corpus", "--out", "--size", "--resume", "--json", "--help"} <= set(found)
    assert offered(script, "maskery pretrain bert --sa") == ["--save-every"]
    assert "--vocab" in offered(script, "maskery corpus build text.txt --")
    assert "--vocab" not in offered(script, "maskery corpus --")


def test_values(script):
    assert offered(script, "maskery pretrain ") == names()
    assert offered(script, "maskery pretrain st") == ["structbert"]
    assert offered(script, "maskery recipes diff bert ro") == ["roberta", "roberta-wwm-ext"]
    assert offered(script, "maskery pretrain bert --size ") == list(SIZES)
    assert offered(script, "maskery pretrain bert --size sm") == ["small"]
    assert offered(script, "maskery corpus build a.txt --errors ") == ["strict", "replace"]
    assert offered(script, "maskery completion ") == ["bash", "zsh", "fish"]


def test_where_a_path_is_wanted_nothing_stands_in_its_way(script):
    """No offer of ours, so that bash completes files (`-o default`)."""
    assert offered(script, "maskery pretrain bert --out ") == []
    assert offered(script, "maskery corpus build ") == []
    assert offered(script, "maskery fill my-r") == []
    assert "complete -o default -F _maskery maskery" in script.read_text()


def test_a_tab_at_a_terminal(script, tmp_path):
    """A person at a terminal of their own: a tab behind --out completes a folder, before it a size."""
    (tmp_path / "unmistakable").mkdir()
    terminal, end = pty.openpty()
    shell = subprocess.Popen(
        ["bash", "--norc", "--noprofile", "-i"], stdin=end, stdout=end, stderr=end, cwd=tmp_path, start_new_session=True
    )
    os.close(end)
    try:
        os.write(terminal, f'maskery() {{ echo "<$*>"; }}; source {script}\n'.encode())
        os.write(terminal, b"maskery pretrain struc\t--size medi\t--out unmis\t\nexit\n")
        seen = b""
        with suppress(OSError):  # the terminal's end, when the shell has gone
            while data := os.read(terminal, 1000):
                seen += data
    finally:
        os.close(terminal)
        shell.wait(timeout=60)
    assert b"<pretrain structbert --size medium --out unmistakable/>" in seen


def test_every_place_and_option_is_in_every_script(scripts):
    for place in completion.places():
        for option in place.options:
            assert option.name in scripts["bash"]
            assert option.name in scripts["zsh"]
            assert f"-l {option.name[2:]}" in scripts["fish"] or f"-s {option.name[1:]}" in scripts["fish"]
        for word in place.words:
            assert all(word in text for text in scripts.values())


@pytest.mark.parametrize("shell", completion.SCRIPTS)
def test_a_script_is_good_syntax(scripts, shell, tmp_path):
    text = scripts[shell]
    assert f"maskery completion {shell}" in text, "it says how it is used"
    if shell == "zsh":
        assert text.startswith("#compdef maskery\n")
        assert "path=" not in text, "zsh keeps the search path in it"
    if not shutil.which(shell):
        assert text.count("case") > 0
        return
    (tmp_path / "script").write_text(text, encoding="utf-8")
    subprocess.run([shell, "-n", str(tmp_path / "script")], check=True)


def test_an_unknown_shell(capsys):
    assert main(["completion", "bsh"]) == 2
    err = capsys.readouterr().err
    assert "unknown shell 'bsh'" in err
    assert "did you mean bash" in err
    assert "choices: bash, fish, zsh" in err


def test_the_verb_prints_the_script_without_torch(scripts):
    code = "import sys; from maskery.cli import main; main(['completion', 'bash']); assert 'torch' not in sys.modules"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ)
    assert done.stdout == scripts["bash"] + "\n"
