"""`maskery compare`: train several variants alike, and examine them alike."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from maskery.cli.corpora import corpus_option, open_corpora
from maskery.cli.settings import HtmlOption, JsonOption, LangOption, SetOption, parse_settings
from maskery.errors import InputError, UnknownName
from maskery.language import ENGLISH, Phrases, phrases

if TYPE_CHECKING:
    from maskery.compare.ask import Examination, Tell
    from maskery.compare.plan import Length, Plan
    from maskery.compare.run import Watch
    from maskery.compare.variants import Preset
    from maskery.recipes.recipe import Recipe
    from maskery.train.loggers import Logger

TOKENS = "2M"
COMMON = "roberta"


def compare(
    corpus: Annotated[list[str], corpus_option()],
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="A folder for all runs and the result.")],
    variants: Annotated[
        list[str] | None,
        typer.Argument(metavar="[LABEL=]RECIPE[:KEY=VALUE,...]...", help="What is compared."),
    ] = None,
    preset: Annotated[
        str | None,
        typer.Option("--preset", metavar="masks|layouts|batches|questions|recipes", help="A set of variants."),
    ] = None,
    tokens: Annotated[
        str | None, typer.Option("--tokens", metavar="N", help=f"Tokens that each model reads; {TOKENS} if left open.")
    ] = None,
    steps: Annotated[
        int | None, typer.Option("--steps", metavar="N", min=1, help="Updates of the first variant, instead.")
    ] = None,
    size: Annotated[
        str, typer.Option("--size", metavar="S", help="tiny, mini, small, medium, base or large.")
    ] = "mini",
    seeds: Annotated[str, typer.Option("--seeds", metavar="N,N", help="One run of each variant for each seed.")] = "0",
    settings: SetOption = None,
    common: Annotated[
        str | None,
        typer.Option("--common", metavar="RECIPE", help="Whose held-out rows and masks all are evaluated on: roberta."),
    ] = None,
    rows: Annotated[int, typer.Option("--rows", metavar="N", min=2, help="Held-out rows of the evaluation.")] = 1024,
    ask: Annotated[
        str | None,
        typer.Option("--ask", metavar="Q,Q", help="Questions about pairs, e.g. next_sentence,sentence_order."),
    ] = None,
    html: HtmlOption = None,
    lang: LangOption = None,
    as_json: JsonOption = False,
) -> None:
    """Train variants on the same tokens and evaluate them on the same held-out rows. What is finished is not trained
    again: the same command goes on with a comparison that was stopped."""
    from maskery.cli.variants import parse_seeds
    from maskery.compare.ask import Examination
    from maskery.compare.kinds import examined
    from maskery.picture import require_place
    from maskery.train.options import dotted

    if html is not None:
        require_place(html)
    shared, numbers = dotted(parse_settings(settings)), parse_seeds(seeds)
    _refuse_lengths(shared)
    length = _length(tokens, steps)
    questions = _questions(ask, _preset(preset))
    store = open_corpora(corpus)
    store.verify()
    examination = Examination.of(common or COMMON, store, rows, questions, shared)
    examination.require()
    made = _plan(preset, variants or [], examination, length, size, shared, numbers[0])
    examination = examined(examination, made)
    _refuse_common(common, examination)
    words = phrases(lang)
    _show(_run(made, numbers, out, examination, words), out, html, as_json, words)


def _length(tokens: str | None, steps: int | None) -> Length:
    """How long each variant is trained; a choice of ours is printed."""
    from maskery.cli.output import say
    from maskery.cli.variants import parse_count
    from maskery.compare.plan import Length

    if tokens is not None and steps is not None:
        raise InputError("--tokens and --steps each say how long to train", repair="keep --tokens alone")
    if tokens is None and steps is None:
        say(f"--tokens {TOKENS}: short, so that it ends on a CPU (choose with --tokens or --steps)")
    return Length(None if steps is not None else parse_count(tokens or TOKENS, "--tokens"), steps)


def _refuse_common(common: str | None, examination: Examination) -> None:
    from maskery.compare.ask import MASKED

    if common is not None and examination.main != MASKED:
        raise InputError(
            f"--common {common} chooses rows with masks, and these variants predict the next token",
            repair="leave out --common",
        )


def _plan(
    preset: str | None,
    variants: Sequence[str],
    examination: Examination,
    length: Length,
    size: str,
    shared: dict[str, Any],
    seed: int,
) -> Plan:
    from maskery.cli.variants import parse_variant
    from maskery.compare.plan import plan
    from maskery.compare.variants import COMMON_TRAINING

    chosen = _preset(preset)
    named = [] if chosen is None else chosen.variants({**COMMON_TRAINING, **shared})
    given = [parse_variant(text) for text in variants]
    optional = frozenset(each.label for each in named) if preset == "recipes" else frozenset()
    return plan([*named, *given], examination.corpus, length, size, shared, seed, optional)


def _run(made: Plan, seeds: Sequence[int], out: Path, examination: Examination, words: Phrases) -> dict[str, Any]:
    from maskery.cli.output import say
    from maskery.compare.report import facts
    from maskery.compare.result import comparison
    from maskery.compare.run import compare
    from maskery.files import require_writable

    require_writable(out)
    for line in facts(comparison(made, seeds, examination, {}, done=False), words):
        say(line)
    return compare(made, seeds, out, examination, watch_of(made, seeds), words.lang)


def _refuse_lengths(shared: dict[str, Any]) -> None:
    wrong = next((key for key in ("training.steps", "training.seed", "training.phases") if key in shared), None)
    if wrong is not None:
        instead = {"training.steps": "--steps N", "training.seed": "--seeds N"}.get(wrong, "--set training.length=N")
        raise InputError(f"--set {wrong}: a comparison sets this itself", repair=instead)


def _preset(name: str | None) -> Preset | None:
    from maskery.compare.variants import PRESETS

    if name is not None and name not in PRESETS:
        raise UnknownName("preset", name, PRESETS)
    return None if name is None else PRESETS[name]


def _questions(ask: str | None, chosen: Preset | None) -> tuple[str, ...]:
    from maskery.objectives.config import PAIR_OF

    if ask is None:
        return () if chosen is None else chosen.questions
    names = tuple(dict.fromkeys(part.strip() for part in ask.split(",") if part.strip()))
    wrong = next((name for name in names if name not in PAIR_OF), None)
    if wrong is not None:
        raise UnknownName("question about pairs", wrong, PAIR_OF)
    return names


def watch_of(plan: Plan, seeds: Sequence[int]) -> Watch:
    """Remarks, a display of each run, and a bar for each examination."""
    from maskery.cli.live import Display, Meter
    from maskery.cli.output import duration, progress, say
    from maskery.compare.run import Watch

    runs = len(seeds) * sum(each.same_as is None for each in plan.contestants)

    class OneOfMany(Meter):
        """Figures of one run, and the time that the rest will take at its speed."""

        def __init__(self, number: int, name: str, recipe: Recipe) -> None:
            super().__init__(recipe.training.steps, 0.0, 0.0)
            self.number, self.name = number, name

        def text(self) -> str:
            speed = self.tokens_per_second
            later = (runs - self.number - 1) * plan.tokens / speed if speed else 0.0
            left = f"all runs: about {duration(self.seconds_left + later)} left"
            return f"run {self.number + 1} of {runs} ({self.name}): {super().text()}; {left}"

    def loggers(number: int, name: str, recipe: Recipe) -> list[Logger]:
        say(f"run {number + 1} of {runs}: {name}: {recipe.training.steps:,} steps of {recipe.training.batch:,} rows")
        return [Display(OneOfMany(number, name, recipe))]

    @contextmanager
    def asking(name: str) -> Iterator[Tell]:
        with progress(name) as bar:
            yield lambda done, of: bar(done, of)

    return Watch(say, loggers, asking)


def _show(found: dict[str, Any], out: Path, html: Path | None, as_json: bool, words: Phrases) -> None:
    from maskery.cli.output import emit_json, results, save_picture, say
    from maskery.compare.picture import comparison_picture

    if html is not None:
        save_picture(comparison_picture(found, words.lang), html)
    if as_json:
        emit_json(found)
        return
    print_comparison(found, results(), words)
    say(f"written: {out / 'comparison.md'}, {out / 'comparison.json'}; the runs: {out}/LABEL/seed-N")


def print_comparison(found: dict[str, Any], console: Any, words: Phrases = ENGLISH) -> None:
    from rich import box
    from rich.table import Table

    from maskery.compare.report import PUBLISHED_NOTE, facts, main_table, question_table, verdict

    for line in facts(found, words):
        console.print(line, soft_wrap=True)
    tables = [main_table(found, words), question_table(found, words)]
    for heads, lines in filter(None, tables):
        shown = Table(*heads, box=box.SIMPLE_HEAD, pad_edge=False)
        for cells in lines:
            shown.add_row(*cells)
        console.print(shown)
    if tables[1] is not None:
        console.print(words.phrase(PUBLISHED_NOTE), soft_wrap=True)
    if said := verdict(found, words):
        console.print(said, soft_wrap=True, style="bold")
