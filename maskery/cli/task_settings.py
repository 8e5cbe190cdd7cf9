"""Keys of task.toml from a command line: named flags over `--set table.key=value`; a value that is wrong is told."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from maskery.errors import InputError, UnknownName
from maskery.tasks.finetune import made_config
from maskery.tasks.keys import WHOLE, known_keys
from maskery.tasks.settings import TaskConfig
from maskery.train.options import flat, nested

FLAGS = {
    "epochs": "--epochs",
    "patience": "--patience",
    "training.batch": "--batch",
    "training.lr": "--lr",
    "training.seed": "--seed",
    "rows.length": "--length",
    "rows.truncate": "--truncate",
    "rows.windows": "--windows",
    "rows.towers": "--towers",
    "read.pool": "--pool",
    "read.frozen": "--freeze",
    "head.crf": "--crf",
    "columns.text": "--text",
    "columns.label": "--label",
    "columns.meta": "--meta",
    "columns.map": "--map",
    "columns.header": "--header",
    "columns.format": "--format",
    "columns.errors": "--errors",
}
_EVERY_EPOCH = "the development set is asked after every epoch, and the newest state is kept"
SETTLED = {
    "task": "--task TASK",
    "model": "maskery finetune MODEL, before the options",
    "labels": "labels are those of the train file; get_labels of a --processor gives them an order",
    "meta": "--meta A,B",
    "fused": "--truncate fuse",
    "columns.places": "--text 2, or --text 2,3",
    "training.steps": "--epochs N",
    "training.length": "--length N",
    "training.keep": _EVERY_EPOCH,
    "training.eval_every": _EVERY_EPOCH,
    "training.eval_rows": _EVERY_EPOCH,
}
"""Keys that --set does not settle, and what does."""


def keys_of(settings: Mapping[str, Any], flags: Mapping[str, Any]) -> dict[str, Any]:
    """--set and named flags as dotted keys; unknown ones, and those that are settled otherwise, are refused."""
    known, given = known_keys(), flat(settings, whole=WHOLE)
    for key in given:
        top = key if key in SETTLED else key.partition(".")[0]
        if top in SETTLED:
            raise InputError(f"--set {key} has no effect: it is settled otherwise", repair=SETTLED[top])
        if key not in known and key != "threshold":
            open_keys = [each for each in known if not {each, each.partition(".")[0]} & SETTLED.keys()]
            raise UnknownName("key of task.toml", key, open_keys)
    return given | {key: value for key, value in flags.items() if value is not None}


def checked(keys: Mapping[str, Any]) -> TaskConfig:
    """A task of the given keys, so that a value that does not fit is told before anything is read."""
    try:
        return made_config({"task": "classify", **nested(keys)})
    except InputError as error:
        key = str(error.where)
        known = next((flag for name, flag in FLAGS.items() if key == name or key.startswith(f"{name}.")), None)
        if known is None:
            raise
        repair = f"another value; maskery finetune --help tells of {known}"
        raise InputError(error.cause, where=known, repair=repair) from None
