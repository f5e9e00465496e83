"""Levels: how many ops ran at a time, and how many bytes they held. No TensorFlow in here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from tflab.analysis.memory import US
from tflab.analysis.timeline import by_step, column, times
from tflab.records import OpRun, StepTime

Level = tuple[np.ndarray, np.ndarray]  # times in ns, and the value from each of them on


def ops_at_once(runs: Sequence[OpRun]) -> Level:
    """How many of these runs there are at a time; one of no duration counts nowhere."""
    starts, lasted = times(runs)
    return level(np.concatenate([starts, starts + lasted]), np.repeat([1, -1], len(runs)))


def bytes_alive(runs: Iterable[OpRun], steps: Iterable[StepTime]) -> dict[str, Level]:
    """For each allocator, what its ops hold. What is left when a step ends is taken away there:
    fetched values go later, and nobody tells when."""
    ends = {step.step: step.start_ns + step.wall_ns for step in steps}
    found: dict[str, list[Level]] = {}  # times and changes
    for step, own in by_step(runs).items():
        events = [event for run in own for event in run.allocations]
        numbers = {name: number for number, name in enumerate({name for *_, name in events})}
        moments: np.ndarray = US * column(moment for moment, *_ in events)
        changes = column(size for _, size, _ in events)
        numbered = column(numbers[name] for *_, name in events)
        for allocator, number in numbers.items():
            its = numbered == number
            last = max(ends.get(step, 0), moments[its].max())
            left = -changes[its].sum()
            found.setdefault(allocator, []).append(
                (np.append(moments[its], last), np.append(changes[its], left))
            )
    return {
        allocator: level(*map(np.concatenate, zip(*parts, strict=True)))
        for allocator, parts in found.items()
    }


def level(moments: np.ndarray, changes: np.ndarray) -> Level:
    """What changes add up to, from each time on at which that is something else."""
    order = np.argsort(moments, kind="stable")
    moments, values = moments[order], np.cumsum(changes[order])
    last: np.ndarray = np.append(moments[1:] != moments[:-1], True)  # of those at one time
    moments, values = moments[last], values[last]
    differs: np.ndarray = np.append(True, values[1:] != values[:-1])
    return moments[differs], values[differs]
