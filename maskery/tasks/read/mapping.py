"""Label maps: other names for the labels of a file, such as neutral -> non-entailment, kept with the run.

A map is applied once to every label (no chains). How many labels were mapped, and which sources never occurred, is
reported.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import replace

from maskery.errors import InputError
from maskery.tasks.examples import Example, Examples
from maskery.tasks.read.labels import names_of
from maskery.tasks.read.values import counted

NAMED = ("classify", "pair", "multilabel", "tag")
"""Tasks whose labels are names."""
_FORM = "--map LABEL=OTHER"
_SHOWN = 12


def parsed(given: Collection[str]) -> dict[str, str]:
    """["neutral=non-entailment"] -> {"neutral": "non-entailment"}"""
    found: dict[str, str] = {}
    for each in given:
        source, equals, target = (part.strip() for part in each.partition("="))
        if not equals or not source or not target:
            raise InputError(f"--map {each!r} is not LABEL=OTHER", repair="--map neutral=non-entailment")
        if found.get(source, target) != target:
            raise InputError(
                f"--map gives {source!r} two targets: {found[source]}, {target}", repair="keep one of them"
            )
        found[source] = target
    return found


def joined(kept: Mapping[str, str], given: Mapping[str, str]) -> dict[str, str]:
    """The map of a run with another one after it: what is given wins over what the run kept for the same label."""
    return {source: given.get(target, target) for source, target in kept.items()} | dict(given)


def require_names(task: str, to: Mapping[str, str]) -> None:
    if to and task not in NAMED:
        raise InputError(
            f"{_FORM} maps names of classes, and {task} has none",
            repair=f"leave out --map; it is for {', '.join(NAMED)}",
        )


def mapped(examples: Examples, to: Mapping[str, str], known: Collection[str] = ()) -> Examples:
    """The examples with their labels mapped. `known`: labels of a model, which need not occur in the file."""
    if not to:
        return examples
    require_names(examples.task, to)
    counts = Counter(name for each in examples for name in names_of(each))
    items = tuple(_with_names(each, to) for each in examples)
    labels = tuple(dict.fromkeys(to.get(name, name) for name in examples.labels))
    notes = (*examples.notes, *_notes(counts, to, known))
    return replace(examples, items=items, labels=labels, notes=notes)


def _with_names(example: Example, to: Mapping[str, str]) -> Example:
    if example.spans is not None:
        return replace(example, spans=tuple(replace(each, kind=to.get(each.kind, each.kind)) for each in example.spans))
    if isinstance(example.label, frozenset):
        return replace(example, label=frozenset(to.get(name, name) for name in example.label))
    if isinstance(example.label, str):
        return replace(example, label=to.get(example.label, example.label))
    return example


def _notes(counts: Counter[str], to: Mapping[str, str], known: Collection[str]) -> list[str]:
    if not counts:
        return []  # a file without labels
    told = [
        f"label map: {source} -> {target} ({counted(counts[source], 'labels')})"
        for source, target in to.items()
        if counts[source]
    ]
    absent = [source for source in to if not counts[source] and source not in known]
    if absent:
        there = ", ".join(list(counts)[:_SHOWN]) + (" ..." if len(counts) > _SHOWN else "")
        told.append(f"label map: {', '.join(map(repr, absent))} never occurs; the labels are {there}")
    after: Counter[str] = Counter()
    for name, count in counts.items():
        after[to.get(name, name)] += count
    if told and any(counts[source] for source in to):
        shown = ", ".join(f"{name} x {count:,}" for name, count in after.most_common(_SHOWN))
        told.append(f"label map: {counted(len(after), 'labels')} after it: {shown}")
    return told
