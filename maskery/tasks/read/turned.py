"""qa: whether context and question were given in the wrong order, where only their places tell which is which."""

from __future__ import annotations

from dataclasses import replace

from maskery.errors import InputError
from maskery.tasks.examples import Examples

_MARKS = ("?", "？", "؟")


def check_order(examples: Examples, where: str) -> Examples:
    """The same examples. Refused if most have a question where the context belongs; noted if most questions are longer
    than their contexts."""
    if examples.task != "qa":
        return examples
    pairs = [(each.texts[0].strip(), each.texts[1].strip()) for each in examples]
    longer = [len(question) > len(context) for context, question in pairs]
    turned = [
        long and context.endswith(_MARKS) and not question.endswith(_MARKS)
        for long, (context, question) in zip(longer, pairs, strict=True)
    ]
    order = " and ".join(examples.fields)
    if 2 * sum(turned) > len(pairs):
        raise InputError(
            f"{sum(turned):,} of {len(pairs):,} rows have the question first: the order is {order}",
            where=where,
            repair=f"give {order} in this order"
            + (", or name the columns in a first line" if where == "stdin" else ""),
        )
    if 2 * sum(longer) <= len(pairs):
        return examples
    note = f"warning: {sum(longer):,} of {len(pairs):,} questions are longer than their context: the order is {order}"
    return replace(examples, notes=(*examples.notes, note))
