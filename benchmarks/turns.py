"""Turns: alternatives run in turn, so that disturbances of the machine affect all of them.

Ratios are computed for each round before the median is taken, because a slow minute affects both
sides of a ratio. A spread is the minimum and the maximum of all rounds.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from statistics import median
from typing import TypeVar

from tflab import units

Result = TypeVar("Result")


def take(works: Mapping[str, Callable[[], Result]], rounds: int) -> dict[str, list[Result]]:
    """The results of each work in each round. Every other round has the reverse order."""
    results: dict[str, list[Result]] = {name: [] for name in works}
    for index in range(rounds):
        for name in reversed(works) if index % 2 else works:
            results[name].append(works[name]())
    return results


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def ratio(times: Sequence[float], base: Sequence[float]) -> str:
    """The time relative to the base, as `1.05 (1.02 to 1.11)`: median, minimum and maximum."""
    return spread([now / then for now, then in zip(times, base, strict=True)], units.three_digits)


def duration(times: Sequence[float]) -> str:
    """Seconds as `3.02 s (2.98 s to 3.20 s)`."""
    return spread(times, lambda seconds: units.time(1e9 * seconds))


def spread(values: Sequence[float], say: Callable[[float], str]) -> str:
    middle = say(median(values))
    return f"{middle} ({say(min(values))} to {say(max(values))})" if len(values) > 1 else middle
