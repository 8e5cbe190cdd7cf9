"""The tables about learned sentence vectors, and what they say in sentences: reckoned, whatever the numbers are."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from benchmarks.report_finetune import each_seed, in_points
from benchmarks.report_vectors_words import AFTERS, FITTED, JOINS, SAYS, SIDES

Cells = list[list[str]]
Found = Mapping[str, Any]
FILE = "vectors_learning.json"
PARTS = {
    "vectors_simcse": "simcse",
    "vectors_simcse_said": "simcse",
    "vectors_supervised": "supervised",
    "vectors_supervised_said": "supervised",
    "vectors_sbert": "sbert",
    "vectors_sbert_said": "sbert",
    "vectors_whitening": "whitening",
    "vectors_flow": "whitening",
    "vectors_whitening_said": "whitening",
    "vectors_simbert": "simbert",
    "vectors_simbert_said": "simbert",
    "simbert_written": "simbert",
    "vectors_geometry": "geometry",
}
"""Which part of the result file a table is made of."""
SETS = ("STS-B", "ATEC", "BQ", "LCQMC", "PAWSX")
LIMIT = 1e-4
"""What a flow may lose there and back."""


def found(results: Path) -> dict[str, dict[str, Any]]:
    """By table; parts that were not measured are left out."""
    path = results / FILE
    if not path.is_file():
        return {}
    whole = json.loads(path.read_text(encoding="utf-8"))
    return {name: whole[part] | {"settings": whole["settings"]} for name, part in PARTS.items() if part in whole}


def _figure(figure: Found) -> str:
    """In points: the figure and its interval; of several seeds the mean, and each."""
    if len(figure.get("seeds", ())) > 1:
        return each_seed([100 * each for each in figure["seeds"]])
    low, high = figure["interval"]
    return f"{100 * figure['value']:.2f} [{100 * low:.2f}, {100 * high:.2f}]"


def simcse(found: Found, language: str) -> Cells:
    return [
        [
            row["set"],
            f"{row['n']:,}",
            *(_figure(row["before"][kind]) for kind in ("plain", "whitened")),
            *(_figure(row["after"][kind]) for kind in ("plain", "whitened")),
            *(in_points(row[which]) for which in ("learned", "learned_to_whitened")),
        ]
        for row in found["sets"]
    ]


def supervised(found: Found, language: str) -> Cells:
    return [
        [SIDES[language][side], *(_figure(figures[name]) for name in SETS)] for side, figures in found["sides"].items()
    ]


def sbert(found: Found, language: str) -> Cells:
    return [
        [
            JOINS.get(row["join"], SIDES[language]["before"]),
            _figure(row["judged"]),
            in_points(row["to_best"]),
            "" if row["published"] is None else f"{row['published']:.2f}",
        ]
        for row in found["joins"]
    ]


def _model(found: Found, which: str) -> str:
    return "all-MiniLM-L6-v2" if which == "minilm" else str(found["settings"]["model"])


def whitening(found: Found, language: str) -> Cells:
    cells = []
    for which, model in found["models"].items():
        first = f"{_model(found, which)}, {model['set']}"
        none = _figure(model["none"])
        cells.append([first, AFTERS[language]["none"], f"{model['width']}", none, "", none, ""])
        for row in model["afters"]:
            both = [text for at in ("asked", "train") for text in (_figure(row[at]), in_points(row[at]["to_none"]))]
            cells.append([first, AFTERS[language][row["after"]], f"{row['dimensions']}", *both])
    return cells


def flow(found: Found, language: str) -> Cells:
    return [
        [
            f"{_model(found, which)}, {model['set']}",
            FITTED[language][place],
            f"{facts['seen']:,} / {facts['held_out']:,}",
            f"{facts['before']:.3f}",
            f"{facts['fitted']:.3f}",
            f"{facts['error']:.1e}",
            f"{facts['largest']:.2f}",
        ]
        for which, model in found["models"].items()
        for place, facts in model["flow"].items()
    ]


def simbert(found: Found, language: str) -> Cells:
    return [
        [
            SIDES[language][side],
            f"{each['n']:,} / {each['documents']:,}",
            *(_figure(each[name]) for name in ("recall@1", "recall@10")),
        ]
        for side, each in found["search"].items()
    ]


def written(found: Found, language: str) -> Cells:
    nothing = SIDES[language]["nothing"]
    return [
        [
            (" ".join(each[key].split()) or nothing).replace("|", "\\|")
            for key in ("given", "partner", "likely", "drawn")
        ]
        for each in found["written"]
    ]


def geometry(found: Found, language: str) -> Cells:
    names = {"minilm": _model(found, "minilm")} | {side: SIDES[language][side] for side in ("before", "simcse")}
    return [
        [names[row["side"]], row["set"], *(_plain(row, name) for name in ("mean_cosine", "alignment", "uniformity"))]
        for row in found["sides"]
    ]


def _plain(row: Found, name: str) -> str:
    values = row[name]["seeds"]
    if len(values) > 1:
        return f"**{sum(values) / len(values):.3f}** ({' '.join(f'{each:.3f}' for each in values)})"
    low, high = row["intervals"][name][0]
    return f"{values[0]:.3f} [{low:.3f}, {high:.3f}]"


TABLES: dict[str, Callable[[dict[str, Any], str], Cells]] = {
    "vectors_simcse": simcse,
    "vectors_supervised": supervised,
    "vectors_sbert": sbert,
    "vectors_whitening": whitening,
    "vectors_flow": flow,
    "vectors_simbert": simbert,
    "simbert_written": written,
    "vectors_geometry": geometry,
}


def _told(language: str, what: str, differences: Mapping[str, Found], **more: str) -> list[str]:
    """A sentence each for what is surely better, surely worse, and neither: by whether 0 lies in the interval."""
    words = SAYS[language]
    bounds = {name: each["interval"] for name, each in differences.items()}
    groups = {
        "better": [name for name, (low, _) in bounds.items() if low > 0],
        "worse": [name for name, (_, high) in bounds.items() if high < 0],
        "equal": [name for name, (low, high) in bounds.items() if low <= 0 <= high],
    }
    comma = words["comma"]
    return [words[f"{what}_{how}"].format(names=comma.join(each), **more) for how, each in groups.items() if each]


def simcse_said(found: Found, language: str) -> str:
    words, pool = SAYS[language], found["pool"]
    said = [words["pool"].format(plain=pool["plain"], whitened=pool["whitened"], many=f"{found['fitted_on']:,}")]
    for what in ("learned", "learned_to_whitened", "whitened_before", "whitened_after"):
        said += _told(language, what, {row["set"]: row[what] for row in found["sets"]})
    return words["gap"].join(said)


def supervised_said(found: Found, language: str) -> str:
    words, sides = SAYS[language], SIDES[language]
    said = [words["supervised"].format(pairs=f"{found['pairs']:,}")]
    for which, differences in found["ahead"].items():
        one, other = which.split("/")
        said += _told(language, "side", differences, one=sides[one], other=sides[other])
    return words["gap"].join(said)


def sbert_said(found: Found, language: str) -> str:
    words = SAYS[language]
    rows = [row for row in found["joins"] if row["join"] in JOINS]
    best = max(rows, key=lambda row: row["judged"]["value"])
    seeds = len(best["judged"]["seeds"])
    said = [words["joins"].format(pairs=f"{found['pairs']:,}", seeds=seeds, best=JOINS[best["join"]])]
    said += _told(language, "join", {JOINS[row["join"]]: row["to_best"] for row in rows if row["to_best"] is not None})
    return words["gap"].join(said)


def whitening_said(found: Found, language: str) -> str:
    words, said = SAYS[language], []
    for which, model in found["models"].items():
        for place in ("asked", "train"):
            named = {
                f"{AFTERS[language][row['after']]} {row['dimensions']}".strip(): row[place]["to_none"]
                for row in model["afters"]
            }
            more = {"model": _model(found, which), "fitted": FITTED[language][place]}
            said += _told(language, "after", named, **more)
    facts = [each for model in found["models"].values() for each in model["flow"].values()]
    risen = sum(each["fitted"] < each["before"] for each in facts)
    error = max(each["error"] for each in facts)
    said.append(words["flow"].format(risen=risen, fits=len(facts), error=f"{error:.1e}"))
    said.append(words["inverted" if error <= LIMIT else "not_inverted"])
    return words["gap"].join(said)


def simbert_said(found: Found, language: str) -> str:
    """What was learned from, by file."""
    words = SAYS[language]
    listed = words["comma"].join(f"{name} {many:,}" for name, many in found["sources"].items())
    return words["simbert"].format(pairs=f"{found['pairs']:,}", listed=listed)


SAID: dict[str, Callable[[dict[str, Any], str], str]] = {
    "vectors_simcse_said": simcse_said,
    "vectors_supervised_said": supervised_said,
    "vectors_sbert_said": sbert_said,
    "vectors_whitening_said": whitening_said,
    "vectors_simbert_said": simbert_said,
}
"""Sentences instead of a table."""
