"""The command line: `maskery VERB`, one file per verb."""

from __future__ import annotations

from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    from maskery.cli.app import run
    from maskery.cli.streams import read_utf8

    if arguments is None:
        read_utf8()
    return run(arguments)
