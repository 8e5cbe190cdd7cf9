"""From what a user says to a recipe with nothing left open: `defaults` gives the rules, this their order.

The first rank reads the folder and the clock, all others take over what it found, so that every rank trains alike.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from maskery.checkpoint.load import load
from maskery.corpus.mixture import Corpora
from maskery.files import require_writable
from maskery.model.config import Architecture
from maskery.recipes.recipe import Recipe, recipe
from maskery.train import budget, defaults, machine
from maskery.train.build import Say
from maskery.train.defaults import CPU_BATCH, CPU_BUDGET, CPU_LENGTH, SIZE_KEYS, Choice
from maskery.train.fits import require_memory
from maskery.train.folder import RunFolder
from maskery.train.options import Options
from maskery.train.ranks import joined
from maskery.train.run import occupied
from maskery.train.schedules import rate
from maskery.train.similar import lacks_similar, learn_similar
from maskery.train.tokens import steps_for_tokens, tokens_in, tokens_read

CHOSEN = (
    *("model.layers", "model.width", "model.heads", "model.feedforward", "model.init_std"),
    *("model.dropout", "model.attention_dropout", "training.length", "training.phases", "training.batch"),
    *("training.optimizer", "training.lr", "training.betas", "training.eps", "training.bias_correction"),
    *("training.clip", "training.warmup", "training.decay", "knowledge.synonyms"),
)
"""Keys that may be chosen: a resumed run takes those that its user leaves open from its own recipe."""


def settle(
    options: Options,
    corpus: Corpora,
    out: Path,
    resume: bool = False,
    *,
    say: Say,
    began: float | None = None,
    fsdp: bool = False,
    prepare: Callable[[Recipe], None] = lambda recipe: None,
) -> Recipe:
    """The recipe to train; every automatic choice is said, with its reason. `prepare` is called before anything is
    measured, `began` is when the budget began to count."""
    began = time.monotonic() if began is None else began
    with joined() as ranks:
        stored, shape = ranks.from_first(lambda: _before(options, out, resume))
    corpus.verify()
    if stored is not None:
        drawn = _as_started(options, stored, corpus, shape is not None, say)
    else:
        drawn = _applied(options, rows_and_size(options, shape), say)
        if not options.as_published and lacks_similar(drawn, corpus):
            with joined() as ranks:
                table = ranks.from_first(lambda: str(learn_similar(corpus, out, say)))
            drawn = drawn.changed({"knowledge.synonyms": table})
    drawn.require()
    require_memory(drawn, corpus.vocabulary, corpus.target_vocabulary, sharded=fsdp)
    prepare(drawn)
    if stored is None:
        drawn = _trained_as_suits(options, drawn, corpus, began, fsdp, shape is not None, say)
    settled = _with_saving(drawn, options, say)
    if settled.training.steps == 1 and rate(settled.training, 1) == 0:
        say(f"warning: the only update has rate 0 (decay {settled.training.decay}): no weight moves; {_more(options)}")
    return settled


def rows_and_size(options: Options, shape: Architecture | None = None) -> list[Choice]:
    """What is chosen before the speed of training is known; `shape` is that of the model to begin with."""
    found: list[Choice | None] = []
    published = recipe(options.recipe, size=options.size)
    if shape is not None and options.size is None:
        keys = {f"model.{name}": getattr(shape, name) for name in Architecture.model_fields}
        found.append(Choice(keys, f"the network's shape is that of {options.start_from}: training starts from it"))
    open_size = shape is None and options.size is None and not options.written & SIZE_KEYS
    if open_size and on_cpu() and not options.as_published:
        found.append(_size(options, published))
    found += chosen_rows(options)
    return _open(found, options)


def chosen_rows(options: Options) -> list[Choice]:
    """The length of rows and how many a step has, as far as the user leaves them open; nothing beside a GPU."""
    if not on_cpu() or options.as_published:
        return []
    phases = "training.phases" in options.settings.keys() | options.written
    found = defaults.choose_rows(
        recipe(options.recipe, size=options.size),
        lengths=not options.given & {"training.length", "training.phases"},
        batch="training.batch" not in options.given and not phases,
    )
    return _open(found, options)


def on_cpu() -> bool:
    return machine.device().type == "cpu"


def _size(options: Options, published: Recipe) -> Choice | None:
    if options.given >= SIZE_KEYS:
        return None
    if options.tokens is not None or "training.steps" in options.given:
        steps = _given(options, published, "steps")
        per_step = _given(options, published, "batch", CPU_BATCH) * _given(options, published, "length", CPU_LENGTH)
        return defaults.choose_size(published, tokens=options.tokens or steps * per_step)
    machine.prepare()
    with joined() as ranks:
        flops = ranks.from_first(machine.matmul_peak)
    return defaults.choose_size(published, seconds=budget.parse_budget(options.budget or CPU_BUDGET), flops=flops)


def _given(options: Options, published: Recipe, name: str, most: float = float("inf")) -> float:
    key = f"training.{name}"
    value = {**options.settings, **options.flags}.get(key, getattr(published.training, name))
    return float(value if key in options.given else min(most, value))


def _open(choices: Iterable[Choice | None], options: Options) -> list[Choice]:
    return [each for each in choices if each is not None and each.keys.keys() - options.given]


def _applied(options: Options, choices: list[Choice], say: Say) -> Recipe:
    """The recipe with the choices below what the user says."""
    for choice in choices:
        say(choice.reason)
    keys = {key: value for each in choices for key, value in each.keys.items() if key not in options.given}
    return recipe(options.recipe, {**keys, **options.settings}, size=options.size).changed(options.flags)


def _as_started(options: Options, stored: Recipe, corpus: Corpora, from_model: bool, say: Say) -> Recipe:
    """A resumed run: what is left open is as it was when the run was started."""
    before = stored.plain()
    keys: dict[str, Any] = {}
    shape = [f"model.{name}" for name in Architecture.model_fields] if from_model else []
    for key in dict.fromkeys([*CHOSEN, *shape]):
        table, _, name = key.partition(".")
        if key not in options.given and not (options.size is not None and key in SIZE_KEYS):
            keys[key] = before[table][name]
    if options.tokens is None and "training.steps" not in options.given:
        keys["training.steps"] = stored.training.steps
    drawn = recipe(options.recipe, {**keys, **options.settings}, size=options.size).changed(options.flags)
    published = recipe(options.recipe, size=options.size).plain()
    places = {key: key.partition(".") for key in keys.keys() - {"training.steps"}}
    differing = [f"{key} = {keys[key]}" for key, (a, _, b) in sorted(places.items()) if published[a][b] != keys[key]]
    if "training.steps" in keys:
        say(f"as the run was started: {_steps(stored.training.steps)}")
    if differing:
        say(f"as the run was started: {', '.join(differing)}")
    if options.tokens is not None:
        return drawn.changed({"training.steps": steps_for_tokens(options.tokens, drawn, corpus)[0]})
    return drawn


def _trained_as_suits(
    options: Options, drawn: Recipe, corpus: Corpora, began: float, fsdp: bool, starts: bool, say: Say
) -> Recipe:
    """The recipe with its steps, and with the settings that suit so many tokens. Speed is measured with the settings of
    a short run: they do not change it, but for the optimiser's part."""
    published = recipe(options.recipe, size=options.size)
    before = _layered(options, drawn, _training(options, published, drawn, 0.0, corpus, starts))
    timed = _with_steps(before, options, corpus, began, fsdp, say)
    read = tokens_read(timed, corpus)
    choices = _training(options, published, timed, read, corpus, starts)
    for choice in choices:
        say(choice.reason)
    return _layered(options, drawn, choices).changed({"training.steps": timed.training.steps})


def _training(
    options: Options, published: Recipe, drawn: Recipe, tokens: float, corpus: Corpora, starts: bool
) -> list[Choice]:
    if options.as_published:
        return []
    found = defaults.choose_training(published, drawn, tokens, tokens_in(corpus), starts=starts)
    return _open(found, options)


def _layered(options: Options, drawn: Recipe, choices: list[Choice]) -> Recipe:
    keys = {key: value for each in choices for key, value in each.keys.items() if key not in options.given}
    return drawn.changed(keys)


def _with_steps(drawn: Recipe, options: Options, corpus: Corpora, began: float, fsdp: bool, say: Say) -> Recipe:
    if options.tokens is None and options.budget is None and "training.steps" in options.given:
        return drawn
    if options.tokens is not None:
        steps, each = steps_for_tokens(options.tokens, drawn, corpus)
        say(f"--tokens {options.tokens:,}: {_steps(steps)} of {each:,.0f} positions in the mean")
        return drawn.changed({"training.steps": steps})
    if options.open_ended:
        if options.as_published or not on_cpu():
            return drawn
        say(
            f"--budget {CPU_BUDGET}: {drawn.training.steps:,} steps, as published, take days on a CPU "
            "(choose with --steps, --tokens or --budget)"
        )
    text = options.budget or CPU_BUDGET
    seconds, training = budget.parse_budget(text), drawn.training
    eval_rows = training.eval_rows if len(corpus.documents("heldout")) else 0
    with joined() as ranks:
        speeds = budget.measure(drawn, corpus, seconds, ranks, fsdp)
        left = ranks.from_first(lambda: seconds - (time.monotonic() - began))
    steps = budget.steps_within(left, speeds, training.eval_every, eval_rows)
    measured = ", ".join(f"{1000 * speed.seconds:.0f} ms at length {speed.phase.length}" for speed in speeds)
    say(f"--budget {text}: {_steps(steps)}; measured for one update: {measured}")
    return drawn.changed({"training.steps": steps})


def _more(options: Options) -> str:
    timed = options.budget is not None or options.open_ended
    return "give a longer --budget, or a smaller --size" if timed else "give more --steps"


def _steps(number: int) -> str:
    return f"{number:,} step{'' if number == 1 else 's'}"


def _with_saving(settled: Recipe, options: Options, say: Say) -> Recipe:
    """A run shorter than the recipe's distance between checkpoints still gets some."""
    training = settled.training
    if "training.save_every" in options.given or training.steps >= training.save_every:
        return settled
    every = max(1, training.steps // 4)
    say(f"--save-every {every}: the run is shorter than {_steps(training.save_every)}")
    return settled.changed({"training.save_every": every})


def _before(options: Options, out: Path, resume: bool) -> tuple[Recipe | None, Architecture | None]:
    """The recipe of the run to go on with, and the shape of the model to begin with, where there are such."""
    run = RunFolder(out)
    stored = run.recipe if occupied(out, resume) and run.begun else None
    require_writable(out)
    if stored is not None and run.state.get("from"):
        return stored, stored.model
    if options.start_from is None:
        return stored, None
    return stored, load(options.start_from, allow_pickle=options.allow_pickle).config
