"""`maskery.score`: how probable texts are to a model.

Models that read in an order give log-probability and perplexity: each token from those before it. Models that fill
masks give the same with each token masked in turn, which is no probability of the text: pseudo-perplexity. A pair is a
source and its target: the target is scored, its end included.

    scores = maskery.score(maskery.load("my-run"), ["The cat sat on the mat."])
    print(scores.perplexity, scores.lines[0].log_probability)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from maskery import arguments
from maskery.arguments import checked
from maskery.checkpoint.load import AnyModel, model_of
from maskery.checkpoint.model import Model
from maskery.errors import ArgumentError, InputError
from maskery.model.reading import Reading, score_stream
from maskery.writing import left, pseudo
from maskery.writing.forms import Form, form_of, target_tokenizer_of, tokenizer_of, writes
from maskery.writing.gibbs import filler_of

SLOTS = 1024
"""Slots that are read in one pass."""
Pair = tuple[str, str]


@dataclass(frozen=True, kw_only=True)
class Score:
    """Of one line, or of all."""

    line: int
    """Counted from 1; 0 for all."""
    text: str
    tokens: int
    """Tokens that were scored."""
    log_probability: float
    """Natural logarithm; of all tokens together."""
    characters: int
    bytes: int

    @property
    def perplexity(self) -> float:
        try:
            return math.exp(-self.log_probability / self.tokens)
        except OverflowError:
            return math.inf

    @property
    def bits_per_character(self) -> float:
        return -self.log_probability / math.log(2) / self.characters

    @property
    def bits_per_byte(self) -> float:
        return -self.log_probability / math.log(2) / self.bytes

    def plain(self) -> dict[str, Any]:
        numbers = {
            "tokens": self.tokens,
            "log_probability": self.log_probability,
            "perplexity": self.perplexity if math.isfinite(self.perplexity) else None,
            "bits_per_character": self.bits_per_character,
            "bits_per_byte": self.bits_per_byte,
        }
        return {"line": self.line, "text": self.text, **numbers} if self.line else numbers


@dataclass(frozen=True, kw_only=True)
class Scores:
    kind: str
    """log_probability, or pseudo_log_probability."""
    lines: tuple[Score, ...]
    skipped: tuple[tuple[int, str], ...]
    """Lines that were not scored, and why."""
    unknown: int
    """Tokens that the vocabulary does not have."""
    masks: int = 0
    """Masks at once, where masks were filled."""

    @property
    def total(self) -> Score:
        return Score(
            line=0,
            text="",
            tokens=sum(each.tokens for each in self.lines),
            log_probability=math.fsum(each.log_probability for each in self.lines),
            characters=sum(each.characters for each in self.lines),
            bytes=sum(each.bytes for each in self.lines),
        )

    @property
    def perplexity(self) -> float:
        return self.total.perplexity

    def plain(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            **({"masks": self.masks} if self.masks else {}),
            "total": self.total.plain(),
            "lines": [each.plain() for each in self.lines],
            "skipped": [{"line": line, "why": why} for line, why in self.skipped],
            "unknown": self.unknown,
        }


@checked
def score(
    model: AnyModel,
    texts: str | Sequence[str] | Sequence[Pair],
    *,
    masks: int = 1,
    begin: bool = True,
    length: int | None = None,
    memory: int | None = None,
    same_length: bool = False,
    clamp: int | None = None,
    progress: Callable[[float], None] | None = None,
) -> Scores:
    """Scores of one line, of lines, or of pairs of source and target. Empty lines, and lines that are longer than the
    model, are left out and listed.

        maskery.score("my-run", ["A text.", "Another."]).lines

    `masks`: how many tokens a model that fills masks has hidden at once. `begin`: a model that reads from the left is
    given the end of a text in front, so that the first token has a probability as well. `length`, `memory`,
    `same_length` and `clamp` say how a model with a memory reads a line: in rows of `length` behind a memory that may
    be another than in training; without them every token sees as far back as the model remembers. `progress` is called
    with the number of tokens that are done.
    """
    arguments.count("masks", masks)
    for name, value in (("length", length), ("clamp", clamp)):
        arguments.optional_count(name, value)
    arguments.optional_count("memory", memory, 0)
    model, texts = model_of(model), _texts(texts)
    plan = _plan(model, texts, masks, begin, _reading(model, length, memory, same_length, clamp))
    skipped = [(line, why) for line, (_, _, why) in enumerate(plan.rows, 1) if why]
    good = [(line, prompt, text) for line, (prompt, text, why) in enumerate(plan.rows, 1) if not why]
    unk = target_tokenizer_of(model).specials.unk
    found: dict[int, tuple[int, float]] = {}
    done = 0
    for line, shares in plan.run(good):
        found[line] = (len(shares), float(shares.sum()))
        done += len(shares)
        if progress is not None:
            progress(done)
    strings = [each if isinstance(each, str) else each[1] for each in texts]
    lines = [
        Score(
            line=line,
            text=strings[line - 1],
            tokens=found[line][0],
            log_probability=found[line][1],
            characters=len(strings[line - 1]),
            bytes=len(strings[line - 1].encode()),
        )
        for line, *_ in good
    ]
    return Scores(
        kind=plan.kind,
        lines=tuple(lines),
        skipped=tuple(skipped),
        unknown=sum(text.count(unk) for _, _, text in good),
        masks=masks if plan.kind.startswith("pseudo") else 0,
    )


def _reading(
    model: Model, length: int | None, memory: int | None, same_length: bool, clamp: int | None
) -> Reading | None:
    if length is None and memory is None and clamp is None and not same_length:
        return None
    back = model.config.memory if memory is None else memory
    return Reading(length=length or back or SLOTS, memory=back, same_length=same_length, clamp=clamp)


def _texts(given: object) -> list[str] | list[Pair]:
    """One text is a line; of several, all are texts, or all are pairs of a source and its target."""
    if isinstance(given, str):
        return [given]
    listed = arguments.items("texts", given, "a text, a list of texts, or a list of (source, target)")
    for number, each in enumerate(listed):
        if isinstance(each, list | tuple) and len(each) == 2:
            for part, side in zip(each, ("source", "target"), strict=True):
                arguments.text(f"the {side} of texts[{number}]", part)
        else:
            arguments.text(f"texts[{number}]", each)
    pairs = [not isinstance(each, str) for each in listed]
    if any(pairs) and not all(pairs):
        raise ArgumentError(
            f"texts[{pairs.index(False)}] is one text, others are pairs", repair="give pairs alone, or texts alone"
        )
    return [(each[0], each[1]) for each in listed] if any(pairs) else listed


Row = tuple[list[int], list[int], str]
"""Framed prompt, tokens to be scored, and why they are not."""
Good = list[tuple[int, list[int], list[int]]]


@dataclass(frozen=True)
class _Plan:
    kind: str
    rows: list[Row]
    run: Callable[[Good], Iterator[tuple[int, Tensor]]]


def _plan(
    model: Model, texts: Sequence[str] | Sequence[Pair], masks: int, begin: bool, reading: Reading | None
) -> _Plan:
    pairs = [("", each) if isinstance(each, str) else each for each in texts]
    paired = any(not isinstance(each, str) for each in texts)
    if not paired and _fills(model):
        return _masked(model, [text for _, text in pairs], masks)
    if _fills(model) and not writes(model):
        raise InputError(
            "this model fills masks and has not learnt to read a source before a target",
            repair="score the targets alone: lines in place of pairs, without --pairs",
        )
    form = form_of(model, "source" if paired and _fills(model) else None)
    if masks > 1:
        raise InputError("this model reads from the left, without masks", repair="leave masks out")
    if form.role == "source" and not paired:
        raise InputError("this model writes a target for a source", repair="give pairs: source, tab, target")
    rows = [_row(model, form, source, text, paired, begin) for source, text in pairs]
    if reading is None:
        return _Plan("log_probability", rows, lambda good: _in_batches(model, form, good))
    reading.require(model.network)
    if form.head != "next_token" or form.role == "source":
        raise InputError("this model is not read in rows behind a memory", repair="leave memory and length out")
    rows = [(prompt, text, "" if why.startswith("longer") else why) for prompt, text, why in rows]
    return _Plan("log_probability", rows, lambda good: _in_rows(model, good, reading))


def _fills(model: Model) -> bool:
    """Whether a line by itself is scored by filling masks."""
    answering = model.answering("masked_token")
    return "masked_token" in answering.heads and answering.config.visibility == "full"


def _row(model: Model, form: Form, source: str, text: str, paired: bool, begin: bool) -> Row:
    tokenizer = tokenizer_of(model)
    target = target_tokenizer_of(model)
    end = target.specials.sep
    mine = target.encode_raw([text])[0][0].tolist()
    before = tokenizer.encode_raw([source])[0][0].tolist() if paired else []
    if not mine or (paired and not before):
        return [], [], "empty" if not (text if not mine else source).strip() else "no token"
    if form.role == "source":
        mine = [*mine, end]
    elif not form.front and not before and begin:
        before = [end]
    prompt = form.framed(before)
    if not prompt:
        prompt, mine = mine[:1], mine[1:]
        if not mine:
            return [], [], "one token alone: nothing stands before it"
    # The last token is not read, but a slot that is asked in its own place is there.
    slots = len(form.start) + len(mine) - 1 if form.start else len(prompt) + len(mine) - (form.probe is None)
    longest = max(slots, len(prompt) if form.start else 0)
    limit = form.limit
    too_long = limit is not None and longest > limit
    return prompt, mine, f"longer than the model: {longest} slots of {limit}" if too_long else ""


def _in_batches(model: Model, form: Form, good: Good) -> Iterator[tuple[int, Tensor]]:
    """Rows of like length together."""
    ordered = sorted(good, key=lambda each: len(each[1]) + len(each[2]))
    while ordered:
        widest, count = 0, 0
        for _, prompt, text in ordered:
            widest = max(widest, len(prompt) + len(text))
            if count and widest * (count + 1) > SLOTS:
                break
            count += 1
        part, ordered = ordered[:count], ordered[count:]
        shares = left.told(model, form, [prompt for _, prompt, _ in part], [text for *_, text in part])
        yield from ((line, each) for (line, *_), each in zip(part, shares, strict=True))


def _in_rows(model: Model, good: Good, reading: Reading) -> Iterator[tuple[int, Tensor]]:
    for line, prompt, text in good:
        ids = torch.tensor([[*prompt, *text]])
        shares = score_stream(model.network, model.heads["next_token"], ids, reading)  # type: ignore[arg-type]
        yield line, shares[0, len(prompt) - 1 :].double()


def _masked(model: Model, texts: Sequence[str], masks: int) -> _Plan:
    filler = filler_of(model)
    tokenizer = tokenizer_of(model)
    limit = filler.config.max_length if filler.network.embeddings.positions.limit is not None else None
    rows: list[Row] = []
    for text, (ids, _) in zip(texts, tokenizer.encode_raw(list(texts)), strict=True):
        slots = len(ids) + 2
        why = "" if len(ids) else "empty" if not text.strip() else "no token"
        if limit is not None and slots > limit:
            why = f"longer than the model: {slots} slots of {limit}"
        rows.append(([], ids.tolist(), why))

    def run(good: Good) -> Iterator[tuple[int, Tensor]]:
        for number, shares in pseudo.told(filler, [text for *_, text in good], masks, SLOTS):
            yield good[number][0], shares

    return _Plan("pseudo_log_probability", rows, run)
