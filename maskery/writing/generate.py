"""`maskery.generate`: texts for prompts, whatever the model is.

model = maskery.load("my-run")
for each in maskery.generate(model, ["Once upon a time"], new=40, top_p=0.9, seed=1):
    print(each.text)
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from maskery import arguments
from maskery.arguments import checked
from maskery.checkpoint.load import AnyModel, model_of
from maskery.checkpoint.model import Model
from maskery.errors import InputError
from maskery.model.config import Shape
from maskery.text.tokenizer import Tokenizer
from maskery.writing.beam import search
from maskery.writing.drafts import Draft, Written
from maskery.writing.forms import Form, form_of, target_tokenizer_of, tokenizer_of
from maskery.writing.gibbs import chain, filler_of
from maskery.writing.how import How, how_of
from maskery.writing.straight import write
from maskery.writing.texts import Speller
from maskery.writing.writer import writer_of

BATCH = 16
"""Prompts that are written for at once."""


@checked
def generate(
    model: AnyModel,
    prompts: str | Sequence[str],
    *,
    how: str | None = None,
    new: int = 64,
    least: int | None = None,
    samples: int = 1,
    seed: int = 0,
    temperature: float | None = None,
    top_k: int | None = None,
    top_p: float | None = None,
    repetition: float | None = None,
    no_repeat: int | None = None,
    stop: Sequence[str] | None = None,
    beams: int | None = None,
    length_penalty: float | None = None,
    early: bool | None = None,
    steps: int | None = None,
    burn_in: float | None = None,
    order: str | None = None,
    role: str | None = None,
    memory: int | None = None,
    batch: int = BATCH,
) -> list[Written]:
    """The texts of every prompt, `samples` for each, in the order of the prompts.

        maskery.generate("my-run", "Once upon a time", new=20)

    `how` is greedy, beam, sample or gibbs; where it is not given, the settings tell it (beams: beam; temperature, top_k
    or top_p: sample). `role` says what a prompt is, "source" or "beginning", where a model leaves a choice (UniLM).
    What is drawn depends on the seed, the prompt and the number of the sample, not on the prompts beside it.
    """
    settings = {
        "new": new, "least": least, "samples": samples, "seed": seed, "temperature": temperature, "top_k": top_k,
        "top_p": top_p, "repetition": repetition, "no_repeat": no_repeat, "stop": None if stop is None else tuple(stop),
        "beams": beams, "length_penalty": length_penalty, "early": early, "steps": steps, "burn_in": burn_in,
        "order": order,
    }  # fmt: skip
    for name in ("new", "samples", "beams"):
        arguments.optional_count(name, settings[name])
    if isinstance(stop, str):
        raise arguments.wrong("stop", stop, "a list of texts", f"stop=[{stop!r}]")
    asked, texts, model = how_of(how, settings), arguments.texts("prompts", prompts), model_of(model)
    found: list[Written] = []
    for drafts in batches(model, texts, asked, role=role, memory=memory, batch=batch):
        last = deque(drafts, maxlen=1)
        found += [draft.written() for draft in last[0]]
    return found


def batches(
    model: Model, prompts: Sequence[str], how: How, *, role: str | None = None, memory: int | None = None,
    batch: int = BATCH,
) -> Iterator[Iterator[Sequence[Draft]]]:  # fmt: skip
    """For every few prompts an iterator that hands out their texts after each token. Prompts that cannot be used are
    refused before anything is written."""
    arguments.count("batch", batch)
    tokenizer = tokenizer_of(model)
    ids = [tokenizer.encode_marked(prompt) for prompt in prompts]
    if how.how == "gibbs":
        never = never_written(target_tokenizer_of(model), model.config)
        filler = filler_of(model)
        drafts = _masked(filler, prompts, ids, how)
        per = batch * how.samples
        return (chain(filler, drafts[at : at + per], how, never) for at in range(0, len(drafts), per))
    form = form_of(model, role, memory=memory)
    _require(form, prompts, ids)
    return written_for(model, form, prompts, ids, how, batch)


def written_for(
    model: Model, form: Form, prompts: Sequence[str], ids: Sequence[Sequence[int]], how: How, batch: int
) -> Iterator[Iterator[Sequence[Draft]]]:
    """The same for prompts that are tokens already and fit the model; `prompts` is what they are called."""
    target = target_tokenizer_of(model)
    never, end = never_written(target, model.config), target.specials.sep
    drafts = _drafts(form, target, prompts, ids, how)
    if how.how == "beam":
        return (search(writer_of(model, form), drafts[at : at + batch], how, end, never)
                for at in range(0, len(drafts), batch))  # fmt: skip
    several = [replace(draft, sample=number, ids=[]) for draft in drafts for number in range(how.samples)]
    for draft in several:
        draft.speller = Speller(target, draft.speller.before, how.stop)
    per = batch * how.samples
    return (write(writer_of(model, form), several[at : at + per], how, end, never)
            for at in range(0, len(several), per))  # fmt: skip


def never_written(tokenizer: Tokenizer, shape: Shape) -> list[int]:
    """Tokens that are no text: marks other than the end, and numbers without a piece."""
    vocabulary = shape.target_vocabulary or shape.vocabulary
    end = tokenizer.specials.sep
    text = np.isin(np.arange(vocabulary), [*tokenizer.ordinary.tolist(), end])
    return np.flatnonzero(~text).tolist()


def _require(form: Form, prompts: Sequence[str], ids: Sequence[Sequence[int]]) -> None:
    if not prompts:
        raise InputError("there is no prompt", repair='give a text, such as "Once upon a time"')
    for number, (prompt, mine) in enumerate(zip(prompts, ids, strict=True), 1):
        which = f"prompt {number}" if len(prompts) > 1 else "the prompt"
        if not mine:
            told = "is empty" if not prompt.strip() else "has no token"
            raise InputError(f"{which} {told}", repair="give some text to begin with")
        room = form.room(mine)
        most = form.limit if form.limit is None or not form.start else form.limit - len(form.front) - len(form.back)
        if (room is not None and room < 1) or (form.start and most is not None and len(mine) > most):
            raise InputError(
                f"{which} has {len(mine)} tokens, and the model reads {form.limit} in all",
                repair="shorten it, so that there is room to write",
            )


def _drafts(
    form: Form, tokenizer: Tokenizer, prompts: Sequence[str], ids: Sequence[Sequence[int]], how: How
) -> list[Draft]:
    found = []
    for prompt, mine in zip(prompts, ids, strict=True):
        room = form.room(mine)
        short = room is not None and room < how.new
        before = list(mine) if form.role == "beginning" else []
        found.append(
            Draft(
                prompt=prompt,
                prompt_ids=list(mine),
                speller=Speller(tokenizer, before, how.stop),
                most=room if short and room is not None else how.new,
                full="room" if short else "length",
                before=before,
            )
        )
    return found


def _masked(model: Model, prompts: Sequence[str], ids: Sequence[Sequence[int]], how: How) -> list[Draft]:
    tokenizer = tokenizer_of(model)
    limit = model.config.max_length if model.network.embeddings.positions.limit is not None else None
    found = []
    for number, (prompt, mine) in enumerate(zip(prompts, ids, strict=True), 1):
        slots = len(mine) + how.new + 2
        if limit is not None and slots > limit:
            raise InputError(
                f"prompt {number} of {len(mine)} tokens and {how.new} new ones take {slots} slots of {limit}",
                repair=f"at most {max(0, limit - 2 - len(mine))} new tokens",
            )
        for sample in range(how.samples):
            draft = Draft(
                prompt=prompt,
                prompt_ids=list(mine),
                speller=Speller(tokenizer, mine),
                most=how.new,
                full="length",
                sample=sample,
                log_probability=None,
            )
            found.append(draft)
    return found
