"""Runs of `finetune` and `vectors train`, for `info` and `doctor`: what was trained from which model, and how well."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from maskery.language import Phrases

if TYPE_CHECKING:
    from maskery.picture import Picture

TASK, VECTORS = "fine-tuning", "vector training"
_SHOWN = 12
"""Labels that are printed; the others are counted."""


def kind_of(path: Path) -> str | None:
    """Which of the two wrote the folder; None: neither."""
    from maskery.tasks.model import TASK_FILE
    from maskery.tasks.plan import FILE as PLAN
    from maskery.train.folder import STATE

    if (path / TASK_FILE).is_file() or (path / PLAN).is_file():
        return TASK
    is_run = (path / STATE).is_file() and not (path / "recipe.toml").is_file()
    return VECTORS if is_run and _loss(path) else None


def _loss(path: Path) -> bool:
    from maskery.tasks.folder import TaskFolder

    task = TaskFolder(path).state.get("task")
    return isinstance(task, dict) and "loss" in task


def parts_of(path: Path) -> list[Path]:
    """The runs inside a folder of several (seeds, learning rates, ends of texts)."""
    from maskery.train.folder import STATE

    return sorted(each.parent for each in path.glob(f"*/{STATE}"))


def facts_of(path: Path) -> dict[str, Any]:
    """What the files of the run say, as JSON."""
    from maskery.tasks.folder import TaskFolder
    from maskery.tasks.model import TASK_FILE, read_task

    folder = TaskFolder(path)
    state = folder.state if folder.begun else {}
    if kind_of(path) == VECTORS or not (path / TASK_FILE).is_file():
        task: dict[str, Any] = state.get("task") or {}
    else:
        task = read_task(path).model_dump(mode="json")
    lines = [line for line in folder.run.metrics() if "step" in line] if folder.run.metrics_file.is_file() else []
    training = task.get("training", {})
    return {
        "kind": kind_of(path),
        "task": task.get("task") or task.get("loss"),
        "base": task.get("model") or state.get("model"),
        "labels": list(task.get("labels") or []),
        "examples": state.get("examples"),
        "steps": {"done": state.get("step", 0), "of": training.get("steps")},
        "finished": bool(state.get("finished")),
        "best": state.get("best"),
        "evaluation": _evaluation(path),
        "loss": lines[-1].get("loss") if lines else None,
        "runs": [each.name for each in parts_of(path)],
        "kept": state.get("kept"),
        "settings": _settings(task),
        "machine": state.get("machine"),
    }


def _settings(task: dict[str, Any]) -> dict[str, Any]:
    """Those that a reader would want to repeat or to change."""
    training, rows, read = (task.get(name) or {} for name in ("training", "rows", "read"))
    chosen = {
        "epochs": task.get("epochs"),
        "lr": training.get("lr"),
        "batch_size": training.get("batch"),
        "max_length": rows.get("length") or task.get("length"),
        "pool": read.get("pool") or ", ".join(task.get("pool") or ()),
        "optimizer": training.get("optimizer"),
        "seed": training.get("seed"),
    }
    return {name: value for name, value in chosen.items() if value not in (None, "")}


def _evaluation(path: Path) -> dict[str, Any] | None:
    """The metrics that decide, with their intervals, and the number of examples."""
    from maskery.checkpoint.tensors import read_json
    from maskery.tasks.judge.measure import HEADLINES

    file = path / "evaluation.json"
    if not file.is_file():
        return None
    found = read_json(file)
    names = HEADLINES.get(found.get("task", ""), ())
    intervals = found.get("intervals") or {}
    metrics = {name: {"value": found[name], "interval": intervals.get(name)} for name in names if name in found}
    return {"examples": found.get("n"), "metrics": metrics}


def lines_of(facts: dict[str, Any]) -> list[tuple[str, str]]:
    """Name and value of each line."""
    steps, total = facts["steps"], facts["steps"]["of"]
    state = "finished" if facts["finished"] else "not finished (going on, or waiting for --resume)"
    lines = [("task" if facts["kind"] == TASK else "loss", str(facts["task"] or "not known"))]
    lines += [("base model", str(facts["base"]))] if facts["base"] else []
    if facts["labels"]:
        labels = facts["labels"]
        more = f" and {len(labels) - _SHOWN} more" if len(labels) > _SHOWN else ""
        lines.append(("labels", f"{len(labels)}: {', '.join(labels[:_SHOWN])}{more}"))
    if facts["examples"]:
        lines.append(("training rows", f"{facts['examples']:,}"))
    lines.append(("steps", f"{steps['done']:,} of {total:,}, {state}" if total else state))
    lines.append(("score", score(facts)))
    if facts["loss"] is not None:
        lines.append(("last loss", f"{facts['loss']:.4f}"))
    if facts["runs"]:
        kept = f"; kept: {facts['kept']}" if facts["kept"] else ""
        lines.append(("runs inside", ", ".join(facts["runs"]) + kept))
    told = ", ".join(f"{name} {value}" for name, value in facts["settings"].items())
    return lines + ([("settings", told)] if told else [])


def score(facts: dict[str, Any]) -> str:
    found, best = facts["evaluation"], facts["best"]
    if found is not None and found["metrics"]:
        told = []
        for name, each in found["metrics"].items():
            low_high = each["interval"]
            between = f" ({low_high[0]:.4f} to {low_high[1]:.4f})" if low_high else ""
            told.append(f"{name} {each['value']:.4f}{between}")
        return f"{', '.join(told)}, of {found['examples']:,} development rows"
    if best is not None and isinstance(best.get("value"), float):
        return f"{best['value']:.4f} at step {best['step']:,}"
    return "not measured: no development set"


def page_of(path: Path, lang: str = "en") -> Picture:
    """The lines as a table, and the curves of what was logged."""
    from maskery.explain.curves import curves
    from maskery.explain.history import histories, is_trained
    from maskery.picture import report, table

    said = Phrases(lang)
    told = [(said.name(name), said.line(value)) for name, value in lines_of(facts_of(path))]
    lines = table(("", path.name), told, words=(1,))
    logged = [each for each in (path, *parts_of(path)) if is_trained(each)]
    runs = [run for run in (histories([*logged]) if logged else ()) if run.lines]
    names = sorted({name for run in runs for name in run.metrics if name == "loss" or name.startswith("eval/")})
    drawn = curves([run.folder.path for run in runs], metrics=names, lang=lang) if names else None
    return report(f"{said.name(kind_of(path) or '')}: {path.name}", [("", [lines], drawn)], lang)


def check(path: Path, found: Callable[[str], None]) -> dict[str, Any]:
    """Open everything that the run wrote; what is wrong is handed to `found`, one part after the other."""
    from maskery.checkpoint.locate import CONFIG, verify
    from maskery.checkpoint.tensors import read_safetensors, require_finite
    from maskery.tasks.folder import BEST, WEIGHTS, TaskFolder

    facts = facts_of(path)
    for _, place in TaskFolder(path).checkpoints():
        _tried(lambda place=place: verify(place), found)  # type: ignore[misc]
        for name in (WEIGHTS, BEST):
            if (place / name).is_file():
                file = place / name
                _tried(lambda file=file: require_finite(read_safetensors(file), file), found)  # type: ignore[misc]
    if facts["finished"] or (path / CONFIG).is_file():
        _tried(lambda: verify(path), found)
        _tried(lambda: _opened(path), found)
    for part in parts_of(path):
        _tried(lambda part=part: check(part, found), found)  # type: ignore[misc]
    told = {"task": facts["task"], "checkpoints": len(TaskFolder(path).checkpoints())}
    told |= {"runs": len(facts["runs"])} if facts["runs"] else {}
    return told | {"finished": "yes" if facts["finished"] else "no", "score": score(facts)}


def _opened(path: Path) -> object:
    if kind_of(path) == VECTORS:
        from maskery.vectors.folder import read_encoder

        return read_encoder(path)
    from maskery.tasks.together import opened

    return opened(path)


def _tried(part: Callable[[], object], found: Callable[[str], None]) -> None:
    from maskery.errors import MaskeryError

    try:
        part()
    except MaskeryError as error:
        found(error.text())
    except OSError as error:
        found(f"cannot be read: {error.strerror or error}: {error.filename}")
