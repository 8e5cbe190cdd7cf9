"""`maskery demo`: the whole way once, on a fresh machine and without a download: text, corpus, training, use."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from maskery.errors import InputError

if TYPE_CHECKING:
    from maskery.checkpoint.model import Model
    from maskery.corpus.store import Corpus
    from maskery.recipes.recipe import Recipe

BLANKS = (
    "This method returns the [MASK] of the list.",
    "If the file does not [MASK], an error is raised.",
    "Return true if the object is an [MASK] of the class.",
)
SETTINGS = {
    "training.length": 64,
    "training.phases": [],
    "training.batch": 16,
    "training.lr": 2e-3,
    "training.betas": [0.9, 0.98],
    "training.warmup": 0.1,
    "training.bias_correction": True,
    "training.eval_every": 0,
    "training.eval_rows": 512,
    "model.dropout": 0.0,
    "model.attention_dropout": 0.0,
}
"""A small network learns quickly at a high rate, short rows in small batches make more steps of a minute, and nobody
overfits in one."""
SIZE = "tiny"
VOCABULARY = 8000


def demo(
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="A new folder; by default a temporary one.")
    ] = None,
    minutes: Annotated[float, typer.Option("--minutes", metavar="M", help="Minutes of training.")] = 1.25,
) -> None:
    """Collect text, build a corpus, pretrain a small BERT, measure it and fill three blanks."""
    from maskery.cli.output import duration, results
    from maskery.cli.pretrain import train
    from maskery.files import require_writable
    from maskery.train.run import occupied

    if minutes <= 0:
        raise InputError(f"--minutes {minutes:g} is no time to train", repair="--minutes 1")
    if out is not None:
        occupied(out, resume=False)
        require_writable(out)
    began = time.monotonic()
    folder = Path(tempfile.mkdtemp(prefix="maskery-demo-")) if out is None else out
    corpus = collect(folder)
    recipe = settle(corpus, 60 * minutes)
    untrained, frequent = baselines(recipe, corpus)
    started = time.monotonic()
    run = train(recipe, corpus, folder / "run")
    trained = time.monotonic() - started
    model = run.model()
    console = results()
    parameters, steps = model.parameters_by_part()["total"], recipe.training.steps
    console.print(f"\nA BERT of {parameters:,} parameters, {steps:,} steps, trained in {duration(trained)}.")
    console.print("Masked tokens of held-out text guessed right:")
    accuracy = run.metrics[-1]["eval/masked_token/accuracy"]
    for name, share in {"trained": accuracy, "most frequent token": frequent, "untrained": untrained}.items():
        console.print(f"  {name:20} {100 * share:5.1f} %")
    console.print("Blanks:")
    for text in BLANKS:
        console.print(f"  {text}  {guesses(model, text)}")
    console.print(f"Everything took {duration(time.monotonic() - began)}. The corpus, the run and the model: {folder}")
    console.print(f'Go on: maskery fill {folder / "run"} "{BLANKS[0]}"')


def collect(folder: Path) -> Corpus:
    from maskery.cli.demo_text import documents
    from maskery.cli.output import progress, say
    from maskery.corpus.store import Corpus

    folder.mkdir(parents=True, exist_ok=True)
    text = folder / "text.txt"
    found = documents()
    text.write_text("\n\n".join(found) + "\n", encoding="utf-8")
    say(f"1. text: Python's own documentation, {len(found)} documents, {text.stat().st_size / 1e6:.1f} MB")
    with progress("2. corpus") as update:
        corpus = Corpus.build(
            [text], folder / "corpus", vocab=VOCABULARY, heldout=0.05, progress=lambda done, total: update(done, total)
        )
    counts = corpus.counts
    say(f"   {counts['tokens']:,} tokens, {counts['heldout_documents']} documents held out")
    return corpus


def settle(corpus: Corpus, seconds: float) -> Recipe:
    """The demo's recipe, as many steps as the time allows."""
    import torch

    from maskery.cli import budget
    from maskery.cli.output import say
    from maskery.recipes.recipe import recipe

    open_ended = recipe("bert", SETTINGS, size=SIZE)
    speeds = {}
    for threads in sorted({1, torch.get_num_threads()}):  # on cores that others use too, one can be quicker than two
        torch.set_num_threads(threads)
        speeds[threads] = budget.measure(open_ended, corpus, seconds)
    threads = min(speeds, key=lambda number: speeds[number][0].seconds)
    torch.set_num_threads(threads)
    steps = budget.steps_within(seconds, speeds[threads], 0, open_ended.training.eval_rows)
    measured = ", ".join(f"{1000 * each[0].seconds:.0f} ms with {n} threads" for n, each in speeds.items())
    say(f"3. training: recipe bert, size {SIZE}, {steps:,} steps; measured for one: {measured}")
    return open_ended.changed({"training.steps": steps, "training.save_every": max(1, steps // 2)})


def baselines(recipe: Recipe, corpus: Corpus) -> tuple[float, float]:
    """Accuracy of the untrained network, and of always saying the most frequent token, on the held-out rows that
    the trained network will be asked about."""
    import numpy as np
    import torch

    from maskery.feed import Feed
    from maskery.system import System
    from maskery.train.evaluate import evaluate

    training = recipe.training
    system = System(recipe, corpus.vocabulary)
    system.initialise(training.seed)
    heldout = Feed(recipe, corpus, training.seed, "heldout")
    untrained = evaluate(system, heldout, training.steps, training.eval_rows, 32, torch.device("cpu"))
    phase = heldout.phases[-1]
    rows = heldout.visit(phase, np.arange(min(training.eval_rows, len(heldout.plan(phase)))))
    labels = heldout.make(0, phase, np.zeros_like(rows), rows).targets["masked_token"].label
    frequent = int(corpus.facts.frequency.argmax())
    return untrained["eval/masked_token/accuracy"], float((labels == frequent).float().mean())


def guesses(model: Model, text: str) -> str:
    """The three likeliest tokens for the blank."""
    import torch

    assert model.tokenizer is not None, "a run saves its tokenizer"
    ids, segments = model.tokenizer.encode(text)
    blank = ids.index(model.tokenizer.specials.mask or 0)
    with torch.no_grad():
        scores = model.logits(torch.tensor([ids]), segments=torch.tensor([segments]))[0, blank].softmax(0)
    best = scores.topk(3)
    names = model.tokenizer.tokens(best.indices.numpy())
    return ", ".join(f"{name} {100 * share:.0f} %" for name, share in zip(names, best.values.tolist(), strict=True))
