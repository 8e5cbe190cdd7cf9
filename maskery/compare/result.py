"""What a comparison found, as plain values: what was equal, and each variant's figures with their intervals.

    equal      corpus, tokenizer, size, tokens of a step and in all, seeds, training, examination
    variants   label, recipe, changes, same_as, batch, steps, lr, masks (of a static row; null where they are always
               new), slots_per_row, plan_rows, visits, trained_with, runs; and where something was asked: masked
               {accuracy, interval, loss, answers, rows, by_seed, head, difference, difference_interval},
               own_accuracy (under its own corruption), questions {NAME: the same}
               In place of masked, next where models read in order: the same for the next token, and perplexity,
               loss_interval, loss_difference, loss_difference_interval
    verdict    metric, best, second, difference, interval, seeds_ahead (of how many the best is ahead), ahead (the best,
               if the interval of the difference leaves out 0; else null); null until two variants have answered
    left_out   label -> why
    finished   whether every run is done

A difference is to the first variant, over the same resampled rows; null where that was not asked. Several seeds are
taken together.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from maskery.compare.ask import MASKED, NEXT, Answers, Examination
from maskery.compare.plan import Contestant, Plan
from maskery.compare.variants import COMMON_TRAINING
from maskery.inspection.bootstrap import Numbers, interval, resampled
from maskery.inspection.statistics import Interval, wilson
from maskery.objectives.config import PAIR_OF


@dataclass(frozen=True)
class Asked:
    """What one run gave."""

    answers: dict[str, Answers]
    last: Mapping[str, Any]
    """The last line of its metrics."""
    path: str


@dataclass(frozen=True)
class _Share:
    """Right answers of one variant, all seeds together, and the same in resampled rows."""

    plain: dict[str, Any]
    resampled: Numbers
    losses: Numbers
    """The loss in the same resampled rows."""
    loss_by_seed: list[float]


def comparison(
    plan: Plan,
    seeds: Sequence[int],
    examination: Examination,
    asked: Mapping[tuple[str, int], Asked],
    done: bool,
) -> dict[str, Any]:
    first: dict[str, _Share] = {}
    shares: dict[str, _Share] = {}
    variants = [_variant(each, seeds, asked, first, plan.contestants[0], shares) for each in plan.contestants]
    return {
        "equal": _equal(plan, seeds, examination),
        "variants": variants,
        "verdict": _verdict(shares, examination.main),
        "left_out": plan.left_out,
        "finished": done,
    }


def _equal(plan: Plan, seeds: Sequence[int], examination: Examination) -> dict[str, Any]:
    corpus, model = examination.corpus, plan.contestants[0].recipe.model
    common = examination.common if examination.main == MASKED else examination.running()
    training = plan.contestants[0].recipe.plain()["training"]
    own = {"training.batch"} | {key for each in plan.contestants for key in each.variant.changes}
    return {
        "corpus": corpus.fingerprint,
        "tokenizer": corpus.tokenizer.fingerprint,
        "vocabulary": corpus.vocabulary,
        "size": {"layers": model.layers, "width": model.width, "heads": model.heads},
        "tokens": round(plan.tokens),
        "tokens_per_step": round(plan.tokens_per_step, 1),
        "seeds": list(seeds),
        "training": {key: training[key.partition(".")[2]] for key in COMMON_TRAINING if key not in own},
        "examination": {
            "asked_for": examination.main,
            "rows_and_corruption_of": common.name,
            "length": common.training.length,
            "rows": examination.rows,
            "questions": list(examination.questions),
            "commonest": examination.commonest,
        },
    }


def _variant(
    each: Contestant,
    seeds: Sequence[int],
    asked: Mapping[tuple[str, int], Asked],
    first: dict[str, _Share],
    reference: Contestant,
    shares: dict[str, _Share],
) -> dict[str, Any]:
    """`first` is what the reference answered; it comes before all others. `shares` takes what each own variant
    answered to the main question."""
    label, corruption = each.same_as or each.label, each.recipe.corruption
    runs = {seed: asked[label, seed] for seed in seeds if (label, seed) in asked}
    found: dict[str, Any] = {
        "label": each.label,
        "recipe": each.variant.recipe,
        "changes": dict(each.variant.changes),
        "same_as": each.same_as,
        "batch": each.recipe.training.batch,
        "steps": each.recipe.training.steps,
        "lr": each.recipe.training.lr,
        "masks": corruption.masks if corruption.when == "static" else None,
        "slots_per_row": round(each.slots, 2),
        "plan_rows": each.rows,
        "visits": each.visits,
        "trained_with": [name for name in each.recipe.objectives if name in PAIR_OF],
        "runs": [{"seed": seed, "path": run.path, "tokens": run.last.get("tokens", 0)} for seed, run in runs.items()],
        "masked": None,
        "next": None,
        "own_accuracy": None,
        "questions": {},
    }
    for question in dict.fromkeys(name for run in runs.values() for name in run.answers):
        share = _share([run.answers[question] for run in runs.values() if question in run.answers])
        if each is reference:
            first[question] = share
        plain = share.plain | _difference(share, first.get(question))
        if question in (MASKED, NEXT):
            found["masked" if question == MASKED else "next"] = plain
            if each.same_as is None:
                shares[each.label] = share
        else:
            found["questions"][question] = plain
    own = [run.last[key] for run in runs.values() if (key := f"eval/{MASKED}/accuracy") in run.last]
    found["own_accuracy"] = float(np.mean(own)) if own else None
    return found


def _share(answers: Sequence[Answers]) -> _Share:
    hits = np.sum([each.hits for each in answers], axis=0)
    asked = np.sum([each.asked for each in answers], axis=0)
    loss = float(sum(each.loss.sum() for each in answers))
    lost = np.sum([each.loss for each in answers], axis=0)
    shares, losses = resampled(hits, asked), resampled(lost, asked)
    plain = {
        "accuracy": float(hits.sum() / max(1.0, asked.sum())),
        "interval": list(_interval(hits, asked, shares)),
        "loss": (mean := loss / max(1.0, float(asked.sum()))),
        "loss_interval": list(interval(losses)),
        "perplexity": math.exp(min(mean, 700.0)),
        "answers": int(answers[0].asked.sum()),
        "rows": len(hits),
        "by_seed": [float(each.hits.sum() / max(1.0, each.asked.sum())) for each in answers],
        "head": answers[0].head,
    }
    each_loss = [float(each.loss.sum() / max(1.0, each.asked.sum())) for each in answers]
    return _Share(plain, shares, losses, each_loss)


def _interval(hits: Numbers, asked: Numbers, shares: Numbers) -> Interval:
    """Where no answer is right, or all are, every resample says the same: there Wilson's, with a draw for each row."""
    share = hits.sum() / max(1.0, asked.sum())
    return wilson(share, int((asked > 0).sum())) if share in (0.0, 1.0) else interval(shares)


def _difference(share: _Share, first: _Share | None) -> dict[str, Any]:
    if first is None:
        names = ("difference", "difference_interval", "loss_difference", "loss_difference_interval")
        return dict.fromkeys(names)
    return {
        "difference": share.plain["accuracy"] - first.plain["accuracy"],
        "difference_interval": list(interval(share.resampled - first.resampled)),
        "loss_difference": share.plain["loss"] - first.plain["loss"],
        "loss_difference_interval": list(interval(share.losses - first.losses)),
    }


def _verdict(shares: Mapping[str, _Share], main: str) -> dict[str, Any] | None:
    """The best against the second: masked tokens by accuracy, the next token by loss. The difference is positive."""
    if len(shares) < 2:
        return None
    by_loss = main == NEXT
    metric, sign = ("loss", -1.0) if by_loss else ("accuracy", 1.0)
    best, second = sorted(shares, key=lambda label: -sign * shares[label].plain[metric])[:2]
    ours, theirs = shares[best], shares[second]
    apart = sign * ((ours.losses - theirs.losses) if by_loss else (ours.resampled - theirs.resampled))
    low, high = interval(apart)
    each = [(a.loss_by_seed if by_loss else a.plain["by_seed"]) for a in (ours, theirs)]
    pairs = list(zip(*each, strict=False))
    return {
        "metric": metric,
        "best": best,
        "second": second,
        "difference": sign * (ours.plain[metric] - theirs.plain[metric]),
        "interval": [low, high],
        "seeds": len(pairs),
        "seeds_ahead": sum(sign * (a - b) > 0 for a, b in pairs),
        "ahead": best if low > 0 else None,
    }
