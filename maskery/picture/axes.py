"""Axes that read well: round ticks, short numbers, times in minutes and hours."""

from __future__ import annotations

import math

_TIME_STEPS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400)


def ticks(low: float, high: float, count: int) -> list[float]:
    """Up to about `count` round numbers within [low, high]; at least one unless the range is empty."""
    if not (math.isfinite(low) and math.isfinite(high)) or high <= low:
        return [low] if math.isfinite(low) else []
    return _multiples(low, high, _round_step((high - low) / max(1, count)))


def time_ticks(low: float, high: float, count: int) -> list[float]:
    """The same for seconds: steps that are whole parts of a minute, an hour or a day."""
    wanted = (high - low) / max(1, count)
    if wanted < 1 or wanted > _TIME_STEPS[-1]:
        return ticks(low, high, count)
    return _multiples(low, high, next(step for step in _TIME_STEPS if step >= wanted))


def _round_step(wanted: float) -> float:
    power = 10.0 ** math.floor(math.log10(wanted))
    return next((part * power for part in (1, 2, 2.5, 5) if part * power >= wanted * 0.999), 10 * power)


def _multiples(low: float, high: float, step: float) -> list[float]:
    slack = 1e-9 * (high - low) / step
    first, last = math.ceil(low / step - slack), math.floor(high / step + slack)
    return [number * step for number in range(first, last + 1)]


def short_number(value: float) -> str:
    """1500 -> 1.5k, 2e6 -> 2M, 0.00031 -> 0.00031"""
    for size, mark in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:.4g}{mark}"
    return "0" if abs(value) < 1e-12 else f"{value:.4g}"


def short_time(seconds: float) -> str:
    """90 -> 1m 30s, 7200 -> 2h"""
    whole = round(seconds)
    if whole < 1:
        return f"{seconds:.2g}s" if seconds else "0"
    parts = ((whole // 86400, "d"), (whole // 3600 % 24, "h"), (whole // 60 % 60, "m"), (whole % 60, "s"))
    return " ".join([f"{number}{mark}" for number, mark in parts if number][:2])
