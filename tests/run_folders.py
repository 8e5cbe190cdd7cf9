"""Folders that look like runs, written by hand: pictures and summaries read nothing but these files."""

from __future__ import annotations

import json

from small_run import tiny_recipe


def line_of(step, loss=None, **more):
    """A line of metrics.jsonl; `more` writes slashes as two underscores."""
    loss = 6.0 - step / 50 if loss is None else loss
    given = {"step": step, "loss": loss, "loss/masked_token": loss, "lr": 1e-3, "tokens": 100 * step}
    return given | {"tokens_per_second": 50.0} | {key.replace("__", "/"): value for key, value in more.items()}


def run_folder(path, lines, recipe="bert", finished=True, **changes):
    """A run without weights; `changes` are of the recipe."""
    path.mkdir(parents=True)
    (path / "recipe.toml").write_text(tiny_recipe(recipe, **changes).toml(), encoding="utf-8")
    step = lines[-1]["step"] if lines else 0
    state = {"step": step, "tokens": 100 * step, "corpus": "c0ffee", "notes": [], "finished": finished}
    (path / "state.json").write_text(json.dumps(state), encoding="utf-8")
    (path / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path
