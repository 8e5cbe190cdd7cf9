"""The labels of a task, in the order of their numbers, and the refusal of those that training never showed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from maskery.tasks.examples import Example, Examples
from maskery.tasks.read.looks import is_number

_SHOWN = 12
_UNKNOWN = (
    "leave out such lines, say where the labels stand (--label COLUMN), or give labels and classes of the model common "
    "names (--map LABEL=OTHER)"
)


def labels_of(train: Examples, task: str) -> tuple[str, ...]:
    """As a processor orders them; else numbers by their value, and names by their characters.

    tag: the kinds of spans. choice: the numbers of the choices. regress, rank, qa, seq2seq have none.
    """
    if not len(train):
        raise Example(guid="train", texts=()).wrong(
            "there is no example to learn from", "put examples in the train file"
        )
    if task in ("regress", "rank"):
        _require_several({item.label for item in train}, train, "score")
        return ()
    if task in ("qa", "seq2seq"):
        return ()
    if task == "choice":
        return tuple(str(number) for number in range(max(len(item.choices) for item in train)))
    found = {name for item in train for name in names_of(item)}
    if task in ("classify", "pair"):
        _require_several(found, train, "label")
    if not found:
        what = "span is marked" if task == "tag" else "label is given"
        raise train[0].wrong(f"no {what} in the train file", "check the column of the labels: --label COLUMN")
    if train.labels:
        require_known(train, train.labels)
    return train.labels or ordered(found)


def ordered(names: Iterable[str]) -> tuple[str, ...]:
    found = list(names)
    if all(is_number(name) for name in found):
        return tuple(sorted(found, key=lambda name: (float(name), name)))
    return tuple(sorted(found))


def require_known(examples: Examples, labels: Sequence[str], learned: bool = False) -> None:
    """Every label of the examples is one of these. `learned`: a model knows them, and it is too late for others."""
    if examples.task in ("regress", "rank", "qa", "seq2seq"):
        return
    known = set(labels)
    strange: Counter[str] = Counter()
    first: Example | None = None
    for item in examples:
        unknown = [name for name in names_of(item) if name not in known]
        first = first or (item if unknown else None)
        strange.update(unknown)
    if first is None:
        return
    name = next(name for name in names_of(first) if name not in known)
    shown = ", ".join(labels[:_SHOWN]) + (" ..." if len(labels) > _SHOWN else "")
    cause = f"the label {name!r} is not one of those {'that the model knows' if learned else 'to learn'} ({shown})"
    if strange.total() > 1:
        cause += f"; {strange.total():,} labels are not, of {len(strange):,} kinds"
    fix = "get_labels has to name it" if examples.labels else "put examples of it in the train file, or leave these out"
    raise first.wrong(cause, _UNKNOWN if learned else fix)


def known_only(examples: Examples, labels: Sequence[str]) -> Examples:
    """The examples of a test set; those with another label than these have none, and are counted in a note."""
    if examples.task in ("regress", "rank", "qa", "seq2seq"):
        return examples
    known = set(labels)
    strange = [name for item in examples for name in names_of(item) if name not in known]
    if not strange:
        return examples
    items = tuple(
        item if known.issuperset(names_of(item)) else replace(item, label=None, spans=None) for item in examples
    )
    many = sum(one is not other for one, other in zip(items, examples, strict=True))
    shown = ", ".join(repr(name) for name in list(dict.fromkeys(strange))[:_SHOWN])
    note = f"test: {many:,} of {len(items):,} rows have a label that is not one of those to learn ({shown})"
    return replace(examples, items=items, notes=(*examples.notes, f"{note}: they are taken as unlabelled"))


def names_of(item: Example) -> Iterable[str]:
    """All names of classes or kinds that an example bears."""
    if item.spans is not None:
        return [span.kind for span in item.spans]
    if isinstance(item.label, frozenset):
        return sorted(item.label)
    return [item.label] if isinstance(item.label, str) else []


def _require_several(found: Collection[object], train: Examples, what: str) -> None:
    if len(found) > 1:
        return
    only = next(iter(found), None)
    cause = f"all {len(train):,} examples have the {what} {only!r}: there is nothing to learn"
    fix = "--label says which column it is; or put examples of other kinds in the train file"
    raise train[0].wrong(cause, fix)
