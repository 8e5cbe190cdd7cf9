"""Post-processing as a step of an encoder: the same as applied by hand, and kept with the folder."""

from __future__ import annotations

import os

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer
from vector_models import made_of, quiet

from maskery.errors import ArgumentError, CheckpointError, UnknownName
from maskery.vectors.after.centring import Centring
from maskery.vectors.after.flow import Flow
from maskery.vectors.after.whitening import Whitening
from maskery.vectors.encoder import Encoder
from maskery.vectors.steps import Normalize

WORDS = ["the", "cat", "sat", "on", "mat", "a", "b", "c", "北", "京"]
TEXTS = [" ".join(WORDS[(n * step + step) % len(WORDS)] for n in range(2 + step % 7)) for step in range(60)]


def unit(vectors):
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


@pytest.mark.parametrize("ends", [False, True])
@pytest.mark.parametrize("kind", [Whitening, Centring, Flow])
def test_a_step_is_the_same_as_by_hand(kind, ends, tmp_path):
    plain = Encoder(made_of(steps=[Normalize()] if ends else []), say=quiet)
    vectors = plain.encode(TEXTS)
    after = kind.fit(vectors)
    encoder = plain.with_after(after)
    by_hand = unit(after.apply(vectors)) if ends else after.apply(vectors)
    found = encoder.encode(TEXTS)
    assert found == pytest.approx(by_hand, abs=2e-4)
    assert (plain.encode(TEXTS) == vectors).all(), "the other is as it was"
    said = []
    encoder.say = said.append
    encoder.save(tmp_path / "ours")
    assert any("no step for a flow" in each for each in said) == (kind is Flow)
    assert Encoder(tmp_path / "ours", say=quiet).encode(TEXTS) == pytest.approx(found, abs=1e-6)
    assert (tmp_path / "ours" / "1_Pooling").is_dir() == (kind is not Flow), "servers would leave out the flow"
    if kind is not Flow:
        theirs = SentenceTransformer(str(tmp_path / "ours"), device="cpu")
        # Directions of little variance are stretched, and roundings with them.
        assert theirs.encode(TEXTS, show_progress_bar=False) == pytest.approx(found, abs=1e-4)


def test_fitting_on_texts():
    said = []
    plain = Encoder(made_of(), say=said.append)
    white = plain.fit_after("whitening", TEXTS, dimensions=6)
    assert white.dimensions == 6
    assert np.cov(white.encode(TEXTS), rowvar=False) == pytest.approx(np.eye(6), abs=1e-3)
    assert any(each.startswith("whitening, 16 to 6 dimensions") for each in said)
    few = plain.fit_after("whitening", TEXTS[:4])
    assert few.dimensions == 3
    assert any("3 of 16 directions exist" in each for each in said)
    assert plain.fit_after("centring", TEXTS, directions=2).encode(TEXTS).mean(0) == pytest.approx(0, abs=1e-5)
    flow = plain.fit_after("flow", TEXTS, epochs=2, seed=3)
    assert flow.encode(TEXTS) == pytest.approx(
        Flow.fit(plain.encode(TEXTS), epochs=2, seed=3).apply(plain.encode(TEXTS))
    )


def test_what_does_not_fit_is_refused(tmp_path):
    plain = Encoder(made_of(), say=quiet)
    white = plain.fit_after("whitening", TEXTS, dimensions=6)
    with pytest.raises(ArgumentError, match="takes 16 dimensions, and 6 come to it"):
        white.with_after(Centring.fit(plain.encode(TEXTS)))
    with pytest.raises(ArgumentError, match="takes 16 dimensions, and 32 come to it"):
        Encoder(white.made, pool=["first", "mean"], say=quiet)
    with pytest.raises(ArgumentError, match="whitening knows no epochs"):
        plain.fit_after("whitening", TEXTS, epochs=2)
    with pytest.raises(UnknownName, match="unknown post-processing"):
        plain.fit_after("bleaching", TEXTS)
    plain.fit_after("flow", TEXTS).save(tmp_path / "flow")
    Whitening.fit(plain.encode(TEXTS)).save(tmp_path / "flow" / "2_Flow" / "flow.safetensors")
    (tmp_path / "flow" / "manifest.json").unlink()
    with pytest.raises(CheckpointError, match="holds whitening, not a flow"):
        Encoder(tmp_path / "flow", say=quiet)
