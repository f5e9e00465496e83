"""Levels: how many ops ran at a time, and how many bytes they held."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from tflab.analysis.memory import US
from tflab.analysis.timeline import by_step, column, times
from tflab.records import OpRun, StepTime

Level = tuple[np.ndarray, np.ndarray]  # times in ns, and the value from each of them on


def ops_at_once(runs: Sequence[OpRun]) -> Level:
    """How many of these runs there are at each time; a run of 0 ns does not count."""
    starts, durations = times(runs)
    return cumulated(np.concatenate([starts, starts + durations]), np.repeat([1, -1], len(runs)))


def bytes_alive(runs: Iterable[OpRun], steps: Iterable[StepTime]) -> dict[str, Level]:
    """The bytes that ops hold, by allocator. What is still held when a step ends is subtracted
    there: fetched values are released later, and the trace does not say when."""
    ends = {step.step: step.start_ns + step.wall_ns for step in steps}
    parts_of_allocator: dict[str, list[Level]] = {}  # times and changes
    for step, step_runs in by_step(runs).items():
        events = [event for run in step_runs for event in run.allocations]
        numbers = {name: number for number, name in enumerate({name for *_, name in events})}
        moments: np.ndarray = US * column(moment for moment, *_ in events)
        changes = column(size for _, size, _ in events)
        allocator_numbers = column(numbers[name] for *_, name in events)
        for allocator, number in numbers.items():
            in_allocator = allocator_numbers == number
            last = max(ends.get(step, 0), moments[in_allocator].max())
            released_at_end = -changes[in_allocator].sum()
            parts_of_allocator.setdefault(allocator, []).append(
                (
                    np.append(moments[in_allocator], last),
                    np.append(changes[in_allocator], released_at_end),
                )
            )
    return {
        allocator: cumulated(*map(np.concatenate, zip(*parts, strict=True)))
        for allocator, parts in parts_of_allocator.items()
    }


def cumulated(moments: np.ndarray, changes: np.ndarray) -> Level:
    """The running sum of the changes, at each time at which it becomes another one."""
    order = np.argsort(moments, kind="stable")
    moments, values = moments[order], np.cumsum(changes[order])
    last: np.ndarray = np.append(moments[1:] != moments[:-1], True)  # of the changes at one time
    moments, values = moments[last], values[last]
    differs: np.ndarray = np.append(True, values[1:] != values[:-1])
    return moments[differs], values[differs]
