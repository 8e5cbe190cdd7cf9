"""Questions from a text to windows and back: whatever the scores, an answer is characters of the context as it was
written, and the answer that was marked comes back exactly. Chinese, emoji, combining marks, full-width, line ends."""

from __future__ import annotations

import numpy as np
import pytest
from framing import examples_of, rows_config
from hypothesis import example, given, settings
from hypothesis import strategies as st
from vocabularies import mixed_tokenizer

from maskery.tasks.examples import Answer
from maskery.tasks.framing.frame import template
from maskery.tasks.framing.make import make_rows
from maskery.tasks.framing.tokens import encode
from maskery.tasks.spans import aims_of, find_answer, window_of
from maskery.text.training import train_bpe, train_char

LINES = ["the dog sat on the mat. 我们今天去北京 café", "The Dog: 周杰伦 hello 1 2 3"] * 3
KINDS = {"pieces": mixed_tokenizer(), "bpe": train_bpe(LINES, 320), "char": train_char(LINES, 200)}
WORDS = [
    "the", "dog", "北京", "周杰伦", "大学", "cafe\u0301", "NAI\u0308VE", "x\u0323\u0301", "👨‍👩‍👧", "👍🏽", "❤️", "🇨🇳",
    "ｆｕｌｌ", "１９６６", "（北京）", "한국", "\u1112\u1161\u11ab", "𠮷", "İ", "ß",
]  # fmt: skip
SPACES = [" ", "\r\n", "\n", "\t", "\u3000", "  "]


@st.composite
def contexts(draw):
    """(Context, where an answer stands in it): words with white space of many kinds between them."""
    words = draw(st.lists(st.sampled_from(WORDS), min_size=1, max_size=9))
    first = draw(st.integers(0, len(words) - 1))
    last = draw(st.integers(first, min(first + 2, len(words) - 1)))
    text, start, stop = draw(st.sampled_from(["", *SPACES])), 0, 0
    for number, word in enumerate(words):
        start = len(text) if number == first else start
        text += word
        stop = len(text) if number == last else stop
        text += draw(st.sampled_from(SPACES))
    return text, start, stop


def windows_of(kind, context, length, overlap):
    tokenizer = KINDS[kind]
    examples = examples_of((context, "the ?"), task="qa", fields=("context", "question"))
    rows, _ = make_rows(encode(examples, tokenizer), template(tokenizer), rows_config(windows=overlap), length)
    places = [np.where(row.field[:, None] == 0, row.offsets, -1) for row in rows]
    return rows, places, [window_of(place, context) for place in places]


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=30)
@example(made=("\r\n👨‍👩‍👧\r\ncafe\u0301\u3000", 2, 12), size=12, seed=0)
@given(made=contexts(), size=st.integers(12, 40), seed=st.integers(0, 99))
def test_an_answer_is_characters_of_the_context(kind, made, size, seed):
    context, start, stop = made
    rows, places, windows = windows_of(kind, context, size, 3)
    shown = {int(n) for place in places for n in place[:, 0] if n >= 0}
    assert shown or not context.strip()
    draw = np.random.default_rng(seed)
    scores = [[draw.normal(size=len(place)) for place in places] for _ in range(2)]
    found = find_answer(context, windows, *scores)
    for guess in found.guesses:
        assert 0 <= guess.start < guess.stop <= len(context)
        assert guess.text == context[guess.start : guess.stop]
        assert (rows[guess.window].offsets[rows[guess.window].field == 0][:, 0] <= guess.start).any()
    answer = Answer(start, context[start:stop])
    aims = aims_of(context, [answer], windows)
    if not aims.held:
        assert size < 40, "an answer that no window holds is longer than the windows"
        return
    hot = [
        [9.0 * np.eye(len(place))[slot] for place, slot in zip(places, aim, strict=True)]
        for aim in (aims.start, aims.end)
    ]
    best = find_answer(context, windows, *hot, threshold=0.0, longest=size).best
    assert best is not None
    assert not aims.widened
    assert (best.start, best.text) == (answer.start, answer.text)
