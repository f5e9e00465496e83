"""Levels: how many ops ran at a time, and how many bytes they held. No TensorFlow in here."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence

import numpy as np

from tflab.memory import US
from tflab.records import OpRun, StepTime
from tflab.schedule import by_step

Level = tuple[np.ndarray, np.ndarray]  # times in ns, and the value from each of them on


def ops_at_once(runs: Sequence[OpRun]) -> Level:
    """How many of these runs there are at a time; one of no duration counts nowhere."""
    starts = np.fromiter((run.start_ns for run in runs), np.int64, len(runs))
    lasted = np.fromiter((run.duration_ns for run in runs), np.int64, len(runs))
    return level(np.concatenate([starts, starts + lasted]), np.repeat([1, -1], len(runs)))


def bytes_alive(runs: Iterable[OpRun], steps: Iterable[StepTime]) -> dict[str, Level]:
    """For each allocator, what its ops hold. What is left when a step ends is taken away there:
    fetched values go later, and nobody tells when."""
    ends = {step.step: step.start_ns + step.wall_ns for step in steps}
    found: dict[str, tuple[array, array]] = {}  # times and changes
    for step, own in by_step(runs).items():
        left: dict[str, int] = {}
        last = ends.get(step, 0)
        for time_us, size, allocator in (one for run in own for one in run.allocations):
            if allocator not in left:
                found.setdefault(allocator, (array("q"), array("q")))
                left[allocator] = 0
            moments, changes = found[allocator]
            moments.append(time_us * US)
            changes.append(size)
            left[allocator] += size
            last = max(last, time_us * US)
        for allocator, size in left.items():
            found[allocator][0].append(last)
            found[allocator][1].append(-size)
    return {
        allocator: level(np.frombuffer(moments, np.int64), np.frombuffer(changes, np.int64))
        for allocator, (moments, changes) in found.items()
    }


def level(moments: np.ndarray, changes: np.ndarray) -> Level:
    """What changes add up to, from each time on at which that is something else."""
    order = np.argsort(moments, kind="stable")
    moments, values = moments[order], np.cumsum(changes[order])
    last: np.ndarray = np.append(moments[1:] != moments[:-1], True)  # of those at one time
    moments, values = moments[last], values[last]
    differs: np.ndarray = np.append(True, values[1:] != values[:-1])
    return moments[differs], values[differs]
