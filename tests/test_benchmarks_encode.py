"""The benchmark of encoding: a toy run of every part, what is refused, tables and sentences."""

import json
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import spearmanr
from small_encoder import small_encoder, text

sys.path.insert(0, str(Path(__file__).parent.parent))

from benchmarks import encode, encode_parts, report, report_encode
from maskery.compress.ways import WAYS
from maskery.errors import InputError
from maskery.vectors.encoder import Encoder

pytestmark = pytest.mark.usefixtures("no_waiting_for_the_disk")
SIDES = [*map(encode_parts.their_name, encode_parts.BATCHES), *WAYS]
PAIRS = [(text(n, n, 1), text(n, n + n % 3, 2), 5 - 2 * (n % 3)) for n in range(30)]


@pytest.fixture(scope="module")
def toy(tmp_path_factory):
    """A folder with an encoder and the three files; one pair stands in two of them."""
    folder = tmp_path_factory.mktemp("toy")
    Encoder(small_encoder()).save(folder / "minilm")
    (folder / "data/deep").mkdir(parents=True)
    for name, rows in zip(encode_parts.FILES, (PAIRS[:12], PAIRS[11:], PAIRS[:1]), strict=True):
        lines = ["text_a\ttext_b\tscore", *("\t".join(map(str, row)) for row in rows)]
        (folder / "data/deep" / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


def flags_of(toy, out, *more):
    given = ["--data", str(toy / "data"), "--model", str(toy / "minilm"), "--json", str(out / report_encode.FILE)]
    return [*given, "--texts", "20", "--rounds", "2", "--threads", "1", "--sizes", "5", "50", *more]


def all_here(patch):
    """No process is started: what it would measure is measured here, and the first vector is told by a clock."""
    patch.setattr(encode_parts.peak, "alone", lambda work, *arguments: work(*arguments))
    clock = iter(range(1, 100))
    patch.setattr(encode_parts, "until_first_line", lambda code, model, threads: float(next(clock)))
    patch.setattr("os.fsync", lambda descriptor: None)


@pytest.fixture(scope="module")
def whole(toy, tmp_path_factory):
    """The folder of a run of everything, and its result."""
    out = tmp_path_factory.mktemp("run")
    with pytest.MonkeyPatch.context() as patch:
        all_here(patch)
        assert encode.main(flags_of(toy, out)) == 0
    return out, json.loads((out / report_encode.FILE).read_text(encoding="utf-8"))


def test_every_side_is_measured_on_the_same_tokens(whole):
    found = whole[1]["speed"]
    assert list(found["sides"]) == SIDES
    assert (found["texts"], found["same_tokens"], found["reasons"]) == (20, True, {})
    assert found["tokens"] > 4 * 20
    for name, side in found["sides"].items():
        assert len(side["seconds"]) == 2
        assert side["best"] == min(side["seconds"])
        assert side["ratio"] == pytest.approx(found["sides"]["sentence-transformers"]["best"] / side["best"])
        assert side["ratio_to_best"] <= side["ratio"] * (1 + 1e-9)
        assert side["least"] <= side["cosine"] + 1e-6
        if "int8" not in name:
            assert side["least"] > 0.99999, name
    assert 0.9 < found["sides"]["int8"]["least"] < 0.99999, "eight bits are not float32"


def test_quality_is_spearman_of_both_sides(whole, toy):
    found = whole[1]["quality"]
    assert (found["n"], list(found["sides"])) == (19, SIDES)
    one, other = (
        Encoder(toy / "minilm").encode([pair[side] for pair in PAIRS[11:]], normalize=True) for side in (0, 1)
    )
    right = spearmanr((one.astype(float) * other).sum(1).astype(np.float32), [pair[2] for pair in PAIRS[11:]])[0]
    for name in (encode_parts.THEIRS, "plain", "float32"):
        assert found["sides"][name]["spearman"] == pytest.approx(right, abs=0.02), name
    assert found["sides"]["int8"]["points"] == pytest.approx(
        100 * (found["sides"]["int8"]["spearman"] - found["sides"][encode_parts.THEIRS]["spearman"])
    )


def test_first_and_growth(whole):
    assert {name: each["best"] for name, each in whole[1]["first"]["sides"].items()} == {
        encode_parts.THEIRS: 1.0, "float32": 2.0, "int8": 3.0,
    }  # fmt: skip
    few, many = whole[1]["growth"]["points"]
    assert (few["texts"], few["of_first"], few["peak_of_first"], many["texts"]) == (5, 1, 1, 50)
    assert many["of_first"] == pytest.approx(many["seconds"] / few["seconds"] / 10)
    assert many["peak_bytes"] > 2**20


def test_a_fresh_process_is_waited_for_until_its_first_line():
    code = "import sys, time; print(sys.argv[1], flush=True); time.sleep(0.8)"
    begun = time.perf_counter()
    seconds = encode_parts.until_first_line(code, "x", 1)
    assert 0 < seconds < time.perf_counter() - begun - 0.05, "what comes after the line does not count"
    with pytest.raises(InputError, match="on purpose"):
        encode_parts.until_first_line("raise SystemExit('on purpose')", "x", 1)
    for code in encode_parts.FIRST.values():
        compile(code, "first", "exec")


def test_a_part_alone_keeps_the_others_and_other_settings_are_refused(whole, toy, tmp_path, monkeypatch, capsys):
    all_here(monkeypatch)
    path = tmp_path / report_encode.FILE
    path.write_text(json.dumps(whole[1]), encoding="utf-8")
    assert encode.main(flags_of(toy, tmp_path, "--parts", "growth")) == 0
    again = json.loads(path.read_text(encoding="utf-8"))
    assert again["speed"] == whole[1]["speed"]
    assert again["growth"] != whole[1]["growth"]
    assert encode.main(flags_of(toy, tmp_path, "--rounds", "3")) == 2
    assert "was measured with rounds 2, not 3" in capsys.readouterr().err


def test_what_is_missing_or_wrong_is_told_before_anything_is_measured(toy, tmp_path, capsys):
    (tmp_path / "empty").mkdir()
    wrong = {
        "there is no STSB.train.tsv": ["--data", str(tmp_path / "empty")],
        "--model: there is no folder": ["--model", str(tmp_path / "nowhere")],
        "--sizes 5 5": ["--sizes", "5", "5"],
        "--rounds 0": ["--rounds", "0"],
    }
    for message, flags in wrong.items():
        assert encode.main(flags_of(toy, tmp_path, *flags)) == 2
        assert message in capsys.readouterr().err


def test_other_tokens_are_no_comparison():
    ours, theirs = [[1, 2], [3]], [[1, 2], [4]]
    sides = encode_parts.Sides({}, {}, lambda texts: (ours, 0), lambda texts: theirs)
    with pytest.raises(InputError, match="'b' has 1 tokens here and 1 there, or others"):
        encode_parts.speed(sides, ["a", "b"], 1)


def test_texts_are_distinct_and_those_of_the_smallest_keys(toy, capsys):
    every = encode_parts.texts_by_key(toy / "data", 10**6)
    assert len(every) == len(set(every)) == len({each for pair in PAIRS for each in pair[:2]})
    assert f"hold {len(every)} distinct texts, not 1,000,000" in capsys.readouterr().err
    some = encode_parts.texts_by_key(toy / "data", 7)
    assert [each for each in every if each in some] == some
    assert len(some) == 7


# -- tables


@pytest.mark.parametrize("language", report.PAGES)
def test_tables_and_sentences_are_made_of_a_result(whole, language):
    found = report_encode.found(whole[0])
    assert set(found) == set(report_encode.PARTS) == {*report_encode.TABLES, *report_encode.SAID}
    for name in report_encode.TABLES:
        lines = report.markdown(name, language, found).splitlines()
        assert len({line.count("|") for line in lines}) == 1, lines
        assert len(lines) == 2 + {"encode": len(SIDES), "encode_short": 3, "encode_growth": 2}[name]
    assert "{" not in report.markdown("encode_said", language, found)


def test_parts_that_were_not_measured_leave_cells_empty(whole, tmp_path):
    (tmp_path / report_encode.FILE).write_text(json.dumps({"speed": whole[1]["speed"]}), encoding="utf-8")
    found = report_encode.found(tmp_path)
    assert set(found) == {"encode", "encode_short", "encode_said"}
    assert report.markdown("encode", "en", found).splitlines()[-1].endswith("|  |  |  |")
    said = report.markdown("encode_said", "en", found)
    assert "Spearman" not in said
    assert "fresh process" not in said
    assert report_encode.found(tmp_path / "nowhere") == {}


def test_sentences_say_what_is_reached_and_what_is_not():
    side = {"ratio": 2.0, "ratio_to_best": 1.9}
    speed = {"texts": 4000, "tokens": 9, "cut": 0, "same_tokens": True, "best_batch": 64, "reasons": {"int8": "none"}}
    whole = {"speed": speed | {"sides": {"float32": side}}}
    said = report_encode.encode_said(whole, "en")
    assert "float32: 2.00 times its default, 1.90 times its best; asked for are 1.8, hoped for 2.2: the first" in said
    assert "int8 was not to be had: none." in said
    quick = {"float32": side | {"ratio": 1.7}, "int8": side | {"ratio": 3.2}}
    whole["speed"] |= {"sides": quick, "reasons": {}}
    for points, kept in ((-0.5, "it holds"), (-0.51, "it does not hold")):
        whole["quality"] = {"n": 5, "sides": {"int8": {"points": points, "spearman": 0.8}}}
        said = report_encode.encode_said(whole, "en")
        assert "hoped for 2.2: neither is reached." in said
        assert "hoped for 3.2: both are reached." in said
        assert kept in said
    assert "允许损失 0.5：没有做到。" in report_encode.encode_said(whole, "zh")


@pytest.mark.parametrize("language", report.PAGES)
def test_every_table_has_its_place(language):
    pages = "".join(path.read_text(encoding="utf-8") for path in report.PAGES[language])
    for name in report_encode.PARTS:
        assert pages.count(f"<!-- {name} -->") == 1, name
