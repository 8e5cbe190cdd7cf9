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
def stop_requests() -> Iterator[StopRequest]:
    """Catch the signals inside the block; outside the main thread signals cannot be caught and nothing happens."""
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
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
