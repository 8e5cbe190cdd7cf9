"""What a run did, in numbers; and several runs beside each other."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from maskery.arguments import checked
from maskery.explain.curves import curves
from maskery.explain.history import History, Source, histories
from maskery.explain.series import Column, smoothed, window
from maskery.language import phrases
from maskery.picture import Picture, report, table
from maskery.picture.axes import short_time
from maskery.recipes.recipe import diff

_BARS = "▁▂▃▄▅▆▇█"


def summary(run: History) -> dict[str, Any]:
    """The run as JSON: what it was to do, how far it came, what it reached."""
    state, recipe = run.folder.state, run.folder.recipe
    last = run.lines[-1] if run.lines else {}
    model = recipe.model
    return {
        "name": run.name,
        "recipe": recipe.name,
        "size": {"layers": model.layers, "width": model.width, "heads": model.heads},
        "finished": bool(state.get("finished")),
        "steps": {"done": last.get("step", 0), "of": recipe.training.steps},
        "tokens": last.get("tokens", 0),
        "seconds": float(run.seconds[-1]) if run.lines else 0.0,
        "tokens_per_second": _speed(run),
        "loss": {name: _finite(value) for name, value in last.items() if name.split("/")[0] == "loss"},
        "evaluation": _evaluation(run),
        "checkpoints": [step for step, _ in run.folder.checkpoints()],
        "machine": state.get("machine"),
        "corpus": state.get("corpus"),
        "from": state.get("from"),
        "notes": list(state.get("notes") or []),
    }


def _speed(run: History) -> float | None:
    """Tokens a second of a usual update: the median, which a pause does not touch."""
    speeds = run.values("tokens_per_second")
    speeds = speeds[np.isfinite(speeds)]
    return float(np.median(speeds)) if len(speeds) else None


def _evaluation(run: History) -> dict[str, Any] | None:
    """The last held-out metrics, and where loss and accuracy were best."""
    places = run.places("eval/loss")
    if not len(places):
        return None
    last = run.lines[int(places[-1])]
    named = {name.removeprefix("eval/"): _finite(value) for name, value in last.items() if name.startswith("eval/")}
    best = {"loss": _best(run, "eval/loss", np.nanargmin), "accuracy": _best(run, "eval/accuracy", np.nanargmax)}
    return {"step": last["step"], "last": named, "best": {name: each for name, each in best.items() if each}}


def _best(run: History, metric: str, choose: Callable[[Column], Any]) -> dict[str, Any] | None:
    values = run.values(metric)
    if not np.isfinite(values).any():
        return None
    place = int(choose(np.where(np.isfinite(values), values, np.nan)))
    return {"step": run.lines[int(run.places(metric)[place])]["step"], "value": float(values[place])}


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def sparkline(run: History, metric: str = "loss", width: int = 40) -> str:
    """The smoothed metric as a line of bars, the lowest value the lowest bar; a gap where it was not a number."""
    values = run.values(metric)
    values = smoothed(values, window(len(values)))
    if not np.isfinite(values).any():
        return ""
    means = []
    for part in np.array_split(values, min(width, len(values))):
        fine = part[np.isfinite(part)]
        means.append(float(fine.mean()) if len(fine) else math.nan)
    low, high = np.nanmin(means), np.nanmax(means)
    top = len(_BARS) - 1
    return "".join(
        " " if math.isnan(mean) else _BARS[round((mean - low) / (high - low) * top) if high > low else 0]
        for mean in means
    )


def differences(runs: Sequence[History]) -> dict[str, list[Any]]:
    """The keys of the recipe's tables in which the runs differ, with the value of each run; None has no such key."""
    recipes = [run.folder.recipe for run in runs]
    apart = [diff(recipes[0], other) for other in recipes]
    found = {}
    for key in dict.fromkeys(key for changed in apart for key in changed if "." in key):
        changed = [each.get(key) for each in apart]
        first = next(pair[0] for pair in changed if pair is not None)
        found[key] = [first if pair is None else pair[1] for pair in changed]
    return found


COLUMNS: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "recipe": lambda run: str(run["recipe"]),
    "layers x width": lambda run: f"{run['size']['layers']} x {run['size']['width']}",
    "steps": lambda run: (
        f"{run['steps']['done']:,} of {run['steps']['of']:,}" + " (unfinished)" * (not run["finished"])
    ),
    "tokens": lambda run: f"{run['tokens']:,}",
    "time in updates": lambda run: short_time(run["seconds"]),
    "tokens a second": lambda run: "" if run["tokens_per_second"] is None else f"{run['tokens_per_second']:,.0f}",
    "last loss": lambda run: _number(run["loss"].get("loss")),
    "best held-out loss": lambda run: _best_text(run, "loss"),
    "best held-out accuracy": lambda run: _best_text(run, "accuracy"),
}
"""What a table of runs shows, on a terminal and on a page."""


def value_text(value: Any) -> str:
    """The value of a key: text as it is, the rest as JSON, which is how recipes write it."""
    if value is None or isinstance(value, str):
        return "none" if value is None else value
    return json.dumps(value, ensure_ascii=False)


def _number(value: float | None) -> str:
    return "not a number" if value is None else f"{value:.4f}"


def _best_text(run: Mapping[str, Any], metric: str) -> str:
    best = (run["evaluation"] or {"best": {}})["best"].get(metric)
    if best is None:
        return "none"
    value = f"{100 * best['value']:.2f} %" if metric == "accuracy" else f"{best['value']:.4f}"
    return f"{value} at step {best['step']:,}"


@checked
def comparison(runs: Source | Sequence[Source], x: str = "steps", lang: str = "en") -> Picture:
    """One page: a table, the curves in one picture, and the keys in which the recipes differ."""
    found = histories(runs)
    facts = [summary(run) for run in found]
    heads = ("", *(run.name for run in found))
    words = phrases(lang)
    lines = [(words.name(name), *(words.line(column(each)) for each in facts)) for name, column in COLUMNS.items()]
    sections: list[Any] = [("", [table(heads, lines)], curves(runs, x=x, lang=lang))]
    apart = differences(found)
    if apart:
        sections.append(
            (
                words.phrase("What differs in the recipes"),
                [table(heads, [(key, *map(value_text, values)) for key, values in apart.items()])],
                None,
            )
        )
    elif len(found) > 1:
        same = words.phrase("Nothing: the recipes are the same.")
        sections.append((words.phrase("What differs in the recipes"), [same], None))
    names = ", ".join(run.name for run in found)
    title = words.phrase("Run {names}") if len(found) == 1 else words.phrase("Runs {names}")
    return report(title.format(names=names), sections, lang)
