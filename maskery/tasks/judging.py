"""What a fine-tuned model is worth on labelled examples, and the files that tell it: a page, a card, results."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from maskery import files
from maskery.checkpoint.tensors import read_json
from maskery.language import chosen
from maskery.tasks.copies import Overlap
from maskery.tasks.examples import Examples
from maskery.tasks.folder import TaskFolder
from maskery.tasks.judge.baselines import Baselines
from maskery.tasks.judge.calibration import calibrated
from maskery.tasks.judge.card import model_card, write_card
from maskery.tasks.judge.confusion import confusion
from maskery.tasks.judge.grouped import grouped
from maskery.tasks.judge.measure import Judgement, compared, judge
from maskery.tasks.judge.mistakes import worst_mistakes
from maskery.tasks.judge.repeats import LearningCurve, LearningPoint, Spread, spread
from maskery.tasks.judge.report import Evidence, report
from maskery.tasks.judge.results import eval_results, write_eval_results
from maskery.tasks.questions import Predicted
from maskery.tasks.settings import TaskConfig
from maskery.tasks.together import Answering, averaged, first_of, models_of
from maskery.tasks.use import uses_of
from maskery.train.folder import RunFolder

FILE = "evaluation.json"
Say = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class Repeated:
    """What several trainings tell that one does not."""

    seeds: Mapping[str, Spread] = field(default_factory=dict)
    learning: LearningCurve | None = None
    facts: Mapping[str, object] = field(default_factory=dict)

    def plain(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        if self.seeds:
            found["seeds"] = {name: each.plain() for name, each in self.seeds.items()}
        if self.learning is not None:
            found["learning"] = self.learning.plain()
        return found | ({"facts": dict(self.facts)} if self.facts else {})


def write_judgement(
    made: Answering,
    dev: Examples,
    out: Path,
    say: Say,
    repeated: Repeated | None = None,
    baselines: Baselines | None = None,
    overlap: Overlap | None = None,
) -> Judgement:
    """Evaluate on `dev`, unless training has just done so, and write what was found. `overlap`: what dev has in common
    with train, which was logged before training."""
    more, copies = repeated or Repeated(), overlap or Overlap()
    found, loss = _evaluated(made, dev)
    judgement, evidence = judged(made, dev, found, baselines)
    own = judgement.notes
    judgement = replace(judgement, notes=(*own, *copies.notes))
    facts = {**evidence.facts, **more.facts}
    evidence = replace(evidence, seeds=more.seeds, learning=more.learning, facts=facts, training=logged(out))
    name = out.resolve().name
    report(judgement, name, evidence, chosen()).save(out / "report.html")
    write_card(out, model_card(judgement, name, labels=made.config.labels, use=uses_of(made, name), evidence=evidence))
    step = TaskFolder(out).state["step"] if TaskFolder(out).begun else made.config.training.steps
    write_eval_results(out, eval_results(judgement, eval_loss=loss, global_step=step))
    files.write_json(out / FILE, judgement.plain() | more.plain() | ({"copies": copies.plain} if copies.plain else {}))
    for note in (*found.notes, *own):
        say(note)
    return judgement


def logged(out: Path) -> list[dict[str, Any]]:
    """The log of the run whose model is kept: of several, the one inside that was."""
    folder = TaskFolder(out)
    kept = folder.state.get("kept") if folder.begun else None
    return list(RunFolder(out / str(kept) if kept else out).metrics())


def read_judgement(out: Path) -> Judgement | None:
    """What `write_judgement` wrote last; None: nothing."""
    if not (out / FILE).is_file():
        return None
    return _judgement(read_json(out / FILE))


def _judgement(found: dict[str, Any]) -> Judgement:
    metrics = {name: found[name] for name in found["intervals"]}
    intervals = {name: (pair[0], pair[1]) for name, pair in found["intervals"].items()}
    return Judgement(
        task=found["task"],
        n=found["n"],
        metrics=metrics,
        intervals=intervals,
        notes=tuple(found["notes"]),
        baselines=found.get("baselines", {}),
        verdict=found.get("verdict", ""),
        groups={
            by: {name: _judgement(each) for name, each in values.items()}
            for by, values in found.get("groups", {}).items()
        },
    )


def read_repeated(out: Path) -> Repeated:
    found = read_json(out / FILE) if (out / FILE).is_file() else {}
    points = [
        LearningPoint(
            point["size"],
            point["seed"],
            {name: point[name] for name in point["intervals"]},
            {name: (pair[0], pair[1]) for name, pair in point["intervals"].items()},
        )
        for point in found.get("learning", ())
    ]
    seeds = {name: spread(each["each"]) for name, each in found.get("seeds", {}).items()}
    return Repeated(
        seeds=seeds, learning=LearningCurve(tuple(points)) if points else None, facts=found.get("facts", {})
    )


def judged(
    made: Answering,
    examples: Examples,
    found: Predicted,
    baselines: Baselines | None = None,
    labels: tuple[str, ...] | None = None,
) -> tuple[Judgement, Evidence]:
    """How good the answers to labelled examples are, beside the baselines' answers to the same ones where these are
    given, and what a page tells beside the figures. `labels`: those of merged classes, in place of the model's own."""
    first, labels = first_of(made), made.config.labels if labels is None else labels
    gold, lengths = first.gold(examples), first.uncut(examples)
    judgement = judge(
        made.config.task,
        gold,
        found.answers,
        labels=labels,
        probabilities=found.of_classes,
        groups=found.groups,
    )
    judgement = replace(judgement, groups=grouped(examples, gold, found, labels))
    if baselines is not None and (baselines.each or baselines.notes):
        answers = {each.name: each.answers for each in baselines.each}
        judgement = compared(judgement, gold, found.answers, answers, labels=labels, groups=found.groups)
        judgement = replace(judgement, notes=(*judgement.notes, *baselines.notes))
    return judgement, _evidence(made, examples, lengths, found, gold, labels)


def _evidence(
    made: Answering, dev: Examples, lengths: list[int], found: Predicted, gold: list[Any], labels: tuple[str, ...]
) -> Evidence:
    shares = found.of_classes
    chances = None if shares is None else shares.max(axis=1).tolist()
    mistakes = worst_mistakes(made.config.task, dev, gold, found.answers, chances)
    facts = _facts(made.config)
    plain: dict[str, Any] = {"mistakes": mistakes, "lengths": lengths, "limit": _limit(made), "facts": facts}
    if made.config.task not in ("classify", "pair"):
        return Evidence(**plain)
    numbers = [labels.index(name) for name in gold]
    assert shares is not None
    return Evidence(
        confusion=confusion(gold, found.answers, labels),
        calibration=calibrated(shares, np.array(numbers)),
        **plain,
    )


def _limit(made: Answering) -> int:
    """Slots beyond which a row is cut; 0: it is read in windows."""
    config = made.config
    return 0 if config.rows.windows or config.task == "qa" else first_of(made).room


def _facts(config: TaskConfig) -> dict[str, Any]:
    training = config.training
    by_slot = {"tag": "every slot", "qa": "every slot", "seq2seq": "every token of a target"}
    read = by_slot.get(config.task, config.read.pool)
    found = {
        "model": config.model,
        "read": f"{read}, of a frozen encoder" if config.read.frozen else read,
        "rows": f"{config.rows.length} slots at most",
        "training": f"{config.epochs:.4g} epochs in batches of {training.batch}, rate {training.lr:g}, "
        f"seed {training.seed}",
    }
    if config.threshold is not None:
        found["no answer"] = f"where that scores better by more than {config.threshold:.4g}"
    return found


def _evaluated(made: Answering, dev: Examples) -> tuple[Predicted, float]:
    """Answers and loss, of several models their average."""
    each = [(one.config, one.evaluation_of(dev, _quiet)) for one in models_of(made)]
    runs = [(config, found.predicted) for config, found in each if found.predicted is not None]
    return averaged(runs), float(np.mean([found.loss for _, found in each]))


def _quiet(note: str) -> None:
    """It was told when the model was trained."""
