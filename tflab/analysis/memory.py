"""Memory: what ops allocated, what was alive at once, and who held it. No TensorFlow in here.

For every run of an op the runtime notes each allocation, each release of the same memory whenever
it comes, and the microsecond (`TrackingAllocator` in tensorflow/core/framework).

- Told exactly: how many bytes a run allocated, and how many of them were alive at a microsecond's
  end.
- Inferred: what they were for. A release does not name its allocation, so of a run with several
  buffers only the bytes that are left are known, not which. Working memory goes back when a run
  ends, so what an op holds that has ended is taken for its outputs.
- Held by the op that allocated: one that writes its output over its input holds nothing.
- Not seen: variables and what else lives longer than a step, feeds, and memory that a library takes
  past TensorFlow's allocators. Devices and allocators are added up.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate

from tflab.analysis.step_times import median_step
from tflab.analysis.timeline import by_step
from tflab.records import Memory, OpMemory, OpRun, StepTime
from tflab.records.timed import Holder, LiveBytes

US = 1000  # nanoseconds in the unit of allocation times

Event = tuple[int, int]  # (time in us, bytes; negative when freed)


def memory(runs: Iterable[OpRun], steps: Sequence[StepTime] = ()) -> Memory:
    """Bytes that each node asked for in a step, and the most that was alive at once in one.

    Of the step with the median wall time also the whole curve; without `steps` there is none.
    """
    in_step = by_step(runs)
    requested: dict[str, int] = {}
    for run in (run for group in in_step.values() for run in group):
        requested[run.name] = requested.get(run.name, 0) + run.requested_bytes
    # The mean is over all steps, also those in which a node did not run.
    rows = [OpMemory(name, round(total / len(in_step))) for name, total in requested.items()]
    chosen = median_step(steps) if steps else None
    return Memory(
        per_op=tuple(sorted(rows, key=lambda row: (-row.requested_bytes, row.name))),
        peak_bytes=max((peak(events(group)) for group in in_step.values()), default=0),
        curve=live_bytes(in_step.get(chosen.step, ()), chosen) if chosen else None,
    )


def live_bytes(runs: Sequence[OpRun], step: StepTime) -> LiveBytes:
    """The bytes alive over one step, and who held them when they were most.

    Events are known to the microsecond: a point may stand up to 1 us before its event (even before
    the step's start), and those of one microsecond make one point. What is alive after the last
    point outlived the trace, as fetched values do.
    """
    live = curve(events(runs))
    at, most = max(live, key=lambda point: point[1], default=(0, 0))
    if most <= 0:
        at, most = step.start_ns // US, 0
    return LiveBytes(
        step=step.step,
        points=tuple((time * US - step.start_ns, alive) for time, alive in live),
        peak_bytes=most,
        peak_ns=max(0, at * US - step.start_ns),
        holders=holders(runs, at) if most else (),
    )


def events(runs: Iterable[OpRun]) -> Iterable[Event]:
    """All allocations and releases of these runs, in no order."""
    return ((time, size) for run in runs for time, size, _ in run.allocations)


def curve(events: Iterable[Event]) -> list[Event]:
    """(time in us, bytes alive after it), a point for each microsecond that has an event."""
    changes: dict[int, int] = {}
    for time, size in events:
        changes[time] = changes.get(time, 0) + size
    times = sorted(changes)
    return list(zip(times, accumulate(changes[time] for time in times), strict=True))


def peak(events: Iterable[Event]) -> int:
    """The most bytes alive after any microsecond, and at least 0.

    The order within a microsecond is not known; in between there may have been more, never less.
    """
    return max([0, *(alive for _, alive in curve(events))])


def holders(runs: Iterable[OpRun], at_us: int) -> tuple[Holder, ...]:
    """The nodes with memory alive after a microsecond, the largest first; loops are added up."""
    alive: dict[str, int] = {}
    running: set[str] = set()
    types: dict[str, str] = {}
    for run in runs:
        size = sum(size for time, size, _ in run.allocations if time <= at_us)
        if size:
            alive[run.name] = alive.get(run.name, 0) + size
            types[run.name] = run.op
            if run.start_ns + run.duration_ns > at_us * US:
                running.add(run.name)
    held = [Holder(name, types[name], size, name in running) for name, size in alive.items()]
    return tuple(sorted(held, key=lambda holder: (-holder.bytes, holder.name)))
