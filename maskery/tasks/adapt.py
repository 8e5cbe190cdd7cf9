"""Pretraining goes on with the task's own texts before the task is learned (Gururangan et al. 2020).

The model is asked what it was always asked about tokens (hidden ones, the next one, those that were replaced), by the
recipe of its family; questions about pairs of segments are left out, for a task's texts do not follow each other.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from maskery import files
from maskery.checkpoint.load import load
from maskery.checkpoint.model import Model
from maskery.corpus.builder import build
from maskery.errors import CheckpointError, InputError
from maskery.model.config import Architecture
from maskery.objectives.config import PAIR_OF
from maskery.recipes.recipe import Recipe, recipe
from maskery.rows.config import ONLY_PAIR
from maskery.tasks.examples import Examples
from maskery.tasks.framing.frame import longest_row, tokenizer_of
from maskery.tasks.plan import Part, Watching
from maskery.tasks.run import Watch
from maskery.train.folder import RunFolder
from maskery.train.loggers import Logger
from maskery.train.loop import Update
from maskery.train.run import pretrain

FOLDER, TEXTS = "adapted", "adapted-texts"
RECIPES = {
    "bert": "bert", "roberta": "roberta", "distilbert": "roberta", "albert": "albert", "nezha": "nezha",
    "ernie": "bert", "electra": "electra", "xlnet": "xlnet", "bart": "bart", "gpt2": "gpt2", "openai-gpt": "gpt",
    "transfo-xl": "transformer-xl", "xlm-roberta": "roberta", "camembert": "roberta", "mpnet": "roberta",
    "deberta-v2": "roberta", "modernbert": "roberta",
}  # fmt: skip
"""By the type of the folder. ERNIE's own masks need its lists of phrases and entities; where a family has no recipe of
its own, the masks of RoBERTa."""
OTHERS = {"causal": "gpt2", "permuted": "xlnet", "full": "roberta"}
"""By who sees whom, where no family fits."""
RATE, BATCH, WARMUP, LENGTH = 5e-5, 32, 0.06, 128
"""Half of the rate of those who read 256 rows a step; their warm-up."""
Say = Callable[[str], None]


def adapt(
    model: Model, source: str | Path, train: Examples, out: Path, steps: int, seed: int, say: Say,
    watching: Watching | None = None,
) -> None:  # fmt: skip
    """Go on pretraining `model`, read from `source`, on the texts of `train`; its numbers are changed in place.

    `out`/adapted is a run like any other, so it goes on where it was stopped.
    """
    run = RunFolder(out / FOLDER)
    if not (run.begun and run.state.get("finished")):
        _pretrained(model, source, train, out, steps, seed, say, watching)
    else:
        say(f"{run.path}: already finished at step {run.state['step']}")
    taken(model, run.path)


def _pretrained(
    model: Model, source: str | Path, train: Examples, out: Path, steps: int, seed: int, say: Say,
    watching: Watching | None,
) -> None:  # fmt: skip
    chosen = adapting_recipe(model, Path(source), steps, seed)
    chosen.require()
    corpus = _corpus(model, train, out / TEXTS, say)
    told = chosen.training
    say(
        f"adapting: {steps:,} steps of {told.batch} rows of {told.length} tokens, rate {told.lr:g}, "
        f"asked: {', '.join(chosen.objectives)} (recipe {chosen.name}); labels are not read"
    )
    _tell_heads(model, chosen, say)
    part = Part(path=out / FOLDER, title="adapting", steps=steps)
    with nullcontext(_nobody) if watching is None else watching(part) as watch:
        resume = part.path.exists()
        pretrain(chosen, corpus, part.path, resume, start_from=source, loggers=[_Watched(watch)], say=say)
    files.remove_folder(out / TEXTS)


def _tell_heads(model: Model, chosen: Recipe, say: Say) -> None:
    """A folder without the head of a question still has the network; what is new begins at chance."""
    missing = [name for name in chosen.objectives if name not in model.heads and not _asks_generator(name, chosen)]
    if missing:
        say(f"the model's folder has no head for {', '.join(missing)}: a new one is trained on the token vectors")
    if chosen.model.generator.width and model.generator is None:
        say("the model's folder has no generator: a new one is trained, so the first steps ask easy questions")


def _asks_generator(name: str, chosen: Recipe) -> bool:
    return bool(chosen.model.generator.width) and name == "masked_token"


def adapting_recipe(model: Model, source: Path, steps: int, seed: int) -> Recipe:
    """That of the run which the model comes from, or that of its family, with the network as it is."""
    plain = _published(model, source).plain()
    plain["objectives"] = {name: asked for name, asked in plain["objectives"].items() if name not in PAIR_OF}
    if plain["rows"]["pair"] != "none" or plain["rows"]["kind"] not in ONLY_PAIR:
        plain["rows"] |= {"kind": "full_sentences", "pair": "none", "short": 0.0}
    if plain["rows"]["kind"] == "source_target":
        raise InputError(
            "the model writes targets for sources, and a task's texts have none",
            where=source,
            repair="leave out --adapt",
        )
    plain["rows"]["copies"] = 1
    plain["corruption"] |= {"stages": [], "when": "dynamic"}
    plain["model"] |= {name: getattr(model.config, name) for name in Architecture.model_fields}
    plain["model"] |= _generator(model)
    plain["training"] |= _training(model, steps, seed)
    return Recipe.model_validate_json(json.dumps(plain))


def _published(model: Model, source: Path) -> Recipe:
    if (source / "recipe.toml").is_file():
        return RunFolder(source).recipe
    name = RECIPES.get(model.family) or OTHERS.get(model.config.visibility)
    if name is None:
        raise InputError(
            f"no recipe is known for a model whose slots see {model.config.visibility}",
            where=source,
            repair="leave out --adapt, or pretrain it with maskery pretrain RECIPE --from MODEL",
        )
    return recipe(name)


def _generator(model: Model) -> dict[str, Any]:
    """The sizes of the model's generator, where its folder holds one."""
    if model.generator is None:
        return {}
    small = model.generator.config
    sizes = {"layers": small.layers, "heads": small.heads, "feedforward": small.feedforward}
    return {"generator": {"width": small.width / model.config.width, **sizes}}


def _training(model: Model, steps: int, seed: int) -> dict[str, Any]:
    return {
        "optimizer": "adamw",
        "lr": RATE,
        "warmup": WARMUP,
        "decay": "linear",
        "bias_correction": True,
        "clip": 1.0,
        "steps": steps,
        "batch": BATCH,
        "length": min(longest_row(model) or LENGTH, LENGTH),
        "phases": [],
        "seed": seed,
        "save_every": max(1, steps // 4),
        "keep": 1,
        "eval_every": 0,
    }


def _corpus(model: Model, train: Examples, out: Path, say: Say) -> Any:
    """The texts, each once, as a corpus in the model's own tokens."""
    texts = list(dict.fromkeys(text for each in train for text in (*each.texts, *each.choices) if text.strip()))
    files.remove_abandoned(out)
    if out.exists():
        files.remove_folder(out)  # made anew: it is the same again, and half of one would not be seen
    lines = out.with_name(f"{out.name}.jsonl")
    files.write_text(lines, "".join(json.dumps({"text": text}) + "\n" for text in texts))
    try:
        made = build(lines, out, tokenizer=tokenizer_of(model), heldout=0.0)
    finally:
        lines.unlink(missing_ok=True)
    say(f"adapting: {len(texts):,} different texts of {len(train):,} examples, {made.counts['tokens']:,} tokens")
    return made


def taken(model: Model, folder: Path) -> None:
    """Put the numbers of an adapted network into the model; what pretraining does not ask (a pooler) stays."""
    adapted = load(folder)
    ours, theirs = model.network.state_dict(), adapted.network.state_dict()
    wrong = [name for name in theirs if name not in ours or ours[name].shape != theirs[name].shape]
    if wrong:
        raise CheckpointError(
            f"{wrong[0]} is of another size than the model's", where=folder, repair="choose another --out"
        )
    model.network.load_state_dict(ours | theirs)
    for name, head in model.heads.items():
        if name in adapted.heads:
            head.load_state_dict(adapted.heads[name].state_dict())


def _nobody(update: Update, line: Mapping[str, Any]) -> None:
    pass


class _Watched(Logger):
    def __init__(self, watch: Watch) -> None:
        self.watch = watch

    def begin(self, run: Path, recipe: Recipe, step: int) -> None:
        return None

    def log(self, update: Update, line: Mapping[str, Any]) -> None:
        self.watch(update, line)

    def end(self, error: BaseException | None) -> None:
        return None
