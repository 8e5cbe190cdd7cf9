"""The command line's entry and the `recipes` verb: quick help, exit codes, results on stdout and talk on stderr."""

import io
import json
import math
import re
import subprocess
import sys
import threading
import time
import tomllib

import pytest
from rich.cells import cell_len

from maskery.cli import app, main, output
from maskery.cli.settings import parse_settings
from maskery.errors import InputError, TrainingError
from maskery.recipes.recipe import loads, names, recipe


def command(*arguments):
    return [sys.executable, "-m", "maskery", *arguments]


def with_verb(monkeypatch, action):
    """Put a verb of one function into the table."""

    def verb(word: str = "x") -> None:
        return action()

    monkeypatch.setattr(app, "load_verb", lambda name: verb)


def test_help_is_quick_and_imports_nothing_heavy():
    code = (
        "import sys; from maskery.cli import main; code = main(['--help']); "
        "sys.exit(code or len({'torch', 'pydantic', 'typer', 'rich', 'numpy'} & set(sys.modules)))"
    )
    elapsed = []
    for _ in range(3):
        begun = time.perf_counter()
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        elapsed.append(time.perf_counter() - begun)
        assert done.returncode == 0, done.stderr
    assert min(elapsed) < 0.5
    assert all(f"  {verb} " in done.stdout for verb in app.VERBS)


def test_version_and_bare_call(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("maskery 0.")
    assert main([]) == 2
    assert "Commands:" in capsys.readouterr().err


def test_unknown_verb_and_option(capsys):
    assert main(["pretrian"]) == 2
    assert "did you mean pretrain" in capsys.readouterr().err
    assert main(["--verbose", "recipes"]) == 2
    assert "--verbose" in capsys.readouterr().err


def test_usage_errors_are_exit_2_on_stderr(capsys):
    for arguments in (["show"], ["shwo"], ["--tabel"], ["--json", "show", "bert"], ["show", "bert", "--set", "x"]):
        assert main(["recipes", *arguments]) == 2
        captured = capsys.readouterr()
        assert captured.out == ""
        assert captured.err


def raiser(error):
    def action():
        raise error

    return action


def test_exit_codes(monkeypatch, capsys):
    for error, code in ((InputError("bad input"), 2), (TrainingError("lost", repair="again"), 1)):
        with_verb(monkeypatch, raiser(error))
        assert main(["demo"]) == code
        assert capsys.readouterr().err == error.text() + "\n"
    with_verb(monkeypatch, raiser(KeyboardInterrupt()))
    assert main(["demo"]) == 130
    with_verb(monkeypatch, lambda: 143)
    assert main(["demo"]) == 143
    with_verb(monkeypatch, lambda: None)
    assert main(["demo"]) == 0


def test_a_defect_keeps_its_traceback(monkeypatch, capsys):
    with_verb(monkeypatch, raiser(ZeroDivisionError("oops")))
    assert main(["demo"]) == 1
    err = capsys.readouterr().err
    assert "Traceback" in err
    assert "ZeroDivisionError: oops" in err
    assert err.splitlines()[-1].startswith("this is a defect in maskery")


def test_a_reader_that_goes_away_is_no_error_message():
    code = "import sys; from maskery.cli import main; sys.exit(main(['recipes', 'show', 'bert']))"
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait() == 1


def test_list(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "160")
    assert main(["recipes"]) == 0
    wide = capsys.readouterr().out
    assert any({"bert", "segment", "full"} <= set(line.split()) for line in wide.splitlines())
    monkeypatch.setenv("COLUMNS", "40")
    assert main(["recipes"]) == 0
    narrow = capsys.readouterr().out
    assert max(map(len, narrow.splitlines())) <= 40
    assert "80/10/10" in narrow


def test_json(capsys):
    assert main(["recipes", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert [row["name"] for row in listed] == names()
    assert all(row["problem"] and row["problem_zh"] and row["paper"] for row in listed)


def test_improvements_as_markdown_and_json(capsys):
    assert main(["recipes", "--table"]) == 0
    head, rule, *rows = (line.strip("| ").split(" | ") for line in capsys.readouterr().out.splitlines())
    assert (head[0], head[1], head[-1]) == ("name", "whole words 全词掩盖", "other tasks 其他任务")
    assert len(head) == len(rule) == 13
    assert [row[0].split()[0] for row in rows] == names()
    assert main(["recipes", "--table", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert list(found["recipes"]) == names()
    assert list(found["columns"]) == list(found["recipes"]["bert"])
    assert found["recipes"]["roberta"]["dynamic"] is True


@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_improvements_on_a_terminal(monkeypatch, width):
    monkeypatch.setattr(sys, "stdout", terminal := Terminal())
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("TERM", "xterm")
    assert main(["recipes", "--table"]) == 0
    lines = re.sub(r"\x1b\[[\d;]*m", "", terminal.getvalue()).splitlines()
    assert max(map(cell_len, lines)) <= width
    assert "全词掩盖" in terminal.getvalue()
    bert, wwm = (next(line for line in lines if re.match(rf"\s*{name}[: ]", line)) for name in ("bert", "bert-wwm"))
    assert "✔" in wwm, "a table at every width"
    assert bert.split() == ["bert"]
    if width < 170:
        assert " 1  whole words 全词掩盖" in lines
        head = next(line for line in lines if line.strip().startswith("name"))
        assert head.split() == ["name", *map(str, range(1, 13))]
        assert wwm.index("✔") == head.index("1"), "the tick stands below its number"


def test_show(capsys):
    arguments = ["recipes", "show", "bert", "--size", "tiny", "--set", "training.length=64"]
    assert main([*arguments, "--set", "model.norm=pre"]) == 0
    out = capsys.readouterr().out
    assert loads(out) == recipe("bert", {"training.length": 64, "model.norm": "pre"}, size="tiny")
    assert main([*arguments, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["model"]["width"] == 128


def test_show_tells_what_would_be_refused(capsys):
    assert main(["recipes", "show", "bert", "--set", "rows.pair=none"]) == 0
    captured = capsys.readouterr()
    assert tomllib.loads(captured.out)["rows"]["pair"] == "none"
    assert "would be refused: objectives.next_sentence" in captured.err


def test_show_of_something_unknown(capsys):
    assert main(["recipes", "show", "bret"]) == 2
    assert "did you mean bert" in capsys.readouterr().err
    assert main(["recipes", "show", "bert", "--set", "corruption.rat=1"]) == 2
    assert "corruption.rate" in capsys.readouterr().err


def test_diff(capsys, monkeypatch):
    assert main(["recipes", "diff", "bert", "roberta", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["left"], found["right"]) == ("bert", "roberta")
    assert found["differences"]["corruption.when"] == ["static", "dynamic"]
    assert "problem" not in found["differences"]
    monkeypatch.setenv("COLUMNS", "50")
    assert main(["recipes", "diff", "bert", "roberta"]) == 0
    out = capsys.readouterr().out
    assert "corruption.when" in out
    assert max(map(len, out.splitlines())) <= 50
    assert main(["recipes", "diff", "bert", "bert"]) == 0
    captured = capsys.readouterr()
    assert (captured.out, "same answers" in captured.err) == ("", True)


def test_a_terminal_without_chinese_still_gets_its_json():
    done = subprocess.run(
        command("recipes", "--json"), capture_output=True, check=True, env={"PYTHONIOENCODING": "ascii"}
    )
    told = {each["name"]: each["problem_zh"] for each in json.loads(done.stdout.decode("ascii"))}
    assert told["bert"] == recipe("bert").problem_zh
    shown = subprocess.run(
        command("recipes", "show", "bert"), capture_output=True, check=True, env={"PYTHONIOENCODING": "ascii"}
    )
    assert loads(shown.stdout.decode("ascii")).model == recipe("bert").model


def test_settings_are_toml_values_or_texts():
    given = [
        "a.b=4",
        "c=0.5",
        "d=true",
        'e="4"',
        "f=segment_pair",
        "g=[1, 2]",
        "h={ x = 1 }",
        "i=",
        "j=a=b",
        "k=1\nl=2",
    ]
    assert parse_settings(given) == {
        "a.b": 4,
        "c": 0.5,
        "d": True,
        "e": "4",
        "f": "segment_pair",
        "g": [1, 2],
        "h": {"x": 1},
        "i": "",
        "j": "a=b",
        "k": "1\nl=2",
    }
    assert parse_settings(None) == {}
    for bad in (["model.layers"], ["=3"], ["a=1", "a=2"]):
        with pytest.raises(InputError):
            parse_settings(bad)


def test_progress_in_a_log_is_sparse(capsys):
    now = 0.0
    with output.progress("corpus", 100, every=10, clock=lambda: now) as update:
        for done in range(0, 101, 5):
            now = done / 2
            update(done, note="rows")
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "corpus: 20 %, about 40s left, rows"
    assert len(lines) == 6
    assert lines[-1] == "corpus: done in 50s"


def test_a_log_hears_of_work_that_tells_nothing(monkeypatch):
    said, heard = [], threading.Event()

    def say(line):
        said.append(line)
        if len(said) == 2:
            heard.set()

    monkeypatch.setattr(output, "say", say)
    with output.progress("corpus", 100, every=0.01) as update:
        update(50, math.inf, "reading")
        update(50, math.inf, "learning")
        assert heard.wait(30)
    assert said[:2] == ["corpus: learning, 0s so far"] * 2
    assert said[-1] == "corpus: done in 0s"


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(
    ("told", "last"),
    [([(4, None, "loss 2.5")], "100%.*loss 2.5"), ([(4, None, ""), (4, math.inf, "learning")], "steps [^%]*learning")],
    ids=["an end", "none for a while"],
)
def test_progress_on_a_terminal_is_a_bar(monkeypatch, told, last):
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    monkeypatch.setenv("TERM", "xterm")
    with output.progress("steps", 4) as update:
        for done, total, note in told:
            update(done, total, note)
    assert re.search(last, terminal.getvalue().rpartition("\r")[2])


def test_durations():
    assert [output.duration(each) for each in (0.4, 59, 90.4, 3599.6, 7260)] == [
        "0s",
        "59s",
        "1m 30s",
        "1h 00m",
        "2h 01m",
    ]


def test_results_that_are_no_number_are_not_json():
    with pytest.raises(InputError, match="not a finite number, and JSON has no such numbers"):
        output.emit_json({"loss": float("nan")})
