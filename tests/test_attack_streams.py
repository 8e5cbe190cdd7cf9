"""Streams and places under attack: closed, full, without UTF-8; folders that cannot be made. Nothing is a traceback."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from small_run import TINY_FLAGS, corpus_in, word_tokenizer
from small_task import family_model

from maskery import files
from maskery.cli.app import run
from maskery.errors import InputError
from maskery.files import new_file, new_folder, require_new_file, require_place, require_writable
from maskery.picture import Picture

ROOT = Path(__file__).parents[1]


def maskery(shell: str, **environment) -> subprocess.CompletedProcess:
    """A line of the shell in which `maskery` is this command."""
    line = shell.replace("maskery", f"{sys.executable} -m maskery")
    kept = {name: value for name, value in os.environ.items() if name not in ("LANG", "LC_ALL", "PYTHONUTF8")}
    there = {**kept, "PYTHONPATH": str(ROOT), **environment}
    return subprocess.run(["bash", "-c", line], env=there, capture_output=True, check=False)


@pytest.mark.parametrize(
    ("line", "code", "named"),
    [
        ("maskery recipes show bert >&-", 2, "stdout: is closed"),
        ("maskery recipes show bert >/dev/full", 2, "stdout: cannot be written to: No space left"),
        ("maskery recipes show nothing 2>&-", 2, ""),
        ("maskery recipes show bert <&- >/dev/null", 0, ""),
        ("maskery recipes show bert | true", 0, ""),
        ("maskery corpus build - --out nowhere/at/all <&-", 2, "stdin: is closed"),
    ],
)
def test_a_stream_that_is_closed_or_full_is_named(line, code, named):
    found = maskery(line)
    assert found.returncode == code, found.stderr
    assert named in found.stderr.decode()
    assert b"Traceback" not in found.stderr + found.stdout
    assert b"Exception ignored" not in found.stderr


@pytest.mark.parametrize("locale", ["C", "POSIX"])
def test_arguments_and_names_are_utf8_whatever_the_locale(locale, tmp_path):
    (tmp_path / "配方.toml").write_text('extends = "bert"\nname = "北京"\n', encoding="utf-8")
    environment = {"LC_ALL": locale, "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
    found = maskery(f"maskery recipes show {tmp_path}/配方.toml --set problem=天安门", **environment)
    assert found.returncode == 0, found.stderr
    assert 'name = "北京"' in found.stdout.decode()
    assert 'problem = "天安门"' in found.stdout.decode()


def test_bytes_that_are_no_utf8_are_half_characters():
    tokenizer = word_tokenizer()
    for use in (tokenizer.encode, tokenizer.encode_marked, lambda text: tokenizer.encode_raw([text])):
        with pytest.raises(InputError, match=r"character 5 of a text is half a character, '\\udce4'"):
            use("bam \udce4")
    with pytest.raises(TypeError):
        tokenizer.encode(7)


# Places


@pytest.fixture(scope="module")
def given(tmp_path_factory):
    top = tmp_path_factory.mktemp("given")
    family_model(top / "model", "bert")
    corpus_in(top)
    rows = "\n".join(f"the cat sat {number}\t{'ab'[number % 2]}" for number in range(12))
    (top / "train.tsv").write_text(f"text\tlabel\n{rows}\n")
    return top


COMMANDS = {
    "pretrain": ["pretrain", "bert", "--corpus", "{given}/corpus", *TINY_FLAGS],
    "corpus build": ["corpus", "build", "{given}/text.txt"],
    "words train": ["words", "train", "{given}/corpus"],
    "finetune": ["finetune", "{given}/model", "--train", "{given}/train.tsv"],
    "vectors train": ["vectors", "train", "{given}/model", "--loss", "simcse", "--train", "{given}/text.txt"],
    "vectors after": ["vectors", "after", "{given}/model", "--kind", "whitening", "--text", "{given}/text.txt"],
    "export": ["export", "{given}/model"],
    "import": ["import", "{given}/model"],
    "compare": ["compare", "bert", "roberta", "--corpus", "{given}/corpus"],
}


@pytest.mark.parametrize("place", ["link", "under a link", "under a file", "folder/..", "none/..", "not UTF-8"])
@pytest.mark.parametrize("name", COMMANDS)
def test_a_place_where_nothing_can_be_made_is_refused_before_the_work(given, name, place, tmp_path, capsys):
    (tmp_path / "link").symlink_to("nothing")
    (tmp_path / "file").write_text("")
    (tmp_path / "folder").mkdir()
    out = {
        "under a link": "link/run",
        "under a file": "file/run",
        "not UTF-8": "\udce4",
    }.get(place, place)
    before = sorted(tmp_path.iterdir())
    code = run([*(part.format(given=given) for part in COMMANDS[name]), "--out", f"{tmp_path}/{out}"])
    said = capsys.readouterr().err
    assert code == 2, said
    assert str(tmp_path) in said
    assert "repair: " in said
    assert sorted(tmp_path.iterdir()) == before


def test_every_way_to_write_refuses_such_a_place(tmp_path):
    link = tmp_path / "link"
    link.symlink_to("nothing")
    for check in (require_place, require_writable, require_new_file):
        with pytest.raises(InputError, match="is a link to nothing, which is not there"):
            check(link)
    with pytest.raises(InputError, match="is a link to nothing"), new_folder(link / "run"):
        pass
    with pytest.raises(InputError, match="is a link to nothing"), new_file(link):
        pass
    with pytest.raises(InputError, match="is a link to nothing"):
        Picture("a", "b").save(link / "page.html")
    (tmp_path / "there").mkdir()
    (tmp_path / "good").symlink_to("there")
    require_writable(tmp_path / "good" / "run")


@pytest.mark.parametrize("linked", [False, True])
def test_a_new_file_takes_the_place_of_no_pipe_and_no_device(linked, tmp_path):
    pipe = out = tmp_path / "pipe"
    os.mkfifo(pipe)
    if linked:
        out = tmp_path / "link"
        out.symlink_to(pipe)
    with pytest.raises(InputError, match="is a pipe, not a file"), new_file(out) as file:
        file.write(b"answers")
    assert pipe.is_fifo()
    assert out.is_symlink() == linked
    assert sorted(tmp_path.iterdir()) == sorted({pipe, out})


def test_a_link_among_the_devices_is_not_replaced(monkeypatch, tmp_path):
    monkeypatch.setattr(files, "_DEVICES", tmp_path)
    (tmp_path / "there").write_text("as it was")
    (tmp_path / "stdout").symlink_to(tmp_path / "there")
    with pytest.raises(InputError, match="is a device, not a file"), new_file(tmp_path / "stdout") as file:
        file.write(b"answers")
    assert (tmp_path / "stdout").is_symlink()
    assert (tmp_path / "there").read_text() == "as it was"
