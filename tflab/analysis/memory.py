"""Memory: what ops allocated, what was alive at once, and who held it.

For every run of an op the runtime records each allocation, each release of that memory, and the
microsecond of both (`TrackingAllocator` in tensorflow/core/framework).

- Exact: how many bytes a run allocated, and how many of them were alive at the end of a
  microsecond.
- Inferred: what the bytes were for. A release does not name its allocation. So it is known
  how many bytes of a run are left, but not which of its buffers. Working memory is released when a
  run ends, so the bytes of an op that has ended are taken for its outputs.
- Bytes belong to the op that allocated them: an op that writes its output over its input holds
  none.
- Not seen: variables and whatever else outlives a step, feeds, and memory that a library takes
  without TensorFlow's allocators. Devices and allocators are added up.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from tflab.analysis import op_runs
from tflab.analysis.op_runs import OpRuns, sums
from tflab.records.timed import Holder, LiveBytes, Memory, OpRun, StepTime

US = 1000  # nanoseconds in the unit of allocation times


def memory(runs: Iterable[OpRun], steps: Sequence[StepTime]) -> Memory:
    """Return the peak of all steps, and the whole curve of the first step that reached it."""
    by_step = op_runs.of(runs).by_step()
    worst = max(steps, key=lambda step: peak_bytes(by_step.get(step.step, ())))
    curve = live_bytes(by_step.get(worst.step, ()), worst)
    return Memory(peak_bytes=curve.peak_bytes, curve=curve)


def peak_bytes(runs: Iterable[OpRun]) -> int:
    """Return the most bytes alive after any microsecond of any step. The order within a microsecond
    is unknown: the true peak may have been higher, never lower."""
    steps = op_runs.of(runs).by_step().values()
    return max((0, *(highest(*curve(step))[1] for step in steps)))


def live_bytes(runs: Sequence[OpRun], step: StepTime) -> LiveBytes:
    """Return the bytes alive over one step, and which nodes held them at the peak. Events are
    accurate to a microsecond, and those of one microsecond form one point."""
    runs = op_runs.of(runs)
    times, alive = curve(runs)
    peak_us, peak_bytes = highest(times, alive)
    if peak_bytes <= 0:
        peak_us, peak_bytes = step.start_ns // US, 0
    return LiveBytes(
        step=step.step,
        points=tuple(zip((times * US - step.start_ns).tolist(), alive.tolist(), strict=True)),
        peak_bytes=peak_bytes,
        peak_ns=max(0, peak_us * US - step.start_ns),
        holders=holders(runs, peak_us) if peak_bytes else (),
    )


def curve(runs: OpRuns) -> tuple[np.ndarray, np.ndarray]:
    """Return each microsecond with an allocation or a release, and the bytes alive after it."""
    events = runs.allocations
    order = np.argsort(events.us, kind="stable")
    times, alive = events.us[order], np.cumsum(events.bytes[order])
    last: np.ndarray = np.append(times[1:] != times[:-1], True)[: len(times)]
    return times[last], alive[last]


def highest(times: np.ndarray, alive: np.ndarray) -> tuple[int, int]:
    """Return the first time with the most bytes, and these bytes; (0, 0) of an empty curve."""
    if not len(times):
        return 0, 0
    place = int(alive.argmax())
    return int(times[place]), int(alive[place])


def holders(runs: OpRuns, at_us: int) -> tuple[Holder, ...]:
    """Return the nodes that hold bytes after the microsecond `at_us`, the largest first."""
    events = runs.allocations
    before = events.us <= at_us
    sizes = sums(events.run[before], events.bytes[before], len(runs))
    holding = runs.where(sizes != 0)
    bytes_of_kind = sums(holding.kind, sizes[sizes != 0], len(runs.kinds)).tolist()
    later = holding.start_ns + holding.duration_ns > at_us * US
    running = {runs.kinds[kind][0] for kind in holding.where(later).kinds_in_order()}
    alive: dict[str, int] = {}
    types: dict[str, str] = {}
    for kind in holding[::-1].kinds_in_order():
        name, op, _ = runs.kinds[kind]
        alive[name] = alive.get(name, 0) + bytes_of_kind[kind]
        types.setdefault(name, op)
    held = [Holder(name, types[name], size, name in running) for name, size in alive.items()]
    return tuple(sorted(held, key=lambda holder: (-holder.bytes, holder.name)))
