"""`maskery demo`: the whole way once, on a fresh machine and without a download: text, corpus, training, use."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from maskery.cli.settings import JsonOption
from maskery.errors import InputError

if TYPE_CHECKING:
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
    as_json: JsonOption = False,
) -> None:
    """Collect text, build a corpus, pretrain a small BERT, measure it and fill three blanks."""
    from maskery.cli.fill import candidates
    from maskery.cli.output import emit_json
    from maskery.cli.pretrain import train

    if minutes <= 0:
        raise InputError(f"--minutes {minutes:g} is no time to train", repair="--minutes 1")
    if out is not None:
        _require_free(out)
    began = time.monotonic()
    folder = Path(tempfile.mkdtemp(prefix="maskery-demo-")) if out is None else out
    corpus = collect(folder)
    recipe = settle(corpus, 60 * minutes)
    untrained, frequent = baselines(recipe, corpus)
    started = time.monotonic()
    run = train(recipe, corpus, folder / "run")
    trained = time.monotonic() - started
    model = run.model()
    accuracy = run.metrics[-1]["eval/masked_token/accuracy"]
    found = {
        "folder": str(folder),
        "run": str(run.path),
        "parameters": model.parameters_by_part()["total"],
        "steps": recipe.training.steps,
        "accuracy": {"trained": accuracy, "most frequent token": frequent, "untrained": untrained},
        "blanks": [candidates(model, text, 3) for text in BLANKS],
        "training_seconds": trained,
        "seconds": time.monotonic() - began,
    }
    emit_json(found) if as_json else _print(found)


def _require_free(out: Path) -> None:
    from maskery.errors import ExistsError
    from maskery.files import require_writable

    if out.exists() and not (out.is_dir() and not any(out.iterdir())):
        raise ExistsError("is already there", where=out, repair="choose another --out")
    require_writable(out)


def _print(found: dict[str, Any]) -> None:
    from maskery.cli.output import counted, duration, results

    console = results()
    size = f"A BERT of {found['parameters']:,} parameters, {counted(found['steps'], 'step')}"
    console.print(f"\n{size}, trained in {duration(found['training_seconds'])}.")
    console.print("Masked tokens of held-out text guessed right:")
    for name, share in found["accuracy"].items():
        console.print(f"  {name:20} {100 * share:5.1f} %")
    console.print("Blanks:")
    for blank in found["blanks"]:
        best = blank["masks"][0]["candidates"]
        told = ", ".join(f"{each['token']} {100 * each['probability']:.0f} %" for each in best)
        console.print(f"  {blank['text']}  {told}")
    took = duration(found["seconds"])
    console.print(f"Everything took {took}. The corpus, the run and the model: {found['folder']}")
    console.print(f'Go on: maskery fill {found["run"]} "{BLANKS[0]}"')


def collect(folder: Path) -> Corpus:
    from maskery.cli.demo_text import documents
    from maskery.cli.output import counted, progress, say
    from maskery.corpus.store import Corpus

    folder.mkdir(parents=True, exist_ok=True)
    text = folder / "text.txt"
    found = documents()
    text.write_text("\n\n".join(found) + "\n", encoding="utf-8")
    say(f"1. text: Python's own documentation, {counted(len(found), 'document')}, {text.stat().st_size / 1e6:.1f} MB")
    with progress("2. corpus") as update:
        corpus = Corpus.build(
            [text], folder / "corpus", vocab=VOCABULARY, heldout=0.05, progress=lambda done, total: update(done, total)
        )
    counts = corpus.counts
    say(f"   {counted(counts['tokens'], 'token')}, {counted(counts['heldout_documents'], 'document')} held out")
    return corpus


def settle(corpus: Corpus, seconds: float) -> Recipe:
    """The demo's recipe, as many steps as the time allows."""
    import torch

    from maskery.cli import budget
    from maskery.cli.output import counted, say
    from maskery.recipes.recipe import recipe

    open_ended = recipe("bert", SETTINGS, size=SIZE)
    speeds = {}
    for threads in sorted({1, torch.get_num_threads()}):  # on cores that others use too, one can be quicker than two
        torch.set_num_threads(threads)
        speeds[threads] = budget.measure(open_ended, corpus, seconds)
    threads = min(speeds, key=lambda number: speeds[number][0].seconds)
    torch.set_num_threads(threads)
    steps = budget.steps_within(seconds, speeds[threads], 0, open_ended.training.eval_rows)
    measured = ", ".join(f"{1000 * each[0].seconds:.0f} ms with {counted(n, 'thread')}" for n, each in speeds.items())
    say(f"3. training: recipe bert, size {SIZE}, {counted(steps, 'step')}; measured for one: {measured}")
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
