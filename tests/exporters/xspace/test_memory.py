"""Memory: every allocation with what its allocator held then, and the curves, event by event.

An approved event has its start in ns, its size, what is held then and at the peak, its step, and
the address of its buffer, which a release has in common with the allocation that it undoes.
"""

import pytest

from tests.approval import approve
from tests.exporters.xspace import xplane
from tflab.analysis import op_runs
from tflab.exporters.xspace import memory
from tflab.exporters.xspace.plane import Plane
from tflab.records.timed import Allocation, OpRun
from tflab.runtime import private

pytestmark = pytest.mark.tensorflow

ZERO = 9_999  # ns: a nanosecond before the tenth microsecond
GROUPS = {0: 1, 1: 2, 3: 1, 5: 2}


def run(step: int, name: str, *allocations: Allocation) -> OpRun:
    return OpRun(step, name, "Op", "CPU:0", 0, 0, 0, allocations)


def lines(*runs: OpRun) -> list:
    """The lines that are added for these runs: of events, and of curves."""
    plane = Plane(private.xspace(), "p")
    memory.add(plane, op_runs.of(runs), GROUPS, ZERO)
    return xplane.lines(plane.proto)


CASES = {
    "two steps, two allocators, and a run before the profile that is of no step": (
        run(3, "conv", (10, 100, "cpu"), (12, 50, "cpu"), (14, -100, "cpu")),
        run(3, "relu", (12, 8, "gpu"), (12, -30, "cpu"), (12, 30, "cpu")),
        run(5, "conv", (20, 101, "cpu"), (25, -101, "cpu")),
        run(9, "late", (9, 7, "gpu")),
    ),
    "the allocator that is named first comes first, and a step begins anew": (
        run(1, "add", (30, 5, "z"), (31, 6, "a")),
        run(0, "mul", (10, 3, "z"), (10, -1, "z"), (11, 9, "a")),
    ),
    "allocators of one microsecond and step are apart": (
        run(0, "add", (10, 5, "z"), (10, 3, "a")),
    ),
    "steps of one microsecond are apart": (
        run(0, "add", (10, 5, "z")),
        run(1, "add", (10, 7, "z")),
    ),
    "nothing is allocated": (run(0, "add", (10, 0, "z")),),
    "no allocations": (run(0, "a"), run(1, "b")),
    "a curve has a name that needs no escape": (run(0, "a", (10, 4, 'x"é')),),
    "the older of two of one size is released first": (
        run(
            *(0, "a", (10, 8, "cpu"), (11, 8, "cpu"), (12, -8, "cpu"), (13, 9, "cpu")),
            (14, -8, "cpu"),
        ),
    ),
    "a buffer is released before the next one of its size": (
        run(0, "a", (10, 8, "cpu"), (11, -8, "cpu"), (12, 8, "cpu"), (13, -8, "cpu")),
    ),
    "what is older is decided by the time": (
        run(0, "a", (15, 8, "cpu"), (13, 8, "cpu"), (16, -8, "cpu"), (14, -8, "cpu")),
    ),
    "of the same size, but of another allocator": (
        run(0, "a", (11, 8, "cpu"), (12, 8, "gpu"), (13, -8, "gpu"), (14, -8, "cpu")),
    ),
    "of the same size, but of another run": (
        run(0, "a", (11, 8, "cpu"), (14, -8, "cpu")),
        run(0, "a", (12, 8, "cpu"), (13, -8, "cpu")),
    ),
    "a release without its allocation": (run(0, "a", (11, -8, "cpu"), (12, 9, "cpu")),),
}


def test_every_event_and_every_point_of_a_curve():
    rows = []
    for case, runs in CASES.items():
        rows.append(f"# {case}")
        for number, name, events in lines(*runs):
            rows.append(f"line {number} {name}")
            for event, start, ps, about in events:
                words = " ".join(f"{key}={value}" for key, value in about.items())
                rows.append(f"  {start // 1000} +{ps // 1000} {event} {words}")
        rows.append("")
    approve("xspace-memory.txt", "\n".join(rows))


def test_more_events_than_a_microsecond_has_nanoseconds_stay_within_it():
    (_, _, events), (_, _, points) = lines(run(0, "a", *[(10, 1, "cpu")] * 1_003))
    assert [start // 1000 for _, start, *_ in events] == [*range(1, 1_001), 1_000, 1_000, 1_000]
    assert {about["bytes_allocated"] for *_, about in events} == {1_003}
    assert [(start // 1000, about) for _, start, _, about in points] == [(1, {"bytes": 1_003})]


def test_letters_of_an_allocator_that_need_an_escape_are_replaced():
    assert memory.plain_name('aZ9_.:/ -"\\[é\n') == "aZ9_.:/ -_____"
