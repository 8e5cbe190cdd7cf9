"""The steps of the demo, in order: each takes what the one before it made, and tells its story."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from pathlib import Path

import torch

from maskery.checkpoint.load import load
from maskery.checkpoint.model import Model
from maskery.cli.demo import blanks, training
from maskery.cli.demo.baselines import Score, baselines, trained
from maskery.cli.demo.own_text import LONGEST, own_documents
from maskery.cli.demo.report import drawn, page
from maskery.cli.demo.results import Found
from maskery.cli.demo.story import Story
from maskery.cli.demo.text import chinese_documents, python_documents
from maskery.corpus.store import Corpus
from maskery.errors import TrainingError
from maskery.picture import Picture
from maskery.train.frequencies import training_counts
from maskery.train.run import Run, pretrain

BLANKS = 8
_HELD_OUT, _HELD_OUT_OF_LITTLE = 0.05, 0.1
_LITTLE = 1_000_000
"""Characters; of a shorter text a larger part is held out, so that the exam has enough questions."""


def walk(story: Story, folder: Path, text: Path | None, seconds: float | None, seed: int) -> Found:
    """All of them, into `folder`; `seconds` for training, None where the demo may choose."""
    words = story.words
    documents = read(story, text)
    corpus = build(story, documents, folder, str(text or "text"))
    allowed = training.default_seconds(story.total) if seconds is None else seconds
    run, took = train(story, corpus, folder / "run", allowed, seed)
    scores, questions = examine(story, run, corpus)
    model = run.model()
    found = Found(
        words=words,
        folder=folder,
        parameters=model.parameters_by_part()["total"],
        steps=run.recipe.training.steps,
        tokens=run.metrics[-1]["tokens"],
        training_seconds=took,
        questions=questions,
        scores=scores,
        blanks=[],
        sentence=shown_sentence(corpus, seed),
    )
    found = replace(found, blanks=fill(story, model, corpus, seed))
    with story.step(words.looking) as name, story.bar(name):
        pictures = drawn(found, model, corpus)
    return save(story, found, model, corpus, pictures)


def read(story: Story, text: Path | None) -> list[str]:
    words = story.words
    with story.step(words.text) as name, story.bar(name) as bar:
        own = None if text is None else own_documents(text)
        if own is not None:
            documents = own.documents
        elif words.lang == "zh":
            documents = chinese_documents()
        else:
            documents = python_documents(bar)
    megabytes = sum(len(document.encode()) for document in documents) / 1e6
    told = words.text_ours if own is None else words.text_own
    story.detail(told.format(documents=len(documents), megabytes=megabytes, name=text))
    if own is not None and own.pieces:
        story.detail(words.text_pieces.format(documents=len(documents)))
    if own is not None and own.cut_short:
        story.detail(words.text_cut.format(characters=LONGEST))
    return documents


def build(story: Story, documents: list[str], folder: Path, source: str) -> Corpus:
    """The corpus of the documents, which are kept as `text.txt`."""
    words = story.words
    text = folder / "text.txt"
    text.write_text("\n\n".join(documents) + "\n", encoding="utf-8")
    characters = sum(map(len, documents))
    with story.step(words.corpus) as name, story.bar(name) as bar:
        corpus = Corpus.build(
            [text],
            folder / "corpus",
            vocab=training.vocabulary_for(characters),
            heldout=_HELD_OUT if characters > _LITTLE else _HELD_OUT_OF_LITTLE,
            progress=lambda done, total: bar(done, math.inf if total is None else total),
        )
    training.require_enough(corpus, source)
    counts = corpus.counts
    story.detail(
        words.corpus_done.format(
            tokens=counts["tokens"],
            vocabulary=corpus.vocabulary,
            heldout=counts["heldout_documents"],
            documents=counts["documents"],
        )
    )
    return corpus


def train(story: Story, corpus: Corpus, out: Path, seconds: float, seed: int) -> tuple[Run, float]:
    """The run, and the seconds that the training itself took."""
    words = story.words
    with story.step(words.training) as name:
        with story.bar(words.speed):
            settled = training.settle(corpus, seconds, seed)
        tell_settled(story, settled, corpus, seconds)
        began = time.monotonic()
        with story.bar(name) as bar:
            watch = training.Watch(bar, words.training_note)
            run = pretrain(settled.recipe, corpus, out, loggers=[watch], say=story.detail)
    return run, time.monotonic() - began


def tell_settled(story: Story, settled: training.Settled, corpus: Corpus, seconds: float) -> None:
    words = story.words
    measured = ", ".join(
        (words.thread if threads == 1 else words.threads).format(milliseconds=1000 * each, threads=threads)
        for threads, each in settled.measured.items()
    )
    story.detail(
        words.training_speed.format(
            parameters=training.parameters(settled.recipe, corpus),
            steps=settled.recipe.training.steps,
            measured=measured,
            time=words.span(seconds),
        )
    )
    if settled.epochs is not None:
        story.detail(words.capped.format(epochs=settled.epochs))


def examine(story: Story, run: Run, corpus: Corpus) -> tuple[dict[str, Score], int]:
    """Scores by name, the trained model's first, and the number of questions."""
    with story.step(story.words.measuring) as name, story.bar(name):
        compared, questions = baselines(run.recipe, corpus)
        return {"trained": trained(run.metrics[-1]), **compared}, questions


def shown_sentence(corpus: Corpus, seed: int) -> str:
    """The first sentence that gets a blank, whole; where there is none, the first held-out tokens."""
    chosen = blanks.choose(corpus, training_counts(corpus), 1, seed)
    if chosen:
        return blanks.readable(corpus.tokenizer, chosen[0].ids)
    first = corpus.sentence_start[corpus.document_start[corpus.documents("heldout")[0]]]
    return blanks.readable(corpus.tokenizer, corpus.tokens[first : first + blanks.LONGEST])


def fill(story: Story, model: Model, corpus: Corpus, seed: int) -> list[blanks.Blank]:
    with story.step(story.words.blanks) as name, story.bar(name):
        chosen = blanks.choose(corpus, training_counts(corpus), BLANKS, seed)
        return list(blanks.fill(model, corpus.tokenizer, chosen))


def save(story: Story, found: Found, model: Model, corpus: Corpus, pictures: dict[str, Picture]) -> Found:
    """Show that the folder holds the model, and write the report into it."""
    words = story.words
    with story.step(words.saving) as name, story.bar(name):
        again = load(found.run)
        ids = torch.tensor([corpus.tokenizer.encode(found.sentence)[0]])
        with torch.inference_mode():
            if not torch.equal(model.logits(ids), again.logits(ids)):
                raise TrainingError("the saved model gives other scores than the one in memory")
        story.detail(words.saved)
    found = replace(found, seconds=dict(story.seconds))
    page(found, pictures).save(found.report)
    return found
