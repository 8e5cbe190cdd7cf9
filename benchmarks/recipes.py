"""Every recipe at equal cost, and four questions about pairs: `maskery compare` over two presets at once.

    python -m benchmarks.recipes --corpus DIR --synonyms FILE --out DIR [--tokens 2000000] [--seeds 0]

Each recipe is trained at mini on the same number of tokens of one corpus, alike in everything that is not the recipe,
and examined on the same held-out rows under the same masks; every model is asked next sentence and sentence order.
Stopped at any moment, the same command goes on. ERNIE reads phrases and entities where the corpus has them marked;
MacBERT needs --synonyms and is left out, which is told, without.

Written: benchmarks/results/recipes.json and the tables of docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import torch

from benchmarks import report
from maskery.cli.compare import watch_of
from maskery.cli.variants import parse_seeds
from maskery.compare.ask import Examination
from maskery.compare.plan import Length, Plan, plan
from maskery.compare.report import facts
from maskery.compare.result import comparison
from maskery.compare.run import MARKDOWN, compare
from maskery.compare.variants import COMMON_TRAINING, PRESETS
from maskery.corpus.store import Corpus
from maskery.errors import MaskeryError
from maskery.train import machine

SIZE, COMMON, ROWS = "mini", "roberta", 1024


def made_plan(
    corpus: Corpus, tokens: int, seed: int, settings: dict[str, Any], size: str = SIZE
) -> tuple[Plan, Examination]:
    """Both sets in one comparison: what is trained alike in both is trained once."""
    shared = {**COMMON_TRAINING, **settings}
    recipes, questions = (PRESETS[name].variants(shared) for name in ("recipes", "questions"))
    optional = frozenset(each.label for each in recipes)
    made = plan([*recipes, *questions], corpus, Length(tokens), size, settings, seed, optional)
    return made, Examination.of(COMMON, corpus, ROWS, PRESETS["questions"].questions, settings)


def without_places(found: dict[str, Any]) -> dict[str, Any]:
    """The result without the folders of the machine it was measured on."""
    for variant in found["variants"]:
        variant["runs"] = [{key: run[key] for key in ("seed", "tokens")} for run in variant["runs"]]
        variant["changes"] = {key: value for key, value in variant["changes"].items() if "synonyms" not in key}
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument("--synonyms", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--tokens", type=int, default=2_000_000)
    parser.add_argument("--seeds", default="0")
    parser.add_argument("--json", type=Path, default=report.RESULTS / "recipes.json")
    options = parser.parse_args()
    machine.prepare()
    settings = {} if options.synonyms is None else {"knowledge.synonyms": str(options.synonyms)}
    try:
        corpus, seeds = Corpus.open(options.corpus), parse_seeds(options.seeds)
        corpus.verify()
        made, examination = made_plan(corpus, options.tokens, seeds[0], settings)
        for line in facts(comparison(made, seeds, examination, {}, done=False)):
            print(line, file=sys.stderr)
        found = compare(made, seeds, options.out, examination, watch_of(made, seeds))
    except MaskeryError as error:
        print(error.text(), file=sys.stderr)
        return error.exit_code
    facts_of_machine = machine.facts(torch.device("cpu"), 1, [])
    options.json.write_text(json.dumps({"machine": facts_of_machine, **without_places(found)}, indent=2) + "\n")
    print((options.out / MARKDOWN).read_text(encoding="utf-8"))
    if options.json == report.RESULTS / "recipes.json":
        report.main()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
