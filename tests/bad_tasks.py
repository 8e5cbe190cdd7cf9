"""What both bad-input tests of fine-tuning use: a small model, good files, and one refusal told on two ways."""

from __future__ import annotations

import pytest
from networks import model_of

import maskery
from maskery.cli import main
from maskery.errors import InputError

GOOD = "".join(f"{'animal' if n % 2 else 'thing'}\t{'abcdefgh'[n % 8]} b {'ijklmno'[n % 7]} cat\n" for n in range(12))


def prepared(folder):
    model_of(pooler=True, layers=1).save(folder / "model")
    for name in ("train.tsv", "dev.tsv"):
        (folder / name).write_text(GOOD, encoding="utf-8")


def refused(capsys, *parts, model="model", out="run", flags=(), settings=None, **sources):
    """The command line and the Python call refuse alike: cause, place and repair, exit code 2, nothing written."""
    named = [text for name, value in sources.items() for text in (f"--{name}", str(value))]
    capsys.readouterr()
    assert main(["finetune", model, *named, *flags, "--out", out]) == 2
    output = capsys.readouterr()
    told = output.err
    assert output.out == ""
    assert "Traceback" not in told
    assert "repair: " in told
    with pytest.raises(InputError) as caught:
        maskery.finetune(model, out=out, settings=settings, say=lambda _: None, **sources)
    assert caught.value.repair
    for part in parts:
        assert part in told
        assert part in str(caught.value)
