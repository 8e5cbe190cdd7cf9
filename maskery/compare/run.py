"""`compare`: train every contestant with every seed, ask them all the same, write what was found.

    OUT/LABEL/seed-N/          an ordinary run
    OUT/LABEL/answers-N.json   what it answered, row by row
    OUT/comparison.json, .md   the result, written anew after every run

What is finished is not done again, so a comparison that was stopped goes on when it is called again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from maskery import files
from maskery.checkpoint.load import load
from maskery.checkpoint.tensors import read_json
from maskery.compare.ask import MASKED, NEXT, Answers, Examination, Tell, ask_masked, ask_pairs
from maskery.compare.kinds import examined
from maskery.compare.ordered import ask_next
from maskery.compare.plan import Contestant, Plan
from maskery.compare.report import markdown
from maskery.compare.result import Asked, comparison
from maskery.corpus.mixture import Corpora
from maskery.errors import CheckpointError, ExistsError, RecipeError, Stopped
from maskery.language import Phrases, phrases
from maskery.recipes.recipe import Recipe, diff
from maskery.train import corpora, knowledge, machine
from maskery.train.folder import RunFolder
from maskery.train.loggers import Logger
from maskery.train.run import FREE, pretrain

JSON, MARKDOWN = "comparison.json", "comparison.md"
Say = Callable[[str], None]


def _no_loggers(number: int, name: str, recipe: Recipe) -> Sequence[Logger]:
    return ()


def _untold(name: str) -> AbstractContextManager[Tell]:
    return nullcontext(lambda done, of: None)


@dataclass(frozen=True)
class Watch:
    """Who is told."""

    say: Say = lambda text: None
    loggers: Callable[[int, str, Recipe], Sequence[Logger]] = _no_loggers
    """The number of the run, its name and its recipe -> loggers for it."""
    asking: Callable[[str], AbstractContextManager[Tell]] = _untold
    """What is asked of whom -> somebody to be told how far that is."""


@dataclass(frozen=True)
class Turn:
    """One run of a comparison."""

    contestant: Contestant
    seed: int
    out: Path

    @property
    def name(self) -> str:
        return f"{self.contestant.label}, seed {self.seed}"

    @property
    def run(self) -> RunFolder:
        return RunFolder(self.out / self.contestant.label / f"seed-{self.seed}")

    @property
    def answers(self) -> Path:
        return self.out / self.contestant.label / f"answers-{self.seed}.json"

    @property
    def finished(self) -> bool:
        return self.run.begun and bool(self.run.state.get("finished"))


def compare(
    plan: Plan, seeds: Sequence[int], out: Path, examination: Examination, watch: Watch | None = None, lang: str = "en"
) -> dict[str, Any]:
    """The comparison as plain values; see `result.comparison` for its keys. `lang` is that of comparison.md."""
    watch, words = watch or Watch(), phrases(lang)
    examination = examined(examination, plan)
    examination.require()
    for each in plan.contestants:
        examination.require_fit(each.label, each.recipe)
    turns = turns_of(plan, seeds, out)
    require_same(turns, out, examination.corpus)
    asked: dict[tuple[str, int], Asked] = {}
    found = _write(plan, seeds, out, examination, asked, words, done=False)
    for number, turn in enumerate(turns):
        _train(number, turn, examination, watch)
        asked[turn.contestant.label, turn.seed] = _examine(turn, examination, watch)
        found = _write(plan, seeds, out, examination, asked, words, done=number + 1 == len(turns))
    return found


def turns_of(plan: Plan, seeds: Sequence[int], out: Path) -> list[Turn]:
    """All runs; the first seed of everybody comes first, so that there is early something to look at."""
    own = [each for each in plan.contestants if each.same_as is None]
    return [Turn(each, seed, out) for seed in seeds for each in own]


def require_same(turns: Sequence[Turn], out: Path, corpus: Corpora) -> None:
    """Refuse a folder that holds something else, before anything is trained."""
    if not out.exists():
        return
    if not out.is_dir():
        raise ExistsError("is a file, not a folder", where=out, repair="choose another --out")
    if not (out / JSON).is_file() and any(out.iterdir()):
        raise ExistsError("is there and holds no comparison", where=out, repair="choose another --out")
    if (out / JSON).is_file():
        _require_all(read_json(out / JSON), {turn.contestant.label for turn in turns}, out)
    for turn in turns:
        if not turn.run.begun:
            continue
        changed = diff(turn.run.recipe, turn.contestant.seeded(turn.seed))
        wrong = [key for key in changed if key not in (*FREE, "training.precision")]
        if wrong:
            was, now = changed[wrong[0]]
            raise RecipeError(
                f"{wrong[0]}: {turn.name} was trained with {was!r}, asked is {now!r}",
                where=out,
                repair="compare with the same settings as before, or choose another --out",
            )
        corpora.require_same(turn.run.state, corpus, turn.run.path)
        knowledge.require_same(turn.run.state, turn.contestant.recipe.knowledge, turn.run.path)


def _require_all(before: dict[str, Any], labels: set[str], out: Path) -> None:
    held = [each for each in before.get("variants", []) if each.get("same_as") is None]
    gone = [each["label"] for each in held if each["label"] not in labels]
    if gone:
        raise ExistsError(
            f"holds a comparison of other variants: {', '.join(gone)}",
            where=out,
            repair="name them too (new ones may be added), or choose another --out",
        )


def _train(number: int, turn: Turn, examination: Examination, watch: Watch) -> None:
    if turn.finished:
        watch.say(f"{turn.name}: already trained")
        return
    recipe = turn.contestant.seeded(turn.seed)
    there = turn.run.path.exists()
    try:
        loggers = watch.loggers(number, turn.name, recipe)
        pretrain(recipe, examination.corpus, turn.run.path, there, loggers=loggers, say=watch.say)
    except Stopped as error:
        repair = "the same command goes on from here"
        raise Stopped(f"{turn.name}: {error.cause}", signal_number=error.exit_code - 128, repair=repair) from None
    except (ExistsError, CheckpointError) as error:
        repair = (error.repair or "").replace(", then --resume", ", then the same command again")
        raise type(error)(f"{turn.name}: {error.cause}", where=error.where, repair=repair or None) from None


def _examine(turn: Turn, examination: Examination, watch: Watch) -> Asked:
    """What the model of a run answers; what it answered before is read, not asked again."""
    settings = examination.plain()
    kept = read_json(turn.answers) if turn.answers.is_file() else {}
    known = kept.get("answers", {}) if kept.get("settings") == settings else {}
    wanted = [question for question in (examination.main, *examination.questions) if question not in known]
    if wanted:
        recipe = turn.run.recipe
        model = load(turn.run.path).to(machine.device())
        for question in wanted:
            known[question] = _ask(model, recipe, question, turn, examination, watch)
        files.write_json(turn.answers, {"settings": settings, "answers": known})
    told = {question: Answers.of(known[question]) for question in known if known[question] is not None}
    lines = list(turn.run.metrics())
    return Asked(told, lines[-1] if lines else {}, str(turn.run.path))


def _ask(
    model: Any, recipe: Recipe, question: str, turn: Turn, examination: Examination, watch: Watch
) -> dict[str, Any] | None:
    """Answers as plain values; None where the model cannot be asked, which is told."""
    if question in (MASKED, NEXT):
        trained = question in model.answering(question).heads
        why = None if trained else f"it was not trained for {question.replace('_', ' ')}s"
    else:
        why = examination.impossible(question, recipe)
    if why is not None:
        watch.say(f"{turn.name} is not asked {question}: {why}")
        return None
    with watch.asking(f"asking {turn.name}: {question}") as tell:
        if question == MASKED:
            return ask_masked(model, recipe, examination, tell).plain()
        if question == NEXT:
            return ask_next(model, recipe, examination, tell).plain()
        return ask_pairs(model, recipe, examination, question, tell).plain()


def _write(
    plan: Plan,
    seeds: Sequence[int],
    out: Path,
    examination: Examination,
    asked: dict[tuple[str, int], Asked],
    words: Phrases,
    done: bool,
) -> dict[str, Any]:
    found = comparison(plan, seeds, examination, asked, done)
    with files.writing(out):
        out.mkdir(parents=True, exist_ok=True)
    files.write_json(out / JSON, found)
    files.write_text(out / MARKDOWN, markdown(found, words))
    return found
