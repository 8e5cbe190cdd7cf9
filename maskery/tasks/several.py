"""Several trainings as one run: each in a folder of its own inside the run's, and what is kept of them at its top.

    RUN/examples-N/    a part of the data (curve)          the last is kept
    RUN/head/ ...      an end of long texts (truncate)     the best on the development set, or the three together
    RUN/seed-N/        a seed                              the best

They may stand in each other, in this order. A stopped run goes on with the training that was under way.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from maskery.checkpoint.model import Model
from maskery.errors import Stopped
from maskery.tasks.base import AnyTaskModel
from maskery.tasks.examples import Examples
from maskery.tasks.folder import TaskFolder
from maskery.tasks.judge.baselines import Baselines
from maskery.tasks.judge.measure import HEADLINES, Judgement, one_class
from maskery.tasks.judge.repeats import LearningCurve, LearningPoint, over_seeds
from maskery.tasks.judge.words import figure_text
from maskery.tasks.judging import Repeated, read_judgement, write_judgement
from maskery.tasks.model import TASK_FILE, TaskModel, read_task, write_task
from maskery.tasks.own_loss import put_loss
from maskery.tasks.pace import BY_TIME, planned_before, sample_of, within_budget
from maskery.tasks.plan import ENDS, Part, Plan
from maskery.tasks.resolve import Splits, steps_of
from maskery.tasks.run import require_same, tune
from maskery.tasks.seq2seq.model import WritingModel
from maskery.tasks.settings import TaskConfig
from maskery.tasks.subsets import parts_of
from maskery.tasks.together import Answering, Together, first_of
from maskery.tasks.work import Work

Say = Callable[[str], None]
Keep = Callable[[Path, Sequence[str], bool], str]
"""(folder, names of trainings in it, whether all are there) -> what was kept, in words."""
_SHOWN = 100
"""Training examples that show whether one class is all that is predicted."""


def _quiet(note: str) -> None:
    pass


@dataclass(frozen=True, kw_only=True)
class Job:
    path: Path
    config: TaskConfig
    train: Examples
    seconds: float = 0.0
    """0: as long as it takes."""

    def inside(self, name: str, share: float, config: TaskConfig | None = None, train: Examples | None = None) -> Job:
        return Job(
            path=self.path / name,
            config=config or self.config,
            train=self.train if train is None else train,
            seconds=share * self.seconds,
        )


def trainings(plan: Plan, job: Job) -> int:
    sizes = len(parts_of(job.train, job.config.training.seed)) if plan.curve else 1
    return sizes * (len(ENDS) if plan.truncate else 1) * plan.seeds


def trained(job: Job, plan: Plan, work: Work) -> Judgement | None:
    """Train as planned, and write the model into the job's folder. How good it is, where a development set tells it."""
    if plan.curve:
        return _over_sizes(job, plan.model_copy(update={"curve": False}), work)
    if plan.truncate:
        return _over_ends(job, plan, work)
    if plan.seeds > 1:
        return _over_seeds(job, plan, work)
    return _alone(job, work)


# -- one training


def _alone(job: Job, work: Work) -> Judgement | None:
    work.begun += 1
    began, folder = time.monotonic(), TaskFolder(job.path)
    before = read_judgement(job.path) if folder.begun and folder.state.get("finished") else None
    splits = replace(work.splits, train=job.train)
    if before is not None:
        require_same(
            folder,
            work.origins(splits),
            job.config,
            ("training.steps", *(BY_TIME if job.seconds else ()), *work.open_by_time(job.seconds)),
        )
        work.say(f"{job.path}: already finished at step {folder.state['step']}")
        return before
    title = work.title(job.path)
    if title:
        work.say(title)
    baselines = None if splits.dev is None else work.baselines_for(job.train, splits.dev, job.seconds)
    made = begun_model(work.model(), job.config, work.say)
    put_loss(made.system, work.loss)
    made.config = _with_steps(job, made, work)
    made.config = _within_time(job, made, splits, folder, began, work)
    part = Part(path=job.path, title=title, steps=made.config.training.steps, task=made.config.task)
    sample = work.dev(made.config.evaluate_rows)
    with work.watch(part) as watch:
        made = tune(
            made, splits, job.path, resume=job.path.exists(), say=work.say, watch=watch, sample=sample, base=work.base
        )
        put_loss(made.system, work.loss)  # a finished one is read from its folder
    if baselines is None:
        _warn_of_one_class(made, job.train, work.say)
        return None
    return _judged(made, job, work, work.say, baselines)


def _judged(
    made: Answering, job: Job, work: Work, say: Say, baselines: Baselines, repeated: Repeated | None = None
) -> Judgement:
    """Write the report of a training about the development set, or the sample of it that its time allows."""
    dev = work.dev(made.config.report_rows)
    assert dev is not None
    assert work.splits.dev is not None
    some = baselines.at(work.splits.dev, dev)
    if len(dev) < len(work.splits.dev):
        note = f"figures are of a fixed random sample of {len(dev):,} of {len(work.splits.dev):,} development examples"
        some = replace(some, notes=(*some.notes, note))
    judgement = write_judgement(made, dev, job.path, say, repeated, some, work.overlap)
    first = first_of(made)
    if not isinstance(made, Together) and first.evaluation is not None:
        work.evaluations[job.path] = first.evaluation[1]
    return judgement


def _warn_of_one_class(made: AnyTaskModel, train: Examples, say: Say) -> None:
    """Without a development set some of the training examples show it."""
    if made.config.task not in ("classify", "pair"):
        return
    some = sample_of(train, _SHOWN)
    answers = made.predict(some, _quiet).answers
    for note in one_class(made.config.task, made.gold(some), answers):
        say(note)


def begun_model(loaded: Model, config: TaskConfig, say: Say) -> AnyTaskModel:
    """A model before its first step; a head that it has for the task is gone on from."""
    if config.task == "seq2seq":
        return WritingModel(loaded, config)
    made = TaskModel(loaded, config)
    if (not config.labels or config.task == "choice" or loaded.labels == config.labels) and made.take_native():
        say(f"the model has the task's own head, {made.native.name}: training goes on from it")
    return made


def _with_steps(job: Job, made: AnyTaskModel, work: Work) -> TaskConfig:
    """The steps of a part of the data are fewer."""
    if job.train is work.splits.train:
        return job.config
    units = made.feed(job.train, _quiet).units
    training = job.config.training.model_copy(update={"steps": steps_of(job.config, units)})
    return job.config.model_copy(update={"training": training})


def _within_time(
    job: Job, made: AnyTaskModel, splits: Splits, folder: TaskFolder, began: float, work: Work
) -> TaskConfig:
    if not job.seconds:
        return made.config
    spent, open_batch = time.monotonic() - began, bool(work.open_by_time(job.seconds))
    before = planned_before(made.config, folder, open_batch)
    return before or within_budget(made, splits, job.seconds - spent, work.say, open_batch=open_batch)


# -- several


def _over_sizes(job: Job, plan: Plan, work: Work) -> Judgement | None:
    parts = parts_of(job.train, job.config.training.seed)
    total = sum(map(len, parts))
    parts[-1] = job.train  # it is all of the data, and known to be so
    names = [f"examples-{len(part)}" for part in parts]
    jobs = {
        name: job.inside(name, len(part) / total, work.config_for(job.config, part), part)
        for name, part in zip(names, parts, strict=True)
    }
    found = _each(job, jobs, plan, work, _last)
    points = [point for name, each in found.items() for point in _points(jobs[name], each, plan)]
    for point in points:
        seed = f", seed {point.seed}" if plan.seeds > 1 else ""
        work.say(f"{point.size:,} examples{seed}: {_figure(job.config.task, point.metrics, point.intervals)}")
    return _told(job, work, Repeated(learning=LearningCurve(tuple(points))))


def _points(job: Job, kept: Judgement, plan: Plan) -> list[LearningPoint]:
    """Of one size: a point for each seed, where there are several and nothing else."""
    first, size = job.config.training.seed, len(job.train)
    if plan.seeds == 1 or plan.truncate:
        return [LearningPoint(size, first, kept.metrics, kept.intervals)]
    each = {seed: read_judgement(job.path / f"seed-{seed}") for seed in range(first, first + plan.seeds)}
    return [LearningPoint(size, seed, said.metrics, said.intervals) for seed, said in each.items() if said]


def _over_ends(job: Job, plan: Plan, work: Work) -> Judgement | None:
    rows = job.config.rows
    configs = {end: job.config.model_copy(update={"rows": rows.model_copy(update={"truncate": end})}) for end in ENDS}
    jobs: dict[str, Job] = {end: job.inside(end, 1 / len(ENDS), config) for end, config in configs.items()}
    keep = _fused if plan.truncate == "fuse" else _best
    found = _each(job, jobs, plan.model_copy(update={"truncate": ""}), work, keep)
    figures = {f"truncate {end}": _figure(job.config.task, each.metrics, each.intervals) for end, each in found.items()}
    for name, figure in figures.items():
        work.say(f"{name}: {figure}")
    judgement = _told(job, work, Repeated(facts=figures | {"kept": _kept(job.path)}))
    if judgement is not None and plan.truncate == "fuse":
        work.say(f"the three together: {_figure(job.config.task, judgement.metrics, judgement.intervals)}")
    return judgement


def _over_seeds(job: Job, plan: Plan, work: Work) -> Judgement | None:
    first = job.config.training.seed
    jobs = {}
    for seed in range(first, first + plan.seeds):
        training = job.config.training.model_copy(update={"seed": seed})
        config = job.config.model_copy(update={"training": training})
        jobs[f"seed-{seed}"] = job.inside(f"seed-{seed}", 1 / plan.seeds, config)
    found = _each(job, jobs, plan.model_copy(update={"seeds": 1}), work, _best)
    spreads = over_seeds({number: each.metrics for number, each in enumerate(found.values(), first)})
    for name in HEADLINES[job.config.task]:
        each = spreads[name]
        singly = ", ".join(map(figure_text, each.each))
        work.say(f"{plan.seeds} seeds: {name} {figure_text(each.mean)}, sd {figure_text(each.sd)} ({singly})")
    kept = f"{_kept(job.path)}, the best of {plan.seeds} on these very examples: their mean is the fairer figure"
    return _told(job, work, Repeated(seeds=spreads, facts={"kept": kept}))


def _each(job: Job, jobs: Mapping[str, Job], plan: Plan, work: Work, keep: Keep) -> dict[str, Judgement]:
    """All trainings one after another. Whatever ends them early, the best model so far stands at the top."""
    found: dict[str, Judgement] = {}
    try:
        for name, each in jobs.items():
            judgement = trained(each, plan, work)
            assert judgement is not None  # a plan of several needs a development set (`require_dev`)
            found[name] = judgement
    except (Stopped, KeyboardInterrupt):
        there = [name for name, each in jobs.items() if (each.path / TASK_FILE).is_file()]
        if there:
            work.say(f"so far: {keep(job.path, there, False)}")
        raise
    work.say(keep(job.path, list(jobs), True))
    return found


def _told(job: Job, work: Work, repeated: Repeated) -> Judgement | None:
    """Judge what is kept; then the run is finished."""
    assert work.splits.dev is not None
    folder = TaskFolder(job.path)
    made, kept = work.opened(job.path), folder.state["kept"]
    dev = work.dev(made.config.report_rows)
    if dev is not None and isinstance(kept, str) and job.path / kept in work.evaluations:
        first_of(made).evaluation = dev, work.evaluations[job.path / kept]
    baselines = work.baselines_for(job.train, work.splits.dev, job.seconds)
    judgement = _judged(made, job, work, _quiet, baselines, repeated)
    folder.write_state({**folder.state, "finished": True})
    return judgement


def _figure(task: str, metrics: Mapping[str, float], intervals: Mapping[str, tuple[float, float]]) -> str:
    name = HEADLINES[task][0]
    low, high = intervals[name]
    return f"{name} {figure_text(metrics[name])} [{figure_text(low)}, {figure_text(high)}]"


# -- what is kept


def _best(path: Path, names: Sequence[str], whole: bool) -> str:
    """The first of those that are equally good."""
    name = max(names, key=lambda each: _value(path / each))
    _promote(path, name)
    return f"{path}: {name} is kept, the best on the development set"


def _last(path: Path, names: Sequence[str], whole: bool) -> str:
    _promote(path, names[-1])
    return f"{path}: {names[-1]} is kept" + (", all of the data" if whole else "")


def _fused(path: Path, names: Sequence[str], whole: bool) -> str:
    _write_fused(path, read_task(path / names[0]), tuple(names))
    state = TaskFolder(path / names[0]).state
    TaskFolder(path).write_state({**state, "kept": list(names), "finished": False})
    return f"{path}: answers are the average of {', '.join(names)}"


def _promote(path: Path, name: str) -> None:
    """A training's model as that of the folder it stands in."""
    config = read_task(path / name)
    if config.fused:
        _write_fused(path, config, tuple(f"{name}/{each}" for each in config.fused))
    else:
        TaskModel.load(path / name).save(path, _quiet)
    TaskFolder(path).write_state({**TaskFolder(path / name).state, "kept": name, "finished": False})


def _write_fused(path: Path, config: TaskConfig, names: tuple[str, ...]) -> None:
    fused = config.model_copy(update={"fused": names})
    write_task(path, fused)


def _value(path: Path) -> float:
    """The best figure on the development set; one that could not be computed is worse than any other."""
    best = TaskFolder(path).state.get("best")
    value = float(best["value"]) if best else -math.inf
    return -math.inf if math.isnan(value) else value


def _kept(path: Path) -> str:
    kept = TaskFolder(path).state["kept"]
    return kept if isinstance(kept, str) else ", ".join(kept)
