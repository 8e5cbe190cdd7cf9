"""A comparison in words and tables: for the terminal, and as `comparison.md`."""

from __future__ import annotations

from typing import Any

from maskery.compare.variants import PUBLISHED

Table = tuple[list[str], list[list[str]]]
"""Heads and rows."""
_UNEVEN = 0.05


def facts(found: dict[str, Any]) -> list[str]:
    """What was held equal, one sentence each, and what a reader has to know."""
    equal, variants = found["equal"], found["variants"]
    size, asked = equal["size"], equal["examination"]
    training = ", ".join(f"{key.partition('.')[2]} {_plain(value)}" for key, value in equal["training"].items())
    told = [
        f"equal for all: corpus {equal['corpus'][:12]}, tokenizer {equal['tokenizer'][:12]} "
        f"({equal['vocabulary']:,} pieces), {size['layers']} layers of width {size['width']}, "
        f"seeds {', '.join(map(str, equal['seeds']))}",
        f"equal for all: {equal['tokens']:,} tokens{_per_step(found)}",
        f"equal for all: training with {training}",
        f"examination: {asked['rows']:,} held-out rows at most, cut and corrupted as {asked['rows_and_corruption_of']} "
        "does; intervals are 95 % of resampled rows and do not cover the chance of training",
    ]
    told += [
        f"{question}: whoever always gives the commonest answer is right in {100 * share:.2f} % of the pairs"
        for question, share in asked["commonest"].items()
    ]
    first = variants[0]["label"]
    twins = [each for each in variants if each["same_as"]]
    told += [f"{each['label']} is trained as {each['same_as']} is: one run for both" for each in twins]
    told += [f"left out: {label}: {why}" for label, why in found["left_out"].items()]
    told += _warnings(found)
    if any(each["masked"] for each in variants):
        masked = next(each["masked"] for each in variants if each["masked"])
        told.append(f"asked for {masked['answers']:,} tokens in {masked['rows']:,} rows")
        if variants[0]["masked"]:
            found_none = "where the interval holds 0, no difference was found"
            told.append(f"differences are to {first}, on the same rows; {found_none}")
    return told


def _warnings(found: dict[str, Any]) -> list[str]:
    """Where a comparison cannot show what it seems to."""
    variants, told = found["variants"], []
    fresh = [each for each in variants if each["masks"] is not None and each["visits"] <= each["masks"]]
    if fresh and len({each["masks"] for each in variants}) > 1:
        names = ", ".join(f"{each['label']} ({each['visits']:.2f} visits)" for each in fresh)
        told.append(
            f"warning: no mask comes back in {names}: rows are read too seldom, and these are trained as if masks were "
            "always new; give more tokens, or a smaller corpus"
        )
    read = {each["label"]: each["steps"] * each["batch"] * each["slots_per_row"] for each in variants}
    shares = {label: tokens / found["equal"]["tokens"] for label, tokens in read.items()}
    uneven = [f"{label} ({share:.2f})" for label, share in shares.items() if abs(share - 1) > _UNEVEN]
    if uneven:
        told.append(f"warning: whole steps do not come near the tokens in {', '.join(uneven)}; give more tokens")
    return told


def _per_step(found: dict[str, Any]) -> str:
    own = any("training.batch" in each["changes"] for each in found["variants"])
    per_step = f"{found['equal']['tokens_per_step']:,.0f} in a step"
    return "" if own else f", {per_step} (the number of rows in a step makes up for their length)"


def masked_table(found: dict[str, Any]) -> Table:
    first = found["variants"][0]["label"]
    several = len(found["equal"]["seeds"]) > 1
    heads = [
        "variant",
        "batch",
        "steps",
        "tokens",
        "visits",
        "accuracy %",
        f"to {first}",
        "loss",
        "own masks %",
    ]
    rows = []
    for each in found["variants"]:
        masked = each["masked"]
        tokens = [run["tokens"] for run in each["runs"]]
        cells = [each["label"], f"{each['batch']:,}", f"{each['steps']:,}"]
        cells += [f"{sum(tokens) / len(tokens):,.0f}" if tokens else "", f"{each['visits']:.2f}"]
        if masked is None:
            cells += ["not asked" if each["runs"] else "not yet", "", ""]
        else:
            apart = "" if each["label"] == first else _difference(masked)
            cells += [_share(masked), apart, f"{masked['loss']:.3f}"]
        cells.append("" if each["own_accuracy"] is None else f"{100 * each['own_accuracy']:.2f}")
        rows.append(cells + ([_seeds(masked)] if several else []))
    return heads + (["by seed"] if several else []), rows


def question_table(found: dict[str, Any]) -> Table | None:
    """What each model answers about pairs, beside published figures for models trained with the same question."""
    questions = found["equal"]["examination"]["questions"]
    if not questions:
        return None
    rows = []
    for each in found["variants"]:
        published = PUBLISHED.get(tuple(each["trained_with"]), {})
        cells = [each["label"], ", ".join(each["trained_with"]) or "none"]
        for question in questions:
            asked = each["questions"].get(question)
            head = "" if asked is None else f" ({asked['head']} head)"
            cells.append(("not asked" if each["runs"] else "not yet") if asked is None else _share(asked) + head)
        cells.append(" / ".join(f"{published[name]:.1f}" if name in published else "-" for name in questions))
        rows.append(cells)
    return ["variant", "trained with", *questions, "published"], rows


def markdown(found: dict[str, Any]) -> str:
    """The page of a comparison."""
    parts = ["# Comparison" + ("" if found["finished"] else " (not finished)")]
    parts.append("\n".join(f"- {line}" for line in facts(found)))
    parts.append(as_markdown(masked_table(found)))
    questions = question_table(found)
    if questions is not None:
        parts += ["## Questions about pairs, accuracy %", PUBLISHED_NOTE, as_markdown(questions)]
    return "\n\n".join(parts) + "\n"


PUBLISHED_NOTE = (
    "Published: Lan et al. 2019, table 5, for far larger models trained with the same question. A model without the "
    "head has a linear one, fitted on its [CLS] states."
)


def as_markdown(table: Table) -> str:
    heads, rows = table
    return "\n".join(f"| {' | '.join(line)} |" for line in [heads, ["---"] * len(heads), *rows])


def _share(asked: dict[str, Any]) -> str:
    low, high = asked["interval"]
    return f"{100 * asked['accuracy']:.2f} [{100 * low:.2f}, {100 * high:.2f}]"


def _difference(asked: dict[str, Any]) -> str:
    if asked["difference"] is None:
        return "-"
    low, high = asked["difference_interval"]
    return f"{100 * asked['difference']:+.2f} [{100 * low:+.2f}, {100 * high:+.2f}]"


def _seeds(asked: dict[str, Any] | None) -> str:
    return "" if asked is None else ", ".join(f"{100 * each:.2f}" for each in asked["by_seed"])


def _plain(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
