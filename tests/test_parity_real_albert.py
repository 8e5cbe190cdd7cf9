"""Real ALBERT weights: the model of chemical reactions inside the wheel `rxnmapper` (12 layers, one set of weights).

The wheel asks for an older transformers, so it is no test dependency. To run this:
python -m pip install --no-deps rxnmapper
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
import torch

pytestmark = pytest.mark.skipif(importlib.util.find_spec("rxnmapper") is None, reason="rxnmapper is not installed")

CLOSE = {"atol": 1e-5, "rtol": 1e-5}
REACTION = "CC(C)S.CN(C)C=O.Fc1cccnc1F.O=C([O-])[O-].[K+].[K+]>>CC(C)Sc1ncccc1F"


@pytest.fixture(scope="module")
def folder():
    found = importlib.util.find_spec("rxnmapper")
    return Path(found.submodule_search_locations[0]) / "models/transformers/albert_heads_8_uspto_all_1310k"


@pytest.fixture(scope="module")
def ours(folder):
    from maskery.checkpoint.load import load

    return load(folder, allow_pickle=True)


@pytest.fixture(scope="module")
def theirs(folder):
    import transformers

    config = transformers.AlbertConfig.from_pretrained(folder)
    config._attn_implementation = "eager"
    model = transformers.AlbertForMaskedLM(config).eval()
    state = torch.load(folder / "pytorch_model.bin", map_location="cpu", weights_only=True)
    missing = model.load_state_dict(state, strict=False).missing_keys
    assert missing == []
    return model


def rows_of(folder):
    """The reaction read letter by letter, what the vocabulary has; cut to several lengths."""
    pieces = {piece: number for number, piece in enumerate((folder / "vocab.txt").read_text().split("\n"))}
    ids = [pieces["[CLS]"], *(pieces[letter] for letter in REACTION if letter in pieces), pieces["[SEP]"]]
    lengths = (len(ids), 17, 40)
    mask = torch.arange(len(ids)) < torch.tensor(lengths)[:, None]
    return torch.tensor([ids] * 3), mask.long()


@torch.no_grad()
def test_every_layer_attention_and_score(folder, ours, theirs):
    ids, mask = rows_of(folder)
    expected = theirs(input_ids=ids, attention_mask=mask, output_hidden_states=True, output_attentions=True)
    hidden = ours(ids, mask, layers=True, attentions=True)
    real = mask.bool()
    assert len(hidden.layers) == 13
    for mine, other in zip(hidden.layers, expected.hidden_states, strict=True):
        torch.testing.assert_close(mine[real], other[real], **CLOSE)
    both = (real[:, None, :, None] & real[:, None, None, :]).expand(-1, 8, -1, -1)
    for mine, other in zip(hidden.attentions, expected.attentions, strict=True):
        torch.testing.assert_close(mine[both], other[both], **CLOSE)
    torch.testing.assert_close(ours.logits(ids, mask)[real], expected.logits[real], **CLOSE)


def test_the_model_and_what_was_read(ours):
    shape = ours.config
    assert (shape.layers, shape.width, shape.heads, shape.embedding, shape.share) == (12, 256, 8, 128, "all")
    assert set(ours.heads) == {"masked_token"}
    assert (ours.report.missing, ours.report.unused) == ((), ())
