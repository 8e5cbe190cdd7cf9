"""Ctrl-C and SIGTERM: the first asks for a stop after the current update, the second stops at once."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType


@dataclass
class StopRequest:
    signal_number: int = 0
    """0 while nobody asked."""


@contextmanager
def stop_requests(several: bool = False) -> Iterator[StopRequest]:
    """Catch the signals inside the block; outside the main thread signals cannot be caught and nothing happens.

    `several`: this is one of several ranks, whose launcher ends all as soon as one has ended.
    """
    request = StopRequest()
    if threading.current_thread() is not threading.main_thread():
        yield request
        return

    def note(number: int, _frame: FrameType | None) -> None:
        if request.signal_number:
            raise KeyboardInterrupt
        request.signal_number = number

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield request
    except BaseException:
        if several:
            end_in_peace()
            del before[signal.SIGTERM]
        raise
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def end_in_peace() -> None:
    """From here to its end this rank is deaf to its launcher's SIGTERM, which would cut off what it has to tell."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
