"""A comparison in words and tables: for the terminal, and as `comparison.md`."""

from __future__ import annotations

from typing import Any

from maskery.compare.ask import NEXT
from maskery.compare.variants import PUBLISHED
from maskery.language import ENGLISH, Phrases

Table = tuple[list[str], list[list[str]]]
"""Heads and rows."""
_UNEVEN = 0.05


def facts(found: dict[str, Any], words: Phrases = ENGLISH) -> list[str]:
    """What was held equal, one sentence each, and what a reader has to know."""
    equal, variants = found["equal"], found["variants"]
    size, asked = equal["size"], equal["examination"]
    training = ", ".join(f"{key.partition('.')[2]} {_plain(value)}" for key, value in equal["training"].items())
    told = [
        words.phrase(
            "equal for all: corpus {corpus}, tokenizer {tokenizer} ({pieces} pieces), {layers} layers of width "
            "{width}, seeds {seeds}"
        ).format(
            corpus=equal["corpus"][:12],
            tokenizer=equal["tokenizer"][:12],
            pieces=f"{equal['vocabulary']:,}",
            layers=size["layers"],
            width=size["width"],
            seeds=", ".join(map(str, equal["seeds"])),
        ),
        words.phrase("equal for all: {tokens} tokens").format(tokens=f"{equal['tokens']:,}") + _per_step(found, words),
        words.phrase("equal for all: training with {training}").format(training=training),
        _examination(asked, words),
    ]
    told += [
        words.phrase("{question}: whoever always gives the commonest answer is right in {share} % of the pairs").format(
            question=question, share=f"{100 * share:.2f}"
        )
        for question, share in asked["commonest"].items()
    ]
    twins = [each for each in variants if each["same_as"]]
    twin = words.phrase("{label} is trained as {other} is: one run for both")
    told += [twin.format(label=each["label"], other=each["same_as"]) for each in twins]
    told += [
        words.phrase("left out: {label}: {why}").format(label=label, why=why)
        for label, why in found["left_out"].items()
    ]
    return told + _warnings(found, words) + _asked(found, words)


def _examination(asked: dict[str, Any], words: Phrases) -> str:
    rows = f"{asked['rows']:,}"
    sure = words.phrase("intervals are 95 % of resampled rows and do not cover the chance of training")
    if asked["asked_for"] == NEXT:
        told = words.phrase("evaluation: up to {rows} held-out rows of running text, asked for the next token; {sure}")
        return told.format(rows=rows, sure=sure)
    told = words.phrase("evaluation: up to {rows} held-out rows, cut and corrupted as {recipe} does; {sure}")
    return told.format(rows=rows, recipe=asked["rows_and_corruption_of"], sure=sure)


def _asked(found: dict[str, Any], words: Phrases) -> list[str]:
    """How much was asked, and how to read the differences."""
    variants, key = found["variants"], main_key(found)
    some = next((each[key] for each in variants if each[key]), None)
    if some is None:
        return []
    told = [
        words.phrase("asked for {answers} tokens in {rows} rows").format(
            answers=f"{some['answers']:,}", rows=f"{some['rows']:,}"
        )
    ]
    if variants[0][key]:
        differences = (
            "differences are to {first}, on the same rows; where the interval holds 0, no difference was found"
        )
        told.append(words.phrase(differences).format(first=variants[0]["label"]))
    return told


def main_key(found: dict[str, Any]) -> str:
    """Where a variant has its answers to the main question."""
    return "next" if found["equal"]["examination"]["asked_for"] == NEXT else "masked"


def verdict(found: dict[str, Any], words: Phrases = ENGLISH) -> str:
    """Which variant is ahead, with the interval, or that none is; "" until two have answered."""
    given = found["verdict"]
    if given is None:
        return ""
    scale, unit = (1.0, words.phrase("nats of loss")) if given["metric"] == "loss" else (100.0, words.phrase("points"))
    low, high = (f"{scale * bound:+.3g}" for bound in given["interval"])
    values = {"best": given["best"], "second": given["second"], "unit": unit, "low": low, "high": high}
    values["apart"] = f"{scale * given['difference']:.3g}"
    if given["ahead"] is None:
        text = "No variant is ahead: {best} and {second} are {apart} {unit} apart (95 % interval {low} to {high})."
    else:
        text = "{best} is ahead, by {apart} {unit} of {second}, the second best (95 % interval {low} to {high})."
    seeds = {"ahead": given["seeds_ahead"], "seeds": given["seeds"]}
    one = words.phrase("One seed: another might turn it round (--seeds 0,1,2).")
    many = words.phrase("{best} is the better one in {ahead} of {seeds} seeds.").format(best=given["best"], **seeds)
    return words.phrase(text).format(**values) + words.phrase(" ") + (one if given["seeds"] == 1 else many)


def _warnings(found: dict[str, Any], words: Phrases) -> list[str]:
    """Where a comparison cannot show what it seems to."""
    variants, told = found["variants"], []
    fresh = [each for each in variants if each["masks"] is not None and each["visits"] <= each["masks"]]
    if fresh and len({each["masks"] for each in variants}) > 1:
        visits = words.phrase("{label} ({visits} visits)")
        names = ", ".join(visits.format(label=each["label"], visits=f"{each['visits']:.2f}") for each in fresh)
        told.append(
            words.phrase(
                "warning: no mask comes back in {names}: rows are read too seldom, and these are trained as if masks "
                "were always new; give more tokens, or a smaller corpus"
            ).format(names=names)
        )
    read = {each["label"]: each["steps"] * each["batch"] * each["slots_per_row"] for each in variants}
    shares = {label: tokens / found["equal"]["tokens"] for label, tokens in read.items()}
    uneven = [f"{label} ({share:.2f})" for label, share in shares.items() if abs(share - 1) > _UNEVEN]
    if uneven:
        text = words.phrase("warning: whole steps do not come near the tokens in {names}; give more tokens")
        told.append(text.format(names=", ".join(uneven)))
    return told


def _per_step(found: dict[str, Any], words: Phrases) -> str:
    if any("training.batch" in each["changes"] for each in found["variants"]):
        return ""
    per_step = f"{found['equal']['tokens_per_step']:,.0f}"
    return words.phrase(", {n} in a step (the number of rows in a step makes up for their length)").format(n=per_step)


def main_table(found: dict[str, Any], words: Phrases = ENGLISH) -> Table:
    """What each variant answers to the main question."""
    key, first = main_key(found), found["variants"][0]["label"]
    several = len(found["equal"]["seeds"]) > 1
    shown = _masked_cells if key == "masked" else _next_cells
    heads = ["variant", "batch", "steps", "tokens", "visits"]
    heads += ["accuracy %", "to {first}", "loss", "own masks %"] if key == "masked" else _NEXT_HEADS
    rows = []
    for each in found["variants"]:
        tokens = [run["tokens"] for run in each["runs"]]
        cells = [each["label"], f"{each['batch']:,}", f"{each['steps']:,}"]
        cells += [f"{sum(tokens) / len(tokens):,.0f}" if tokens else "", f"{each['visits']:.2f}"]
        if each[key] is None:
            cells += [words.phrase("not asked") if each["runs"] else words.phrase("not yet"), "", ""]
            cells += [""] * (key == "next")
        else:
            cells += shown(each[key], each["label"] == first)
        if key == "masked":
            cells.append("" if each["own_accuracy"] is None else f"{100 * each['own_accuracy']:.2f}")
        rows.append(cells + ([_seeds(each[key])] if several else []))
    named = [words.name(head).format(first=first) for head in heads]
    return named + ([words.phrase("accuracy by seed")] if several else []), rows


_NEXT_HEADS = ["loss", "to {first}", "perplexity", "accuracy %"]


def _masked_cells(asked: dict[str, Any], first: bool) -> list[str]:
    return [_share(asked), "" if first else _difference(asked), f"{asked['loss']:.3f}"]


def _next_cells(asked: dict[str, Any], first: bool) -> list[str]:
    low, high = asked["loss_interval"]
    apart = ""
    if not first and asked["loss_difference"] is not None:
        least, most = asked["loss_difference_interval"]
        apart = f"{asked['loss_difference']:+.3f} [{least:+.3f}, {most:+.3f}]"
    return [f"{asked['loss']:.3f} [{low:.3f}, {high:.3f}]", apart, f"{asked['perplexity']:,.1f}", _share(asked)]


def question_table(found: dict[str, Any], words: Phrases = ENGLISH) -> Table | None:
    """What each model answers about pairs, beside published figures for models trained with the same question."""
    questions = found["equal"]["examination"]["questions"]
    if not questions:
        return None
    rows = []
    for each in found["variants"]:
        published = PUBLISHED.get(tuple(each["trained_with"]), {})
        cells = [each["label"], ", ".join(each["trained_with"]) or words.phrase("none")]
        for question in questions:
            asked = each["questions"].get(question)
            missing = words.phrase("not asked") if each["runs"] else words.phrase("not yet")
            head = "" if asked is None else words.name(f" ({asked['head']} head)")
            cells.append(missing if asked is None else _share(asked) + head)
        cells.append(" / ".join(f"{published[name]:.1f}" if name in published else "-" for name in questions))
        rows.append(cells)
    return [words.phrase("variant"), words.phrase("trained with"), *questions, words.phrase("published")], rows


def title(found: dict[str, Any], words: Phrases = ENGLISH) -> str:
    return words.phrase("Comparison") + ("" if found["finished"] else words.phrase(" (not finished)"))


def markdown(found: dict[str, Any], words: Phrases = ENGLISH) -> str:
    """The page of a comparison."""
    parts = [f"# {title(found, words)}", verdict(found, words)]
    parts.append("\n".join(f"- {line}" for line in facts(found, words)))
    parts.append(as_markdown(main_table(found, words)))
    questions = question_table(found, words)
    if questions is not None:
        heading = words.phrase("Questions about pairs, accuracy %")
        parts += [f"## {heading}", words.phrase(PUBLISHED_NOTE), as_markdown(questions)]
    return "\n\n".join(filter(None, parts)) + "\n"


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
