"""What a run says and keeps of the corpora it reads: their shares, how often each is walked through, whose they are."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from maskery.corpus.mixture import Corpora, Mixture
from maskery.errors import InputError, RecipeError
from maskery.feed import Feed


def facts(corpus: Corpora) -> dict[str, Any]:
    """For state.json: the fingerprint of all that is read, and each corpus with its weight."""
    parts = corpus.parts if isinstance(corpus, Mixture) else (corpus,)
    weights = (corpus.weights if isinstance(corpus, Mixture) else None) or (None,) * len(parts)
    entries = [
        {"path": str(part.path.resolve()), "fingerprint": part.fingerprint, "weight": weight}
        for part, weight in zip(parts, weights, strict=True)
    ]
    return {"corpus": corpus.fingerprint, "corpora": entries}


def require_same(state: dict[str, Any], corpus: Corpora, where: Path) -> None:
    """Resuming reads what the run was started on, in the same proportions."""
    if state["corpus"] == corpus.fingerprint:
        return
    then, now = state.get("corpora", []), facts(corpus)["corpora"]
    if max(len(then), len(now)) < 2:
        cause = (
            f"corpus: the run was started on fingerprint {state['corpus'][:12]}, "
            f"{corpus.path} has {corpus.fingerprint[:12]}"
        )
    else:
        same = sorted(each["fingerprint"] for each in then) == sorted(each["fingerprint"] for each in now)
        what = "the weights or the order of --corpus" if same else "--corpus"
        cause = f"{what}: the run has {_flags(then, not same)}; asked is {_flags(now, not same)}"
    raise RecipeError(cause, where=where, repair="resume with the corpus it was started on")


def _flags(entries: list[dict[str, Any]], fingerprints: bool) -> str:
    """As a command line gives them, in the order that counts."""
    said = []
    for each in entries:
        weight = "" if each["weight"] is None else f"={each['weight']}"
        said.append(each["path"] + weight + f" ({each['fingerprint'][:12]})" * fingerprints)
    return ", ".join(said)


def tell(feed: Feed) -> list[str]:
    """Asked shares, rows, and how often the run walks through each corpus; nothing for one corpus."""
    if not isinstance(feed.corpus, Mixture):
        return []
    walked = np.zeros(len(feed.parts))
    for phase in feed.phases:
        read = (phase.stop - phase.first) * phase.batch * feed.shares(phase)
        walked += read / np.diff(feed.plan(phase).part_start)
    shares, rows = feed.shares(feed.phases[0]), np.diff(feed.plan(feed.phases[0]).part_start)
    how = "by size" if feed.corpus.weights is None else "by weight"
    return [
        f"corpus {name}: {100 * share:.2f} % of the rows ({how}); {many:,} rows of its own, "
        f"walked through {times:.2f} times in this run"
        for name, share, many, times in zip(feed.corpus.names, shares, rows.tolist(), walked, strict=True)
    ]


def rows_read(feed: Feed, step: int, before: dict[str, int]) -> dict[str, int]:
    """How many rows of each corpus were read, `step` (counted from 0) included; nothing for one corpus."""
    if not isinstance(feed.corpus, Mixture):
        return {}
    phase, _, numbers = feed.numbers(step)
    owner, _ = feed.corpus_of(phase, numbers)
    many = np.bincount(owner, minlength=len(feed.parts)).tolist()
    return {name: before.get(name, 0) + more for name, more in zip(feed.corpus.names, many, strict=True)}


def heldout_of(feed: Feed) -> tuple[Feed | None, list[str]]:
    """The part set aside, without the corpora that have none; or None where it cannot make rows of this kind, which is
    no reason not to train. What is left out is told."""
    corpus, told = feed.corpus, []
    if not len(corpus.documents("heldout")):
        return None, ["nothing is held out in this corpus: no evaluation"]
    if isinstance(corpus, Mixture):
        bare = [
            name for name, part in zip(corpus.names, corpus.parts, strict=True) if not len(part.documents("heldout"))
        ]
        corpus = corpus.holding("heldout") or corpus
        told = [f"nothing is held out in {name}: it takes no part in evaluation" for name in bare]
    heldout = replace(feed, split="heldout", corpus=corpus)
    try:
        for phase in heldout.phases:
            heldout.plan(phase)
    except InputError as error:
        return None, [*told, f"no evaluation: {error.cause} (corpus build --heldout sets more aside)"]
    return heldout, told
