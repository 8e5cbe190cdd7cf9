"""Calling a model: what it takes, what it refuses, and that padding changes nothing."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from networks import VOCABULARY, model_of

from maskery.checkpoint.state import LoadReport
from maskery.errors import InputError

MODEL = model_of("masked_token", pooler=True)
COUNTING = model_of("masked_token", position_offset=2)
ROW = [[2, 7, 8, 9, 3]]


def refused(word, *arguments, model=MODEL, **options):
    with pytest.raises(InputError) as caught:
        model(*arguments, **options)
    assert word in caught.value.cause, caught.value.cause
    assert caught.value.repair


def test_what_comes_out():
    hidden = MODEL(torch.tensor(ROW), layers=True, attentions=True)
    assert hidden.last.shape == (1, 5, 16)
    assert hidden.pooled.shape == (1, 16)
    assert [layer.shape for layer in hidden.layers] == [(1, 5, 16)] * 3
    assert torch.equal(hidden.layers[-1], hidden.last)
    assert [weights.shape for weights in hidden.attentions] == [(1, 2, 5, 5)] * 2
    torch.testing.assert_close(hidden.attentions[0].sum(-1), torch.ones(1, 2, 5))
    assert MODEL.logits(torch.tensor(ROW)).shape == (1, 5, VOCABULARY)
    assert not MODEL.training
    assert model_of()(torch.tensor(ROW)).pooled is None


def test_lists_and_small_integers_are_taken():
    expected = MODEL(torch.tensor(ROW)).last
    assert torch.equal(MODEL(ROW).last, expected)
    assert torch.equal(MODEL(torch.tensor(ROW, dtype=torch.int16)).last, expected)
    assert torch.equal(MODEL(ROW, [[1, 1, 1, 1, 1]]).last, expected)


@given(
    st.lists(st.integers(1, 6), min_size=1, max_size=5),
    st.integers(0, 4),
    st.integers(0, 4),
    st.sampled_from([MODEL, COUNTING]),
)
@settings(deadline=None, max_examples=30)
def test_padding_and_company_change_nothing(lengths, left, right, model):
    """Each row alone equals the row among others, padded on both sides (positions given where slots are counted)."""
    slots = left + max(lengths) + right
    draws = torch.Generator().manual_seed(sum(lengths))
    ids = torch.randint(5, VOCABULARY, (len(lengths), slots), generator=draws)
    places = torch.arange(slots)
    ends = torch.tensor(lengths).unsqueeze(1) + left
    mask = (places >= left) & (places < ends)
    positions = (places - left).clamp(min=0).expand_as(ids) if model is MODEL else None
    with torch.no_grad():
        together = model(ids, mask, positions=positions).last
        for row, length in enumerate(lengths):
            alone = model(ids[row : row + 1, left : left + length]).last
            torch.testing.assert_close(together[row, left : left + length], alone[0], atol=1e-5, rtol=1e-5)
            assert (together[row, ~mask[row]] == 0).all()


def test_what_stands_at_padding_is_never_read():
    mask = torch.tensor([[1, 1, 1, 0, 0]])
    odd = torch.tensor([[2, 7, 8, -100, 10**9]])
    assert torch.equal(MODEL(odd, mask).last, MODEL(torch.tensor(ROW), mask).last)


def test_refusals():
    ids = torch.tensor(ROW)
    refused(f"id {VOCABULARY} at row 0, slot 2", torch.tensor([[2, 5, VOCABULARY]]))
    refused("id -1 at row 1, slot 0", torch.tensor([[2, 5], [-1, 3]]))
    refused("segment 2 at row 0", ids, None, torch.full((1, 5), 2))
    refused("reaches beyond", torch.full((1, 25), 5))
    refused("reaches beyond", ids, positions=torch.full((1, 5), 24))
    refused("reaches beyond", ids, positions=torch.full((1, 5), -1))
    refused("(5,)", torch.tensor(ROW[0]))
    refused("neither of them 0", torch.zeros(0, 5, dtype=torch.long))
    refused("neither of them 0", torch.zeros(1, 0, dtype=torch.long))
    refused("whole numbers", ids.float())
    refused("mask has the shape", ids, torch.ones(1, 4))
    refused("other than 0 and 1", ids, torch.tensor([[0.0, 0, 0, -1e4, -1e4]]))
    refused("row 0 has no real slot", ids, torch.zeros(1, 5))
    refused("segments have the shape", ids, None, torch.zeros(1, 4, dtype=torch.long))
    refused("positions have the shape", ids, positions=torch.zeros(5, dtype=torch.long))
    refused("without a decoder", ids, decoder_ids=ids)


def test_the_longest_row_fits():
    assert MODEL(torch.full((1, 24), 5)).last.shape == (1, 24, 16)
    assert COUNTING(torch.full((1, 24), 5)).last.shape == (1, 24, 16)
    refused("it has 24", torch.full((1, 25), 5), model=COUNTING)
    unlimited = model_of("masked_token", positions="sinusoidal")
    assert unlimited(torch.full((1, 99), 5)).last.shape == (1, 99, 16)


def test_a_network_without_segments_takes_none_but_zero():
    plain = model_of(segments=0)
    assert plain(torch.tensor(ROW), None, torch.zeros(1, 5, dtype=torch.long)).last.shape == (1, 5, 16)
    refused("segment 1", torch.tensor(ROW), None, torch.ones(1, 5, dtype=torch.long), model=plain)


def test_packed_visibility_takes_a_row_as_one_document():
    packed, full = model_of(visibility="packed"), model_of(visibility="full")
    assert torch.equal(packed(ROW).last, full(ROW).last)


def test_no_token_head():
    with pytest.raises(InputError, match="no head over the vocabulary"):
        model_of("token_class").logits(torch.tensor(ROW))


def test_gradients_flow():
    model = model_of("masked_token")
    model.logits(torch.tensor(ROW)).sum().backward()
    assert model.network.embeddings.tokens.grad.abs().sum() > 0


def test_a_report_in_lines():
    names = tuple("abcdefg")
    report = LoadReport(missing=names, unused=("x",), notes=("a note",))
    assert report.lines() == ["missing tensors: 7: a, b, c, d, e and 2 more", "unused tensors: 1: x", "a note"]
