"""Memory: every allocation and release for TensorBoard's memory profile, and a curve.

XProf expects each event to state the bytes of its allocator at that time. They are added up as in
`tflab.analysis.memory`, from the start of every step, but for each allocator separately.
"""

from __future__ import annotations

import re
from collections import defaultdict, deque
from collections.abc import Mapping
from itertools import count, groupby
from operator import itemgetter

from tflab.analysis.memory import US
from tflab.analysis.op_runs import OpRuns
from tflab.exporters.xspace.plane import COUNTERS, Plane

# One of the numbers for lines that are not threads (xla/tsl/profiler/utils/trace_utils.h): on a
# thread's line the op statistics would count the ops of these events again.
LINE = 0xDEADBEEF - 2**32 + 7


def add(plane: Plane, runs: OpRuns, groups: Mapping[int, int], zero: int) -> None:
    """Add the allocations and releases of these runs to a line of events, and to a curve.

    Their times are known to the microsecond. All events of one microsecond state the bytes at its
    end, as in `memory.curve`, and are one nanosecond apart, so that they keep their order. A
    release does not name its allocation. Here it is matched with the oldest allocation of the same
    op run, allocator and size that is not matched yet; the two share an `addr`.
    """
    line, curve = plane.line("memory", LINE), plane.line(COUNTERS)
    events, names = runs.allocations, [runs.kinds[kind][0] for kind in runs.kind.tolist()]
    steps = runs.step[events.run]
    columns = (events.allocator, steps, events.us, events.bytes < 0, events.run, events.bytes)
    rows = list(zip(*(column.tolist() for column in columns), strict=True))
    rows.sort(key=itemgetter(0, 1, 2, 3))
    peaks: dict[int, int] = {}
    addresses = count(1)
    waiting: dict[tuple[int, int, int], deque[int]] = defaultdict(deque)
    for (allocator, step), in_step in groupby(rows, key=itemgetter(0, 1)):
        held, name = 0, events.allocators[allocator]
        for us, together in groupby(in_step, key=itemgetter(2)):
            moment, start = list(together), max(us * US - zero, 0)
            held += sum(size for *_, size in moment)
            peaks[allocator] = max(held, peaks.get(allocator, held))
            for place, (*_, freed, run, size) in enumerate(moment):
                same = waiting[run, allocator, abs(size)]
                address = same.popleft() if freed and same else next(addresses)
                if not freed:
                    same.append(address)
                plane.add(
                    line,
                    plane.event("MemoryDeallocation" if freed else "MemoryAllocation"),
                    start + min(place, US - 1),
                    1,  # XProf stretches an event of no duration to the next one
                    {
                        "group_id": groups.get(step, 0),
                        "bytes_allocated": held,
                        "peak_bytes_in_use": peaks[allocator],
                        "requested_bytes": abs(size),
                        "allocation_bytes": abs(size),
                        "addr": address,
                        "allocator_name": name,
                        "tf_op": names[run],
                    },
                )
            title = plane.event(f"bytes held by {plain_name(name)}")
            plane.add(curve, title, start, 0, {"bytes": held})


def plain_name(allocator: str) -> str:
    """Return an allocator's name without special characters, because XProf's JSON does not escape
    it."""
    return re.sub(r"[^A-Za-z0-9_.:/ -]", "_", allocator)
