"""Every post-processing of vectors, over the whole registry: files, wrong input, float32, nothing changed by use."""

from __future__ import annotations

import json

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from maskery.errors import ArgumentError, CheckpointError, DiskError, MaskeryError, UnknownName
from maskery.vectors.after.base import AFTER, After, variants
from maskery.vectors.after.centring import Centring
from maskery.vectors.after.flow import Flow, FlowShape
from maskery.vectors.after.whitening import Whitening

X = (np.random.default_rng(3).normal(size=(40, 6)) @ np.diag([1, 2, 3, 4, 5, 6]) + 2).astype(np.float32)
OTHERS = X[::-1] * 1.5
FITTED = {name: AFTER.get(name).fit(X) for name in AFTER.names()}
FITTED["whitening of few"] = Whitening.fit(X[:4], 5)
FITTED["centring with directions"] = Centring.fit(X, directions=2)
FITTED["flow of another shape"] = Flow.fit(
    X[:, :5], seed=3, shape=FlowShape(levels=4, depth=1, width=3, coupling="affine", mixing="linear", batch=8)
)
HEADER = "maskery.after"

each = pytest.mark.parametrize("name", FITTED)
kinds = pytest.mark.parametrize("kind", AFTER.names())


@each
def test_a_file_brings_back_the_same_bits(name, tmp_path):
    after = FITTED[name]
    after.save(tmp_path / "a.safetensors")
    found = After.load(tmp_path / "a.safetensors")
    assert type(found) is type(after)
    assert found.state().keys() == after.state().keys()
    for part, values in after.state().items():
        assert found.state()[part].dtype == values.dtype
        assert found.state()[part].tobytes() == values.tobytes()
    x = OTHERS[:, : after.taken]
    assert found.apply(x).tobytes() == after.apply(x).tobytes()
    assert (found.describe(), found.notes, found.settings()) == (after.describe(), after.notes, after.settings())
    found.save(tmp_path / "b.safetensors")
    assert (tmp_path / "a.safetensors").read_bytes() == (tmp_path / "b.safetensors").read_bytes()
    assert type(type(after).load(str(tmp_path / "b.safetensors"))) is type(after)


@each
def test_float32_rows_alone_and_together(name):
    after = FITTED[name]
    x = OTHERS[:, : after.taken].copy()
    before = x.tobytes()
    out = after.apply(x)
    assert (out.dtype, out.shape) == (np.float32, (40, after.given))
    assert x.tobytes() == before, "what is given stays as it is"
    np.testing.assert_allclose(np.concatenate([after.apply(row[None]) for row in x]), out, atol=1e-5)
    np.testing.assert_allclose(after.exactly(x), out, atol=1e-4)
    assert after.apply(x[:0]).shape == (0, after.given)
    assert after.apply(x.astype(np.float64).tolist()).tobytes() == out.tobytes()
    assert after.apply(np.asfortranarray(x)).shape == out.shape
    assert after.describe().startswith(after.kind)


@kinds
def test_rows_in_reverse_and_files_that_may_only_be_read(kind, tmp_path):
    np.save(tmp_path / "x.npy", X.astype(np.float64))
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    again = AFTER.get(kind).fit(mapped)
    np.testing.assert_allclose(again.apply(mapped), FITTED[kind].apply(X), atol=1e-5)
    np.testing.assert_allclose(again.apply(mapped[::-1]), again.apply(mapped)[::-1], atol=1e-6)


@kinds
@pytest.mark.parametrize(
    ("vectors", "message"),
    [
        (X[:1], "1 vector given"),
        (X[:0], "0 vectors? given"),
        (np.ones((50, 6)), "all 50 vectors are equal"),
        (X[0], r"shape \(6,\), \(n, D\) is wanted"),
        (X[None], "shape"),
        (X[:, :0], "shape"),
        ([[1.0, 2.0], [1.0]], "not all of one length"),
        ([["a", "b"]], "numbers are wanted"),
        (X.astype(np.complex64), "numbers are wanted"),
        (X > 0, "numbers are wanted"),
    ],
    ids=["one", "none", "equal", "1-D", "3-D", "no-dimension", "ragged", "text", "complex", "bool"],
)
def test_wrong_vectors_are_refused(kind, vectors, message):
    with pytest.raises(ArgumentError, match=message) as raised:
        AFTER.get(kind).fit(vectors)
    assert raised.value.repair


@kinds
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_the_row_of_what_is_not_finite_is_told(kind, value):
    wrong = X.copy()
    wrong[17, 4] = value
    for use in (AFTER.get(kind).fit, FITTED[kind].apply):
        with pytest.raises(ArgumentError, match=rf"row 17 \(counted from 0\): the vector holds {value} in dimension 4"):
            use(wrong)


@kinds
def test_vectors_of_another_size_are_refused(kind):
    with pytest.raises(ArgumentError, match="5 dimensions, this was fitted to 6"):
        FITTED[kind].apply(X[:, :5])


@kinds
def test_a_result_too_large_is_no_infinity(kind):
    with pytest.raises(ArgumentError, match=r"row 1 \(counted from 0\): the result is too large for float32"):
        FITTED[kind].apply(np.array([[0.0] * 6, [1e300] * 6]))


def test_variants_for_comparing():
    found = variants(X, {"white": FITTED["whitening"], "centred": FITTED["centring"]})
    assert list(found) == ["plain", "white", "centred"]
    assert found["plain"].tobytes() == X.tobytes()
    assert found["white"].tobytes() == FITTED["whitening"].apply(X).tobytes()
    assert variants(X.astype(np.float64), {})["plain"].dtype == np.float32
    with pytest.raises(ArgumentError, match="'plain' is the name"):
        variants(X, {"plain": FITTED["whitening"]})


def changed(path, *, drop=None, header=None, **arrays):
    """The file with other arrays or another header."""
    state = {name: values for name, values in load_file(path).items() if name != drop} | arrays
    save_file(state, path, metadata=None if header is None else {HEADER: header})


def header_of(after, **other):
    facts = {"format": 1, "kind": after.kind, "settings": after.settings(), "notes": []}
    return json.dumps(facts | other)


WHITE, FLOW = FITTED["whitening"], FITTED["flow"]
LINEAR = FITTED["flow of another shape"]


@pytest.mark.parametrize(
    ("after", "change", "message"),
    [
        (WHITE, {}, "header does not say"),
        (WHITE, {"header": "{"}, "cannot be understood"),
        (WHITE, {"header": "[1]"}, "cannot be understood"),
        (WHITE, {"header": header_of(WHITE, format=2)}, "format 2, this version reads 1"),
        (WHITE, {"header": header_of(WHITE, kind="whitning")}, "did you mean whitening"),
        (WHITE, {"header": header_of(WHITE, settings={})}, "settings that do not fit: 'total'"),
        (WHITE, {"header": header_of(WHITE, settings={"seen": 1, "total": 0})}, "variance of all dimensions is 0"),
        (WHITE, {"header": header_of(WHITE), "drop": "mean"}, "the state has no mean"),
        (WHITE, {"header": header_of(WHITE), "matrix": np.ones((5, 6))}, r"matrix has the shape \(5, 6\)"),
        (WHITE, {"header": header_of(WHITE), "mean": np.full(6, np.nan)}, "mean holds what is no finite number"),
        (FLOW, {"header": header_of(FLOW), "drop": "levels.0.0.scaling.log_scale"}, "the state lacks levels.0.0"),
        (FLOW, {"header": header_of(FLOW), "more": np.ones(1)}, "has a surplus more"),
        (
            FLOW,
            {"header": header_of(FLOW, settings=FLOW.settings() | {"dimensions": 10**9})},
            r"shape \(6,\), \(1000000000\)",
        ),
        (
            FLOW,
            {"header": header_of(FLOW, settings=FLOW.settings() | {"shape": {"depth": 10**9}})},
            "steps are not 3 levels of 1000000000",
        ),
        (FLOW, {"header": header_of(FLOW, settings=FLOW.settings() | {"shape": {"depth": 0}})}, "shape of the flow"),
        (FLOW, {"header": header_of(FLOW), "levels.0.1.scaling.shift": np.ones(5)}, r"shape \(5,\), not \(6,\)"),
        (LINEAR, {"header": header_of(LINEAR), "levels.0.0.mixing.order": np.array([0, 1, 2, 3, 3])}, "is no order"),
    ],
    ids=[
        *("headless", "no-json", "a-list", "format", "kind", "settings", "total", "absent", "shape", "nan"),
        *("flow-absent", "surplus", "dimensions", "depth", "no-depth", "flow-shape", "order"),
    ],
)
def test_a_file_that_is_not_whole_is_refused(after, change, message, tmp_path):
    path = tmp_path / "a.safetensors"
    after.save(path)
    changed(path, **change)
    with pytest.raises((CheckpointError, UnknownName), match=message) as raised:
        After.load(path)
    assert raised.value.where == str(path)
    assert raised.value.repair


def test_files_that_are_no_safetensors(tmp_path):
    with pytest.raises(CheckpointError, match="no such file"):
        After.load(tmp_path / "none")
    WHITE.save(tmp_path / "a")
    whole = (tmp_path / "a").read_bytes()
    for size in (0, 5, len(whole) - 3):
        (tmp_path / "cut").write_bytes(whole[:size])
        with pytest.raises(CheckpointError, match="cannot be read"):
            After.load(tmp_path / "cut")
    with pytest.raises(CheckpointError, match=r"holds whitening, not flow\n  repair: Whitening.load"):
        Flow.load(tmp_path / "a")
    with pytest.raises(DiskError):
        WHITE.save(tmp_path / "no" / "folder")
    assert issubclass(DiskError, MaskeryError)
