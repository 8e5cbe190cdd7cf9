"""Writing and scoring as transformers does it, on tiny random GPT-2 and BART models."""

from __future__ import annotations

import pytest
import torch
from oracle import VOCABULARY, make
from test_parity_bart import SMALL
from writers import CLS, MARKS, PAD, SEP

import maskery
from maskery.text.tokenizer import Tokenizer

PROMPTS = ["p7 p8 p9", "p20 p10 p30 p41 p52 p6", "p9"]
WAYS = {
    "greedy": ({}, {}),
    "repetition": ({"repetition": 1.7}, {"repetition_penalty": 1.7}),
    "no repeat": ({"no_repeat": 2}, {"no_repeat_ngram_size": 2}),
    "least": ({"least": 8}, {"min_new_tokens": 8}),
    "beam": ({"beams": 3}, {"num_beams": 3, "early_stopping": True}),
    "late": ({"beams": 4, "early": False, "length_penalty": 1.5},
             {"num_beams": 4, "early_stopping": "never", "length_penalty": 1.5}),
    "ruled beam": ({"beams": 2, "least": 6, "no_repeat": 2, "length_penalty": 0.4},
                   {"num_beams": 2, "min_new_tokens": 6, "no_repeat_ngram_size": 2, "length_penalty": 0.4,
                    "early_stopping": True}),
}  # fmt: skip
COMMON = {
    "do_sample": False, "eos_token_id": SEP, "pad_token_id": PAD, "bos_token_id": None, "suppress_tokens": [*MARKS],
}  # fmt: skip


def tokenizer():
    marks = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    return Tokenizer.from_pieces([*marks, *(f"p{n}" for n in range(5, VOCABULARY))])


@pytest.fixture(scope="module")
def gpt2(tmp_path_factory):
    theirs = make("GPT2LMHeadModel")
    with torch.no_grad():
        theirs.transformer.wte.weight[SEP] *= 4.0  # so that texts end
    theirs.save_pretrained(folder := tmp_path_factory.mktemp("gpt2"))
    ours = maskery.load(folder)
    ours.tokenizer = tokenizer()
    return theirs, ours


@pytest.fixture(scope="module")
def bart(tmp_path_factory):
    theirs = make("BartForConditionalGeneration", **SMALL, decoder_start_token_id=SEP, eos_token_id=SEP)
    with torch.no_grad():
        theirs.model.shared.weight[SEP] *= 1.6
    theirs.save_pretrained(folder := tmp_path_factory.mktemp("bart"))
    ours = maskery.load(folder)
    ours.tokenizer = tokenizer()
    return theirs, ours


def padded(rows, side):
    width = max(map(len, rows))
    ids = torch.full((len(rows), width), PAD)
    mask = torch.zeros_like(ids)
    for row, tokens in enumerate(rows):
        place = slice(width - len(tokens), width) if side == "left" else slice(0, len(tokens))
        ids[row, place], mask[row, place] = torch.tensor(tokens), 1
    return ids, mask


def texts(rows):
    """What stands before the end."""
    cut = [row[: row.index(SEP)] if SEP in row else row for row in rows.tolist()]
    return [tuple(token for token in row if token != PAD) for row in cut]


@pytest.mark.parametrize("way", WAYS)
@torch.no_grad()
def test_gpt2_writes_the_same(gpt2, way):
    theirs, ours = gpt2
    mine, other = WAYS[way]
    found = maskery.generate(ours, PROMPTS, new=12, **mine)
    ids, mask = padded([ours.tokenizer.encode_marked(prompt) for prompt in PROMPTS], "left")
    expected = theirs.generate(input_ids=ids, attention_mask=mask, max_new_tokens=12, **COMMON, **other)
    assert [each.ids for each in found] == texts(expected[:, ids.shape[1] :])


@pytest.mark.parametrize("way", [way for way in WAYS if way != "repetition"])
@torch.no_grad()
def test_bart_writes_the_same(bart, way):
    theirs, ours = bart
    mine, other = WAYS[way]
    found = maskery.generate(ours, PROMPTS, new=12, **mine)
    ids, mask = padded([[CLS, *ours.tokenizer.encode_marked(prompt), SEP] for prompt in PROMPTS], "right")
    start = torch.tensor([[SEP, CLS]] * len(PROMPTS))
    expected = theirs.generate(
        input_ids=ids, attention_mask=mask, decoder_input_ids=start, max_new_tokens=12, forced_eos_token_id=None,
        **COMMON, **other,
    )  # fmt: skip
    assert [each.ids for each in found] == texts(expected[:, 2:])


def test_the_texts_compared_are_not_all_alike(gpt2, bart):
    for _, ours in (gpt2, bart):
        ends = {each.ended for way in WAYS.values() for each in maskery.generate(ours, PROMPTS, new=12, **way[0])}
        assert ends >= {"end", "length"}


@torch.no_grad()
def test_scores_are_the_losses_of_transformers(gpt2, bart):
    theirs, ours = gpt2
    found = maskery.score(ours, PROMPTS[:2], begin=False)
    for prompt, line in zip(PROMPTS, found.lines, strict=False):
        ids = torch.tensor([ours.tokenizer.encode_marked(prompt)])
        assert -line.log_probability / line.tokens == pytest.approx(float(theirs(ids, labels=ids).loss), rel=1e-5)
    theirs, ours = bart
    pairs = [("p7 p8", "p9 p10 p11"), ("p20 p21 p22 p23", "p30")]
    for (source, target), line in zip(pairs, maskery.score(ours, pairs).lines, strict=True):
        ids, labels = (ours.tokenizer.encode_marked(text) for text in (source, target))
        logits = theirs(
            input_ids=torch.tensor([[CLS, *ids, SEP]]), decoder_input_ids=torch.tensor([[SEP, CLS, *labels]])
        ).logits[0, 1:]
        expected = torch.nn.functional.cross_entropy(logits, torch.tensor([*labels, SEP]), reduction="sum")
        assert line.tokens == len(labels) + 1
        assert -line.log_probability == pytest.approx(float(expected), rel=1e-5)
