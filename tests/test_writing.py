"""Writing: with the cache as without it, one prompt as among others, and what models do at their limits."""

from __future__ import annotations

import itertools
import math

import pytest
import torch
from networks import model_of
from writers import KINDS, MARKS, SEP, greedy, writer

import maskery
from maskery.errors import InputError
from maskery.writing.beam import search
from maskery.writing.drafts import Draft
from maskery.writing.forms import form_of
from maskery.writing.how import How
from maskery.writing.straight import write
from maskery.writing.texts import Speller
from maskery.writing.writer import writer_of

PROMPTS = ["the cat", "我去了北京", "a b c d e"]


def ids_of(model, prompts=PROMPTS):
    return [model.tokenizer.encode_marked(prompt) for prompt in prompts]


@pytest.mark.parametrize("kind", KINDS)
def test_greedy_is_beam_one_is_step_by_step_without_a_cache(kind):
    model = writer(kind)
    expected = [greedy(kind, model, prompt, 7) for prompt in ids_of(model)]
    assert [each.ids for each in maskery.generate(model, PROMPTS, new=7)] == expected
    beams = maskery.generate(model, PROMPTS, new=7, beams=1)
    assert [each.ids for each in beams] == expected
    alone = maskery.generate(model, PROMPTS[1], new=7)
    assert [each.ids for each in alone] == expected[1:2]
    assert alone[0].log_probability == pytest.approx(beams[1].log_probability, abs=1e-4)
    assert len({each.ids for each in beams}) > 1, "prompts matter"


@pytest.mark.parametrize("kind", KINDS)
def test_kept_rows_are_read_anew_to_the_same_scores(kind):
    """Rows that are repeated, dropped and moved, as a search does it."""
    model = writer(kind)
    form = form_of(model)
    kept, anew = (writer_of(model, form, keep=keep) for keep in (True, False))
    scores = [each.begin(ids_of(model)) for each in (kept, anew)]
    for rows in ([0, 1, 2], [2, 0, 0, 1], [3, 1]):
        chosen = torch.tensor(rows)
        for each in (kept, anew):
            each.select(chosen)
        tokens = scores[0][chosen].argmax(1)
        scores = [each.step(tokens) for each in (kept, anew)]
        torch.testing.assert_close(scores[0], scores[1], atol=1e-5, rtol=1e-5)


def test_unilm_goes_on_from_a_beginning_too():
    model = writer("unilm")
    (found,) = maskery.generate(model, "the cat", new=3, role="beginning")
    text = []
    for _ in range(3):
        row = torch.tensor([[2, *ids_of(model, ["the cat"])[0], *text, 4]])
        scores = model.logits(row, None, torch.full_like(row, 2), visibility="causal")[0, -1]
        scores[list(MARKS)] = -torch.inf
        text.append(int(scores.argmax()))
    assert found.ids == tuple(text)


def test_a_memory_is_how_far_back_is_seen():
    """A short memory is the same as rows in which nobody sees further, and a long one sees everything."""
    model = writer("transformer-xl")
    short = form_of(model, memory=3)
    kept, anew = (writer_of(model, short, keep=keep) for keep in (True, False))
    scores = [each.begin(ids_of(model)) for each in (kept, anew)]
    for _ in range(5):
        tokens = scores[1].argmax(1)
        scores = [each.step(tokens) for each in (kept, anew)]
        torch.testing.assert_close(scores[0], scores[1], atol=1e-5, rtol=1e-5)
        assert kept.cache.size <= 3
    far, near = (maskery.generate(model, "a b c d e f g h i j k l m n o p", new=4, memory=m)[0] for m in (40, 2))
    assert far.ids == greedy("transformer-xl", model, *ids_of(model, [far.prompt]), 4)
    assert far.ids != near.ids
    with pytest.raises(InputError, match="no memory"):
        maskery.generate(writer("gpt"), "a", memory=3)


@pytest.mark.parametrize("settings", [{"top_p": 0.8}, {"temperature": 0.5, "top_k": 5}], ids=str)
def test_draws_depend_on_seed_prompt_and_sample_alone(settings):
    model = writer("gpt2")
    many = maskery.generate(model, PROMPTS, new=6, samples=3, seed=4, **settings)
    assert [(each.prompt, each.sample) for each in many] == list(itertools.product(PROMPTS, range(3)))
    alone = maskery.generate(model, PROMPTS[1], new=6, samples=2, seed=4, **settings)
    assert [each.ids for each in alone] == [each.ids for each in many[3:5]]
    parts = maskery.generate(model, PROMPTS, new=6, samples=3, seed=4, batch=1, **settings)
    assert [each.ids for each in parts] == [each.ids for each in many]
    assert len({each.ids for each in many[:3]}) == 3
    assert maskery.generate(model, PROMPTS[1], new=6, seed=5, **settings)[0].ids != alone[0].ids


def test_texts_end_at_the_models_last_position():
    for kind, room in (("masked", 24 - 4), ("bart", 24 - 2 + 1), ("framed", 24 - 3 + 1)):
        (found,) = maskery.generate(writer(kind), "the cat", new=60, least=60)
        assert (len(found.ids), found.ended) == (room, "room"), kind
    (found,) = maskery.generate(writer("packed"), "the cat", new=30, least=30)
    assert (len(found.ids), found.ended) == (30, "length")


def test_rules_hold_in_what_is_written():
    model = writer("gpt2")
    plain = maskery.generate(model, PROMPTS[2], new=16, least=16)[0]
    ruled = maskery.generate(model, PROMPTS[2], new=16, least=16, no_repeat=2)[0]
    assert repeats(ids_of(model)[2] + list(plain.ids))
    assert not repeats(ids_of(model)[2] + list(ruled.ids))
    stopped = maskery.generate(model, PROMPTS[2], new=16, least=16, stop=[plain.text[6:8]])[0]
    assert stopped.ended == "stop"
    assert stopped.text == plain.text[: plain.text.index(plain.text[6:8])]
    beam = maskery.generate(model, PROMPTS[2], new=16, beams=3, samples=3, no_repeat=1)
    assert all(len(set(each.ids)) == len(each.ids) for each in beam)
    assert [each.sample for each in beam] == [0, 1, 2]


def repeats(ids):
    pairs = list(itertools.pairwise(ids))
    return len(pairs) > len(set(pairs))


class Table:
    """A writer whose scores are drawn for every beginning."""

    def __init__(self, vocabulary):
        self.vocabulary = vocabulary

    def scores_of(self, text):
        draws = torch.Generator().manual_seed(hash((3, *text)) % 2**31)
        return torch.randn(self.vocabulary, generator=draws) * 2

    def begin(self, prompts):
        self.texts = [tuple(prompt) for prompt in prompts]
        return torch.stack([self.scores_of(text) for text in self.texts])

    def step(self, tokens):
        self.texts = [(*text, token) for text, token in zip(self.texts, tokens.tolist(), strict=True)]
        return torch.stack([self.scores_of(text) for text in self.texts])

    def select(self, rows):
        self.texts = [self.texts[row] for row in rows.tolist()]


def drafts(*prompts, most):
    tokenizer = writer("gpt").tokenizer
    return [
        Draft(prompt="", prompt_ids=list(each), speller=Speller(tokenizer, []), most=most, full="length")
        for each in prompts
    ]


@pytest.mark.parametrize(("penalty", "early"), [(1.0, True), (0.0, False), (2.0, False), (-1.0, False)])
def test_a_wide_beam_finds_what_trying_everything_finds(penalty, early):
    table, most = Table(4), 3

    def every(prompt):
        for size in range(1, most + 1):
            for text in itertools.product(range(4), repeat=size):
                if SEP not in text[:-1] and (text[-1] == SEP or size == most):
                    steps = [table.scores_of((*prompt, *text[:n])).log_softmax(0)[text[n]] for n in range(size)]
                    total = float(torch.stack(steps).sum())
                    yield total / size**penalty, total, tuple(token for token in text if token != SEP)

    how = How(how="beam", new=most, beams=64, samples=5, length_penalty=penalty, early=early)
    *_, found = search(table, drafts((1,), (2, 0), most=most), how, SEP, ())
    best = [each for prompt in ((1,), (2, 0)) for each in sorted(every(prompt), reverse=True)[:5]]
    assert [tuple(draft.ids) for draft in found] == [text for _, _, text in best]
    for draft, (_, total, _) in zip(found, best, strict=True):
        assert draft.log_probability == pytest.approx(total, abs=1e-4)


def test_a_text_ends_when_every_token_is_forbidden():
    for way in (write, search):
        how = How(how="beam" if way is search else "greedy", new=9, no_repeat=1, beams=2, least=9)
        *_, (found,) = way(Table(4), drafts((1,), most=9), how, SEP, (0,))
        assert (found.ids, found.ended) in (([1, 2], "rules"), ([2, 1], "rules"))


@pytest.mark.parametrize("order", ["random", "sequential"])
def test_gibbs_fills_a_row_of_masks(order):
    model = model_of("masked_token", "next_sentence", pooler=True, seed=2)
    settings = {"how": "gibbs", "new": 6, "steps": 30, "order": order, "top_k": 3, "seed": 1}
    found = maskery.generate(model, ["the cat", ""], samples=2, **settings)
    assert all(len(each.ids) == 6 and not set(each.ids) & {*MARKS, SEP} for each in found)
    assert len({each.ids for each in found}) == 4
    alone = maskery.generate(model, "", samples=2, **settings)
    assert [each.ids for each in alone] == [each.ids for each in found[2:]]
    assert alone[0].log_probability is None


def test_the_last_draw_of_gibbs_is_among_the_most_probable_and_the_first_among_all():
    """One place alone: what is drawn there depends on nothing but the model."""
    model = model_of("masked_token", seed=2)
    shares = model.logits(torch.tensor([[2, 4, 3]]))[0, 1]
    shares[[*MARKS, SEP]] = -torch.inf
    best = set(shares.topk(3).indices.tolist())

    def drawn(burn_in):
        many = maskery.generate(model, "", how="gibbs", new=1, steps=1, samples=60, top_k=3, burn_in=burn_in)
        return {each.ids[0] for each in many}

    assert drawn(0.0) <= best
    assert not drawn(1.0) <= best


@pytest.mark.parametrize(
    ("model", "settings", "words"),
    [
        (("masked_token",), {}, "gibbs"),
        (("next_sentence",), {}, "cannot write"),
        (("next_token",), {"visibility": "causal", "how": "gibbs"}, "fills no masks"),
        (("masked_token",), {"visibility": "causal", "how": "gibbs"}, "both sides"),
        (("next_token",), {"visibility": "causal", "role": "source"}, "beginning of the text"),
    ],
)
def test_models_that_cannot_are_refused_with_what_can_be_done(model, settings, words):
    shape = {name: settings.pop(name) for name in ("visibility",) if name in settings}
    made = model_of(*model, pooler="next_sentence" in model, **shape)
    with pytest.raises(InputError, match=words) as refused:
        maskery.generate(made, "the cat", **settings)
    assert refused.value.repair


@pytest.mark.parametrize(
    ("kind", "prompts", "words"),
    [
        ("gpt", "", "is empty"),
        ("gpt", ["a", " "], "prompt 2"),
        ("gpt", "a " * 25, "has 25 tokens"),
        ("bart", "a " * 23, "has 23 tokens"),
        ("gpt", [], "no prompt"),
    ],
    ids=["empty", "second empty", "long", "long source", "none"],
)
def test_prompts_that_cannot_be_used_are_refused_before_anything_is_written(kind, prompts, words):
    with pytest.raises(InputError, match=words):
        maskery.generate(writer(kind), prompts)


def test_log_probability_is_of_all_that_was_chosen():
    model = writer("gpt")
    (found,) = maskery.generate(model, "the cat", new=5, top_k=4, temperature=0.7)
    row = torch.tensor([[*ids_of(model, ["the cat"])[0], *found.ids]])
    shares = model.logits(row)[0].detach().log_softmax(-1)
    expected = sum(float(shares[1 + place, token]) for place, token in enumerate(found.ids))
    assert found.log_probability == pytest.approx(expected, abs=1e-4)
    assert math.isfinite(expected)
