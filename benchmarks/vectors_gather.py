"""Cells of `benchmarks.vectors_learning` put beside each other: means over seeds, and differences with their intervals.

An interval is 95 % of resampled pairs. Every side was asked of the same draws, so that of a difference is over the same
pairs for both; where there are several seeds it is of their mean. It does not cover the chance of training: for that
every seed is told by itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks.vectors_cells import LOSSES, MODELS, POOLS, UNTRAINED
from benchmarks.vectors_data import SETS
from maskery.inspection.bootstrap import interval
from maskery.vectors.learn.settings import JOINS

Cells = Mapping[str, Mapping[str, Any]]
"""By name."""
Figure = dict[str, Any]
KINDS = ("plain", "whitened")
BEST = "uv_difference"
"""What SBERT's authors take."""
PUBLISHED = {
    "uv": 66.04,
    "difference": 69.78,
    "product": 70.54,
    "difference_product": 78.37,
    "uv_product": 77.44,
    "uv_difference": 80.78,
    "uv_difference_product": 80.44,
}
"""Reimers and Gurevych 2019: BERT-base on SNLI and MNLI, Spearman on the English STS-B's development set."""


def mean_of(judged: Sequence[Mapping[str, Any]]) -> Figure:
    """The mean over seeds; one is itself."""
    values = [each["value"] for each in judged]
    drawn = np.mean([each["resamples"] for each in judged], axis=0)
    bounds = judged[0]["interval"] if len(judged) == 1 else interval(drawn)
    return {"value": float(np.mean(values)), "interval": list(bounds), "seeds": values, "n": judged[0]["n"]} | {
        "resamples": drawn
    }


def ahead(one: Figure, other: Figure) -> Figure:
    drawn = np.asarray(one["resamples"]) - np.asarray(other["resamples"])
    return {"value": one["value"] - other["value"], "interval": list(interval(drawn))}


def _short(figure: Figure) -> Figure:
    return {name: value for name, value in figure.items() if name != "resamples"}


def _seeds(cells: Cells, *begin: str) -> list[Mapping[str, Any]]:
    """The cells whose name is this and a number, in the order of the numbers."""
    front = "-".join((*begin, ""))
    found = {name.removeprefix(front): cell for name, cell in cells.items() if name.startswith(front)}
    return [found[number] for number in sorted(filter(str.isdecimal, found), key=int)]


def _figures(cells: Sequence[Mapping[str, Any]], kind: str) -> dict[str, Figure]:
    return {name: mean_of([cell[kind][name] for cell in cells]) for name in cells[0][kind]}


def _before(cells: Cells, kind: str) -> tuple[str, dict[str, Figure]] | None:
    """The better pooling of the model as it is, by the mean over all sets, and what it gives."""
    found = {pool: _figures([cells[f"simcse-{pool}"]], kind) for pool in POOLS if f"simcse-{pool}" in cells}
    if len(found) < len(POOLS):
        return None
    best = max(found, key=lambda pool: float(np.mean([each["value"] for each in found[pool].values()])))
    return best, found[best]


def simcse(cells: Cells) -> dict[str, Any] | None:
    seeds, before = _seeds(cells, "simcse"), {kind: _before(cells, kind) for kind in KINDS}
    if not seeds or any(each is None for each in before.values()):
        return None
    after = {kind: _figures(seeds, kind) for kind in KINDS}
    known = {kind: each for kind, each in before.items() if each is not None}
    rows = []
    for name in SETS:
        was = {kind: figures[name] for kind, (_, figures) in known.items()}
        now = {kind: after[kind][name] for kind in KINDS}
        rows.append(
            {
                "set": name,
                "n": was["plain"]["n"],
                "before": {kind: _short(each) for kind, each in was.items()},
                "after": {kind: _short(each) for kind, each in now.items()},
                "learned": ahead(now["plain"], was["plain"]),
                "learned_to_whitened": ahead(now["plain"], was["whitened"]),
                "whitened_before": ahead(was["whitened"], was["plain"]),
                "whitened_after": ahead(now["whitened"], now["plain"]),
                "poolings": {
                    pool: {kind: _short(mean_of([cells[f"simcse-{pool}"][kind][name]])) for kind in KINDS}
                    for pool in POOLS
                },
            }
        )
    return {"pool": {kind: pool for kind, (pool, _) in known.items()}, "fitted_on": seeds[0]["fitted_on"], "sets": rows}


def supervised(cells: Cells) -> dict[str, Any] | None:
    before = _before(cells, "plain")
    sides = {} if before is None else {"before": before[1]}
    groups = {"simcse": _seeds(cells, "simcse")} | {loss: _seeds(cells, "supervised", loss) for loss in LOSSES}
    if not groups["cosent"]:
        return None
    sides |= {name: _figures(group, "plain") for name, group in groups.items() if group}
    compared = (("cosent", "before"), ("cosent", "cosine"), ("simcse_cosent", "cosent"), ("cosent", "simcse"))
    return {
        "pairs": groups["cosent"][0]["pairs"],
        "sides": {side: {name: _short(each) for name, each in figures.items()} for side, figures in sides.items()},
        "ahead": {
            f"{one}/{other}": {name: ahead(sides[one][name], sides[other][name]) for name in SETS}
            for one, other in compared
            if one in sides and other in sides
        },
    }


def sbert(cells: Cells) -> dict[str, Any] | None:
    groups = {join: _seeds(cells, "sbert", join) for join in (UNTRAINED, *JOINS)}
    found = {join: _figures(group, "plain")["STS-B"] for join, group in groups.items() if group}
    if not any(join in found for join in JOINS):
        return None
    rows = [
        {
            "join": join,
            "judged": _short(figure),
            "to_best": ahead(figure, found[BEST]) if BEST in found and join != BEST else None,
            "published": PUBLISHED.get(join),
        }
        for join, figure in found.items()
    ]
    return {"pairs": max(cell["pairs"] for group in groups.values() for cell in group), "joins": rows}


def whitening(cells: Cells) -> dict[str, Any] | None:
    models = {which: cells[f"whitening-{which}"] for which in MODELS if f"whitening-{which}" in cells}
    return {"models": {which: _afters(cell) for which, cell in models.items()}} if models else None


def _afters(cell: Mapping[str, Any]) -> dict[str, Any]:
    places = ("asked", "train")
    rows = []
    for after in cell["asked"]["afters"]:
        name, _, size = after.partition("-")
        row: dict[str, Any] = {"after": name, "dimensions": int(size or cell["width"])}
        for place in places:
            figure = cell[place]["afters"][after]
            row[place] = _short(figure) | {"to_none": ahead(figure, cell["none"])}
        rows.append(row)
    facts = {place: cell[place]["flow"] | {"fitted_on": cell[place]["fitted_on"]} for place in places}
    return {"set": cell["set"], "width": cell["width"], "none": _short(cell["none"]), "afters": rows, "flow": facts}


def simbert(cells: Cells) -> dict[str, Any] | None:
    if "simbert" not in cells:
        return None
    return {name: cells["simbert"][name] for name in ("search", "written", "sources", "notes", "pairs")}


FIGURES = ("mean_cosine", "alignment", "uniformity")


def geometry(cells: Cells) -> dict[str, Any] | None:
    sides = {"before": [cells[f"geometry-{UNTRAINED}"]] if f"geometry-{UNTRAINED}" in cells else []}
    sides |= {"simcse": _seeds(cells, "geometry")}
    sides |= {"minilm": [cells["geometry-minilm"]] if "geometry-minilm" in cells else []}
    rows = [
        {
            "side": side,
            "set": group[0]["set"],
            "n": group[0]["n"],
            **{name: {"seeds": [cell[name] for cell in group]} for name in FIGURES},
            "intervals": {name: [cell["intervals"][name] for cell in group] for name in FIGURES},
        }
        for side, group in sides.items()
        if group
    ]
    return {"sides": rows} if rows else None


GATHER = {
    "simcse": simcse,
    "supervised": supervised,
    "sbert": sbert,
    "whitening": whitening,
    "simbert": simbert,
    "geometry": geometry,
}


def gathered(cells: Cells) -> dict[str, Any]:
    """Part by part; one of which too little was measured is left out."""
    found = {part: gather(cells) for part, gather in GATHER.items()}
    return {part: each for part, each in found.items() if each is not None}
